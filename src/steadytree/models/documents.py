"""Trees and scorecards as plain values that JSON can hold, and back; every value is checked."""

import inspect
import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import compress
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import UNSET, Meta, UnsetType
from numpy.typing import NDArray

from steadytree._base.documents import Document, convert
from steadytree.data.column import Column, Kind
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.splits import Bins
from steadytree.models.condition import Condition, Sort
from steadytree.models.risk_table import RiskGroup, RiskRow, RiskTable
from steadytree.models.scorecard import Scorecard
from steadytree.models.tree import LEAF, Tree

MAX_VALUES = 10**8  # of the arrays a tree is made of
SPLIT_FIELDS = ("feature", "in_", "at_most", "missing", "left", "right")
Label = bool | int | float | str
Integer = Annotated[int, Meta(gt=-(2**53), lt=2**53)]  # exact in every reader of JSON


class ColumnDocument(Document):
    """A feature: bounds, or categories, which are `ordered` if listed from lowest to highest."""

    name: str
    kind: Kind
    missing: bool
    categories: list[str] | UnsetType = UNSET
    low: float | UnsetType = UNSET
    high: float | UnsetType = UNSET
    ordered: bool | UnsetType = UNSET


class NodeDocument(Document, kw_only=True):
    """A node. A leaf has weight and value alone; a split has `in` or `at_most` as well."""

    feature: str | UnsetType = UNSET
    in_: list[str] | UnsetType = msgspec.field(default=UNSET, name="in")
    at_most: float | Literal["inf", "-inf"] | UnsetType = UNSET
    missing: Literal["left", "right"] | UnsetType = UNSET
    left: int | UnsetType = UNSET
    right: int | UnsetType = UNSET
    weight: float
    value: list[float]


class BinsDocument(Document):
    """Candidate splits and seed of the fit, for the next one.

    Thresholds of each feature: all of them, or how many lie evenly between its bounds. `order`
    holds the categories of each feature that is split in groups, which begin it.
    """

    seed: Integer
    thresholds: list[int | list[float]]
    order: dict[str, list[str]]


class TreeDocument(Document, kw_only=True):
    """A tree; node 0 is the root, `left` and `right` are positions in the list of nodes."""

    note: str | UnsetType = UNSET
    classes: list[Label]
    single_precision: bool
    features: list[ColumnDocument]
    bins: BinsDocument | UnsetType = UNSET  # from version 2 of the format on
    nodes: list[NodeDocument]


class ConditionDocument(Document):
    """A condition of a scorecard, with the value that its sort needs."""

    feature: str
    sort: Sort
    points: list[Integer]
    at_least: float | UnsetType = UNSET
    below: float | UnsetType = UNSET
    in_: list[str] | UnsetType = msgspec.field(default=UNSET, name="in")


class RiskDocument(Document):
    """Training rows with one total; shares, intervals and risks follow from the counts."""

    label: Label
    total: Integer
    n_rows: float
    n_label: float


class RiskGroupDocument(Document):
    """Totals from `least` on, up to the next group."""

    name: str
    least: Integer


class ScorecardDocument(Document):
    """A scorecard; slope and intercept are null where it gives no risks.

    What follows `risks` is known from version 2 of the format on. `profile` has the training rows
    of each class in each band of each feature, in order of the conditions.
    """

    classes: list[Label]
    features: list[ColumnDocument]
    conditions: list[ConditionDocument]
    offset: list[Integer]
    slope: float | None
    intercept: float | None
    risks: list[RiskDocument] | UnsetType = UNSET
    decision: Integer | UnsetType = UNSET
    title: str | UnsetType = UNSET
    units: dict[str, str] | UnsetType = UNSET
    groups: list[RiskGroupDocument] | UnsetType = UNSET
    profile: list[list[list[float]]] | UnsetType = UNSET
    provenance: dict[str, str | int | float] | UnsetType = UNSET


class TreeFile(Document, tag_field="format", tag="steadytree-tree"):
    """What a ``*.tree.json`` file holds; the hash is that of the tree's canonical JSON."""

    version: Literal[1, 2]
    sha256: str
    tree: TreeDocument


class ScorecardFile(Document, tag_field="format", tag="steadytree-card"):
    """What a ``*.card.json`` file holds; the hash is that of the card's canonical JSON."""

    version: Literal[1, 2]
    sha256: str
    card: ScorecardDocument


def json_schema() -> dict[str, Any]:
    """JSON Schema of both files. Loading checks more, such as that every child exists."""
    schema = msgspec.json.schema(TreeFile | ScorecardFile)
    for part in schema["$defs"].values():  # Python 3.13 takes the indentation off docstrings
        part["description"] = inspect.cleandoc(part["description"])
    return schema


# ---- trees ----
def tree_to_dict(tree: Tree) -> dict[str, Any]:
    """The tree as plain values that JSON can hold."""
    names = ("left", "feature", "threshold", "missing_left", "right", "weight", "value", "subset")
    rows = zip(*(getattr(tree, name).tolist() for name in names), strict=True)
    document = TreeDocument(
        note=tree.note or UNSET,
        classes=_plain_labels(tree.classes),
        single_precision=bool(tree.single_precision),
        features=[_column_document(column) for column in tree.space],
        bins=_bins_document(tree.bins),
        nodes=[],
    )
    nodes = [_plain_node(tree.space, *row) for row in rows]
    return msgspec.to_builtins(document) | {"nodes": nodes}


def _plain_node(space: FeatureSpace, left: int, *row: Any) -> dict[str, Any]:
    """What `NodeDocument` would be written as, in less time."""
    feature, threshold, missing_left, right, weight, value, subset = row
    if left == LEAF:
        return {"weight": weight, "value": value}
    column = space[feature]
    split: dict[str, Any] = {"feature": column.name}
    if column.is_categorical:
        split["in"] = list(compress(column.categories, subset))
    else:
        split["at_most"] = str(threshold) if math.isinf(threshold) else threshold
    missing = "left" if missing_left else "right"
    children = {"missing": missing, "left": left, "right": right}
    return {**split, **children, "weight": weight, "value": value}


def tree_from_dict(content: Mapping[str, Any]) -> Tree:
    """The tree that `tree_to_dict` described; a ValueError says what is wrong with it."""
    document = convert(content, TreeDocument)
    labels, nodes = document.classes, document.nodes
    space = _space(document.features)
    width = max(len(column.categories) for column in space)
    if len(nodes) * (width + len(labels)) > MAX_VALUES:
        raise ValueError(f"{len(nodes):,} nodes are more than a tree file may hold")
    arrays: dict[str, NDArray[Any]] = {
        "threshold": np.full(len(nodes), np.nan),
        "value": np.zeros((len(nodes), len(labels))),
        "weight": np.array([node.weight for node in nodes]),
        "missing_left": np.zeros(len(nodes), bool),
        "subset": np.zeros((len(nodes), width), bool),
    }
    arrays |= {name: np.full(len(nodes), LEAF) for name in ("feature", "left", "right")}
    index_of = {name: j for j, name in enumerate(space.names)}
    for row, node in enumerate(nodes):
        try:
            _fill_node(arrays, row, node, space, index_of)
        except ValueError as error:
            raise ValueError(f"nodes[{row}]: {error}") from None
    note = "" if document.note is UNSET else document.note
    bins = None if document.bins is UNSET else _bins(document.bins, space)
    known, single = _label_array(labels), document.single_precision
    return Tree(space, known, single_precision=single, note=note, bins=bins, **arrays)


def _bins_document(bins: Bins | None) -> BinsDocument | UnsetType:
    if bins is None:
        return UNSET
    order = {name: list(categories) for name, categories in bins.order.items()}
    return BinsDocument(bins.seed, bins.plain_thresholds(), order)


def _bins(document: BinsDocument, space: FeatureSpace) -> Bins:
    for name, listed in document.order.items():
        index = _index("column", name, {one: j for j, one in enumerate(space.names)})
        if sorted(listed) != sorted(space[index].categories):
            raise ValueError(f"bins: the order of {name!r} must hold each of its categories once")
    order = {name: tuple(listed) for name, listed in document.order.items()}
    return Bins.read(space, document.thresholds, order, document.seed)


def _fill_node(
    arrays: dict[str, NDArray[Any]],
    row: int,
    node: NodeDocument,
    space: FeatureSpace,
    index_of: dict[str, int],
) -> None:
    if len(node.value) != arrays["value"].shape[1]:
        raise ValueError("value must hold one number for each class")
    arrays["value"][row] = node.value
    given = {name for name in SPLIT_FIELDS if getattr(node, name) is not UNSET}
    if not given:
        return
    if "feature" not in given:
        raise ValueError("a leaf has weight and value alone")
    feature = _index("feature", node.feature, index_of)
    column = space[feature]
    wanted = "in" if column.is_categorical else "at_most"
    if given != {"feature", "missing", "left", "right", wanted.replace("in", "in_")}:
        raise ValueError(f"a split on {column.name!r} has feature, {wanted}, missing, left, right")
    arrays["feature"][row] = feature
    arrays["missing_left"][row] = node.missing == "left"
    for side in ("left", "right"):
        child = getattr(node, side)
        if not 0 < child < len(arrays[side]):
            raise ValueError(f"{side} must be the number of another node")
        arrays[side][row] = child
    if column.is_categorical:
        arrays["subset"][row, _category_indices(column, node.in_)] = True
    else:
        arrays["threshold"][row] = node.at_most  # numpy reads "inf" as what it means


# ---- scorecards ----
def scorecard_to_dict(scorecard: Scorecard) -> dict[str, Any]:
    """The scorecard as plain values that JSON can hold."""
    risks: Any = UNSET
    if scorecard.risk_table is not None:
        rows = scorecard.risk_table.rows
        risks = [RiskDocument(row.label, row.total, row.n_rows, row.n_label) for row in rows]
    pairs = zip(scorecard.conditions, scorecard.points.tolist(), strict=True)
    document = ScorecardDocument(
        classes=_plain_labels(scorecard.classes),
        features=[_column_document(column) for column in scorecard.space],
        conditions=[_condition_document(scorecard.space, *pair) for pair in pairs],
        offset=scorecard.offset.tolist(),
        slope=float(scorecard.slope) if scorecard.gives_risks else None,
        intercept=float(scorecard.intercept) if scorecard.gives_risks else None,
        risks=risks,
        decision=UNSET if scorecard.decision is None else scorecard.decision,
        title=scorecard.title or UNSET,
        units=dict(scorecard.units) or UNSET,
        groups=[RiskGroupDocument(g.name, g.least) for g in scorecard.risk_groups] or UNSET,
        profile=[counts.tolist() for counts in scorecard.profile] or UNSET,
        provenance=dict(scorecard.provenance) or UNSET,
    )
    return msgspec.to_builtins(document)


def scorecard_from_dict(content: Mapping[str, Any]) -> Scorecard:
    """The scorecard that `scorecard_to_dict` described; a ValueError says what is wrong with it."""
    document = convert(content, ScorecardDocument)
    space, points = _space(document.features), [each.points for each in document.conditions]
    conditions = []
    for index, each in enumerate(document.conditions):
        try:
            conditions.append(_condition(each, space))
        except ValueError as error:
            raise ValueError(f"conditions[{index}]: {error}") from None
    if any(len(each) != len(document.offset) for each in points):
        raise ValueError("points must hold as many numbers as offset")
    classes = _label_array(document.classes)
    slope, intercept = (math.nan if x is None else x for x in (document.slope, document.intercept))
    given = (space, classes, conditions, np.array(points), document.offset)
    names = ("decision", "title", "units", "profile", "provenance")
    more = {n: getattr(document, n) for n in names if getattr(document, n) is not UNSET}
    if document.groups is not UNSET:
        more["risk_groups"] = [RiskGroup(each.name, each.least) for each in document.groups]
    scorecard = Scorecard(*given, slope, intercept, **more)
    if document.risks is UNSET:
        return scorecard
    rows = tuple(_risk_row(scorecard, each) for each in document.risks)
    return replace(scorecard, risk_table=RiskTable(rows))


def _condition_document(space: FeatureSpace, condition: Condition, points: list[int]) -> Any:
    column, value = space[condition.feature], dict[str, Any]()
    if condition.sort == "among":
        value = {"in_": [str(column.categories[index]) for index in condition.categories]}
    elif condition.sort in ("at_least", "below"):
        value = {condition.sort: condition.threshold}
    return ConditionDocument(feature=str(column.name), sort=condition.sort, points=points, **value)


def _condition(document: ConditionDocument, space: FeatureSpace) -> Condition:
    values = {"at_least": document.at_least, "below": document.below, "among": document.in_}
    given = [sort for sort, value in values.items() if value is not UNSET]
    if given != [document.sort] * (document.sort in values):
        raise ValueError(f"a condition of sort {document.sort!r} has the value of its sort alone")
    feature = _index("feature", document.feature, {n: j for j, n in enumerate(space.names)})
    if document.sort == "among":
        categories = _category_indices(space[feature], document.in_)
        return Condition(feature, "among", categories=tuple(categories))
    threshold: Any = values.get(document.sort, np.nan)
    return Condition(feature, document.sort, threshold)


def _risk_row(scorecard: Scorecard, document: RiskDocument) -> RiskRow:
    known = scorecard.classes.tolist()
    own = known[1:] if scorecard.is_binary else known
    if document.label not in own:
        raise ValueError(f"label of a row of risks must be one of {own}")
    if not 0 <= document.n_label <= document.n_rows < np.inf or document.n_rows == 0:
        raise ValueError("n_rows must be above 0 and n_label from 0 to n_rows")
    label = own[own.index(document.label)]
    return RiskRow.of(scorecard, label, document.total, document.n_rows, document.n_label)


# ---- labels, columns, categories ----
def _plain_labels(classes: NDArray[Any]) -> list[Any]:
    if classes.dtype.kind not in "biufUO":
        raise ValueError(f"class labels of type {classes.dtype} cannot be saved: use text.")
    labels = [each.item() if isinstance(each, np.generic) else each for each in classes.tolist()]
    for label in labels:
        finite = type(label) is not float or math.isfinite(label)
        if type(label) not in (bool, int, float, str) or not finite:
            raise ValueError(
                f"class label {str(label)[:40]!r} is of type {type(label).__name__}: "
                "labels must be text, integers, finite numbers or booleans"
            )
    return labels


def _label_array(labels: list[Any]) -> NDArray[Any]:
    # numpy would turn numbers beside text into text
    return np.array(labels, object if len({type(label) for label in labels}) > 1 else None)


def _column_document(column: Column) -> ColumnDocument:
    if not all(isinstance(text, str) for text in (column.name, *column.categories)):
        raise ValueError(f"the name and categories of column {column.name!r} must be text")
    described: dict[str, Any] = {"low": float(column.low), "high": float(column.high)}
    if column.is_categorical:
        described = {"categories": [str(category) for category in column.categories]}
        described |= {"ordered": True} if column.ordered else {}
    name, missing = str(column.name), bool(column.missing)
    return ColumnDocument(name=name, kind=column.kind, missing=missing, **described)


def _space(features: list[ColumnDocument]) -> FeatureSpace:
    columns = []
    for index, each in enumerate(features):
        unset = {name for name in ("categories", "low", "high") if getattr(each, name) is UNSET}
        categorical = each.kind == "categorical"
        if unset != ({"low", "high"} if categorical else {"categories"}):
            wanted = "categories" if categorical else "low and high"
            raise ValueError(f"features[{index}]: a {each.kind} feature has {wanted}, and no more")
        values: dict[str, Any] = {"low": each.low, "high": each.high}
        if categorical:
            values = {"categories": tuple(each.categories)}  # type: ignore[arg-type]
        values |= {"missing": each.missing, "ordered": each.ordered is True}
        columns.append(Column(each.name, each.kind, **values))
    return FeatureSpace(tuple(columns))


def _category_indices(column: Column, names: Any) -> list[int]:
    return [_index("in", name, column.index_of) for name in names]


def _index(what: str, name: Any, index_of: dict[str, int]) -> int:
    if name not in index_of:
        raise ValueError(f"{what} does not know {str(name)[:40]!r}")
    return index_of[name]
