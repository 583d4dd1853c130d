"""Models and results in a notebook: measurements, pictures, nothing that runs."""

import xml.etree.ElementTree as etree

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.tree import DecisionTreeClassifier

import steadytree as st
from steadytree.metrics.accuracy import accuracy
from steadytree.reporting.plot import render

EVIL = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def things():
    random = np.random.default_rng(0)
    X = pd.DataFrame({EVIL: random.normal(size=200), "b": random.normal(size=200)})
    y = np.where(X[EVIL] > 0, EVIL, "no")
    model = st.StableTreeClassifier(2, 0, random_state=0).fit(X, y)
    other = st.StableTreeClassifier(1, 0, random_state=0).fit(X, y)
    score = st.RiskScoreClassifier(noise=0.02, max_conditions=2, random_state=0).fit(X, y)
    groups = np.where(X["b"] > 0, EVIL, "other")
    return {
        "learner": model,
        "tree": model.tree_,
        "learner of risk scores": score,
        "risk score": score.card_,
        "measurement": st.Measurement(EVIL, 0.5, EVIL, (0.4, 0.6)),
        "accuracy": accuracy(model, X, y),
        "certificate": st.certify(model, X, y, st.Perturbation({"b": 1.0}, budget=1)),
        "calibration": st.calibration(model, X, y),
        "groups": st.by_group(model, X, y, groups, EVIL),
        "diff": st.diff(other, model, X, y),
        "refits": st.refits(model, X, y, repeats=2),
        "sensitivity": st.average_sensitivity(model, X, y),
        "separation": st.separation(X[:50], y[:50]),
    }


NAMES = ("learner", "tree", "learner of risk scores", "risk score", "measurement", "accuracy")
NAMES += ("certificate", "calibration", "groups", "diff", "refits", "sensitivity", "separation")


@pytest.mark.parametrize("name", NAMES)
def test_everything_shows_itself_and_runs_no_script(things, name):
    html = things[name]._repr_html_()
    assert html
    assert "<script>alert" not in html
    assert len(repr(things[name])) < 400
    assert "array(" not in repr(things[name])


def test_pictures_and_tables_are_well_formed(things):
    for name in ("tree", "certificate", "groups", "measurement"):
        etree.fromstring(f"<div>{render(things[name])}</div>")
    assert "<svg" in render(things["tree"])
    assert "worst-case accuracy" in render(things["certificate"])
    assert "200" not in render(things["measurement"])


def test_a_learner_adds_its_picture_to_the_diagram_of_scikit_learn(things):
    bundle = things["learner"]._repr_mimebundle_()
    assert bundle["text/plain"] == repr(things["learner"])
    assert "sk-" in bundle["text/html"]
    assert "<svg" in bundle["text/html"]
    unfitted = st.StableTreeClassifier()._repr_mimebundle_()
    assert "Decision tree" not in unfitted["text/html"]
    with config_context(display="text"):
        assert "text/html" not in things["learner"]._repr_mimebundle_()


def test_a_large_tree_is_not_drawn():
    random = np.random.default_rng(0)
    model = DecisionTreeClassifier().fit(random.normal(size=(900, 2)), random.integers(0, 2, 900))
    assert render(st.as_tree(model)) is None
