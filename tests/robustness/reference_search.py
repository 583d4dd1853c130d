"""Twins of the kernels that search for robust trees, and the cases to try them on."""

import itertools

import numpy as np
import pandas as pd

from steadytree.data.feature_space import FeatureSpace
from steadytree.robustness.search.problem import Problem
from tests.robustness.reference_attack import random_perturbation


# ---- costs ----
def inside_bins(splits, sides, path_length, table, feature):
    """Flags of the bins of a column that lie in a box."""
    flags = np.ones(table.left_bins.shape[1], bool)
    for split, side in zip(splits[:path_length], sides[:path_length], strict=True):
        if table.feature[split] == feature:
            flags &= (table.left_bins, table.right_bins)[side][split]
    return flags


def box_costs(splits, sides, path_length, table, costs):
    asked = list(zip(splits[:path_length].tolist(), sides[:path_length].tolist(), strict=True))
    columns = sorted({int(table.feature[split]) for split, _ in asked})
    flags = {j: inside_bins(splits, sides, path_length, table, j) for j in columns}
    costs[:] = 0.0
    if not all(flags[j].any() for j in columns):
        costs[:] = np.inf
        return False
    for row in range(len(costs)):
        prices = []
        for j in columns:
            own = [
                (table.left_cost, table.right_cost)[side][split, row]
                for split, side in asked
                if table.feature[split] == j
            ]
            only_missing = not flags[j][:-1].any() and not table.missing[j, row]
            prices.append(np.inf if only_missing else max(own))
        costs[row] = (max if table.largest else sum)(prices) if prices else 0.0
    return True


def robust_loss(costs, weight, limit, shared, integer):
    if not shared:
        return float(weight[costs <= limit].sum())
    lost, left = 0.0, limit
    for row in np.argsort(costs, kind="stable"):
        units = weight[row] if costs[row] == 0 else min(weight[row], left / costs[row])
        units = np.floor(units + 1e-12) if integer else units
        lost += units
        left -= units * costs[row] if units else 0.0
        if units < weight[row]:
            break
    return float(lost)


def leaves_of(encoding, depth, index=0, path=()):
    """(path, label) of every leaf of an encoding."""
    if encoding[index] < 0:
        return [(path, -1 - int(encoding[index]))]
    below = 2**depth - 1
    left = leaves_of(encoding, depth - 1, index + 1, (*path, (int(encoding[index]), 0)))
    return left + leaves_of(
        encoding, depth - 1, index + 1 + below, (*path, (int(encoding[index]), 1))
    )


def tree_costs(encoding, depth, table, costs):
    costs[:] = np.inf
    for path, label in leaves_of(encoding, depth):
        reach = costs_of_path(path, table)
        wrong = (table.label != label) & (label < table.n_classes)
        costs[:] = np.where(wrong, np.minimum(costs, reach), costs)


def costs_of_path(path, table):
    splits, sides = (np.array([step[k] for step in path], np.int64) for k in (0, 1))
    reach = np.empty(len(table.label))
    box_costs(splits, sides, len(path), table, reach)
    return reach


# ---- descent ----
def node_indices(depth):
    def below(height, index):
        if height == 0:
            return []
        right = index + 1 + 2**height - 1
        return [(index, height), *below(height - 1, index + 1), *below(height - 1, right)]

    index, height = np.array(below(depth, 0)).reshape(-1, 2).T
    return index, height


def count_splits(encoding, depth):
    return len(leaves_of(encoding, depth)) - 1


def encoding_value(encoding, depth, table, spending, costs):
    limit, penalty, shared, integer = spending
    tree_costs(encoding, depth, table, costs)
    lost = robust_loss(costs, table.weight, limit, shared, integer)
    return lost + penalty * count_splits(encoding, depth)


def best_stump(encoding, at, depth, table, spending, best):
    winner, costs = encoding[at : at + 3].copy(), np.empty(len(table.label))
    labels = range(table.n_classes)
    for split, first, second in itertools.product(range(len(table.feature)), labels, labels):
        encoding[at : at + 3] = split, -1 - first, -1 - second
        value = encoding_value(encoding, depth, table, spending, costs)
        if value < best - 1e-9:
            best, winner = value, encoding[at : at + 3].copy()
    encoding[at : at + 3] = winner
    return best


# ---- bounds ----
def row_loss(cost, interval, intervals):
    if not intervals.shared:
        return float(cost <= intervals.limit)
    return 0.0 if np.isinf(cost) else max(0.0, 1.0 - intervals.slope[interval] * cost)


def own_loss(rows, tree, table, intervals, interval):
    """Summed losses of rows under a tree of nested (split, left, right) that only they are in."""

    def cheapest(row, node):
        """Cost of a wrong answer, and the answer as it is."""
        if not isinstance(node, tuple):
            return (np.inf if table.label[row] == node else 0.0), node
        split, left, right = node
        near, far = (left, right) if table.on_left[split, row] else (right, left)
        cross = table.right_cost if table.on_left[split, row] else table.left_cost
        beyond = cross[split, row] if far != table.label[row] else np.inf
        return min(cheapest(row, near)[0], beyond), near

    return sum(table.weight[u] * row_loss(cheapest(u, tree)[0], interval, intervals) for u in rows)


def leaf_loss(rows, table):
    counts = [table.weight[rows][table.label[rows] == k].sum() for k in range(table.n_classes)]
    return sum(counts) - max(counts)


def every_stump_bound(rows, table, intervals, penalty, bound):
    """Every split with every two labels."""
    bound[:] = leaf_loss(rows, table)
    labels = range(table.n_classes)
    for split in range(len(table.feature)):
        if table.on_left[split, rows].all() or not table.on_left[split, rows].any():
            continue
        for first, second in itertools.product(labels, labels):
            for interval in range(len(bound)):
                if first != second:
                    loss = own_loss(rows, (split, first, second), table, intervals, interval)
                    bound[interval] = min(bound[interval], penalty + loss)


def every_two_level_bound(rows, table, intervals, penalty, bound):
    bound[:] = leaf_loss(rows, table)
    for split in range(len(table.feature)):
        left, right = split_rows(rows, split, table)
        if len(left) and len(right):
            parts = np.empty((2, len(bound)))
            every_stump_bound(left, table, intervals, penalty, parts[0])
            every_stump_bound(right, table, intervals, penalty, parts[1])
            bound[:] = np.minimum(bound, penalty + parts.sum(axis=0))


def every_two_question_bound(rows, table, intervals, penalty, bound):
    """One side of a first split is a leaf."""
    every_stump_bound(rows, table, intervals, penalty, bound)
    for split in range(len(table.feature)):
        sides = split_rows(rows, split, table)
        for one, other in (sides, sides[::-1]):
            if len(one) and len(other):
                part = np.empty(len(bound))
                every_stump_bound(one, table, intervals, penalty, part)
                bound[:] = np.minimum(bound, penalty + part + leaf_loss(other, table))


def split_rows(rows, split, table):
    on_left = table.on_left[split, rows]
    return rows[on_left], rows[~on_left]


# ---- lists ----
def open_splits(splits, sides, path_length, table):
    found = []
    for split in range(len(table.feature)):
        flags = inside_bins(splits, sides, path_length, table, table.feature[split])
        found.append(
            (flags & table.left_bins[split]).any() and (flags & table.right_bins[split]).any()
        )
    return np.array(found, dtype=bool)


def region_losses(costs, region, weight, intervals, losses):
    for at, interval in itertools.product(*map(range, losses.shape)):
        losses[at, interval] = sum(
            weight[u] * row_loss(costs[u], interval, intervals)
            for u in np.flatnonzero(region == at)
        )


def every_two_level_list(path, rows, outside, table, intervals, charge, target, found):
    """Every tree of at most two levels with its losses, kept if below the target somewhere."""
    splits, sides = path
    above = tuple(zip(splits[: sides[-1]].tolist(), sides[: sides[-1]].tolist(), strict=True))
    region, bounds = outside
    penalty, most_splits = charge
    encodings, costs, losses, split_counts = found
    count = 0
    for tree in two_level_trees(above, table):
        cost = np.full(len(table.label), np.inf)
        for leaf, label in leaves_under(tree, above):
            wrong = table.label != label
            cost = np.where(wrong, np.minimum(cost, costs_of_path(leaf, table)), cost)
        loss = np.empty_like(bounds)
        region_losses(cost, region, table.weight, intervals, loss)
        n_splits = len(leaves_under(tree, above)) - 1
        total = intervals.offset + penalty * n_splits + loss[0]
        total = total + np.maximum(bounds[1:], loss[1:]).sum(axis=0)
        if (total < target).any() and n_splits <= most_splits:
            encodings[count], costs[count], split_counts[count] = flat(tree, 2), cost, n_splits
            losses[count] = loss[0] + penalty * n_splits
            count += 1
    return count


def two_level_trees(above, table):
    labels = list(range(table.n_classes))

    def stumps(path):
        splits, sides = (np.array([step[k] for step in path], np.int64) for k in (0, 1))
        allowed = np.flatnonzero(open_splits(splits, sides, len(path), table)).tolist()
        pairs = [(a, b) for a in labels for b in labels if a != b]
        return labels + [(split, a, b) for split in allowed for a, b in pairs]

    splits, sides = (np.array([step[k] for step in above], np.int64) for k in (0, 1))
    yield from labels
    for split in np.flatnonzero(open_splits(splits, sides, len(above), table)).tolist():
        options = [stumps((*above, (split, side))) for side in (0, 1)]
        yield from ((split, a, b) for a, b in itertools.product(*options) if a != b)


def leaves_under(tree, path):
    if not isinstance(tree, tuple):
        return [(path, tree)]
    split, left, right = tree
    return leaves_under(left, (*path, (split, 0))) + leaves_under(right, (*path, (split, 1)))


def flat(tree, depth):
    if not isinstance(tree, tuple):
        return [-1 - tree] + [0] * (2 ** (depth + 1) - 2)
    return [tree[0], *flat(tree[1], depth - 1), *flat(tree[2], depth - 1)]


# ---- what others can stand in for ----
def plain_cost(cost, limit, shared):
    return np.inf if cost > limit else (cost if shared else 0.0)


def undominated(costs, split_counts, limit, shared, window):
    plain = np.array([[plain_cost(c, limit, shared) for c in row] for row in costs])
    flags, kept = np.zeros(len(costs), bool), []
    for item in range(len(costs)):
        beaten = [
            (plain[k] >= plain[item]).all() and split_counts[k] <= split_counts[item]
            for k in kept[:window]
        ]
        if not any(beaten):
            flags[item] = True
            kept.append(item)
    return flags


def strongest_first(costs, limit):
    return np.argsort(-np.minimum(costs, 2 * limit).sum(axis=1), kind="stable")


# ---- cases ----
def random_problem(case, shared=None):
    rng = case.rng
    n = int(rng.integers(3, 14))
    frame = pd.DataFrame(
        {
            "a": rng.integers(0, 3, n),
            "b": rng.choice(["u", "v", "w"], n),
            "c": rng.normal(size=n).round(1),
        }
    )[list(rng.choice(["a", "b", "c"], int(rng.integers(1, 3)), replace=False))]
    if rng.random() < 0.4:
        frame.iloc[0, 0] = None
    space = FeatureSpace.observe(frame)
    values = np.asarray(space.encode(frame), float)
    space = space.with_thresholds(values, "quantile", 2)
    labels = rng.integers(0, int(rng.integers(2, 4)), n)
    weights = rng.integers(1, 3, n).astype(float)
    moves = random_perturbation(rng, space).moves(space)
    shared = bool(rng.integers(2)) if shared is None else shared
    spending = float(rng.choice([0.0, 0.5, 1.7])) + 1e-9, shared, float(rng.choice([0.0, 0.25]))
    return Problem.of(space, moves, values, labels, weights, spending)


def random_path(case, table, longest=2):
    """Tests and sides with room for two more, and the number asked at the end of sides."""
    rng, n_candidates = case.rng, len(table.feature)
    path_length = int(rng.integers(0, longest + 1)) if n_candidates else 0
    splits, sides = np.zeros(longest + 4, np.int64), np.zeros(longest + 4, np.int64)
    splits[:path_length] = rng.integers(0, max(n_candidates, 1), path_length)
    sides[:path_length] = rng.integers(0, 2, path_length)
    sides[-1] = path_length
    return splits, sides


def random_encoding(case, table, depth):
    rng = case.rng
    if depth == 0 or len(table.feature) == 0 or rng.random() < 0.2:
        label = -1 - rng.integers(table.n_classes)
        return np.array([label] + [0] * (2 ** (depth + 1) - 2), np.int32)
    below = [random_encoding(case, table, depth - 1) for _ in range(2)]
    return np.concatenate([[rng.integers(len(table.feature))], *below]).astype(np.int32)


def some_cells(problem):
    return problem.intervals(0.0, 2.0, 4)


def own_rows(path, table):
    splits, sides = path
    above = list(zip(splits[: sides[-1]].tolist(), sides[: sides[-1]].tolist(), strict=True))
    fits = [table.on_left[split] == (side == 0) for split, side in above]
    return np.flatnonzero(np.all(fits, axis=0) if fits else np.ones(len(table.label), bool))


def for_box(case):
    problem = random_problem(case)
    splits, sides = random_path(case, problem.table, 3)
    return splits, sides, int(sides[-1]), problem.table, np.empty(len(problem.table.label))


def for_lost(case):
    rng = case.rng
    n = int(rng.integers(1, 8))
    weight = rng.integers(1, 4, n).astype(float)
    costs = rng.choice([0.0, 0.3, 1.0, 2.5, np.inf], n)
    return costs, weight, float(rng.choice([0.1, 1.05, 4.2])), *map(bool, rng.integers(0, 2, 2))


def for_encoding(case):
    problem = random_problem(case)
    depth = int(case.rng.integers(1, 4))
    return random_encoding(case, problem.table, depth), depth, problem


def for_stump(case):
    problem = random_problem(case)
    if len(problem.splits) == 0:
        return for_stump(case)
    encoding = np.array([0, 0, -1, -2, 0, -2, -1], np.int32)
    encoding[[0, 1, 4]] = case.rng.integers(0, len(problem.splits), 3)
    value = encoding_value(
        encoding, 2, problem.table, problem.spending, np.empty(len(problem.table.label))
    )
    return encoding, int(case.rng.choice([1, 4])), 2, problem.table, problem.spending, value


def for_bound(case):
    problem = random_problem(case)
    intervals = some_cells(problem)
    rows = own_rows(random_path(case, problem.table, 1), problem.table)
    if len(rows) == 0:
        return for_bound(case)
    return rows, problem.table, intervals, problem.penalty, np.empty(len(intervals.offset))


def for_regions(case):
    problem = random_problem(case)
    intervals, n = some_cells(problem), len(problem.table.label)
    region = case.rng.integers(0, 3, n)
    costs = case.rng.choice([0.0, 0.4, 1.1, np.inf], n)
    return costs, region, problem.table.weight, intervals, np.empty((3, len(intervals.offset)))


def for_list(case):
    problem = random_problem(case)
    table, intervals = problem.table, some_cells(problem)
    path = random_path(case, table, 1)
    rows = own_rows(path, table)
    region = np.ones(len(table.label), np.int64)
    region[rows] = 0
    bounds = np.zeros((2, len(intervals.offset)))
    bounds[1] = case.rng.choice([0.0, 1.0])
    target = float(case.rng.choice([2.0, 4.5, 8.0]))
    room = 20_000
    found = (
        np.zeros((room, 7), np.int32),
        np.zeros((room, len(table.label))),
        np.zeros((room, len(intervals.offset))),
        np.zeros(room, np.int64),
    )
    charge = problem.penalty, int(case.rng.choice([1, 3]))
    return path, rows, (region, bounds), table, intervals, charge, target, found


def for_better(case):
    rng = case.rng
    costs = rng.choice([0.0, 1.0, 2.0, 5.0, np.inf], (int(rng.integers(1, 30)), 3))
    split_counts = rng.integers(0, 3, len(costs))
    return costs, split_counts, 2.5, bool(rng.integers(2)), int(rng.integers(1, 9))


CASES = {
    "node_indices": lambda case: (int(case.rng.integers(0, 5)),),
    "plain_cost": lambda case: (float(case.rng.choice([0.0, 1.0, 3.0])), 2.0, bool(case.n % 2)),
    "undominated": for_better,
    "strongest_first": lambda case: (for_better(case)[0], 2.5),
    "box_costs": for_box,
    "robust_loss": for_lost,
    "tree_costs": lambda case: (
        lambda encoding, depth, problem: (
            encoding,
            depth,
            problem.table,
            np.empty(len(problem.table.label)),
        )
    )(*for_encoding(case)),
    "count_splits": lambda case: for_encoding(case)[:2],
    "encoding_value": lambda case: (
        lambda encoding, depth, problem: (
            encoding,
            depth,
            problem.table,
            problem.spending,
            np.empty(len(problem.table.label)),
        )
    )(*for_encoding(case)),
    "best_stump": for_stump,
    "leaf_loss": lambda case: for_bound(case)[:2],
    "split_rows": lambda case: (
        lambda problem: (np.arange(len(problem.table.label)), 0, problem.table)
    )(random_problem_with_questions(case)),
    "open_splits": lambda case: (lambda box: (box[0], box[1], box[2], box[3]))(for_box(case)),
    "region_losses": for_regions,
}


def random_problem_with_questions(case):
    while True:
        problem = random_problem(case)
        if len(problem.splits):
            return problem


def nearly(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


COMPARE = dict.fromkeys(["robust_loss", "encoding_value", "best_stump", "leaf_loss"], nearly)
