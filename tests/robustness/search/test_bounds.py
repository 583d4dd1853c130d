"""Intervals of prices: each worst perturbation has its price in one of them."""

import numpy as np
import pytest

from steadytree.robustness.search import bounds as module
from steadytree.robustness.search.bounds import Bounds
from steadytree.robustness.search.subtrees import Lists, TooExpensive
from tests.robustness import reference_search as cases
from tests.test_kernels import Case


def worst_price(costs, weight, limit):
    """The price at which the dual of the worst perturbation is least, and its value."""
    finite = costs[np.isfinite(costs) & (costs > 0)]
    prices = np.unique(np.append(0.0, 1.0 / finite))
    known, at = np.isfinite(costs), prices[:, None]
    lost = np.where(known, np.maximum(0.0, 1.0 - at * np.where(known, costs, 0.0)), 0.0) @ weight
    values = limit * prices + lost
    return prices[values.argmin()], values.min()


def test_the_price_of_every_tree_lies_in_an_interval_that_bounds_its_loss():
    n_free = n_priced = 0
    for seed in range(80):
        case = Case(seed)
        problem = cases.random_problem(case, shared=True)
        depth, table = 3, problem.table
        bounds = Bounds(problem, depth, lambda kind: None)
        bounds._set_intervals(bounds._least_price(), 1e9, 200, zero=True)
        intervals, costs = bounds.intervals, np.empty(len(table.label))
        for _ in range(10):
            encoding = cases.random_encoding(case, table, depth)
            cases.tree_costs(encoding, depth, table, costs)
            lost = cases.robust_loss(costs, table.weight, problem.limit, True, problem.integer)
            # whatever the budget, no row has a lower price than the least one
            paid = costs[np.isfinite(costs) & (costs > 0.0)]
            assert (paid * bounds._least_price() < 1.0).all()
            price, value = worst_price(costs, table.weight, problem.limit)
            assert lost <= value + 1e-6 < lost + 1.0 + 2e-6
            cell = 0 if price == 0.0 else 1 + int(np.argmax(intervals.slope[1:] >= price))
            own = [cases.row_loss(cost, cell, intervals) for cost in costs]
            found = intervals.offset[cell] + own @ table.weight
            if cell == 0:  # whole rows are lost there
                assert found < lost + 1.0
                n_free += 1
            else:
                assert problem.limit * price >= intervals.offset[cell] - 1e-9
                assert found <= value + 1e-9
                n_priced += 1
    assert min(n_free, n_priced) > 50


def test_intervals_narrow_to_the_prices_that_matter():
    for seed in range(30):
        problem = cases.random_problem_with_questions(Case(seed))
        bounds = Bounds(problem, 2, lambda kind: None)
        bounds.choose_intervals(0.6 * problem.total)
        offset, slope = bounds.intervals.offset, bounds.intervals.slope
        assert len(offset) == len(slope) == bounds.intervals.cross.shape[2]
        assert (np.diff(slope) > 0).all()
        assert bounds.of_all() == pytest.approx(
            min(bounds.of_all(), float((offset + bounds.least((), bounds.everyone, 2)).min()))
        )


def test_little_memory_forgets_bounds_and_finds_them_again(monkeypatch):
    monkeypatch.setattr(module, "LEAST_KEPT", 0)
    problem = cases.random_problem_with_questions(Case(1))
    first, second = (Bounds(problem, 3, lambda kind: None, memory) for memory in (1e9, 1.0))
    for bounds in (first, second):
        bounds.choose_intervals(problem.total)
    assert first.of_all() == second.of_all()
    assert len(second.known) < len(first.known)


def test_lists_grow_as_far_as_memory_allows():
    problem = cases.random_problem_with_questions(Case(2))
    n = len(problem.table.label)
    bounds = Bounds(problem, 3, lambda kind: None, memory=3 * 8.0 * 64 * 8 * (n + 1))
    lists = Lists(bounds, np.zeros(1, np.int64))
    grown = lists._enlarged(lists._none(15, 16), 0)
    assert len(grown) == 64
    with pytest.raises(TooExpensive):
        lists._enlarged(grown, 0)
    assert bounds.lengthen()  # the eightfold, once better bounds were tried
    assert len(lists._enlarged(grown, 0)) == 256
    assert not bounds.lengthen()
