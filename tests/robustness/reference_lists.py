"""Twins of the kernels of the exact search for robust trees, each written from what it promises.

Some promise a set, a bound or an improvement rather than one array, so how they are compared is
said in test_kernels_robust_search.py.
"""

import itertools

import numpy as np

from tests.robustness.reference_search import (
    costs_of_path,
    every_two_level_list,
    leaves_under,
    own_loss,
    plain_cost,
    plan_value,
    robust_loss,
    row_loss,
    split_rows,
    two_level_trees,
)

COMPARED_APART = {
    *("add_leaves", "best_pair", "exact_two_levels", "hash_costs", "improve_plan", "join_pairs"),
    *("narrow_pair", "promising_pairs", "region_weights", "stump_bound", "two_level_bound"),
    "two_level_list",
}


# ---- bounds ----
def stump_bound(rows, table, cells, penalty, bound):
    """The least loss of all trees with at most one question, which may divide nothing."""
    labels = range(table.n_classes)
    tests = range(len(table.feature))
    trees = [*labels, *itertools.product(tests, labels, labels)]
    for cell in range(len(bound)):
        bound[cell] = min(
            penalty * isinstance(tree, tuple) + own_loss(rows, tree, table, cells, cell)
            for tree in trees
        )


def two_level_bound(rows, table, cells, charge, bound):
    """The least over first questions, each side losing what it must without the other.

    A side has at most one question, and all of them together at most `most`.
    """
    penalty, most = charge
    stump_bound(rows, table, cells, penalty, bound)
    for test in range(len(table.feature)):
        sides = [
            least_of_side(part, table, cells, penalty) for part in split_rows(rows, test, table)
        ]
        for left, right in itertools.product((0, 1), (0, 1)):
            if 1 + left + right <= most:
                bound[:] = np.minimum(bound, penalty + sides[0][left] + sides[1][right])


def least_of_side(rows, table, cells, penalty):
    """Least losses (2, n_cells) of a leaf, and of at most one question."""
    labels = range(table.n_classes)
    leaf = [
        min(own_loss(rows, label, table, cells, cell) for label in labels)
        for cell in range(len(cells.offset))
    ]
    question = np.empty(len(leaf))
    stump_bound(rows, table, cells, penalty, question)
    return np.array(leaf), question


def exact_two_levels(path, table, cells, penalty, bound):
    """The least loss of all trees of two levels, every wrong leaf of them being a threat."""
    above = path_above(path)
    for tree in two_level_trees(above, table):
        leaves = leaves_under(tree, above)
        costs = tree_threats(leaves, table)
        for cell in range(len(bound)):
            loss = sum(
                w * row_loss(c, cell, cells) for w, c in zip(table.weight, costs, strict=True)
            )
            bound[cell] = min(bound[cell], loss + penalty * (len(leaves) - 1))


def summed_loss(weight, costs, cell, cells):
    return sum(w * row_loss(cost, cell, cells) for w, cost in zip(weight, costs, strict=True))


def path_above(path):
    tests, sides = path
    n_asked = sides[-1]
    return tuple(zip(tests[:n_asked].tolist(), sides[:n_asked].tolist(), strict=True))


def tree_threats(leaves, table):
    """Each row's cost of getting into the cheapest leaf of another label."""
    reach = np.array([costs_of_path(path, table) for path, _ in leaves])
    is_wrong = np.array([[label != own for own in table.label] for _, label in leaves])
    return np.where(is_wrong, reach, np.inf).min(axis=0)


# ---- lists ----
def totals(costs, outside, weight, cells):
    """Own losses (n_cells,), and the least that all regions lose to these threats."""
    region, bounds = outside
    n_regions, n_cells = bounds.shape
    lost = np.zeros((n_regions, n_cells))
    for row, cell in itertools.product(range(len(costs)), range(n_cells)):
        lost[region[row], cell] += weight[row] * row_loss(costs[row], cell, cells)
    others = np.maximum(lost, bounds)[1:].sum(axis=0)
    return lost[0], cells.offset + lost[0] + others


def add_leaves(tests, sides, n_asked, outside, table, cells, target, found):
    """Of the leaves with each label, those whose total is below the target in some cell."""
    plans, costs, losses, splits = found
    above = tuple(zip(tests[:n_asked].tolist(), sides[:n_asked].tolist(), strict=True))
    kept = []
    for label in range(table.n_classes):
        cost = tree_threats([(above, label)], table)
        own, total = totals(cost, outside, table.weight, cells)
        if total.min() < target:
            kept.append((label, cost, own))
    for place, (label, cost, own) in enumerate(kept):
        plans[place] = [-1 - label] + [0] * (plans.shape[1] - 1)
        costs[place], losses[place], splits[place] = cost, own, 0
    return len(kept)


def join_pairs(test, left, right, pairs, outside, table, cells, charge, target, found, n_found):
    """Pairs that differ, have few enough questions and a total below the target, as they come."""
    penalty, most_splits = charge
    joined = []
    for place, (a, b) in enumerate(pairs.tolist()):
        cost = np.minimum(left[1][a], right[1][b])
        n_splits = 1 + left[3][a] + right[3][b]
        own, total = totals(cost, outside, table.weight, cells)
        is_idle = left[0][a].tolist() == right[0][b].tolist()
        if not is_idle and n_splits <= most_splits and (total + penalty * n_splits).min() < target:
            plan = [test, *left[0][a], *right[0][b]]
            joined.append((place, plan, cost, own + penalty * n_splits, n_splits))
    room = len(found[0]) - n_found
    for at, (_, *parts) in enumerate(joined[:room], start=n_found):
        for array, part in zip(found, parts, strict=True):
            array[at] = part
    n_seen = joined[room][0] if len(joined) > room else len(pairs)
    return n_found + min(len(joined), room), n_seen


def two_level_list(path, rows, outside, table, cells, charge, target, found):
    """Every tree of at most two levels whose total is below the target; -1 without room."""
    whole = tuple(np.zeros((20_000, *array.shape[1:]), array.dtype) for array in found)
    count = every_two_level_list(path, rows, outside, table, cells, charge, target, whole)
    if count > len(found[0]):
        return -1
    for array, part in zip(found, whole, strict=True):
        array[:count] = part[:count]
    return count


def narrow_pair(left_losses, kept_left, right_losses, kept_right, rest, target):
    """The largest two lists of which each item fits the best of the other list in some cell.

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


def promising_pairs(left, right, around, cells, room, pairs):
    """All pairs of which some cell stays below, by the sides' own losses and by all threats."""
    (left_costs, left_losses), (right_costs, right_losses) = left, right
    weights, bounds = around
    found = []
    for a, b in itertools.product(range(len(left_costs)), range(len(right_costs))):
        apart = left_losses[a] + right_losses[b] + bounds[1:].sum(axis=0)
        costs = np.minimum(left_costs[a], right_costs[b])
        together = np.zeros(len(apart))
        for at, cell in itertools.product(range(len(weights)), range(len(apart))):
            lost = sum(
                w * row_loss(c, cell, cells) for w, c in zip(weights[at], costs, strict=True)
            )
            together[cell] += lost if at == 0 else max(lost, bounds[at, cell])
        if (np.maximum(apart, together) + cells.offset < room).any():
            found.append((a, b))
    if len(found) > len(pairs):
        return -1
    pairs[: len(found)] = np.array(found).reshape(-1, 2)
    return len(found)


def best_pair(left, right, pairs, weight, penalty, most_splits, spending):
    """The least value, of equal ones fewest questions, of these the first; -1 if none has few."""
    scored = []
    for place, (a, b) in enumerate(pairs.tolist()):
        n_splits = int(left[2][a] + right[2][b] + 1)
        cost = np.minimum(left[0][a], right[0][b])
        value = robust_loss(cost, weight, *spending) + penalty * n_splits
        if n_splits <= most_splits:
            scored.append((round(value, 7), n_splits, place))
    if not scored:
        return -1, np.inf
    value, _, place = min(scored)
    return place, value


# ---- sub-trees that are equal, and better ones ----
def hash_costs(costs, limit, shared):
    """A number for each row, the same for rows that are equal as far as their costs matter."""
    plain = [tuple(plain_cost(cost, limit, shared) for cost in row) for row in costs.tolist()]
    return np.array([plain.index(row) for row in plain])


def improve_plan(plan, depth, table, spending, order):
    """The least value of a full plan and of all that differ in one question of `order`.

    A lowest question may change together with the labels below it.
    """
    costs = np.empty(len(table.label))
    tests, labels = range(len(table.feature)), range(table.n_classes)
    values = [plan_value(plan, depth, table, spending, costs)]
    nodes = inner_nodes(depth)
    for number in order.tolist():
        at, is_lowest = nodes[number]
        below = itertools.product(labels, labels) if is_lowest else [()]
        for test, answers in itertools.product(tests, list(below)):
            other = plan.copy()
            other[at : at + 1 + len(answers)] = [test, *(-1 - label for label in answers)]
            values.append(plan_value(other, depth, table, spending, costs))
    return min(values)


def inner_nodes(depth, at=0):
    """(place, whether leaves are below it) of the inner nodes of a full plan, parents first."""
    if depth == 1:
        return [(at, True)]
    left = inner_nodes(depth - 1, at + 1)
    return [(at, False), *left, *inner_nodes(depth - 1, at + 2**depth)]
