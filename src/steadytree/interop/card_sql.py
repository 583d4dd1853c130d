"""A card as an SQL expression."""

from collections.abc import Sequence
from typing import Any

from steadytree.core.condition import Condition
from steadytree.core.scorecard import Scorecard, card_of


def card_to_sql(card: Any, label: object = None) -> str:
    """The total of a row as an expression of standard SQL; missing values are NULL.

    Columns of yes and no are compared as the numbers 1 and 0: cast those that a database keeps as
    BOOLEAN. A category that the card does not know counts as missing, as it does for the card.

    Parameters
    ----------
    card : Scorecard or fitted RiskScoreClassifier
    label : optional
        The class whose total is wanted; needed above two classes.

    Examples
    --------
    >>> from steadytree.core.space import FeatureSpace
    >>> space = FeatureSpace.declare(bounds={"age": (18, 99)})
    >>> card = Scorecard(space, ["no", "yes"], [Condition(0, "at_least", 75)], [2], -1)
    >>> card_to_sql(card)
    '-1 + (CASE WHEN "age" >= 75.0 THEN 2 ELSE 0 END)'
    """
    card = card_of(card)
    place = card.total_of(label)
    parts = [str(int(card.offset[place]))]
    for condition, points in zip(card.conditions, card.points[:, place].tolist(), strict=True):
        if points:
            parts.append(f"(CASE WHEN {_condition(card, condition)} THEN {points} ELSE 0 END)")
    return " + ".join(parts)


def _condition(card: Scorecard, condition: Condition) -> str:
    column = card.space[condition.feature]
    name = '"' + column.name.replace('"', '""') + '"'
    if condition.sort == "among":
        return f"{name} IN ({_listed([column.categories[code] for code in condition.categories])})"
    if column.is_categorical:
        known = f"{name} IN ({_listed(column.categories)})"
        return known if condition.sort == "present" else f"{name} IS NULL OR NOT {known}"
    if condition.sort in ("missing", "present"):
        return f"{name} IS {'' if condition.sort == 'missing' else 'NOT '}NULL"
    sign = ">=" if condition.sort == "at_least" else "<"
    return f"{name} {sign} {condition.threshold!r}"


def _listed(categories: Sequence[str]) -> str:
    return ", ".join("'" + each.replace("'", "''") + "'" for each in categories)
