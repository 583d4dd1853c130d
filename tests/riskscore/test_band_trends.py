"""Trends: bands of about equal weight, and the gain of one coefficient along them."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from steadytree.data.feature_space import FeatureSpace
from steadytree.riskscore import banded
from steadytree.riskscore.band_bins import ColumnBins
from steadytree.riskscore.band_points import round_bands
from steadytree.riskscore.band_trends import MOST_BANDS, Trends
from steadytree.riskscore.banded import BandSettings, BinnedRows, grow_bands
from steadytree.riskscore.risk_score import RiskScoreClassifier


def rows_of(columns, y, sign=0):
    """One variable for each array of numbers."""
    values = np.stack(columns, axis=1).astype(float)
    space = FeatureSpace.declare(
        bounds={f"x{j}": (np.nanmin(x), np.nanmax(x)) for j, x in enumerate(columns)}
    )
    weights, p = np.ones(len(y)), len(columns)
    bins = tuple(ColumnBins.of(c, values[:, j], weights, 5.0) for j, c in enumerate(space))
    binned = np.stack([one.binned(values[:, j]) for j, one in enumerate(bins)]).astype(np.uint16)
    given = bins, np.arange(p), binned, np.asarray(y, float), weights, np.zeros(p, bool)
    return BinnedRows(*given, np.full(p, sign), np.full(p, 10.0))


def trends_of(rows):
    return Trends.of(rows.bins, rows.categorical, rows.weight_of_bins())


def straight_world(n=1500, seed=0, slope=1.0):
    rng = np.random.default_rng(seed)
    x = np.round(rng.normal(50, 10, n), 1)
    other = rng.normal(size=n)
    other[rng.random(n) < 0.2] = np.nan
    y = rng.random(n) < 1 / (1 + np.exp(-slope * (x - 50) / 10))
    return [x, other, rng.integers(0, 2, n)], y


def test_bands_have_about_equal_weight_and_levels_mean_zero_and_variance_one():
    columns, y = straight_world()
    rows = rows_of(columns, y)
    trends = trends_of(rows)
    np.testing.assert_array_equal(trends.possible, [True, True, False])
    for v in (0, 1):
        known = ~np.isnan(columns[v])
        own = trends.band[v][rows.binned[v]][known]
        shares = np.bincount(own) / known.sum()
        assert len(shares) == MOST_BANDS
        assert np.abs(np.cumsum(shares) - np.arange(1, 9) / 8).max() <= 0.25 / 8 + 1 / 64
        for scale in (0, 1):
            levels = trends.level[scale, v][rows.binned[v]][known]
            assert levels.mean() == pytest.approx(0, abs=1e-12)
            assert levels.var() == pytest.approx(1)
            assert (np.diff([levels[own == k][0] for k in range(MOST_BANDS)]) > 0).all()
            basis = trends.basis(v, scale)
            np.testing.assert_allclose(basis[0][own], levels)
            assert len(basis) == 1 + v  # the second column has missing values
    np.testing.assert_array_equal(trends.basis(1, 0)[1], [0] * MOST_BANDS + [1])
    assert trends.basis(1, 0)[0, -1] == 0


@pytest.mark.parametrize(("n", "bands"), [(49, 0), (50, 5), (79, 7), (80, 8), (500, 8)])
def test_a_band_needs_ten_rows_and_a_trend_five_bands(n, bands):
    trends = trends_of(rows_of([np.arange(n)], np.arange(n) > 3))
    assert trends.possible[0] == (bands > 0)
    if bands:
        assert trends.band[0].max() + 1 == bands


def test_levels_of_both_scales_by_hand():
    """Six values are six bins, whose levels are their middles, and middle ranks."""
    counts = np.array([20, 30, 20, 20, 40, 20])
    x = np.repeat([0, 1, 2, 4, 8, 16], counts)
    rows = rows_of([x], x > 3)
    np.testing.assert_array_equal(rows.bins[0].thresholds, [0.5, 1.5, 3, 6, 12])
    trends = trends_of(rows)
    middles, ranks = [0, 1, 2.25, 4.5, 9, 15], [10, 35, 60, 80, 110, 140]
    for level, exact in zip(trends.level[:, 0, :6], (middles, ranks), strict=True):
        each = np.repeat(exact, counts)
        np.testing.assert_allclose(level, (np.array(exact) - each.mean()) / each.std())


@pytest.mark.parametrize("seed", range(5))
def test_the_gain_is_that_of_the_best_coefficient(seed):
    """Of the quadratic loss, beside what a new intercept alone gains; found by search."""
    rng = np.random.default_rng(seed)
    rows = rows_of(*straight_world(400, seed))
    trends, shape = trends_of(rows), rows.weight_of_bins().shape
    first, second = rng.normal(size=shape), rng.random(shape)
    first[1, 64:] = 0

    def gain(v, scale, ridge=2.0):
        known = trends.known[v]
        g, h, t = first[v, known], second[v, known], trends.level[scale, v, known]

        def loss(at, slope):
            move = at + slope * t
            return g @ move + h @ move**2 / 2 + ridge * slope**2 / 2

        alone = minimize(lambda at: loss(at[0], 0.0), [0.0], tol=1e-10)
        both = minimize(lambda at: loss(*at), [0.0, 0.0], tol=1e-10)
        return 2 * (alone.fun - both.fun), np.sign(both.x[1])

    expected = {(v, scale): gain(v, scale) for v in (0, 1) for scale in (0, 1)}
    for sign in (np.zeros(3, int), np.ones(3, int), -np.ones(3, int)):
        best = max(
            (one for key, one in expected.items() if one[1] * sign[0] >= 0),
            default=(-np.inf, 0),
        )[0]
        found, v, scale = trends.best(first, second, np.ones(3, bool), sign, 2.0)
        assert found == pytest.approx(best, rel=1e-5)
        if np.isfinite(found):
            assert found == pytest.approx(expected[v, scale][0], rel=1e-5)
    none = trends.best(first, second, np.zeros(3, bool), np.zeros(3, int), 2.0)
    assert none[0] == -np.inf


def test_a_straight_effect_is_a_trend_and_a_step_is_a_split():
    columns, y = straight_world()
    rows = rows_of(columns, y)
    found = grow_bands(rows, BandSettings(16, 6, trends=trends_of(rows)))
    assert found.used[0] == 0
    assert 0 in found.trend
    values = found.values_of(0)
    assert (np.diff(values) > 0).all()
    assert np.std(values) == pytest.approx(1.0, abs=0.2)  # one unit of log odds a deviation
    y = np.random.default_rng(1).random(len(y)) < np.where(columns[0] >= 45, 0.8, 0.2)
    rows = rows_of(columns, y)
    stepped = grow_bands(rows, BandSettings(16, 6, trends=trends_of(rows)))
    assert stepped.used[0] == 0
    assert 0 not in stepped.trend


def test_a_directed_variable_has_no_trend_the_other_way():
    columns, y = straight_world()
    for sign, expected in ((1, {0}), (-1, set())):
        rows = rows_of(columns, y, sign)
        found = grow_bands(rows, BandSettings(9, 9, trends=trends_of(rows)))
        assert set(found.trend) & {0} == expected


def test_a_variable_with_splits_gets_no_trend_and_a_trend_goes_as_a_whole():
    columns, y = straight_world()
    rows = rows_of(columns[:1], y)
    weights, trends = rows.weight_of_bins(), trends_of(rows)
    settings = BandSettings(16, 6)
    (split,) = banded._split_all(rows, banded._no_bands(rows), BandSettings(1, 6), weights)
    _, _, other = banded._split_best(rows, split, replace(settings, trends=trends), weights)
    assert not other.trend
    assert other.band.max() == 2
    found = grow_bands(rows, replace(settings, max_conditions=1, trends=trends))
    assert set(found.trend) == {0}
    joined = banded._joined(found, 0, 0, 1)
    assert (joined.used, joined.trend, joined.band.max()) == ((), {}, 0)


def test_the_ridge_weighs_the_one_coefficient_of_a_trend():
    """The mean of squares over its bands, where bands of their own count one by one."""
    columns, y = straight_world()
    rows = rows_of([columns[0], columns[2]], y | (columns[2] > 0))
    found = grow_bands(rows, BandSettings(16, 6, trends=trends_of(rows)))
    assert (set(found.used), set(found.trend)) == ({0, 1}, {0})
    points = round_bands(rows, found, 10)
    by_band = [np.unique(points.points[0][:64]), [0, points.points[1].max()]]
    own = [points.points[0][np.argmax(found.band[0] == k)] for k in range(MOST_BANDS)]
    assert set(own) == set(by_band[0].tolist())
    assert points.spread == pytest.approx(np.var(own) + 2 * np.var(by_band[1]))


def test_great_values_give_the_score_of_small_ones():
    rng = np.random.default_rng(0)
    x = rng.random((300, 1))
    y = (rng.random(300) < x[:, 0]).astype(int)
    small, great = (RiskScoreClassifier().fit(x * scale, y) for scale in (1.0, 2.0**1020))
    np.testing.assert_array_equal(great.card_.points, small.card_.points)
