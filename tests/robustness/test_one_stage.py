"""Deciding after the shift is less conservative than before it (Justin et al., section 1.1)."""

import importlib.util
import itertools
import pathlib

import numpy as np
import pandas as pd
import pytest

from steadytree import Perturbation, RobustTreeClassifier

PATH = pathlib.Path(__file__).parents[2] / "studies" / "robust_optimal" / "one_stage.py"
SPEC = importlib.util.spec_from_file_location("one_stage", PATH)
one_stage = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(one_stage)


def rows(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (18, 3))
    return X, ((X[:, 0] > 0) ^ (X[:, 1] > 1) ^ (rng.random(18) < 0.1)).astype(int)


def shifts_within(x, step_cost, budget):
    """Every shifted row within the budget."""
    for move in itertools.product(range(-4, 5), repeat=len(x)):
        if np.abs(move) @ step_cost <= budget + 1e-9:
            yield x + np.array(move)


@pytest.mark.parametrize("seed", range(4))
def test_the_cheapest_way_out_of_a_leaf_is_that_of_all_shifts(seed):
    X, _ = rows(seed)
    rng = np.random.default_rng(seed)
    step_cost = rng.uniform(0.5, 2, 3)
    splits = tuple((int(rng.integers(3)), int(rng.integers(2))) for _ in range(3))
    cost, where = one_stage.exit_costs(splits, X, step_cost), one_stage.leaves(splits, X)
    for x, own, leaf in zip(X[:6], cost[:6], where[:6], strict=True):
        budget = min(own, 6.0)
        reached = [
            one_stage.leaves(splits, moved[None])[0]
            for moved in shifts_within(x, step_cost, budget - 1e-6)
        ]
        assert set(reached) == {leaf}
        if own < 6:
            further = shifts_within(x, step_cost, own)
            assert any(one_stage.leaves(splits, moved[None])[0] != leaf for moved in further)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("confidence", [0.99, 0.9, 0.5])
def test_two_stages_are_never_worse(seed, confidence):
    before, after = both_values(seed, confidence)
    assert before <= after


def test_two_stages_are_often_better():
    pairs = [both_values(seed, 0.9) for seed in range(6)]
    assert sum(before < after for before, after in pairs) >= 3


def both_values(seed, confidence):
    """Rows kept by the best tree of depth 2 decided before the shift, and after it."""
    X, y = rows(seed)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    noise = Perturbation.from_certainty({"a": 0.8, "b": 0.7, "c": 0.9}, confidence)
    step_cost = -np.log(1 - np.array([0.8, 0.7, 0.9]))  # equation 10
    budget = -len(y) * np.log(confidence)
    before, _ = one_stage.best_one_stage(X, y, step_cost, budget)
    after = RobustTreeClassifier(2, noise, random_state=0).fit(frame, y)
    assert after.proven_
    return before, after.objective_


def test_without_a_budget_both_are_the_optimal_tree():
    X, y = rows(0)
    best, splits = one_stage.best_one_stage(X, y, np.ones(3), 0.0)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    plain = RobustTreeClassifier(2, None, random_state=0).fit(frame, y)
    assert best == one_stage.stage_one_value(splits, X, y, np.ones(3), 0.0)
    assert best == round(plain.score(frame, y) * len(y))
