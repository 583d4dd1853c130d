"""What the search works on: distinct rows, priced candidate splits, and trees as encodings."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadytree._base.exceptions import UnsuitableDataError
from steadytree.data.column import Column
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.splits import SplitTable
from steadytree.models.builder import TreeBuilder
from steadytree.models.tree import LEAF, Tree
from steadytree.robustness._kernels.cost import PriceIntervals, RobustTable
from steadytree.robustness.perturbation import Moves

MOST_SPLITS = 400
MOST_LEVELS = 12

Floats = NDArray[np.float64]
Encoding = NDArray[np.int32]  # a tree in preorder at full size: a split, or -1 - label


class Split(NamedTuple):
    """A candidate split: values up to `threshold`, or the category `category`, go left."""

    # A threshold of infinity separates missing values from the others; that of a category is minus
    # infinity.

    column: int
    threshold: float
    category: int
    missing_left: bool


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a search found."""

    encoding: Encoding  # the best tree
    value: float  # its robust loss, with penalties
    bound: float  # no tree has a smaller value
    proven: bool
    reason: str  # "proven", "time limit", "node limit", "interrupted" or "too many candidates"
    # whether it is proven that no tree of the same value has fewer splits
    shortest: bool = False


@dataclass(frozen=True, eq=False)
class Problem:
    """Find the tree with the least robust loss: weight lost to the worst perturbation."""

    space: FeatureSpace
    table: RobustTable  # distinct rows with their weights, and their cost of each side
    splits: tuple[Split, ...]  # in the order of the table
    # (n_features, n): the bin each row is in, counted as in the table's bins
    bins: NDArray[np.int64]
    # (n_candidates, n_levels): some costs of crossing each split, the last being the largest
    levels: Floats
    limit: float  # what may be spent, by each row or (shared) by all together
    shared: bool
    integer: bool  # whether weights are numbers of rows; else parts of a row can be lost
    penalty: float  # charged for every split, in units of weight

    @classmethod
    def of(
        cls,
        space: FeatureSpace,
        moves: Moves,
        values: Floats,
        labels: NDArray[np.int64],
        weights: Floats | None,
        spending: tuple[float, bool, float],
    ) -> "Problem":
        """Price the splits of a space for every distinct row; spending: limit, shared, penalty."""
        limit, shared, penalty = spending
        splits = list_splits(space)
        if len(splits) > MOST_SPLITS:
            raise UnsuitableDataError(_too_many(space, splits))
        rows, row_labels, row_weights = merge_rows(values, labels, weights)
        n_splits, n = len(splits), len(rows)
        n_bins = 1 + max((_n_bins(column) for column in space), default=0)
        costs, on_left = np.empty((2, n_splits, n)), np.empty((n_splits, n), bool)
        sides = np.zeros((2, n_splits, n_bins), bool)
        for k, split in enumerate(splits):
            x = rows[:, split.column]
            on_left[k] = goes_left(split, x)
            costs[:, k], sides[:, k] = _price(space[split.column], split, moves, x, n_bins)
        crossing = np.where(on_left, costs[1], costs[0])
        levels = _cost_levels(crossing)
        indices = [np.searchsorted(own, cost) for own, cost in zip(levels, crossing, strict=True)]
        table = RobustTable(
            left_cost=costs[0],
            right_cost=costs[1],
            on_left=on_left,
            feature=np.array([split.column for split in splits], dtype=np.int64),
            left_bins=sides[0],
            right_bins=sides[1],
            missing=np.ascontiguousarray(np.isnan(rows).T),
            cost_level=np.array(indices, dtype=np.int64).reshape(crossing.shape),
            label=row_labels,
            weight=row_weights,
            n_classes=int(labels.max(initial=0)) + 1,
            largest=moves.largest,
        )
        both = zip(space, rows.T, strict=True)
        bins = np.array([_bins_of(column, x, n_bins) for column, x in both])
        integer = bool((row_weights == np.floor(row_weights)).all())
        return cls(space, table, splits, bins, levels, limit, shared, integer, penalty)

    @property
    def total(self) -> float:
        return float(self.table.weight.sum())

    @property
    def inseparable(self) -> float:
        """Weight that every tree loses: rows that no split separates have one label at the most."""
        table = self.table
        _, group = np.unique(self.bins, axis=1, return_inverse=True)
        counts = np.zeros((int(group.max(initial=0)) + 1, table.n_classes))
        np.add.at(counts, (group.ravel(), table.label), table.weight)
        return float((counts.sum(axis=1) - counts.max(axis=1)).sum())

    @property
    def spending(self) -> tuple[float, float, bool, bool]:
        return self.limit, self.penalty, self.shared, self.integer

    def intervals(self, lowest: float, highest: float, n_intervals: int) -> PriceIntervals:
        """Even intervals between two prices of the budget; one without prices if it is per row."""
        levels = self.levels
        if not self.shared:
            lost = (levels <= self.limit).astype(np.float64)[:, :, None]
            return PriceIntervals(np.zeros(1), np.zeros(1), lost, self.limit, False)
        prices = np.linspace(lowest, highest, n_intervals + 1)
        with np.errstate(invalid="ignore"):
            cross = np.nan_to_num(np.maximum(0.0, 1.0 - levels[:, :, None] * prices[1:]))
        # a row that costs more than the budget is not lost, unless it can be divided
        reach = self.limit if self.integer else np.inf
        return PriceIntervals(self.limit * prices[:-1], prices[1:], cross, reach, True)

    def encoding_of(self, tree: Tree, classes: NDArray[Any], depth: int) -> Encoding:
        """The encoding of a tree over the problem's splits; refuses a tree with others."""
        check_start(tree, self.space, depth)
        indices = {split: index for index, split in enumerate(self.splits)}
        known = {label: index for index, label in enumerate(classes.tolist())}
        labels = tree.classes.tolist()
        encoding = np.zeros(2 ** (depth + 1) - 1, np.int32)

        def fill(node: int, index: int, height: int) -> None:
            if tree.is_leaf[node]:
                encoding[index] = -1 - known.get(labels[tree.label[node]], 0)
                return
            encoding[index] = _split_index(tree, node, indices, self.space)
            fill(int(tree.left[node]), index + 1, height - 1)
            fill(int(tree.right[node]), index + 1 + 2**height - 1, height - 1)

        fill(0, 0, depth)
        return encoding


def tree_of(
    space: FeatureSpace,
    splits: Sequence[Split],
    encoding: Encoding,
    classes: NDArray[Any],
    training: tuple[Floats, Any, Floats],
) -> Tree:
    """The encoded tree, with the class shares of training rows (values, labels, weights)."""
    # A leaf whose label is not its most frequent class, which can be more robust, gets that
    # label with certainty, so that the tree predicts as encoded.
    values, labels, weights = training
    nodes: list[tuple[int, int, int, int]] = []  # split, left, right, label
    totals: list[NDArray[np.float64]] = []
    depth = int(np.log2(len(encoding) + 1)) - 1

    def grow(index: int, height: int, rows: NDArray[np.int64]) -> int:
        own, chosen = len(nodes), int(encoding[index])
        counts = np.bincount(labels[rows], weights[rows], len(classes))
        totals.append(counts.astype(np.float64))
        nodes.append((-1, LEAF, LEAF, -1 - chosen))
        if chosen >= 0:
            split = splits[chosen]
            on_left = goes_left(split, values[rows, split.column])
            left = grow(index + 1, height - 1, rows[on_left])
            right = grow(index + 1 + 2**height - 1, height - 1, rows[~on_left])
            nodes[own] = (chosen, left, right, -1)
        return own

    grow(0, depth, np.arange(len(values)))
    split, left, right, label = np.array(nodes).T.copy()
    builder = TreeBuilder(SplitTable.of(space), classes)
    return builder.build(split, left, right, np.array(totals), label=label)


def list_splits(space: FeatureSpace) -> tuple[Split, ...]:
    """The candidate splits of a space, in the order of `SplitTable`, each with its threshold."""
    table = SplitTable.of(space).table
    found = []
    columns = table.feature.tolist(), table.first.tolist(), table.missing_left.tolist()
    for j, k, way in zip(*columns, strict=True):
        thresholds, is_category = space[j].thresholds, k < len(space[j].categories)
        threshold = float(thresholds[k]) if k < len(thresholds) else np.inf
        found.append(Split(j, -np.inf, k, way) if is_category else Split(j, threshold, -1, way))
    return tuple(found)


def merge_rows(
    values: Floats, labels: NDArray[np.int64], weights: Floats | None
) -> tuple[Floats, NDArray[np.int64], Floats]:
    """Distinct (row, label) pairs with their summed weights; missing equals missing."""
    marked = np.where(np.isnan(values), np.finfo(np.float64).max, values)
    joined = np.column_stack([marked, labels])
    distinct, inverse = np.unique(joined, axis=0, return_inverse=True)
    summed = np.bincount(np.ravel(inverse), weights=weights, minlength=len(distinct))
    rows = distinct[:, :-1]
    rows = np.where(rows == np.finfo(np.float64).max, np.nan, rows)
    return rows, distinct[:, -1].astype(np.int64), summed.astype(np.float64)


def goes_left(split: Split, x: Floats) -> NDArray[np.bool_]:
    """Which encoded values of the split's column go left."""
    left = x == split.category if split.category >= 0 else x <= split.threshold
    return np.where(np.isnan(x), split.missing_left, left)


def _price(
    column: Column, split: Split, moves: Moves, x: Floats, n_bins: int
) -> tuple[tuple[Floats, Floats], NDArray[np.bool_]]:
    """Cost of each side, and the bins (2, n_bins) of each; the last bin is for missing values."""
    j, missing, size = split.column, np.isnan(x), _n_bins(column)
    if split.category >= 0:
        on_left = x == split.category
        left_cost = np.where(on_left, 0.0, moves.up[j])
        right_cost = np.where(on_left, moves.up[j], 0.0)
        left = np.arange(size) == split.category
    else:
        left_cost = _interval_cost(moves, j, x, -np.inf, split.threshold)
        right_cost = _interval_cost(moves, j, x, split.threshold, np.inf)
        last = (
            size if np.isinf(split.threshold) else column.thresholds.searchsorted(split.threshold)
        )
        left = np.arange(size) <= last
    if left.all():  # nothing but missing values on the right: no value can become one
        right_cost = np.full(len(x), np.inf)
    appears = moves.missing[j]
    left_cost = np.where(missing, 0.0 if split.missing_left else appears, left_cost)
    right_cost = np.where(missing, appears if split.missing_left else 0.0, right_cost)
    bins = np.zeros((2, n_bins), bool)
    bins[0, :size], bins[1, :size] = left, ~left
    # without missing values among the rows, no box holds them
    bins[:, -1] = missing.any() & np.array([split.missing_left, not split.missing_left])
    return (left_cost, right_cost), bins


def _n_bins(column: Column) -> int:
    """Bins of a column without that for missing values."""
    return len(column.categories) if column.is_categorical else len(column.thresholds) + 1


def _bins_of(column: Column, x: Floats, n_bins: int) -> NDArray[np.int64]:
    missing = np.isnan(x)
    known = np.where(missing, 0.0, x)
    found = known if column.is_categorical else np.searchsorted(column.thresholds, known)
    return np.where(missing, n_bins - 1, found).astype(np.int64)


def _interval_cost(moves: Moves, j: int, x: Floats, low: float, high: float) -> Floats:
    least, greatest = moves.ends(j, np.array(low), np.array(high))
    inside = (x > low) & (x <= high)
    if least > greatest:
        return np.where(inside, 0.0, np.inf)
    with np.errstate(invalid="ignore"):
        cost = np.where(x > high, (x - greatest) * moves.down[j], (least - x) * moves.up[j])
    return np.where(inside, 0.0, cost)


def _cost_levels(crossing: Floats) -> Floats:
    """A few crossing costs for each split, the last being the largest; others are rounded up."""
    levels = np.full((len(crossing), MOST_LEVELS), np.inf)
    n_levels = 1
    for split, costs in enumerate(crossing):
        distinct = np.unique(costs)
        if len(distinct) > MOST_LEVELS:
            indices = np.linspace(0, len(distinct) - 1, MOST_LEVELS).round().astype(int)
            distinct = distinct[indices]
        levels[split, : len(distinct)] = distinct
        n_levels = max(n_levels, len(distinct))
    return levels[:, :n_levels]


def _too_many(space: FeatureSpace, splits: Sequence[Split]) -> str:
    counts = np.bincount([s.column for s in splits], minlength=len(space))
    widest = np.argsort(-counts, kind="stable")[:3]
    named = ", ".join(f"{counts[j]} on {space[j].name!r}" for j in widest)
    return (
        f"X gives {len(splits)} splits, more than the {MOST_SPLITS} the exact search can take "
        f"({named}): lower n_thresholds, pass fewer thresholds in cuts, round integer columns "
        "to fewer values, or drop columns."
    )


def check_start(tree: Tree, space: FeatureSpace, depth: int) -> None:
    """Refuse a tree to begin with that is for other columns, or too deep."""
    if tree.space.names != space.names:
        own, names = tree.space.names[:5], space.names[:5]
        raise ValueError(f"warm_start is a tree for other columns, {own}: X has {names}.")
    if tree.depth > depth:
        raise ValueError(
            f"warm_start has depth {tree.depth}, more than max_depth={depth}: give a smaller tree."
        )


def split_of_node(tree: Tree, node: int, space: FeatureSpace) -> Split:
    """The split of a node; several categories on the left have no form here."""
    j, threshold, category = int(tree.feature[node]), float(tree.threshold[node]), -1
    if space[j].is_categorical and tree.subset[node].sum() == 1:
        threshold, category = -np.inf, int(tree.subset[node].argmax())
    return Split(j, threshold, category, bool(tree.missing_left[node]))


def _split_index(tree: Tree, node: int, indices: dict[Split, int], space: FeatureSpace) -> int:
    """The candidate split of a node, wherever it sends missing values, if need be."""
    own = split_of_node(tree, node, space)
    for split in (own, own._replace(missing_left=not own.missing_left)):
        if split in indices:
            return indices[split]
    raise ValueError(
        f"warm_start splits on {space[own.column].name!r} in a way that is not among the candidate "
        "splits: pass its thresholds in cuts, or leave it out."
    )
