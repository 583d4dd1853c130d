"""A card as plain dicts, lists, numbers and text, and back; every part is checked."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from steadytree.core.condition import SORTS, Condition
from steadytree.core.risk_table import RiskRow, RiskTable
from steadytree.core.scorecard import Scorecard
from steadytree.core.space import FeatureSpace
from steadytree.interop.tree_dict import (
    _check_keys,
    _column_from_dict,
    _column_to_dict,
    _label,
    _label_array,
    _list,
    _number,
    _one_of,
    _plain_labels,
)

KEYS = ("classes", "features", "conditions", "offset", "slope", "intercept")
COUNTS = ("label", "total", "n_rows", "n_label")
ASKS = {"at_least": "at_least", "below": "below", "among": "in"}


def card_to_dict(card: Scorecard) -> dict[str, Any]:
    """The card as plain values that JSON can hold.

    Examples
    --------
    >>> space = FeatureSpace.declare(bounds={"age": (18, 99)})
    >>> card = Scorecard(space, ["no", "yes"], [Condition(0, "at_least", 75)], [2], -1)
    >>> card_to_dict(card)["conditions"]
    [{'feature': 'age', 'sort': 'at_least', 'points': [2], 'at_least': 75.0}]
    >>> card_from_dict(card_to_dict(card)) == card
    True
    """
    content = {
        "classes": [_label(label) for label in _plain_labels(card.classes)],
        "features": [_column_to_dict(column) for column in card.space],
        "conditions": [
            _condition_to_dict(card, condition, points)
            for condition, points in zip(card.conditions, card.points.tolist(), strict=True)
        ],
        "offset": card.offset.tolist(),
        "slope": card.slope if card.gives_risks else None,
        "intercept": card.intercept if card.gives_risks else None,
    }
    if card.risk_table is not None:  # shares, intervals and risks follow from the counts
        content["risks"] = [
            {name: getattr(row, name) for name in COUNTS} for row in card.risk_table.rows
        ]
    return content


def card_from_dict(content: Mapping[str, Any]) -> Scorecard:
    """The card that `card_to_dict` described; a ValueError says what is wrong with it."""
    told = isinstance(content, Mapping) and "risks" in content
    _check_keys("the card", content, (*KEYS, "risks") if told else KEYS)
    labels = [_label(label) for label in _list("classes", content["classes"])]
    features = _list("features", content["features"])
    space = FeatureSpace(tuple(_column_from_dict(j, each) for j, each in enumerate(features)))
    conditions, points = [], []
    for place, each in enumerate(_list("conditions", content["conditions"])):
        try:
            conditions.append(_condition_from_dict(each, space))
            points.append([_whole("points", one) for one in _list("points", each["points"])])
        except ValueError as error:
            raise ValueError(f"condition {place}: {error}") from None
    offset = [_whole("offset", one) for one in _list("offset", content["offset"])]
    slope, intercept = (
        np.nan if content[key] is None else _number(key, content[key])
        for key in ("slope", "intercept")
    )
    if len({len(each) for each in points} | {len(offset)}) > 1:
        raise ValueError("points must hold as many numbers as offset")
    given = (space, _label_array(labels), conditions, np.array(points), offset)
    card = Scorecard(*given, slope, intercept)
    if not told:
        return card
    rows = [_risk_row(card, each) for each in _list("risks", content["risks"])]
    return replace(card, risk_table=RiskTable(tuple(rows)))


def _condition_to_dict(card: Scorecard, condition: Condition, points: list[int]) -> dict[str, Any]:
    column = card.space[condition.feature]
    start = {"feature": column.name, "sort": condition.sort, "points": points}
    if condition.sort == "among":
        return start | {"in": [column.categories[code] for code in condition.categories]}
    if condition.sort in ASKS:
        return start | {condition.sort: condition.threshold}
    return start


def _condition_from_dict(content: Any, space: FeatureSpace) -> Condition:
    sort = content.get("sort") if isinstance(content, Mapping) else None
    if sort not in SORTS:
        raise ValueError(f"sort must be one of {', '.join(SORTS)}")
    asked = (ASKS[sort],) if sort in ASKS else ()
    _check_keys("a condition", content, ("feature", "sort", "points", *asked))
    places = {name: j for j, name in enumerate(space.names)}
    feature = _one_of("feature", content["feature"], places)
    if sort == "among":
        codes = {category: code for code, category in enumerate(space[feature].categories)}
        listed = [_one_of("in", each, codes) for each in _list("in", content["in"])]
        return Condition(feature, "among", categories=tuple(listed))
    if sort in ASKS:
        return Condition(feature, sort, _number(sort, content[sort]))
    return Condition(feature, sort)


def _risk_row(card: Scorecard, content: Any) -> RiskRow:
    _check_keys("a row of risks", content, COUNTS)
    known = card.classes.tolist()
    own = known[1:] if card.is_binary else known
    if content["label"] not in own:
        raise ValueError(f"label of a row of risks must be one of {own}")
    total = _whole("total", content["total"])
    n_rows, n_label = (_number(name, content[name]) for name in ("n_rows", "n_label"))
    if not 0 <= n_label <= n_rows < np.inf or n_rows == 0:
        raise ValueError("n_rows must be above 0 and n_label from 0 to n_rows")
    return RiskRow.of(card, own[own.index(content["label"])], total, n_rows, n_label)


def _whole(what: str, value: Any) -> int:
    if type(value) is not int or abs(value) >= 2**53:
        raise ValueError(f"{what} must be a whole number")
    return value
