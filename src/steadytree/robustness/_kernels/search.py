"""Better and better trees by changing one question at a time."""

import numpy as np

from steadytree._base.jit import kernel
from steadytree.robustness._kernels.bounds import split_rows
from steadytree.robustness._kernels.cost import box_costs, robust_loss, tree_costs
from steadytree.robustness._kernels.lists import (
    is_open,
    open_tests,
    options_of_sides,
    room_for_options,
)
from steadytree.robustness._kernels.pairs import pair_lost, pair_total


@kernel
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


@kernel
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


@kernel
def plan_value(plan, depth, table, spending, costs):
    """Lost weight plus penalty of a full plan; spending is (limit, penalty, shared, whole)."""
    limit, penalty, shared, whole = spending
    tree_costs(plan, depth, table, costs)
    return robust_loss(costs, table.weight, limit, shared, whole) + penalty * count_splits(
        plan, depth
    )


@kernel
def count_splits(plan, depth):
    """Questions that a plan really asks."""
    place, height = node_places(depth)
    closed = np.zeros(plan.shape[0], dtype=np.bool_)  # places under a leaf
    n_splits = 0
    for node in range(place.shape[0]):
        at, below = place[node], (1 << height[node]) - 1
        if closed[at] or plan[at] < 0:
            closed[at + 1], closed[at + 1 + below] = True, True
        else:
            n_splits += 1
    return n_splits


@kernel
def node_places(depth):
    """Place in the plan, and height, of every inner node of a full tree; parents first."""
    n_inner = (1 << depth) - 1
    place, height = np.empty(n_inner, dtype=np.int64), np.empty(n_inner, dtype=np.int64)
    n_found = 0
    waiting = np.empty((n_inner + 1, 2), dtype=np.int64)
    waiting[0, 0], waiting[0, 1] = 0, depth
    top = 1
    while top > 0:
        top -= 1
        at, high = waiting[top, 0], waiting[top, 1]
        place[n_found], height[n_found] = at, high
        n_found += 1
        if high > 1:
            waiting[top, 0], waiting[top, 1] = at + (1 << high), high - 1
            waiting[top + 1, 0], waiting[top + 1, 1] = at + 1, high - 1
            top += 2
    return place, height


@kernel
def path_of(plan, at, depth, tests, sides):
    """Fill tests and sides with the questions above a place; returns their number."""
    place, high, n_asked = 0, depth, 0
    while place != at:
        below = (1 << high) - 1
        tests[n_asked] = plan[place]
        sides[n_asked] = 0 if at < place + 1 + below else 1
        place = place + 1 if sides[n_asked] == 0 else place + 1 + below
        high, n_asked = high - 1, n_asked + 1
    return n_asked


@kernel
def best_stump(plan, at, depth, table, spending, best):
    """Put the best question and labels at a lowest inner node; returns the value, at most best."""
    n, n_classes = table.label.shape[0], table.n_classes
    limit, penalty, shared, whole = spending
    kept, winner = plan[at], (plan[at], plan[at + 1], plan[at + 2])
    base, cost, left, right = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    tests, sides = np.empty(depth + 1, dtype=np.int64), np.empty(depth + 1, dtype=np.int64)
    plan[at] = -1 - n_classes
    tree_costs(plan, depth, table, base)
    extra = penalty * (count_splits(plan, depth) + 1)
    plan[at] = kept
    n_asked = path_of(plan, at, depth, tests, sides)
    for test in range(table.feature.shape[0]):
        tests[n_asked], sides[n_asked] = test, 0
        box_costs(tests, sides, n_asked + 1, table, left)
        sides[n_asked] = 1
        box_costs(tests, sides, n_asked + 1, table, right)
        for first in range(n_classes):
            for second in range(n_classes):
                if first == second and test > 0:
                    continue
                for row in range(n):
                    cost[row] = base[row]
                    if table.label[row] != first and left[row] < cost[row]:
                        cost[row] = left[row]
                    if table.label[row] != second and right[row] < cost[row]:
                        cost[row] = right[row]
                value = extra + robust_loss(cost, table.weight, limit, shared, whole)
                if value < best:
                    best, winner = value, (test, -1 - first, -1 - second)
    plan[at], plan[at + 1], plan[at + 2] = winner
    return best


@kernel
def improve_plan(plan, depth, table, spending, order):
    """Change one question (the lowest with their labels) at a time while the value falls.

    plan is a full plan, changed in place; order lists its inner nodes in the order to try them.
    Returns the value.
    """
    place, height = node_places(depth)
    costs = np.empty(table.label.shape[0])
    best, before = plan_value(plan, depth, table, spending, costs), np.inf
    while best < before:
        before = best
        for turn in range(order.shape[0]):
            at = place[order[turn]]
            if height[order[turn]] == 1:
                best = best_stump(plan, at, depth, table, spending, best)
                continue
            winner = plan[at]
            for test in range(table.feature.shape[0]):
                plan[at] = test
                value = plan_value(plan, depth, table, spending, costs)
                if value < best:
                    best, winner = value, test
            plan[at] = winner
    return best
