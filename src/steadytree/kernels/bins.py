"""Values to bin codes, and codes to fewer codes."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def find_bin(x, cuts, uniform):
    """Number of cuts below x, so that `code <= q` is the same question as `x <= cuts[q]`.

    For evenly spaced cuts the place is guessed and then mended, which is exact and needs about
    one comparison instead of nine.
    """
    last = cuts.shape[0] - 1
    if last < 0 or x <= cuts[0]:
        return 0
    if x > cuts[last]:
        return last + 1
    if uniform:
        place = np.int64((x - cuts[0]) / (cuts[last] - cuts[0]) * last)
        while place <= last and cuts[place] < x:
            place += 1
        while place > 0 and cuts[place - 1] >= x:
            place -= 1
        return place
    low, high = 0, last
    while low < high:
        middle = (low + high) >> 1
        if cuts[middle] < x:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def is_uniform(cuts):
    """Whether cuts are evenly spaced to within half a step, so that a bin can be guessed."""
    last = cuts.shape[0] - 1
    if last < 2:
        return False
    step = (cuts[last] - cuts[0]) / last
    if not np.isfinite(step):
        return False
    worst = 0.0
    for place in range(last + 1):
        worst = max(worst, abs(cuts[place] - (cuts[0] + step * place)))
    return worst <= step / 2


@njit(cache=True, nogil=True)
def encode_bins(X, cuts, cut_offsets, n_categories, codes):
    """Fill codes (p, n) with bin numbers; missing takes the code after a feature's last bin.

    Feature j owns cuts[cut_offsets[j]:cut_offsets[j + 1]]; n_categories[j] > 0 marks a
    categorical feature whose values are category numbers, anything else being missing.
    """
    for feature in range(X.shape[1]):
        own = cuts[cut_offsets[feature] : cut_offsets[feature + 1]]
        size, uniform = n_categories[feature], is_uniform(own)
        for row in range(X.shape[0]):
            x = np.float64(X[row, feature])
            if size > 0:
                known = x >= 0.0 and x < size
                codes[feature, row] = np.int64(x) if known else size
            elif np.isnan(x):
                codes[feature, row] = own.shape[0] + 1
            else:
                codes[feature, row] = find_bin(x, own, uniform)
    return codes


@njit(cache=True, nogil=True)
def occupied_bins(codes, bin_offsets):
    """Tell for every bin whether any row is in it. codes (p, n); returns (n_bins,) bool."""
    occupied = np.zeros(bin_offsets[-1], dtype=np.bool_)
    for feature in range(codes.shape[0]):
        start = bin_offsets[feature]
        for row in range(codes.shape[1]):
            occupied[start + codes[feature, row]] = True
    return occupied


@njit(cache=True, nogil=True)
def recode(codes, bin_offsets, new_code, recoded):
    """Fill recoded (p, n) with new_code[bin] of every code."""
    for feature in range(codes.shape[0]):
        start = bin_offsets[feature]
        for row in range(codes.shape[1]):
            recoded[feature, row] = new_code[start + codes[feature, row]]
    return recoded
