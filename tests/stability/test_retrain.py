"""RetrainedTreeClassifier: what it promises against the plain refit, kinds of data, bad input."""

import pickle
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_score
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from steadytree.data.dataset import write_fingerprints
from steadytree.distance.path import path_distance
from steadytree.models.sklearn import as_tree
from steadytree.models.tree import Tree
from steadytree.stability.bootstrap import mean_area
from steadytree.stability.neighbours import RATES
from steadytree.stability.pareto_tree import ParetoTreeClassifier
from steadytree.stability.retrain import RetrainedTreeClassifier, _folds, _ladder
from steadytree.stability.stable_tree import StableTreeClassifier
from steadytree.stability.steady_tree import SteadyTreeClassifier


def cart(**settings):
    return DecisionTreeClassifier(
        **{"max_leaf_nodes": 5, "min_samples_leaf": 3, "random_state": 0} | settings
    )


@pytest.fixture(scope="module")
def data():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    rows = np.random.default_rng(0).permutation(len(X))
    return X.iloc[rows, :8].reset_index(drop=True), y.to_numpy()[rows]


def drifted(rng, n=90):
    """Rows of three columns before and after a drift, with missing values and text."""
    X = pd.DataFrame(
        {
            "age": rng.integers(20, 90, 2 * n).astype(float),
            "dose": rng.random(2 * n).round(1),
            "ward": rng.choice(["A", "B", "C"], 2 * n).astype(object),
        }
    )
    X.loc[rng.random(2 * n) < 0.2, "dose"] = np.nan
    X.loc[rng.random(2 * n) < 0.1, "ward"] = None
    odds = (X["age"] > 50).to_numpy() ^ (X["ward"] == "B").to_numpy()
    y = np.where(odds ^ (rng.random(2 * n) < 0.1), "yes", "no")
    after = np.arange(2 * n) >= n
    y = np.where(after & (X["age"] > 70).to_numpy(), "no", y)
    return (X[:n], y[:n]), (X[n:], y[n:])


@parametrize_with_checks([RetrainedTreeClassifier()])
def test_it_is_an_estimator_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.slow
@given(st.integers(0, 2**32 - 1), st.sampled_from(["accuracy", "log_loss", "roc_auc"]))
@settings(max_examples=8, deadline=None)
def test_never_more_flips_nor_farther_than_the_refit(seed, scoring):
    rng = np.random.default_rng(seed)
    first, (X, y) = drifted(rng)
    learner = StableTreeClassifier(3, 0, random_state=0)
    old = learner.fit(*first).tree_
    limit = float(rng.choice([0, 0.01, 0.1]))
    model = RetrainedTreeClassifier(old, learner, limit, scoring, n_repeats=1).fit(X, y)
    before = old.predict(X)
    assert (model.predict(X) != before).sum() == model.choice_.flips
    assert model.choice_.flips <= (model.refit_.predict(X) != before).sum()
    distances = [
        path_distance(old, tree, space=model.tree_.space).value
        for tree in (model.tree_, model.refit_)
    ]
    assert distances[0] <= distances[1] + 1e-9
    assert model.choice_.distance == pytest.approx(distances[0])
    assert model.tree_.n_leaves <= max(old.n_leaves, model.refit_.n_leaves)
    sign = -1 if scoring == "log_loss" else 1
    assert sign * (model.choice_.score - model.choice_.refit_score) >= -limit - 1e-9


def test_no_limit_keeps_the_tree_and_the_same_rows_change_nothing(data):
    X, y = data
    old = cart().fit(X[:250], y[:250])
    kept = RetrainedTreeClassifier(old, max_score_loss=np.inf).fit(X[250:], y[250:])
    np.testing.assert_array_equal(kept.predict(X), old.predict(X))
    assert kept.choice_.distance == 0
    assert kept.choice_.changed_splits == 0
    assert "0 of 319 decisions change" in kept.choice_.reason
    for learner in (cart(), SteadyTreeClassifier(6)):
        old = learner.fit(X[:250], y[:250])
        same = RetrainedTreeClassifier(old).fit(X[:250], y[:250])
        assert same.choice_.distance == 0


def test_probabilities_are_those_of_the_new_rows(data):
    X, y = data
    old = cart(max_leaf_nodes=2).fit(X[:250], y[:250])
    model = RetrainedTreeClassifier(old, max_score_loss=np.inf).fit(X[250:], y[250:])
    leaves, tree = model.apply(X[250:]), model.tree_
    for leaf in np.flatnonzero(tree.is_leaf):
        rows = y[250:][leaves == leaf]
        shares = as_tree(old).value[tree.is_leaf][leaf - 1]
        expected = (np.bincount(rows, minlength=2) + 2 * shares) / (len(rows) + 2)
        np.testing.assert_allclose(tree.value[leaf], expected, atol=1e-5)
        assert tree.weight[leaf] == len(rows)


def test_the_frontier_and_its_steps(data):
    X, y = data
    old = cart().fit(X[:250], y[:250])
    model = RetrainedTreeClassifier(old, max_score_loss=0).fit(X[250:], y[250:])
    frontier, before = model.frontier_, old.predict(X[250:])
    assert model.exact_
    for k in range(len(frontier["loss"])):
        tree = model.frontier_tree(k)
        predicted = tree.predict(X[250:])
        assert frontier["flips"][k] == (predicted != before).sum()
        assert frontier["loss"][k] == (predicted != y[250:]).sum()
        assert frontier["n_leaves"][k] == tree.n_leaves
    steps = model.steps_
    assert steps["flips"][0] == steps["distance"][0] == steps["changed_splits"][0] == 0
    assert (steps["flips"] <= steps["flips"][-1]).all()
    assert (steps["distance"] <= steps["distance"][-1] + 1e-9).all()
    text = model.frontier_text()
    assert model.choice_.reason in text
    assert "plain refit" in text
    assert text.count("chosen") == 1
    with pytest.raises(ValueError, match="point must be a whole number from 0"):
        model.frontier_tree(10_000)


@pytest.mark.parametrize("scoring", ["accuracy", "log_loss"])
def test_scores_are_those_of_rows_not_learned_from(data, scoring):
    """Both ends of the steps by hand: the tree in use as it is, and a refit without each fold."""
    X, y = data[0][250:], data[1][250:]
    rng = np.random.default_rng(3)
    weights, seen = rng.integers(1, 5, len(y)).astype(float), np.arange(len(y)) < 100
    old = cart().fit(data[0][:250], data[1][:250])
    model = RetrainedTreeClassifier(old, cart(), 0, scoring, n_repeats=2)
    model.fit(X, y, sample_weight=weights, seen=seen)
    seed = int(np.random.RandomState(0).randint(np.iinfo(np.int32).max))
    total = 0.0
    for held in _folds(y, np.flatnonzero(~seen), 2, seed):
        kept = np.delete(np.arange(len(y)), held)
        tree = cart().fit(X.iloc[kept], y[kept], weights[kept])
        if scoring == "accuracy":
            scores = tree.predict(X.iloc[held]) == y[held]
        else:  # one row more in each leaf, half of each class
            mass = tree.tree_.weighted_n_node_samples[tree.apply(X.iloc[held])]
            own = tree.predict_proba(X.iloc[held])[np.arange(len(held)), y[held]]
            scores = -np.log((own * mass + 0.5) / (mass + 1))
        total += scores @ weights[held]
    found = model.steps_["score"]
    assert found[-1] == pytest.approx(total / 2 / weights[~seen].sum())
    assert model.choice_.refit_score == found[-1]
    assert model.choice_.score == found[model.choice_.step]
    if scoring == "accuracy":
        right = old.predict(X[~seen]) == y[~seen]
        assert found[0] == pytest.approx(np.average(right, weights=weights[~seen]))


def test_the_limit_is_kept_and_used(data):
    """Just below what keeping the tree loses the tree changes; just above it is kept."""
    X, y = data
    old = cart().fit(X[:250], y[:250])
    drifted_y = np.where(X.iloc[250:, 0] > X.iloc[250:, 0].quantile(0.8), 1, y[250:])

    def fitted(limit):
        return RetrainedTreeClassifier(old, cart(), limit, n_repeats=1).fit(X[250:], drifted_y)

    score = fitted(0.0).steps_["score"]
    lost = score[-1] - score[0]
    assert lost > 0.01
    below, above = fitted(lost - 1e-6), fitted(lost + 1e-6)
    assert below.choice_.step > 0
    assert below.choice_.refit_score - below.choice_.score <= lost - 1e-6
    assert above.choice_.step == above.choice_.flips == 0


def test_no_step_is_farther_than_the_refit():
    """The best point at each rate that is near enough; else that of the rate before."""
    distances = {"refit": 5.0, 0: 0.0, 1: 9.0, 2: 5.0, 3: 7.0}

    class Found:
        refit, refit_point = "refit", np.full(4, -1.0)
        rows = SimpleNamespace(distance=lambda trees: np.array([distances[t] for t in trees]))
        frontier = SimpleNamespace(points=np.arange(16.0).reshape(4, 4))
        ranks = iter([[0, 1], [1, 0, 2], [3, 1, 2], [1, 3], *[[3, 2, 0]] * (len(RATES) - 4)])

        def ranking(self, points, rate):
            return np.array(next(self.ranks))

        def build(self, point):
            return point

    trees, points, index = _ladder(Found())
    assert trees == [0, 0, 2, 2, *[2] * (len(RATES) - 4), "refit"]
    assert index.tolist() == [*trees[:-1], -1]
    np.testing.assert_array_equal(points[:-1], Found.frontier.points[index[:-1]])
    np.testing.assert_array_equal(points[-1], Found.refit_point)


def test_clone_and_cross_validation_keep_the_tree_in_use(data):
    X, y = data
    old = cart().fit(X[:250], y[:250])
    model = RetrainedTreeClassifier(old, cart(), n_repeats=1)
    copy = clone(model)
    assert copy.previous is old
    assert copy.estimator is not model.estimator
    scores = cross_val_score(model, X[250:], y[250:], cv=3)
    assert scores.min() > 0.8
    fitted = model.fit(X[250:], y[250:])
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    assert clone(model).fit(X[250:], y[250:]).tree_ == fitted.tree_
    later = RetrainedTreeClassifier(fitted, n_repeats=1).fit(X[250:], y[250:])
    assert isinstance(later.estimator_, DecisionTreeClassifier)


def test_without_a_tree_in_use_it_is_the_refit(data):
    X, y = data
    model = RetrainedTreeClassifier(estimator=cart()).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), cart().fit(X, y).predict(X))
    assert model.choice_ is None
    assert model.frontier_text() == ""
    assert model.steps_ == model.frontier_ == {}


def test_weights_count_as_repeated_rows(data):
    X, y = data
    old = cart().fit(X[:250], y[:250])
    weights = np.random.default_rng(0).integers(0, 3, 319)
    model = RetrainedTreeClassifier(old, cart(min_samples_leaf=1), np.inf)
    model.fit(X[250:], y[250:], sample_weight=weights)
    repeated = np.repeat(np.arange(250, 569), weights)
    flips = model.refit_.predict(X.iloc[repeated]) != old.predict(X.iloc[repeated])
    assert model.steps_["flips"][-1] == flips.sum()
    assert model.tree_.weight[0] == weights.sum()


def test_several_and_new_classes(data):
    X, y = data
    old = cart().fit(X[:250], np.where(y[:250] == 1, "b", "a"))
    labels = np.where(y == 1, "b", "a").astype(object)
    labels[(X.iloc[:, 0] > X.iloc[:, 0].quantile(0.7)).to_numpy()] = "new"
    labels = labels.astype(str)
    model = RetrainedTreeClassifier(as_tree(old)).fit(X[250:], labels[250:])
    assert model.estimator_.max_leaf_nodes == 5 + 2  # as large, and room for the new class
    model = RetrainedTreeClassifier(old).fit(X[250:], labels[250:])
    assert model.classes_.tolist() == ["a", "b", "new"]
    assert (model.predict(X) == "new").any()
    assert model.score(X[250:], labels[250:]) > 0.85
    gone = RetrainedTreeClassifier(model.tree_, cart()).fit(X[250:], np.full(319, "b"))
    assert gone.classes_.tolist() == ["a", "b", "new"]
    assert (gone.predict(X) == "b").mean() > 0.9


def test_new_columns_categories_and_renamed_columns():
    (X, y), (Z, z) = drifted(np.random.default_rng(3), 200)
    old = StableTreeClassifier(3, 0, random_state=0).fit(X, y)
    more = Z.assign(extra=(z == "yes") * 1.0, ward=Z["ward"].replace("C", "D"))
    model = RetrainedTreeClassifier(old, max_score_loss=0).fit(more[["extra", *Z]], z)
    assert model.tree_.space.names == ("extra", "age", "dose", "ward")
    assert set(model.tree_.space[3].categories) == {"A", "B", "C", "D"}
    assert model.score(more[["extra", *Z]], z) == 1  # the new column tells all
    renamed = Z.rename(columns={"ward": "unit"})
    with pytest.raises(ValueError, match="previous uses 'ward', which the new data lack"):
        RetrainedTreeClassifier(old).fit(renamed, z)
    names = {"ward": "unit"}
    model = RetrainedTreeClassifier(old, max_score_loss=np.inf, previous_names=names)
    np.testing.assert_array_equal(model.fit(renamed, z).predict(renamed), old.predict(Z))
    with pytest.raises(ValueError, match="the mapping names 'nothing'"):
        model.set_params(previous_names={"nothing": "unit"}).fit(renamed, z)


def test_the_side_of_missing_values_may_change_alone():
    rng = np.random.default_rng(0)
    X = rng.random((300, 1)).round(2)
    X[rng.random(300) < 0.3] = np.nan
    y = np.where(np.isnan(X[:, 0]), 0, X[:, 0] > 0.5).astype(int)
    old = StableTreeClassifier(1, 0, random_state=0).fit(X, y).tree_
    now = np.where(np.isnan(X[:, 0]), 1, y)
    model = RetrainedTreeClassifier(old).fit(X, now)
    assert model.score(X, now) == 1
    assert model.choice_.changed_splits == 1
    assert model.tree_.threshold[0] == old.threshold[0]
    assert model.tree_.missing_left[0] != old.missing_left[0]


@pytest.mark.slow
def test_rows_that_the_tree_has_seen_do_not_judge_it(tmp_path):
    """The tree in use knows its rows by heart, and what there is to learn is in another column."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 2)), rng.integers(2, size=300)
    X[:, 1] += y
    old = cart(max_leaf_nodes=30, min_samples_leaf=1).fit(X[:240] * [1, 0], y[:240])
    model = RetrainedTreeClassifier(old, cart(), n_repeats=1)
    blind = model.fit(X, y).choice_
    aware = model.fit(X, y, seen=np.arange(300) < 240).choice_
    assert aware.flips > blind.flips
    write_fingerprints(tmp_path / "old.rows.json", X[:240], y[:240])
    assert model.fit(X, y, seen=tmp_path / "old.rows.json").choice_ == aware
    used = np.arange(300) % 3 > 0  # rows of weight 0 are left out, with their flags
    part = model.fit(X[used], y[used], seen=np.flatnonzero(used) < 240).steps_
    whole = model.fit(X, y, used.astype(float), seen=np.arange(300) < 240).steps_
    np.testing.assert_allclose(whole["score"], part["score"])
    with pytest.raises(ValueError, match="seen must hold True or False for each row"):
        model.fit(X, y, seen=[1, 2])
    with pytest.raises(ValueError, match="n_samples=0 rows that previous was not learned from"):
        model.fit(X, y, seen=np.ones(300, bool))
    with pytest.raises(ValueError, match="give previous too"):
        RetrainedTreeClassifier(estimator=cart()).fit(X, y, seen=np.ones(300, bool))


def test_twenty_rows_and_one_class(data):
    X, y = data
    old = cart().fit(X[:250], y[:250])
    for estimator in (None, SteadyTreeClassifier()):
        model = RetrainedTreeClassifier(old, estimator, n_repeats=1).fit(X[250:270], y[250:270])
        assert model.choice_.flips <= model.steps_["flips"][-1]
    one = RetrainedTreeClassifier(old, n_repeats=1).fit(X[250:], np.ones(319, int))
    assert one.score(X[250:], np.ones(319, int)) > 0.98
    with pytest.raises(ValueError, match="n_samples=3 rows are too few to learn from"):
        RetrainedTreeClassifier(old, cart()).fit(X[:3], y[:3])


def test_mean_area_is_scikit_learns():
    rng = np.random.default_rng(0)
    shares, truth = rng.dirichlet([1, 1, 1], 50).round(1) + 0.01, rng.integers(0, 3, 50)
    shares /= shares.sum(axis=1, keepdims=True)
    weights = rng.random(50)
    expected = roc_auc_score(
        truth == 1, shares[:, 1] / shares[:, :2].sum(axis=1), sample_weight=weights
    )
    pair = shares[:, :2] / shares[:, :2].sum(axis=1, keepdims=True)
    assert mean_area(pair, (truth == 1).astype(int), weights) == pytest.approx(expected)
    several = np.mean([roc_auc_score(truth == k, shares[:, k]) for k in range(3)])
    assert mean_area(shares, truth) == pytest.approx(several)


class Spender(StableTreeClassifier):
    """A learner that pays for every fit."""

    def __init__(self, ledger=None):
        super().__init__()
        self.ledger = ledger


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_score_loss": -1}, "max_score_loss must be a number of at least 0"),
        ({"scoring": "f1"}, "scoring must be one of"),
        ({"n_repeats": 0}, "n_repeats must be"),
        ({"previous": "q1.tree.json"}, "a tree is needed"),
        ({"estimator": SteadyTreeClassifier(monotonic_cst=[1] + [0] * 7)}, "monotonic_cst"),
        ({"estimator": Spender(ledger="a.ledger")}, "ledger, which spends a budget at every fit"),
    ],
)
def test_bad_parameters_are_named(data, options, message):
    X, y = data
    old = cart().fit(X[:250], y[:250])
    with pytest.raises((ValueError, TypeError), match=message):
        RetrainedTreeClassifier(**{"previous": old} | options).fit(X[250:], y[250:])


def test_a_tree_in_use_of_other_classes_is_refused(data):
    X, y = data
    old = cart().fit(X[:250], y[:250])
    with pytest.raises(ValueError, match="y has none of these but '7', '8'"):
        RetrainedTreeClassifier(old).fit(X[250:], y[250:] + 7)


def test_a_tree_in_use_that_is_too_deep(data):
    X, y = data
    n = 201
    arrays = np.array([*[0, -1] * n, -1])
    left = np.where(arrays == 0, np.arange(2 * n + 1) + 1, -1)
    right = np.where(arrays == 0, np.arange(2 * n + 1) + 2, -1)
    threshold = np.where(arrays == 0, np.linspace(1, 30, 2 * n + 1), np.nan)
    value, space = np.tile([0.5, 0.5], (2 * n + 1, 1)), as_tree(cart().fit(X, y)).space
    deep = Tree(space, [0, 1], arrays, threshold, left, right, value, np.ones(2 * n + 1))
    with pytest.raises(ValueError, match="previous is 201 levels deep, more than 200"):
        RetrainedTreeClassifier(deep, cart()).fit(X, y)


@pytest.mark.parametrize("learner", [StableTreeClassifier, ParetoTreeClassifier])
def test_learners_that_took_a_tree_in_use_name_the_one_that_does(data, learner):
    with pytest.raises(ValueError, match="previous was removed: use RetrainedTreeClassifier"):
        learner(previous=cart()).fit(*data)
