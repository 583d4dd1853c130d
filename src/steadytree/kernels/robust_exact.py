"""Least losses of two levels of questions on a region's rows, with all leaves inside as threats."""

import numpy as np
from numba import njit

from steadytree.kernels.robust_bounds import split_rows
from steadytree.kernels.robust_lists import (
    is_open,
    kept_options,
    narrow_pair,
    open_tests,
    stump_options,
)
from steadytree.kernels.robust_pairs import pair_lost, pair_total


@njit(cache=True, nogil=True)
def lower_by_pairs(left, right, weights, cells, penalty, bound):
    """Lower bound (n_cells,) to what the best pair of a left and a right option loses.

    left and right are (plans, costs, losses, splits), costs of the region's rows only.
    """
    left_costs, left_losses = left[1], left[2]
    right_costs, right_losses = right[1], right[2]
    for a in range(left_costs.shape[0]):
        for b in range(right_costs.shape[0]):
            for cell in range(bound.shape[0]):
                apart = penalty + left_losses[a, cell] + right_losses[b, cell]
                if apart >= bound[cell]:
                    continue
                if cells.shared:
                    slope = cells.slope[cell]
                    own = pair_total(left_costs, a, right_costs, b, weights, 0, slope)
                else:
                    own = pair_lost(left_costs, a, right_costs, b, weights, 0, cells.limit)
                charge = penalty * (1 + left[3][a] + right[3][b])
                bound[cell] = min(bound[cell], own + charge)


@njit(cache=True, nogil=True)
def exact_two_levels(path, table, cells, penalty, bound):
    """Lower bound (n_cells,) to the least loss of two levels of questions, each cell for itself.

    table holds the region's rows only; path is (tests, sides) with room for two more, its last
    entry of sides the number asked. bound must not be less than what a single leaf loses.
    """
    tests, sides = path
    n_asked, n_classes = sides[-1], table.n_classes
    n_tests, n_cells = table.feature.shape[0], bound.shape[0]
    most = n_tests * n_classes * (n_classes - 1) + n_classes
    left_plans, right_plans = np.empty((most, 3), np.int32), np.empty((most, 3), np.int32)
    left_losses, right_losses = np.empty((most, n_cells)), np.empty((most, n_cells))
    rows = np.arange(table.label.shape[0])
    weights = table.weight.reshape((1, -1))
    allowed = open_tests(tests, sides, n_asked, table)
    for test in range(n_tests):
        if not allowed[test]:
            continue
        own_left, own_right = split_rows(rows, test, table)
        if not is_open(own_left, own_right, table, cells, (penalty, 3), penalty - bound, 0.0):
            continue
        tests[n_asked], sides[n_asked] = test, 0
        below = open_tests(tests, sides, n_asked + 1, table)
        n_left = stump_options(own_left, below, table, cells, penalty, left_plans, left_losses)
        sides[n_asked] = 1
        below = open_tests(tests, sides, n_asked + 1, table)
        n_right = stump_options(own_right, below, table, cells, penalty, right_plans, right_losses)
        kept_left, kept_right = np.arange(n_left), np.arange(n_right)
        n_left, n_right = narrow_pair(
            left_losses, kept_left, right_losses, kept_right, penalty - bound, 0.0
        )
        if n_left == 0 or n_right == 0:
            continue
        tests[n_asked], sides[n_asked] = test, 0
        left = kept_options(
            left_plans, left_losses, kept_left[:n_left], tests, sides, n_asked + 1, table, cells
        )
        tests[n_asked], sides[n_asked] = test, 1
        right = kept_options(
            right_plans, right_losses, kept_right[:n_right], tests, sides, n_asked + 1, table, cells
        )
        lower_by_pairs(left, right, weights, cells, penalty, bound)
