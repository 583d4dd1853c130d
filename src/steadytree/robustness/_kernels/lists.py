"""Lists of sub-trees that could be part of a tree better than the target."""

import numpy as np

from steadytree._base.jit import kernel
from steadytree.robustness._kernels.bounds import (
    leaf_loss,
    one_side_only,
    split_losses,
    split_rows,
    stump_bound,
)
from steadytree.robustness._kernels.cost import box_costs
from steadytree.robustness._kernels.pairs import (
    promising_pairs,
    region_weights,
    strongest_first,
    undominated,
)

WINDOW = 256  # sub-trees that others are compared with


@kernel
def open_tests(tests, sides, n_asked, table):
    """Which tests leave values on both sides of a box; returns (n_tests,) bool."""
    n_tests, n_bins = table.left_bins.shape
    found = np.ones(n_tests, dtype=np.bool_)
    for test in range(n_tests):
        left, right = False, False
        for bin_ in range(n_bins):
            inside = True
            for place in range(n_asked):
                other = tests[place]
                if table.feature[other] == table.feature[test]:
                    bins = table.left_bins if sides[place] == 0 else table.right_bins
                    inside = inside and bins[other, bin_]
            left = left or (inside and table.left_bins[test, bin_])
            right = right or (inside and table.right_bins[test, bin_])
        found[test] = left and right
    return found


@kernel
def stump_options(rows, allowed, table, cells, penalty, plans, losses):
    """Fill plans (m, 3) and losses (m, n_cells) with every leaf and every question on a region.

    rows are the region's own; allowed (n_tests,) the questions. Returns their number.
    """
    n_classes, n_cells = table.n_classes, cells.offset.shape[0]
    counts = np.empty((2, n_classes, cells.cross.shape[1]))
    left_loss, right_loss = np.empty((n_classes, n_cells)), np.empty((n_classes, n_cells))
    weights, total, n_options = np.zeros(n_classes), 0.0, 0
    for place in range(rows.shape[0]):
        weights[table.label[rows[place]]] += table.weight[rows[place]]
        total += table.weight[rows[place]]
    for label in range(n_classes):
        plans[n_options, 0], plans[n_options, 1], plans[n_options, 2] = -1 - label, 0, 0
        losses[n_options, :] = total - weights[label]
        n_options += 1
    for test in range(allowed.shape[0]):
        if not allowed[test]:
            continue
        split_losses(rows, test, table, cells, counts, left_loss, right_loss)
        for first in range(n_classes):
            for second in range(n_classes):
                if first == second:
                    continue
                plans[n_options, 0] = test
                plans[n_options, 1], plans[n_options, 2] = -1 - first, -1 - second
                for cell in range(n_cells):
                    losses[n_options, cell] = (
                        penalty + left_loss[first, cell] + right_loss[second, cell]
                    )
                n_options += 1
    return n_options


@kernel
def keep_promising(losses, kept, n_kept, rest, target):
    """Keep those of kept[:n_kept] whose losses plus `rest` are below the target in some cell."""
    n_left = 0
    for place in range(n_kept):
        item = kept[place]
        for cell in range(rest.shape[0]):
            if losses[item, cell] + rest[cell] < target:
                kept[n_left] = item
                n_left += 1
                break
    return n_left


@kernel
def least_losses(losses, kept, n_kept, least):
    """Fill least (n_cells,) with the least loss among kept[:n_kept], cell by cell."""
    least[:] = np.inf
    for place in range(n_kept):
        for cell in range(least.shape[0]):
            if losses[kept[place], cell] < least[cell]:
                least[cell] = losses[kept[place], cell]


@kernel
def narrow_pair(left_losses, kept_left, right_losses, kept_right, rest, target):
    """Keep on each side what could go with the best of the other; returns both numbers."""
    n_left, n_right = kept_left.shape[0], kept_right.shape[0]
    least, room = np.empty_like(rest), np.empty_like(rest)
    while n_left > 0 and n_right > 0:
        before = n_left + n_right
        least_losses(right_losses, kept_right, n_right, least)
        room[:] = rest + least
        n_left = keep_promising(left_losses, kept_left, n_left, room, target)
        least_losses(left_losses, kept_left, n_left, least)
        room[:] = rest + least
        n_right = keep_promising(right_losses, kept_right, n_right, room, target)
        if n_left + n_right == before:
            return n_left, n_right
    return 0, 0


@kernel
def stump_costs(plans, kept, tests, sides, n_asked, table, costs):
    """Fill costs (n_kept, n) with each row's cost of a wrong answer in each of the kept options."""
    n = table.label.shape[0]
    whole, left, right = np.empty(n), np.empty(n), np.empty(n)
    box_costs(tests, sides, n_asked, table, whole)
    last = -1
    for place in range(kept.shape[0]):
        option = kept[place]
        test = plans[option, 0]
        if test < 0:
            for row in range(n):
                wrong = table.label[row] != -1 - test
                costs[place, row] = whole[row] if wrong else np.inf
            continue
        if test != last:
            tests[n_asked], sides[n_asked], last = test, 0, test
            box_costs(tests, sides, n_asked + 1, table, left)
            sides[n_asked] = 1
            box_costs(tests, sides, n_asked + 1, table, right)
        first, second = -1 - plans[option, 1], -1 - plans[option, 2]
        for row in range(n):
            cost = left[row] if table.label[row] != first else np.inf
            if table.label[row] != second and right[row] < cost:
                cost = right[row]
            costs[place, row] = cost


@kernel
def region_losses(costs, region, weight, cells, losses):
    """Fill losses (n_regions, n_cells) with the summed losses of each region's rows."""
    losses[:] = 0.0
    n_cells = losses.shape[1]
    for row in range(costs.shape[0]):
        cost, heavy, at = costs[row], weight[row], region[row]
        if not cells.shared:
            if cost <= cells.limit:
                losses[at, 0] += heavy
        elif cost * cells.slope[0] < 1.0:
            for cell in range(n_cells):
                losses[at, cell] += heavy * max(0.0, 1.0 - cells.slope[cell] * cost)


@kernel
def beats(loss, bounds, offset, extra, target):
    """Whether some cell stays below the target.

    Summed are own losses and, for other regions, the larger of what they must lose anyway and what
    they lose to this sub-tree.
    """
    for cell in range(offset.shape[0]):
        total = offset[cell] + extra + loss[0, cell]
        for other in range(1, bounds.shape[0]):
            total += max(bounds[other, cell], loss[other, cell])
        if total < target:
            return True
    return False


@kernel
def is_same(plan, other):
    """Whether two plans are equal; a question between equal sub-trees is idle."""
    return np.array_equal(plan, other)


@kernel
def add_leaves(tests, sides, n_asked, outside, table, cells, target, found):
    """Put every single leaf that may beat the target into `found`; returns their number."""
    plans, costs, losses, splits = found
    region, bounds = outside
    n, n_found = costs.shape[1], 0
    whole, cost, loss = np.empty(n), np.empty(n), np.empty_like(bounds)
    box_costs(tests, sides, n_asked, table, whole)
    for label in range(table.n_classes):
        for row in range(n):
            cost[row] = whole[row] if table.label[row] != label else np.inf
        region_losses(cost, region, table.weight, cells, loss)
        if beats(loss, bounds, cells.offset, 0.0, target):
            plans[n_found] = 0
            plans[n_found, 0] = -1 - label
            costs[n_found], losses[n_found], splits[n_found] = cost, loss[0], 0
            n_found += 1
    return n_found


@kernel
def join_pairs(test, left, right, pairs, outside, table, cells, charge, target, found, n_found):
    """Add to `found` those of the given pairs of sub-trees under a test that may beat the target.

    left, right and found are (plans, costs, losses, splits), the losses with penalties; outside is
    (region, bounds): region (n,) is 0 for the rows of this sub-tree, else the number of their
    region, whose least losses are bounds (n_regions, n_cells). charge is (penalty of a question,
    most questions). Returns the number found so far, and the number of pairs looked at: fewer than
    there are where `found` is full.
    """
    penalty, most_splits = charge
    left_plans, left_costs, _, left_splits = left
    right_plans, right_costs, _, right_splits = right
    plans, costs, losses, splits = found
    region, bounds = outside
    n, size = costs.shape[1], left_plans.shape[1]
    cost, loss = np.empty(n), np.empty_like(bounds)
    for place in range(pairs.shape[0]):
        a, b = pairs[place, 0], pairs[place, 1]
        n_splits = left_splits[a] + right_splits[b] + 1
        if n_splits > most_splits or is_same(left_plans[a], right_plans[b]):
            continue
        for row in range(n):
            cost[row] = min(left_costs[a, row], right_costs[b, row])
        region_losses(cost, region, table.weight, cells, loss)
        if not beats(loss, bounds, cells.offset, penalty * n_splits, target):
            continue
        if n_found >= plans.shape[0]:
            return n_found, place
        plans[n_found, 0] = test
        plans[n_found, 1 : 1 + size] = left_plans[a]
        plans[n_found, 1 + size :] = right_plans[b]
        costs[n_found], losses[n_found] = cost, loss[0] + penalty * n_splits
        splits[n_found] = n_splits
        n_found += 1
    return n_found, pairs.shape[0]


@kernel
def kept_options(plans, losses, kept, tests, sides, n_asked, table, cells):
    """The kept leaves and questions as (plans, costs, losses, splits), but for worse ones."""
    costs = np.empty((kept.shape[0], table.label.shape[0]))
    stump_costs(plans, kept, tests, sides, n_asked, table, costs)
    order = strongest_first(costs, cells.limit)
    costs, kept = costs[order], kept[order]
    splits = np.empty(kept.shape[0], dtype=np.int64)
    for place in range(kept.shape[0]):
        splits[place] = 1 if plans[kept[place], 0] >= 0 else 0
    flags = undominated(costs, splits, cells.limit, cells.shared, WINDOW)
    kept = kept[flags]
    return plans[kept], costs[flags], losses[kept], splits[flags]


@kernel
def is_open(left, right, table, cells, charge, rest, target):
    """Whether some leaves or questions left and right of a test may stay below the target.

    left and right are the rows of its sides, rest (n_cells,) what is lost anyway.
    """
    penalty, most_splits = charge
    below, beyond = np.empty_like(rest), np.empty_like(rest)
    left_leaf, right_leaf = leaf_loss(left, table), leaf_loss(right, table)
    below[:], beyond[:] = left_leaf, right_leaf
    if most_splits > 1:
        stump_bound(left, table, cells, penalty, below)
        stump_bound(right, table, cells, penalty, beyond)
    if most_splits == 2:
        one_side_only(below, beyond, left_leaf, right_leaf)
    for cell in range(rest.shape[0]):
        least = below[cell] + beyond[cell]
        if rest[cell] + least < target:
            return True
    return False


@kernel
def room_for_options(table, n_cells):
    """Empty plans and losses for every leaf and question of one side, twice: left and right."""
    n_classes = table.n_classes
    most = table.feature.shape[0] * n_classes * (n_classes - 1) + n_classes
    left = np.empty((most, 3), np.int32), np.empty((most, n_cells))
    right = np.empty((most, 3), np.int32), np.empty((most, n_cells))
    return left, right


@kernel
def options_of_sides(path, test, sides_rows, table, cells, penalty, rest, target, room):
    """Leaves and questions left and right of a test that together may stay below the target.

    sides_rows are the rows of both sides, room is that of `room_for_options`. Returns (plans,
    costs, losses, splits) of each side; both are empty where nothing may stay below.
    """
    tests, sides = path
    n_asked = sides[-1]
    (left_plans, left_losses), (right_plans, right_losses) = room
    tests[n_asked], sides[n_asked] = test, 0
    below = open_tests(tests, sides, n_asked + 1, table)
    n_left = stump_options(sides_rows[0], below, table, cells, penalty, left_plans, left_losses)
    sides[n_asked] = 1
    below = open_tests(tests, sides, n_asked + 1, table)
    n_right = stump_options(sides_rows[1], below, table, cells, penalty, right_plans, right_losses)
    kept_left, kept_right = np.arange(n_left), np.arange(n_right)
    n_left, n_right = narrow_pair(left_losses, kept_left, right_losses, kept_right, rest, target)
    sides[n_asked] = 0
    left = kept_options(
        left_plans, left_losses, kept_left[:n_left], tests, sides, n_asked + 1, table, cells
    )
    tests[n_asked], sides[n_asked] = test, 1
    right = kept_options(
        right_plans, right_losses, kept_right[:n_right], tests, sides, n_asked + 1, table, cells
    )
    return left, right


@kernel
def two_level_list(path, rows, outside, table, cells, charge, target, found):
    """Fill `found` with the sub-trees of at most two levels in a region that may beat the target.

    path is (tests, sides) with room for two more; its last entry of sides is the number asked.
    rows are the region's own. charge is (penalty of a question, most questions). Returns the
    number found, -1 where `found` is full.
    """
    tests, sides = path
    penalty, most_splits = charge
    n_asked = sides[-1]
    bounds = outside[1]
    room = room_for_options(table, cells.offset.shape[0])
    rest = cells.offset + penalty
    for other in range(1, bounds.shape[0]):
        rest += bounds[other]
    around = region_weights(outside[0], table.weight, bounds.shape[0]), bounds
    n_found = add_leaves(tests, sides, n_asked, outside, table, cells, target, found)
    if most_splits == 0:
        return n_found
    allowed = open_tests(tests, sides, n_asked, table)
    for test in range(allowed.shape[0]):
        if not allowed[test]:
            continue
        own = split_rows(rows, test, table)
        if not is_open(own[0], own[1], table, cells, charge, rest, target):
            continue
        left, right = options_of_sides(path, test, own, table, cells, penalty, rest, target, room)
        pairs = np.empty((left[0].shape[0] * right[0].shape[0], 2), dtype=np.int64)
        n_pairs = promising_pairs(
            (left[1], left[2]), (right[1], right[2]), around, cells, target - penalty, pairs
        )
        n_found, n_seen = join_pairs(
            test,
            left,
            right,
            pairs[:n_pairs],
            outside,
            table,
            cells,
            charge,
            target,
            found,
            n_found,
        )
        if n_seen < n_pairs:
            return -1
    return n_found
