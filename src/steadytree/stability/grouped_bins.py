"""GroupedBins: few bins a column, at rounded thresholds and by categories of like outcome."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadytree.data.binning import quantile_thresholds
from steadytree.data.column import Column
from steadytree.data.feature_space import FeatureSpace
from steadytree.stability._kernels.steady import GROUPED, ORDERED, WITH_MISSING

Floats = NDArray[np.float64]
N_CUTS = 16
ROUNDING = 20.0  # cuts are whole multiples of a twentieth of their power of ten
RARE, FEW = 0.02, 25.0  # categories below this share, and this weight, have a bin in common
MOST_GROUPS = 32  # bins of categories; of more, neighbours are joined
PRIOR = 10.0  # rows of the common share that each category's share begins with
NOT_SEEN = -1


class Question(NamedTuple):
    """What a node of a Tree asks; `swapped` where the bins named go right instead of left."""

    threshold: float
    subset: NDArray[np.bool_]
    missing_left: bool
    swapped: bool


@dataclass(frozen=True, eq=False)
class GroupedBins:
    """Bins of each column; those of categories in order of the share of a class.

    Parameters
    ----------
    space : FeatureSpace
        With cuts.
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
                group = _group_categories(column, values[:, j], targets, weights)
                columns.append(column)
                n_bins.append(int(group.max()) + 1)
                kinds.append(GROUPED)
            else:
                group = None
                columns.append(column.with_thresholds(rounded_cuts(values[:, j], weights)))
                n_bins.append(columns[-1].n_bins + column.missing)
                kinds.append(WITH_MISSING if column.missing else ORDERED)
            groups.append(group)
        return cls(FeatureSpace(tuple(columns)), tuple(groups), np.array(n_bins), np.array(kinds))

    def codes(self, values: Floats) -> NDArray[np.uint8]:
        """Bins (n, d) of the rows that the bins were made from."""
        codes = self.space.binned(values)
        for j, group in enumerate(self.groups):
            if group is not None:
                codes[j] = group[codes[j]]
        return np.ascontiguousarray(codes.T.astype(np.uint8))

    def question(self, feature: int, bins: int, larger_left: bool) -> Question:
        """The question whether a row's bin is among those whose bits are set.

        What training has not seen, missing values or categories, goes to the larger side.
        """
        column, group = self.space[feature], self.groups[feature]
        width = int(self.space.n_categories.max())
        subset = np.zeros(width, bool)
        if group is None:
            n_left = sum(bins >> k & 1 for k in range(column.n_bins))
            missing_left = bool(bins >> column.n_bins & 1) if column.missing else larger_left
            if n_left == 0:  # missing values alone: asked as whether the value is there
                return Question(np.inf, subset, False, True)
            threshold = float(column.thresholds[n_left - 1]) if n_left < column.n_bins else np.inf
            return Question(threshold, subset, missing_left, False)
        goes = np.array([larger_left if g == NOT_SEEN else bool(bins >> int(g) & 1) for g in group])
        swapped = not goes[:-1].any()
        goes = goes != swapped
        subset[: len(goes) - 1] = goes[:-1]
        return Question(np.nan, subset, bool(goes[-1]), swapped)


def rounded_cuts(values: Floats, weights: Floats) -> Floats:
    """At most N_CUTS thresholds at rounded quantiles; between the values where these are few.

    Rounded quantiles stay where they are when some rows go. Each is the least float32 number that
    is not below the rounded one, so that readers in single precision decide alike.
    """
    known = ~np.isnan(values)
    distinct, place = np.unique(values[known], return_inverse=True)
    if len(distinct) <= N_CUTS + 1:
        return quantile_thresholds(values, N_CUTS, weights)
    reached = np.cumsum(np.bincount(place, weights[known]))
    reached = reached / reached[-1]

    def quantile(level: Floats) -> Floats:
        return distinct[np.searchsorted(reached, level - 1e-12).clip(0, len(distinct) - 1)]

    at = quantile(np.arange(1, N_CUTS + 1) / (N_CUTS + 1))
    tenth, nine_tenths = quantile(np.array([0.1, 0.9]))
    size = np.maximum(np.abs(at), max((nine_tenths - tenth) / 50, 1e-300))
    unit = 10.0 ** np.floor(np.log10(size)) / ROUNDING
    with np.errstate(over="ignore"):
        exact = np.array([float(f"{cut:.10g}") for cut in np.round(at / unit) * unit])
        single = exact.astype(np.float32)
        single = np.where(single < exact, np.nextafter(single, np.float32(np.inf)), single)
    cuts = np.where(np.isfinite(single), single.astype(np.float64), exact)
    cuts = np.unique(cuts)
    return cuts[(cuts >= distinct[0]) & (cuts < distinct[-1])]


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
