"""Loops over columns: figures of each, short thresholds, and the bins between them."""

import numpy as np

from steadytree._base.jit import kernel

BLOCK = 512  # rows binned at once: their values stay in the cache while columns are read
CELLS = 2  # cells a threshold: few cells hold more than one


@kernel
def fill_cells(thresholds, below):
    """Divide the range of rising thresholds into even cells; return its low end and 1 / width.

    below[cell] becomes the number of thresholds in the cells before. `find_cell` never falls where
    x rises, however it rounds. So the number of thresholds below x is at least below[cell of x],
    and at most below[cell of x + 1].
    """
    n_cells = below.shape[0] - 1
    below[:] = 0
    if thresholds.shape[0] == 0:
        return 0.0, 0.0
    low = thresholds[0]
    width = thresholds[-1] / n_cells - low / n_cells  # no overflow, unlike high - low
    scale = 1.0 / width if width > 0.0 else 0.0
    scale = scale if np.isfinite(scale) else 0.0
    for threshold in thresholds:
        below[find_cell(threshold, low, scale, n_cells) + 1] += 1
    for cell in range(n_cells):
        below[cell + 1] += below[cell]
    return low, scale


@kernel
def find_cell(x, low, scale, n_cells):
    """The even cell of a value that is not missing; outside of the range the nearest."""
    if scale == 0.0:  # infinity times 0 is no number
        return np.int64(0)
    return np.int64(min(max((x - low) * scale, 0.0), np.float64(n_cells - 1)))


@kernel
def bin_numbers(values, thresholds, below, low, scale, bins):
    """Fill bins (n,) with the number of thresholds below each value, past all of them if missing.

    So `bin <= q` is the same as `x <= thresholds[q]`. The thresholds end with infinity; below, low
    and scale are those of `fill_cells`. They leave one or two comparisons where thresholds are
    spread, and half as many each step where they are not.
    """
    n_cells = below.shape[0] - 1
    for row in range(values.shape[0]):
        x = np.float64(values[row])
        if np.isnan(x):
            bins[row] = thresholds.shape[0]
            continue
        cell = find_cell(x, low, scale, n_cells)
        index = np.int64(below[cell])
        index += thresholds[index] < x
        if thresholds[index] < x:
            n_left = below[cell + 1] - index
            while n_left > 0:
                half = (n_left + 1) >> 1
                index += half * (thresholds[index + half - 1] < x)  # no branch to mispredict
                n_left -= half
        bins[row] = index


@kernel
def bin_categories(values, n_categories, bins):
    """Fill bins (n,) with category indices; whatever is none of them is missing, the last bin."""
    for row in range(values.shape[0]):
        x = np.float64(values[row])
        known = x >= 0.0 and x < n_categories
        bins[row] = np.int64(x) if known else n_categories


@kernel
def encode_bins(X, thresholds, threshold_offsets, n_categories, binned, start, end):
    """Fill binned (p, n) from row start up to end; missing values take the bin after the last one.

    Feature j has thresholds[threshold_offsets[j]:threshold_offsets[j + 1]]; n_categories[j] > 0
    marks a categorical feature whose values are category indices, anything else being missing.
    """
    p = X.shape[1]
    ends, cell_ends = threshold_offsets + np.arange(p + 1), np.empty(p + 1, np.int64)
    for feature in range(p + 1):
        cell_ends[feature] = CELLS * threshold_offsets[feature] + 2 * feature
    ended, below = np.full(ends[-1], np.inf), np.empty(cell_ends[-1], np.int32)
    low, scale = np.empty(p), np.empty(p)
    for feature in range(p):
        own = thresholds[threshold_offsets[feature] : threshold_offsets[feature + 1]]
        ended[ends[feature] : ends[feature + 1] - 1] = own
        cells = below[cell_ends[feature] : cell_ends[feature + 1]]
        low[feature], scale[feature] = fill_cells(own, cells)
    for first in range(start, end, BLOCK):
        last = min(first + BLOCK, end)
        for feature in range(p):
            values, bins = X[first:last, feature], binned[feature, first:last]
            if n_categories[feature] > 0:
                bin_categories(values, n_categories[feature], bins)
                continue
            own = ended[ends[feature] : ends[feature + 1]]
            cells = below[cell_ends[feature] : cell_ends[feature + 1]]
            bin_numbers(values, own, cells, low[feature], scale[feature], bins)
    return binned


@kernel
def merge_bins(binned, bin_offsets, merged_bin, merged):
    """Fill merged (p, n) with merged_bin of the bin of every value."""
    for feature in range(binned.shape[0]):
        start = bin_offsets[feature]
        for row in range(binned.shape[1]):
            merged[feature, row] = merged_bin[start + binned[feature, row]]
    return merged


@kernel
def summarise_columns(X):
    """Return per column: least and largest finite value, missing count, infinite count, integral.

    X (n, p) float. Columns without a finite value have low = inf, high = -inf. `integral` is True
    when every finite value is an integer.
    """
    n, p = X.shape
    low, high = np.full(p, np.inf), np.full(p, -np.inf)
    missing, infinite = np.zeros(p, dtype=np.int64), np.zeros(p, dtype=np.int64)
    integral = np.ones(p, dtype=np.bool_)
    for row in range(n):
        for column in range(p):
            x = np.float64(X[row, column])
            if np.isnan(x):
                missing[column] += 1
            elif np.isinf(x):
                infinite[column] += 1
            else:
                low[column] = min(low[column], x)
                high[column] = max(high[column], x)
                if x != np.floor(x):
                    integral[column] = False
    return low, high, missing, infinite, integral


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
