"""Drift: indices counted by hand, and as many alarms without drift as are stated."""

import json
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2, norm

from steadytree.metrics.drift import (
    Drift,
    Stability,
    _score_stability,
    _stability,
    band_table,
    drift,
    psi,
)
from steadytree.models.risk_table import RiskTable
from tests.models.test_variable import banded


def rows_of(rng, n, shift=0.0):
    return pd.DataFrame(
        {
            "age": np.where(rng.random(n) < 0.05, np.nan, rng.normal(50 + shift, 15, n).round()),
            "smoker": rng.integers(0, 2, n).astype(float),
            "ward": rng.choice(["a", "b", "c"], n),
        }
    )


def with_profile(rows, labels):
    card = banded()
    values = card.encode(rows)
    profile = []
    for variable in card.variables:
        bands = variable.band_of(values[:, variable.feature])
        counts = [[np.sum((bands == k) & (labels == c)) for c in (0, 1)] for k in range(9)]
        profile.append(counts[: len(variable.bands)])
    return replace(card, profile=profile, risk_table=RiskTable.of(card, card.score(rows), labels))


RNG = np.random.default_rng(0)
ROWS = rows_of(RNG, 2000)
LABELS = (RNG.random(2000) < banded().predict_proba(ROWS)[:, 1]).astype(int)
CARD = with_profile(ROWS, LABELS)


def slow_psi(expected, actual):
    found, pairs = 0.0, list(zip(expected, actual, strict=True))
    n, m = sum(expected), sum(actual)
    for e, a in pairs:
        if e + a == 0:
            continue
        both = (e + a) / (n + m)
        share, other = (e + both) / (n + 1), (a + both) / (m + 1)
        found += (other - share) * math.log(other / share)
    return found


@pytest.mark.parametrize("seed", range(5))
def test_index_by_hand(seed):
    rng = np.random.default_rng(seed)
    expected, actual = rng.integers(0, 9, 6).astype(float), rng.integers(0, 30, 6).astype(float)
    assert psi(expected, actual) == pytest.approx(slow_psi(expected, actual))
    assert psi(expected, actual) == pytest.approx(psi(actual, expected))


def test_the_textbook_index_on_many_rows():
    # shares 20, 30, 50 % against 30, 30, 40 %: .1 ln 1.5 + .1 ln 1.25
    found = psi(np.array([2e7, 3e7, 5e7]), np.array([3e7, 3e7, 4e7]))
    assert found == pytest.approx(0.1 * math.log(1.5) + 0.1 * math.log(1.25), abs=1e-6)


def test_bands_and_totals_are_counted_row_by_row():
    fresh = rows_of(np.random.default_rng(1), 500, shift=8)
    found = drift(CARD, fresh)
    for stability, variable in zip(found.variables, CARD.variables, strict=True):
        own, old = (
            variable.band_of(CARD.encode(rows)[:, variable.feature]) for rows in (fresh, ROWS)
        )
        assert stability.bands == tuple(variable.texts())
        for k in range(len(variable.bands)):
            assert stability.actual[k] == pytest.approx(np.mean(own == k))
            assert stability.expected[k] == pytest.approx(np.mean(old == k))
    totals, before = CARD.score(fresh), CARD.score(ROWS)
    for text, actual, expected in zip(
        found.score.bands, found.score.actual, found.score.expected, strict=True
    ):
        first, _, last = text.replace(" or more", " to 999").partition(" to ")
        low = -999 if text == found.score.bands[0] else int(first)
        assert actual == pytest.approx(np.mean((totals >= low) & (totals <= int(last))))
        assert expected == pytest.approx(np.mean((before >= low) & (before <= int(last))))
    assert sum(found.score.actual) == pytest.approx(1)


def test_alarms_without_drift_are_as_rare_as_stated():
    """300 samples without drift: at most 3 % beyond the level of 1 % (error rate .003)."""
    rng, beyond, alarms = np.random.default_rng(3), np.zeros(4), 0
    for _ in range(300):
        fresh = rows_of(rng, 200)
        found = drift(CARD, fresh)
        beyond += [one.psi > one.by_chance for one in (found.score, *found.variables)]
        alarms += bool(found.exceeded(max_psi=0.1))
    assert (beyond / 300 <= 0.03).all()
    assert alarms / 300 <= 0.03


def test_drift_is_found_and_says_where():
    fresh = rows_of(np.random.default_rng(1), 800, shift=20)
    found = drift(CARD, fresh)
    exceeded = found.exceeded(max_psi=0.1)
    assert any(text.startswith("PSI of age is") for text in exceeded)
    assert not any("smoker" in text for text in exceeded)
    assert found.exceeded() == []
    assert json.dumps(found.to_dict())


def test_calibration_drift_needs_outcomes():
    rng = np.random.default_rng(2)
    fresh = rows_of(rng, 1500)
    risk = CARD.predict_proba(fresh)[:, 1]
    same = np.where(rng.random(1500) < risk, "yes", "no")
    often = np.where(rng.random(1500) < np.minimum(1.5 * risk, 1), "yes", "no")
    assert drift(CARD, fresh, same).exceeded(max_miss=0.1) == []
    found = drift(CARD, fresh, often)
    assert (found.observed, found.expected) == ((often == "yes").sum(), pytest.approx(risk.sum()))
    assert found.z == pytest.approx(
        (found.observed - risk.sum()) / np.sqrt((risk * (1 - risk)).sum())
    )
    [text] = found.exceeded(max_miss=0.1)
    assert "a difference of 10 % is allowed" in text
    known = often.astype(object)
    known[::2] = None
    assert drift(CARD, fresh, known).observed == (often[1::2] == "yes").sum()
    assert drift(CARD, fresh[:20], ["no"] * 20).line is None


def test_bands_with_weight_of_evidence_by_hand():
    table = pd.DataFrame(band_table(CARD))
    values = CARD.encode(ROWS)
    for variable in CARD.variables:
        own = table[table["variable"] == variable.name]
        bands = variable.band_of(values[:, variable.feature])
        kept = [k for k in range(len(variable.bands)) if (bands == k).any()]
        assert own["band"].tolist() == [variable.texts()[k] for k in kept]
        counts = np.array([[np.sum((bands == k) & (c == LABELS)) for c in (0, 1)] for k in kept])
        shares = (counts + 0.5) / (counts + 0.5).sum(axis=0)
        for row, (k, (others, events)) in enumerate(zip(kept, shares, strict=True)):
            assert own["points"].iloc[row] == variable.bands[k].points[0]
            assert own["rows"].iloc[row] == (bands == k).sum()
            assert own["WoE"].iloc[row] == pytest.approx(math.log(events / others))
            gain = (events - others) * math.log(events / others)
            assert own["IV"].iloc[row] == pytest.approx(gain)


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="has no training profile"):
        drift(banded(), ROWS)
    with pytest.raises(ValueError, match="has no training profile"):
        band_table(banded())
    with pytest.raises(ValueError, match="X has 2000 rows, but y has 3"):
        drift(CARD, ROWS, ["no"] * 3)
    with pytest.raises(ValueError, match="y has no outcome"):
        drift(CARD, ROWS, [None] * 2000)
    with pytest.raises(ValueError, match="no rows"):
        drift(CARD, ROWS[:0])


def test_one_in_a_hundred_samples_exceeds_what_chance_explains():
    """Neither more nor less: of 5,000 pairs .6 to 1.5 % (fails once in 300 by chance)."""
    rng, shares, beyond = np.random.default_rng(0), [0.2, 0.3, 0.5], 0
    for _ in range(5_000):
        old, new = (rng.multinomial(n, shares).astype(float) for n in (2_000, 3_000))
        found = _stability("x", ["a", "b", "c"], old, new)
        beyond += found.psi > found.by_chance
    assert 0.006 < beyond / 5_000 < 0.015


def test_a_band_without_rows_changes_nothing():
    old, new = np.array([30.0, 20.0, 50.0]), np.array([25.0, 35.0, 40.0])
    found = _stability("x", ["a", "b", "c"], old, new)
    more = _stability("x", ["a", "b", "none", "c"], *(np.insert(one, 2, 0) for one in (old, new)))
    assert (more.psi, more.by_chance) == (found.psi, found.by_chance)
    # two degrees of freedom, 1 in 100, and one row in each hundred
    assert found.by_chance == pytest.approx(-2 * math.log(0.01) * (1 / 100 + 1 / 100))


@pytest.mark.parametrize(
    ("psi", "by_chance"), [(0.09, 0.01), (0.11, 0.2), (0.25, 0.2), (0.3, 0.01)]
)
def test_an_index_that_chance_explains_exceeds_no_limit(psi, by_chance):
    score = Stability("the score", psi, by_chance, ("any",), (1.0,), (1.0,))
    variable = Stability("age", psi, by_chance, ("any",), (1.0,), (1.0,))
    found = Drift(9, score, (variable,)).exceeded(max_psi=0.1)
    assert len(found) == (2 if psi > 0.1 and psi > by_chance else 0)


@pytest.mark.parametrize("z", [2.4, 2.6, 5.0])
@pytest.mark.parametrize("observed", [85, 89, 91, 100, 109, 111, 130])
def test_a_miss_is_a_share_of_the_expected_events_in_either_direction(observed, z):
    score = Stability("the score", 0.0, 1.0, ("any",), (1.0,), (1.0,))
    signed = math.copysign(z, observed - 100)
    found = Drift(900, score, (), observed, 100.0, signed).exceeded(max_miss=0.1)
    by_chance = 2 * norm.sf(z) >= 0.01  # in either direction
    assert bool(found) == (not 90 <= observed <= 110 and not by_chance)


@pytest.mark.parametrize("seed", range(6))
def test_bins_of_the_score_have_about_a_tenth_of_the_training_rows_each(seed):
    """A total is in the tenth that the middle of its rows falls in."""
    rng = np.random.default_rng(seed)
    kept = rng.random(len(ROWS)) < 0.02 + 0.98 * (rng.random() < 0.5)
    rows, labels = ROWS[kept], LABELS[kept]
    totals = CARD.score(rows).tolist()
    tenths = {}
    for total in sorted(set(totals)):
        middle = sum(t < total for t in totals) + totals.count(total) / 2
        tenths.setdefault(min(int(middle * 10 // len(totals)), 9), []).append(total)
    expected = [sum(totals.count(t) for t in own) / len(totals) for own in tenths.values()]
    score = drift(with_profile(rows, labels), rows).score
    assert score.expected == pytest.approx(expected)
    assert score.actual == pytest.approx(expected)
    assert [band.split()[0] for band in score.bands] == [str(own[0]) for own in tenths.values()]


@pytest.mark.parametrize("by_chance", [0.1, 0.25, 0.3])
@pytest.mark.parametrize("most", [None, 0.2, 0.25, 0.3])
def test_an_index_may_be_as_large_as_its_limit_and_as_chance_makes_it(most, by_chance):
    score = Stability("the score", 0.25, by_chance, ("any",), (1.0,), (1.0,))
    found = Drift(900, score, ()).exceeded(max_psi=most)
    assert bool(found) == (most == 0.2 and by_chance == 0.1)


def test_a_limit_on_misses_says_nothing_where_no_outcome_is_known():
    found = drift(CARD, ROWS[:50])
    assert found.observed is None
    assert found.exceeded(max_miss=0.0) == []
    one_event = drift(CARD, ROWS[:20], ["yes"] + ["no"] * 19)
    assert one_event.observed == 1
    assert one_event.line is not None  # both classes are there
    assert drift(CARD, ROWS[:20], ["yes"] * 20).line is None


def test_bins_of_the_score_begin_with_the_least_total():
    """Also where so many rows have it that its middle lies beyond the first tenth."""
    totals = CARD.score(ROWS)
    common = np.sort(np.unique(totals))[:3]
    few = ROWS[np.isin(totals, common)]
    labels = LABELS[np.isin(totals, common)]
    score = drift(with_profile(few, labels), few).score
    assert score.bands[0].split()[0] == str(common[0])
    shares = [(CARD.score(few) == total).mean() for total in common]
    assert score.expected == pytest.approx(shares)
    assert score.actual == pytest.approx(shares)


@pytest.mark.parametrize(
    ("counts", "starts"),
    [
        ([5] * 10, range(10)),
        ([5] * 20, range(0, 20, 2)),
        ([40, 10, 10, 10, 10, 10, 10], range(7)),
        ([1, 1, 1, 96, 1], [0, 3, 4]),
    ],
)
def test_bins_of_the_score_hold_about_a_tenth_of_the_training_rows_each(counts, starts):
    rows = [SimpleNamespace(total=k, n_rows=float(n)) for k, n in enumerate(counts)]
    card = SimpleNamespace(risk_table=SimpleNamespace(rows=rows))
    score = _score_stability(card, np.repeat(np.arange(len(counts)), counts))
    assert [int(text.split()[0]) for text in score.bands] == list(starts)
    assert score.psi == pytest.approx(0)


@pytest.mark.parametrize("seed", range(30))
def test_what_chance_explains_is_a_quantile_of_chi_square(seed):
    """Also where one band has all rows, and where training rows weigh less than one in all."""
    rng = np.random.default_rng(seed)
    n_bands = int(rng.integers(1, 6))
    old = rng.choice([0.0, 0.1, 0.5, 1.5, 40.0], n_bands) * (rng.random(n_bands) < 0.8)
    new = rng.integers(0, 9, n_bands) * (rng.random(n_bands) < 0.8)
    new[rng.integers(n_bands)] += 1
    found = _stability("x", ["band"] * n_bands, old, new.astype(float))
    there = int(((old > 0) | (new > 0)).sum())
    scale = 1 / max(old.sum(), 1.0) + 1 / new.sum()
    expected = chi2.ppf(0.99, there - 1) * scale if there > 1 else 0.0
    assert found.by_chance == pytest.approx(expected)
    assert found.actual == pytest.approx(new / new.sum())
    assert found.expected == pytest.approx(old / old.sum() if old.any() else np.zeros(n_bands))
    assert found.psi == pytest.approx(slow_psi(old, new), abs=1e-12)


def test_a_miss_as_large_as_is_allowed_or_as_chance_makes_it_is_none():
    score = Stability("the score", 0.0, 1.0, ("any",), (1.0,), (1.0,))
    least = float(norm.ppf(0.995))  # in either direction
    for observed, z, is_told in (
        *((110, 9.0, False), (111, 9.0, True), (90, -9.0, False), (89, -9.0, True)),
        *((130, least * 0.999999, False), (130, least * 1.000001, True)),
    ):
        found = Drift(900, score, (), observed, 100.0, z)
        assert bool(found.exceeded(max_miss=0.1)) == is_told
        assert found.exceeded() == []


def test_points_that_everybody_gets_count():
    card = replace(CARD, offset=[2], risk_table=None)
    card = replace(card, risk_table=RiskTable.of(card, card.score(ROWS), LABELS))
    found = drift(card, ROWS[:300], np.where(LABELS[:300] == 1, "yes", "no"))
    assert found.expected == pytest.approx(card.predict_proba(ROWS[:300])[:, 1].sum())
    least = int(card.score(ROWS).min())
    assert found.score.bands[0].startswith(f"{least} ")
    assert found.score.actual[0] == pytest.approx(
        np.mean(card.score(ROWS[:300]) <= int(found.score.bands[0].split()[-1]))
    )
