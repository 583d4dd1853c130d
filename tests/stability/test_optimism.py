"""Optimism: refits to bootstrap samples, compared with refits written out by hand."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.stats import ttest_1samp
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, roc_auc_score
from sklearn.tree import DecisionTreeClassifier

from steadytree import StableTreeClassifier
from steadytree.stability.optimism import optimism

RNG = np.random.default_rng(3)
X = RNG.normal(size=(200, 4)).round(2)
Y = np.where(RNG.random(200) < 1 / (1 + np.exp(-2 * X[:, 0])), "yes", "no")


def figures(model, X, y):
    risk = model.predict_proba(X)[:, 1]
    return [roc_auc_score(y == "yes", risk), brier_score_loss(y == "yes", risk)]


@pytest.mark.parametrize(
    "learner",
    [
        DecisionTreeClassifier(max_depth=4, random_state=0),
        StableTreeClassifier(4, 0, random_state=0),
        LogisticRegression(),
    ],
    ids=lambda one: type(one).__name__,
)
def test_optimism_by_hand(learner):
    found = optimism(learner, X, Y, repeats=4, random_state=7)
    rng, differences = np.random.default_rng(7), []
    for _ in range(4):
        rows = np.sort(rng.integers(0, 200, 200))
        model = learner.fit(X[rows], Y[rows])
        own = np.array(figures(model, X[rows], Y[rows]))
        differences.append(own - figures(model, X, Y))
    assert found.differences[:, :2] == pytest.approx(np.array(differences), abs=1e-9)
    apparent = figures(learner.fit(X, Y), X, Y)
    assert found.apparent[:2] == pytest.approx(apparent, abs=1e-9)
    assert found.corrected[:2] == pytest.approx(apparent - np.mean(differences, axis=0), abs=1e-9)
    names = [one.name for one in found.measurements()]
    assert names[:2] == ["corrected AUC", "corrected Brier score"]


def test_a_deep_tree_is_more_optimistic_than_a_shallow_one():
    deep, shallow = (
        optimism(DecisionTreeClassifier(max_depth=d, random_state=0), X, Y, repeats=10)
        for d in (8, 1)
    )
    assert deep.differences[:, 0].mean() > shallow.differences[:, 0].mean() + 0.05


def test_samples_without_a_class_are_drawn_again():
    y = np.array(["no"] * 29 + ["yes"])
    frame = pd.DataFrame({"a": np.arange(30.0), "b": ["x", "y"] * 15})
    found = optimism(StableTreeClassifier(1, 0, random_state=0), frame, y, repeats=5)
    assert np.isfinite(found.differences[:, 0]).all()


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="repeats must be a whole number of at least 1"):
        optimism(LogisticRegression(), X, Y, repeats=0)
    with pytest.raises(ValueError, match="two classes, but y has 3"):
        optimism(LogisticRegression(), X, np.arange(200) % 3)
    with pytest.raises(ValueError, match="two classes, but y has 1"):
        optimism(LogisticRegression(), X, ["a"] * 200)


def test_intervals_and_slopes_by_hand():
    found = optimism(LogisticRegression(), X, Y, repeats=6, random_state=1)
    risk = LogisticRegression().fit(X, Y).predict_proba(X)[:, 1]
    odds, event = np.log(risk / (1 - risk)), Y == "yes"

    def loss(weights):
        level = weights[0] + weights[1] * odds
        return (np.logaddexp(0, level) - event * level).sum()

    assert found.apparent[2] == pytest.approx(minimize(loss, [0.0, 1.0]).x[1], abs=1e-4)
    for k, one in enumerate(found.measurements()):
        ends = ttest_1samp(found.differences[:, k], 0).confidence_interval(0.95)
        expected = (found.apparent[k] - ends.high, found.apparent[k] - ends.low)
        assert one.interval == pytest.approx(expected)
        assert one.value == pytest.approx(np.mean(expected))
        assert one.value == pytest.approx(found.corrected[k])


@pytest.mark.parametrize("rare", ["yes", "no"])
def test_samples_are_those_that_have_both_classes(rare):
    """Drawn one after the other; those of one class alone are passed over, whichever it is."""
    y = np.array([rare] + [{"yes": "no", "no": "yes"}[rare]] * 7)
    fitted = DecisionTreeClassifier(max_depth=1, random_state=0)
    rng, differences = np.random.default_rng(0), []
    while len(differences) < 6:
        rows = np.sort(rng.integers(0, 8, 8))
        if len(set(y[rows])) == 2:
            model = fitted.fit(X[:8][rows], y[rows])
            own = np.array(figures(model, X[:8][rows], y[rows]))
            differences.append(own - figures(model, X[:8], y))
    found = optimism(fitted, X[:8], y, repeats=6)
    assert found.differences[:, :2] == pytest.approx(np.array(differences), abs=1e-9)


def test_twenty_samples_of_one_seed_are_usual():
    model = DecisionTreeClassifier(max_depth=1, random_state=0)
    found, named = optimism(model, X, Y), optimism(model, X, Y, repeats=20, random_state=0)
    assert found.differences.shape == (20, 3)
    np.testing.assert_array_equal(found.differences, named.differences)
