"""The search's view of the data: distinct rows, candidate splits, costs of their sides."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree._base.exceptions import UnsuitableDataError
from steadytree.data.column import Column
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.splits import SplitTable
from steadytree.robustness._kernels.cost import PriceIntervals, RobustTable
from steadytree.robustness.perturbation import Moves

MOST_SPLITS = 400
MOST_LEVELS = 12

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Split:
    """A candidate split: values up to `threshold`, or the category `category`, go left.

    A threshold of infinity with a category of -1 separates missing values from the others.
    """

    column: int
    threshold: float
    category: int
    missing_left: bool


@dataclass(frozen=True, eq=False)
class Problem:
    """Find the tree with the least robust loss: weight lost to the worst perturbation."""

    table: RobustTable  # distinct rows with their weights, and their cost of each side
    splits: tuple[Split, ...]  # in the order of the table
    # (n_features, n): the bin each row is in, counted as in the table's bins
    bins: NDArray[np.int64]
    limit: float  # what may be spent, by each row or (shared) by all together
    shared: bool
    integer: bool  # whether weights are numbers of rows; else parts of a row can be lost
    penalty: float  # charged for every split, in units of weight

    @property
    def total(self) -> float:
        return float(self.table.weight.sum())

    @property
    def spending(self) -> tuple[float, float, bool, bool]:
        return self.limit, self.penalty, self.shared, self.integer

    def intervals(self, lowest: float, highest: float, n_intervals: int) -> PriceIntervals:
        """Even intervals between two prices of the budget; one without prices if it is per row."""
        crossing = _crossing_costs(self.table)
        levels = _cost_levels(crossing)
        if not self.shared:
            lost = (levels <= self.limit).astype(np.float64)[:, :, None]
            return PriceIntervals(np.zeros(1), np.zeros(1), lost, self.limit, False)
        edges = np.linspace(lowest, highest, n_intervals + 1)
        with np.errstate(invalid="ignore"):
            cross = np.maximum(0.0, 1.0 - levels[:, :, None] * edges[1:])
        # a row that costs more than the budget is not lost, unless it can be divided
        reach = self.limit if self.integer else np.inf
        return PriceIntervals(self.limit * edges[:-1], edges[1:], np.nan_to_num(cross), reach, True)


def make_problem(
    space: FeatureSpace,
    moves: Moves,
    values: Floats,
    labels: NDArray[np.int64],
    weights: Floats | None,
    spending: tuple[float, bool, float],
) -> Problem:
    """List the candidate splits of a space and price them for every distinct row.

    spending is (limit, shared, penalty).
    """
    limit, shared, penalty = spending
    splits = list_splits(space)
    rows, row_labels, row_weights = merge_rows(values, labels, weights)
    integer = bool((row_weights == np.floor(row_weights)).all())
    priced = [_price(space[s.column], s, moves, rows[:, s.column]) for s in splits]
    n_bins = max((len(one[3]) for one in priced), default=1)
    left_bins, right_bins = (_padded([one[k] for one in priced], n_bins) for k in (3, 4))
    n = len(rows)
    table = RobustTable(
        left_cost=_stacked([one[0] for one in priced], n, np.float64),
        right_cost=_stacked([one[1] for one in priced], n, np.float64),
        on_left=_stacked([one[2] for one in priced], n, np.bool_),
        feature=np.array([s.column for s in splits], dtype=np.int64),
        left_bins=left_bins,
        right_bins=right_bins,
        missing=np.ascontiguousarray(np.isnan(rows).T),
        cost_level=np.zeros((len(priced), n), dtype=np.int64),
        label=row_labels,
        weight=row_weights,
        n_classes=int(labels.max(initial=0)) + 1,
        largest=moves.largest,
    )
    crossing = _crossing_costs(table)
    table.cost_level[:] = _level_indices(crossing, _cost_levels(crossing))
    bins = np.array([_bins_of(column, x, n_bins) for column, x in zip(space, rows.T, strict=True)])
    return Problem(table, splits, bins, limit, shared, integer, penalty)


def list_splits(space: FeatureSpace) -> tuple[Split, ...]:
    """The candidate splits of a space, in the order of `SplitTable`, each with its threshold."""
    table = SplitTable.of(space).table
    found = []
    for j, k, way in zip(
        table.feature.tolist(), table.first.tolist(), table.missing_left, strict=True
    ):
        thresholds, n_categories = space[j].thresholds, len(space[j].categories)
        if k < n_categories:
            found.append(Split(j, np.nan, k, bool(way)))
        else:
            threshold = float(thresholds[k]) if k < len(thresholds) else np.inf
            found.append(Split(j, threshold, -1, bool(way)))
    if len(found) > MOST_SPLITS:
        raise UnsuitableDataError(_too_many(space, found))
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


def _price(column: Column, split: Split, moves: Moves, x: Floats) -> tuple[NDArray[Any], ...]:
    """Cost of each side, which side each value is on, and the bins of each side."""
    j, missing = split.column, np.isnan(x)
    if column.is_categorical and np.isnan(split.threshold):
        left = x == split.category
        left_cost = np.where(left, 0.0, moves.up[j])
        right_cost = np.where(left, moves.up[j], 0.0)
        bins = np.arange(len(column.categories)) == split.category
    else:
        cut = np.inf if column.is_categorical else split.threshold
        left = x <= cut
        left_cost = _interval_cost(moves, j, x, -np.inf, cut)
        right_cost = _interval_cost(moves, j, x, cut, np.inf)
        size = len(column.categories) if column.is_categorical else len(column.thresholds) + 1
        last = size if np.isinf(cut) else np.searchsorted(column.thresholds, cut)
        bins = np.arange(size) <= last
    left = np.where(missing, split.missing_left, left)
    appears = moves.missing[j]
    left_cost = np.where(missing, 0.0 if split.missing_left else appears, left_cost)
    right_cost = np.where(missing, appears if split.missing_left else 0.0, right_cost)
    if not bins.all():
        right_bins = ~bins
    else:  # nothing but missing values on the right: no value can become one
        right_bins = np.zeros_like(bins)
        right_cost = np.where(missing, right_cost, np.inf)
    # without missing values among the rows, no box holds them
    to_left, to_right = (split.missing_left, not split.missing_left) if missing.any() else (0, 0)
    return left_cost, right_cost, left, np.append(bins, to_left), np.append(right_bins, to_right)


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


def _crossing_costs(table: RobustTable) -> Floats:
    """Cost for each row of reaching the other side of each split (n_candidates, n)."""
    return np.where(table.on_left, table.right_cost, table.left_cost)


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


def _level_indices(crossing: Floats, levels: Floats) -> NDArray[np.int64]:
    indices = [np.searchsorted(own, costs) for own, costs in zip(levels, crossing, strict=True)]
    return np.array(indices, dtype=np.int64).reshape(crossing.shape)


def _padded(rows: Sequence[NDArray[np.bool_]], width: int) -> NDArray[np.bool_]:
    """Rows of bins of one width; the last bin, for missing values, stays last."""
    padded = np.zeros((len(rows), width), bool)
    for index, row in enumerate(rows):
        padded[index, : len(row) - 1] = row[:-1]
        padded[index, -1] = bool(row[-1])
    return padded


def _stacked(rows: Sequence[NDArray[Any]], n: int, dtype: Any) -> NDArray[Any]:
    return np.array(rows, dtype=dtype).reshape(len(rows), n)


def _too_many(space: FeatureSpace, splits: Sequence[Split]) -> str:
    counts = np.bincount([s.column for s in splits], minlength=len(space))
    widest = np.argsort(-counts, kind="stable")[:3]
    named = ", ".join(f"{counts[j]} on {space[j].name!r}" for j in widest)
    return (
        f"X gives {len(splits)} splits, more than the {MOST_SPLITS} the exact search can take "
        f"({named}): lower n_thresholds, pass fewer thresholds in cuts, round integer columns "
        "to fewer values, or drop columns."
    )
