"""Calibration: bins, error and Brier score equal those worked out row by row."""

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss

from steadytree import StableTreeClassifier, calibration

RNG = np.random.default_rng(0)
X = RNG.uniform(0, 1, (400, 3)).round(2)
Y = np.where(RNG.random(400) < X[:, 0], "yes", "no")
MODEL = StableTreeClassifier(3, 0, random_state=0).fit(X, Y)


def test_bins_are_the_leaves_shares_where_there_are_few():
    found = calibration(MODEL, X, Y, n_bins=50)
    stated = MODEL.predict_proba(X)[:, 1]
    assert [one.stated for one in found.bins] == pytest.approx(np.unique(stated))
    for one in found.bins:
        rows = np.isclose(stated, one.stated)
        assert one.n_rows == rows.sum()
        assert one.observed == pytest.approx((Y[rows] == "yes").mean())
        assert one.interval[0] <= one.observed <= one.interval[1]
    assert found.label == "yes"


@pytest.mark.parametrize("n_bins", [1, 2, 5])
def test_error_and_brier_score_by_hand(n_bins):
    fresh, truth = X[::2] ** 2, Y[::2]
    found = calibration(MODEL, fresh, truth, n_bins)
    stated = MODEL.predict_proba(fresh)[:, 1]
    assert found.brier == pytest.approx(brier_score_loss(truth == "yes", stated))
    assert len(found.bins) <= n_bins
    assert sum(one.n_rows for one in found.bins) == len(truth)
    total = sum(one.n_rows * abs(one.stated - one.observed) for one in found.bins)
    assert found.error == pytest.approx(total / len(truth))
    assert found.to_dict()["bins"][0]["interval"] == list(found.bins[0].interval)


def test_above_two_classes_the_predicted_one_counts():
    y = np.digitize(X[:, 0], [0.3, 0.6])
    model = StableTreeClassifier(1, 0, random_state=0).fit(X, y)
    found = calibration(model, X, y)
    assert found.label == ""
    observed = sum(one.observed * one.n_rows for one in found.bins) / len(y)
    assert observed == pytest.approx(model.score(X, y))


def test_bad_numbers_of_bins_are_refused():
    with pytest.raises(ValueError, match="n_bins"):
        calibration(MODEL, X, Y, 0)
