"""Bounds of deep trees over boxes, against the best of all trees."""

import itertools

import numpy as np
import pytest

from steadytree.robustness.search.box_proof import BoxProof, first_bounds
from steadytree.robustness.search.boxes import BoxProblem
from tests.robustness import reference_boxes as twins


def best_of_depth(table, depth):
    """Values of the best tree of each number of splits, through all sets of rows it may keep."""
    n = len(table.label)
    leaves = [np.array(table.label == label) for label in range(table.n_classes)]
    sets = {tuple(kept.tolist()): 0 for kept in leaves}
    for _ in range(depth):
        found = dict(sets)
        for column, index in twins.every_split(table):
            left, right = twins.sides_of(table, column, index)
            below = {tuple((np.array(kept) | ~left).tolist()): c for kept, c in sets.items()}
            beyond = {tuple((np.array(kept) | ~right).tolist()): c for kept, c in sets.items()}
            for (one, a), (two, b) in itertools.product(below.items(), beyond.items()):
                kept = tuple(x and y for x, y in zip(one, two, strict=True))
                found[kept] = min(found.get(kept, 99), 1 + a + b)
        sets = found
    values = [table.weight[list(kept)].sum() - table.penalty * c for kept, c in sets.items()]
    assert n == len(next(iter(sets)))
    return max(values)


@pytest.mark.parametrize("depth", [3, 4])
def test_no_tree_is_above_the_bound(depth):
    reached = below = 0
    for seed in range(6):
        table = twins.random_boxes(np.random.default_rng(seed), n=7, n_classes=2)
        problem = BoxProblem(None, (), table, None, None, 0.0)
        most, steps = best_of_depth(table, depth), []
        proof = BoxProof(problem, depth, problem.total, steps.append)
        leaf = np.bincount(table.label, table.weight).max()
        bounds = [proof.bound]
        while proof.lower(float(most)):
            bounds.append(proof.bound)
            assert max(proof.bound, leaf) >= most - 1e-6
        assert bounds == sorted(bounds, reverse=True)
        assert steps
        reached += max(proof.bound, leaf) <= most + 1e-6
        below += proof.bound < problem.total - 1e-6
    assert reached >= 3 or depth > 3  # of 6
    assert below >= 3


def test_first_bounds_hold_for_every_root():
    lowered = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        table = twins.random_boxes(rng)
        stump, shares = twins.one_level(table, table.weight, 0), twins.some_shares(rng, table)
        given = table, table.weight, shares, stump, float(table.weight.sum())
        near, sides = first_bounds(*given)
        true = twins.two_levels(table, table.weight)
        assert (near >= np.array(list(true.values())) - 1e-9).all()
        assert (sides <= stump).all()
        lowered += (near < table.weight.sum() - table.penalty).any()
    assert lowered > 5


@pytest.mark.parametrize("depth", [3, 4])
def test_bounds_hold_whatever_rows_give_to_each_side(depth):
    """Shares say how good a bound is, not whether it holds: here they are of any kind."""
    renewed = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        table = twins.random_boxes(rng, n=7, n_classes=2 + seed % 2)
        problem, most = BoxProblem(None, (), table, None, None, 0.0), best_of_depth(table, depth)
        proof = BoxProof(problem, depth, problem.total, lambda kind: None)
        for side in proof.below:
            side[:] = twins.some_shares(rng, table)
        leaf = np.bincount(table.label, table.weight).max()
        for _ in range(40):
            proof.shares[1] = twins.some_shares(rng, table)
            proof.settled = -np.inf
            proof.lower(float(most))
            assert max(proof.bound, leaf) >= most - 1e-6
        renewed += proof.ages.sum()
    assert renewed > 20


def test_a_column_takes_up_its_shares_where_a_root_is_visited_again():
    table = twins.random_boxes(np.random.default_rng(4), n=12, n_classes=2)
    problem = BoxProblem(None, (), table, None, None, 0.0)
    proof = BoxProof(problem, 3, problem.total, lambda kind: None)
    size = int(table.n_thresholds[0])
    assert size > 2
    other = proof.sides[:, size:].copy()
    proof.shares[1, 0] = 0.25
    proof._renew(0, slice(0, size))
    assert (proof.shares[0, 0] == 0.25).all()
    assert (proof.shares[0, 1:] == 0.5).all()
    assert proof.ages[0] == 1 + proof.ages[1:].sum()
    weights = twins.side_weights(table, table.weight, proof.shares[0])
    assert proof.sides[:, :size] == pytest.approx(np.minimum(weights[:, :size], proof.most))
    assert (proof.sides[:, size:] == other).all()
