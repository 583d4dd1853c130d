import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from steadytree import StableTreeClassifier, average_sensitivity, tree_distance
from tests.data.row_sets import random_rows

X, y = load_iris(return_X_y=True)


def stable(**changes):
    return StableTreeClassifier(**{"max_depth": 3, "epsilon": 0.1, "random_state": 0, **changes})


def test_the_whole_answer():
    found = average_sensitivity(stable(), X, y)
    assert found.exact
    assert found.interval is None
    assert found.distances.shape == (1, 150)
    np.testing.assert_array_equal(found.removed[0, :, 0], np.arange(150))
    assert found.value == found.distances.mean()
    value, changed, largest = found.measurements
    assert value.value == found.value
    assert changed.value == pytest.approx(100 * (found.distances > 0).mean())
    assert largest.value == found.distances.max()
    assert str(found).startswith("average sensitivity: ")
    assert len(str(found).splitlines()) == 3


def test_the_worst_rows_come_first():
    found = average_sensitivity(stable(epsilon=0), X, y)
    worst = found.worst(7)
    assert [distance for _, distance in worst] == sorted(found.distances[0])[:-8:-1]
    assert all(found.distances[0, row] == distance for (row,), distance in worst)


def test_normalised_by_the_depth_limit():
    raw = average_sensitivity(stable(), X, y, normalise=False)
    scaled = average_sensitivity(stable(), X, y)
    np.testing.assert_allclose(raw.distances / 30, scaled.distances)
    assert scaled.alternatives[0].distance == raw.alternatives[0].distance / 30
    mine = average_sensitivity(stable(), X, y, distance=lambda a, b: 7.0)
    assert mine.value == 7.0


def test_more_rows_change_more():
    found = [average_sensitivity(stable(), X, y, m, repeats=60).value for m in (1, 0.1, 0.3)]
    assert found == sorted(found)
    assert average_sensitivity(stable(), X, y, 0.1, repeats=3).removed.shape == (1, 3, 15)
    assert average_sensitivity(stable(), X, y, 2).distances.shape == (1, 100)


def test_intervals_of_sampled_sets():
    found = average_sensitivity(stable(epsilon=0), X, y, removed=15, repeats=200)
    assert not found.exact
    low, high = found.interval
    assert low < found.value < high
    mean, error = found.distances.mean(), stats.sem(found.distances[0])
    np.testing.assert_allclose((low, high), stats.t.interval(0.95, 199, mean, error))
    assert average_sensitivity(stable(), X, y, 2, repeats=1).interval is None


def test_sampled_single_rows_come_from_the_exact_distances():
    exact = average_sensitivity(stable(epsilon=0), X, y)
    sampled = average_sensitivity(stable(epsilon=0), X, y, repeats=500)
    rows = sampled.removed[0, :, 0]
    np.testing.assert_array_equal(sampled.distances[0], exact.distances[0, rows])
    assert len(set(rows.tolist())) > 130
    again = average_sensitivity(stable(epsilon=0), X, y, repeats=500)
    np.testing.assert_array_equal(again.removed, sampled.removed)
    other = average_sensitivity(stable(epsilon=0), X, y, repeats=500, random_state=1)
    assert (other.removed != sampled.removed).any()


def test_several_seeds():
    found = average_sensitivity(stable(), X, y, seeds=4)
    single = [average_sensitivity(stable(random_state=s), X, y).distances[0] for s in range(4)]
    np.testing.assert_array_equal(found.distances, single)
    low, high = found.interval
    assert low < found.value < high
    assert (
        found.measurements[1].interval[0]
        <= found.measurements[1].value
        <= found.measurements[1].interval[1]
    )
    listed = average_sensitivity(stable(), X, y, seeds=[3, 1])
    np.testing.assert_array_equal(listed.distances, [single[3], single[1]])


def test_the_estimator_is_not_changed():
    model = stable().fit(X, y)
    tree = model.tree_
    average_sensitivity(model, X[:100], y[:100], seeds=[5])
    assert model.tree_ is tree
    assert model.random_state == 0


def test_stability_is_bought_with_epsilon():
    X, y = load_breast_cancer(return_X_y=True)
    greedy, loose = (average_sensitivity(stable(epsilon=e), X, y, seeds=5).value for e in (0, 1))
    assert loose < greedy / 2


# ---- any other estimator ----
def test_scikit_learn_trees_are_cloned_and_refitted():
    learner = DecisionTreeClassifier(max_depth=2, random_state=0)
    found = average_sensitivity(learner, X, y, normalise=False)
    whole = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    for row in range(0, 150, 10):
        other = DecisionTreeClassifier(max_depth=2, random_state=0)
        other.fit(np.delete(X, row, 0), np.delete(y, row))
        assert found.distances[0, row] == tree_distance(whole, other, "node")
    assert not hasattr(learner, "tree_")
    assert sum(each.share for each in found.alternatives) <= 1 + 1e-12
    assert found.alternatives[0].share == max(each.share for each in found.alternatives)
    scaled = average_sensitivity(learner, X, y)
    np.testing.assert_allclose(scaled.distances, found.distances / 14)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames(frame):
    names = ["a", "b", "c", "d"]
    table = frame(dict(zip(names, X.T, strict=True)))
    ours = average_sensitivity(stable(), table, pd.Series(y))
    np.testing.assert_array_equal(ours.distances, average_sensitivity(stable(), X, y).distances)
    assert ours.alternatives[0].tree.space.names == tuple(names)
    learner = DecisionTreeClassifier(max_depth=2, random_state=0)
    theirs = average_sensitivity(learner, table, pd.Series(y), repeats=20)
    plain = average_sensitivity(learner, X, y, repeats=20)
    np.testing.assert_array_equal(theirs.distances, plain.distances)


def test_other_estimators_take_sets_seeds_distances_and_processes():
    learner = DecisionTreeClassifier(max_depth=3, splitter="random")
    found = average_sensitivity(
        learner, X, y, removed=5, repeats=6, seeds=2, distance="node-features", n_jobs=2
    )
    alone = average_sensitivity(
        learner, X, y, removed=5, repeats=6, seeds=2, distance="node-features"
    )
    np.testing.assert_array_equal(found.distances, alone.distances)
    assert found.removed.shape == (2, 6, 5)


@pytest.mark.parametrize(
    "learner",
    [
        DecisionTreeClassifier(max_depth=1, max_features=1),
        StableTreeClassifier(max_depth=2, epsilon=1),
    ],
)
def test_refits_share_the_randomness_of_a_learner_without_a_seed(learner):
    far = np.repeat([[0.0, 0, 0, 0], [1, 1, 1, 1]], 50, axis=0)  # one row changes no split
    labels = np.repeat([0, 1], 50)
    assert average_sensitivity(learner, far, labels, repeats=20).value == 0
    assert learner.random_state is None


# ---- bad input ----
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"removed": 0}, "at least one must be removed and one kept"),
        ({"removed": 150}, "removed=150 of 150 rows"),
        ({"removed": 1000}, "removed=1000 of 150 rows"),
        ({"removed": -1}, "at least one must be removed"),
        ({"removed": 1.5}, "removed must be a number of rows, or a share"),
        ({"removed": np.nan}, "removed must be a number of rows, or a share"),
        ({"removed": "all"}, "removed must be a number of rows, or a share"),
        ({"removed": 2, "repeats": "all"}, "repeats='all' removes one row at a time"),
        ({"repeats": 0}, "repeats must be 'all' or a whole number"),
        ({"repeats": "some"}, "repeats must be 'all' or a whole number"),
        ({"seeds": 0}, "at least one seed"),
        ({"seeds": []}, "at least one seed"),
        ({"distance": "edit"}, "kind must be one of"),
    ],
)
def test_bad_arguments_are_refused(changes, message):
    with pytest.raises((TypeError, ValueError), match=message):
        average_sensitivity(stable(), X, y, **changes)


def test_learners_without_a_tree_are_refused():
    with pytest.raises(TypeError, match="LogisticRegression"):
        average_sensitivity(LogisticRegression(max_iter=999), X, y, repeats=1)
    with pytest.raises(TypeError, match="pass the estimator, not its tree"):
        average_sensitivity(stable().fit(X, y).tree_, X, y)


@pytest.mark.parametrize("epsilon", [-1, np.nan, np.inf])
def test_bad_parameters_of_the_learner_are_refused(epsilon):
    with pytest.raises(ValueError, match="epsilon"):
        average_sensitivity(stable(epsilon=epsilon), X, y)
    with pytest.raises(ValueError, match="max_depth"):
        average_sensitivity(stable(max_depth=0), X, y)


@pytest.mark.parametrize("epsilon", [0, 0.1, 1])
@pytest.mark.parametrize("coupling", ["gumbel", "rejection"])
def test_equal_rows_with_mixed_labels_are_a_leaf(epsilon, coupling):
    rows, labels = np.ones((9, 2)), np.array([0, 1, 0, 1, 0, 1, 0, 1, 1])
    model = stable(epsilon=epsilon, coupling=coupling).fit(rows, labels)
    assert model.tree_.n_nodes == 1
    found = average_sensitivity(model, rows, labels, normalise=False)
    np.testing.assert_array_equal(found.distances[0], np.where(labels == 1, 2, 0))  # a tie is 0
    sets = average_sensitivity(model, rows, labels, removed=4, repeats=20, normalise=False)
    assert set(sets.distances[0]) <= {0.0, 2.0}


def test_one_row_is_a_leaf_and_cannot_be_removed():
    assert stable().fit([[1.0]], ["a"]).tree_.n_nodes == 1
    with pytest.raises(ValueError, match="removed=1 of 1 rows"):
        average_sensitivity(stable(), [[1.0]], ["a"])
    assert average_sensitivity(stable(), [[1.0], [2.0]], ["a", "b"]).value > 0


def test_one_class_never_changes():
    frame, _ = random_rows(np.random.default_rng(0), n=20)
    found = average_sensitivity(stable(), frame, ["same"] * 20)
    assert found.value == 0
    assert found.alternatives[0].share == 1
