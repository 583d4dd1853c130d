"""The page of an ensemble shows it beside a readable tree, or says why not."""

import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import steadytree as st
from steadytree.reporting.options import ReportOptions
from steadytree.reporting.robustness import build_ensemble


def rows(n=120):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"size": rng.normal(size=n), "weight": rng.normal(size=n)})
    return X, np.where(X["size"] + X["weight"] > 0, "yes", "no")


@pytest.mark.interop
def test_the_readable_tree_against_the_ensemble():
    pytest.importorskip("veritas")
    X, y = rows()
    model = RandomForestClassifier(5, max_depth=3, random_state=0).fit(X, y)
    found = build_ensemble(model, X, y, ReportOptions(perturbation=st.Perturbation(radius=0.2)))
    forest, tree = found["models"]
    assert (forest["name"], tree["name"]) == ("RandomForestClassifier", "readable tree")
    assert tree["decided"] == "100 %"
    assert found["n_rows"] == 60  # the other half has the tree
    page = st.report(model, X, y, quick=True, perturbation=st.Perturbation(radius=0.2)).html
    assert "The readable tree against the ensemble" in page
    assert "changes its prediction with" in page


def test_without_the_extra_the_page_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "veritas", None)
    X, y = rows()
    model = RandomForestClassifier(5, max_depth=3, random_state=0).fit(X, y)
    with pytest.raises(ImportError, match=r"pip install 'steadytree\[ensembles\]'"):
        st.certify(model, X, y, st.Perturbation(radius=0.2))
    found = build_ensemble(model, X, y, ReportOptions())
    assert "certifying an ensemble needs veritas" in found["note"]


def test_a_model_without_trees_is_not_certified():
    X, y = rows()
    found = build_ensemble(LogisticRegression().fit(X, y), X, y, ReportOptions())
    assert "got LogisticRegression: certified are trees" in found["note"]
