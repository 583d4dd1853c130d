"""Costs of leaves, and the weight of rows that can be lost."""

from typing import Any, NamedTuple

import numpy as np

from steadytree._base.jit import kernel


class RobustTable(NamedTuple):
    """Rows and the questions that may be asked of them.

    `left_cost`, `right_cost` (n_tests, n): cost of being on either side of a test, 0 where a row is
    already; `on_left` (n_tests, n) is the side it is on. `feature` (n_tests,) and `left_bins`,
    `right_bins` (n_tests, n_bins): a test's column and which of its bins go where, the last bin
    being for missing values. `gone` (n_features, n):
    where a row lacks a value. `code` (n_tests, n): place of a row's cost of crossing a test in the
    test's list of such costs. `label`, `weight` (n,). `largest`: cost is the largest over columns,
    else their sum.
    """

    left_cost: Any
    right_cost: Any
    on_left: Any
    feature: Any
    left_bins: Any
    right_bins: Any
    gone: Any
    code: Any
    label: Any
    weight: Any
    n_classes: int
    largest: bool


class Cells(NamedTuple):
    """Ways in which the budget may be priced; one of them fits the worst perturbation.

    With a shared budget, losing weight w costs w times the row's cost, and the most weight that can
    be lost is the least over t >= 0 of ``budget * t + sum of weight * max(0, 1 - t * cost)``.
    A cell holds the t between two numbers: `offset` is the budget times the lower one, `slope` the
    upper one, so offset plus losses is never more than the truth. With a budget for each row there
    is one cell, and a row is lost where its cost is at most `limit`. With a shared one, costs above
    `limit` are as good as infinite.
    `cross` (n_tests, n_codes, n_cells) is the loss at each test's crossing costs.
    """

    offset: Any
    slope: Any
    cross: Any
    limit: float
    shared: bool


N_PRICES = 64
SMALLEST_PRICE = 1e-300


@kernel
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


@kernel
def add_column(first, feature, tests, sides, n_asked, table, present, costs):
    """Add one column's cost: that of its dearest test; only missing ones fit if not present."""
    side = table.left_cost if sides[first] == 0 else table.right_cost
    dearest = side[tests[first]]
    for other in range(first + 1, n_asked):
        if table.feature[tests[other]] == feature:
            side = table.left_cost if sides[other] == 0 else table.right_cost
            dearest = np.maximum(dearest, side[tests[other]])
    if not present:
        dearest = np.where(table.gone[feature], dearest, np.inf)
    if table.largest:
        for row in range(costs.shape[0]):
            costs[row] = max(costs[row], dearest[row])
    else:
        for row in range(costs.shape[0]):
            costs[row] += dearest[row]


@kernel
def robust_loss(costs, weight, limit, shared, whole):
    """Most weight of rows that the budget can turn wrong, given each row's cost.

    Shared: all rows spend `limit` together, cheapest first, and of the first row that does not fit
    as many units of weight (or, unless `whole`, as large a part) as do. Else every row whose cost
    is at most `limit` is lost.
    """
    lost, dearest = 0.0, 0.0
    for row in range(costs.shape[0]):
        if costs[row] == 0.0 or (costs[row] <= limit and not shared):
            lost += weight[row]
        elif costs[row] <= limit or (costs[row] < np.inf and not whole):
            dearest = max(dearest, costs[row])
    if not shared or dearest == 0.0:
        return lost
    # rows of about the same price are paid for at once: only those where money runs out are sorted
    scale = N_PRICES / dearest if dearest > SMALLEST_PRICE else 0.0
    heavy, spent = np.zeros(N_PRICES + 1), np.zeros(N_PRICES + 1)
    for row in range(costs.shape[0]):
        if costs[row] > 0.0 and costs[row] <= dearest:
            at = int(costs[row] * scale)
            heavy[at] += weight[row]
            spent[at] += weight[row] * costs[row]
    left = limit
    for at in range(N_PRICES + 1):
        if spent[at] > left:
            return lost + lost_in_order(costs, weight, (left, whole), (at, scale, dearest))
        left -= spent[at]
        lost += heavy[at]
    return lost


@kernel
def lost_in_order(costs, weight, money, prices):
    """Most weight that can be lost of the rows with one rounded price; money is (left, whole)."""
    left, whole = money
    at, scale, dearest = prices
    rows, n_rows = np.empty(costs.shape[0], dtype=np.int64), 0
    for row in range(costs.shape[0]):
        if costs[row] > 0.0 and costs[row] <= dearest and int(costs[row] * scale) == at:
            rows[n_rows] = row
            n_rows += 1
    rows, lost = rows[:n_rows], 0.0
    for row in rows[np.argsort(costs[rows])]:
        if costs[row] * weight[row] > left:
            part = left / costs[row]
            return lost + (np.floor(part) if whole else part)
        left -= costs[row] * weight[row]
        lost += weight[row]
    return lost


@kernel
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
