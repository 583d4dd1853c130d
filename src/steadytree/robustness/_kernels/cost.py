"""Costs of reaching leaves, the robust loss that follows, and lower bounds of it by region.

The bounds count only wrong leaves inside a region as threats, so they never exceed the truth.
"""

from typing import Any, NamedTuple

import numpy as np

from steadytree._base.jit import kernel
from steadytree.models._kernels import set_all
from steadytree.robustness._kernels.arrays import sort_by, sum_of


class RobustTable(NamedTuple):
    """Rows and all their candidate splits: what being on either side of each costs them."""

    left_cost: Any  # (n_candidates, n), 0 where a row is on that side already
    right_cost: Any
    on_left: Any  # (n_candidates, n)
    feature: Any  # (n_candidates,): the split's column
    left_bins: Any  # (n_candidates, n_bins): bins that go left, the last for missing values
    right_bins: Any
    missing: Any  # (n_features, n): where a row lacks a value
    cost_level: Any  # (n_candidates, n): index of a crossing cost in the split's list of them
    label: Any  # (n,)
    weight: Any
    n_classes: int
    largest: bool  # whether the largest cost over columns counts, else their sum


class PriceIntervals(NamedTuple):
    """Intervals of the price of the budget; one of them holds the price of the worst perturbation.

    With a shared budget, losing weight w costs w times the row's cost, and the most weight that can
    be lost is the least over t >= 0 of ``budget * t + sum of weight * max(0, 1 - t * cost)``. An
    interval holds the prices t between two numbers; offset plus losses is never more than the
    truth. With a budget for each row there is one interval, and a row is lost within the limit.
    """

    offset: Any  # (n_intervals,): the budget times the lower price
    slope: Any  # (n_intervals,): the upper price
    cross: Any  # (n_candidates, n_levels, n_intervals): loss at each split's crossing costs
    limit: float  # budget of each row; if it is shared, costs above are as good as infinite
    shared: bool


N_PRICES = 64
SMALLEST_PRICE = 1e-300


@kernel
def box_costs(splits, sides, path_length, table, costs):
    """Fill costs (n,) with each row's cost of getting into a box; return whether it has values.

    The box is where splits[:path_length] are answered by sides[:path_length], 0 being left. Within
    a column the most expensive split counts, which is exact for intervals and sets of categories.
    """
    n_bins = table.left_bins.shape[1]
    set_all(costs, 0.0)
    for first in range(path_length):
        feature, repeated = table.feature[splits[first]], False
        for other in range(first):
            repeated = repeated or table.feature[splits[other]] == feature
        if repeated:
            continue
        observed, missing = False, False
        for bin_ in range(n_bins):
            inside = True
            for other in range(first, path_length):
                split = splits[other]
                if table.feature[split] == feature:
                    bins = table.left_bins if sides[other] == 0 else table.right_bins
                    inside = inside and bins[split, bin_]
            if inside and bin_ == n_bins - 1:
                missing = True
            elif inside:
                observed = True
        if not (observed or missing):
            set_all(costs, np.inf)
            return False
        add_column(first, feature, splits, sides, path_length, table, observed, costs)
    return True


@kernel
def add_column(first, feature, splits, sides, path_length, table, observed, costs):
    """Add a column's cost, that of its most expensive split; if not present, only missing fits."""
    alone, split, left = True, splits[first], sides[first] == 0
    for other in range(first + 1, path_length):
        alone = alone and table.feature[splits[other]] != feature
    for row in range(costs.shape[0]):
        highest = table.left_cost[split, row] if left else table.right_cost[split, row]
        if not alone:
            for other in range(first + 1, path_length):
                if table.feature[splits[other]] != feature:
                    continue
                if sides[other] == 0:
                    highest = max(highest, table.left_cost[splits[other], row])
                else:
                    highest = max(highest, table.right_cost[splits[other], row])
        if not observed and not table.missing[feature, row]:
            highest = np.inf
        costs[row] = max(costs[row], highest) if table.largest else costs[row] + highest


@kernel
def robust_loss(costs, weight, limit, shared, integer):
    """Most weight of rows that the budget can turn wrong, given each row's cost.

    Shared: all rows spend `limit` together, cheapest first, and of the first row that does not fit
    as many units of weight (or, unless `integer`, as large a part) as do. Else every row whose cost
    is at most `limit` is lost.
    """
    lost, highest = 0.0, 0.0
    for row in range(costs.shape[0]):
        if costs[row] == 0.0 or (costs[row] <= limit and not shared):
            lost += weight[row]
        elif costs[row] <= limit or (costs[row] < np.inf and not integer):
            highest = max(highest, costs[row])
    if not shared or highest == 0.0:
        return lost
    # rows of about the same price are paid at once: only those at which the budget ends are sorted
    scale = N_PRICES / highest if highest > SMALLEST_PRICE else 0.0
    sums = np.zeros((2, N_PRICES + 1))
    heavy, spent = sums[0], sums[1]
    for row in range(costs.shape[0]):
        if costs[row] > 0.0 and costs[row] <= highest:
            at = int(costs[row] * scale)
            heavy[at] += weight[row]
            spent[at] += weight[row] * costs[row]
    left = limit
    for at in range(N_PRICES + 1):
        if spent[at] > left:
            return lost + lost_in_order(costs, weight, (left, integer), (at, scale, highest))
        left -= spent[at]
        lost += heavy[at]
    return lost


@kernel
def lost_in_order(costs, weight, budget, prices):
    """Most weight lost of the rows with one rounded price; budget is (left, integer)."""
    left, integer = budget
    at, scale, highest = prices
    rows, n_rows = np.empty(costs.shape[0], dtype=np.int64), 0
    for row in range(costs.shape[0]):
        if costs[row] > 0.0 and costs[row] <= highest and int(costs[row] * scale) == at:
            rows[n_rows] = row
            n_rows += 1
    sort_by(costs, rows, n_rows)
    lost = 0.0
    for at_row in range(n_rows):
        row = rows[at_row]
        if costs[row] * weight[row] > left:
            part = left / costs[row]
            return lost + (np.floor(part) if integer else part)
        left -= costs[row] * weight[row]
        lost += weight[row]
    return lost


@kernel
def tree_costs(encoding, depth, table, costs):
    """Fill costs (n,) with each row's cost of getting a wrong answer from a tree.

    encoding is the tree in preorder at full size: a split, or -1 - label for a leaf whose indices
    below are unused. Leaves of a label that no row could have (n_classes) are left out.
    """
    n = costs.shape[0]
    work = np.zeros((4, depth + 2), dtype=np.int64)
    splits, sides, index, size = work[0], work[1], work[2], work[3]
    for level in range(depth + 1):
        size[level] = (1 << (depth - level)) - 1  # indices of a child's sub-tree
    reach = np.empty(n)
    set_all(costs, np.inf)
    level = 0
    while True:
        if encoding[index[level]] < 0:
            label = -1 - encoding[index[level]]
            if label < table.n_classes and box_costs(splits, sides, level, table, reach):
                for row in range(n):
                    if table.label[row] != label and reach[row] < costs[row]:
                        costs[row] = reach[row]
            level -= 1
            while level >= 0 and sides[level] == 1:
                level -= 1
            if level < 0:
                return
            sides[level] = 1
            index[level + 1] = index[level] + 1 + size[level]
        else:
            splits[level], sides[level] = encoding[index[level]], 0
            index[level + 1] = index[level] + 1
        level += 1


@kernel
def count_sides(rows, split, table, counts):
    """Fill counts (2, n_classes, n_levels) with weights by side; returns the number on the left."""
    for side in range(2):
        for label in range(counts.shape[1]):
            set_all(counts[side, label], 0.0)
    n_left = 0
    for index in range(rows.shape[0]):
        row = rows[index]
        side = 0 if table.on_left[split, row] else 1
        n_left += 1 - side
        counts[side, table.label[row], table.cost_level[split, row]] += table.weight[row]
    return n_left


@kernel
def leaf_loss(rows, table):
    """Weight of the rows that are not of the most frequent class."""
    counts = np.zeros(table.n_classes)
    total, most = 0.0, 0.0
    for index in range(rows.shape[0]):
        label = table.label[rows[index]]
        counts[label] += table.weight[rows[index]]
        total += table.weight[rows[index]]
        most = max(most, counts[label])
    return total - most


@kernel
def add_crossing(counts, cross, first, second, losses):
    """Add to losses (n_intervals,) what rows of the sides' labels lose by crossing the split."""
    # counts are those of `count_sides`, cross (n_levels, n_intervals) the split's losses; first and
    # second are the labels of its sides.
    for level in range(counts.shape[2]):
        heavy = counts[0, first, level] + counts[1, second, level]
        if heavy > 0.0:
            for interval in range(losses.shape[0]):
                losses[interval] += heavy * cross[level, interval]


@kernel
def lower_bound(counts, cross, penalty, value, bound):
    """Lower bound (n_intervals,) to what a split with any two labels loses; value is scratch."""
    n_classes = counts.shape[1]
    highest, all_rows = bound[0], 0.0
    for interval in range(bound.shape[0]):
        highest = max(highest, bound[interval])
    for side in range(2):
        for label in range(n_classes):
            for level in range(counts.shape[2]):
                all_rows += counts[side, label, level]
    for first in range(n_classes):
        for second in range(n_classes):
            correct = sum_of(counts[0, first]) + sum_of(counts[1, second])
            wrong = penalty + all_rows - correct
            if first == second or wrong >= highest:
                continue
            set_all(value, wrong)
            add_crossing(counts, cross, first, second, value)
            for interval in range(value.shape[0]):
                bound[interval] = min(bound[interval], value[interval])


@kernel
def stump_bound(rows, table, intervals, penalty, bound):
    """Fill bound (n_intervals,) with the least loss of a leaf or one split on the given rows."""
    set_all(bound, leaf_loss(rows, table))
    if bound[0] == 0.0:
        return
    counts = np.empty((2, table.n_classes, intervals.cross.shape[1]))
    value = np.empty(bound.shape[0])
    for split in range(table.feature.shape[0]):
        n_left = count_sides(rows, split, table, counts)
        if n_left > 0 and n_left < rows.shape[0]:  # else no better than a leaf
            lower_bound(counts, intervals.cross[split], penalty, value, bound)


@kernel
def split_rows(rows, split, table):
    """The rows on the left of a split, and those on its right."""
    found, n_left = np.empty(rows.shape[0], np.int64), 0
    for index in range(rows.shape[0]):
        n_left += table.on_left[split, rows[index]]
    left, right = 0, n_left
    for index in range(rows.shape[0]):
        if table.on_left[split, rows[index]]:
            found[left] = rows[index]
            left += 1
        else:
            found[right] = rows[index]
            right += 1
    return found[:n_left], found[n_left:]


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
    """Fill bound (n_intervals,) by a lower bound of two levels; charge: penalty, most splits."""
    penalty, most_splits = charge
    set_all(bound, leaf_loss(rows, table))
    if bound[0] == 0.0:
        return
    sides = np.empty((2, bound.shape[0]))
    below, beyond = sides[0], sides[1]
    for split in range(table.feature.shape[0]):
        left, right = split_rows(rows, split, table)
        if left.shape[0] == 0 or right.shape[0] == 0:
            continue
        stump_bound(left, table, intervals, penalty, below)
        most = -np.inf
        for interval in range(bound.shape[0]):
            most = max(most, bound[interval] - below[interval])
        if most <= penalty:
            continue
        stump_bound(right, table, intervals, penalty, beyond)
        if most_splits == 2:
            one_side_only(below, beyond, leaf_loss(left, table), leaf_loss(right, table))
        for interval in range(bound.shape[0]):
            value = penalty + below[interval] + beyond[interval]
            if value < bound[interval]:
                bound[interval] = value
