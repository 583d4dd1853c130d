"""Bounds of trees by their root, and what a bound of one root says of others in its column."""

import numpy as np

from steadytree._base.jit import kernel
from steadytree.robustness._kernels.arrays import largest_of, sum_of
from steadytree.robustness._kernels.box_splits import all_thresholds


@kernel
def spread_bound(table, weight, column, index, bound, near):
    """Lower near (n_thresholds of the column,) to what a bound at one threshold says of others.

    At another threshold the same sub-trees keep at most the rows more that are sure of their side
    there and not here.
    """
    size = near.shape[0]
    rise = np.zeros((2, size + 1))
    left, right = rise[0], rise[1]
    for row in range(weight.shape[0]):
        left[table.left_from[column, row]] += weight[row]
        right[table.right_below[column, row]] += weight[row]
    more = 0.0
    for other in range(index + 1, size):
        more += left[other]
        near[other] = min(near[other], bound + more)
    more = 0.0
    for other in range(index - 1, -1, -1):
        more += right[other + 1]
        near[other] = min(near[other], bound + more)


@kernel
def left_weights(table, weight, column, share):
    """What each threshold adds (size + 1,) to the left side's weight; rows on both give a share."""
    rise = np.zeros(table.n_thresholds[column] + 1)
    for row in range(weight.shape[0]):
        part = weight[row] * share[row]
        rise[table.left_from[column, row]] += weight[row] - part
        rise[table.right_below[column, row]] += part
    return rise


@kernel
def side_weights(table, weight, shares):
    """Weight (2, n_roots) on each side of every root, in the order of columns and thresholds.

    Rows on both sides give shares (p, n) of their weight to the left, whatever the threshold.
    """
    sides, start, total = np.empty((2, all_thresholds(table))), 0, sum_of(weight)
    for column in range(table.n_thresholds.shape[0]):
        rise, left = left_weights(table, weight, column, shares[column]), 0.0
        for index in range(table.n_thresholds[column]):
            left += rise[index]
            sides[0, start + index], sides[1, start + index] = left, total - left
        start += table.n_thresholds[column]
    return sides


@kernel
def spread_sides(table, weight, column, index, share, values, sides, near):
    """Lower sides (2, size) and near (size,) of a column by bounds of both sides at one threshold.

    values are bounds where rows on both sides give share (n,) to the left. A side that grows keeps
    at most the weight more that it gains, one that shrinks no more than before: between two
    thresholds each side has the better of both.
    """
    rise, size = left_weights(table, weight, column, share), near.shape[0]
    for side in range(2):
        sides[side, index] = min(sides[side, index], values[side])
    more = 0.0
    for other in range(index + 1, size):
        more += rise[other]
        sides[0, other] = min(sides[0, other], values[0] + more)
        sides[1, other] = min(sides[1, other], values[1])
    more = 0.0
    for other in range(index - 1, -1, -1):
        more += rise[other + 1]
        sides[0, other] = min(sides[0, other], values[0])
        sides[1, other] = min(sides[1, other], values[1] + more)
    for other in range(size):
        near[other] = min(near[other], sides[0, other] + sides[1, other] - table.penalty)


@kernel
def widest_top(near):
    """Middle of the longest run of the largest value."""
    top, best, longest, start = largest_of(near), 0, 0, -1
    for k in range(near.shape[0] + 1):
        inside = k < near.shape[0] and near[k] == top
        if inside and start < 0:
            start = k
        elif not inside and start >= 0:
            if k - start > longest:
                longest, best = k - start, start + (k - start) // 2
            start = -1
    return best
