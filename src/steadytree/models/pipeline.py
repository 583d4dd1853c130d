"""Pipelines as trees: the tree behind preprocessing, mapped back to the raw columns.

Where a split separates the values of a raw column is asked of the fitted steps themselves, so every
rounding that they do counts.
"""

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadytree._base.optional import to_frame
from steadytree.data.column import Column
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.table import Table, quote, value_text
from steadytree.models.tree import LEAF, Tree

if TYPE_CHECKING:  # loaded where there is a pipeline: it needs every preprocessing step
    from steadytree.models.preprocessing import Preprocessing

UNSEEN_TEXT = "\N{REPLACEMENT CHARACTER}"  # which no encoder has learned
PARTS = 64
GREATEST = 1e100  # of the raw values that are asked about: no step overflows


class Probe(NamedTuple):
    """The steps before the tree, and a valid row of raw values to send through them."""

    before: "Preprocessing"
    row: list[Any]

    def run(self, raw: NDArray[np.int64], values: Sequence[Any]) -> NDArray[np.float64]:
        """What the tree sees of rows that differ from the valid one in one raw column each."""
        columns = []
        for j, usual in enumerate(self.row):
            column: NDArray[Any] = np.full(len(values), usual, dtype=object)
            own = np.flatnonzero(raw == j)
            column[own] = [values[k] for k in own.tolist()]
            # an encoder that learned bools beside missing values takes objects alone
            as_given = isinstance(usual, str | bool)
            columns.append(column if as_given else column.astype(np.float64))
        rows = as_rows(self.before.names, columns)
        for step in self.before.steps:
            rows = rows if step in (None, "passthrough") else step.transform(rows)
        return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=np.float64)


class Side(NamedTuple):
    """Which values of a raw column go left at a node; `to` is the only child where all do."""

    threshold: float = np.nan
    known: tuple[bool, ...] = ()  # of each category
    missing: bool = False
    swapped: bool = False
    to: int | None = None


def pipeline_tree(pipeline: Any, tree: Tree, X: Any = None) -> Tree:
    """The tree at the end of a fitted pipeline, over the columns that the pipeline is given.

    Predictions are those of the pipeline on float64 columns, bit for bit. A tree sends categories
    that it does not know where missing values go; where the pipeline does not, a note names them.
    """
    splits = raw_splits(pipeline, tree, X)
    return _assemble(tree, splits.sides, splits.position, splits.space, splits.note)


class RawSplits(NamedTuple):
    """The splits of a tree at the end of a pipeline over the columns that the pipeline is given."""

    sides: dict[int, Side]  # of each inner node
    position: list[int]  # in the space, of each column that the tree sees
    space: FeatureSpace
    note: str
    categories: dict[int, list[Any]]  # by position, as the pipeline is given them


def raw_splits(pipeline: Any, tree: Tree, X: Any = None) -> RawSplits:
    """Which values of raw columns go left at each split; a step that mixes columns is refused."""
    from steadytree.models.preprocessing import follow, not_a_tree

    before = follow(pipeline)
    if len(before.traces) != len(tree.space) or tree.space.categorical.any():
        raise not_a_tree("it has other columns than the steps before it put out")
    categories = before.categories
    probe = Probe(before, [categories.get(j, [0.0])[0] for j in range(before.n_raw)])
    with warnings.catch_warnings(), np.errstate(over="ignore", invalid="ignore"):
        warnings.simplefilter("ignore")  # of unknown categories, which are asked about on purpose
        sides, missing, apart = _sides(tree, probe)
    raw_of = np.array([trace.raw for trace in before.traces])
    used = sorted(set(raw_of.tolist())) if before.names else list(range(before.n_raw))
    shown = before.names or tuple(f"x{j}" for j in range(before.n_raw))
    table = None if X is None else Table.read(X)
    if table is not None and before.names is None:
        table.select(shown)  # refuses another number of columns
        shown = table.names or shown
    columns = _columns(shown, used, categories, missing, (tree, sides, raw_of), table)
    note = tree.note
    if apart:
        listed = quote(shown[j] for j in apart)
        note = f"{note} Unseen categories of {listed} go with missing values here.".strip()
    position = {j: k for k, j in enumerate(used)}
    known = {position[j]: values for j, values in categories.items() if j in position}
    return RawSplits(sides, [position[j] for j in raw_of], columns, note, known)


def as_rows(names: Sequence[str] | None, columns: Sequence[NDArray[Any]]) -> Any:
    """Columns as scikit-learn takes them: a frame where they have names, else one array."""
    return to_frame(dict(zip(names, columns, strict=True))) if names else np.stack(columns, axis=1)


# ---- which values go left ----
def _sides(tree: Tree, probe: Probe) -> tuple[dict[int, Side], dict[int, bool], list[int]]:
    """Each inner node's side; whether raw columns may be missing; columns with a note."""
    traces, categories = probe.before.traces, probe.before.categories
    inner = np.flatnonzero(~tree.is_leaf)
    raw = np.array([traces[k].raw for k in tree.feature[inner]], dtype=np.int64)
    by_number = inner[~np.isin(raw, list(categories))]
    last = _last_left(tree, by_number, probe)
    found, may_miss, apart = {}, {}, []
    for j in sorted(set(raw.tolist())):
        nodes = inner[raw == j]
        if j not in categories:
            blank = _left_at(tree, nodes, probe, j, [np.nan])
            may_miss[j] = blank is not None
            default = _larger_left(tree, nodes)
            missing = default if blank is None else blank[0]
            for node, left in zip(nodes.tolist(), missing.tolist(), strict=True):
                found[node] = _number_side(last[node], left, may_miss[j])
            continue
        known = _left_at(tree, nodes, probe, j, categories[j])
        if known is None:
            from steadytree.models.preprocessing import not_a_tree

            raise not_a_tree(f"the steps before it refuse the categories of column {j}")
        text = isinstance(categories[j][0], str)
        unseen = _left_at(tree, nodes, probe, j, [UNSEEN_TEXT if text else _unseen(categories[j])])
        blank = _left_at(tree, nodes, probe, j, [None if j in probe.before.nones else np.nan])
        if blank is not None and unseen is not None and (blank != unseen).any():
            apart.append(j)
        may_miss[j] = blank is not None
        missing = next((one[0] for one in (blank, unseen) if one is not None), None)
        missing = _larger_left(tree, nodes) if missing is None else missing
        open_to = may_miss[j] or unseen is not None
        for at, node in enumerate(nodes.tolist()):
            found[node] = _category_side(known[:, at], bool(missing[at]), open_to)
    return found, may_miss, apart


def _last_left(tree: Tree, nodes: NDArray[np.int64], probe: Probe) -> dict[int, float]:
    """The greatest float64 of the raw column that goes left at each node; -inf where none does.

    Each call of the steps narrows every node's interval of floats down to a 64th.
    """

    def n_left(points: NDArray[Any]) -> NDArray[np.int64]:
        """How many of the rising points of each node, (n_nodes, n_points), go left."""
        of_point = np.repeat(nodes, points.shape[1])
        feature = tree.feature[of_point]
        raw = np.array([probe.before.traces[k].raw for k in feature], dtype=np.int64)
        seen = probe.run(raw, _as_float(points.ravel()).tolist())
        left = _goes_left(tree, of_point, seen[np.arange(len(raw)), feature])
        return left.reshape(points.shape).sum(axis=1)

    if len(nodes) == 0:
        return {}
    ends = np.tile(_as_integer(np.array([-GREATEST, GREATEST])), (len(nodes), 1))
    outer = n_left(ends)  # 1 where the last one to go left lies between
    low, high = ends.T
    own = np.arange(len(nodes))
    while (high - low > 1).any():
        steps = np.arange(PARTS + 1).astype(object)
        points = low[:, None] + (high - low)[:, None] * steps // PARTS
        last = np.minimum(n_left(points) - 1, PARTS - 1)
        low, high = points[own, np.maximum(last, 0)], points[own, np.maximum(last, 0) + 1]
    found = np.where(outer == 0, -np.inf, np.where(outer == 2, np.inf, _as_float(low)))
    return dict(zip(nodes.tolist(), found.tolist(), strict=True))


def _as_integer(values: NDArray[np.float64]) -> NDArray[Any]:
    """Integers, as Python has them, in the order of the floats."""
    bits = values.view(np.int64)
    return np.where(bits < 0, np.iinfo(np.int64).min - bits, bits).astype(object)


def _as_float(integers: NDArray[Any]) -> NDArray[np.float64]:
    bits = np.where(integers < 0, np.iinfo(np.int64).min - integers, integers)
    return bits.astype(np.int64).view(np.float64)


def _left_at(
    tree: Tree, nodes: NDArray[np.int64], probe: Probe, raw: int, values: list[Any]
) -> NDArray[np.bool_] | None:
    """Whether each value (down) goes left at each node (across); None where a step refuses it."""
    try:
        seen = probe.run(np.full(len(values), raw), values)
    except ValueError:
        return None
    return _goes_left(tree, nodes, seen[:, tree.feature[nodes]])


def _goes_left(
    tree: Tree, nodes: NDArray[np.int64], seen: NDArray[np.float64]
) -> NDArray[np.bool_]:
    compared = seen.astype(np.float32).astype(np.float64) if tree.single_precision else seen
    return np.where(np.isnan(seen), tree.missing_left[nodes], compared <= tree.threshold[nodes])


def _larger_left(tree: Tree, nodes: NDArray[np.int64]) -> NDArray[np.bool_]:
    return tree.weight[tree.left[nodes]] >= tree.weight[tree.right[nodes]]


def _unseen(categories: list[Any]) -> float:
    return float(max(categories)) + 1.5


def _number_side(last: float, missing: bool, may_miss: bool) -> Side:
    if last == -np.inf:
        return Side(np.inf, swapped=True) if missing and may_miss else Side(to=1)
    if last == np.inf and (missing or not may_miss):
        return Side(to=0)
    return Side(last, missing=missing)


def _category_side(known: NDArray[np.bool_], missing: bool, open_to: bool) -> Side:
    """A side with a category on the left, or the only child."""
    if known.all() and (missing or not open_to):
        return Side(to=0)
    if known.any():
        return Side(known=tuple(known.tolist()), missing=missing)
    if missing and open_to:
        return Side(known=(True,) * len(known), swapped=True)
    return Side(to=1)


# ---- the tree over raw columns ----
def _columns(
    names: tuple[str, ...],
    used: list[int],
    categories: dict[int, list[Any]],
    missing: dict[int, bool],
    splits: tuple[Tree, dict[int, Side], NDArray[np.int64]],
    table: Table | None,
) -> FeatureSpace:
    """Raw columns; numbers reach as far as the rows and the thresholds do."""
    tree, sides, raw_of = splits
    found: dict[int, list[float]] = {j: [] for j in used}
    for node, side in sides.items():
        found[int(raw_of[tree.feature[node]])].append(side.threshold)
    listed = [names[j] for j in used]
    numeric = [names[j] for j in used if j not in categories]
    observed = {}
    if table is not None and numeric:
        rows = table if table.names is None else table.select(numeric)
        seen = FeatureSpace.observe(rows)
        observed = dict(zip(listed if table.names is None else numeric, seen, strict=True))
    columns = []
    for j, name in zip(used, listed, strict=True):
        if j in categories:
            texts = tuple(_category_text(value) for value in categories[j])
            flag = missing.get(j, True)
            columns.append(Column(name, "categorical", categories=texts, missing=flag))
            continue
        thresholds = np.array(found[j])
        if name in observed:
            columns.append(widen(observed[name], name, thresholds))
            continue
        finite = thresholds[np.isfinite(thresholds)]
        low, high = (finite.min(), finite.max()) if len(finite) else (0.0, 1.0)
        flag = missing.get(j, True)
        columns.append(Column(name, "numeric", float(low), float(high), missing=flag))
    return FeatureSpace(tuple(columns))


def _category_text(value: Any) -> str:
    """A category as a table has it, which reads bools as 0 and 1."""
    return value_text(float(value) if isinstance(value, bool) else value)


def widen(column: Column, name: str, thresholds: NDArray[np.float64]) -> Column:
    """The named column, reaching to every threshold; only one with missing values asks for them."""
    if column.is_categorical:
        return column
    finite = thresholds[np.isfinite(thresholds)]
    missing = column.missing or len(finite) < len(thresholds)
    low, high = min([column.low, *finite]), max([column.high, *finite])
    kind = column.kind if (low, high) == (column.low, column.high) else "numeric"
    return Column(name, kind, float(low), float(high), missing=missing)


def _assemble(
    tree: Tree, sides: dict[int, Side], position: list[int], space: FeatureSpace, note: str
) -> Tree:
    """The tree of the sides; nodes that all values leave the same way are left out."""

    def resolve(node: int) -> int:
        while node in sides and sides[node].to is not None:
            node = int((tree.left, tree.right)[sides[node].to][node])  # type: ignore[index]
        return node

    kept, stack, children = [], [resolve(0)], {}
    while stack:
        node = stack.pop()
        kept.append(node)
        if node in sides:
            pair = [resolve(int(tree.left[node])), resolve(int(tree.right[node]))]
            children[node] = pair[::-1] if sides[node].swapped else pair
            stack += children[node][::-1]
    index = {node: k for k, node in enumerate(kept)}
    width = max(len(column.categories) for column in space)
    n = len(kept)
    feature, threshold = np.full(n, LEAF), np.full(n, np.nan)
    left, right = np.full(n, LEAF), np.full(n, LEAF)
    missing, subset = np.zeros(n, bool), np.zeros((n, width), bool)
    for node, (one, other) in children.items():
        k, side = index[node], sides[node]
        left[k], right[k] = index[one], index[other]
        feature[k], threshold[k] = position[tree.feature[node]], side.threshold
        missing[k], subset[k, : len(side.known)] = side.missing, side.known
    arrays = (feature, threshold, left, right, tree.value[kept], tree.weight[kept])
    return Tree(space, tree.classes, *arrays, missing, subset, note=note)
