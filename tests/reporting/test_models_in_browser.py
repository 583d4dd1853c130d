"""A page for every kind of model file, in a real browser."""

import pickle
from functools import cache

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import steadytree as st
from tests.reporting.browser import find_browser
from tests.reporting.test_pages_in_browser import MEASURE, browser, keep

__all__ = ["browser"]  # the fixture
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(find_browser() is None, reason="no chromium is installed"),
]
KINDS = ("tree", "pipeline", "search", "forest", "xgboost", "lightgbm")
ENDINGS = ("skops", "pkl", "joblib")


@cache
def rows():
    random = np.random.default_rng(0)
    X = pd.DataFrame({"age": random.uniform(20, 90, 300).round(), "dose": random.normal(5, 2, 300)})
    X["ward <b>"] = random.choice(["north", "south & east", "<i>west</i>"], 300)
    X.loc[::7, "dose"] = np.nan
    return X, ((X["age"] > 50) ^ (X["ward <b>"] == "north")).astype(int).to_numpy()


@cache
def fitted(kind):
    X, y = rows()
    steps = [
        ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), ["age", "dose"]),
        ("texts", OneHotEncoder(handle_unknown="ignore"), ["ward <b>"]),
    ]
    tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    pipeline = make_pipeline(ColumnTransformer(steps), tree)
    if kind == "tree":
        return clone(tree).fit(X[["age"]], y)
    if kind == "pipeline":
        return pipeline.fit(X, y)
    if kind == "search":
        depths = {"decisiontreeclassifier__max_depth": [2, 3]}
        return GridSearchCV(clone(pipeline), depths, cv=2).fit(X, y)
    if kind == "forest":
        forest = RandomForestClassifier(5, random_state=0)
        return make_pipeline(ColumnTransformer(steps), forest).fit(X, y)
    module = pytest.importorskip(kind)
    if kind == "xgboost":
        return module.XGBClassifier(n_estimators=3).fit(X[["age", "dose"]], y)
    return module.LGBMClassifier(n_estimators=3, verbose=-1).fit(X[["age", "dose"]], y)


def write(model, path):
    if path.suffix == ".skops":
        pytest.importorskip("skops.io").dump(model, path)
    elif path.suffix == ".joblib":
        joblib.dump(model, path, compress=3)
    else:
        path.write_bytes(pickle.dumps(model))


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_page_for_every_kind_of_file(browser, kind, ending, tmp_path):
    model, path, (X, y) = fitted(kind), tmp_path / f"model.{ending}", rows()
    write(model, path)
    page = tmp_path / f"{kind}-{ending}.html"
    found = st.report(
        st.load(path, trust=True), X, y, page, title="<b>", by=["ward <b>"], quick=True
    )
    is_tree = kind in ("tree", "pipeline", "search")
    assert found.data["kind"] == ("tree" if is_tree else "black_box")
    for width, dark in ((1280, False), (390, True)):
        browser.open(page.as_uri(), width, dark)
        keep(f"{page.stem}-{width}{'-dark' if dark else ''}.png", browser.picture(width))
        assert browser.complaints() == []
        assert browser.requests() == [page.as_uri()]
        measured = browser.run(MEASURE)
        assert measured["wide"] <= 0
        assert measured["outside"] == measured["empty"] == []
        assert measured["cut"] == measured["over"] == []
    assert browser.run("document.querySelectorAll('h1 b, td b, th i').length") == 0
    policy = "document.querySelector('meta[http-equiv]').content"
    assert browser.run(policy).startswith("default-src 'none'")
    listed = browser.run("[...document.querySelectorAll('section')].map(s => s.id)")
    assert ("tree" in listed) == is_tree
    assert {"accuracy", "calibration", "validation", "groups"} <= set(listed)
    assert browser.pdf().startswith(b"%PDF")
