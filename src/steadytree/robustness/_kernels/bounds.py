"""Least losses that any sub-tree must have on the rows of its own region, interval by interval.

Only wrong leaves inside the region are counted as threats, so these never exceed the truth.
"""

import numpy as np

from steadytree._base.jit import kernel


@kernel
def count_sides(rows, split, table, counts):
    """Fill counts (2, n_classes, n_levels) with weights by side; returns the number on the left."""
    counts[:] = 0.0
    n_left = 0
    for index in range(rows.shape[0]):
        row = rows[index]
        side = 0 if table.on_left[split, row] else 1
        n_left += 1 - side
        counts[side, table.label[row], table.cost_level[split, row]] += table.weight[row]
    return n_left


@kernel
def split_losses(rows, split, table, intervals, counts, left_loss, right_loss):
    """Fill left_loss, right_loss (n_classes, n_intervals) with losses of a side under each label.

    Rows of the side's own label are lost as far as crossing the split is inexpensive, the label
    beyond being another. counts (2, n_classes, n_levels) is scratch. Returns the number of rows on
    the left.
    """
    n_classes, n_intervals = left_loss.shape
    n_left = count_sides(rows, split, table, counts)
    for side in range(2):
        loss = left_loss if side == 0 else right_loss
        total = 0.0
        for label in range(n_classes):
            own = 0.0
            loss[label, :] = 0.0
            for level in range(counts.shape[2]):
                heavy = counts[side, label, level]
                if heavy > 0.0:
                    own += heavy
                    for interval in range(n_intervals):
                        loss[label, interval] += heavy * intervals.cross[split, level, interval]
            total += own
            for interval in range(n_intervals):
                loss[label, interval] -= own
        for label in range(n_classes):
            for interval in range(n_intervals):
                loss[label, interval] += total
    return n_left


@kernel
def leaf_loss(rows, table):
    """Weight of the rows that are not of the most frequent class."""
    counts = np.zeros(table.n_classes)
    total = 0.0
    for index in range(rows.shape[0]):
        counts[table.label[rows[index]]] += table.weight[rows[index]]
        total += table.weight[rows[index]]
    return total - counts.max()


@kernel
def lower_bound(counts, cross, penalty, value, bound):
    """Lower bound (n_intervals,) to what a split with any two labels loses; value is scratch.

    counts are those of `count_sides`, cross (n_levels, n_intervals) the split's losses.
    """
    n_classes, n_levels = counts.shape[1], counts.shape[2]
    highest, all_rows = bound.max(), counts.sum()
    for first in range(n_classes):
        for second in range(n_classes):
            right = counts[0, first].sum() + counts[1, second].sum()
            wrong = penalty + all_rows - right
            if first == second or wrong >= highest:
                continue
            value[:] = wrong
            for level in range(n_levels):
                heavy = counts[0, first, level] + counts[1, second, level]
                if heavy > 0.0:
                    for interval in range(value.shape[0]):
                        value[interval] += heavy * cross[level, interval]
            for interval in range(value.shape[0]):
                bound[interval] = min(bound[interval], value[interval])


@kernel
def stump_bound(rows, table, intervals, penalty, bound):
    """Fill bound (n_intervals,) with the least loss of a leaf or one split on the given rows."""
    bound[:] = leaf_loss(rows, table)
    if bound[0] == 0.0:
        return
    counts = np.empty((2, table.n_classes, intervals.cross.shape[1]))
    value = np.empty_like(bound)
    for split in range(table.feature.shape[0]):
        n_left = count_sides(rows, split, table, counts)
        if n_left > 0 and n_left < rows.shape[0]:  # else no better than a leaf
            lower_bound(counts, intervals.cross[split], penalty, value, bound)


@kernel
def split_rows(rows, split, table):
    """The rows on the left of a split, and those on its right."""
    left, right = np.empty_like(rows), np.empty_like(rows)
    n_left, n_right = 0, 0
    for index in range(rows.shape[0]):
        if table.on_left[split, rows[index]]:
            left[n_left] = rows[index]
            n_left += 1
        else:
            right[n_right] = rows[index]
            n_right += 1
    return left[:n_left], right[:n_right]


@kernel
def one_side_only(below, beyond, left_leaf, right_leaf):
    """Change losses of both sides, by interval, to those with a leaf on one of them."""
    for interval in range(below.shape[0]):
        if left_leaf + beyond[interval] < below[interval] + right_leaf:
            below[interval] = left_leaf
        else:
            beyond[interval] = right_leaf


@kernel
def two_level_bound(rows, table, intervals, charge, bound):
    """Fill bound (n_intervals,) with a lower bound on the loss of two levels of splits.

    charge is (penalty of a split, most splits), the latter 2 or 3.
    """
    penalty, most_splits = charge
    bound[:] = leaf_loss(rows, table)
    if bound[0] == 0.0:
        return
    below, beyond = np.empty_like(bound), np.empty_like(bound)
    for split in range(table.feature.shape[0]):
        left, right = split_rows(rows, split, table)
        if left.shape[0] == 0 or right.shape[0] == 0:
            continue
        stump_bound(left, table, intervals, penalty, below)
        if (bound - below).max() <= penalty:
            continue
        stump_bound(right, table, intervals, penalty, beyond)
        if most_splits == 2:
            one_side_only(below, beyond, leaf_loss(left, table), leaf_loss(right, table))
        for interval in range(bound.shape[0]):
            value = penalty + below[interval] + beyond[interval]
            if value < bound[interval]:
                bound[interval] = value
