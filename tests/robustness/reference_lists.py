"""Twins of the kernels of the exact search for robust trees, each written from what it promises.

Some promise a set, a bound or an improvement rather than one array, so how they are compared is
said in test_kernels_robust_search.py.
"""

import itertools

import numpy as np

from tests.robustness.reference_search import (
    costs_of_path,
    encoding_value,
    every_two_level_list,
    leaves_under,
    own_loss,
    plain_cost,
    robust_loss,
    row_loss,
    split_rows,
    two_level_trees,
)

COMPARED_APART = {
    *(
        "add_leaves",
        "best_pair",
        "exact_two_levels",
        "hash_costs",
        "improve_encoding",
        "join_pairs",
    ),
    *("narrow_pair", "promising_pairs", "region_weights", "stump_bound", "two_level_bound"),
    "two_level_list",
}


# ---- bounds ----
def stump_bound(rows, table, intervals, penalty, bound):
    """The least loss of all trees with at most one split, which may divide nothing."""
    labels = range(table.n_classes)
    splits = range(len(table.feature))
    trees = [*labels, *itertools.product(splits, labels, labels)]
    for interval in range(len(bound)):
        bound[interval] = min(
            penalty * isinstance(tree, tuple) + own_loss(rows, tree, table, intervals, interval)
            for tree in trees
        )


def two_level_bound(rows, table, intervals, charge, bound):
    """The least over first splits, each side losing what it must without the other.

    A side has at most one split, and all of them together at most `most`.
    """
    penalty, most = charge
    stump_bound(rows, table, intervals, penalty, bound)
    for split in range(len(table.feature)):
        sides = [
            least_of_side(part, table, intervals, penalty)
            for part in split_rows(rows, split, table)
        ]
        for left, right in itertools.product((0, 1), (0, 1)):
            if 1 + left + right <= most:
                bound[:] = np.minimum(bound, penalty + sides[0][left] + sides[1][right])


def least_of_side(rows, table, intervals, penalty):
    """Least losses (2, n_intervals) of a leaf, and of at most one split."""
    labels = range(table.n_classes)
    leaf = [
        min(own_loss(rows, label, table, intervals, interval) for label in labels)
        for interval in range(len(intervals.offset))
    ]
    split = np.empty(len(leaf))
    stump_bound(rows, table, intervals, penalty, split)
    return np.array(leaf), split


def exact_two_levels(path, table, intervals, penalty, bound):
    """The least loss of all trees of two levels, every wrong leaf of them being a threat."""
    above = path_above(path)
    for tree in two_level_trees(above, table):
        leaves = leaves_under(tree, above)
        costs = tree_threats(leaves, table)
        for interval in range(len(bound)):
            loss = sum(
                w * row_loss(c, interval, intervals)
                for w, c in zip(table.weight, costs, strict=True)
            )
            bound[interval] = min(bound[interval], loss + penalty * (len(leaves) - 1))


def summed_loss(weight, costs, interval, intervals):
    return sum(
        w * row_loss(cost, interval, intervals) for w, cost in zip(weight, costs, strict=True)
    )


def path_above(path):
    splits, sides = path
    path_length = sides[-1]
    return tuple(zip(splits[:path_length].tolist(), sides[:path_length].tolist(), strict=True))


def tree_threats(leaves, table):
    """Each row's cost of getting into the cheapest leaf of another label."""
    reach = np.array([costs_of_path(path, table) for path, _ in leaves])
    is_wrong = np.array([[label != own for own in table.label] for _, label in leaves])
    return np.where(is_wrong, reach, np.inf).min(axis=0)


# ---- lists ----
def totals(costs, outside, weight, intervals):
    """Own losses (n_intervals,), and the least that all regions lose to these threats."""
    region, bounds = outside
    n_regions, n_intervals = bounds.shape
    lost = np.zeros((n_regions, n_intervals))
    for row, interval in itertools.product(range(len(costs)), range(n_intervals)):
        lost[region[row], interval] += weight[row] * row_loss(costs[row], interval, intervals)
    others = np.maximum(lost, bounds)[1:].sum(axis=0)
    return lost[0], intervals.offset + lost[0] + others


def add_leaves(splits, sides, path_length, outside, table, intervals, target, found):
    """Of the leaves with each label, those whose total is below the target in some interval."""
    encodings, costs, losses, split_counts = found
    above = tuple(zip(splits[:path_length].tolist(), sides[:path_length].tolist(), strict=True))
    kept = []
    for label in range(table.n_classes):
        cost = tree_threats([(above, label)], table)
        own, total = totals(cost, outside, table.weight, intervals)
        if total.min() < target:
            kept.append((label, cost, own))
    for index, (label, cost, own) in enumerate(kept):
        encodings[index] = [-1 - label] + [0] * (encodings.shape[1] - 1)
        costs[index], losses[index], split_counts[index] = cost, own, 0
    return len(kept)


def join_pairs(
    split, left, right, pairs, outside, table, intervals, charge, target, found, n_found
):
    """Pairs that differ, have few enough splits and a total below the target, as they come."""
    penalty, most_splits = charge
    joined = []
    for index, (a, b) in enumerate(pairs.tolist()):
        cost = np.minimum(left[1][a], right[1][b])
        n_splits = 1 + left[3][a] + right[3][b]
        own, total = totals(cost, outside, table.weight, intervals)
        is_idle = left[0][a].tolist() == right[0][b].tolist()
        if not is_idle and n_splits <= most_splits and (total + penalty * n_splits).min() < target:
            encoding = [split, *left[0][a], *right[0][b]]
            joined.append((index, encoding, cost, own + penalty * n_splits, n_splits))
    room = len(found[0]) - n_found
    for at, (_, *parts) in enumerate(joined[:room], start=n_found):
        for array, part in zip(found, parts, strict=True):
            array[at] = part
    n_seen = joined[room][0] if len(joined) > room else len(pairs)
    return n_found + min(len(joined), room), n_seen


def two_level_list(path, rows, outside, table, intervals, charge, target, found):
    """Every tree of at most two levels whose total is below the target; -1 without room."""
    integer = tuple(np.zeros((20_000, *array.shape[1:]), array.dtype) for array in found)
    count = every_two_level_list(path, rows, outside, table, intervals, charge, target, integer)
    if count > len(found[0]):
        return -1
    for array, part in zip(found, integer, strict=True):
        array[:count] = part[:count]
    return count


def narrow_pair(left_losses, kept_left, right_losses, kept_right, rest, target):
    """The largest two lists of which each item fits the best of the other list in some interval.

    Nothing that is thrown out can come back, so one may be thrown out at a time, in any order.
    """
    left, right = kept_left.tolist(), kept_right.tolist()

    def misfit(own, own_losses, others, other_losses):
        for item in reversed(own):
            if not others:
                return item
            best = other_losses[others].min(axis=0)
            if not (own_losses[item] + best + rest < target).any():
                return item
        return None

    while True:
        worst = misfit(left, left_losses, right, right_losses)
        if worst is not None:
            left.remove(worst)
            continue
        worst = misfit(right, right_losses, left, left_losses)
        if worst is None:
            break
        right.remove(worst)
    kept_left[: len(left)], kept_right[: len(right)] = left, right
    return len(left), len(right)


# ---- pairs ----
def region_weights(region, weight, n_regions):
    return np.array([np.where(region == at, weight, 0.0) for at in range(n_regions)])


def promising_pairs(left, right, around, intervals, room, pairs):
    """All pairs of which some interval stays below, by the sides' own losses and by all threats."""
    (left_costs, left_losses), (right_costs, right_losses) = left, right
    weights, bounds = around
    found = []
    for a, b in itertools.product(range(len(left_costs)), range(len(right_costs))):
        apart = left_losses[a] + right_losses[b] + bounds[1:].sum(axis=0)
        costs = np.minimum(left_costs[a], right_costs[b])
        together = np.zeros(len(apart))
        for at, interval in itertools.product(range(len(weights)), range(len(apart))):
            lost = sum(
                w * row_loss(c, interval, intervals)
                for w, c in zip(weights[at], costs, strict=True)
            )
            together[interval] += lost if at == 0 else max(lost, bounds[at, interval])
        if (np.maximum(apart, together) + intervals.offset < room).any():
            found.append((a, b))
    if len(found) > len(pairs):
        return -1
    pairs[: len(found)] = np.array(found).reshape(-1, 2)
    return len(found)


def best_pair(left, right, pairs, weight, penalty, most_splits, spending):
    """The least value, of equal ones fewest splits, of these the first; -1 if none has few."""
    scored = []
    for index, (a, b) in enumerate(pairs.tolist()):
        n_splits = int(left[2][a] + right[2][b] + 1)
        cost = np.minimum(left[0][a], right[0][b])
        value = robust_loss(cost, weight, *spending) + penalty * n_splits
        if n_splits <= most_splits:
            scored.append((round(value, 7), n_splits, index))
    if not scored:
        return -1, np.inf
    value, _, index = min(scored)
    return index, value


# ---- sub-trees that are equal, and better ones ----
def hash_costs(costs, limit, shared):
    """A number for each row, the same for rows that are equal as far as their costs matter."""
    plain = [tuple(plain_cost(cost, limit, shared) for cost in row) for row in costs.tolist()]
    return np.array([plain.index(row) for row in plain])


def improve_encoding(encoding, depth, table, spending, order):
    """The least value of a full encoding and of all that differ in one split of `order`.

    A lowest split may change together with the labels below it.
    """
    costs = np.empty(len(table.label))
    splits, labels = range(len(table.feature)), range(table.n_classes)
    values = [encoding_value(encoding, depth, table, spending, costs)]
    nodes = inner_nodes(depth)
    for number in order.tolist():
        at, is_lowest = nodes[number]
        below = itertools.product(labels, labels) if is_lowest else [()]
        for split, answers in itertools.product(splits, list(below)):
            other = encoding.copy()
            other[at : at + 1 + len(answers)] = [split, *(-1 - label for label in answers)]
            values.append(encoding_value(other, depth, table, spending, costs))
    return min(values)


def inner_nodes(depth, at=0):
    """(index, whether leaves are below it) of the inner nodes of a full encoding, parents first."""
    if depth == 1:
        return [(at, True)]
    left = inner_nodes(depth - 1, at + 1)
    return [(at, False), *left, *inner_nodes(depth - 1, at + 2**depth)]
