"""Bins of the columns for bands: round thresholds of numbers, categories with rare ones pooled."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steadytree.data.column import Column, Kind
from steadytree.riskscore._kernels.bands import round_between

MOST_BINS = 64
RARE = 0.002  # share of the weight below which categories are pooled


@dataclass(frozen=True, eq=False)
class ColumnBins:
    """Bins 0..size - 1 of a column's values; bin `size` is for missing values."""

    # of numbers: a value on one is in the upper bin; of ordered categories: between their ranks
    thresholds: NDArray[np.float64]
    bin_of_category: NDArray[np.int64]  # pooled ones share the last bin; empty for numbers
    size: int

    @classmethod
    def of(
        cls, column: Column, values: NDArray[np.float64], weights: NDArray[np.float64], least: float
    ) -> "ColumnBins":
        """Bins of encoded values; categories of less weight than `least` are pooled.

        Categories with an order keep it, each in a bin of its own.
        """
        known = ~np.isnan(values)
        if not column.is_categorical:
            thresholds = round_thresholds(values[known], weights[known], column.kind)
            return cls(thresholds, np.empty(0, np.int64), len(thresholds) + 1)
        if (ranks := column.ranks) is not None:
            return cls(np.arange(0.5, len(ranks) - 1, dtype=np.float64), ranks, len(ranks))
        summed = np.bincount(
            values[known].astype(np.int64), weights[known], minlength=len(column.categories)
        )
        common = summed >= max(least, RARE * weights.sum()) * (1 - 1e-9)
        bins = np.where(common, np.cumsum(common) - 1, common.sum())
        return cls(np.empty(0), bins, int(bins.max()) + 1)

    @property
    def is_ordered(self) -> bool:
        """Whether thresholds can divide the bins."""
        return len(self.thresholds) > 0 or not len(self.bin_of_category)

    @property
    def pools(self) -> bool:
        """Whether categories share a bin."""
        return len(np.unique(self.bin_of_category)) < len(self.bin_of_category)

    def binned(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Bin of each encoded value."""
        missing = np.isnan(values)
        if len(self.bin_of_category):
            found = self.bin_of_category[np.where(missing, 0, values).astype(np.int64)]
        else:
            found = np.searchsorted(self.thresholds, values, side="right")
        return np.where(missing, self.size, found)


def round_thresholds(
    values: NDArray[np.float64],
    weights: NDArray[np.float64],
    kind: Kind = "numeric",
    most: int = MOST_BINS,
) -> NDArray[np.float64]:
    """Round numbers between bins of about equal weight; frequent values have bins of their own.

    A threshold may lie up to half a bin from where it divides the weight evenly. Between few values
    that are not integers it lies in the middle half, so that small noise does not cross it.
    """
    distinct, index = np.unique(values, return_inverse=True)
    if len(distinct) < 2:
        return np.empty(0)
    each = np.bincount(index, weights)
    below = np.concatenate([[0.0], np.cumsum(each)[:-1]])  # weight below each value
    size, upper = 0.0, np.arange(1, len(distinct))
    slack = 1e-9 * each.sum()  # weights and repeated rows round differently
    if len(distinct) > most:
        size = each.sum() / most
        levels = size * np.arange(1, most)
        heavy = np.flatnonzero(each >= size)
        upper = np.unique([*np.searchsorted(below, levels - slack), *heavy, *(heavy + 1)])
        upper = upper[(upper > 0) & (upper < len(distinct))]
    if kind != "integer" and size == 0:
        gaps = np.diff(distinct) / 4
        ends = zip(distinct[:-1] + gaps, distinct[1:] - gaps, distinct[:-1] + 2 * gaps, strict=True)
        found = [0.5] if kind == "binary" else [round_between(*each) for each in ends]
        # neighbouring floats leave no room: the upper one divides
        return np.where(np.array(found) > distinct[:-1], found, distinct[1:])
    low = np.searchsorted(below, below[upper] - size / 2 - slack).clip(1, upper) - 1
    high = (np.searchsorted(below, below[upper] + size / 2 + slack, side="right") - 1).clip(upper)
    ends = zip(distinct[low], distinct[high], distinct[upper], strict=True)
    return np.unique([round_between(*each) for each in ends])
