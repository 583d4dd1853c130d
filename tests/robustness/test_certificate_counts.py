"""Numbers of certificates that are made by hand: counted row by row, and by linear programmes."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from steadytree.data.feature_space import FeatureSpace
from steadytree.robustness.certificate import STATUSES, Certificate, EnsembleCertificate
from steadytree.robustness.certify import certificate_of, certify
from steadytree.robustness.perturbation import Perturbation
from steadytree.robustness.verify import Finding, _without

SPACE = FeatureSpace.declare({"a": (0, 9), "b": (0, 9)}, {"job": ["clerk", "miner"]})


def hand_made(rng, noise, weight, n=8):
    """A certificate with ties, rows out of reach and rows that are wrong as they are."""
    truth, answer = rng.integers(0, 3, n), rng.integers(0, 3, n)
    answer[: n // 2] = truth[: n // 2]
    distance = rng.choice([0.25, 0.5, 0.5, 0.75, 1.0, 2.0, np.inf], n)
    if noise.budget and noise.scope == "row":
        distance[0] = noise.spend(1.0)  # as far as the budget with its tolerance reaches
    rows = rng.choice([0.0, 1.0, np.nan], (n, 3))
    witness = np.where(rng.random((n, 3)) < 0.5, rows, rng.choice([0.0, 1.0, np.nan], (n, 3)))
    labels = np.array(["x", "y", "z"])
    other = (answer + 1) % 3
    return Certificate(noise, SPACE, labels, rows, witness, truth, answer, other, distance, weight)


def slow_steps(found, row):
    """Columns, start and end of what moves."""
    listed = []
    for j, column in enumerate(SPACE):
        ends = [
            None if np.isnan(x) else column.categories[int(x)] if j == 2 else float(x)
            for x in (found.rows[row, j], found.witness[row, j])
        ]
        listed += [(column.name, *ends)] if ends[0] != ends[1] else []
    return listed


def most_lost(distance, weight, limit, whole):
    """Whole rows one by one, the nearest first; of fractional weights the best of all shares."""
    near = np.isfinite(distance)
    if whole:
        costs = sorted(np.repeat(distance[near], weight[near].astype(int)))
        return sum(sum(costs[: k + 1]) <= limit for k in range(len(costs)))
    if not near.any():
        return 0.0
    bounds = [(0, w) for w in weight[near]]
    return -linprog(-np.ones(near.sum()), [distance[near]], [limit], bounds=bounds).fun


@pytest.mark.parametrize("scope", ["row", "mean", "total"])
@pytest.mark.parametrize("whole", [True, False])
def test_numbers_of_a_certificate_are_counted_row_by_row(scope, whole):
    for seed in range(40):
        rng = np.random.default_rng(seed)
        weight = rng.integers(0, 4, 8).astype(float) if whole else rng.choice([0, 0.3, 0.9, 2.4], 8)
        weight[rng.integers(8)] = 1.0
        budget = float(rng.choice([0.3, 0.5, 0.8, 1.0]) * (1 + 4 * (scope == "total")))
        noise = Perturbation(step_cost=1.0, budget=budget, scope=scope)
        found = hand_made(rng, noise, weight)
        right, total = found.truth == found.answer, weight.sum()
        limit = budget * (total if scope == "mean" else 1.0) * (1 + 1e-9) + 1e-9 * (budget < 1)
        reach = right & (found.distance <= budget + 1e-8) & (weight > 0)
        lost = weight[reach].sum()
        if scope != "row":
            lost = most_lost(found.distance[right], weight[right], limit, whole)
        assert found.worst_case_accuracy == pytest.approx((weight[right].sum() - lost) / total)
        if scope == "row":
            assert sorted(found.attacked.tolist()) == np.flatnonzero(reach).tolist()
        assert np.all(np.diff(found.distance[found.attacked]) >= 0)
        assert found.accuracy == pytest.approx(weight[right].sum() / total)
        each = [weight[found.truth == k].sum() for k in range(3)]
        assert found.baseline == pytest.approx(max(each) / total)
        sizes, shares = found.curve()
        assert sizes.tolist() == sorted({0.0, *found.distance[right & (found.distance < np.inf)]})
        beyond = [weight[right & (found.distance > size)].sum() / total for size in sizes]
        assert shares == pytest.approx(beyond)
        at = [weight[right & (found.distance > s + 1e-8)].sum() / total for s in (0, 0.5, 0.6)]
        assert [found.certified_accuracy(s) for s in (0, 0.5, 0.6)] == pytest.approx(at)
        order = sorted(np.flatnonzero(right & (found.distance < np.inf)), key=found.distance.item)
        listed = found.counterexamples(3)
        assert [one.row for one in listed] == order[:3]
        for one in listed:
            assert (one.size, one.answer) == (
                found.distance[one.row],
                "xyz"[found.answer[one.row]],
            )
            assert one.other == "xyz"[found.other[one.row]]
            steps = [(step.feature, step.start, step.end) for step in one.steps]
            assert steps == slow_steps(found, one.row)


@pytest.mark.parametrize("whole", [True, False])
def test_the_median_is_that_of_rows_written_out(whole):
    """Half of the weight lies at or below it and half at or above; of two such, between them."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        weight = rng.integers(0, 4, 8) if whole else rng.choice([0, 1, 2, 3], 8) / 8
        weight = np.append(weight[:7], 1 / 8).astype(float)
        noise = Perturbation(step_cost=1.0)
        found = hand_made(rng, noise, weight)
        found.distance[np.isinf(found.distance)] = 4.0
        counted = (found.truth == found.answer) & (weight > 0)
        listed = [one for one in found.measurements() if one.name == "median distance"]
        assert len(listed) == counted.any()
        if listed:
            copies = (8 * weight[counted]).astype(int)
            assert listed[0].value == np.median(np.repeat(found.distance[counted], copies))


@pytest.mark.parametrize("seed", range(5))
def test_numbers_of_a_certificate_of_an_ensemble_are_counted_row_by_row(seed):
    rng = np.random.default_rng(seed)
    base, n = hand_made(rng, Perturbation(radius=1.0), np.ones(30), 30), 30
    status = rng.choice(STATUSES, n)
    weight = rng.choice([0.0, 0.5, 1.0, 3.0], n)
    found = EnsembleCertificate(
        base.perturbation, SPACE, base.classes, base.rows, base.witness, base.truth, base.answer,
        base.other, status, weight, 17, 0.5, {(int(np.argmax(status == "attacked")), 2): "nurse"},
    )  # fmt: skip
    share = {s: sum(w for w, own in zip(weight, status, strict=True) if own == s) for s in STATUSES}
    share = {name: own / sum(share.values()) for name, own in share.items()}
    assert found.accuracy == pytest.approx(1 - share["wrong"])
    assert found.worst_case_accuracy == pytest.approx(share["certified"])
    both = share["certified"], share["certified"] + share["undecided"]
    assert found.robust_accuracy == pytest.approx(both)
    assert found.decided == pytest.approx(1 - share["undecided"])
    each = [weight[found.truth == k].sum() for k in range(3)]
    assert found.baseline == pytest.approx(max(each) / weight.sum())
    values = [found.accuracy, found.baseline, *both, found.decided]
    assert [one.value for one in found.measurements()] == pytest.approx(values)
    plain = found.to_dict()
    assert plain["status"] == {name: status.tolist().count(name) for name in STATUSES}
    attacked = np.flatnonzero(status == "attacked").tolist()
    for most, listed in ((3, found.counterexamples(3)), (10, found.counterexamples())):
        assert [one.row for one in listed] == attacked[:most]
        for one in listed:
            assert (one.size, one.answer) == (1.0, "xyz"[found.answer[one.row]])
            steps = [(s.feature, s.start, s.end) for s in one.steps if s.start != "nurse"]
            assert steps == [
                s for s in slow_steps(found, one.row) if (one.row, s[0]) != (attacked[0], "job")
            ]
    assert len(plain["counterexamples"]) == min(10, len(attacked))
    assert str(found).count("\n  row ") == min(3, len(attacked))


@pytest.mark.parametrize("seed", range(3))
def test_an_ensemble_is_asked_for_rows_that_count_and_at_their_witnesses(seed, monkeypatch):
    """The search for witnesses is another module's: here every third row of those asked has one."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(30, 3)), rng.integers(0, 2, 30)
    model = RandomForestClassifier(3, max_depth=3, random_state=0).fit(X[:20], y[:20])
    weight, asked = rng.choice([0.0, 0.5, 2.0], 30), []
    ends = X + rng.normal(size=X.shape)

    def found_by(ensemble, table, rows, answer, wanted, noise, allowed, limits):
        asked.append((answer, wanted, limits[0]))
        which = np.flatnonzero(wanted)
        findings = [Finding("wrong")] * len(rows)
        for k, row in enumerate(which):
            findings[row] = Finding("certified") if k % 3 else Finding("attacked", ends[row])
        return findings, 123

    monkeypatch.setattr("steadytree.robustness.certify.verify", found_by)
    found = certify(model, X, y, Perturbation(radius=0.5), sample_weight=weight)
    (answer, wanted, most_steps), right = asked[0], model.predict(X) == y
    assert most_steps == 10_000
    np.testing.assert_array_equal(model.classes_[answer], model.predict(X))
    np.testing.assert_array_equal(wanted, right & (weight > 0))
    reached = np.flatnonzero(wanted)[::3]
    np.testing.assert_array_equal(found.witness[reached], ends[reached])
    assert np.isnan(np.delete(found.witness, reached, axis=0)).all()
    np.testing.assert_array_equal(
        model.classes_[found.other[reached]], model.predict(ends[reached])
    )
    assert (np.delete(found.other, reached) == -1).all()
    assert found.steps == 123
    for noise in (
        Perturbation(step_cost=1.0, budget=1.0),
        Perturbation(radius=1.0, scope="mean", budget=0.5),
    ):
        with pytest.raises(ValueError, match="an ensemble is certified under a box of noise"):
            certify(model, X, y, noise)


@pytest.mark.parametrize("n_rows", [19, 20])
def test_columns_look_like_one_hot_columns_from_twenty_rows_on(n_rows):
    frame = pd.get_dummies(pd.DataFrame({"job": [*"abc"] * 7})).astype(int)[:n_rows]
    model = DecisionTreeClassifier(random_state=0).fit(frame, frame["job_b"])
    few = certificate_of(model, frame, frame["job_b"], Perturbation(radius=1.0))
    assert any("look like one-hot columns" in note for note in few.notes) == (n_rows == 20)
    # one of them that moves alone is no contradiction
    alone = Perturbation(radius={"job_a": 1.0})
    notes = certificate_of(model, frame, frame["job_b"], alone).notes
    assert not any("look like" in note for note in notes)
    up = Perturbation(radius=1.0, direction=dict.fromkeys(frame, "up"))
    notes = certificate_of(model, frame, frame["job_b"], up).notes
    assert any("look like" in note for note in notes) == (n_rows == 20)


def test_masks_without_a_cell_hold_every_other_once():
    rng = np.random.default_rng(0)
    for _ in range(60):
        mask = [rng.random(size) < 0.7 for size in rng.integers(1, 5, rng.integers(1, 4))]
        cells = list(itertools.product(*map(np.flatnonzero, mask)))
        for cell in cells[:: max(len(cells) // 3, 1)]:
            parts = _without(mask, list(cell))
            held = [k for part in parts for k in itertools.product(*map(np.flatnonzero, part))]
            assert sorted(held) == sorted(set(cells) - {cell})
