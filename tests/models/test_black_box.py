"""Classifiers that are no single tree are measured by their predictions alone."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import accuracy_score, brier_score_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import steadytree as st
from steadytree._base.exceptions import NotATreeError
from steadytree.data.table import Table
from steadytree.models.black_box import BlackBox, as_model


@pytest.fixture(scope="module")
def rows():
    random = np.random.default_rng(0)
    X = pd.DataFrame({"a": random.normal(size=300), "b": random.choice(["x", "y", "z"], 300)})
    X.loc[::9, "b"] = np.nan
    return X, np.where((X.a > 0) ^ (X.b == "x") ^ (random.random(300) < 0.2), "yes", "no")


def encoded(model):
    steps = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder())
    return make_pipeline(ColumnTransformer([("b", steps, ["b"])], remainder="passthrough"), model)


def test_figures_of_a_forest_are_those_of_scikit_learn(rows):
    X, y = rows
    forest = encoded(RandomForestClassifier(10, max_depth=3, random_state=0)).fit(X, y)
    found = st.report(forest, X, y, by=["b"], quick=True).data
    shares = forest.predict_proba(X)[:, 1]
    values = {one["name"]: one["value"] for one in found["readings"]["accuracy"]}
    assert values["accuracy"] == accuracy_score(y, forest.predict(X))
    assert values["AUC"] == pytest.approx(roc_auc_score(y == "yes", shares))
    brier = found["readings"]["calibration"][-1]
    assert brier["value"] == pytest.approx(brier_score_loss(y == "yes", shares))
    assert found["kind"] == "black_box"
    assert found["tree"] is found["robustness"] is found["stability"] is None
    assert found["groups"][0]["column"] == "b"
    assert found["data"]["columns"][1]["kind"] == "categorical"


def test_rows_read_from_a_file_give_the_same_predictions(rows):
    X, y = rows
    forest = encoded(RandomForestClassifier(5, random_state=0)).fit(X, y)
    box = as_model(forest)
    np.testing.assert_array_equal(box.predict_proba(Table.read(X)), forest.predict_proba(X))
    np.testing.assert_array_equal(box.predict(X), forest.predict(X))
    unnamed = RandomForestClassifier(5, random_state=0).fit(X[["a"]].to_numpy(), y)
    table = Table.read(X[["a"]])
    np.testing.assert_array_equal(
        as_model(unnamed).predict_proba(table), unnamed.predict_proba(X[["a"]].to_numpy())
    )
    with pytest.raises(ValueError, match="fitted to 1 columns without names, and the data have 2"):
        as_model(unnamed).predict_proba(Table.read(X))


def test_a_page_says_why_sections_are_missing_and_escapes_the_reason(rows):
    X, y = rows
    model = HistGradientBoostingClassifier(max_iter=3).fit(X[["a"]], y)
    found = st.report(model, X, y, quick=True)
    assert "certificates need a single tree or a risk score" in found.html
    assert "HistGradientBoostingClassifier" in found.html
    assert "The model is not shown" in str(found)
    assert found.data["data"]["columns"][1]["kind"] == "not used"
    with pytest.raises(NotATreeError, match="previous: changes are shown between trees"):
        st.report(model, X, y, previous=DecisionTreeClassifier().fit(X[["a"]], y))


def test_what_needs_a_tree_refuses_by_name(rows):
    X, y = rows
    model = LogisticRegression().fit(X[["a"]], y)
    for call in (
        lambda: st.certify(model, X, y, st.Perturbation({"a": 1.0})),
        lambda: st.diff(model, model),
        lambda: st.plot(model),
    ):
        with pytest.raises(TypeError, match="got LogisticRegression"):
            call()
    assert isinstance(as_model(model), BlackBox)


def test_what_gives_no_probabilities_is_refused(rows):
    X, y = rows
    for model in (LinearSVC().fit(X[["a"]], y), LinearRegression().fit(X[["a"]], X.a)):
        with pytest.raises(
            NotATreeError, match=r"predict_proba and classes_ is needed, got Linear"
        ):
            as_model(model)
    with pytest.raises(NotFittedError):
        as_model(LogisticRegression())
    for thing in (None, {"a": 1}, RandomForestClassifier):
        with pytest.raises(NotATreeError, match="a tree is needed"):
            as_model(thing)


def test_unseen_categories_that_a_tree_cannot_tell_from_missing_make_a_black_box(rows):
    X, _ = rows
    steps = make_pipeline(
        SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore")
    )
    mode = X.b.mode()[0]
    only = ColumnTransformer([("b", steps, ["b"])])
    target = np.where(X.b.fillna(mode) == mode, "yes", "no")
    model = make_pipeline(only, DecisionTreeClassifier()).fit(X, target)
    tree = as_model(model, X)
    assert isinstance(tree, st.Tree)
    assert "Unseen categories of 'b'" in tree.note
    other = X.assign(b="unseen")
    found = as_model(model, other)
    assert isinstance(found, BlackBox)
    np.testing.assert_array_equal(found.predict(other), model.predict(other))
    assert (tree.predict(other) != model.predict(other)).all()
