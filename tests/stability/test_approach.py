"""Trees drawn nearer to the tree in use, against all small trees on tiny data."""

from itertools import product

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from steadytree.data.feature_space import FeatureSpace
from steadytree.distance.path import distances_between
from steadytree.models.sklearn import as_tree
from steadytree.stability.approach import Approach
from steadytree.stability.new_rows import Leaf, NewRows, Split, nested_of, read_previous
from steadytree.stability.retrain import RetrainedTreeClassifier

N_VALUES = 3
SPACE = FeatureSpace.observe([[0.0, 0.0], [2.0, 2.0]])


def rows_of(rng, chances, n=50):
    X = rng.integers(0, len(chances), (n, 2)).astype(float)
    cell = X.astype(int)
    return X, (chances[cell[:, 0], cell[:, 1]] > rng.random(n)).astype(int)


def small_trees():
    """All trees of depth 2."""
    splits = [
        Split(j, threshold, np.zeros(0, bool), False) for j in (0, 1) for threshold in (0.5, 1.5)
    ]
    ends = [Leaf(k, np.array([0.5, 0.5])) for k in (0, 1)]
    sides = [*ends, *product(splits, ends, ends)]
    return [*ends, *product(splits, sides, sides)]


@pytest.mark.parametrize("seed", range(8))
def test_no_small_tree_is_nearer_flips_no_more_and_is_as_accurate(seed):
    rng = np.random.default_rng(seed)
    chances = np.where(rng.random((N_VALUES, N_VALUES)) < 0.5, 0.1, 0.9)
    learner = DecisionTreeClassifier(max_depth=2, random_state=0)
    old = as_tree(learner.fit(*rows_of(rng, chances)))
    chances[rng.integers(N_VALUES)] = rng.choice([0.1, 0.9], N_VALUES)
    X, y = rows_of(rng, chances)
    model = RetrainedTreeClassifier(old, learner).fit(X, y)
    old, space = model.previous_tree_, model.tree_.space
    rows = NewRows(old, X, y, np.ones(len(y)), log_loss=False)
    loss, flips = rows.measure(model.tree_)[:2]
    others = []
    for tree in map(rows.tree_of, small_trees()):
        reached = np.unique(tree.apply_encoded(X))
        points = rows.measure(tree)
        if len(reached) == tree.n_leaves and points[0] <= loss and points[1] <= flips:
            others.append(tree)
    nearest = distances_between(others, [old], space).min() if others else np.inf
    assert model.choice_.distance <= nearest + 1e-6


def two_trees(seed):
    """New rows, and trees of depth 2 of the rows before and of the new ones, after a drift."""
    rng = np.random.default_rng(seed)
    chances = np.where(rng.random((N_VALUES, N_VALUES)) < 0.5, 0.1, 0.9)
    before = rows_of(rng, chances, 40)
    X, y = rows_of(rng, np.roll(chances, 1, axis=0), 40)
    fits = [DecisionTreeClassifier(max_depth=2, random_state=0).fit(*r) for r in (before, (X, y))]
    old, fresh = (read_previous(fit, SPACE, np.array([0, 1]))[0] for fit in fits)
    return NewRows(old, X, y, np.ones(40), log_loss=False), fresh


@pytest.mark.parametrize("seed", [1, 4])
def test_what_is_found_is_worth_no_less(seed, monkeypatch):
    """From the given tree for which nearer ones of no more loss change the most decisions."""
    monkeypatch.setattr("steadytree.stability.approach.MOST_READS", 400_000)
    rows, fresh = two_trees(seed)
    trees = [*map(rows.tree_of, small_trees()), fresh]
    loss, flips = np.array([rows.measure(tree)[:2] for tree in trees]).T
    apart = rows.distance(trees)

    def nearest(tree):
        """Distance of the nearest tree with no more loss, and with no more changes too."""
        within = loss <= loss[tree]
        return np.array([apart[within].min(), apart[within & (flips <= flips[tree])].min()])

    given = max(range(len(trees)), key=lambda tree: np.ptp(nearest(tree)))
    for start in (given, len(trees) - 1):
        found = Approach(rows, trees[start], [np.array([0.5, 1.5])] * 2).nearest()
        before, after = rows.measure(trees[start]), rows.measure(found)
        assert (after[:2] <= before[:2]).all()
        assert after[3] <= max(before[3], rows.old.n_leaves)
        assert nearest(start)[1] - 1e-6 <= rows.distance([found])[0] <= apart[start] + 1e-6


def test_without_a_budget_the_given_tree_stays(monkeypatch):
    monkeypatch.setattr("steadytree.stability.approach.MOST_READS", 0)
    rows, fresh = two_trees(1)
    assert Approach(rows, fresh, [np.array([0.5, 1.5])] * 2).nearest() is fresh


def test_leaves_of_weighted_rows_are_those_of_repeated_ones():
    rng = np.random.default_rng(2)
    X, y = rows_of(rng, rng.random((N_VALUES, N_VALUES)), 60)
    fit = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    old = read_previous(fit, SPACE, np.array([0, 1]))[0]
    weights = rng.integers(1, 5, 60)
    found = []
    for times, mass in ((np.ones(60, int), weights), (weights, np.ones(weights.sum()))):
        rows = NewRows(old, X.repeat(times, 0), y.repeat(times), mass.astype(float), log_loss=True)
        search = Approach(rows, old, [np.array([0.5, 1.5])] * 2)
        leaves = search._candidates(nested_of(old), rows.everyone, may_grow=True)
        found.append([next(leaves) for _ in range(2)])
    for one, other in zip(*found, strict=True):
        assert one.label == other.label
        np.testing.assert_allclose(one.share, other.share)


def test_trees_that_only_a_search_from_the_tree_in_use_finds():
    rng = np.random.default_rng(3023)
    chances = np.where(rng.random((4, 4)) < 0.5, 0.15, 0.85)
    fit = DecisionTreeClassifier(max_depth=2, random_state=0).fit(*rows_of(rng, chances, 60))
    X, y = rows_of(rng, chances, 60)
    old = read_previous(fit, FeatureSpace.observe(X), np.array([0, 1]))[0]
    rows = NewRows(old, X, y, np.ones(60), log_loss=False)

    def split(feature, threshold):
        return Split(feature, threshold, np.zeros(0, bool), False)

    no, yes = (Leaf(label, np.array([0.5, 0.5])) for label in (0, 1))
    given = (split(0, 0.5), yes, (split(1, 2.5), (split(1, 0.5), no, yes), no))
    wanted = (split(1, 1.5), (split(0, 2.5), yes, no), (split(0, 1.5), no, yes))
    given, wanted = rows.tree_of(given), rows.tree_of(wanted)
    assert (rows.measure(wanted)[:2] <= rows.measure(given)[:2]).all()
    found = Approach(rows, given, [np.array([0.5, 1.5, 2.5])] * 2).nearest()
    assert rows.distance([found])[0] <= rows.distance([wanted])[0] + 1e-9
