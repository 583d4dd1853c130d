"""The best split of rows that may be anywhere in a box, for one node or for two at once.

A split depends on a row's box only through two ranks among the thresholds of a column: from which
threshold on it is surely left, and up to which it is surely right.
"""

from typing import Any, NamedTuple

import numpy as np

from steadytree._base.jit import kernel
from steadytree.models._kernels import set_all
from steadytree.robustness._kernels.arrays import (
    index_of_largest,
    largest_of,
    rows_above,
)

ROUNDING = 1e-7  # sums of weights that differ by less are equal


class BoxTable(NamedTuple):
    """Rows as boxes, in ranks, with what they count."""

    left_from: Any  # (p, n): surely left of threshold k where left_from <= k
    right_below: Any  # (p, n): surely right of threshold k where k < right_below
    n_thresholds: Any  # (p,)
    label: Any  # (n,)
    weight: Any  # (n,)
    n_classes: int
    penalty: float  # of a split, in units of weight


@kernel
def all_thresholds(table):
    """Splits of all columns."""
    total = 0
    for column in range(table.n_thresholds.shape[0]):
        total += table.n_thresholds[column]
    return total


@kernel
def most_thresholds(table):
    """Thresholds of the column that has most."""
    most = 0
    for column in range(table.n_thresholds.shape[0]):
        most = max(most, table.n_thresholds[column])
    return most


@kernel
def column_of(table, pick):
    """Column of a split, counted over all columns, and where those of the column start."""
    column, start = 0, 0
    while start + table.n_thresholds[column] <= pick:
        start += table.n_thresholds[column]
        column += 1
    return column, start


@kernel
def of_rows(rows, group, weight, n_groups):
    """Group and weight of some rows, and the weight of each group."""
    size = rows.shape[0]
    own, heavy, total = np.empty(size, np.int64), np.empty(size), np.zeros(n_groups)
    for k in range(size):
        own[k], heavy[k] = group[rows[k]], weight[rows[k]]
        total[own[k]] += heavy[k]
    return own, heavy, total


@kernel
def best_box_split(table, rows, group, weight, n_groups, least, first):
    """The split that puts most weight surely on the side of its group, one group a side.

    rows lists those that count; group and weight (n,). Columns are tried from `first` on. Returns
    value, column, threshold index, and the groups of the left and right side; the column is -1
    where no split exceeds `least`.
    """
    own, heavy, total = of_rows(rows, group, weight, n_groups)
    p, best = table.n_thresholds.shape[0], (least, -1, 0, 0, 0)
    sums = np.empty((most_thresholds(table) + 1, n_sums(n_groups)))
    for shift in range(p):
        column = (first + shift) % p
        size = table.n_thresholds[column]
        sum_by_rank(table, column, rows, own, heavy, total, sums[: size + 1])
        best = best_threshold(sums[:size], total, column, best)
    return best


@kernel
def n_sums(n_groups):
    """Sums for each threshold: the gains of both ways to place two groups, else left and right."""
    return 2 if n_groups == 2 else 2 * n_groups


@kernel
def sum_by_rank(table, column, rows, own, heavy, total, sums):
    """Fill sums (size + 1, n_sums) with what the weights add at each threshold of a column.

    own and heavy are group and weight of `rows`. Of two groups it is what is gained where group 0
    is to be left and group 1 right, and the reverse; else the weight of each group that gets
    surely left, and that ceases to be surely right.
    """
    left_from, right_below = table.left_from[column], table.right_below[column]
    n_groups = total.shape[0]
    for index in range(sums.shape[0]):
        set_all(sums[index], 0.0)
    if n_groups == 2:
        for k in range(rows.shape[0]):
            row = rows[k]
            sums[left_from[row], own[k]] += heavy[k]
            sums[right_below[row], 1 - own[k]] -= heavy[k]
    elif sums.shape[0] == 2:  # most rows have rank 0 where categories or 0/1 are split
        for one in range(n_groups):
            sums[0, one], sums[0, n_groups + one] = total[one], total[one]
        for k in range(rows.shape[0]):
            if left_from[rows[k]] > 0:
                sums[0, own[k]] -= heavy[k]
            if right_below[rows[k]] > 0:
                sums[0, n_groups + own[k]] -= heavy[k]
    else:
        for k in range(rows.shape[0]):
            sums[left_from[rows[k]], own[k]] += heavy[k]
            sums[right_below[rows[k]], n_groups + own[k]] += heavy[k]


@kernel
def best_threshold(sums, total, column, best):
    """The best of `best` and the thresholds of a column, whose sums (size, n_sums) are given."""
    n_groups = total.shape[0]
    if n_groups == 2:
        straight, crossed = total[1], total[0]
        for index in range(sums.shape[0]):
            straight += sums[index, 0]
            crossed += sums[index, 1]
            if straight > best[0] + ROUNDING:
                best = straight, column, index, 0, 1
            if crossed > best[0] + ROUNDING:
                best = crossed, column, index, 1, 0
        return best
    sides = np.zeros((2, n_groups))
    on_left, on_right = sides[0], sides[1]
    for one in range(n_groups):
        on_right[one] = total[one]
    most_left, most_right = 0.0, np.inf  # of one group; the latter at the last look
    for index in range(sums.shape[0]):
        for one in range(n_groups):
            on_left[one] += sums[index, one]
            on_right[one] -= sums[index, n_groups + one]
            most_left = max(most_left, on_left[one])
        if most_left + most_right > best[0] + ROUNDING:
            most_right = largest_of(on_right)
        if most_left + most_right > best[0] + ROUNDING:
            value, left, right = two_groups(on_left, on_right)
            if value > best[0] + ROUNDING:
                best = value, column, index, left, right
    return best


@kernel
def two_groups(on_left, on_right):
    """The largest sum of a left and a right weight of different groups, and the groups."""
    left, right = index_of_largest(on_left), index_of_largest(on_right)
    if left != right:
        return on_left[left] + on_right[right], left, right
    most, first, second = -np.inf, left, right
    for other in range(on_left.shape[0]):
        if other != left:
            if on_left[left] + on_right[other] > most:
                most, first, second = on_left[left] + on_right[other], left, other
            if on_left[other] + on_right[right] > most:
                most, first, second = on_left[other] + on_right[right], other, right
    return most, first, second


@kernel
def all_sums(table, weight):
    """The sums (n_splits + p, n_sums) of all columns, one after the other, and total weights."""
    rows, p = rows_above(weight), table.n_thresholds.shape[0]
    own, heavy, total = of_rows(rows, table.label, weight, table.n_classes)
    sums, start = np.empty((all_thresholds(table) + p, n_sums(table.n_classes))), 0
    for column in range(p):
        end = start + table.n_thresholds[column] + 1
        sum_by_rank(table, column, rows, own, heavy, total, sums[start:end])
        start = end
    return sums, total


@kernel
def best_leaf(total):
    """Value and label of a leaf as a stump: column -1."""
    label = index_of_largest(total)
    return total[label], -1, 0, label, label


@kernel
def one_level(table, weight, first):
    """The best tree of at most one split: value less penalty, column (-1: a leaf), index, labels.

    Rows count by weight (n,).
    """
    rows, total = rows_above(weight), np.zeros(table.n_classes)
    for row in rows:
        total[table.label[row]] += weight[row]
    leaf, penalty = best_leaf(total), table.penalty
    least = leaf[0] + penalty
    found = best_box_split(table, rows, table.label, weight, table.n_classes, least, first)
    return net_stump(leaf, found, penalty)


@kernel
def net_stump(leaf, found, penalty):
    """The leaf where no split was found, else the split less its penalty."""
    if found[1] < 0:
        return leaf
    return found[0] - penalty, found[1], found[2], found[3], found[4]


@kernel
def least_side(sums, total):
    """The lesser of the weights that get surely left and stay surely right, of over two groups.

    A split keeps at most so much more than a leaf.
    """
    n_groups = total.shape[0]
    left, right = 0.0, 0.0
    for group in range(n_groups):
        left += sums[group]
        right += total[group] - sums[n_groups + group]
    return min(left, right)


@kernel
def two_stumps(table, own, whole, first):
    """`one_level` for two weights own (2, n) that add up to those of whole, from `all_sums`.

    Sums are made from the rows of the one that has fewer; those of the other are what is left.
    """
    sums, all_total = whole
    left, right = 0, 0
    for row in range(own.shape[1]):
        left += own[0, row] > 0.0
        right += own[1, row] > 0.0
    few, p, penalty = 0 if left < right else 1, table.n_thresholds.shape[0], table.penalty
    rows, end = rows_above(own[few]), 0
    label, heavy, total = of_rows(rows, table.label, own[few], table.n_classes)
    rest, starts = np.empty(table.n_classes), np.empty(p, np.int64)
    for one in range(table.n_classes):
        rest[one] = all_total[one] - total[one]
    for column in range(p):
        starts[column] = end + column
        end += table.n_thresholds[column]
    leaf, other_leaf = best_leaf(total), best_leaf(rest)
    best, other = (leaf[0] + penalty, -1, 0, 0, 0), (other_leaf[0] + penalty, -1, 0, 0, 0)
    part = np.empty((most_thresholds(table) + 1, sums.shape[1]))
    for shift in range(p):
        column = (first + shift) % p
        size, start = table.n_thresholds[column], starts[column]
        if size == 1 and table.n_classes > 2:
            more = least_side(sums[start], all_total) - ROUNDING
            if leaf[0] + more <= best[0] and other_leaf[0] + more <= other[0]:
                continue
        sum_by_rank(table, column, rows, label, heavy, total, part[: size + 1])
        best = best_threshold(part[:size], total, column, best)
        for index in range(size):
            for k in range(sums.shape[1]):
                part[index, k] = sums[start + index, k] - part[index, k]
        other = best_threshold(part[:size], rest, column, other)
    mine, others = net_stump(leaf, best, penalty), net_stump(other_leaf, other, penalty)
    return (mine, others) if few == 0 else (others, mine)
