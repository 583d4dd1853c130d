"""Least losses that any sub-tree must have on the rows of its own region, cell by cell.

Only wrong leaves inside the region are counted as threats, so these never exceed the truth.
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def split_losses(rows, test, table, cells, counts, left_loss, right_loss):
    """Fill left_loss, right_loss (n_classes, n_cells): losses of a side's rows under each label.

    Rows of the side's own label are lost as far as crossing the test is cheap, the label beyond
    being another. counts (2, n_classes, n_codes) is scratch. Returns the number of rows on the
    left.
    """
    n_classes, n_cells = left_loss.shape
    counts[:] = 0.0
    n_left = 0
    for place in range(rows.shape[0]):
        row = rows[place]
        side = 0 if table.on_left[test, row] else 1
        n_left += 1 - side
        counts[side, table.label[row], table.code[test, row]] += table.weight[row]
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


@njit(cache=True, nogil=True)
def leaf_loss(rows, table):
    """Weight of the rows that are not of the most frequent class."""
    counts = np.zeros(table.n_classes)
    total = 0.0
    for place in range(rows.shape[0]):
        counts[table.label[rows[place]]] += table.weight[rows[place]]
        total += table.weight[rows[place]]
    return total - counts.max()


@njit(cache=True, nogil=True)
def least_of_pairs(left_loss, right_loss, cell):
    """Least sum of a left and a right loss with different labels, in one cell."""
    n_classes = left_loss.shape[0]
    best = np.inf
    first, second, third, fourth = 0, -1, 0, -1  # least and next of each side
    for label in range(1, n_classes):
        if left_loss[label, cell] < left_loss[first, cell]:
            first, second = label, first
        elif second < 0 or left_loss[label, cell] < left_loss[second, cell]:
            second = label
        if right_loss[label, cell] < right_loss[third, cell]:
            third, fourth = label, third
        elif fourth < 0 or right_loss[label, cell] < right_loss[fourth, cell]:
            fourth = label
    if first != third:
        return left_loss[first, cell] + right_loss[third, cell]
    if second >= 0:
        best = left_loss[second, cell] + right_loss[third, cell]
        best = min(best, left_loss[first, cell] + right_loss[fourth, cell])
    return best


@njit(cache=True, nogil=True)
def stump_bound(rows, table, cells, penalty, bound):
    """Fill bound (n_cells,) with the least loss of a leaf or one question on the given rows."""
    n_cells, n_codes = cells.offset.shape[0], cells.cross.shape[1]
    bound[:] = leaf_loss(rows, table)
    if bound[0] == 0.0:
        return
    counts = np.empty((2, table.n_classes, n_codes))
    left_loss, right_loss = (
        np.empty((table.n_classes, n_cells)),
        np.empty((table.n_classes, n_cells)),
    )
    for test in range(table.feature.shape[0]):
        n_left = split_losses(rows, test, table, cells, counts, left_loss, right_loss)
        if n_left == 0 or n_left == rows.shape[0]:
            continue  # no better than a leaf
        for cell in range(n_cells):
            value = penalty + least_of_pairs(left_loss, right_loss, cell)
            if value < bound[cell]:
                bound[cell] = value


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def two_level_bound(rows, table, cells, penalty, bound):
    """Fill bound (n_cells,) with a lower bound on the loss of two levels of questions."""
    bound[:] = leaf_loss(rows, table)
    if bound[0] == 0.0:
        return
    below, beyond = np.empty_like(bound), np.empty_like(bound)
    for test in range(table.feature.shape[0]):
        left, right = split_rows(rows, test, table)
        if left.shape[0] == 0 or right.shape[0] == 0:
            continue
        stump_bound(left, table, cells, penalty, below)
        stump_bound(right, table, cells, penalty, beyond)
        for cell in range(bound.shape[0]):
            value = penalty + below[cell] + beyond[cell]
            if value < bound[cell]:
                bound[cell] = value
