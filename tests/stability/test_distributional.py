"""The distributional form: transport between trees with and without a row, solved exactly."""

import itertools

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from steadytree import StableTreeClassifier, distributional_sensitivity, tree_distance
from tests.data.row_sets import random_rows

X, y = random_rows(np.random.default_rng(2), n=30, n_classes=2, names=["tenths", "few", "group"])
LEARNER = StableTreeClassifier(max_depth=2, epsilon=0.4, n_thresholds=8)


def trees_without(row, n_trees):
    prepared = LEARNER.prepare(X, y)
    kept = prepared.take(np.setdiff1d(np.arange(30), row))
    return [LEARNER.grow(kept.with_seed(seed)) for seed in range(n_trees)]


def test_equals_the_cheapest_of_all_pairings():
    found = distributional_sensitivity(LEARNER, X, y, n_rows=None, n_trees=5, normalise=False)
    np.testing.assert_array_equal(found.rows, np.arange(30))
    whole = trees_without([], 5)
    for row in range(0, 30, 3):
        others = trees_without(row, 5)
        cost = np.array([[tree_distance(a, b, "node") for b in others] for a in whole])
        best = min(cost[range(5), list(order)].mean() for order in itertools.permutations(range(5)))
        assert found.transported[row] == pytest.approx(best)
        assert found.coupled[row] == pytest.approx(np.diag(cost).mean())


@pytest.mark.parametrize("coupling", ["gumbel", "rejection"])
def test_transport_is_never_dearer_than_the_coupling(coupling):
    learner = StableTreeClassifier(max_depth=3, epsilon=0.3, coupling=coupling)
    found = distributional_sensitivity(learner, X, y, n_rows=6, n_trees=20)
    assert (found.transported <= found.coupled + 1e-12).all()
    assert found.value == found.transported.mean()
    assert len(found.rows) == 6
    transported, coupled = found.measurements
    assert transported.value <= coupled.value
    assert transported.interval[0] <= transported.value <= transported.interval[1]


def test_divided_by_the_largest_distance():
    raw = distributional_sensitivity(LEARNER, X, y, n_rows=4, n_trees=6, normalise=False)
    scaled = distributional_sensitivity(LEARNER, X, y, n_rows=4, n_trees=6)
    np.testing.assert_allclose(raw.transported / 14, scaled.transported)


def test_one_row_has_no_interval():
    found = distributional_sensitivity(LEARNER, X, y, n_rows=1, n_trees=3)
    assert found.measurements[0].interval is None


def test_bad_input_is_refused():
    with pytest.raises(TypeError, match="DecisionTreeClassifier"):
        distributional_sensitivity(DecisionTreeClassifier(), X, y)
    with pytest.raises(ValueError, match="n_trees"):
        distributional_sensitivity(LEARNER, X, y, n_trees=1)
    with pytest.raises(ValueError, match="n_rows"):
        distributional_sensitivity(LEARNER, X, y, n_rows=31)
    ahead = StableTreeClassifier(2, lookahead=2, n_thresholds=3, criterion="count")
    with pytest.raises(ValueError, match="lookahead=1 only"):
        distributional_sensitivity(ahead, X, y)
