import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from steadytree import (
    StableTreeClassifier,
    as_tree,
    average_sensitivity,
    load,
    save,
    tree_distance,
)
from steadytree.stability.removal import mix_values, sample_variant
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
    assert str(found).endswith("without one row, with the same bins, each row in turn")


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


# ---- real refits ----
def node_distance(a, b):
    return float(tree_distance(a, b, "node"))


@pytest.mark.parametrize("grid", ["equidistant", "quantile", "midpoint"])
@pytest.mark.parametrize("seed", range(4))
def test_shared_bins_are_those_of_a_refit_with_the_same_bins(seed, grid, monkeypatch, tmp_path):
    """What is reported is what happens when the tree is learned again from its file."""
    monkeypatch.setattr("steadytree.data.splits.GROUPED_ROWS", 0)
    rows, labels = random_rows(np.random.default_rng(seed), n=40)
    model = stable(grid=grid, n_thresholds=30, epsilon=0.3, random_state=seed + 1)
    model.fit(rows, labels)
    found = average_sensitivity(model, rows, labels, normalise=False)
    assert found.bins == "shared"
    assert "with the same bins" in str(found)
    save(model, tmp_path / "a.tree.json")
    again = stable(grid=grid, random_state=None, epsilon=0.3, bins=load(tmp_path / "a.tree.json"))
    assert again.fit(rows, labels).tree_ == model.tree_
    assert again.seed_ == seed + 1
    for k in range(40):
        kept = np.delete(np.arange(40), k)
        if rows.iloc[kept].isna().all().any() or len(set(labels[kept])) < len(set(labels)):
            continue
        refitted = again.fit(rows.iloc[kept], labels[kept])
        assert node_distance(model, refitted) == found.distances[0, k]


def test_refits_from_scratch_are_told_apart():
    found = average_sensitivity(stable(epsilon=0.3), X, y, bins="own", normalise=False)
    assert found.bins == "own"
    assert "bins of its own" in str(found)
    whole = stable(epsilon=0.3).fit(X, y)
    trees = [stable(epsilon=0.3).fit(np.delete(X, k, 0), np.delete(y, k)) for k in range(150)]
    np.testing.assert_array_equal(found.distances[0], [node_distance(whole, t) for t in trees])
    theirs = average_sensitivity(DecisionTreeClassifier(random_state=0), X, y, repeats=2)
    assert theirs.bins == "own"


def test_weighted_rows_are_removed_with_their_weights():
    weights = np.random.default_rng(0).integers(1, 4, 150)
    found = average_sensitivity(stable(), X, y, sample_weight=weights, normalise=False)
    whole = stable().fit(X, y, weights)
    again = stable(bins=whole.tree_)
    for k in range(0, 150, 7):
        kept = np.delete(np.arange(150), k)
        tree = again.fit(X[kept], y[kept], weights[kept]).tree_
        assert node_distance(whole, tree) == found.distances[0, k]
    cart = DecisionTreeClassifier(max_depth=2, random_state=0)
    found = average_sensitivity(cart, X, y, repeats=5, sample_weight=weights, normalise=False)
    whole = clone(cart).fit(X, y, weights)
    for k, distance in zip(found.removed[0, :, 0], found.distances[0], strict=True):
        kept = np.delete(np.arange(150), k)
        tree = clone(cart).fit(X[kept], y[kept], weights[kept])
        assert node_distance(as_tree(whole, X), as_tree(tree, X)) == distance
    with pytest.raises(ValueError, match="leave them out"):
        average_sensitivity(stable(), X, y, sample_weight=np.arange(150))


@pytest.mark.parametrize("change", ["labels", "bootstrap"])
@pytest.mark.parametrize("bins", ["shared", "own"])
def test_other_changes_equal_refitting(change, bins):
    two, labels = X[:100], y[:100]
    found = average_sensitivity(
        stable(), two, labels, 5, repeats=8, normalise=False, change=change, bins=bins
    )
    assert found.removed.shape == (1, 8, 5 if change == "labels" else 100)
    assert not found.exact
    whole = stable().fit(two, labels)
    again = stable(bins=whole.tree_ if bins == "shared" else None)
    for rows, distance in zip(found.removed[0], found.distances[0], strict=True):
        kept, changed = np.arange(100), labels.copy()
        if change == "labels":
            changed[rows] = 1 - changed[rows]  # of two classes the other one
        else:
            kept = rows
            assert 50 < len(np.unique(rows)) < 76  # with replacement: 63 in a hundred on average
        assert node_distance(whole, again.fit(two[kept], changed[kept])) == distance


def test_labels_changed_in_turn_are_drawn_and_so_not_exact():
    found = average_sensitivity(stable(), X, y, change="labels")
    np.testing.assert_array_equal(found.removed[0], np.arange(150)[:, None])
    assert not found.exact
    drawn = sample_variant("labels", np.arange(150), y, 4, np.random.default_rng(0))
    assert (y[drawn.labels] != y).all()
    assert {(a, b) for a, b in zip(y, y[drawn.labels], strict=True)} == {
        (a, b) for a in range(3) for b in range(3) if a != b
    }


def test_changed_values_come_from_other_rows_of_the_column():
    frame = pd.DataFrame({"a": np.arange(20.0), "b": list("uvwx") * 5}, index=np.arange(20)[::-1])
    labels = np.array([0, 1] * 10)
    variant = sample_variant("features", np.array([3, 8]), labels, 2, np.random.default_rng(0))
    mixed = mix_values(frame, variant.values)
    assert mixed.index.equals(frame.index)
    differs = (mixed != frame).to_numpy()
    assert differs.sum() in (1, 2)
    assert set(np.flatnonzero(differs.any(axis=1))) <= {3, 8}
    numbers = mix_values(np.arange(40.0).reshape(20, 2), variant.values)
    assert (numbers % 2 == [0, 1]).all()
    for learner in (stable(), DecisionTreeClassifier(random_state=0)):
        rows = frame if learner.__class__ is StableTreeClassifier else frame[["a"]]
        found = average_sensitivity(learner, rows, labels, 4, repeats=6, change="features")
        assert found.distances.shape == (1, 6)
        assert "another value in one column" in str(found)


def test_a_procedure_is_refitted_as_a_whole():
    pipeline = make_pipeline(PCA(2, random_state=0), DecisionTreeClassifier(max_depth=2))
    search = GridSearchCV(pipeline, {"decisiontreeclassifier__max_depth": [1, 2]}, cv=3)
    for procedure in (pipeline, search):
        found = average_sensitivity(procedure, X, y, 30, repeats=4, normalise=False, random_state=1)
        assert found.bins == "own"
        assert found.value > 0  # the components move with the rows
        again = average_sensitivity(procedure, X, y, 30, repeats=4, normalise=False, random_state=1)
        np.testing.assert_array_equal(found.distances, again.distances)
    longer = make_pipeline("passthrough", *(step for _, step in pipeline.steps))
    found = average_sensitivity(longer, X, y, 30, repeats=4, normalise=False, random_state=1)
    expected = average_sensitivity(pipeline, X, y, 30, repeats=4, normalise=False, random_state=1)
    np.testing.assert_array_equal(found.distances, expected.distances)
    weighted = average_sensitivity(pipeline, X, y, 30, 2, sample_weight=np.arange(1, 151))
    assert weighted.distances.shape == (1, 2)
    with pytest.raises(ValueError, match="change must be one of"):
        average_sensitivity(stable(), X, y, change="noise")
    with pytest.raises(ValueError, match="bins must be one of"):
        average_sensitivity(stable(), X, y, bins="fresh")


def count_changed(a, b, one=0, other=0):
    """Nodes left below the common top of two scikit-learn trees over scaled and raw columns."""
    splits = a.feature[one] >= 0, b.feature[other] >= 0
    if not any(splits):
        return 0 if a.value[one].argmax() == b.value[other].argmax() else 2
    same = all(splits) and a.feature[one] == b.feature[other]
    if same and np.isclose(a.threshold[one], b.threshold[other], rtol=0, atol=1e-6):
        sides = (a.children_left, b.children_left), (a.children_right, b.children_right)
        return sum(count_changed(a, b, x[one], y[other]) for x, y in sides)
    return n_below(a, one) + n_below(b, other)


def n_below(tree, node):
    if tree.feature[node] < 0:
        return 1
    return 1 + n_below(tree, tree.children_left[node]) + n_below(tree, tree.children_right[node])


@pytest.mark.parametrize("weighted", [False, True])
def test_a_search_over_a_scaled_tree_against_refits_by_hand(weighted):
    """The scaler moves with each row, which is no change of a threshold; the depth is one."""
    two, labels = X[60:110].astype(np.float32).astype(float), y[60:110]
    weights = np.random.default_rng(1).integers(1, 4, 50) if weighted else None
    cart = DecisionTreeClassifier(random_state=0)
    steps = Pipeline([("scale", StandardScaler()), ("tree", cart)])
    search = GridSearchCV(steps, {"tree__max_depth": [1, 2]}, cv=3)
    found = average_sensitivity(
        search, two, labels, 10, repeats=8, sample_weight=weights, normalise=False, random_state=5
    )
    assert found.bins == "own"
    trees, depths = [], set()
    for removed in ([], *found.removed[0]):
        kept = np.delete(np.arange(50), removed)
        given = {} if weights is None else {"tree__sample_weight": weights[kept]}
        best = clone(search).fit(two[kept], labels[kept], **given).best_params_
        plain = clone(cart).set_params(max_depth=best["tree__max_depth"])
        plain.fit(two[kept], labels[kept], None if weights is None else weights[kept])
        trees.append(plain.tree_)
        depths.add(plain.max_depth)
    expected = [count_changed(trees[0], tree) for tree in trees[1:]]
    np.testing.assert_array_equal(found.distances[0], expected)
    assert len(depths) == 2  # the choice is part of the procedure
    assert 0 < np.mean(np.array(expected) > 0) < 1


def test_bins_of_other_data():
    old = stable().fit(pd.DataFrame({"a": [0.0, 1, 2, 3] * 5, "b": list("uvwx") * 5}), [0, 1] * 10)
    new = pd.DataFrame({"a": [0.5, 9, 2, np.nan] * 5, "b": list("uvyz") * 5, "c": range(20)})
    tree = stable(bins=old.tree_).fit(new, [0, 0, 1, 1] * 5).tree_
    assert tree.predict(new).tolist() == [0, 0, 1, 1] * 5
    assert tree.space[1].categories == ("u", "v", "w", "x", "y", "z")
    assert (tree.space[0].low, tree.space[0].high, tree.space[0].missing) == (0.0, 9.0, True)
    with pytest.raises(ValueError, match="'a' held numbers"):
        stable(bins=old).fit(new.assign(a="text"), [0, 1] * 10)
    with pytest.raises(ValueError, match="this one keeps none"):
        stable(bins=DecisionTreeClassifier().fit(X, y)).fit(X, y)
