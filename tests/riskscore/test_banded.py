"""The search for bands: its fit is the ridge regression of its bands, and its limits hold."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from steadytree.data.feature_space import FeatureSpace
from steadytree.riskscore import band_regression, banded
from steadytree.riskscore.band_bins import ColumnBins
from steadytree.riskscore.band_regression import refit
from steadytree.riskscore.band_trends import Trends
from steadytree.riskscore.banded import BandSettings, BinnedRows, grow_bands, least_weights
from steadytree.riskscore.risk_score import RiskScoreClassifier
from tests.riskscore.test_condition_score import mixed_data


def binned_rows(seed=0, n=300, sign=0, turn=banded.TURN):
    frame, y = mixed_data(seed, n)
    space = FeatureSpace.observe(frame)
    values, weights = space.encode(frame), np.ones(n)
    bins = tuple(ColumnBins.of(c, values[:, j], weights, 5.0) for j, c in enumerate(space))
    binned = np.stack([one.binned(values[:, j]) for j, one in enumerate(bins)]).astype(np.uint16)
    categorical, p = space.categorical, len(bins)
    directed = np.where(categorical, 0, sign)
    given = bins, np.arange(p), binned, y.astype(float), weights, categorical
    return BinnedRows(*given, directed, np.full(p, turn))


def trends_of(rows):
    return Trends.of(rows.bins, rows.categorical, rows.weight_of_bins())


def level_of(rows, found):
    return found.start + sum(found.value[v][rows.binned[v]] for v in found.used)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("with_trends", [False, True])
def test_the_fit_is_the_penalised_optimum_of_its_bands(seed, with_trends):
    rows = binned_rows(seed)
    trends = trends_of(rows) if with_trends else None
    found = grow_bands(rows, BandSettings(5, 4, trends=trends))
    assert bool(found.trend) == with_trends
    design = [np.ones(len(rows.events))]
    for v in found.used:
        own = found.band[v][rows.binned[v]]
        bases = found.trend.get(v, np.eye(found.band[v].max() + 1))
        design += [basis[own] for basis in bases]
    X = np.column_stack(design).astype(float)

    def loss(at):
        level = X @ at
        lost = np.logaddexp(0, level).sum() - rows.events @ level
        return lost + found.ridge / 2 * (at[1:] ** 2).sum()

    assert band_regression.LEAST_RIDGE <= found.ridge <= band_regression.RIDGE
    best = minimize(loss, np.zeros(X.shape[1]), method="BFGS")
    assert found.loss == pytest.approx(best.fun, rel=1e-6)
    np.testing.assert_allclose(level_of(rows, found), X @ best.x, atol=1e-3)


@pytest.mark.parametrize("seed", range(4))
def test_patterns_are_the_rows_bands(seed):
    rows = binned_rows(seed)
    found = grow_bands(rows, BandSettings(6, 3))
    assert len(found.used) <= 3
    bands = np.stack([found.band[v][rows.binned[v]] for v in found.used], axis=1)
    np.testing.assert_array_equal(found.members[found.pattern_of_row], bands)
    assert found.weight.sum() == len(rows.events)
    assert found.events.sum() == rows.events.sum()
    assert sum(found.band[v].max() for v in found.used) <= 6


def test_no_band_is_smaller_than_it_may_be():
    rows = binned_rows(1, 600)
    least, inner = least_weights(600.0)
    found = grow_bands(rows, BandSettings(12, 5))
    for v in found.used:
        own, size = found.band[v], int(rows.size[v])
        weight = np.bincount(own[rows.binned[v]], minlength=own.max() + 1)
        assert weight[weight > 0].min() >= least
        order = list(dict.fromkeys(own[:size].tolist()))
        if not rows.categorical[v]:
            known = rows.binned[v] < size
            for k in order[1:-1]:
                assert (own[rows.binned[v][known]] == k).sum() >= inner


@pytest.mark.parametrize("sign", [1, -1])
def test_directed_variables_run_their_way(sign):
    rows = binned_rows(2, 500, sign)
    found = grow_bands(rows, BandSettings(10, 5))
    for v in found.used:
        if not rows.categorical[v]:
            steps = np.diff(found.value[v][: rows.size[v]])
            assert (sign * steps >= -1e-9).all()


def test_forced_variables_are_used_and_chance_alone_makes_no_bands():
    rng = np.random.default_rng(0)
    rows = binned_rows(0)
    noise = BinnedRows(
        rows.bins,
        rows.feature,
        rows.binned,
        rng.permutation(rows.events),
        rows.weights,
        rows.categorical,
        rows.sign,
        rows.turn,
    )
    assert grow_bands(noise, BandSettings(10, 5)).used == ()
    assert 2 in grow_bands(noise, BandSettings(10, 5, forced=(2,))).used


def test_few_rows_may_have_small_bands():
    assert least_weights(12.0) == (2.0, 2.0)
    assert least_weights(100.0) == (10.0, 10.0)
    assert least_weights(10_000.0) == (50.0, 500.0)


@pytest.mark.parametrize("seed", range(6))
def test_of_two_limits_those_bands_are_taken_that_promise_more(seed, monkeypatch):
    """As if they were grown alone, under the second limit also with trends."""
    monkeypatch.setattr(banded, "CLOSE", np.inf)
    rows = binned_rows(seed)
    settings = [BandSettings(5, 5), BandSettings(8, 2)]
    settings.append(replace(settings[1], trends=trends_of(rows)))
    alone = [grow_bands(rows, one) for one in settings]
    both = grow_bands(rows, BandSettings(5, 5, instead=(8, 2), smooth=True))
    promised = [2 * one.plain_loss + one.spent for one in alone]
    expected = alone[int(np.argmin(promised))]
    np.testing.assert_array_equal(both.band, expected.band)
    assert (both.loss, both.spent) == (expected.loss, expected.spent)


def test_a_turn_is_kept_where_it_gains_more_than_its_price():
    """Half of ten: the loss is half of twice the log likelihood."""
    space = FeatureSpace.declare(bounds={"x": (0, 2)}, kinds={"x": "integer"})
    x = np.repeat(np.arange(3.0), 200)
    bins = ColumnBins.of(space[0], x, np.ones(600), 5.0)
    gains, kept = [], []
    for n_events in range(44, 100, 4):
        y = np.concatenate([np.arange(200) < n for n in (40, n_events, 40)]).astype(float)
        rows = BinnedRows(
            (bins,), np.array([0]), bins.binned(x)[None].astype(np.uint16), y, np.ones(600),
            np.array([False]), np.array([0]), np.array([banded.TURN]),
        )  # fmt: skip
        found = banded._no_bands(rows)
        for first in (1, 2):
            own = np.where(np.arange(found.band.shape[1]) == first, first, found.band[0])
            found = refit(banded._with_bands(rows, found, 0, own))
        joined = [refit(banded._joined(found, 0, *pair)) for pair in ((0, 1), (1, 2))]
        gains.append(min(one.loss for one in joined) - found.loss)
        kept.append(banded.straighten(rows, found).band.max() == 2)
    assert kept == [gain > banded.TURN / 2 for gain in gains]
    assert any(1 < gain < 5 for gain in gains)
    assert any(5 < gain < 9 for gain in gains)


def test_a_split_that_others_make_needless_is_exchanged_at_the_price_of_one():
    """What most of three causes say is chosen first, and is of no use once they are there."""
    rng = np.random.default_rng(0)
    causes = rng.integers(0, 2, (1500, 3)).astype(float)
    most = (causes.sum(axis=1) > 1).astype(float)
    y = rng.random(1500) < 1 / (1 + np.exp(-(2 * causes.sum(axis=1) - 3)))
    x = np.column_stack([most, causes])
    space = FeatureSpace.observe(x)
    bins = tuple(ColumnBins.of(c, x[:, j], np.ones(1500), 5.0) for j, c in enumerate(space))
    binned = np.stack([one.binned(x[:, j]) for j, one in enumerate(bins)]).astype(np.uint16)
    rows = BinnedRows(
        bins, np.arange(4), binned, y.astype(float), np.ones(1500),
        np.zeros(4, bool), np.zeros(4, np.int64), np.full(4, banded.TURN),
    )  # fmt: skip
    settings = BandSettings(3, 4)
    greedy = banded._split_all(rows, banded._no_bands(rows), settings, rows.weight_of_bins())[-1]
    assert 0 in greedy.used
    found = grow_bands(rows, settings)
    assert sorted(found.used) == [1, 2, 3]
    # a split of a column of two values costs one, as there is no threshold to choose
    assert greedy.spent == 3
    assert found.spent == pytest.approx(3)


@pytest.mark.parametrize("with_trends", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_what_is_spent_is_the_price_of_the_splits_that_are_there(seed, with_trends):
    """Whatever was exchanged or joined: thresholds of a column cost the same, and a trend log 2."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(400, 6))
    x[:, 2:4] = x[:, 2:4] > 0  # without a choice of thresholds
    x[:, 4] = np.clip(np.rint(x[:, 4]), -2, 2)
    level = x[:, 0] + np.abs(x[:, 1]) + x[:, 2] - 2 * x[:, 3] * x[:, 0] + x[:, 4]
    y = rng.random(400) < 1 / (1 + np.exp(-level))
    space = FeatureSpace.observe(x)
    bins = tuple(ColumnBins.of(c, x[:, j], np.ones(400), 5.0) for j, c in enumerate(space))
    binned = np.stack([one.binned(x[:, j]) for j, one in enumerate(bins)]).astype(np.uint16)
    rows = BinnedRows(
        bins, np.arange(6), binned, y.astype(float), np.ones(400),
        np.zeros(6, bool), np.zeros(6, np.int64), np.full(6, banded.TURN),
    )  # fmt: skip
    settings = BandSettings(8, 6, trends=trends_of(rows) if with_trends else None)
    weight = rows.weight_of_bins()
    greedy = banded._split_all(rows, banded._no_bands(rows), settings, weight)[-1]
    exchanged = banded._exchange(rows, greedy, settings, weight)
    for found in (greedy, exchanged, grow_bands(rows, settings)):
        expected = 0.0
        for v in found.used:
            numbers = len(set(found.band[v].tolist())) - 1, len(bins[v].thresholds)
            expected += 1 + np.log(2) if v in found.trend else numbers[0] * (1 + np.log(numbers[1]))
        assert found.spent == pytest.approx(expected)
        assert set(found.paid) == set(found.used)


def test_splits_of_categories_go_at_the_mean_of_their_variables_prices():
    rows = binned_rows(1, 600)
    (v,) = np.flatnonzero(rows.categorical)[:1].tolist()
    found = banded._no_bands(rows)
    for leaves in (1, 2):
        own = np.where(np.arange(found.band.shape[1]) == leaves, leaves, found.band[v])
        found = refit(banded._with_bands(rows, found, v, own))
    found = replace(found, paid={v: 5.0})
    once = banded._joined(found, v, 1, 2)
    assert once.paid == {v: 2.5}
    assert banded._joined(once, v, 0, 1).paid == {}


def weak_effects(seed, n=3000, n_events=24):
    """Eight numbers that each tell little about a rare event."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 8))
    y = np.zeros(n, bool)
    y[np.argsort(-(0.35 * X.sum(axis=1) + rng.gumbel(size=n)))[:n_events]] = True
    return X, y


@pytest.mark.parametrize("seed", [5, 7, 9])
def test_weak_effects_that_rank_held_out_rows_make_bands(seed, monkeypatch):
    X, y = weak_effects(seed)
    assert RiskScoreClassifier().fit(X, y).card_.n_conditions > 0
    monkeypatch.setattr(banded, "_ranks_held_out_rows", lambda *_: False)
    with pytest.warns(UserWarning, match="the score is empty"):
        assert RiskScoreClassifier().fit(X, y).card_.n_conditions == 0


@pytest.mark.parametrize("seed", range(3))
def test_ranks_of_held_out_rows_are_tested_by_the_statistics_of_mann_and_whitney(seed, monkeypatch):
    rows, settings = binned_rows(seed, n=120), BandSettings(3, 2)
    rows = replace(rows, weights=np.random.default_rng(seed).integers(0, 3, 120).astype(float))
    seen = {
        event: sorted({tuple(rows.binned[:, r]) for r in own})
        for event in (0, 1)
        for own in [np.flatnonzero((rows.events == event) & (rows.weights > 0))]
    }
    above, variance = 0.0, 0.0
    for seed, k in itertools.product(range(banded.N_DIVISIONS), range(banded.N_FOLDS)):
        random = np.random.default_rng(seed)
        dealt = {e: random.permutation(len(seen[e])) % banded.N_FOLDS for e in (0, 1)}
        of_fold = {(e, seen[e][i]) for e in (0, 1) for i in np.flatnonzero(dealt[e] == k)}
        held = [r for r in range(120) if (rows.events[r], tuple(rows.binned[:, r])) in of_fold]
        part = rows.take(np.setdiff1d(np.flatnonzero(rows.weights > 0), held))
        path = banded._split_all(part, banded._no_bands(part), settings, part.weight_of_bins())
        copies = np.repeat(held, rows.weights[held].astype(int))
        scores, event = level_of(rows.take(copies), path[-1]), rows.events[copies] > 0
        n, m = event.sum(), (~event).sum()
        pairs = scores[event][:, None] - scores[~event]
        above += ((np.sign(pairs) + 1).sum() / (2 * m) - n / 2) / banded.N_DIVISIONS
        variance += n * m * (n + m + 1) / 12 / m**2 / banded.N_DIVISIONS
    ratio = above / np.sqrt(variance)
    for limit, expected in ((ratio - 1e-9, True), (ratio + 1e-9, False)):
        monkeypatch.setattr(banded, "HELD_OUT", limit)
        assert banded._ranks_held_out_rows(rows, settings) is expected


@pytest.mark.parametrize("seed", [5, 7])
def test_order_and_copies_do_not_change_what_weak_effects_make(seed):
    X, y = weak_effects(seed)
    weights = np.random.default_rng(seed).integers(1, 3, len(y))
    order = np.random.default_rng(seed + 1).permutation(np.repeat(np.arange(len(y)), weights))
    one = RiskScoreClassifier().fit(X, y, weights)
    other = RiskScoreClassifier().fit(X[order], y[order])
    assert one.card_.conditions == other.card_.conditions
    np.testing.assert_array_equal(one.card_.points, other.card_.points)


def test_ranks_are_not_tested_with_fewer_events_than_folds():
    rows = binned_rows(0)
    events = np.zeros(len(rows.events))
    events[: banded.N_FOLDS - 1] = 1.0
    assert not banded._ranks_held_out_rows(replace(rows, events=events), BandSettings(3, 2))


def test_without_a_split_that_pays_there_are_no_bands_however_folds_rank(monkeypatch):
    monkeypatch.setattr(banded, "_ranks_held_out_rows", lambda *_: True)
    monkeypatch.setattr(banded, "WORTH", 1e9)
    assert grow_bands(binned_rows(0), BandSettings(10, 5)).used == ()
