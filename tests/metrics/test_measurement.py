"""Measurements: text, limits, and that each figure under a name is the one the name says."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import (
    average_precision_score,
    balanced_accuracy_score,
    brier_score_loss,
    roc_auc_score,
    roc_curve,
)

import steadytree as st
from steadytree import Measurement
from steadytree.metrics.accuracy import accuracy
from steadytree.metrics.drift import drift, psi
from steadytree.metrics.validation import validate
from tests.metrics.test_drift import CARD, rows_of


def test_text_and_plain_values():
    found = Measurement("depth", 3, "most splits", unit="splits")
    assert str(found) == "depth: 3 splits"
    within = Measurement("accuracy", 0.5, "share right", (0.25, 0.75), level=0.9)
    assert str(within) == "accuracy: 0.5 (90 % interval 0.25 to 0.75)"
    assert within.to_dict()["interval"] == (0.25, 0.75)


def test_bad_intervals_and_levels_are_refused():
    with pytest.raises(ValueError, match="out of order"):
        Measurement("accuracy", 0.5, "", (0.75, 0.25))
    with pytest.raises(ValueError, match=r"level must be in \(0, 1\)"):
        Measurement("accuracy", 0.5, "", level=1)


ALL_X, ALL_Y = load_breast_cancer(return_X_y=True)
MODEL = st.StableTreeClassifier(max_depth=3, random_state=0).fit(ALL_X[::2, :8], ALL_Y[::2])
X, Y = ALL_X[1::2, :8], ALL_Y[1::2]
RISK, ANSWERS = MODEL.predict_proba(X)[:, 1], MODEL.predict(X)


def by_name(found):
    measurements = found.measurements()
    assert len({one.name for one in measurements}) == len(measurements)
    return {one.name: one.value for one in measurements}


def test_figures_of_accuracy_are_those_of_scikit_learn():
    assert by_name(accuracy(MODEL, X, Y)) == pytest.approx(
        {
            "accuracy": (ANSWERS == Y).mean(),
            "majority baseline": max(np.bincount(Y)) / len(Y),
            "balanced accuracy": balanced_accuracy_score(Y, ANSWERS),
            "AUC": roc_auc_score(Y, RISK),
        }
    )


def test_figures_of_validation_are_those_of_scikit_learn():
    found = validate(MODEL, X, Y)
    false_positive, recall, _ = roc_curve(Y, RISK)
    values = by_name(found)
    assert values["AUC"] == pytest.approx(roc_auc_score(Y, RISK))
    assert values["Gini"] == pytest.approx(2 * roc_auc_score(Y, RISK) - 1)
    assert values["KS"] == pytest.approx(max(recall - false_positive))
    assert values["average precision"] == pytest.approx(average_precision_score(Y, RISK))
    assert values["observed/expected"] == pytest.approx(Y.sum() / RISK.sum())
    assert values["calibration slope"] == found.line.slope
    assert values["calibration in the large"] == found.line.intercept
    gini = next(one for one in found.measurements() if one.name == "Gini")
    assert gini.interval == pytest.approx([2 * end - 1 for end in found.ranking.auc_interval])
    within = {one.name: one.interval for one in found.line.measurements()}
    assert within["calibration slope"] == found.line.slope_interval
    assert within["calibration in the large"] == found.line.intercept_interval


def test_figures_of_calibration_and_complexity_by_hand():
    bins = st.calibration(MODEL, X, Y).bins
    error = sum(one.n_rows * abs(one.stated - one.observed) for one in bins) / len(Y)
    brier = brier_score_loss(Y, RISK)
    values = {"calibration error": error, "Brier score": brier}
    assert by_name(st.calibration(MODEL, X, Y)) == pytest.approx(values)
    tree = MODEL.tree_
    inner = np.flatnonzero(~tree.is_leaf)
    assert by_name(st.complexity(MODEL, X)) == pytest.approx(
        {
            "leaves": np.sum(tree.is_leaf),
            "depth": max(tree.node_depth),
            "nodes": len(tree.feature),
            "features": len(set(tree.feature[inner])),
            "interpretation complexity": len({(tree.feature[k], tree.threshold[k]) for k in inner}),
            "mean questions": tree.node_depth[tree.apply(X)].mean(),
        }
    )


def test_figures_of_groups_name_the_worst():
    groups = np.where(X[:, 0] > np.median(X[:, 0]), "large", "small")
    right = {name: (ANSWERS == Y)[groups == name].mean() for name in ("large", "small")}
    values = by_name(st.by_group(MODEL, X, Y, groups))
    assert values["least group accuracy"] == pytest.approx(min(right.values()))
    assert values["group gap"] == pytest.approx(max(right.values()) - min(right.values()))


def test_figures_of_drift_end_with_those_of_calibration():
    random = np.random.default_rng(2)
    rows = rows_of(random, 400)
    outcome = np.where(random.random(400) < CARD.predict_proba(rows)[:, 1], "yes", "no")
    found = drift(CARD, rows, outcome)
    line = found.line.measurements()
    assert found.measurements()[-len(line) :] == line
    values = by_name(found)
    assert set(values) - {one.name for one in line} == {
        f"PSI of {name}" for name in ("the score", *(one.name for one in CARD.variables))
    }
    for k, variable in enumerate(CARD.variables):
        bands = variable.band_of(CARD.encode(rows)[:, variable.feature])
        new = np.bincount(bands, minlength=len(variable.bands))
        old = np.sum(CARD.profile[k], axis=1)
        assert values[f"PSI of {variable.name}"] == pytest.approx(psi(old, new))
    assert [one.name for one in drift(CARD, rows).measurements()] == [
        one.name for one in found.measurements()[: -len(line)]
    ]
