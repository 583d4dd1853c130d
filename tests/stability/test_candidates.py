"""Several small trees and the vote among them, against loops over rows and trees."""

import numpy as np
import pytest

from steadytree.models.tree import LEAF
from steadytree.stability import candidates
from steadytree.stability.candidates import Candidates, decisions
from steadytree.stability.small_tree import SmallTree
from tests.stability.test_small_tree import random_rows, taught


def hashes_of(n, seed=0):
    return np.random.default_rng(seed).integers(2**64, size=n, dtype=np.uint64)


def pair():
    """The first column alone tells most, but two of the others tell all."""
    rng = np.random.default_rng(0)
    binned = rng.integers(0, 2, (4000, 3)).astype(np.uint8)
    y = np.where(binned[:, 1], binned[:, 2], 1 - binned[:, 2])
    binned[:, 0] = np.where(rng.random(4000) < 0.8, y, 1 - y)
    binned = np.repeat(binned, 2, axis=0)
    p = np.repeat(y, 2) * 1.0
    p[::2] = 0.98 * p[::2] + 0.02 * binned[::2, 1]  # a trace that the pair is worth looking at
    return taught(binned, p[:, None])


def test_values_are_means_of_real_rows_and_of_made_up_ones_as_five():
    rows = random_rows(3)
    tree = SmallTree.grow(rows, 5, 5.0, LEAF)
    leaves = tree.leaves(rows.binned)
    for n_real in (60, 200):
        values = tree.values(rows, n_real)
        for leaf in np.unique(leaves):
            inside = np.flatnonzero(leaves == leaf)
            real, made = inside[inside < n_real], inside[inside >= n_real]
            total, n = rows.targets[real].sum(), len(real)
            if len(made):
                total, n = total + 5 * rows.targets[made].mean(), n + 5
            assert values[leaf, 0] == pytest.approx(total / n)


@pytest.mark.parametrize("n_targets", [1, 3])
def test_agreement_is_in_decisions_with_trees_and_teacher_and_in_probabilities(n_targets):
    rows = random_rows(1)
    rng, n_real = np.random.default_rng(0), 50  # and three copies of each
    targets = rows.targets if n_targets == 1 else rng.dirichlet([1, 1, 1], 200)
    rows = rows._replace(targets=targets, weights=rng.choice([0.5, 1.0, 3.0], 200))
    found = Candidates.grow(rows, hashes_of(n_real), 4, 5.0, 4)
    assert 1 + candidates.N_HALVES <= len(found.trees) <= candidates.N_ROOTS + candidates.N_HALVES
    answers, chances = [], []
    for tree in found.trees:
        leaves, values = tree.leaves(rows.binned), tree.values(rows, n_real)
        chances.append([values[leaf] for leaf in leaves[:n_real]])
        answers.append([label(chance) for chance in chances[-1]])
    teacher = [label(target) for target in targets[:n_real]]
    for k, (own, agreement) in enumerate(zip(answers, found.agreement, strict=True)):
        total = 0.0
        for row in range(n_real):
            others = np.mean([other[row] == own[row] for other in answers])
            gaps = [shares(other[row]) - shares(chances[k][row]) for other in chances]
            near = 1 - np.mean([abs(gap).sum() / 2 for gap in gaps])
            total += rows.weights[row] * (others + (teacher[row] == own[row]) + near) / 3
        assert agreement == pytest.approx(total / rows.weights[:n_real].sum())
        assert found.trees[k].explained(rows) == found.explained[k]


def shares(chance):
    """Probabilities of all classes."""
    return np.array([1 - chance[0], chance[0]]) if len(chance) == 1 else chance


def label(value):
    return int(value[0] > 0.5) if len(value) == 1 else int(np.argmax(value))


def test_decisions_of_two_and_of_more_classes():
    assert decisions(np.array([[0.5], [0.51], [0.2]])).tolist() == [0, 1, 0]
    assert decisions(np.array([[0.2, 0.5, 0.3], [0.4, 0.3, 0.3]])).tolist() == [1, 0]


def test_halves_hold_a_row_and_its_copies_or_none():
    halves = candidates._halves(hashes_of(400), 1200)
    assert halves.shape == (candidates.N_HALVES, 1200)
    assert set(np.unique(halves)) == {0.0, 2.0}
    np.testing.assert_array_equal(halves[:, 400:], np.repeat(halves[:, :400], 2, axis=1))
    # of 400 coins, 140 to 260 heads: more than six standard deviations
    assert (abs(halves[:, :400].mean(axis=1) - 1) < 0.3).all()
    assert len(np.unique(halves, axis=0)) == candidates.N_HALVES
    assert candidates._halves(hashes_of(400), 400).shape == (candidates.N_HALVES, 400)


def test_the_tree_of_largest_agreement_is_chosen_among_those_near_the_best():
    trees = [None] * 4
    agreement = np.array([0.7, 0.8, 0.9, 0.8])
    assert Candidates(trees, np.array([10.0, 9.6, 9.4, 9.6]), agreement).chosen == 1
    assert Candidates(trees, np.array([10.0, 9.6, 9.6, 9.6]), agreement).chosen == 2
    assert Candidates(trees, np.array([10.0, 9.6, 9.6, 12.0]), agreement).chosen == 3
    assert Candidates(trees, np.array([10.0, 9.6, 9.6, 9.6]), np.full(4, 0.8)).chosen == 0


def test_another_first_split_where_the_greedy_one_explains_clearly_less():
    rows = pair()
    found = Candidates.grow(rows, hashes_of(len(rows.weights)), 4, 5.0, 4)
    assert found.trees[0].feature[0] == 0
    assert found.trees[found.chosen].feature[0] in (1, 2)
    assert found.explained[found.chosen] > 1.05 * found.explained[0]


def test_depth_and_size_hold_for_all_trees():
    rows = random_rows(2)
    for n_leaves, deepest, most in ((6, 2, 4), (3, 3, 3)):
        found = Candidates.grow(rows, hashes_of(200), n_leaves, 5.0, deepest)
        assert max((tree.left == LEAF).sum() for tree in found.trees) == most


def test_rows_alike_give_one_leaf():
    rows = taught(np.zeros((20, 2), np.uint8), np.full((20, 1), 0.3))
    found = Candidates.grow(rows, hashes_of(20), 8, 5.0, 8)
    assert len(found.trees) == 1
    assert found.chosen == 0
    assert found.agreement.tolist() == [1.0]
