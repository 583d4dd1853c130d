"""Costs of leaves, and the weight of rows that can be lost."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def box_costs(tests, sides, n_asked, table, costs):
    """Fill costs (n,) with each row's cost of getting into a box; return whether it has values.

    The box is where tests[:n_asked] are answered by sides[:n_asked], 0 being left. Within a column
    the dearest test counts, which is exact for intervals and sets of categories.
    """
    n_bins = table.left_bins.shape[1]
    costs[:] = 0.0
    for first in range(n_asked):
        feature, repeated = table.feature[tests[first]], False
        for other in range(first):
            repeated = repeated or table.feature[tests[other]] == feature
        if repeated:
            continue
        present, missing = False, False
        for bin_ in range(n_bins):
            inside = True
            for other in range(first, n_asked):
                test = tests[other]
                if table.feature[test] == feature:
                    bins = table.left_bins if sides[other] == 0 else table.right_bins
                    inside = inside and bins[test, bin_]
            if inside and bin_ == n_bins - 1:
                missing = True
            elif inside:
                present = True
        if not (present or missing):
            costs[:] = np.inf
            return False
        add_column(first, feature, tests, sides, n_asked, table, present, costs)
    return True


@njit(cache=True, nogil=True)
def add_column(first, feature, tests, sides, n_asked, table, present, costs):
    """Add one column's cost: that of its dearest test; only missing ones fit if not present."""
    for row in range(costs.shape[0]):
        dearest = 0.0
        for other in range(first, n_asked):
            test = tests[other]
            if table.feature[test] == feature:
                side = table.left_cost if sides[other] == 0 else table.right_cost
                dearest = max(dearest, side[test, row])
        if not present and not table.gone[feature, row]:
            dearest = np.inf
        costs[row] = max(costs[row], dearest) if table.largest else costs[row] + dearest


@njit(cache=True, nogil=True)
def lost_weight(costs, weight, limit, shared, whole):
    """Most weight of rows that the budget can turn wrong, given each row's cost.

    Shared: all rows spend `limit` together, cheapest first, and of the first row that does not fit
    as many units of weight (or, unless `whole`, as large a part) as do. Else every row whose cost
    is at most `limit` is lost.
    """
    lost, n_paid = 0.0, 0
    for row in range(costs.shape[0]):
        if costs[row] == 0.0 or (costs[row] <= limit and not shared):
            lost += weight[row]
        elif costs[row] <= limit or (costs[row] < np.inf and not whole):
            n_paid += 1
    if not shared or n_paid == 0:
        return lost
    price, heavy = np.empty(n_paid), np.empty(n_paid)
    n_paid = 0
    for row in range(costs.shape[0]):
        cost = costs[row]
        if cost > 0.0 and (cost <= limit or (cost < np.inf and not whole)):
            price[n_paid], heavy[n_paid] = cost, weight[row]
            n_paid += 1
    order, left = np.argsort(price), limit
    for place in range(n_paid):
        cost, own = price[order[place]], heavy[order[place]]
        if cost * own <= left:
            left -= cost * own
            lost += own
        else:
            part = left / cost
            return lost + (np.floor(part) if whole else part)
    return lost


@njit(cache=True, nogil=True)
def tree_costs(plan, depth, table, costs):
    """Fill costs (n,) with each row's cost of getting a wrong answer from a tree.

    plan is the tree in preorder at full size: a test, or -1 - label for a leaf whose places below
    are unused. Leaves of a label that no row could have (n_classes) are left out.
    """
    n = costs.shape[0]
    tests, sides = np.empty(depth + 1, dtype=np.int64), np.empty(depth + 1, dtype=np.int64)
    place = np.zeros(depth + 2, dtype=np.int64)
    size = np.empty(depth + 1, dtype=np.int64)
    for level in range(depth + 1):
        size[level] = (1 << (depth - level)) - 1  # places of a child's sub-tree
    reach = np.empty(n)
    costs[:] = np.inf
    level = 0
    while True:
        if plan[place[level]] < 0:
            label = -1 - plan[place[level]]
            if label < table.n_classes and box_costs(tests, sides, level, table, reach):
                for row in range(n):
                    if table.label[row] != label and reach[row] < costs[row]:
                        costs[row] = reach[row]
            level -= 1
            while level >= 0 and sides[level] == 1:
                level -= 1
            if level < 0:
                return
            sides[level] = 1
            place[level + 1] = place[level] + 1 + size[level]
        else:
            tests[level], sides[level] = plan[place[level]], 0
            place[level + 1] = place[level] + 1
        level += 1
