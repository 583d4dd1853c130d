"""Choosing on the frontier, and retraining that stays close."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from steadytree.distance.path import path_distances
from steadytree.models.sklearn import as_tree
from steadytree.stability.bootstrap import (
    PAPER_GRID,
    Sample,
    choose,
    on_frontier,
    score_trees,
)
from steadytree.stability.pareto_tree import ParetoTreeClassifier
from steadytree.stability.stable_tree import StableTreeClassifier


@parametrize_with_checks(
    [ParetoTreeClassifier(n_trees=4, random_state=0)],
    expected_failed_checks=lambda estimator: {
        "check_sample_weight_equivalence_on_dense_data": "rows are held out and drawn, not weights",
    },
)
def test_follows_the_sklearn_contract(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def data():
    return load_breast_cancer(return_X_y=True, as_frame=True)


PUBLISHED = {"refit": False, "select": "knee"}


@pytest.fixture(scope="module")
def model(data):
    return ParetoTreeClassifier(n_trees=30, random_state=0, **PUBLISHED).fit(*data)


# ---- the frontier ----
@given(st.lists(st.tuples(*[st.integers(0, 4)] * 3), min_size=1, max_size=12), st.integers(2, 3))
@settings(max_examples=80)
def test_the_frontier_is_what_the_paper_says(rows, n_costs):
    costs = np.array(rows, dtype=float)[:, :n_costs]

    def beats(a, b):
        return all(a <= b) and any(a < b)

    expected = [not any(beats(other, row) for other in costs) for row in costs]
    assert on_frontier(costs).tolist() == expected


def test_each_way_of_choosing():
    columns = {
        "distance": np.array([1.0, 2.0, 3.0, 6.0, 5.0]),
        "score": np.array([0.80, 0.90, 0.94, 0.95, 0.70]),
    }
    frontier = np.arange(4)
    assert choose(columns, frontier, "tolerance", 0.01) == 2
    assert choose(columns, frontier, "tolerance", 0.06) == 1
    assert choose(columns, frontier, "tolerance", 0.0) == 3
    assert choose(columns, frontier, 0.0, 0.0) == 3
    assert choose(columns, frontier, 1.0, 0.0) == 0
    assert choose(columns, frontier, "knee", 0.0) == 2  # 0.6 + 14/15 over 0.8 + 10/15
    assert choose(columns, frontier, lambda c: -c["distance"], 0.0) == 0
    assert choose(columns, np.array([3]), "knee", 0.0) == 3  # one tree that beats all
    with pytest.raises(ValueError, match="one value a candidate"):
        choose(columns, frontier, lambda c: 0.0, 0.0)


def test_candidates_tell_the_truth(model, data):
    X, _ = data
    found = model.candidates_frame()
    assert len(found) == len(model.trees_) == 30
    space = model.tree_.space
    between = path_distances(model.trees_, model.first_trees_, space=space)
    np.testing.assert_allclose(found["distance"], between.mean(axis=1), atol=1e-12)
    costs = np.stack([found["distance"], -found["score"]], axis=1)
    np.testing.assert_array_equal(found["on_frontier"], on_frontier(costs))
    assert set(model.frontier_) == set(np.flatnonzero(found["on_frontier"]))
    assert model.chosen_ in model.frontier_
    assert model.tree_ == model.trees_[model.chosen_]
    assert (found["depth"] <= found["param_max_depth"]).all()
    np.testing.assert_array_equal(model.predict(X), model.tree_.predict(X))


def test_same_seed_same_tree_whatever_the_number_of_processes(data):
    X, y = data
    one = ParetoTreeClassifier(n_trees=6, random_state=3).fit(X, y)
    two = ParetoTreeClassifier(n_trees=6, random_state=3, n_jobs=2).fit(X, y)
    assert one.tree_ == two.tree_
    assert one.trees_ == two.trees_


def test_scores_are_those_of_rows_no_candidate_saw(data):
    """A label that is pure noise cannot be scored above chance on unseen rows, on average."""
    X, _ = data
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, len(X))
    model = ParetoTreeClassifier(n_trees=30, random_state=0, **PUBLISHED).fit(X, y)
    scores = model.candidates_["score"]
    # sd of one score is about 0.05 with 142 rows; trees share the rows, so allow four of them
    assert abs(scores.mean() - 0.5) < 0.2
    seen = DecisionTreeClassifier(max_depth=12, min_samples_leaf=3).fit(X, y)
    assert roc_auc_score(y, seen.predict_proba(X)[:, 1]) > 0.8


def test_other_learners_scores_and_three_costs(data):
    X, y = data
    grid = {"max_depth": [2, 3], "epsilon": [0, 0.1]}
    model = ParetoTreeClassifier(
        StableTreeClassifier(),
        n_trees=8,
        grid=grid,
        scoring="balanced_accuracy",
        complexity=True,
        random_state=0,
        **PUBLISHED,
    ).fit(X, y)
    assert set(model.candidates_["param_epsilon"]) == {0, 0.1}
    costs = [model.candidates_[k] for k in ("distance", "score", "n_leaves")]
    costs = np.stack([costs[0], -costs[1], costs[2]], axis=1)
    np.testing.assert_array_equal(model.candidates_["on_frontier"], on_frontier(costs))


def test_text_missing_values_and_three_classes():
    X, y = load_iris(return_X_y=True, as_frame=True)
    X["colour"] = np.where(X.iloc[:, 0] > 5.5, "red", "blue")
    X.iloc[::9, 1] = np.nan
    model = ParetoTreeClassifier(n_trees=6, random_state=0).fit(X, np.array(["a", "b", "c"])[y])
    assert model.score(X, np.array(["a", "b", "c"])[y]) > 0.8
    assert model.predict_proba(X).shape == (150, 3)
    with pytest.raises(ValueError, match=r"\['colour'\] hold text, which DecisionTreeClassifier"):
        ParetoTreeClassifier(DecisionTreeClassifier()).fit(X, y)


def test_the_papers_grid():
    combinations = list(itertools.product(*PAPER_GRID.values()))
    assert len(combinations) == 50


def test_frontier_plot(model):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    ax = model.plot_frontier()
    assert "first collection" in ax.get_xlabel()


# ---- by decisions ----
def test_candidates_are_measured_by_their_decisions(data):
    X, y = data
    chosen = ParetoTreeClassifier(n_trees=12, random_state=0).fit(X, y)
    found = chosen.candidates_
    assert set(found["origin"]) == {"SteadyTreeClassifier", "StableTreeClassifier"}
    costs = np.stack([found["changed"], found["distance"], -found["score"]], axis=1)
    np.testing.assert_array_equal(found["on_frontier"], on_frontier(costs))
    assert chosen.agreement_ == 1 - found["changed"][chosen.chosen_]
    allowed = (found["score"] >= found["score"].max() - 0.01) & found["on_frontier"]
    assert found["changed"][chosen.chosen_] == found["changed"][allowed].min()
    assert chosen.tree_.weight[0] == len(X)  # fitted to all rows
    weights = np.random.default_rng(0).integers(1, 4, len(X))
    weighted = ParetoTreeClassifier(n_trees=4, random_state=0).fit(X, y, weights)
    assert weighted.tree_.weight[0] == pytest.approx(weights.sum())


def test_log_loss_is_scikit_learns(data):
    X, y = data
    tree = as_tree(DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y), X)
    sample = Sample(X, tree.space.encode(X), y.to_numpy(), tree.classes, tree.space)
    found = score_trees([tree], sample, np.arange(100), X, "neg_log_loss")
    shares = tree.predict_proba(X[:100]).clip(1e-3)
    shares /= shares.sum(axis=1, keepdims=True)
    assert found[0] == pytest.approx(-log_loss(y[:100], shares), abs=1e-3)


# ---- bad input ----


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_trees": 1}, "n_trees"),
        ({"select": "best"}, "select must be one of"),
        ({"select": 2.0}, "select must be one of"),
        ({"validation_fraction": 1.0}, "validation_fraction"),
        ({"max_score_loss": -1}, "max_score_loss"),
        ({"grid": {"colour": [1]}}, r"grid sets \['colour'\]"),
        ({"previous": "q1.tree.json"}, "previous was removed: use RetrainedTreeClassifier"),
    ],
)
def test_bad_parameters_are_named(data, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        ParetoTreeClassifier(**{"n_trees": 4} | options).fit(*data)


def test_too_few_rows():
    with pytest.raises(ValueError, match="too few for training and validation"):
        ParetoTreeClassifier(n_trees=2).fit([[0.0], [1.0], [2.0]], [0, 1, 0])


def test_a_fit_with_a_seed_gives_the_same_tree_whoever_drew_random_numbers_before():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.random((120, 3)).round(1), 3, axis=1)  # equal columns: ties at every node
    y = (X[:, 0] + X[:, 3] + 0.3 * rng.random(120) > 1.1).astype(int)
    found = []
    for state in range(4):
        np.random.seed(state)  # noqa: NPY002
        model = ParetoTreeClassifier(n_trees=4, random_state=0)
        trees = model.fit(X, y).trees_
        found.append([tree.feature.tolist() for tree in trees])
    assert all(one == found[0] for one in found[1:])
