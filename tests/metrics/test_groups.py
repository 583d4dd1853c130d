"""Groups: rates of each group equal those of its rows alone."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest, norm

from steadytree import StableTreeClassifier, by_group
from steadytree._base.intervals import wilson_interval
from steadytree.metrics.accuracy import group_names
from steadytree.metrics.groups import Group, Groups

RNG = np.random.default_rng(1)
X = RNG.uniform(0, 1, (300, 2)).round(2)
Y = np.where(RNG.random(300) < X[:, 0], 1, 0)
MODEL = StableTreeClassifier(2, 0, random_state=0).fit(X, Y)
GROUPS = RNG.choice(["a", "b", "c"], 300, p=[0.6, 0.35, 0.05])


def test_every_rate_by_hand():
    found = by_group(MODEL, X, Y, GROUPS, "ward")
    predicted = MODEL.predict(X)
    assert [one.name for one in found.groups] == ["a", "b", "c"]
    for one in found.groups:
        rows = one.name == GROUPS
        assert one.n_rows == rows.sum()
        assert one.accuracy == pytest.approx((predicted == Y)[rows].mean())
        assert one.answered == pytest.approx((predicted[rows] == 1).mean())
        assert one.true_share == pytest.approx((Y[rows] == 1).mean())
        assert one.found == pytest.approx((predicted[rows & (Y == 1)] == 1).mean())
        assert one.false_alarm == pytest.approx((predicted[rows & (Y == 0)] == 1).mean())
    large = [one.accuracy for one in found.groups if one.n_rows >= 30]
    assert found.gap == pytest.approx(max(large) - min(large))
    assert found.worst.accuracy == min(large)
    assert found.to_dict()["groups"][2]["is_small"]


def test_rates_without_rows_are_none():
    found = by_group(MODEL, X[:2], [1, 1], ["a", "a"])
    assert found.groups[0].false_alarm is None
    assert found.groups[0].found is not None


def test_names_of_groups():
    given = pd.DataFrame({"g": [1.0, None, 2.0] * 100})
    found = by_group(MODEL, X, Y, given)
    assert sorted(one.name for one in found.groups) == ["(missing)", "1", "2"]


def test_above_two_classes_there_are_no_rates_of_the_second():
    y = np.digitize(X[:, 0], [0.3, 0.6])
    model = StableTreeClassifier(2, 0, random_state=0).fit(X, y)
    found = by_group(model, X, y, GROUPS)
    assert found.label == ""
    assert all(one.answered is None for one in found.groups)


def test_bad_groups_are_refused():
    with pytest.raises(ValueError, match="groups must hold one label per row, 300 in all, got 2"):
        by_group(MODEL, X, Y, ["a", "b"])
    with pytest.raises(ValueError, match="room for 50 groups"):
        by_group(MODEL, X, Y, np.arange(300), "id")
    with pytest.raises(ValueError, match="groups must be one column"):
        by_group(MODEL, X, Y, pd.DataFrame({"g": GROUPS, "h": GROUPS}))


def test_precision_calibration_and_intervals_by_hand():
    found = by_group(MODEL, X, Y, GROUPS)
    predicted, risk = MODEL.predict(X), MODEL.predict_proba(X)[:, 1]
    for one in found.groups:
        rows = one.name == GROUPS
        assert one.precision == pytest.approx(Y[rows & (predicted == 1)].mean())
        assert one.stated == pytest.approx(risk[rows].mean())
        residual = (Y - risk)[rows]
        error = residual.std(ddof=1) / np.sqrt(rows.sum())
        assert one.residual == pytest.approx((residual.mean(), error))
        hits = (rows & (predicted == 1) & (Y == 1)).sum()
        cases = {"recall": rows & (Y == 1), "precision": rows & (predicted == 1)}
        for name, of in cases.items():
            assert one.counts[name] == (hits, of.sum())
            assert one.intervals[name] == wilson_interval(hits, of.sum())


@pytest.mark.parametrize("n_rows", [1, 2, 3])
def test_the_error_of_a_small_group_is_that_of_its_mean(n_rows):
    some = np.flatnonzero(np.arange(len(Y)) % 7 < 2)[-n_rows:]
    groups = np.where(np.isin(np.arange(len(Y)), some), "few", "many")
    one = next(one for one in by_group(MODEL, X, Y, groups).groups if one.name == "few")
    residual = (Y - MODEL.predict_proba(X)[:, 1])[some]
    error = residual.std(ddof=1) / np.sqrt(n_rows) if n_rows > 1 else 0.0
    assert one.residual == pytest.approx((residual.mean(), error))


def test_gaps_are_the_largest_differences_of_all_pairs():
    found = by_group(MODEL, X, Y, GROUPS)
    large = [one for one in found.groups if one.n_rows >= 30]
    rates = {
        "accuracy": "accuracy",
        "recall": "found",
        "false-positive rate": "false_alarm",
        "precision": "precision",
    }
    assert [gap.name for gap in found.gaps] == [*rates, "calibration"]
    for gap in found.gaps[:-1]:
        pairs = [
            (getattr(a, rates[gap.name]), getattr(b, rates[gap.name])) for a in large for b in large
        ]
        assert gap.value == pytest.approx(max(a - b for a, b in pairs))
        assert gap.interval[0] <= gap.value <= gap.interval[1]
    residuals = [one.residual[0] for one in large]
    assert found.gaps[-1].value == pytest.approx(max(residuals) - min(residuals))
    names = [one.name for one in found.measurements()]
    assert names[2:] == [
        "recall gap",
        "false-positive rate gap",
        "precision gap",
        "calibration gap",
    ]
    assert found.to_dict()["gaps"][1]["is_clear"] == found.gaps[1].is_clear


def test_intervals_of_gaps_cover_equal_groups():
    """400 draws of four equal groups: at most 7.5 % clear gaps each (error rate .01 for 5 %)."""
    rng, clear = np.random.default_rng(2), {"accuracy": 0, "recall": 0, "calibration": 0}
    for _ in range(400):
        rows = rng.integers(0, 300, 300)
        groups = rng.integers(0, 4, 300)
        for gap in by_group(MODEL, X[rows], Y[rows], groups).gaps:
            if gap.name in clear:
                clear[gap.name] += gap.is_clear
    assert max(clear.values()) / 400 <= 0.075


def test_an_unequal_model_has_a_clear_gap():
    rng = np.random.default_rng(0)
    other = rng.random(2000) < 0.5
    rows = rng.uniform(0, 1, (2000, 2)).round(2)
    truth = np.where(other, rng.random(2000) < 0.5, rng.random(2000) < rows[:, 0]).astype(int)
    gaps = {gap.name: gap for gap in by_group(MODEL, rows, truth, other).gaps}
    assert gaps["recall"].is_clear
    assert (gaps["accuracy"].low, gaps["accuracy"].high) == ("True", "False")


def newcombe(first, second, alpha):
    """Newcombe's interval of a difference of shares, by Wilson's intervals of scipy."""
    (p, own), (q, other) = (
        (hits / n, binomtest(hits, n).proportion_ci(1 - alpha, method="wilson"))
        for hits, n in (first, second)
    )
    low = p - q - np.sqrt((p - own.low) ** 2 + (other.high - q) ** 2)
    return low, p - q + np.sqrt((own.high - p) ** 2 + (q - other.low) ** 2)


@pytest.mark.parametrize("n_groups", [2, 4, 5])
def test_intervals_of_gaps_allow_for_all_pairs(n_groups):
    found = by_group(MODEL, X, Y, np.random.default_rng(n_groups).integers(0, n_groups, 300))
    named = {one.name: one for one in found.groups}
    assert not any(one.is_small for one in found.groups)
    alpha = 0.05 / len(list(combinations(range(n_groups), 2)))
    for gap in found.gaps[:-1]:
        pair = (named[group].counts[gap.name] for group in (gap.high, gap.low))
        assert gap.interval == pytest.approx(newcombe(*pair, alpha), abs=1e-9)
    gap = found.gaps[-1]
    errors = [named[group].residual[1] for group in (gap.high, gap.low)]
    half = norm.isf(alpha / 2) * np.sqrt(errors[0] ** 2 + errors[1] ** 2)
    assert gap.interval == pytest.approx((gap.value - half, gap.value + half))


@pytest.mark.parametrize(("n_rows", "n_cases"), [(30, 10), (29, 10), (30, 9)])
def test_rates_are_compared_from_30_rows_and_10_cases_on(n_rows, n_cases):
    some = [np.flatnonzero(label == Y) for label in (1, 0)]
    rows = np.concatenate([some[0][:n_cases], some[1][: n_rows - n_cases]])
    groups = np.full(300, "others")
    groups[rows] = "few"
    names = [gap.name for gap in by_group(MODEL, X, Y, groups).gaps]
    assert ("accuracy" in names) == ("calibration" in names) == (n_rows >= 30)
    assert ("recall" in names) == (n_rows >= 30 and n_cases >= 10)


@pytest.mark.parametrize("n_groups", [49, 50, 51])
def test_there_is_room_for_fifty_groups(n_groups):
    names = np.arange(300) % n_groups
    if n_groups <= 50:
        assert len(by_group(MODEL, X, Y, names).groups) == n_groups
    else:
        with pytest.raises(ValueError, match="room for 50 groups"):
            by_group(MODEL, X, Y, names)


@pytest.mark.parametrize("n_rows", [29, 30, 31])
@pytest.mark.parametrize("n_true", [9, 10, 11])
def test_gaps_are_of_thirty_rows_and_of_ten_cases(n_rows, n_true):
    some = [*np.flatnonzero(Y == 1)[:n_true], *np.flatnonzero(Y == 0)[: n_rows - n_true]]
    groups = np.where(np.isin(np.arange(300), some), "few", "many")
    found = by_group(MODEL, X, Y, groups)
    few = next(one for one in found.groups if one.name == "few")
    assert few.is_small == (n_rows < 30)
    predicted = MODEL.predict(X)[some] == 1
    cases = {
        "accuracy": n_rows,
        "recall": n_true,
        "false-positive rate": n_rows - n_true,
        "precision": int(predicted.sum()),
        "calibration": 10,  # has no cases to be few
    }
    expected = [name for name, n in cases.items() if n >= 10 and n_rows >= 30]
    assert [gap.name for gap in found.gaps] == expected


def test_rates_are_those_of_the_event_that_is_named():
    labels = np.where(Y == 1, "survived", "died")
    model = StableTreeClassifier(2, 0, random_state=0).fit(X, labels)
    found, predicted = by_group(model, X, labels, GROUPS, positive="died"), model.predict(X)
    assert found.label == "died"
    for one in found.groups:
        rows, died = one.name == GROUPS, labels == "died"
        assert one.true_share == pytest.approx(died[rows].mean())
        assert one.found == pytest.approx((predicted[rows & died] == "died").mean())
        assert one.stated == pytest.approx(model.predict_proba(X)[rows, 0].mean())
    second = by_group(model, X, labels, GROUPS, positive="survived")
    assert second.to_dict() == by_group(model, X, labels, GROUPS).to_dict()


@pytest.mark.parametrize("seed", range(40))
def test_gaps_of_groups_that_are_made_by_hand(seed):
    """Small groups with the best and the worst rates, ties, rates of few cases, no large group."""
    rng = np.random.default_rng(seed)
    groups = []
    for k in range(int(rng.integers(1, 6))):
        n_rows = int(rng.choice([5, 29, 30, 31, 200]))
        n_right = int(rng.integers(0, 4)) * n_rows // 3
        n_true = int(rng.choice([0, 9, 10, n_rows]))
        counts = {"accuracy": (n_right, n_rows), "recall": (n_true // 2, n_true)}
        rate, residual = n_right / n_rows, (float(rng.choice([-0.1, 0.0, 0.2])), 0.01)
        groups.append(Group(f"g{k}", n_rows, rate, (0, 1), counts=counts, residual=residual))
    found = Groups("ward", tuple(groups), str(rng.choice(["", "yes"])))
    large = [one for one in groups if one.n_rows >= 30]
    rates = [one.accuracy for one in large] or [0.0]
    assert found.gap == max(rates) - min(rates)
    least = min(one.accuracy for one in large or groups)
    assert found.worst is next(one for one in large or groups if one.accuracy == least)
    expected = {}
    for name in ("accuracy", "recall"):
        own = {one.name: one.counts[name] for one in large if one.counts[name][1] >= 10}
        share = {group: hits / n for group, (hits, n) in own.items()}
        if len(share) > 1:
            expected[name] = max(share.values()) - min(share.values()), share
    if found.label and len(large) > 1:
        share = {one.name: one.residual[0] for one in large}
        expected["calibration"] = max(share.values()) - min(share.values()), share
    assert [one.name for one in found.gaps] == list(expected)
    for one in found.gaps:
        value, share = expected[one.name]
        assert one.value == pytest.approx(value)
        assert share[one.low] == min(share.values())
        assert share[one.high] == max(share.values())
        assert one.is_clear == (one.interval[0] > 0)
    values = [found.worst.accuracy, found.gap, *(v for v, _ in expected.values())]
    values = values if "accuracy" not in expected else [*values[:2], *values[3:]]
    assert [one.value for one in found.measurements()] == pytest.approx(values)
    assert found.measurements()[0].interval == found.worst.interval


def test_nullable_groups_have_a_name_for_missing_values():
    groups = pd.Series(pd.array([True, False, pd.NA, True], dtype="boolean"))
    assert group_names(groups).tolist() == ["True", "False", "(missing)", "True"]
    assert group_names(pd.DataFrame({"a": groups})).tolist() == ["1", "0", "(missing)", "1"]
