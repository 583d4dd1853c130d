"""Lists of sub-trees that could be part of a tree better than the target."""

import numpy as np

from steadytree._base.jit import kernel
from steadytree.models._kernels import copy_into, set_all
from steadytree.robustness._kernels.arrays import sum_of
from steadytree.robustness._kernels.cost import (
    add_crossing,
    box_costs,
    count_sides,
    leaf_loss,
    one_side_only,
    split_rows,
    stump_bound,
)
from steadytree.robustness._kernels.pairs import (
    promising_pairs,
    region_weights,
    strongest_first,
    undominated,
)

WINDOW = 256  # sub-trees that others are compared with


@kernel
def open_splits(splits, sides, path_length, table):
    """Which splits leave values on both sides of a box; returns (n_candidates,) bool."""
    n_candidates, n_bins = table.left_bins.shape
    found = np.ones(n_candidates, dtype=np.bool_)
    for split in range(n_candidates):
        left, right = False, False
        for bin_ in range(n_bins):
            inside = True
            for index in range(path_length):
                other = splits[index]
                if table.feature[other] == table.feature[split]:
                    bins = table.left_bins if sides[index] == 0 else table.right_bins
                    inside = inside and bins[other, bin_]
            left = left or (inside and table.left_bins[split, bin_])
            right = right or (inside and table.right_bins[split, bin_])
        found[split] = left and right
    return found


@kernel
def stump_options(rows, allowed, table, intervals, penalty, encodings, losses):
    """Fill encodings (m, 3) and losses (m, n_intervals) with every leaf and split of a region."""
    # rows are the region's own; allowed (n_candidates,) the splits. Returns their number.
    n_classes = table.n_classes
    counts = np.empty((2, n_classes, intervals.cross.shape[1]))
    weights = np.zeros(n_classes)
    for index in range(rows.shape[0]):
        weights[table.label[rows[index]]] += table.weight[rows[index]]
    total, n_options = sum_of(weights), n_classes
    for label in range(n_classes):
        encodings[label, 0], encodings[label, 1], encodings[label, 2] = -1 - label, 0, 0
        set_all(losses[label], total - weights[label])
    for split in range(allowed.shape[0]):
        if not allowed[split]:
            continue
        count_sides(rows, split, table, counts)
        for first in range(n_classes):
            for second in range(n_classes):
                if first == second:
                    continue
                encodings[n_options, 0] = split
                encodings[n_options, 1], encodings[n_options, 2] = -1 - first, -1 - second
                correct = sum_of(counts[0, first]) + sum_of(counts[1, second])
                set_all(losses[n_options], penalty + total - correct)
                add_crossing(counts, intervals.cross[split], first, second, losses[n_options])
                n_options += 1
    return n_options


@kernel
def keep_promising(losses, kept, n_kept, rest, target):
    """Keep those of kept[:n_kept] whose losses plus rest are below the target in an interval."""
    n_left = 0
    for index in range(n_kept):
        item = kept[index]
        for interval in range(rest.shape[0]):
            if losses[item, interval] + rest[interval] < target:
                kept[n_left] = item
                n_left += 1
                break
    return n_left


@kernel
def least_losses(losses, kept, n_kept, rest, room):
    """Fill room (n_intervals,) with rest and the least loss of those of kept[:n_kept]."""
    for interval in range(rest.shape[0]):
        least = np.inf
        for index in range(n_kept):
            least = min(least, losses[kept[index], interval])
        room[interval] = rest[interval] + least


@kernel
def narrow_pair(left_losses, kept_left, right_losses, kept_right, rest, target):
    """Keep on each side what could go with the best of the other; returns both numbers."""
    n_left, n_right = kept_left.shape[0], kept_right.shape[0]
    room = np.empty(rest.shape[0])
    while n_left > 0 and n_right > 0:
        before = n_left + n_right
        least_losses(right_losses, kept_right, n_right, rest, room)
        n_left = keep_promising(left_losses, kept_left, n_left, room, target)
        least_losses(left_losses, kept_left, n_left, rest, room)
        n_right = keep_promising(right_losses, kept_right, n_right, room, target)
        if n_left + n_right == before:
            return n_left, n_right
    return 0, 0


@kernel
def stump_costs(encodings, kept, splits, sides, path_length, table, costs):
    """Fill costs (n_kept, n) with each row's cost of a wrong answer in each of the kept options."""
    n = table.label.shape[0]
    ways = np.empty((3, n))
    reach, left, right = ways[0], ways[1], ways[2]
    box_costs(splits, sides, path_length, table, reach)
    last = -1
    for index in range(kept.shape[0]):
        option = kept[index]
        split = encodings[option, 0]
        if split < 0:
            for row in range(n):
                wrong = table.label[row] != -1 - split
                costs[index, row] = reach[row] if wrong else np.inf
            continue
        if split != last:
            splits[path_length], sides[path_length], last = split, 0, split
            box_costs(splits, sides, path_length + 1, table, left)
            sides[path_length] = 1
            box_costs(splits, sides, path_length + 1, table, right)
        first, second = -1 - encodings[option, 1], -1 - encodings[option, 2]
        for row in range(n):
            cost = left[row] if table.label[row] != first else np.inf
            if table.label[row] != second and right[row] < cost:
                cost = right[row]
            costs[index, row] = cost


@kernel
def region_losses(costs, region, weight, intervals, losses):
    """Fill losses (n_regions, n_intervals) with the summed losses of each region's rows."""
    for at in range(losses.shape[0]):
        set_all(losses[at], 0.0)
    n_intervals = losses.shape[1]
    for row in range(costs.shape[0]):
        cost, heavy, at = costs[row], weight[row], region[row]
        if not intervals.shared:
            if cost <= intervals.limit:
                losses[at, 0] += heavy
        elif cost * intervals.slope[0] < 1.0:
            for interval in range(n_intervals):
                losses[at, interval] += heavy * max(0.0, 1.0 - intervals.slope[interval] * cost)


@kernel
def beats(loss, bounds, offset, extra, target):
    """Whether some interval stays below the target."""
    # summed are own losses and, for other regions, the larger of what they must lose anyway and
    # what they lose to this sub-tree
    for interval in range(offset.shape[0]):
        total = offset[interval] + extra + loss[0, interval]
        for other in range(1, bounds.shape[0]):
            total += max(bounds[other, interval], loss[other, interval])
        if total < target:
            return True
    return False


@kernel
def add_leaves(splits, sides, path_length, outside, table, intervals, target, found):
    """Put every single leaf that may beat the target into `found`; returns their number."""
    encodings, costs, losses, split_counts = found
    region, bounds = outside
    n, n_found = costs.shape[1], 0
    reach, cost, loss = np.empty(n), np.empty(n), np.empty(bounds.shape)
    box_costs(splits, sides, path_length, table, reach)
    for label in range(table.n_classes):
        for row in range(n):
            cost[row] = reach[row] if table.label[row] != label else np.inf
        region_losses(cost, region, table.weight, intervals, loss)
        if beats(loss, bounds, intervals.offset, 0.0, target):
            set_all(encodings[n_found], 0)
            encodings[n_found, 0], split_counts[n_found] = -1 - label, 0
            copy_into(cost, costs[n_found])
            copy_into(loss[0], losses[n_found])
            n_found += 1
    return n_found


@kernel
def are_equal(one, other):
    """Whether two encodings (n,) are the same."""
    equal = True
    for k in range(one.shape[0]):
        equal &= one[k] == other[k]
    return equal


@kernel
def join_pairs(
    split, left, right, pairs, outside, table, intervals, charge, target, found, n_found
):
    """Add to `found` those of the given pairs of sub-trees under a split that may beat the target.

    left, right and found are (encodings, costs, losses, split_counts), the losses with penalties;
    outside is (region, bounds): region (n,) is 0 for the rows of this sub-tree, else the number of
    their region, whose least losses are bounds (n_regions, n_intervals). charge is (penalty of a
    split, most splits). Returns the number found so far, and the number of pairs looked at: fewer
    than there are where `found` is full.
    """
    penalty, most_splits = charge
    left_encodings, left_costs, _, left_splits = left
    right_encodings, right_costs, _, right_splits = right
    encodings, costs, losses, split_counts = found
    region, bounds = outside
    n, size = costs.shape[1], left_encodings.shape[1]
    cost, loss = np.empty(n), np.empty(bounds.shape)
    for index in range(pairs.shape[0]):
        a, b = pairs[index, 0], pairs[index, 1]
        n_splits = left_splits[a] + right_splits[b] + 1
        # a split between equal sub-trees is useless
        if n_splits > most_splits or are_equal(left_encodings[a], right_encodings[b]):
            continue
        for row in range(n):
            cost[row] = min(left_costs[a, row], right_costs[b, row])
        region_losses(cost, region, table.weight, intervals, loss)
        if not beats(loss, bounds, intervals.offset, penalty * n_splits, target):
            continue
        if n_found >= encodings.shape[0]:
            return n_found, index
        encodings[n_found, 0] = split
        for index_below in range(size):
            encodings[n_found, 1 + index_below] = left_encodings[a, index_below]
            encodings[n_found, 1 + size + index_below] = right_encodings[b, index_below]
        copy_into(cost, costs[n_found])
        for interval in range(loss.shape[1]):
            losses[n_found, interval] = loss[0, interval] + penalty * n_splits
        split_counts[n_found] = n_splits
        n_found += 1
    return n_found, pairs.shape[0]


@kernel
def kept_options(path, split, side, kept, room, table, intervals):
    """The kept options of a side as (encodings, costs, losses, split_counts), none dominated."""
    (splits, sides), (encodings, losses) = path, room
    splits[sides[-1]], sides[sides[-1]] = split, side
    size, n = kept.shape[0], table.label.shape[0]
    given, costs, split_counts = np.empty((size, n)), np.empty((size, n)), np.empty(size, np.int64)
    stump_costs(encodings, kept, splits, sides, sides[-1] + 1, table, given)
    order = strongest_first(given, intervals.limit)
    for item in range(size):
        copy_into(given[order[item]], costs[item])
        split_counts[item] = encodings[kept[order[item]], 0] >= 0
    flags = undominated(costs, split_counts, intervals.limit, intervals.shared, WINDOW)
    chosen, lost = np.empty((size, 3), np.int32), np.empty((size, losses.shape[1]))
    n_left = 0
    for item in range(size):
        if not flags[item]:
            continue
        copy_into(encodings[kept[order[item]]], chosen[n_left])
        copy_into(costs[item], costs[n_left])
        copy_into(losses[kept[order[item]]], lost[n_left])
        split_counts[n_left] = split_counts[item]
        n_left += 1
    return chosen[:n_left], costs[:n_left], lost[:n_left], split_counts[:n_left]


@kernel
def is_open(left, right, table, intervals, charge, rest, target):
    """Whether some leaves or splits left and right of a split may stay below the target."""
    # left and right are the rows of its sides, rest (n_intervals,) what is lost anyway.
    penalty, most_splits = charge
    losses = np.empty((2, rest.shape[0]))
    below, beyond = losses[0], losses[1]
    left_leaf, right_leaf = leaf_loss(left, table), leaf_loss(right, table)
    set_all(below, left_leaf)
    set_all(beyond, right_leaf)
    if most_splits > 1:
        stump_bound(left, table, intervals, penalty, below)
        stump_bound(right, table, intervals, penalty, beyond)
    if most_splits == 2:
        one_side_only(below, beyond, left_leaf, right_leaf)
    for interval in range(rest.shape[0]):
        if rest[interval] + below[interval] + beyond[interval] < target:
            return True
    return False


@kernel
def room_for_options(table, n_intervals):
    """Empty encodings and losses for every leaf and split of one side, twice: left and right."""
    n_classes = table.n_classes
    most = table.feature.shape[0] * n_classes * (n_classes - 1) + n_classes
    encodings, losses = np.empty((2, most, 3), np.int32), np.empty((2, most, n_intervals))
    return (encodings[0], losses[0]), (encodings[1], losses[1])


@kernel
def options_of_side(path, split, side, rows, table, intervals, penalty, room):
    """Fill room, one part of `room_for_options`, with the options of a side; their indices."""
    splits, sides = path
    splits[sides[-1]], sides[sides[-1]] = split, side
    allowed = open_splits(splits, sides, sides[-1] + 1, table)
    return np.arange(stump_options(rows, allowed, table, intervals, penalty, room[0], room[1]))


@kernel
def options_of_sides(path, split, sides_rows, table, intervals, penalty, rest, target, room):
    """Leaves and splits left and right of a split that together may stay below the target.

    sides_rows are the rows of both sides, room is that of `room_for_options`. Returns (encodings,
    costs, losses, split_counts) of each side; both are empty where nothing may stay below.
    """
    left, right = room
    below = options_of_side(path, split, 0, sides_rows[0], table, intervals, penalty, left)
    beyond = options_of_side(path, split, 1, sides_rows[1], table, intervals, penalty, right)
    n_left, n_right = narrow_pair(left[1], below, right[1], beyond, rest, target)
    return (
        kept_options(path, split, 0, below[:n_left], left, table, intervals),
        kept_options(path, split, 1, beyond[:n_right], right, table, intervals),
    )


@kernel
def two_level_list(path, rows, outside, table, intervals, charge, target, found):
    """Fill `found` with the sub-trees of at most two levels in a region that may beat the target.

    path is (splits, sides) with room for two more; the last entry of sides is their number.
    rows are the region's own. charge is (penalty of a split, most splits). Returns the
    number found, -1 where `found` is full.
    """
    (splits, sides), (penalty, most_splits), bounds = path, charge, outside[1]
    path_length = sides[-1]
    room = room_for_options(table, intervals.offset.shape[0])
    rest = np.empty(intervals.offset.shape[0])
    for interval in range(rest.shape[0]):
        others = 0.0
        for region in range(1, bounds.shape[0]):
            others += bounds[region, interval]
        rest[interval] = intervals.offset[interval] + penalty + others
    around = region_weights(outside[0], table.weight, bounds.shape[0]), bounds
    n_found = add_leaves(splits, sides, path_length, outside, table, intervals, target, found)
    if most_splits == 0:
        return n_found
    open_ = open_splits(splits, sides, path_length, table)
    for split in range(open_.shape[0]):
        if not open_[split]:
            continue
        own = split_rows(rows, split, table)
        if not is_open(own[0], own[1], table, intervals, charge, rest, target):
            continue
        left, right = options_of_sides(
            path, split, own, table, intervals, penalty, rest, target, room
        )
        every = np.empty((left[0].shape[0] * right[0].shape[0], 2), dtype=np.int64)
        n_pairs = promising_pairs(left[1:3], right[1:3], around, intervals, target - penalty, every)
        pairs = every[:n_pairs]
        n_found, n_seen = join_pairs(
            split, left, right, pairs, outside, table, intervals, charge, target, found, n_found
        )
        if n_seen < n_pairs:
            return -1
    return n_found
