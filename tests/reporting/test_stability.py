"""Removals of single rows: all, twenty, or none where few are affordable and no limit asks."""

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

import steadytree as st

RNG = np.random.default_rng(3)
X = pd.DataFrame({"a": RNG.random(1_130).round(2), "b": RNG.random(1_130).round(2)})
Y = np.where(RNG.random(1_130) < X["a"], "yes", "no")
CART = DecisionTreeClassifier(max_leaf_nodes=4, random_state=0)
STABLE = st.StableTreeClassifier(2, 0, random_state=0)
NOT_LEFT_OUT = "Single rows were not left out"


def stability(learner, n_rows, limits=None):
    train = X[:n_rows], Y[:n_rows]
    model = learner.fit(*train)
    report = st.report(model, X[1_080:], Y[1_080:], train=train, limits=limits)
    return report, report.data["stability"]


@pytest.mark.parametrize(("learner", "n_rows", "n"), [(STABLE, 500, 500), (CART, 900, 20)])
def test_removals_that_are_affordable_are_made(learner, n_rows, n):
    report, found = stability(learner, n_rows)
    assert (found["n_removals"], found["exact"]) == (n, n == n_rows)
    assert found["readings"][0]["name"] == "average sensitivity"
    assert NOT_LEFT_OUT not in report.html


def test_few_removals_are_made_for_a_limit_only():
    report, found = stability(CART, 1_060, {"min_accuracy": 0.1})
    assert (found["n_removals"], found["exact"], found["readings"]) == (0, False, [])
    assert len(found["distances"]) == 18  # refits to nine tenths stay
    assert NOT_LEFT_OUT in report.html
    assert "Average sensitivity is" not in report.html
    assert "one row is left out" not in str(report)
    report, found = stability(CART, 1_060, {"max_sensitivity": 1.0})
    assert found["n_removals"] == 18
    assert report.data["verdict"][0]["verdict"] == "pass"
    assert "Sampled: 18 random rows" in report.html
