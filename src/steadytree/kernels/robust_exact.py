"""Least losses of two levels of questions on a region's rows, with all leaves inside as threats."""

import numpy as np
from numba import njit

from steadytree.kernels.robust_bounds import split_rows
from steadytree.kernels.robust_lists import is_open, open_tests, options_of_sides, room_for_options
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
    room = room_for_options(table, bound.shape[0])
    rows = np.arange(table.label.shape[0])
    weights = table.weight.reshape((1, -1))
    allowed = open_tests(tests, sides, sides[-1], table)
    for test in range(allowed.shape[0]):
        if not allowed[test]:
            continue
        own, rest = split_rows(rows, test, table), penalty - bound
        if not is_open(own[0], own[1], table, cells, (penalty, 3), rest, 0.0):
            continue
        left, right = options_of_sides(path, test, own, table, cells, penalty, rest, 0.0, room)
        lower_by_pairs(left, right, weights, cells, penalty, bound)
