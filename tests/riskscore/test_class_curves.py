"""Class curves: risks of several classes by log loss, as an independent fit finds them."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax
from sklearn.datasets import load_iris, load_wine
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_predict

from steadytree.data.feature_space import FeatureSpace
from steadytree.models.scorecard import Scorecard
from steadytree.riskscore.class_curves import LEAST_PART, with_class_curves
from steadytree.riskscore.risk_score import RiskScoreClassifier


def problem(seed):
    """Totals of three classes that tell something about the labels, and weights."""
    rng = np.random.default_rng(seed)
    totals = rng.integers(0, 9, (300, 3))
    noise = rng.gumbel(size=totals.shape) + [0.0, 0.5, 2.0]
    return totals, (0.4 * totals + noise).argmax(axis=1), rng.integers(1, 4, 300).astype(float)


def empty_scorecard(n_classes):
    space = FeatureSpace.observe(np.arange(6.0).reshape(3, 2))
    points = np.zeros((0, n_classes), np.int64)
    return Scorecard(space, np.arange(n_classes), [], points, np.zeros(n_classes, np.int64))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("ridge", [0.0, 200.0])
def test_slope_and_offsets_are_those_of_an_independent_fit(seed, ridge):
    totals, labels, weights = problem(seed)
    found = with_class_curves(empty_scorecard(3), labels, totals, weights, ridge, 1.0)

    def loss(x):
        own = log_softmax(x[0] * totals + [0.0, x[1], x[2]], axis=1)[np.arange(300), labels]
        return -weights @ own + ridge * x[0] ** 2 / 2

    best = minimize(loss, [0.1, 0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-7}).x
    assert found.slope == pytest.approx(best[0], rel=1e-3)
    # offsets are whole points
    levels = found.slope * (found.offset - found.offset[0])
    assert levels == pytest.approx([0.0, *best[1:]], abs=found.slope)


def test_a_smaller_slope_keeps_the_shares_of_the_classes():
    totals, labels, weights = problem(5)
    found = with_class_curves(empty_scorecard(3), labels, totals, weights, 0.0, 0.3)
    risks = np.exp(log_softmax(found.slope * (totals + found.offset), axis=1))
    shares = np.bincount(labels, weights) / weights.sum()
    assert weights @ risks / weights.sum() == pytest.approx(shares, abs=found.slope / 4)


def test_rows_in_another_order_and_weights_as_copies_give_the_same():
    totals, labels, weights = problem(7)
    fit = (empty_scorecard(3), labels, totals, weights, 10.0, 0.8)
    first, order = with_class_curves(*fit), np.random.default_rng(0).permutation(300)
    moved = with_class_curves(fit[0], labels[order], totals[order], weights[order], 10.0, 0.8)
    again = np.repeat(np.arange(300), weights.astype(int))
    copied = with_class_curves(fit[0], labels[again], totals[again], np.ones(len(again)), 10.0, 0.8)
    for other in (moved, copied):
        assert other.slope == first.slope
        assert other.offset.tolist() == first.offset.tolist()


def test_totals_that_tell_nothing_give_finite_risks():
    labels = np.array([0, 1, 2, 2])
    totals, ones = np.zeros((4, 3), np.int64), np.ones(4)
    found = with_class_curves(empty_scorecard(3), labels, totals, ones, 1.0, 0.0)
    assert np.isfinite(found.slope)
    assert found.slope > 0
    assert LEAST_PART > 0


@pytest.mark.parametrize(("load", "most"), [(load_wine, 0.3), (load_iris, 0.3)])
def test_risks_of_separable_classes_are_not_too_extreme(load, most):
    X, y = load(return_X_y=True, as_frame=True)
    risks = cross_val_predict(RiskScoreClassifier(), X, y, cv=3, method="predict_proba")
    assert log_loss(y, risks) < most
