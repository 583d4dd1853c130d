"""Loops over columns: short thresholds, and the bins between thresholds."""

import numpy as np

from steadytree._base.jit import kernel

BLOCK = 512  # rows binned at once: their values stay in the cache while columns are read


@kernel
def fill_bins(
    X, at, thresholds, ends, below, cell_ends, low, scale, most, n_categories, binned, start, end
):
    """Fill binned (p, n) from row start up to end; missing values take the bin after the last one.

    The p columns are those of X from column `at` on.

    A number's bin is how many thresholds are below it: `bin <= q` is the same as
    `x <= thresholds[q]`. Thresholds and cells are those of `even_cells`. They leave one comparison
    where thresholds are spread, and where they are not, half as many each step. No step has a
    branch that depends on a value, so that several rows are binned at once.
    n_categories[j] > 0 marks a column of category indices; whatever is none of them is missing.
    """
    one = np.uint32(1)  # an unsigned index cannot be negative, which would be looked at each time
    for first in range(start, end, BLOCK):
        last = first + BLOCK if first + BLOCK < end else end
        for feature in range(binned.shape[0]):
            values, bins = X[first:last, at + feature], binned[feature, first:last]
            n_known = n_categories[feature]
            if n_known > 0:
                for row in range(values.shape[0]):
                    x = np.float64(values[row])
                    bins[row] = np.int64(x) if x >= 0.0 and x < n_known else n_known
                continue
            own = thresholds[ends[feature] : ends[feature + 1]]
            cells = below[cell_ends[feature] : cell_ends[feature + 1]]
            least, factor, highest = low[feature], scale[feature], np.float64(cells.shape[0] - 2)
            infinity = np.uint32(own.shape[0] - 1)
            for row in range(values.shape[0]):
                x = np.float64(values[row])
                where = (x - least) * factor  # as `even_cells` has it
                where = where if where > 0.0 else 0.0  # also for no number
                index = cells[np.uint32(np.int32(where if where < highest else highest))]
                index = np.uint32(index + np.uint32(own[index] < x))
                bins[row] = index if x == x else infinity + one
            n_left = most[feature] - 1
            while n_left > 0:
                step = np.uint32((n_left + 1) >> 1)
                for row in range(values.shape[0]):
                    x, index = np.float64(values[row]), np.uint32(bins[row])
                    middle = np.uint32(index + step - one)
                    passed = own[middle if middle < infinity else infinity] < x
                    bins[row] = index + step if passed else index
                n_left >>= 1


@kernel
def merge_bins(binned, bin_offsets, merged_bin, merged):
    """Fill merged (p, n) with merged_bin of the bin of every value."""
    for feature in range(binned.shape[0]):
        start = bin_offsets[feature]
        for row in range(binned.shape[1]):
            merged[feature, row] = merged_bin[start + binned[feature, row]]
    return merged


MOST_DIGITS = 15


@kernel
def short_between(low, high):
    """The number with fewest decimals in the middle half between two values.

    Where no float lies between them it is the upper one, which ``x >= threshold`` tells apart.
    """
    middle = low + (high - low) / 2
    if middle <= low:
        middle = high
    scale = 1.0
    for _ in range(MOST_DIGITS + 1):
        rounded = np.rint(middle * scale) / scale
        if abs(rounded - middle) <= (high - low) / 4 and low < rounded <= high:
            return rounded
        scale *= 10
    return middle


@kernel
def short_thresholds(values):
    """Short numbers between neighbours of rising values (n,): (n - 1,), none for fewer than two."""
    thresholds = np.empty(max(values.shape[0] - 1, 0))
    for k in range(thresholds.shape[0]):
        thresholds[k] = short_between(values[k], values[k + 1])
    return thresholds
