"""Calibration: bins, error and Brier score equal those worked out row by row."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss

from steadytree import StableTreeClassifier, calibration
from steadytree.metrics.calibration import CalibrationLine, _join, fit_logistic

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


def test_as_many_bins_as_different_shares_join_none():
    stated = MODEL.predict_proba(X)[:, 1]
    values, counts = np.unique(stated, return_counts=True)
    found = calibration(MODEL, X, Y, n_bins=len(values))
    assert [one.n_rows for one in found.bins] == counts.tolist()
    fewer = calibration(MODEL, X, Y, n_bins=len(values) - 1)
    assert len(fewer.bins) < len(values)


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


def slow_bins(stated, n_bins):
    """Rows of each bin: a value goes where the middle of its rows lies among all rows."""
    values = sorted(set(stated))
    found = {}
    for value in values:
        below, equal = sum(s < value for s in stated), sum(s == value for s in stated)
        place = min(int((below + equal / 2) * n_bins // len(stated)), n_bins - 1)
        if len(values) <= n_bins:
            place = values.index(value)
        found.setdefault(place, []).extend(k for k, s in enumerate(stated) if s == value)
    return [sorted(rows) for _, rows in sorted(found.items())]


@pytest.mark.parametrize("n_bins", [1, 2, 3, 4, 10])
def test_bins_are_of_about_as_many_rows_each(n_bins):
    rng = np.random.default_rng(n_bins)
    for _ in range(20):
        table = rng.choice([0.0, 0.1, 0.25, 0.5, 0.6, 0.9, 1.0], rng.integers(1, 40))
        repeated = np.repeat(table, own := rng.integers(1, 4, len(table)))
        found = [rows.tolist() for rows in _join(table, own, n_bins)]
        of_row = np.repeat(np.arange(len(table)), own)
        expected = [sorted(set(of_row[rows])) for rows in slow_bins(repeated.tolist(), n_bins)]
        assert found == expected


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


# ---- calibration slope and intercept ----
def slow_line(risk, event):
    """Maximum likelihood by a general optimiser, intervals by a numerical second derivative."""
    n = len(risk)
    level = np.array([math.log(p / (1 - p)) for p in np.clip(risk, 0.5 / n, 1 - 0.5 / n)])

    def loss(weights, offset):
        found = offset + sum(w * x for w, x in zip(weights, (np.ones(n), level), strict=False))
        return float(
            (np.log1p(np.exp(-np.abs(found))) + np.maximum(found, 0) - event * found).sum()
        )

    def fit(start, offset):
        best = minimize(loss, start, (offset,), "BFGS", options={"gtol": 1e-8}).x
        size, step = len(best), 1e-4
        second = np.empty((size, size))
        for i in range(size):
            for j in range(size):
                at = [
                    loss(best + a * step * np.eye(size)[i] + b * step * np.eye(size)[j], offset)
                    for a, b in ((1, 1), (1, -1), (-1, 1), (-1, -1))
                ]
                second[i, j] = (at[0] - at[1] - at[2] + at[3]) / (4 * step**2)
        return best, np.sqrt(np.diag(np.linalg.inv(second)))

    (_, slope), (_, error) = fit(np.array([0.0, 1.0]), np.zeros(n))
    (intercept,), (large,) = fit(np.array([0.0]), level)
    return slope, error, intercept, large


@pytest.mark.parametrize("seed", range(6))
def test_line_by_a_general_optimiser(seed):
    rng = np.random.default_rng(seed)
    risk = rng.random(150).round(rng.integers(1, 4))  # some are 0 or 1 where rounded to one digit
    event = rng.random(150) < 0.1 + 0.6 * risk
    found = CalibrationLine.of(risk, event)
    slope, error, intercept, large = slow_line(risk, event)
    assert found.slope == pytest.approx(slope, abs=1e-4)
    assert found.intercept == pytest.approx(intercept, abs=1e-4)
    z = 1.959963984540054
    assert found.slope_interval == pytest.approx((slope - z * error, slope + z * error), abs=1e-3)
    within = (intercept - z * large, intercept + z * large)
    assert found.intercept_interval == pytest.approx(within, abs=1e-3)
    assert found.n_extreme == ((risk == 0) | (risk == 1)).sum()
    assert found.expected == pytest.approx(risk.sum())
    assert found.observed == sum(bool(one) for one in event)


def test_risks_that_are_too_extreme_have_a_slope_below_one():
    rng = np.random.default_rng(0)
    level = rng.normal(size=5000)
    event = rng.random(5000) < 1 / (1 + np.exp(-level))
    found = CalibrationLine.of(1 / (1 + np.exp(-2 * level - 1)), event)
    assert found.slope_interval[0] < 0.5 < found.slope_interval[1]
    assert found.intercept_interval[1] < 0
    names = [one.name for one in found.measurements()]
    assert names == ["calibration slope", "calibration in the large", "observed/expected"]


def test_intervals_of_a_calibrated_model_cover_one_and_zero():
    """1,000 samples: 95 % intervals cover 93 to 97 % of the time (p > .99 for each)."""
    rng, covered = np.random.default_rng(1), np.zeros(2)
    for _ in range(1000):
        risk = 1 / (1 + np.exp(-rng.normal(size=300)))
        found = CalibrationLine.of(risk, rng.random(300) < risk)
        covered[0] += found.slope_interval[0] <= 1 <= found.slope_interval[1]
        covered[1] += found.intercept_interval[0] <= 0 <= found.intercept_interval[1]
    assert (covered / 1000 >= 0.93).all()
    assert (covered / 1000 <= 0.97).all()


@pytest.mark.parametrize("risk", [[0.2, 0.2, 0.8, 0.8], [0.8, 0.8, 0.2, 0.2], [0.5] * 4])
def test_a_slope_that_is_not_determined_is_none(risk):
    found = CalibrationLine.of(np.array(risk), np.array([False, False, True, True]))
    assert found.slope is None
    assert found.slope_interval is None
    assert np.isfinite(found.intercept)


@pytest.mark.parametrize("flipped", [False, True])
def test_classes_that_meet_at_one_risk_alone_determine_no_slope(flipped):
    """Quasi-complete separation: the likelihood rises with the slope without end."""
    risk, event = np.array([0.2, 0.2, 0.6, 0.6]), np.array([False, False, False, True]) ^ flipped
    assert CalibrationLine.of(risk, event).slope is None
    values = np.log(risk / (1 - risk)) - np.log(1.5)  # 0 where both classes are
    likelihoods = []
    for slope in (1.0, 4.0, 16.0):
        chance = 1 / (1 + np.exp(-slope * (-values if flipped else values)))
        likelihoods.append(np.log(np.where(event, chance, 1 - chance)).sum())
    assert likelihoods == sorted(likelihoods)
    assert likelihoods[-1] == pytest.approx(2 * np.log(0.5))  # only the shared risk is uncertain


def test_probabilities_are_of_the_event_that_is_named():
    rng = np.random.default_rng(3)
    X = rng.random((200, 2)).round(1)
    y = np.where(rng.random(200) < X[:, 0], "survived", "died")
    model = StableTreeClassifier(2, 0, random_state=0).fit(X, y)
    found, risk = calibration(model, X, y, positive="died"), model.predict_proba(X)[:, 0]
    assert found.label == "died"
    observed = [(y == "died")[risk == one].mean() for one in np.unique(risk)]
    assert [one.observed for one in found.bins] == pytest.approx(observed)
    assert found.brier == pytest.approx(brier_score_loss(y == "died", risk))


@pytest.mark.parametrize("spread", [1.0, 4.0, 8.0])
def test_weights_of_a_logistic_regression_solve_its_equations(spread):
    """Also where the first steps lead far beyond the optimum, and are halved."""
    rng = np.random.default_rng(int(spread))
    for _ in range(30):
        n, size = int(rng.integers(4, 12)), int(rng.integers(1, 3))
        rows = rng.integers(1, 9, n)
        events = rng.integers(0, rows + 1).astype(float)
        events[:2] = 0, rows[1]
        values = rng.normal(size=n)
        values[:4] = 2, 1, -1, -2  # both classes on both sides
        events[:4] = (rows[:4] + 1) // 2
        rows[:4] += 1
        design = np.column_stack([np.ones(n), values])[:, :size]
        offset = spread * rng.normal(size=n)
        weights, covariance = fit_logistic(design, offset, rows, events)
        risk = 1 / (1 + np.exp(-(offset + design @ weights)))
        assert design.T @ (events - rows * risk) == pytest.approx(np.zeros(size), abs=1e-6)
        information = sum(
            r * p * (1 - p) * np.outer(x, x) for r, p, x in zip(rows, risk, design, strict=True)
        )
        np.testing.assert_allclose(covariance @ information, np.eye(size), atol=1e-4)


def test_ten_bins_are_usual():
    rng = np.random.default_rng(0)
    X = rng.random((300, 1))
    y = np.where(rng.random(300) < X[:, 0], "yes", "no")
    model = LogisticRegression().fit(X, y)
    found = calibration(model, X, y)
    assert len(found.bins) == 10
    assert found.to_dict() == calibration(model, X, y, n_bins=10).to_dict()
    sizes = [one.n_rows for one in found.bins]
    assert sizes == [30] * 10
