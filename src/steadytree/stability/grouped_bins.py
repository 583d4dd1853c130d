"""GroupedBins: few bins a column, at rounded thresholds and by categories of like outcome."""

import functools
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadytree.data.binning import quantile_thresholds
from steadytree.data.column import Column
from steadytree.data.feature_space import FeatureSpace
from steadytree.stability._kernels.small_tree import MOST_BINS
from steadytree.stability._kernels.steady import GROUPED, ORDERED, WITH_MISSING

Floats = NDArray[np.float64]
N_THRESHOLDS = 32
LEAST_BETWEEN = 10.0  # rows between two thresholds
STEPS = (1.0, 0.5, 0.2)  # round numbers are multiples of these times a power of ten
RARE, FEW = 0.02, 25.0  # categories below this share, and this weight, have a bin in common
MOST_GROUPS = 32  # bins of categories; of more, neighbours are joined
PRIOR = 10.0  # rows of the common share that each category's share begins with
NOT_SEEN = -1


class GroupSplit(NamedTuple):
    """What a node of a Tree asks; `swapped` where the bins named go right instead of left."""

    threshold: float
    subset: NDArray[np.bool_]
    missing_left: bool
    swapped: bool


@dataclass(frozen=True, eq=False)
class GroupedBins:
    """Bins of each column; those of categories in their order, else by the share of a class.

    Parameters
    ----------
    space : FeatureSpace
        With thresholds.
    groups : tuple of int64 arrays or None
        For a column of categories, the bin of each category, NOT_SEEN without rows; the last
        entry is the bin of missing values.
    n_bins, kinds : int64 arrays (d,)
    """

    space: FeatureSpace
    groups: tuple[NDArray[np.int64] | None, ...]
    n_bins: NDArray[np.int64]
    kinds: NDArray[np.int64]

    @classmethod
    def of(
        cls, space: FeatureSpace, values: Floats, targets: Floats, weights: Floats
    ) -> "GroupedBins":
        """Bins for rows as `FeatureSpace.encode` returns them, their targets (n, k) and weights."""
        columns, groups, n_bins, kinds = [], [], [], []
        for j, column in enumerate(space):
            if column.is_categorical:
                kind = GROUPED
                if column.ordered:
                    group = _ordered_categories(column, values[:, j], weights)
                    kind = WITH_MISSING if column.missing else ORDERED
                else:
                    group = _group_categories(column, values[:, j], targets, weights)
                columns.append(column)
                n_bins.append(int(group.max()) + 1)
                kinds.append(kind)
            else:
                group = None
                columns.append(column.with_thresholds(rounded_thresholds(values[:, j], weights)))
                n_bins.append(columns[-1].n_bins + column.missing)
                kinds.append(WITH_MISSING if column.missing else ORDERED)
            groups.append(group)
        return cls(FeatureSpace(tuple(columns)), tuple(groups), np.array(n_bins), np.array(kinds))

    @property
    def roundness(self) -> Floats:
        """How round the threshold above each bin is (d, MOST_BINS); 0 where there is none.

        Nothing is rounder than asking whether a value is there.
        """
        found = np.zeros((len(self.kinds), MOST_BINS))
        for j, column in enumerate(self.space):
            if not column.is_categorical:
                found[j, : len(column.thresholds)] = [
                    step_of(threshold) for threshold in column.thresholds.tolist()
                ]
                if column.missing:
                    found[j, len(column.thresholds) :][:2] = np.inf  # the last number; missing
        return found

    def binned(self, values: Floats) -> NDArray[np.uint8]:
        """Bins (n, d) of the rows that the bins were made from."""
        binned = self.space.binned(values)
        for j, group in enumerate(self.groups):
            if group is not None:
                binned[j] = group[binned[j]]
        return np.ascontiguousarray(binned.T.astype(np.uint8))

    def split_at(self, feature: int, bins: int, larger_left: bool) -> GroupSplit:
        """The split by whether a row's bin is among those whose bits are set.

        What training has not seen, missing values or categories, goes to the larger side.
        """
        column, group = self.space[feature], self.groups[feature]
        width = int(self.space.n_categories.max())
        subset = np.zeros(width, bool)
        if group is None:
            n_left = sum(bins >> k & 1 for k in range(column.n_bins))
            missing_left = bool(bins >> column.n_bins & 1) if column.missing else larger_left
            if n_left == 0:  # missing values alone: asked as whether the value is there
                return GroupSplit(np.inf, subset, False, True)
            threshold = float(column.thresholds[n_left - 1]) if n_left < column.n_bins else np.inf
            return GroupSplit(threshold, subset, missing_left, False)
        goes = np.array([larger_left if g == NOT_SEEN else bool(bins >> int(g) & 1) for g in group])
        swapped = not goes[:-1].any()
        goes = goes != swapped
        subset[: len(goes) - 1] = goes[:-1]
        return GroupSplit(np.nan, subset, bool(goes[-1]), swapped)


def rounded_thresholds(values: Floats, weights: Floats) -> Floats:
    """At most N_THRESHOLDS thresholds near quantiles; between the values where these are few.

    A value of many rows counts as one quantile's share: the rest of its column gets thresholds
    too. Each threshold is the roundest number nearer to its quantile than to the next, which mostly
    stays when some rows go, as the least float32 number not below it, so that readers in single
    precision decide alike.
    """
    known = ~np.isnan(values)
    distinct, position = np.unique(values[known], return_inverse=True)
    if len(distinct) <= N_THRESHOLDS + 1:
        return quantile_thresholds(values, N_THRESHOLDS, weights)
    heavy = np.bincount(position, weights[known])
    heavy = np.minimum(heavy, heavy.sum() / N_THRESHOLDS)
    n_thresholds = int(np.clip(heavy.sum() / LEAST_BETWEEN, 2, N_THRESHOLDS))
    reached = np.cumsum(heavy) / heavy.sum()
    levels = np.arange(0.5, n_thresholds + 1, 0.5) / (n_thresholds + 1)
    # the tolerance keeps weights and repeated rows on the same side of a level
    found = np.searchsorted(reached, levels - 1e-12).clip(0, len(distinct) - 2)
    low, middle, high = (distinct[found[k::2][:n_thresholds]] for k in range(3))
    high = np.where(high > low, high, distinct[found[::2][:n_thresholds] + 1])
    each = zip(low.tolist(), middle.tolist(), high.tolist(), strict=True)
    exact = np.array([roundest_number(*one) for one in each])
    with np.errstate(over="ignore"):
        single = exact.astype(np.float32)
        single = np.where(single < exact, np.nextafter(single, np.float32(np.inf)), single)
    thresholds = np.unique(np.where(np.isfinite(single), single.astype(np.float64), exact))
    return thresholds[(thresholds >= distinct[0]) & (thresholds < distinct[-1])]


def roundest_number(low: float, middle: float, high: float) -> float:
    """The roundest number in [low, high), of several the one nearest to the middle."""
    if low <= 0 < high:
        return 0.0
    for unit in _steps_below(max(abs(low), abs(high))):
        first, last = math.ceil(low / unit - 1e-9), math.ceil(high / unit - 1e-9) - 1
        if first <= last:
            return float(f"{min(max(round(middle / unit), first), last) * unit:.12g}")
    return low


def step_of(number: float) -> float:
    """The largest step that a number, to six digits, is a multiple of; infinite for 0."""
    number = float(f"{number:.6g}")
    if number == 0:
        return np.inf
    for unit in _steps_below(abs(number)):
        if abs(number / unit - round(number / unit)) < 1e-5:
            return unit
    return 0.0


def _steps_below(size: float) -> tuple[float, ...]:
    """Steps from the power of ten above a number down to a 1e-15th of it."""
    return _steps_from(math.floor(math.log10(max(size, 1e-290))) + 1)


@functools.cache
def _steps_from(power: int) -> tuple[float, ...]:
    return tuple(step * 10.0 ** (power - k) for k in range(16) for step in STEPS)


def _ordered_categories(column: Column, values: Floats, weights: Floats) -> NDArray[np.int64]:
    """Bin of each category in its order, and of missing values; one without rows joins the lower.

    Neighbours are joined where there are many.
    """
    known = ~np.isnan(values)
    heavy = np.bincount(values[known].astype(np.int64), weights[known], len(column.categories))
    group = np.maximum(np.cumsum(heavy > 0) - 1, 0)
    if group[-1] >= MOST_GROUPS:
        passed = np.cumsum(heavy) - heavy / 2
        joined = (passed / heavy.sum() * MOST_GROUPS).astype(np.int64).clip(0, MOST_GROUPS - 1)
        group = np.unique(np.where(heavy > 0, joined, joined[0]), return_inverse=True)[1]
        group = np.maximum.accumulate(group)
    return np.append(group, group[-1] + 1 if column.missing else NOT_SEEN)


def _group_categories(
    column: Column, values: Floats, targets: Floats, weights: Floats
) -> NDArray[np.int64]:
    """Bin of each category and of missing values, in order of their shares of a class."""
    n_levels = len(column.categories) + 1
    level = np.where(np.isnan(values), n_levels - 1, values).astype(np.int64)
    heavy = np.bincount(level, weights, n_levels)
    means = weights @ targets / weights.sum()
    counts = np.array([np.bincount(level, weights * y, n_levels) for y in targets.T])
    shares = (counts + PRIOR * means[:, None]) / (heavy + PRIOR)
    share = shares[((shares - means[:, None]) ** 2 @ heavy).argmax()]
    rare = (heavy > 0) & (heavy < min(RARE * heavy.sum(), FEW))
    if rare.sum() > 1:
        share = np.where(rare, share[rare] @ heavy[rare] / heavy[rare].sum(), share)
    else:
        rare[:] = False
    # rare ones first among equal shares, so that they stand together
    order = np.lexsort((np.arange(n_levels), ~rare, share))
    order = order[heavy[order] > 0]
    starts = np.append(True, ~(rare[order][1:] & rare[order][:-1]))[: len(order)]
    group = np.full(n_levels, NOT_SEEN)
    group[order] = np.cumsum(starts) - 1
    if starts.sum() > MOST_GROUPS:
        passed = np.cumsum(heavy[order]) - heavy[order] / 2
        joined = (passed / heavy.sum() * MOST_GROUPS).astype(np.int64)
        group[order] = np.unique(joined, return_inverse=True)[1]
    return group
