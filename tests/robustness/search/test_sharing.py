"""Bounds with rows shared between sides never exceed what a tree can lose."""

from dataclasses import replace

import numpy as np
import pytest

from steadytree.data.column import Column
from steadytree.data.feature_space import FeatureSpace
from steadytree.robustness._kernels import sharing as kernels
from steadytree.robustness.perturbation import Perturbation
from steadytree.robustness.search.bounds import Bounds
from steadytree.robustness.search.problem import Problem
from steadytree.robustness.search.sharing import SharedRows, can_share
from tests.robustness import reference_search as cases
from tests.robustness import reference_sharing as twins
from tests.test_kernels import Case


def few_splits(case, most=4):
    """A small problem without missing values."""
    while True:
        problem = cases.random_problem(case)
        if 0 < len(problem.splits) <= most and not problem.table.missing.any():
            return problem


def test_least_two_levels_is_the_least_over_all_sub_trees():
    n_splits = 0
    for seed in range(80):
        case = Case(seed)
        problem = few_splits(case)
        table, n = problem.table, len(problem.table.label)
        path = cases.random_path(case, table, 2)
        weight = case.rng.choice([0.0, 0.3, 1.0, 2.0], n)
        price = float(case.rng.choice([1e-15, 0.1, 0.5, 1.5]))
        spending = price, problem.limit, problem.shared, problem.penalty
        rates, expected = np.empty(n), []
        found = kernels.least_two_levels(path, table, weight, spending, rates)
        least = twins.least_two_levels(path, table, weight, spending, expected)
        assert found == pytest.approx(least)
        # the rates are those of a sub-tree that loses so much
        assert np.abs(np.array(expected) - rates).max(axis=1).min() < 1e-9
        leaf = twins.sub_trees((), 0, table)[0]
        n_splits += least < (twins.rates_of(leaf, *spending[:3]) @ weight).min() - 1e-9
    assert n_splits > 25


def least_of(regions, problem, price):
    """The least that trees lose at a price, by enumeration; regions are (path, levels below)."""
    table, costs, counts = (
        problem.table,
        np.full((1, len(problem.table.label)), np.inf),
        np.zeros(1),
    )
    for path, depth in regions:
        more, splits = twins.sub_trees(path, depth, table)
        costs = np.minimum(costs[:, None], more[None]).reshape(-1, len(table.label))
        counts = (counts[:, None] + splits[None]).ravel()
        joined = np.unique(np.column_stack([costs, counts]), axis=0)
        costs, counts = joined[:, :-1], joined[:, -1]
    rates = twins.rates_of(costs, price, problem.limit, problem.shared)
    losses = rates @ table.weight + problem.penalty * (counts + len(regions) - 1)
    return losses.min()


@pytest.mark.parametrize(("depth", "most", "n_cases"), [(3, 3, 25), (4, 2, 25), (5, 1, 20)])
def test_shared_rows_never_exceed_the_best_tree_of_a_root(depth, most, n_cases):
    n_closed = n_open = n_tight = 0
    for seed in range(n_cases):
        case = Case(1000 * depth + seed)
        problem = few_splits(case, most)
        bounds = Bounds(problem, depth, lambda kind: None)
        bounds.intervals = problem.intervals(0.0, 2.0, 12)
        cells = np.arange(len(bounds.intervals.offset))
        target = float(case.rng.uniform(0.2, 0.8)) * problem.total
        for split in bounds.splits:
            shared = SharedRows(bounds, split)
            shared.close(cells, target)
            for cell, price in zip(cells, bounds.intervals.slope, strict=True):
                sides = [(((split, k),), depth - 1) for k in (0, 1)]
                least = least_of(sides, problem, price)
                offset, found = bounds.intervals.offset[cell], shared.of_root[cell]
                if np.isinf(found):
                    assert offset + least >= target - 1e-6
                    n_closed += 1
                else:
                    assert found <= least + 1e-9
                    n_open += 1
                    n_tight += found > least - 1e-6
    assert min(n_closed, n_open, n_tight) > 10


def flags_problem(rng):
    """Three columns of 0 and 1, so that splits below others leave values on both sides."""
    columns = [Column(f"x{j}", "integer", 0.0, 1.0).with_thresholds(np.zeros(1)) for j in range(3)]
    space = FeatureSpace(tuple(columns))
    cost = {f"x{j}": float(rng.choice([0.4, 1.0, 1.7])) for j in range(3)}
    moves = Perturbation(step_cost=cost, budget=1.0, scope="total").moves(space)
    values = rng.integers(0, 2, (9, 3)).astype(float)
    spending = float(rng.choice([0.5, 1.7])), True, float(rng.choice([0.0, 0.25]))
    return Problem.of(space, moves, values, rng.integers(0, 2, 9), None, spending)


def test_pairs_of_splits_that_are_closed_have_no_tree_below_the_target():
    n_closed = n_open = n_leaves = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        problem = flags_problem(rng)
        bounds = Bounds(problem, 4, lambda kind: None)
        bounds.intervals = problem.intervals(0.0, 2.0, 4)
        target = float(rng.uniform(0.2, 0.8)) * problem.total
        shared = SharedRows(bounds, 0)
        shared.close(np.arange(4), target)
        for cell, price in enumerate(bounds.intervals.slope):
            room = target - 1e-6 - bounds.intervals.offset[cell]
            for first, second in ((1, 1), (1, 2), (2, 1), (2, 2)):
                if shared.open_pairs[first, second, cell]:
                    n_open += 1
                    continue
                splits = (0, first), (1, second)
                ways = [(((0, k), (split, u)), 2) for k, split in splits for u in (0, 1)]
                assert least_of(ways, problem, price) >= room
                n_closed += np.isfinite(shared.of_root[cell])
            for side in (0, 1):  # a leaf there, and any sub-tree on the other side
                ways = (((0, side),), 0), (((0, 1 - side),), 3)
                if not shared.open_leaves[side, cell]:
                    assert least_of(ways, problem, price) >= room
                    n_leaves += np.isfinite(shared.of_root[cell])
    assert min(n_closed, n_open, n_leaves) > 2


def test_rows_are_not_shared_with_missing_values_or_too_little_memory():
    found = set()
    for seed in range(40):
        problem = cases.random_problem_with_questions(Case(seed))
        missing = problem.table.missing.any()
        assert can_share(Bounds(problem, 4, lambda kind: None)) == (not missing)
        assert not can_share(Bounds(problem, 4, lambda kind: None, memory=100.0))
        assert not can_share(Bounds(problem, 2, lambda kind: None))
        found.add(bool(missing))
    assert found == {True, False}


def test_bounds_of_a_side_fall_with_the_weight_that_is_taken_from_it():
    n_positive = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        problem = flags_problem(rng)
        shared, weight = SharedRows(Bounds(problem, 4, lambda kind: None), 0), problem.table.weight
        found, _ = shared._least(shared.paths[0], weight, 3, 0.3, np.inf)
        n_positive += found > 0.0
        less = weight * rng.uniform(0.0, 1.0, len(weight))
        held = shared._held(shared.paths[0], less, 0.3).bound
        for split in (1, 2):
            ways = [(((0, 0), (split, k)), 2) for k in (0, 1)]
            scaled = replace(problem, table=problem.table._replace(weight=less))
            assert held[split] <= least_of(ways, scaled, 0.3) + 1e-9
        assert (shared._held(shared.paths[0], 0.0 * weight, 0.3).bound[1:] <= 1e-9).all()
    assert n_positive > 3


@pytest.mark.parametrize("shared", [True, False])
def test_losses_across_all_splits_are_those_of_each_row(shared):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n, n_groups, limit = int(rng.integers(1, 20)), 4, 1.0
        groups = rng.integers(0, n_groups, n)
        start, order = kernels.grouped(groups, n_groups)
        worth, drop = rng.random((2, n))  # in the order of the groups
        extra = rng.choice([0.0, 0.3, 1.0, np.inf], (2, 3, n))
        across = np.empty((2, n_groups, 3))
        by_row = np.ascontiguousarray(extra.transpose((0, 2, 1)))
        spending = 0.5, limit, shared, 0.0
        kernels.all_crossing_losses(start, order, worth, drop, by_row, spending, across)
        lost = np.zeros_like(across)
        for at, row in enumerate(order):
            cost = extra[:, :, row]
            part = np.maximum(0.0, worth[at] - drop[at] * cost)
            lost[:, groups[row]] += part if shared else worth[at] * (drop[at] + cost <= limit)
        np.testing.assert_allclose(across, lost)
