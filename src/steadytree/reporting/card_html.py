"""Card HTML: one page with a card, ready to print."""

from typing import Any

from markupsafe import Markup

from steadytree.core.risk_table import RiskTable
from steadytree.reporting.card_svg import draw_card
from steadytree.reporting.wording import one_line

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ margin: 1.5rem; background: Canvas; }}
svg {{ max-width: 100%; height: auto; }}
@page {{ margin: 12mm; }}
@media print {{ body {{ margin: 0; }} svg {{ width: 100%; max-height: 96vh; }} }}
</style>
</head>
<body>
{card}
</body>
</html>
"""


def card_html(card: Any, table: RiskTable | None = None, title: str = "") -> str:
    """A card as an HTML page that needs nothing else; printed, it fills the sheet.

    Parameters
    ----------
    card : Scorecard or fitted RiskScoreClassifier
        A fitted or saved one brings its table.
    table : RiskTable, optional
        Adds what totals mean.
    title : str, optional

    Examples
    --------
    >>> from steadytree.core.condition import Condition
    >>> from steadytree.core.scorecard import Scorecard
    >>> from steadytree.core.space import FeatureSpace
    >>> space = FeatureSpace.declare(bounds={"age": (18, 99)})
    >>> card = Scorecard(space, ["stays", "goes"], [Condition(0, "at_least", 75)], [2], -1)
    >>> card_html(card).splitlines()[0]
    '<!DOCTYPE html>'
    """
    drawn = draw_card(card, table, title)
    return str(Markup(PAGE).format(title=one_line(title) or "A card of points", card=drawn))
