import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.model_selection import StratifiedKFold
from sklearn.tree import DecisionTreeClassifier

from steadytree import StableTreeClassifier, average_sensitivity, stability_curve
from steadytree.stability.curve import CurvePoint, StabilityCurve

X, y = load_iris(return_X_y=True)
LEARNER = StableTreeClassifier(max_depth=2)


def test_a_point_is_the_mean_over_folds_and_seeds():
    curve = stability_curve(LEARNER, X, y, epsilons=(0.5, 0), n_folds=3, n_seeds=2)
    assert [point.epsilon for point in curve.points] == [0.0, 0.5]
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    sensitivity, train_accuracy, test_accuracy = [], [], []
    for train, test in folds.split(X, y):
        for seed in range(2):
            model = StableTreeClassifier(max_depth=2, epsilon=0.5, random_state=seed)
            sensitivity.append(average_sensitivity(model, X[train], y[train]).value)
            model.fit(X[train], y[train])
            train_accuracy.append(model.score(X[train], y[train]))
            test_accuracy.append(model.score(X[test], y[test]))
    point = curve.points[1]
    assert point.sensitivity == pytest.approx(np.mean(sensitivity))
    assert point.train_accuracy == pytest.approx(np.mean(train_accuracy))
    assert point.test_accuracy == pytest.approx(np.mean(test_accuracy))
    for interval, value in (
        (point.sensitivity_interval, point.sensitivity),
        (point.test_accuracy_interval, point.test_accuracy),
    ):
        assert interval[0] <= value <= interval[1]


def test_sensitivity_falls_with_epsilon():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    learner = StableTreeClassifier(max_depth=3, criterion="count", merge_leaves=True)
    curve = stability_curve(learner, X, pd.Series(y), epsilons=(0, 0.3, 1), n_folds=3, n_seeds=3)
    found = [point.sensitivity for point in curve.points]
    assert found == sorted(found, reverse=True)


def test_sampled_sets():
    curve = stability_curve(LEARNER, X, y, (0.1,), removed=0.1, repeats=5, n_folds=2, n_seeds=1)
    assert curve.removed == 0.1
    assert curve.points[0].sensitivity >= 0


def point(epsilon, sensitivity, accuracy):
    return CurvePoint(epsilon, sensitivity, (0, 1), 0.9, accuracy, (0, 1))


def test_the_most_stable_point_within_a_loss():
    curve = StabilityCurve(
        (point(0, 0.3, 0.95), point(0.1, 0.2, 0.96), point(0.5, 0.1, 0.94), point(1, 0.05, 0.8)), 1
    )
    assert curve.epsilon_for(0).epsilon == 0.1
    assert curve.epsilon_for(0.02).epsilon == 0.5
    assert curve.epsilon_for(0.5).epsilon == 1
    with pytest.raises(ValueError, match="max_accuracy_loss"):
        curve.epsilon_for(-0.1)


def test_readings_and_plain_values():
    curve = StabilityCurve((point(0, 0.3, 0.95), point(0.1, 0.2, 0.96)), 1)
    names = [reading.name for reading in curve.measurements]
    assert names[0] == "sensitivity, greedy"
    assert names[3] == "held-out accuracy, epsilon 0.1"
    again = json.loads(json.dumps(curve.to_dict()))
    assert again["points"][1]["epsilon"] == 0.1


def test_bad_input_is_refused():
    with pytest.raises(TypeError, match="needs a learner with epsilon, got DecisionTreeClassifier"):
        stability_curve(DecisionTreeClassifier(), X, y)
    with pytest.raises(ValueError, match="at least one value"):
        stability_curve(LEARNER, X, y, epsilons=())
    with pytest.raises(ValueError, match="n_folds"):
        stability_curve(LEARNER, X, y, n_folds=1)
    with pytest.raises(ValueError, match="epsilon"):
        stability_curve(LEARNER, X, y, epsilons=(np.nan,))
