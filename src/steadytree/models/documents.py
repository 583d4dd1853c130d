"""A card as plain dicts, lists, numbers and text, and back; every part is checked."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.data.column import KINDS, Column
from steadytree.data.feature_space import FeatureSpace
from steadytree.models.risk_table import RiskRow, RiskTable
from steadytree.models.scorecard import SORTS, Condition, Scorecard
from steadytree.models.tree import LEAF, Tree

MAX_CELLS = 10**8  # of the arrays a tree is made of
INFINITIES = {"inf": math.inf, "-inf": -math.inf}


def tree_to_dict(tree: Tree) -> dict[str, Any]:
    """The tree as plain values that JSON can hold.

    Examples
    --------
    >>> space = FeatureSpace.declare(bounds={"age": (0, 120)})
    >>> tree = Tree(space, ["no", "yes"], [0, -1, -1], [40.0, np.nan, np.nan], [1, -1, -1],
    ...             [2, -1, -1], [[0.5, 0.5], [1, 0], [0, 1]], [2, 1, 1])
    >>> tree_to_dict(tree)["nodes"][0]
    {'feature': 'age', 'at_most': 40.0, 'missing': 'right', 'left': 1, 'right': 2, 'weight': 2.0,
    'value': [0.5, 0.5]}
    >>> tree_from_dict(tree_to_dict(tree)) == tree
    True
    """
    return {
        **({"note": _text("note", tree.note)} if tree.note else {}),
        "classes": [_label(label) for label in _plain_labels(tree.classes)],
        "single_precision": bool(tree.single_precision),
        "features": [_column_to_dict(column) for column in tree.space],
        "nodes": [_node_to_dict(tree, node) for node in range(tree.n_nodes)],
    }


def tree_from_dict(content: Mapping[str, Any]) -> Tree:
    """The tree that `tree_to_dict` described; a ValueError says what is wrong with it."""
    keys = ("classes", "single_precision", "features", "nodes")
    noted = isinstance(content, Mapping) and "note" in content
    _check_keys("the tree", content, (*keys, "note") if noted else keys)
    labels = [_label(label) for label in _list("classes", content["classes"])]
    features, nodes = (_list(key, content[key]) for key in ("features", "nodes"))
    space = FeatureSpace(tuple(_column_from_dict(j, each) for j, each in enumerate(features)))
    width = max(len(column.categories) for column in space)
    if len(nodes) * (width + len(labels)) > MAX_CELLS:
        raise ValueError(f"{len(nodes):,} nodes are more than a tree file may hold")
    arrays = _empty_arrays(len(nodes), len(labels), width)
    places = {name: j for j, name in enumerate(space.names)}
    for row, node in enumerate(nodes):
        try:
            _fill_node(arrays, row, node, space, places)
        except ValueError as error:
            raise ValueError(f"node {row}: {error}") from None
    return Tree(
        space,
        _label_array(labels),
        single_precision=_flag("single_precision", content["single_precision"]),
        note=_text("note", content.get("note", "")),
        **arrays,
    )


# ---- labels ----
def _plain_labels(classes: NDArray[Any]) -> list[Any]:
    if classes.dtype.kind not in "biufUO":
        raise ValueError(f"class labels of type {classes.dtype} cannot be saved: use text.")
    return [label.item() if isinstance(label, np.generic) else label for label in classes.tolist()]


def _label(label: Any) -> bool | int | float | str:
    if type(label) is float and not math.isfinite(label):
        raise ValueError(f"class label {label!r} is no finite number")
    if type(label) not in (bool, int, float, str):
        raise ValueError(
            f"class label {str(label)[:40]!r} is of type {type(label).__name__}: "
            "labels must be text, whole numbers, numbers or booleans"
        )
    return label


def _label_array(labels: list[Any]) -> NDArray[Any]:
    if len({type(label) for label in labels}) == 1:
        return np.array(labels)
    array = np.empty(len(labels), dtype=object)  # numpy would turn numbers beside text into text
    array[:] = labels
    return array


# ---- columns ----
def _column_to_dict(column: Column) -> dict[str, Any]:
    start = {
        "name": _text("name", column.name),
        "kind": column.kind,
        "missing": bool(column.missing),
    }
    if column.is_categorical:
        return start | {"categories": [_text("category", each) for each in column.categories]}
    return start | {"low": float(column.low), "high": float(column.high)}


def _column_from_dict(place: int, content: Any) -> Column:
    what = f"feature {place}"
    kind = content.get("kind") if isinstance(content, Mapping) else None
    if kind not in KINDS:
        raise ValueError(f"{what}: kind must be one of {', '.join(KINDS)}")
    described = ("categories",) if kind == "categorical" else ("low", "high")
    _check_keys(what, content, ("name", "kind", "missing", *described))
    name, missing = _text("name", content["name"]), _flag("missing", content["missing"])
    if kind == "categorical":
        listed = _list("categories", content["categories"])
        categories = tuple(_text("category", each) for each in listed)
        return Column(name, kind, categories=categories, missing=missing)
    low, high = (_number(key, content[key]) for key in ("low", "high"))
    return Column(name, kind, low, high, missing=missing)


# ---- nodes ----
def _node_to_dict(tree: Tree, node: int) -> dict[str, Any]:
    end = {"weight": float(tree.weight[node]), "value": tree.value[node].tolist()}
    if tree.left[node] == LEAF:
        return end
    column = tree.space[tree.feature[node]]
    start: dict[str, Any] = {"feature": column.name}
    if column.is_categorical:
        start["in"] = [column.categories[code] for code in np.flatnonzero(tree.subset[node])]
    else:
        threshold = float(tree.threshold[node])
        start["at_most"] = threshold if math.isfinite(threshold) else str(threshold)
    return start | {
        "missing": "left" if tree.missing_left[node] else "right",
        "left": int(tree.left[node]),
        "right": int(tree.right[node]),
        **end,
    }


def _empty_arrays(n_nodes: int, n_classes: int, width: int) -> dict[str, NDArray[Any]]:
    return {
        "feature": np.full(n_nodes, LEAF),
        "threshold": np.full(n_nodes, np.nan),
        "left": np.full(n_nodes, LEAF),
        "right": np.full(n_nodes, LEAF),
        "value": np.zeros((n_nodes, n_classes)),
        "weight": np.zeros(n_nodes),
        "missing_left": np.zeros(n_nodes, bool),
        "subset": np.zeros((n_nodes, width), bool),
    }


def _fill_node(
    arrays: dict[str, NDArray[Any]],
    row: int,
    node: Any,
    space: FeatureSpace,
    places: dict[str, int],
) -> None:
    value = [_number("value", each) for each in _list("value", _get(node, "value"))]
    if len(value) != arrays["value"].shape[1]:
        raise ValueError("value must hold one number for each class")
    arrays["value"][row] = value
    arrays["weight"][row] = _number("weight", _get(node, "weight"))
    if "feature" not in node:
        _check_keys("a leaf", node, ("weight", "value"))
        return
    feature = _one_of("feature", node["feature"], places)
    column = space[feature]
    asked = "in" if column.is_categorical else "at_most"
    inner = ("feature", asked, "missing", "left", "right", "weight", "value")
    _check_keys("an inner node", node, inner)
    arrays["feature"][row] = feature
    arrays["missing_left"][row] = _one_of("missing", node["missing"], {"left": 1, "right": 0})
    for side in ("left", "right"):
        arrays[side][row] = _child(side, node[side], len(arrays["left"]))
    if column.is_categorical:
        codes = {category: code for code, category in enumerate(column.categories)}
        listed = [_one_of("in", each, codes) for each in _list("in", node["in"])]
        arrays["subset"][row, listed] = True
    else:
        arrays["threshold"][row] = _threshold(node["at_most"])


# ---- single values ----
def _get(content: Any, key: str) -> Any:
    if not isinstance(content, Mapping) or key not in content:
        raise ValueError(f"{key} is missing")
    return content[key]


def _check_keys(what: str, content: Any, keys: Sequence[str]) -> None:
    if not isinstance(content, Mapping) or set(content) != set(keys):
        raise ValueError(f"{what} must hold {', '.join(keys)} and no more")


def _list(what: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{what} must be a list")
    return value


def _text(what: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{what} must be text, got {type(value).__name__}")
    return str(value)


def _flag(what: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{what} must be true or false")
    return value


def _number(what: str, value: Any) -> float:
    if type(value) not in (int, float) or not abs(value) < math.inf:
        raise ValueError(f"{what} must be a finite number")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{what} is too large a number") from None


def _threshold(value: Any) -> float:
    if isinstance(value, str) and value in INFINITIES:
        return INFINITIES[value]
    return _number("at_most", value)


def _one_of(what: str, value: Any, allowed: Mapping[str, int]) -> int:
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{what} does not know {str(value)[:40]!r}")
    return allowed[value]


def _child(what: str, value: Any, n_nodes: int) -> int:
    if type(value) is not int or not 0 < value < n_nodes:
        raise ValueError(f"{what} must be the number of another node")
    return value


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
