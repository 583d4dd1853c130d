"""Card HTML: one page with a card, ready to print."""

from typing import Any

from markupsafe import Markup

from steadytree.models.risk_table import RiskTable
from steadytree.models.scorecard import card_of
from steadytree.reporting.formatting import percent_text
from steadytree.reporting.svg.scorecard import draw_card
from steadytree.reporting.wording import label_text, one_line


def card_text(card: Any, table: RiskTable | None = None) -> str:
    """The card as aligned text, with what totals mean where a table is given.

    Parameters
    ----------
    card : Scorecard or fitted RiskScoreClassifier
        A fitted or saved one brings its table.
    table : RiskTable, optional

    Examples
    --------
    >>> from steadytree.models.scorecard import Condition
    >>> from steadytree.models.scorecard import Scorecard
    >>> from steadytree.data.feature_space import FeatureSpace
    >>> space = FeatureSpace.declare(bounds={"age": (18, 99)})
    >>> card = Scorecard(space, ["stays", "goes"], [Condition(0, "at_least", 75)], [2], -1)
    >>> print(card_text(card))
    start with      -1
    age ≥ 75        +2
    above 0: goes, else stays
    """
    card = card_of(card)
    table = table or card.risk_table
    labels = [label_text(label) for label in card.classes.tolist()]
    heads = [] if card.is_binary else [["points for", *labels]]
    rows = [["start with", *(str(value) for value in card.offset.tolist())]]
    for text, points in zip(map(one_line, card.texts()), card.points.tolist(), strict=True):
        rows.append([text, *(f"{value:+d}" if value else "" for value in points)])
    lines = _aligned(heads + rows)
    if card.n_conditions == 0:
        lines.append("no conditions: every row gets the same answer")
    elif card.is_binary:
        lines.append(f"above 0: {labels[1]}, else {labels[0]}")
    else:
        lines.append("the greatest total wins, the first on ties")
    if table is not None:
        lines += ["", *_aligned(risk_lines(table, card.is_binary))]
    return "\n".join(lines)


def risk_lines(table: RiskTable, is_binary: bool) -> list[list[str]]:
    """Totals, risks, shares and counts as rows of text, a head first."""
    head = ["total", "risk", "observed", "95 % interval", "rows"]
    rows = [head if is_binary else ["class", *head]]
    for row in table.rows:
        low, high = (percent_text(end) for end in row.interval)
        line = [
            str(row.total),
            percent_text(row.risk),
            percent_text(row.share),
            f"{low} to {high}",
            f"{row.n_rows:,.6g}",
        ]
        rows.append(line if is_binary else [label_text(row.label), *line])
    return rows


def _aligned(rows: list[list[str]]) -> list[str]:
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            [
                row[0].ljust(max(widths[0], 12)),
                *map(str.rjust, row[1:], (w + 2 for w in widths[1:])),
            ]
        ).rstrip()
        for row in rows
    ]


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
    >>> from steadytree.models.scorecard import Condition
    >>> from steadytree.models.scorecard import Scorecard
    >>> from steadytree.data.feature_space import FeatureSpace
    >>> space = FeatureSpace.declare(bounds={"age": (18, 99)})
    >>> card = Scorecard(space, ["stays", "goes"], [Condition(0, "at_least", 75)], [2], -1)
    >>> card_html(card).splitlines()[0]
    '<!DOCTYPE html>'
    """
    drawn = draw_card(card, table, title)
    return str(Markup(PAGE).format(title=one_line(title) or "A card of points", card=drawn))
