"""Lay out the bins and rules of a feature space."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def list_rules(occupied, full_offsets, n_categories, has_missing):
    """Merge empty bins and list the rules that are left, feature by feature, by rising bin.

    occupied (n_full_bins,) bool, a feature's missing bin last; n_categories (p,) is 0 for numbers.
    Two categories need one rule, one category none. With missing values each rule comes twice,
    missing on the right and on the left, and a last one asks whether the value is there: for
    numbers that is the last bin, for categories bin -1; its threshold is one past the others.

    Returns bin_sizes (p,), n_rules (p,), new_code (n_full_bins,), and bin, missing_left, first,
    last of each rule.
    """
    p = n_categories.shape[0]
    bin_sizes, n_rules = np.zeros(p, np.int64), np.zeros(p, np.int64)
    new_code = np.zeros(occupied.shape[0], np.int64)
    room = 2 * occupied.shape[0] + p
    bin_, first, last = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    missing_left = np.zeros(room, np.bool_)
    total = 0
    for feature in range(p):
        start, before = full_offsets[feature], total
        n_full = full_offsets[feature + 1] - start - 1
        by_value = n_categories[feature] > 0
        asked = n_full if n_full > 2 else n_full - 1  # categories worth a rule of their own
        size, previous = 0, -1
        for code in range(n_full):
            if occupied[start + code]:
                bounds = (code, code) if by_value else (previous, code - 1)
                if (by_value and code < asked) or (not by_value and size > 0):
                    for side in range(1 + has_missing[feature]):
                        bin_[total] = size if by_value else size - 1
                        first[total], last[total] = bounds
                        missing_left[total] = side == 1
                        total += 1
                previous = code
                size += 1
            new_code[start + code] = max(size - 1, 0)
        new_code[start + n_full] = size
        if has_missing[feature]:
            bin_[total] = -1 if by_value else size - 1
            first[total] = last[total] = n_full if by_value else n_full - 1
            total += 1
        bin_sizes[feature], n_rules[feature] = size, total - before
    rules = (bin_[:total], missing_left[:total], first[:total], last[:total])
    return bin_sizes, n_rules, new_code, rules
