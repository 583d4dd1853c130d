"""Ranking: every figure equals one that is counted row by row or pair by pair."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

from steadytree.metrics.validation import MOST_CUTOFFS, Ranking


def rows_of(seed, n=120, n_values=20):
    rng = np.random.default_rng(seed)
    risk = rng.integers(0, n_values + 1, n) / n_values
    event = rng.random(n) < 0.15 + 0.7 * risk
    event[:2] = True, False
    return risk, event


def slow_delong(risk, event):
    """DeLong, DeLong and Clarke-Pearson 1988, by all pairs: area and variance."""
    own, others = risk[event], risk[~event]
    wins = (own[:, None] > others[None]) + 0.5 * (own[:, None] == others[None])
    area = wins.mean()
    variance = wins.mean(axis=1).var(ddof=1) / len(own) + wins.mean(axis=0).var(ddof=1) / len(
        others
    )
    return area, variance


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("n_values", [2, 20, 10_000])
def test_figures_by_hand_and_by_scikit_learn(seed, n_values):
    risk, event = rows_of(seed, n_values=n_values)
    found = Ranking.of(risk, event)
    area, variance = slow_delong(risk, event)
    assert found.auc == pytest.approx(area, abs=1e-12)
    assert found.auc == pytest.approx(roc_auc_score(event, risk), abs=1e-12)
    odds, half = np.log(area / (1 - area)), 1.959963984540054 * np.sqrt(variance)
    ends = [odds - half / (area * (1 - area)), odds + half / (area * (1 - area))]
    assert found.auc_interval == pytest.approx(1 / (1 + np.exp(-np.array(ends))), abs=1e-9)
    assert found.average_precision == pytest.approx(average_precision_score(event, risk))
    away, hit, _ = roc_curve(event, risk, drop_intermediate=False)
    assert found.ks == pytest.approx((hit - away).max(), abs=1e-12)
    assert found.sensitivity == pytest.approx(hit[1:])
    assert found.false_positive_rate == pytest.approx(away[1:])


@pytest.mark.parametrize("n_values", [5, 1000])
def test_cutoffs_are_counted_row_by_row(n_values):
    risk, event = rows_of(3, n=400, n_values=n_values)
    own = np.unique(risk)[2]
    table = Ranking.of(risk, event).cutoffs(own)
    assert [one.risk for one in table] == sorted(one.risk for one in table)
    assert len(table) <= MOST_CUTOFFS + 1
    assert [one.risk for one in table if one.is_own] == [own]
    for one in table:
        alert = risk >= one.risk
        assert (one.n_alerts, one.n_found) == (alert.sum(), (alert & event).sum())
        assert one.sensitivity == pytest.approx(alert[event].mean())
        assert one.specificity == pytest.approx((~alert)[~event].mean())
        assert one.ppv == pytest.approx(event[alert].mean())
        assert one.alerts_per_100 == pytest.approx(100 * alert.mean())
        if alert.all():
            assert one.npv is None
        else:
            assert one.npv == pytest.approx((~event)[~alert].mean())


def test_net_benefit_is_counted_row_by_row():
    risk, event = rows_of(4, n=300)
    found = Ranking.of(risk, event)
    curve = found.decision_curve()
    for p, model, every in zip(*curve.values(), strict=True):
        true, false = (event & (risk >= p)).sum(), (~event & (risk >= p)).sum()
        assert model == pytest.approx((true - false * p / (1 - p)) / len(risk))
        assert every == pytest.approx((event.sum() - (~event).sum() * p / (1 - p)) / len(risk))
    at = np.unique(risk)[1:-1]  # a threshold that is a risk counts the rows that have it
    benefit = found.net_benefit(at)
    for p, one in zip(at, benefit, strict=True):
        true, false = (event & (risk >= p)).sum(), (~event & (risk >= p)).sum()
        assert one == pytest.approx((true - false * p / (1 - p)) / len(risk))


def test_a_rare_event_gets_a_decision_curve_over_its_risks():
    risk = np.repeat([0.001, 0.004], 500)
    event = np.zeros(1000, bool)
    event[[3, 700, 900]] = True
    found = Ranking.of(risk, event).decision_curve()["threshold"]
    assert found == pytest.approx([0.006 * k / 100 for k in range(1, 101)])


def test_a_perfect_ranking_has_no_interval():
    found = Ranking.of(np.array([0.1, 0.2, 0.8, 0.9]), np.array([False, False, True, True]))
    assert (found.auc, found.auc_interval, found.ks) == (1.0, None, 1.0)


def test_intervals_of_the_area_cover_the_truth():
    """2,000 samples: 95 % intervals cover 93.5 to 96.5 % of the time (p > .99)."""
    rng = np.random.default_rng(0)
    covered = 0
    true = 0.7602499389  # of two normal distributions one deviation apart
    for _ in range(2000):
        event = rng.random(200) < 0.3
        risk = 1 / (1 + np.exp(-(rng.normal(size=200) + event)))
        low, high = Ranking.of(risk, event).auc_interval
        covered += low <= true <= high
    assert 0.935 <= covered / 2000 <= 0.965


def test_one_class_is_refused():
    with pytest.raises(ValueError, match="all rows here are of one class"):
        Ranking.of(np.array([0.5, 0.2]), np.array([True, True]))


@pytest.mark.parametrize("n_values", [3, 1000])
def test_risks_in_the_wrong_order_have_no_ks(n_values):
    """The sign counts: a ranking that is always behind chance is not as good as its mirror."""
    risk, event = rows_of(4, n_values=n_values)
    found = Ranking.of(1 - risk, event)
    tried = [0.0]  # of no alert at all
    for level in np.unique(1 - risk):
        alert = 1 - risk >= level
        tried.append(alert[event].mean() - alert[~event].mean())
    assert found.ks == pytest.approx(max(tried), abs=1e-12)
    assert found.ks < max(map(abs, tried))


def test_points_of_the_curves_are_counted_row_by_row():
    risk, event = rows_of(6, n=900, n_values=10_000)
    curves = Ranking.of(risk, event).to_dict()
    assert len(curves["risk"]) <= 200 < len(np.unique(risk))
    for level, *shares in zip(*curves.values(), strict=True):
        alert = risk >= level
        expected = [alert[event].mean(), alert[~event].mean(), event[alert].mean()]
        assert shares == pytest.approx(expected)
    ends = [np.unique(risk)[k] for k in (-1, 0)]
    assert [curves["risk"][0], curves["risk"][-1]] == ends
    for n_values in (2, 7, 199):
        risk, event = rows_of(7, n=4_000, n_values=n_values)
        few = Ranking.of(risk, event).to_dict()
        assert few["risk"] == sorted(set(risk), reverse=True)  # all of them


def test_measurements_are_the_figures_and_what_chance_gives():
    risk, event = rows_of(8)
    found = Ranking.of(risk, event)
    auc, gini, ks, precision = found.measurements()
    assert (auc.value, ks.value, precision.value) == (found.auc, found.ks, found.average_precision)
    assert gini.value == pytest.approx(2 * found.auc - 1)
    assert gini.interval == pytest.approx([2 * end - 1 for end in found.auc_interval])
    assert precision.meaning.endswith(f"by chance {event.mean():.3g}")


def test_acting_on_nobody_benefits_nobody():
    found = Ranking.of(np.array([0.1, 0.2, 0.6]), np.array([False, True, True]))
    assert found.net_benefit(np.array([0.61, 0.9])).tolist() == [0.0, 0.0]
    assert found.net_benefit(np.array([0.6])).tolist() == pytest.approx([1 / 3])


def test_a_long_table_has_the_cutoffs_nearest_to_the_stated_alerts():
    risk = np.arange(1, 1001) / 1001  # a row a risk: every number of alerts can be had
    table = Ranking.of(risk, risk > 0.7).cutoffs()
    wanted = [90, 80, 70, 60, 50, 40, 30, 20, 10, 5, 2, 1]
    assert [one.alerts_per_100 for one in table] == pytest.approx(wanted)
    few = Ranking.of(risk[:12], risk[:12] > 0.006).cutoffs()
    assert [one.n_alerts for one in few] == list(range(12, 0, -1))  # all of them


def test_which_rankings_have_an_interval():
    risk = np.array([0.1, 0.2, 0.3, 0.4])
    two_of_each = np.array([False, True, False, True])
    assert Ranking.of(risk, two_of_each).auc_interval is not None
    assert Ranking.of(risk, risk > 0.35).auc_interval is None  # one event alone has no variance
    assert Ranking.of(risk, risk < 0.35).auc_interval is None
    assert Ranking.of(risk, risk < 0.25).auc == 0.0
    assert Ranking.of(risk, risk < 0.25).auc_interval is None  # a logit of 0 is no number
    assert Ranking.of(risk, risk > 0.25).auc_interval is None


@pytest.mark.parametrize("n_values", [MOST_CUTOFFS - 1, MOST_CUTOFFS, MOST_CUTOFFS + 1])
def test_every_risk_is_listed_where_there_is_room(n_values):
    """Above, those nearest to so many alerts of a hundred rows; of two as near the higher risk."""
    risk = np.repeat(np.arange(n_values) / 20, 3)
    event = np.arange(len(risk)) % 2 == 0
    listed = [one.risk for one in Ranking.of(risk, event).cutoffs()]
    values = sorted(set(risk.tolist()))
    if n_values > MOST_CUTOFFS:
        shares = {value: 100 * (risk >= value).mean() for value in values}
        wanted = (1, 2, 5, *range(10, 100, 10))
        values = sorted({max(values, key=lambda v, w=w: (-abs(shares[v] - w), v)) for w in wanted})
    assert listed == values
