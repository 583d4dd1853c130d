"""Bounds of deep trees over boxes, against the best of all trees."""

import itertools

import numpy as np
import pytest

from steadytree.robustness.search.box_proof import BoxProof
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
