"""Twins of the kernels that search for robust trees, and the cases to try them on."""

import itertools

import numpy as np
import pandas as pd

from steadytree.data.feature_space import FeatureSpace
from steadytree.robustness.search.problem import make_problem
from tests.robustness.reference_attack import random_perturbation


# ---- costs ----
def inside_bins(tests, sides, n_asked, table, feature):
    """Flags of the bins of a column that lie in a box."""
    flags = np.ones(table.left_bins.shape[1], bool)
    for test, side in zip(tests[:n_asked], sides[:n_asked], strict=True):
        if table.feature[test] == feature:
            flags &= (table.left_bins, table.right_bins)[side][test]
    return flags


def box_costs(tests, sides, n_asked, table, costs):
    asked = list(zip(tests[:n_asked].tolist(), sides[:n_asked].tolist(), strict=True))
    columns = sorted({int(table.feature[test]) for test, _ in asked})
    flags = {j: inside_bins(tests, sides, n_asked, table, j) for j in columns}
    costs[:] = 0.0
    if not all(flags[j].any() for j in columns):
        costs[:] = np.inf
        return False
    for row in range(len(costs)):
        prices = []
        for j in columns:
            own = [
                (table.left_cost, table.right_cost)[side][test, row]
                for test, side in asked
                if table.feature[test] == j
            ]
            only_missing = not flags[j][:-1].any() and not table.gone[j, row]
            prices.append(np.inf if only_missing else max(own))
        costs[row] = (max if table.largest else sum)(prices) if prices else 0.0
    return True


def robust_loss(costs, weight, limit, shared, whole):
    if not shared:
        return float(weight[costs <= limit].sum())
    lost, left = 0.0, limit
    for row in np.argsort(costs, kind="stable"):
        units = weight[row] if costs[row] == 0 else min(weight[row], left / costs[row])
        units = np.floor(units + 1e-12) if whole else units
        lost += units
        left -= units * costs[row] if units else 0.0
        if units < weight[row]:
            break
    return float(lost)


def leaves_of(plan, depth, place=0, path=()):
    """(path, label) of every leaf of a plan."""
    if plan[place] < 0:
        return [(path, -1 - int(plan[place]))]
    below = 2**depth - 1
    left = leaves_of(plan, depth - 1, place + 1, (*path, (int(plan[place]), 0)))
    return left + leaves_of(plan, depth - 1, place + 1 + below, (*path, (int(plan[place]), 1)))


def tree_costs(plan, depth, table, costs):
    costs[:] = np.inf
    for path, label in leaves_of(plan, depth):
        reach = costs_of_path(path, table)
        wrong = (table.label != label) & (label < table.n_classes)
        costs[:] = np.where(wrong, np.minimum(costs, reach), costs)


def costs_of_path(path, table):
    tests, sides = (np.array([step[k] for step in path], np.int64) for k in (0, 1))
    reach = np.empty(len(table.label))
    box_costs(tests, sides, len(path), table, reach)
    return reach


# ---- descent ----
def count_splits(plan, depth):
    return len(leaves_of(plan, depth)) - 1


def plan_value(plan, depth, table, spending, costs):
    limit, penalty, shared, whole = spending
    tree_costs(plan, depth, table, costs)
    lost = robust_loss(costs, table.weight, limit, shared, whole)
    return lost + penalty * count_splits(plan, depth)


def best_stump(plan, at, depth, table, spending, best):
    winner, costs = plan[at : at + 3].copy(), np.empty(len(table.label))
    labels = range(table.n_classes)
    for test, first, second in itertools.product(range(len(table.feature)), labels, labels):
        plan[at : at + 3] = test, -1 - first, -1 - second
        value = plan_value(plan, depth, table, spending, costs)
        if value < best - 1e-9:
            best, winner = value, plan[at : at + 3].copy()
    plan[at : at + 3] = winner
    return best


# ---- bounds ----
def row_loss(cost, cell, cells):
    if not cells.shared:
        return float(cost <= cells.limit)
    return 0.0 if np.isinf(cost) else max(0.0, 1.0 - cells.slope[cell] * cost)


def own_loss(rows, tree, table, cells, cell):
    """Summed losses of rows under a tree of nested (test, left, right) that only they are in."""

    def cheapest(row, node):
        """Cost of a wrong answer, and the answer as it is."""
        if not isinstance(node, tuple):
            return (np.inf if table.label[row] == node else 0.0), node
        test, left, right = node
        near, far = (left, right) if table.on_left[test, row] else (right, left)
        cross = table.right_cost if table.on_left[test, row] else table.left_cost
        beyond = cross[test, row] if far != table.label[row] else np.inf
        return min(cheapest(row, near)[0], beyond), near

    return sum(table.weight[u] * row_loss(cheapest(u, tree)[0], cell, cells) for u in rows)


def leaf_loss(rows, table):
    counts = [table.weight[rows][table.label[rows] == k].sum() for k in range(table.n_classes)]
    return sum(counts) - max(counts)


def every_stump_bound(rows, table, cells, penalty, bound):
    """Every question with every two labels."""
    bound[:] = leaf_loss(rows, table)
    labels = range(table.n_classes)
    for test in range(len(table.feature)):
        if table.on_left[test, rows].all() or not table.on_left[test, rows].any():
            continue
        for first, second in itertools.product(labels, labels):
            for cell in range(len(bound)):
                if first != second:
                    loss = own_loss(rows, (test, first, second), table, cells, cell)
                    bound[cell] = min(bound[cell], penalty + loss)


def every_two_level_bound(rows, table, cells, penalty, bound):
    bound[:] = leaf_loss(rows, table)
    for test in range(len(table.feature)):
        left, right = split_rows(rows, test, table)
        if len(left) and len(right):
            parts = np.empty((2, len(bound)))
            every_stump_bound(left, table, cells, penalty, parts[0])
            every_stump_bound(right, table, cells, penalty, parts[1])
            bound[:] = np.minimum(bound, penalty + parts.sum(axis=0))


def every_two_question_bound(rows, table, cells, penalty, bound):
    """One side of a first question is a leaf."""
    every_stump_bound(rows, table, cells, penalty, bound)
    for test in range(len(table.feature)):
        sides = split_rows(rows, test, table)
        for one, other in (sides, sides[::-1]):
            if len(one) and len(other):
                part = np.empty(len(bound))
                every_stump_bound(one, table, cells, penalty, part)
                bound[:] = np.minimum(bound, penalty + part + leaf_loss(other, table))


def split_rows(rows, test, table):
    on_left = table.on_left[test, rows]
    return rows[on_left], rows[~on_left]


# ---- lists ----
def open_tests(tests, sides, n_asked, table):
    found = []
    for test in range(len(table.feature)):
        flags = inside_bins(tests, sides, n_asked, table, table.feature[test])
        found.append(
            (flags & table.left_bins[test]).any() and (flags & table.right_bins[test]).any()
        )
    return np.array(found, dtype=bool)


def region_losses(costs, region, weight, cells, losses):
    for at, cell in itertools.product(*map(range, losses.shape)):
        losses[at, cell] = sum(
            weight[u] * row_loss(costs[u], cell, cells) for u in np.flatnonzero(region == at)
        )


def every_two_level_list(path, rows, outside, table, cells, charge, target, found):
    """Every tree of at most two levels with its losses, kept if some cell is below the target."""
    tests, sides = path
    above = tuple(zip(tests[: sides[-1]].tolist(), sides[: sides[-1]].tolist(), strict=True))
    region, bounds = outside
    penalty, most_splits = charge
    plans, costs, losses, splits = found
    count = 0
    for tree in two_level_trees(above, table):
        cost = np.full(len(table.label), np.inf)
        for leaf, label in leaves_under(tree, above):
            wrong = table.label != label
            cost = np.where(wrong, np.minimum(cost, costs_of_path(leaf, table)), cost)
        loss = np.empty_like(bounds)
        region_losses(cost, region, table.weight, cells, loss)
        n_splits = len(leaves_under(tree, above)) - 1
        total = cells.offset + penalty * n_splits + loss[0]
        total = total + np.maximum(bounds[1:], loss[1:]).sum(axis=0)
        if (total < target).any() and n_splits <= most_splits:
            plans[count], costs[count], splits[count] = flat(tree, 2), cost, n_splits
            losses[count] = loss[0] + penalty * n_splits
            count += 1
    return count


def two_level_trees(above, table):
    labels = list(range(table.n_classes))

    def stumps(path):
        tests, sides = (np.array([step[k] for step in path], np.int64) for k in (0, 1))
        allowed = np.flatnonzero(open_tests(tests, sides, len(path), table)).tolist()
        pairs = [(a, b) for a in labels for b in labels if a != b]
        return labels + [(test, a, b) for test in allowed for a, b in pairs]

    tests, sides = (np.array([step[k] for step in above], np.int64) for k in (0, 1))
    yield from labels
    for test in np.flatnonzero(open_tests(tests, sides, len(above), table)).tolist():
        options = [stumps((*above, (test, side))) for side in (0, 1)]
        yield from ((test, a, b) for a, b in itertools.product(*options) if a != b)


def leaves_under(tree, path):
    if not isinstance(tree, tuple):
        return [(path, tree)]
    test, left, right = tree
    return leaves_under(left, (*path, (test, 0))) + leaves_under(right, (*path, (test, 1)))


def flat(tree, depth):
    if not isinstance(tree, tuple):
        return [-1 - tree] + [0] * (2 ** (depth + 1) - 2)
    return [tree[0], *flat(tree[1], depth - 1), *flat(tree[2], depth - 1)]


# ---- what others can stand in for ----
def plain_cost(cost, limit, shared):
    return np.inf if cost > limit else (cost if shared else 0.0)


def undominated(costs, splits, limit, shared, window):
    plain = np.array([[plain_cost(c, limit, shared) for c in row] for row in costs])
    flags, kept = np.zeros(len(costs), bool), []
    for item in range(len(costs)):
        beaten = [
            (plain[k] >= plain[item]).all() and splits[k] <= splits[item] for k in kept[:window]
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
    return make_problem(space, moves, values, labels, weights, spending)


def random_path(case, table, longest=2):
    """Tests and sides with room for two more, and the number asked at the end of sides."""
    rng, n_tests = case.rng, len(table.feature)
    n_asked = int(rng.integers(0, longest + 1)) if n_tests else 0
    tests, sides = np.zeros(longest + 4, np.int64), np.zeros(longest + 4, np.int64)
    tests[:n_asked] = rng.integers(0, max(n_tests, 1), n_asked)
    sides[:n_asked] = rng.integers(0, 2, n_asked)
    sides[-1] = n_asked
    return tests, sides


def random_plan(case, table, depth):
    rng = case.rng
    if depth == 0 or len(table.feature) == 0 or rng.random() < 0.2:
        label = -1 - rng.integers(table.n_classes)
        return np.array([label] + [0] * (2 ** (depth + 1) - 2), np.int32)
    below = [random_plan(case, table, depth - 1) for _ in range(2)]
    return np.concatenate([[rng.integers(len(table.feature))], *below]).astype(np.int32)


def some_cells(problem):
    return problem.cells(0.0, 2.0, 4)


def own_rows(path, table):
    tests, sides = path
    above = list(zip(tests[: sides[-1]].tolist(), sides[: sides[-1]].tolist(), strict=True))
    fits = [table.on_left[test] == (side == 0) for test, side in above]
    return np.flatnonzero(np.all(fits, axis=0) if fits else np.ones(len(table.label), bool))


def for_box(case):
    problem = random_problem(case)
    tests, sides = random_path(case, problem.table, 3)
    return tests, sides, int(sides[-1]), problem.table, np.empty(len(problem.table.label))


def for_lost(case):
    rng = case.rng
    n = int(rng.integers(1, 8))
    weight = rng.integers(1, 4, n).astype(float)
    costs = rng.choice([0.0, 0.3, 1.0, 2.5, np.inf], n)
    return costs, weight, float(rng.choice([0.1, 1.05, 4.2])), *map(bool, rng.integers(0, 2, 2))


def for_plan(case):
    problem = random_problem(case)
    depth = int(case.rng.integers(1, 4))
    return random_plan(case, problem.table, depth), depth, problem


def for_stump(case):
    problem = random_problem(case)
    if len(problem.questions) == 0:
        return for_stump(case)
    plan = np.array([0, 0, -1, -2, 0, -2, -1], np.int32)
    plan[[0, 1, 4]] = case.rng.integers(0, len(problem.questions), 3)
    value = plan_value(plan, 2, problem.table, problem.spending, np.empty(len(problem.table.label)))
    return plan, int(case.rng.choice([1, 4])), 2, problem.table, problem.spending, value


def for_bound(case):
    problem = random_problem(case)
    cells = some_cells(problem)
    rows = own_rows(random_path(case, problem.table, 1), problem.table)
    if len(rows) == 0:
        return for_bound(case)
    return rows, problem.table, cells, problem.penalty, np.empty(len(cells.offset))


def for_regions(case):
    problem = random_problem(case)
    cells, n = some_cells(problem), len(problem.table.label)
    region = case.rng.integers(0, 3, n)
    costs = case.rng.choice([0.0, 0.4, 1.1, np.inf], n)
    return costs, region, problem.table.weight, cells, np.empty((3, len(cells.offset)))


def for_list(case):
    problem = random_problem(case)
    table, cells = problem.table, some_cells(problem)
    path = random_path(case, table, 1)
    rows = own_rows(path, table)
    region = np.ones(len(table.label), np.int64)
    region[rows] = 0
    bounds = np.zeros((2, len(cells.offset)))
    bounds[1] = case.rng.choice([0.0, 1.0])
    target = float(case.rng.choice([2.0, 4.5, 8.0]))
    room = 20_000
    found = (
        np.zeros((room, 7), np.int32),
        np.zeros((room, len(table.label))),
        np.zeros((room, len(cells.offset))),
        np.zeros(room, np.int64),
    )
    charge = problem.penalty, int(case.rng.choice([1, 3]))
    return path, rows, (region, bounds), table, cells, charge, target, found


def for_better(case):
    rng = case.rng
    costs = rng.choice([0.0, 1.0, 2.0, 5.0, np.inf], (int(rng.integers(1, 30)), 3))
    splits = rng.integers(0, 3, len(costs))
    return costs, splits, 2.5, bool(rng.integers(2)), int(rng.integers(1, 9))


CASES = {
    "plain_cost": lambda case: (float(case.rng.choice([0.0, 1.0, 3.0])), 2.0, bool(case.n % 2)),
    "undominated": for_better,
    "strongest_first": lambda case: (for_better(case)[0], 2.5),
    "box_costs": for_box,
    "robust_loss": for_lost,
    "tree_costs": lambda case: (
        lambda plan, depth, problem: (
            plan,
            depth,
            problem.table,
            np.empty(len(problem.table.label)),
        )
    )(*for_plan(case)),
    "count_splits": lambda case: for_plan(case)[:2],
    "plan_value": lambda case: (
        lambda plan, depth, problem: (
            plan,
            depth,
            problem.table,
            problem.spending,
            np.empty(len(problem.table.label)),
        )
    )(*for_plan(case)),
    "best_stump": for_stump,
    "leaf_loss": lambda case: for_bound(case)[:2],
    "split_rows": lambda case: (
        lambda problem: (np.arange(len(problem.table.label)), 0, problem.table)
    )(random_problem_with_questions(case)),
    "open_tests": lambda case: (lambda box: (box[0], box[1], box[2], box[3]))(for_box(case)),
    "region_losses": for_regions,
}


def random_problem_with_questions(case):
    while True:
        problem = random_problem(case)
        if len(problem.questions):
            return problem


def nearly(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


COMPARE = dict.fromkeys(["robust_loss", "plan_value", "best_stump", "leaf_loss"], nearly)
