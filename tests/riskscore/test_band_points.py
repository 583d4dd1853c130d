"""Points of bands: small, whole, in the order of the risks; totals mean what rows had."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.metrics import roc_auc_score

from steadytree.models.scorecard import Scorecard
from steadytree.riskscore._kernels.bands import fit_line
from steadytree.riskscore.band_points import (
    SEARCHED_LEFT_OUT,
    Steps,
    conditions_of,
    round_bands,
    shrinkage,
    start_for,
)
from steadytree.riskscore.banded import BandSettings, grow_bands
from steadytree.riskscore.risk_score import RiskScoreClassifier
from tests.riskscore.test_banded import binned_rows


@pytest.mark.parametrize("seed", range(5))
def test_points_are_whole_from_zero_and_in_the_order_of_the_log_odds(seed):
    rows = binned_rows(seed)
    bands = grow_bands(rows, BandSettings(8, 5))
    found = round_bands(rows, bands, 6)
    for v in found.used:
        points, seen = found.points[v], np.unique(rows.binned[v])
        assert points.min() == 0
        assert points.max() <= 6
        order = np.argsort(bands.value[v][seen], kind="stable")
        assert (np.diff(points[seen][order]) >= 0).all()


@pytest.mark.parametrize("seed", range(5))
def test_no_single_step_more_or_less_is_better(seed):
    """Against every neighbour, with the curve through totals fitted anew to the fitted risks."""
    from steadytree.riskscore._kernels.bands import points_loss

    rows = binned_rows(seed)
    bands = grow_bands(rows, BandSettings(6, 4))
    steps, found = Steps.of(bands), round_bands(rows, bands, 10)
    chosen = np.zeros(len(steps.owner), np.int64)
    for v in found.used:
        own = [
            int(found.points[v][np.argmax(bands.band[v] == k)])
            for k in range(bands.band[v].max() + 1)
        ]
        chosen[steps.owner == v] = np.diff(np.sort(own))

    def loss(tried):
        data = bands.weight, bands.weight * expit(bands.levels()), found.slope, found.start
        return points_loss(tried @ steps.held, steps.held[0], 0, *data)[2]

    best = loss(chosen)
    for k in range(len(chosen)):
        for change in (1, -1):
            tried = chosen.copy()
            tried[k] += change
            if tried[k] >= 0 and tried[steps.owner == steps.owner[k]].sum() <= 10:
                assert loss(tried) > best - 1e-5 * (1 + abs(best))


@pytest.mark.parametrize("seed", range(5))
def test_conditions_give_each_row_the_points_of_its_bins(seed):
    from steadytree.data.feature_space import FeatureSpace
    from tests.riskscore.test_condition_score import mixed_data

    rows, (frame, _) = binned_rows(seed), mixed_data(seed, 300)
    found = round_bands(rows, grow_bands(rows, BandSettings(8, 5)), 10)
    given = conditions_of(rows, found)
    card = Scorecard(FeatureSpace.observe(frame), [0, 1], list(given), list(given.values()), 0)
    expected = sum(found.points[v][rows.binned[v]] for v in found.used)
    np.testing.assert_array_equal(card.score(frame), expected)


def test_the_start_makes_the_mean_risk_a_share():
    totals, weights = np.array([0, 1, 1, 5, 9]), np.array([1.0, 2.0, 1.0, 3.0, 1.0])
    for share in (0.001, 0.3, 0.98):
        start = start_for(totals, weights, 0.7, share)
        assert np.average(expit(start + 0.7 * totals), weights=weights) == pytest.approx(share)


def test_a_fit_that_gains_little_is_shrunken_more():
    strong, weak = (grow_bands(binned_rows(0, n), BandSettings(5, 5)) for n in (3000, 150))
    assert 0 <= shrinkage(weak) < shrinkage(strong) <= 1


def test_the_slope_is_shrunken_by_the_part_of_the_gain_that_the_search_paid_for():
    """By hand: prices of 20 and a gain of 2 (100 - 80) = 40 leave 1 - part * 20 / 40."""
    bands = grow_bands(binned_rows(0), BandSettings(5, 5))
    found = replace(bands, null_loss=100.0, plain_loss=80.0, paid={0: 20.0})
    assert shrinkage(found) == pytest.approx(0.75)
    assert shrinkage(found, searched=SEARCHED_LEFT_OUT) == pytest.approx(0.625)
    assert shrinkage(found, found) == pytest.approx(0.75)
    assert shrinkage(replace(found, paid={0: 200.0})) == 0.0
    assert shrinkage(replace(found, plain_loss=100.0)) == 0.0


@pytest.mark.parametrize("start", [-40.0, -3.0, 0.0, 40.0])
@pytest.mark.parametrize("slope", [0.0, 0.5, 10.0])
def test_the_curve_through_totals_is_found_from_anywhere(slope, start):
    totals = np.arange(30)
    weight = 1000 * np.exp(-(((totals - 12) / 5) ** 2))
    events = weight * expit(0.9 * totals - 22)  # rare but among the highest
    found = fit_line(weight, events, 0.0, slope, start)
    assert found[:2] == pytest.approx((0.9, -22), abs=0.01)


def test_points_of_rare_outcomes_with_strong_effects_keep_the_order_of_the_risks():
    """Two pairs of columns nearly cancel out: what is left of their strong effects decides."""

    def draw(rng, n):
        z, rest = rng.normal(size=(2, n, 2))
        X = np.stack([z, -0.9 * z + np.sqrt(1 - 0.9**2) * rest], axis=2).reshape(n, 4)
        return X, (rng.random(n) < expit(X @ [6, 6, 2, 2] - 9)).astype(int)

    rng = np.random.default_rng(0)
    model = RiskScoreClassifier(max_points=12).fit(*draw(rng, 12_000))
    fresh, truth = draw(rng, 40_000)
    assert roc_auc_score(truth, model.predict_proba(fresh)[:, 1]) > 0.8


def test_what_training_did_not_have_gets_the_points_nearest_to_the_mean():
    # the largest of five groups is the riskiest
    rates = np.array([0.02, 0.1, 0.3, 0.5, 0.9])
    group = np.repeat(np.arange(5), [300, 300, 300, 300, 400])
    y = np.concatenate(
        [np.arange(n) < n * p for n, p in zip([300] * 4 + [400], rates, strict=True)]
    )
    X = pd.DataFrame({"group": np.array(list("abcde"))[group]})
    model = RiskScoreClassifier().fit(X, y)
    points = model.card_.score(X)
    unknown = model.card_.score(pd.DataFrame({"group": ["z"]}))[0]
    nearest = min(set(points.tolist()), key=lambda one: abs(one - points.mean()))
    assert unknown == nearest
    assert unknown < points.max()
