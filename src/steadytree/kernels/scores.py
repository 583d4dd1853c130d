"""How good a split is, from class counts alone. Every score lies in [0, rows]; more is better."""

import numpy as np
from numba import njit

COUNT, GINI, ENTROPY = 0, 1, 2
INVALID = -1.0
EMPTY = 1e-10  # share of the rows below which a side is empty: weights do not add up exactly


@njit(cache=True, nogil=True)
def add_class(sum_, count, score):
    """Take one class of a side into the side's running sum."""
    if score == COUNT:
        return max(sum_, count)
    if score == GINI:
        return sum_ + count * count
    return sum_ + count * np.log(count) if count > 0.0 else sum_


@njit(cache=True, nogil=True)
def side_score(sum_, size, score, n_classes):
    """Score of one side: rows of its majority (COUNT), or rows times one minus its impurity.

    GINI: size * sum p^2. ENTROPY: size * (1 - entropy / log(classes)). All are `size` for a pure
    side, and 0 for an empty one.
    """
    if size <= 0.0:
        return 0.0
    if score == COUNT:
        return sum_
    if score == GINI:
        return sum_ / size
    if n_classes == 1:
        return size
    return size + (sum_ - size * np.log(size)) / np.log(n_classes)


@njit(cache=True, nogil=True)
def split_score(n_left, n_right, sum_left, sum_right, score, min_leaf, n_classes):
    """Score of a split from the sizes and running sums of its sides, or INVALID.

    A split is invalid where a side is empty or lighter than min_leaf. A min_leaf of 1 only asks
    for sides that are not empty, so that fractional weights may be used.
    """
    lighter = min(n_left, n_right)
    if lighter <= EMPTY * (n_left + n_right) or (min_leaf > 1 and lighter < min_leaf):
        return INVALID
    left_score = side_score(sum_left, n_left, score, n_classes)
    return left_score + side_score(sum_right, n_right, score, n_classes)


@njit(cache=True, nogil=True)
def score_rules(counts, table, score, min_leaf, scores):
    """Fill scores (n_rules,) for one node from its counts (n_bins, n_classes).

    `table` is a RuleTable; a rule that leaves a side empty scores INVALID. Rules come by rising
    bin, so each bin is added to `below` once. One flat loop: arrays handed to a function a rule
    would cost four times as much.
    """
    n_classes, rule_bin, rule_missing_left = counts.shape[1], table.bin, table.missing_left
    totals, below = np.zeros(n_classes), np.zeros(n_classes)
    for bin_ in range(table.bin_offsets[0], table.bin_offsets[1]):
        for class_ in range(n_classes):
            totals[class_] += counts[bin_, class_]
    for feature in range(table.bin_sizes.shape[0]):
        start, size = table.bin_offsets[feature], table.bin_sizes[feature]
        has_missing = table.bin_offsets[feature + 1] - start > size
        by_value, reached = table.by_value[feature], 0
        below[:] = 0.0
        for rule in range(table.offsets[feature], table.offsets[feature + 1]):
            asked = rule_bin[rule]
            n_left, n_right, sum_left, sum_right = 0.0, 0.0, 0.0, 0.0
            for class_ in range(n_classes):
                if not by_value:
                    for bin_ in range(start + reached, start + asked + 1):
                        below[class_] += counts[bin_, class_]
                    left = below[class_]
                elif asked >= 0:
                    left = np.float64(counts[start + asked, class_])
                else:
                    left = totals[class_] - counts[start + size, class_]
                if has_missing and rule_missing_left[rule]:
                    left += counts[start + size, class_]
                right = totals[class_] - left
                n_left, n_right = n_left + left, n_right + right
                sum_left = add_class(sum_left, left, score)
                sum_right = add_class(sum_right, right, score)
            reached = max(reached, asked + 1)
            scores[rule] = split_score(
                n_left, n_right, sum_left, sum_right, score, min_leaf, n_classes
            )
    return scores
