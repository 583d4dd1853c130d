"""BoxProblem: rows that may each be anywhere in a box, as ranks among thresholds."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import maximum_flow

from steadytree.data.binning import between
from steadytree.data.feature_space import FeatureSpace
from steadytree.models.tree import Tree
from steadytree.robustness._kernels.box_bounds import conflicting_pairs
from steadytree.robustness._kernels.box_splits import BoxTable
from steadytree.robustness._kernels.boxes import COLUMN, LABEL
from steadytree.robustness.perturbation import Moves
from steadytree.robustness.search.problem import (
    Encoding,
    Floats,
    Split,
    check_start,
    list_splits,
    merge_rows,
    split_of_node,
)

Nodes = NDArray[np.int64]  # a tree as `_kernels.boxes` stores it
MOST_CONFLICTS = 200_000  # pairs that the bound of any tree is made from
FEWEST_CONFLICTS = 4  # of a row, with those after it
CONFLICT_WORK = 100_000_000  # comparisons
FLOW_UNITS = 1_000_000  # weights that are no whole numbers are counted in such parts of the total


class BoxColumn(NamedTuple):
    """Candidate splits that follow one another: the thresholds of a column, or one category."""

    column: int
    thresholds: Floats  # rising; the last is infinite where it separates missing values
    category: int  # -1 for thresholds
    missing_left: bool


def empty_tree(depth: int, label: int = 0) -> Nodes:
    """A leaf, with room for so many levels."""
    nodes = np.zeros((2 ** (depth + 1), 3), np.int64)
    nodes[:, COLUMN] = -1
    nodes[1, LABEL] = label
    return nodes


def rows_of(table: BoxTable, rows: NDArray[np.int64], weight: Floats) -> BoxTable:
    """The table of some rows alone, with other weights (n,)."""
    return table._replace(
        left_from=np.ascontiguousarray(table.left_from[:, rows]),
        right_below=np.ascontiguousarray(table.right_below[:, rows]),
        label=table.label[rows],
        weight=weight[rows],
    )


def moves_in_boxes(moves: Moves, shared: bool) -> bool:
    """Whether the points that a row can move to are a box, whatever other rows do."""
    still = np.isinf([moves.up, moves.down, moves.missing]).all()
    return not shared and (moves.largest or bool(still))


def reach(moves: Moves, j: int, x: Floats, limit: float) -> tuple[Floats, Floats]:
    """Least and greatest value that numbers of a column can move to, up to rounding."""
    with np.errstate(divide="ignore"):
        down, up = limit / np.float64(moves.down[j]), limit / np.float64(moves.up[j])
    low = np.minimum(x, np.maximum(x - down, moves.low[j]))
    high = np.maximum(x, np.minimum(x + up, moves.high[j]))
    if moves.integer[j]:
        low, high = np.minimum(x, np.ceil(low)), np.maximum(x, np.floor(high))
    return low, high


def box_thresholds(low: Floats, high: Floats, integer: bool) -> Floats:
    """The thresholds of a column that no other dominates: between a box's end and a later start.

    Raising a threshold to the next end makes more rows surely left; up to the next start none is
    less surely right. So one best threshold lies between an end and the start that follows it.
    """
    known = ~np.isnan(low)
    ends = np.unique(high[known])
    starts = np.unique(low[known])
    if len(starts) == 0:
        return np.empty(0)
    above = np.searchsorted(starts, ends, side="right")
    ends, above = ends[above < len(starts)], above[above < len(starts)]
    last = np.append(above[1:] != above[:-1], True)[: len(above)]  # of ends before one start
    below, start = ends[last], starts[above[last]]
    middle = between(below, start)
    return np.unique(np.maximum(below, np.floor(middle)) if integer else middle)


@dataclass(frozen=True, eq=False)
class BoxProblem:
    """Find the tree that keeps most weight: rows that reach leaves of their label only."""

    space: FeatureSpace  # with candidate thresholds
    columns: tuple[BoxColumn, ...]  # in the order of the table
    table: BoxTable
    rows: Floats  # (n, p): encoded values
    moves: Moves
    limit: float  # what each row may spend

    @classmethod
    def of(
        cls,
        space: FeatureSpace,
        moves: Moves,
        training: tuple[Floats, NDArray[np.int64], Floats],
        limit: float,
        penalty: float,
    ) -> "BoxProblem":
        """Rank the boxes of training rows (values, labels, weights), which may move by `limit`."""
        rows, labels, weights = merge_rows(*training)
        columns = [one for j in range(len(space)) for one in _box_columns(space, j)]
        left, right = np.empty((2, len(columns), len(rows)), np.int32)
        for k, one in enumerate(columns):
            left[k], right[k] = _ranks(one, moves, rows[:, one.column], limit)
        table = BoxTable(
            left_from=left,
            right_below=right,
            n_thresholds=np.array([len(one.thresholds) for one in columns], np.int64),
            label=labels,
            weight=weights,
            n_classes=int(training[1].max(initial=0)) + 1,
            penalty=float(penalty),
        )
        return cls(space, tuple(columns), table, rows, moves, limit)

    def part(self, rows: NDArray[np.int64], penalty: float) -> "BoxProblem":
        """The same splits for some rows alone, with another penalty."""
        table = rows_of(self.table, rows, self.table.weight)._replace(penalty=float(penalty))
        return replace(self, table=table, rows=self.rows[rows])

    def ends_of(self, column: int) -> tuple[Floats, Floats]:
        """Least and greatest number that each row can move to; nan where it has none."""
        j = self.columns[column].column
        return reach(self.moves, j, self.rows[:, j], self.limit)

    @property
    def total(self) -> float:
        return float(self.table.weight.sum())

    @property
    def n_splits(self) -> int:
        return int(self.table.n_thresholds.sum())

    @property
    def unit(self) -> float:
        """What all values are multiples of; 0 where there is no such number."""
        weight = self.table.weight
        return 0.0 if self.table.penalty or (weight != np.floor(weight)).any() else 1.0

    def most_kept(self) -> float:
        """No tree keeps more weight, of any depth: of two rows that no split separates, one.

        The least weight that meets every such pair of rows with different labels; with more than
        two classes, half of the least over both ways to see each pair, which is no more.
        """
        weight, room = self.table.weight, np.empty((MOST_CONFLICTS, 2), np.int64)
        order = np.argsort(self.table.right_below[self._sweep], kind="stable")
        most = max(FEWEST_CONFLICTS, MOST_CONFLICTS // len(weight))
        count = conflicting_pairs(self.table, self._sweep, order, most, CONFLICT_WORK, room)
        pairs = room[:count]
        if count == 0 or len(weight) == 0:
            return self.total
        n, label = len(weight), self.table.label
        two = self.table.n_classes == 2
        ends = np.where(label[pairs[:, :1]] == 0, pairs, pairs[:, ::-1]) if two else pairs
        ends = ends if two else np.concatenate([pairs, pairs[:, ::-1]])
        # rounded down, so that the bound errs on the safe side
        scale = 1.0 if self.unit else FLOW_UNITS / self.total
        whole = np.floor(weight * scale + 1e-9).astype(np.int64)
        source, sink, big = 2 * n, 2 * n + 1, int(whole.sum()) + 1
        at = np.arange(n)
        start = np.concatenate([np.full(n, source), ends[:, 0], n + at])
        end = np.concatenate([at, n + ends[:, 1], np.full(n, sink)])
        capacity = np.concatenate([whole, np.full(len(ends), big), whole]).astype(np.int32)
        graph = sparse.csr_matrix((capacity, (start, end)), shape=(2 * n + 2, 2 * n + 2))
        flow = maximum_flow(graph, source, sink).flow_value
        return self.total - flow / scale / (1 if two else 2)

    @property
    def _sweep(self) -> int:
        """The column in which the boxes overlap least."""
        table = self.table
        width = (table.left_from - table.right_below).mean(axis=1, dtype=np.float64)
        return int(np.argmin(width / np.maximum(table.n_thresholds, 0.5)))

    def split_at(self, column: int, index: int) -> Split:
        """A split by its column and threshold index in the table."""
        one = self.columns[column]
        return Split(one.column, float(one.thresholds[index]), one.category, one.missing_left)

    def nodes_of(self, tree: Tree, classes: NDArray[Any], depth: int) -> Nodes:
        """A given tree, at the candidate thresholds that dominate its own."""
        check_start(tree, self.space, depth)
        nodes = empty_tree(depth)
        known = {label: index for index, label in enumerate(classes.tolist())}
        labels = tree.classes.tolist()

        def fill(node: int, v: int) -> None:
            if tree.is_leaf[node]:
                nodes[v, LABEL] = known.get(labels[tree.label[node]], 0)
                return
            nodes[v, :2] = self._nearest(split_of_node(tree, node, self.space))
            fill(int(tree.left[node]), 2 * v)
            fill(int(tree.right[node]), 2 * v + 1)

        fill(0, 1)
        return nodes

    def _nearest(self, split: Split) -> tuple[int, int]:
        """Column and index of the candidate split that keeps at least what the given one does."""
        same = [k for k, one in enumerate(self.columns) if one[::2] == split[::2]]
        same.sort(key=lambda k: self.columns[k].missing_left != split.missing_left)
        for k in same:
            thresholds = self.columns[k].thresholds
            if len(thresholds) == 0:
                continue
            at = int(np.searchsorted(thresholds, split.threshold))
            near = [i for i in (at - 1, at) if 0 <= i < len(thresholds)]
            left, right = self.table.left_from[k], self.table.right_below[k]
            sure = [((left <= i) | (i < right)) @ self.table.weight for i in near]
            return k, near[int(np.argmax(sure))]
        raise ValueError(
            f"warm_start splits on {self.space[split.column].name!r} in a way that is not among "
            "the candidate splits: pass its thresholds in cuts, or leave it out."
        )

    def encode(self, nodes: Nodes) -> tuple[FeatureSpace, tuple[Split, ...], Encoding]:
        """A tree as an encoding, over the space with the thresholds that it uses alone."""
        m = len(nodes) // 2
        used: dict[int, set[float]] = {}
        for v in range(1, m):
            if nodes[v, COLUMN] >= 0:
                split = self.split_at(*nodes[v, :2].tolist())
                used.setdefault(split.column, set()).add(split.threshold)
        space = FeatureSpace(
            tuple(
                c
                if c.is_categorical
                else c.with_thresholds(np.sort([t for t in used.get(j, ()) if np.isfinite(t)]))
                for j, c in enumerate(self.space)
            )
        )
        splits = list_splits(space)
        indices = {split: index for index, split in enumerate(splits)}

        def fill(v: int, height: int) -> list[int]:
            if v >= m or nodes[v, COLUMN] < 0:
                return [-1 - int(nodes[v, LABEL])] + [0] * (2 ** (height + 1) - 2)
            own = indices[self.split_at(*nodes[v, :2].tolist())]
            return [own, *fill(2 * v, height - 1), *fill(2 * v + 1, height - 1)]

        return space, splits, np.array(fill(1, int(np.log2(m))), np.int32)


def _box_columns(space: FeatureSpace, j: int) -> list[BoxColumn]:
    """Candidate splits of a column, those with missing values on the left apart."""
    column, ways = space[j], (False, True) if space[j].missing else (False,)
    if column.is_categorical:
        one = np.array([-np.inf])
        found = [BoxColumn(j, one, k, way) for way in ways for k in range(len(column.categories))]
        return found
    thresholds = np.asarray(column.thresholds, np.float64)
    asks = np.append(thresholds, np.inf) if column.missing else thresholds
    return [BoxColumn(j, thresholds if way else asks, -1, way) for way in ways]


def _ranks(
    one: BoxColumn, moves: Moves, x: Floats, limit: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """From which threshold each row is surely left, and below which surely right."""
    j, size, missing = one.column, len(one.thresholds), np.isnan(x)
    if one.category >= 0:
        moved = moves.up[j] <= limit
        left = np.where((x == one.category) & ~moved, 0, 1)
        right = np.where((x != one.category) & ~moved, 1, 0)
    else:
        x = np.where(missing, 0.0, x)
        low, high = reach(moves, j, x, limit)
        left = np.searchsorted(one.thresholds, high)
        right = np.searchsorted(one.thresholds, low)
        left = _settled(left, size, lambda at: _stays(one, moves, x, limit, at, left=True))
        right = _settled(right, size, lambda at: ~_stays(one, moves, x, limit, at, left=False))
    appears = moves.missing[j] <= limit
    left = np.where(missing, size if appears or not one.missing_left else 0, left)
    right = np.where(missing, 0 if appears or one.missing_left else size, right)
    return left, right


def _stays(
    one: BoxColumn, moves: Moves, x: Floats, limit: float, at: NDArray[np.int64], left: bool
) -> NDArray[np.bool_]:
    """Whether numbers are on one side of their threshold and cannot cross it, as in certify."""
    j, t = one.column, one.thresholds[at]
    ends = np.full(len(x), -np.inf)
    least, greatest = moves.ends(j, t, -ends) if left else moves.ends(j, ends, t)
    with np.errstate(invalid="ignore"):
        cost = (least - x) * moves.up[j] if left else (x - greatest) * moves.down[j]
    # past infinity there are missing values only, which no number becomes
    out_of_reach = (least > greatest) | (cost > limit) | np.isposinf(t)
    inside: NDArray[np.bool_] = (x <= t) if left else (x > t)
    return inside & out_of_reach


def _settled(first: NDArray[np.int64], size: int, holds: Any) -> NDArray[np.int64]:
    """The least index from which a condition holds, found from a first guess nearby."""
    rank = np.asarray(first, np.int64).copy()
    if size == 0:
        return rank
    while True:
        lower = (rank > 0) & holds(np.maximum(rank - 1, 0))
        higher = (rank < size) & ~holds(np.minimum(rank, size - 1))
        if not (lower | higher).any():
            return rank
        rank += np.where(lower, -1, np.where(higher, 1, 0))
