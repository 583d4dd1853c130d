"""Trees of two levels of splits over boxes: the best one, and a bound on all of them."""

import numpy as np

from steadytree._base.jit import kernel
from steadytree.models._kernels import copy_into, set_all
from steadytree.robustness._kernels.arrays import add_to, largest_of, rows_above
from steadytree.robustness._kernels.box_roots import (
    spread_bound,
    spread_sides,
    widest_top,
)
from steadytree.robustness._kernels.box_splits import (
    ROUNDING,
    all_sums,
    all_thresholds,
    column_of,
    one_level,
    two_stumps,
)
from steadytree.robustness._kernels.boxes import COLUMN, INDEX, LABEL

STEP, SHRINK = 0.25, 0.9  # of the shares that rows give to the left side, and from round to round
EXACT_ROUNDS = 12  # from which on a root is settled


@kernel
def stump_keeps(table, stump, row):
    """Whether a row can reach leaves of its label only."""
    _, column, index, left, right = stump
    if column < 0:
        return table.label[row] == left
    return (table.label[row] == left or index < table.right_below[column, row]) and (
        table.label[row] == right or table.left_from[column, row] <= index
    )


@kernel
def sides_of(table, column, index):
    """Which rows can be left, and which right, of a threshold."""
    sides = np.empty((2, table.label.shape[0]), np.bool_)
    for row in range(sides.shape[1]):
        sides[0, row] = table.right_below[column, row] <= index
        sides[1, row] = table.left_from[column, row] > index
    return sides[0], sides[1]


@kernel
def shared_weights(weight, left, right, share, own):
    """Fill own (2, n) with the weight on each side; rows on both give `share` of it to the left."""
    for row in range(weight.shape[0]):
        own[0, row] = weight[row] * (share[row] if right[row] else 1.0) * left[row]
        own[1, row] = weight[row] * (1.0 - share[row] if left[row] else 1.0) * right[row]


@kernel
def best_partner(table, weight, side, other, stump, turn):
    """The best stump for rows that can be on its `side`, beside a stump for the `other` one."""
    own = np.zeros(weight.shape[0])
    for row in range(weight.shape[0]):
        if side[row]:
            own[row] = weight[row] * (not other[row] or stump_keeps(table, stump, row))
    return one_level(table, own, turn)


@kernel
def pair_value(table, weight, left, right, stumps):
    """Weight that two stumps under a root keep, less the penalties of all three splits."""
    first, second = stumps
    value = -table.penalty * (1 + (first[1] >= 0) + (second[1] >= 0))
    for row in range(weight.shape[0]):
        kept = not left[row] or stump_keeps(table, first, row)
        if kept and (not right[row] or stump_keeps(table, second, row)):
            value += weight[row]
    return value


@kernel
def pair_bound(table, weight, whole, column, index, goal, rounds, share, tried):
    """Bound to trees of two levels with the given root, a good pair of stumps, and its value.

    A row that can be on both sides is kept only where both stumps keep it, so its weight may be
    shared between the sides in any way: each gives a bound, and some rounds of subgradient steps
    look for one that gives a low bound. The first is `tried` (n,), where the next to try is left;
    the best is left in share (n,). whole is `all_sums` of the weights. Ends once the bound is at
    most `goal`. Returns bound, value, the stumps, the rounds, and the bound of each side in the
    first round. With fewer than EXACT_ROUNDS no pair is looked for: the value is -inf, the stumps
    are those that give the bound.
    """
    n, bound, value, at_first = table.label.shape[0], np.inf, -np.inf, (np.inf, np.inf)
    left, right = sides_of(table, column, index)
    own = np.empty((2, n))
    first = second = (0.0, -1, 0, 0, 0)
    best = first, second
    for turn in range(rounds):
        shared_weights(weight, left, right, tried, own)
        first, second = two_stumps(table, own, whole, turn)
        if turn == 0:
            at_first = first[0], second[0]
        if first[0] + second[0] - table.penalty < bound:
            bound = first[0] + second[0] - table.penalty
            copy_into(tried, share)
            if rounds < EXACT_ROUNDS:
                best = first, second
        if bound <= max(goal, value) + ROUNDING:
            return bound, value, best, turn + 1, at_first
        for row in range(n):
            if not left[row] or not right[row]:
                continue
            keeps = stump_keeps(table, first, row) * 1.0 - stump_keeps(table, second, row) * 1.0
            tried[row] = min(1.0, max(0.0, tried[row] - STEP * SHRINK**turn * keeps))
        if turn % 3 == 0 and rounds >= EXACT_ROUNDS:
            second = best_partner(table, weight, right, left, first, turn)
            first = best_partner(table, weight, left, right, second, turn)
            found = pair_value(table, weight, left, right, (first, second))
            if found > value:
                value, best = found, (first, second)
    return bound, value, best, rounds, at_first


@kernel
def leaf_pairs(table, weight, sides, worth, least, value):
    """The best pair above `value` with a leaf on the left that is worth more than `least`."""
    none, tried = (0.0, -1, 0, 0, 0), 0
    best = none, none
    for label in range(worth.shape[0]):
        if worth[label] > least + ROUNDING:
            first = (worth[label], -1, 0, label, label)
            second = best_partner(table, weight, sides[1], sides[0], first, 0)
            found = pair_value(table, weight, sides[0], sides[1], (first, second))
            tried += 1
            if found > value + ROUNDING:
                value, best = found, (first, second)
    return value, best, tried


@kernel
def class_sums(table, column, rows, weight):
    """Weights (size + 1, n_classes) that get surely left, and cease to be surely right."""
    sums = np.zeros((2, table.n_thresholds[column] + 1, table.n_classes))
    for row in rows:
        sums[0, table.left_from[column, row], table.label[row]] += weight[row]
        sums[1, table.right_below[column, row], table.label[row]] += weight[row]
    return sums[0], sums[1]


@kernel
def close_pair(table, weight, column, index, goal, share, start, budget):
    """The best tree of two levels with the given root, where one is above `goal`, by enumeration.

    Of a pair above the goal the left stump is, under shared weights, worth more than the goal less
    the best right one: such stumps are listed, each with its best partner, until `budget` partners
    were looked for. Leaves come first, then thresholds in order; those before `start` are left out.
    Returns value, stumps, the number of partners, and where to go on, 0 at the end.
    """
    left, right = sides_of(table, column, index)
    own = np.empty((2, weight.shape[0]))
    shared_weights(weight, left, right, share, own)
    penalty, n_classes = table.penalty, table.n_classes
    least = goal + penalty - one_level(table, own[1], 0)[0]
    work, position = np.zeros((4, n_classes)), 0
    totals, leaves, on_left, on_right = work[0], work[1], work[2], work[3]
    rows = rows_above(own[0])
    for row in rows:
        totals[table.label[row]] += own[0, row]
    for label in range(n_classes):
        leaves[label] = totals[label] if start == 0 else -np.inf
    value, best, tried = leaf_pairs(table, weight, (left, right), leaves, least, goal)
    for other in range(table.n_thresholds.shape[0]):
        size = table.n_thresholds[other]
        if position + size < start:
            position += size
            continue
        left_sum, right_sum = class_sums(table, other, rows, own[0])
        set_all(on_left, 0.0)
        copy_into(totals, on_right)
        for k in range(size):
            add_to(on_left, left_sum[k], 1.0)
            add_to(on_right, right_sum[k], -1.0)
            position += 1
            if position < start:
                continue
            if tried >= budget:
                return value, best, tried, position
            for one in range(n_classes):
                for two in range(n_classes):
                    worth = on_left[one] + on_right[two] - penalty
                    if one == two or worth <= least + value - goal + ROUNDING:
                        continue
                    first = (worth, other, k, one, two)
                    second = best_partner(table, weight, right, left, first, 0)
                    found = pair_value(table, weight, left, right, (first, second))
                    tried += 1
                    if found > value + ROUNDING:
                        value, best = found, (first, second)
    return value, best, tried, 0


@kernel
def put_pair(tree, column, index, stumps):
    """Write a tree of two levels into tree (8, 3)."""
    tree[1, COLUMN], tree[1, INDEX] = column, index
    for side in range(2):
        _, own, k, left, right = stumps[side]
        v = 2 + side
        tree[v, COLUMN], tree[v, INDEX], tree[v, LABEL] = own, k, left
        tree[2 * v, LABEL], tree[2 * v + 1, LABEL] = left, right
        tree[2 * v, COLUMN], tree[2 * v + 1, COLUMN] = -1, -1


@kernel
def two_levels(
    table, weight, near, sides, shares, levels, room, rounds, unit, budget, resume, tree
):
    """Search trees of two levels, roots by falling bound; it can be resumed where it ended.

    near holds a bound for each (column, threshold) as root, sides (2, n_roots) one for each side of
    it (at first `side_weights`) where rows on both give shares[0] (p, n) to the left; both are
    lowered. Each root starts from these; shares[1] gets what the last one of each column would try
    next. levels (2,) is what is known to be reached, and the largest bound that was not lowered
    further; a tree (8, 3) above the former is put into `tree`. Ends once no bound exceeds both by
    more than `room`, or `budget` work is spent; resume (2,), at first 0, is where it stopped. With
    EXACT_ROUNDS each root is settled; with fewer, bounds are all that is looked for, and the pair
    that gives the largest is put into `tree`. Values are multiples of `unit` where that is above 0.
    Returns the work.
    """
    work, share, next_share = 0, np.empty(weight.shape[0]), np.empty(weight.shape[0])
    scan = rows_above(weight).shape[0] * table.n_thresholds.shape[0] + near.shape[0]
    whole = all_sums(table, weight)
    while work < budget and near.shape[0] > 0:
        if largest_of(near) <= max(levels[0], levels[1]) + room + ROUNDING:
            break
        pick, begin = widest_top(near), 0
        if resume[0] > 0 and near[resume[0] - 1] > levels[0] + ROUNDING:
            pick, begin = resume[0] - 1, resume[1]
        resume[0], resume[1] = 0, 0
        column, start = column_of(table, pick)
        index, end = pick - start, start + table.n_thresholds[column]
        copy_into(shares[0, column], next_share)
        bound, value, stumps, turns, at_first = pair_bound(
            table, weight, whole, column, index, levels[0], rounds, share, next_share
        )
        copy_into(next_share, shares[1, column])
        work += 2 * turns * scan + weight.shape[0] + near.shape[0]
        if unit > 0.0:
            bound = unit * np.floor(bound / unit + 1e-4)
        if value > levels[0] + ROUNDING:
            levels[0] = value
            put_pair(tree, column, index, stumps)
        if rounds < EXACT_ROUNDS and bound > levels[1]:
            put_pair(tree, column, index, stumps)
        elif rounds >= EXACT_ROUNDS and bound > levels[0] + ROUNDING:
            most = 1 + max(0, budget - work) // scan
            value, stumps, tried, rest = close_pair(
                table, weight, column, index, levels[0], share, begin, most
            )
            work += (2 + tried) * scan
            if value > levels[0] + ROUNDING:
                levels[0] = value
                put_pair(tree, column, index, stumps)
            if rest > 0:
                resume[0], resume[1] = pick + 1, rest
                near[pick] = min(near[pick], bound)
                continue
            bound = value
        levels[1] = max(levels[1], bound)
        near[pick] = min(near[pick], bound)
        own = near[start:end]
        spread_bound(table, weight, column, index, bound, own)
        sure = sides[:, start:end]
        spread_sides(table, weight, column, index, shares[0, column], at_first, sure, own)
    return work


@kernel
def two_splits(table, goal, first, budget, tree):
    """Look for a tree of two splits that keeps at least `goal`, from the root `first` on.

    Ends where it finds one, which is put into tree (8, 3), or `budget` work is spent. Returns the
    next root, whether one was found, and the work.
    """
    n, splits, work = table.label.shape[0], all_thresholds(table), 0
    for pick in range(first, splits):
        if work >= budget:
            return pick, False, work
        column, start = column_of(table, pick)
        index = pick - start
        sides = sides_of(table, column, index)
        for side in range(2):
            for label in range(table.n_classes):
                leaf = (0.0, -1, 0, label, label)
                stump = best_partner(table, table.weight, sides[side], sides[1 - side], leaf, 0)
                stumps = (stump, leaf) if side == 0 else (leaf, stump)
                work += n * table.n_thresholds.shape[0] + splits
                if pair_value(table, table.weight, sides[0], sides[1], stumps) >= goal - ROUNDING:
                    put_pair(tree, column, index, stumps)
                    return pick, True, work
    return splits, False, work


@kernel
def conflicting_pairs(table, sweep, order, most, budget, pairs):
    """Fill pairs (m, 2) with rows of different labels that no split separates; return how many.

    order sorts the rows by right_below in the column `sweep`. A row is paired with at most `most`
    rows after it. Ends when the room or the budget of comparisons is used up: any part of the pairs
    gives a bound.
    """
    found, work, p = 0, 0, table.n_thresholds.shape[0]
    for one in range(order.shape[0]):
        i, own = order[one], 0
        for two in range(one + 1, order.shape[0]):
            j = order[two]
            if table.left_from[sweep, i] < table.right_below[sweep, j] or own == most:
                break  # separated, and so is every later row
            work += 1
            if table.label[i] == table.label[j]:
                continue
            column = 0
            while column < p and (
                table.left_from[column, i] >= table.right_below[column, j]
                and table.left_from[column, j] >= table.right_below[column, i]
            ):
                column += 1
            work += column
            if column == p:
                if found == pairs.shape[0]:
                    return found
                pairs[found, 0], pairs[found, 1] = i, j
                found, own = found + 1, own + 1
        if work > budget:
            return found
    return found
