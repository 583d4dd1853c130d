"""Kernels of the robust search whose results are sets or bounds, compared as such."""

import numpy as np
import pytest

import reference_robust as twins
from steadytree.kernels import robust_bounds, robust_cost, robust_descent, robust_lists
from test_kernels import Case


def copies(arguments):
    """Arguments with arrays copied, in tuples too; tables of the search are not changed."""
    return [
        tuple(part.copy() if isinstance(part, np.ndarray) else part for part in item)
        if type(item) is tuple
        else item.copy()
        if isinstance(item, np.ndarray)
        else item
        for item in arguments
    ]


@pytest.mark.parametrize("name", ["stump_bound", "two_level_bound"])
def test_bounds_equal_their_twins(name):
    for seed in range(30):
        ours, theirs = (copies(twins.for_bound(Case(seed))) for _ in range(2))
        getattr(robust_bounds, name)(*ours)
        getattr(twins, f"every_{name}")(*theirs)
        np.testing.assert_allclose(ours[-1], theirs[-1], atol=1e-9)


def test_lists_hold_every_promising_tree_once():
    sizes = []
    for seed in range(25):
        ours, theirs = (copies(twins.for_list(Case(seed))) for _ in range(2))
        n_ours = robust_lists.two_level_list(*ours)
        n_theirs = twins.every_two_level_list(*theirs)
        found = as_set(ours[-1], n_ours)
        assert found == as_set(theirs[-1], n_theirs)
        assert len(found) == n_ours
        sizes.append(n_ours)
    assert max(sizes) > 20


def as_set(found, count):
    """Rows of a list, rounded, as a set."""
    plans, costs, losses, splits = (array[:count] for array in found)
    return {
        (tuple(plan), tuple(np.round(cost, 6)), tuple(np.round(loss, 6)), int(split))
        for plan, cost, loss, split in zip(plans.tolist(), costs, losses, splits, strict=True)
    }


def test_the_best_pair_is_the_best_of_all_pairs():
    for seed in range(15):
        path, rows, outside, table, cells, _, _, found = twins.for_list(Case(seed))
        spending = 0.7, cells.shared, True
        count = robust_lists.two_level_list(
            path, rows, outside, table, cells, (0.0, 1), 30.0, found
        )
        found[2][:] = 0.0  # as if the sides had no rows of their own: nothing may be skipped
        half = max(count // 2, 1)
        left, right = (
            tuple(array[part] for array in found)
            for part in (slice(0, half), slice(half, min(count, 2 * half)))
        )
        values = [
            twins.lost_weight(np.minimum(a, b), table.weight, *spending)
            for a in left[1]
            for b in right[1]
        ]
        charge = 0.0, 7, 0.0
        target = 1e9
        first, second, value = robust_lists.best_pair(
            left, right, table, cells, charge, target, spending
        )
        if values:
            assert value == pytest.approx(min(values), abs=1e-6)
            own = np.minimum(left[1][first], right[1][second])
            assert twins.lost_weight(own, table.weight, *spending) == pytest.approx(value, abs=1e-6)
        else:
            assert first == -1


def test_pricing_the_budget_gives_the_lost_weight():
    """The least over prices of budget * price + losses is what can be lost, in parts of rows."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        n = int(rng.integers(1, 9))
        costs, weight = rng.choice([0.0, 0.3, 1.1, 2.0], n), rng.integers(1, 4, n).astype(float)
        limit = float(rng.uniform(0.1, 6))
        prices = np.concatenate([[0.0], 1 / costs[costs > 0]])
        dual = min(limit * t + (weight * np.maximum(0, 1 - t * costs)).sum() for t in prices)
        lost = robust_cost.lost_weight(costs, weight, limit, True, False)
        assert lost == pytest.approx(dual)


def test_descent_never_gets_worse():
    for seed in range(20):
        case = Case(seed)
        problem = twins.random_problem_with_questions(case)
        costs = np.empty(len(problem.table.label))
        plan = np.array([0, 0, -1, -2, 0, -2, -1], np.int32)
        before = robust_descent.plan_value(plan, 2, problem.table, problem.spending, costs)
        value = robust_descent.improve_plan(
            plan, 2, problem.table, problem.spending, np.array([2, 0, 1])
        )
        after = robust_descent.plan_value(plan, 2, problem.table, problem.spending, costs)
        assert after == pytest.approx(value)
        assert after <= before + 1e-9
