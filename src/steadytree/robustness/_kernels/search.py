"""Exact bounds of two levels of splits, and local search that changes one split at a time."""

import numpy as np

from steadytree._base.jit import kernel
from steadytree.robustness._kernels.cost import box_costs, robust_loss, split_rows, tree_costs
from steadytree.robustness._kernels.lists import (
    is_open,
    open_splits,
    options_of_sides,
    room_for_options,
)
from steadytree.robustness._kernels.pairs import pair_lost, pair_total


@kernel
def lower_by_pairs(left, right, weights, intervals, penalty, bound):
    """Lower bound (n_intervals,) to what the best pair of a left and a right option loses."""
    # left and right are (encodings, costs, losses, split_counts), costs of the region's rows only.
    _, left_costs, left_losses, left_splits = left
    _, right_costs, right_losses, right_splits = right
    for a in range(left_costs.shape[0]):
        for b in range(right_costs.shape[0]):
            for interval in range(bound.shape[0]):
                apart = penalty + left_losses[a, interval] + right_losses[b, interval]
                if apart >= bound[interval]:
                    continue
                if intervals.shared:
                    slope = intervals.slope[interval]
                    own = pair_total(left_costs, a, right_costs, b, weights, 0, slope)
                else:
                    own = pair_lost(left_costs, a, right_costs, b, weights, 0, intervals.limit)
                charge = penalty * (1 + left_splits[a] + right_splits[b])
                bound[interval] = min(bound[interval], own + charge)


@kernel
def exact_two_levels(path, table, intervals, penalty, bound):
    """Lower bound (n_intervals,) to the least loss of two levels of splits, by interval.

    table holds the region's rows only; path is (splits, sides) with room for two more, its last
    entry of sides their number. bound must not be less than what a single leaf loses.
    """
    splits, sides = path
    room = room_for_options(table, bound.shape[0])
    rows, rest = np.empty(table.label.shape[0], np.int64), np.empty(bound.shape[0])
    weights = np.empty((1, rows.shape[0]))
    for row in range(rows.shape[0]):
        rows[row], weights[0, row] = row, table.weight[row]
    open_ = open_splits(splits, sides, sides[-1], table)
    for split in range(open_.shape[0]):
        if not open_[split]:
            continue
        for interval in range(bound.shape[0]):
            rest[interval] = penalty - bound[interval]
        own = split_rows(rows, split, table)
        if not is_open(own[0], own[1], table, intervals, (penalty, 3), rest, 0.0):
            continue
        left, right = options_of_sides(path, split, own, table, intervals, penalty, rest, 0.0, room)
        lower_by_pairs(left, right, weights, intervals, penalty, bound)


@kernel
def encoding_value(encoding, depth, table, spending, costs):
    """Robust loss plus penalty of an encoding; spending: (limit, penalty, shared, integer)."""
    limit, penalty, shared, integer = spending
    tree_costs(encoding, depth, table, costs)
    charge = penalty * count_splits(encoding, depth)
    return robust_loss(costs, table.weight, limit, shared, integer) + charge


@kernel
def count_splits(encoding, depth):
    """Splits of an encoding that some row can reach."""
    index, height = node_indices(depth)
    closed = np.zeros(encoding.shape[0], dtype=np.bool_)  # indices under a leaf
    n_splits = 0
    for node in range(index.shape[0]):
        at, below = index[node], (1 << height[node]) - 1
        if closed[at] or encoding[at] < 0:
            closed[at + 1], closed[at + 1 + below] = True, True
        else:
            n_splits += 1
    return n_splits


@kernel
def node_indices(depth):
    """Index in the encoding, and height, of every inner node of a full tree; parents first."""
    n_inner = (1 << depth) - 1
    found = np.empty((2, n_inner), dtype=np.int64)
    index, height = found[0], found[1]
    n_found = 0
    waiting = np.empty((n_inner + 1, 2), dtype=np.int64)
    waiting[0, 0], waiting[0, 1] = 0, depth
    top = min(depth, 1)  # a tree of no levels has no inner node
    while top > 0:
        top -= 1
        at, high = waiting[top, 0], waiting[top, 1]
        index[n_found], height[n_found] = at, high
        n_found += 1
        if high > 1:
            waiting[top, 0], waiting[top, 1] = at + (1 << high), high - 1
            waiting[top + 1, 0], waiting[top + 1, 1] = at + 1, high - 1
            top += 2
    return index, height


@kernel
def path_of(encoding, at, depth, splits, sides):
    """Fill splits and sides with the splits above an index; returns their number."""
    index, high, path_length = 0, depth, 0
    while index != at:
        below = (1 << high) - 1
        splits[path_length] = encoding[index]
        sides[path_length] = 0 if at < index + 1 + below else 1
        index = index + 1 if sides[path_length] == 0 else index + 1 + below
        high, path_length = high - 1, path_length + 1
    return path_length


@kernel
def best_stump(encoding, at, depth, table, spending, best):
    """Put the best split and labels at a lowest inner node; returns the value, at most best."""
    n, n_classes = table.label.shape[0], table.n_classes
    limit, penalty, shared, integer = spending
    kept, winner = encoding[at], (encoding[at], encoding[at + 1], encoding[at + 2])
    ways, path = np.empty((4, n)), np.empty((2, depth + 1), dtype=np.int64)
    base, cost, left, right = ways[0], ways[1], ways[2], ways[3]
    splits, sides = path[0], path[1]
    encoding[at] = -1 - n_classes
    tree_costs(encoding, depth, table, base)
    extra = penalty * (count_splits(encoding, depth) + 1)
    encoding[at] = kept
    path_length = path_of(encoding, at, depth, splits, sides)
    for split in range(table.feature.shape[0]):
        splits[path_length], sides[path_length] = split, 0
        box_costs(splits, sides, path_length + 1, table, left)
        sides[path_length] = 1
        box_costs(splits, sides, path_length + 1, table, right)
        for first in range(n_classes):
            for second in range(n_classes):
                if first == second and split > 0:
                    continue
                for row in range(n):
                    cost[row] = base[row]
                    if table.label[row] != first and left[row] < cost[row]:
                        cost[row] = left[row]
                    if table.label[row] != second and right[row] < cost[row]:
                        cost[row] = right[row]
                value = extra + robust_loss(cost, table.weight, limit, shared, integer)
                if value < best:
                    best, winner = value, (split, -1 - first, -1 - second)
    encoding[at], encoding[at + 1], encoding[at + 2] = winner
    return best


@kernel
def improve_encoding(encoding, depth, table, spending, order):
    """Change one split (the lowest with labels) at a time while the value, returned, falls."""
    # encoding is a full one, changed in place; order lists its inner nodes in the order to try them
    index, height = node_indices(depth)
    costs = np.empty(table.label.shape[0])
    best, before = encoding_value(encoding, depth, table, spending, costs), np.inf
    while best < before:
        before = best
        for turn in range(order.shape[0]):
            at = index[order[turn]]
            if height[order[turn]] == 1:
                best = best_stump(encoding, at, depth, table, spending, best)
                continue
            winner = encoding[at]
            for split in range(table.feature.shape[0]):
                encoding[at] = split
                value = encoding_value(encoding, depth, table, spending, costs)
                if value < best:
                    best, winner = value, split
            encoding[at] = winner
    return best
