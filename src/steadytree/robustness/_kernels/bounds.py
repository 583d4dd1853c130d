"""Least losses that any sub-tree must have on the rows of its own region, cell by cell.

Only wrong leaves inside the region are counted as threats, so these never exceed the truth.
"""

import numpy as np

from steadytree._base.jit import kernel


@kernel
def count_sides(rows, test, table, counts):
    """Fill counts (2, n_classes, n_codes) with weights on both sides; returns how many are left."""
    counts[:] = 0.0
    n_left = 0
    for place in range(rows.shape[0]):
        row = rows[place]
        side = 0 if table.on_left[test, row] else 1
        n_left += 1 - side
        counts[side, table.label[row], table.code[test, row]] += table.weight[row]
    return n_left


@kernel
def split_losses(rows, test, table, cells, counts, left_loss, right_loss):
    """Fill left_loss, right_loss (n_classes, n_cells): losses of a side's rows under each label.

    Rows of the side's own label are lost as far as crossing the test is cheap, the label beyond
    being another. counts (2, n_classes, n_codes) is scratch. Returns the number of rows on the
    left.
    """
    n_classes, n_cells = left_loss.shape
    n_left = count_sides(rows, test, table, counts)
    for side in range(2):
        loss = left_loss if side == 0 else right_loss
        total = 0.0
        for label in range(n_classes):
            own = 0.0
            loss[label, :] = 0.0
            for code in range(counts.shape[2]):
                heavy = counts[side, label, code]
                if heavy > 0.0:
                    own += heavy
                    for cell in range(n_cells):
                        loss[label, cell] += heavy * cells.cross[test, code, cell]
            total += own
            for cell in range(n_cells):
                loss[label, cell] -= own
        for label in range(n_classes):
            for cell in range(n_cells):
                loss[label, cell] += total
    return n_left


@kernel
def leaf_loss(rows, table):
    """Weight of the rows that are not of the most frequent class."""
    counts = np.zeros(table.n_classes)
    total = 0.0
    for place in range(rows.shape[0]):
        counts[table.label[rows[place]]] += table.weight[rows[place]]
        total += table.weight[rows[place]]
    return total - counts.max()


@kernel
def lower_bound(counts, cross, penalty, value, bound):
    """Lower bound (n_cells,) to what a question with any two labels loses; value is scratch.

    counts are those of `count_sides`, cross (n_codes, n_cells) the question's losses.
    """
    n_classes, n_codes = counts.shape[1], counts.shape[2]
    highest, all_rows = bound.max(), counts.sum()
    for first in range(n_classes):
        for second in range(n_classes):
            right = counts[0, first].sum() + counts[1, second].sum()
            wrong = penalty + all_rows - right
            if first == second or wrong >= highest:
                continue
            value[:] = wrong
            for code in range(n_codes):
                heavy = counts[0, first, code] + counts[1, second, code]
                if heavy > 0.0:
                    for cell in range(value.shape[0]):
                        value[cell] += heavy * cross[code, cell]
            for cell in range(value.shape[0]):
                bound[cell] = min(bound[cell], value[cell])


@kernel
def stump_bound(rows, table, cells, penalty, bound):
    """Fill bound (n_cells,) with the least loss of a leaf or one question on the given rows."""
    bound[:] = leaf_loss(rows, table)
    if bound[0] == 0.0:
        return
    counts = np.empty((2, table.n_classes, cells.cross.shape[1]))
    value = np.empty_like(bound)
    for test in range(table.feature.shape[0]):
        n_left = count_sides(rows, test, table, counts)
        if n_left > 0 and n_left < rows.shape[0]:  # else no better than a leaf
            lower_bound(counts, cells.cross[test], penalty, value, bound)


@kernel
def split_rows(rows, test, table):
    """The rows on the left of a test, and those on its right."""
    left, right = np.empty_like(rows), np.empty_like(rows)
    n_left, n_right = 0, 0
    for place in range(rows.shape[0]):
        if table.on_left[test, rows[place]]:
            left[n_left] = rows[place]
            n_left += 1
        else:
            right[n_right] = rows[place]
            n_right += 1
    return left[:n_left], right[:n_right]


@kernel
def one_side_only(below, beyond, left_leaf, right_leaf):
    """Change losses of both sides, cell by cell, to what they are with a leaf on one of them."""
    for cell in range(below.shape[0]):
        if left_leaf + beyond[cell] < below[cell] + right_leaf:
            below[cell] = left_leaf
        else:
            beyond[cell] = right_leaf


@kernel
def two_level_bound(rows, table, cells, charge, bound):
    """Fill bound (n_cells,) with a lower bound on the loss of two levels of questions.

    charge is (penalty of a question, most questions), the latter 2 or 3.
    """
    penalty, most_splits = charge
    bound[:] = leaf_loss(rows, table)
    if bound[0] == 0.0:
        return
    below, beyond = np.empty_like(bound), np.empty_like(bound)
    for test in range(table.feature.shape[0]):
        left, right = split_rows(rows, test, table)
        if left.shape[0] == 0 or right.shape[0] == 0:
            continue
        stump_bound(left, table, cells, penalty, below)
        if (bound - below).max() <= penalty:
            continue
        stump_bound(right, table, cells, penalty, beyond)
        if most_splits == 2:
            one_side_only(below, beyond, leaf_loss(left, table), leaf_loss(right, table))
        for cell in range(bound.shape[0]):
            value = penalty + below[cell] + beyond[cell]
            if value < bound[cell]:
                bound[cell] = value
