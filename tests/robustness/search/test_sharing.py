"""Bounds with rows shared between sides never exceed what a tree can lose."""

import numpy as np
import pytest

from steadytree.robustness._kernels import sharing as kernels
from steadytree.robustness.search.bounds import Bounds
from steadytree.robustness.search.sharing import SharedRows
from tests.robustness import reference_search as twins
from tests.test_kernels import Case


def few_splits(case, most=4):
    """A small problem without missing values."""
    while True:
        problem = twins.random_problem(case)
        if 0 < len(problem.splits) <= most and not problem.table.missing.any():
            return problem


def rates_of(costs, price, problem):
    """Part of each row that is lost at its cost."""
    if not problem.shared:
        return (costs <= problem.limit) * 1.0
    return np.maximum(0.0, 1.0 - price * np.minimum(costs, 1e9))


def sub_trees(path, depth, problem):
    """Costs of a wrong answer (m, n), and splits (m,), of all sub-trees in a box, each once."""
    table = problem.table
    reach = twins.costs_of_path(path, table)
    labels = range(table.n_classes)
    costs = [np.where(table.label == k, np.inf, reach) for k in labels]
    found = [np.append(cost, 0.0) for cost in costs]
    if depth > 0:
        splits, sides = (np.array([step[k] for step in path], np.int64) for k in (0, 1))
        for split in np.flatnonzero(twins.open_splits(splits, sides, len(path), table)).tolist():
            left, right = (sub_trees((*path, (split, k)), depth - 1, problem) for k in (0, 1))
            both = np.minimum(left[0][:, None], right[0][None])
            count = 1 + left[1][:, None] + right[1][None]
            joined = np.concatenate([both, count[:, :, None]], axis=2)
            found.extend(joined.reshape(-1, joined.shape[2]))
    every = np.unique(np.array(found), axis=0)
    return every[:, :-1], every[:, -1]


def least_losses(costs, counts, weight, price, problem):
    losses = rates_of(costs, price, problem) @ weight + problem.penalty * counts
    return float(losses.min())


def test_least_two_levels_is_the_least_over_all_sub_trees():
    n_splits = 0
    for seed in range(150):
        case = Case(seed)
        problem = few_splits(case)
        table, n = problem.table, len(problem.table.label)
        path = twins.random_path(case, table, 2)
        weight = case.rng.choice([0.0, 0.3, 1.0, 2.0], n)
        price = float(case.rng.choice([0.1, 0.5, 1.5]))
        spending, rates = (price, problem.limit, problem.shared, problem.penalty), np.empty(n)
        found = kernels.least_two_levels(path, table, weight, spending, rates)
        above = tuple(zip(*(part[: path[1][-1]].tolist() for part in path), strict=True))
        costs, counts = sub_trees(above, 2, problem)
        assert found == pytest.approx(least_losses(costs, counts, weight, price, problem))
        # the rates are those of a sub-tree that loses so much
        losses = rates_of(costs, price, problem) @ weight + problem.penalty * counts
        alike = np.abs(rates_of(costs, price, problem) - rates).max(axis=1) < 1e-9
        assert (np.abs(losses[alike] - found) < 1e-9).any()
        n_splits += counts[np.argmin(losses)] > 0
    assert n_splits > 40


def bounds_of(problem, depth, n_cells):
    bounds = Bounds(problem, depth, lambda: None)
    bounds.intervals = problem.intervals(0.0, 2.0, n_cells)
    return bounds


@pytest.mark.parametrize(("depth", "most", "n_cases"), [(3, 3, 60), (4, 2, 40), (5, 1, 10)])
def test_shared_rows_never_exceed_the_best_tree_of_a_root(depth, most, n_cases):
    n_closed = n_open = n_tight = 0
    for seed in range(n_cases):
        case = Case(1000 * depth + seed)
        problem = few_splits(case, most)
        bounds = bounds_of(problem, depth, 12)
        cells = np.arange(len(bounds.intervals.offset))
        target = float(case.rng.uniform(0.2, 0.8)) * problem.total
        for split in bounds.splits:
            shared = SharedRows(bounds, split)
            shared.close(cells, target)
            left, right = (sub_trees(((split, k),), depth - 1, problem) for k in (0, 1))
            both = np.minimum(left[0][:, None], right[0][None]).reshape(-1, len(problem.bins.T))
            counts = (1 + left[1][:, None] + right[1][None]).ravel()
            for cell, price in zip(cells, bounds.intervals.slope, strict=True):
                least = least_losses(both, counts, problem.table.weight, price, problem)
                offset, found = bounds.intervals.offset[cell], shared.of_root[cell]
                if np.isinf(found):
                    assert offset + least >= target - 1e-6
                    n_closed += 1
                else:
                    assert found <= least + 1e-9
                    n_open += 1
                    n_tight += found > least - 1e-6
    assert min(n_closed, n_open, n_tight) > 10
