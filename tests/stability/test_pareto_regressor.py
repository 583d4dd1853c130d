"""The regression tree chosen on the frontier of score and stability."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.metrics import r2_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import steadytree as st
from steadytree.stability.bootstrap import choose, on_frontier
from steadytree.stability.pareto_regressor import ParetoTreeRegressor


@parametrize_with_checks(
    [ParetoTreeRegressor(n_trees=4, random_state=0)],
    expected_failed_checks=lambda estimator: {
        "check_sample_weight_equivalence_on_dense_data": "rows are held out and drawn, not weights",
    },
)
def test_follows_the_sklearn_contract(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def data():
    return load_diabetes(return_X_y=True, as_frame=True)


@pytest.fixture(scope="module")
def model(data):
    return ParetoTreeRegressor(n_trees=20, random_state=0).fit(*data)


def test_candidates_tell_the_truth(model, data):
    X, y = data
    found = model.candidates_frame()
    assert len(found) == len(model.trees_) == len(model.first_trees_) == 20
    between = st.tree_distance(
        model.trees_, model.first_trees_, space=X.to_numpy(), target_range=float(np.ptp(y))
    )
    np.testing.assert_allclose(found["distance"], between.mean(axis=1), atol=1e-9)
    costs = np.stack([found["distance"], -found["score"]], axis=1)
    np.testing.assert_array_equal(found["on_frontier"], on_frontier(costs))
    best = found["score"][model.frontier_].max()
    near = found[found["on_frontier"] & (found["score"] >= best - 0.01)]
    assert found["distance"][model.chosen_] == near["distance"].min()
    np.testing.assert_array_equal(model.predict(X), model.estimator_.predict(X.to_numpy()))


def test_scores_are_those_of_rows_no_candidate_saw(data):
    """A target that is pure noise cannot be predicted on unseen rows, on average."""
    X, _ = data
    y = np.random.default_rng(0).normal(size=len(X))
    model = ParetoTreeRegressor(n_trees=20, random_state=0).fit(X, y)
    assert model.candidates_["score"].mean() < 0.05
    seen = np.mean([r2_score(y, tree.predict(X.to_numpy())) for tree in model.trees_])
    assert seen > model.candidates_["score"].mean() + 0.1


def test_a_seed_gives_the_same_tree_and_equal_weights_change_nothing(data):
    X, y = data
    one = ParetoTreeRegressor(n_trees=4, random_state=3)
    expected = clone(one).fit(X, y).predict(X)
    for weights in (None, np.full(len(y), 2.0)):
        np.testing.assert_allclose(clone(one).fit(X, y, weights).predict(X), expected)


def test_both_choices_of_equation_4():
    columns = {
        "distance": np.array([1.0, 2.0, 3.0, 6.0]),
        "score": np.array([0.80, 0.90, 0.94, 0.95]),
        "depth": np.array([1, 1, 2, 2]),
    }
    frontier = np.arange(4)
    bound = 4 * 5
    for tolerance in (0.0, 0.02, 0.06, 0.2):
        value = (1 - columns["distance"] / bound) * (columns["score"] >= (1 - tolerance) * 0.95)
        assert choose(columns, frontier, "relative-tolerance", tolerance) == value.argmax()
    value = (-columns["distance"] / bound + columns["score"]) / 2
    assert choose(columns, frontier, "mean", 0.0) == value.argmax() == 1
    assert choose(columns, frontier, "tolerance", 0.06) == 1
    assert choose(columns, frontier, "relative-tolerance", 0.053) == 1  # .8997 is enough


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_trees": 1}, "n_trees"),
        ({"select": "best"}, "select must be one of"),
        ({"validation_fraction": 1.0}, "validation_fraction"),
        ({"grid": {"colour": [1]}}, r"grid sets \['colour'\]"),
    ],
)
def test_bad_parameters_are_named(data, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        ParetoTreeRegressor(**{"n_trees": 4} | options).fit(*data)


def test_too_few_rows_and_text():
    with pytest.raises(ValueError, match="too few for training and validation: at least 8"):
        ParetoTreeRegressor(n_trees=2).fit([[0.0], [1.0], [2.0]], [0, 1, 0])
    with pytest.raises(ValueError, match="could not convert string to float"):
        ParetoTreeRegressor(n_trees=2).fit([["a"]] * 9, range(9))
    for labels in (["no", "yes"] * 5, np.array(["no", "yes"] * 5, object)):
        with pytest.raises(ValueError, match="y holds texts and no numbers: use ParetoTreeClassi"):
            ParetoTreeRegressor(n_trees=2).fit(np.zeros((10, 1)), labels)


def test_the_frontier_is_drawn(model):
    pytest.importorskip("matplotlib").use("Agg")
    ax = model.plot_frontier()
    drawn = ax.get_lines()[0].get_xydata()
    found = model.candidates_
    expected = np.stack([found["distance"], found["score"]], axis=1)[model.frontier_]
    np.testing.assert_array_equal(drawn, expected)
    assert "to the first collection" in ax.get_xlabel()
