"""Validation: the figures of any classifier, and which class they are about."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from steadytree import StableTreeClassifier
from steadytree.metrics.validation import validate

RNG = np.random.default_rng(5)
X = RNG.normal(size=(500, 3)).round(2)
Y = np.where(RNG.random(500) < 1 / (1 + np.exp(-X[:, 0] - 0.5 * X[:, 1])), "yes", "no")
TREE = StableTreeClassifier(2, 0, random_state=0).fit(X[:250], Y[:250])


@pytest.mark.parametrize(
    "model",
    [
        TREE,
        TREE.tree_,
        RandomForestClassifier(5, random_state=0).fit(X[:250], Y[:250]),
        make_pipeline(StandardScaler(), LogisticRegression()).fit(X[:250], Y[:250]),
    ],
    ids=["learner", "tree", "forest", "pipeline"],
)
def test_trees_and_other_classifiers(model):
    found = validate(model, X[250:], Y[250:])
    risk = model.predict_proba(X[250:])[:, 1]
    assert found.label == "yes"
    assert found.ranking.auc == pytest.approx(roc_auc_score(Y[250:] == "yes", risk))
    names = [one.name for one in found.measurements()]
    assert names[:4] == ["AUC", "Gini", "KS", "average precision"]
    assert names[4:6] == ["calibration slope", "calibration in the large"]
    own = next(one for one in found.cutoffs if one.is_own)
    assert ((risk >= own.risk) == (model.predict(X[250:]) == "yes")).all()
    assert found.to_dict()["n_events"] == (Y[250:] == "yes").sum()


def test_one_class_against_the_rest():
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    model = StableTreeClassifier(2, 0, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="positive must name one of the classes"):
        validate(model, X, y)
    with pytest.raises(ValueError, match=r"one of the classes .*, got 'high'"):
        validate(model, X, y, positive="high")
    found = validate(model, X, y, positive=0)
    assert found.ranking.auc == pytest.approx(roc_auc_score(y == 0, model.predict_proba(X)[:, 0]))


def test_the_first_of_two_classes_can_be_the_event():
    first, second = validate(TREE, X, Y, positive="no"), validate(TREE, X, Y)
    assert first.label == "no"
    assert first.ranking.auc == pytest.approx(second.ranking.auc)
    assert first.line.intercept == pytest.approx(-second.line.intercept)


def test_rows_of_one_class_are_refused():
    with pytest.raises(ValueError, match="one class"):
        validate(TREE, X[:3], ["yes"] * 3)


def test_frames_of_a_pipeline_stay_frames():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(frame, Y)
    assert validate(model, frame, Y).ranking.n_rows == 500


def test_a_threshold_is_named_only_where_it_gives_the_predictions():
    """Of three classes the most probable is predicted, which need not be a threshold of one."""
    y = X.argmax(axis=1)
    model = LogisticRegression().fit(X[:250], y[:250])
    risks, predicted = model.predict_proba(X), model.predict(X)
    named = []
    for label in range(3):
        levels = np.unique(risks[:, label])
        tried = [t for t in levels if ((risks[:, label] >= t) == (predicted == label)).all()]
        own = validate(model, X, y, positive=label).own
        assert own == (pytest.approx(tried[0]) if tried else None)
        named.append(own is not None)
    assert not all(named)
