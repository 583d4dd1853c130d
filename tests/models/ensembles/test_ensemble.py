"""Ensembles as flat arrays predict what the models themselves do, also beside thresholds."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from steadytree._base.exceptions import NotATreeError
from steadytree.data.table import Table
from steadytree.models.ensembles.ensemble import as_ensemble


def rows(rng, n, gaps):
    X = rng.normal(size=(n, 3))
    if gaps:
        X[rng.random(X.shape) < 0.2] = np.nan
    return X


def at_thresholds(found, X, rng):
    """Rows with values on, just above and just below thresholds."""
    X = np.tile(X, (5, 1))
    for j in range(X.shape[1]):
        at = found.threshold[(found.feature == j) & np.isfinite(found.threshold)]
        near = np.concatenate([at, np.nextafter(at, np.inf), np.nextafter(at, -np.inf), X[:20, j]])
        X[:, j] = rng.choice(near, len(X))
    return X


MODELS = {
    "forest": (lambda: RandomForestClassifier(7, random_state=0), True),
    "shallow forest": (lambda: RandomForestClassifier(7, max_depth=3, random_state=0), True),
    "extra": (lambda: ExtraTreesClassifier(7, random_state=0), False),
    "boosting": (lambda: GradientBoostingClassifier(n_estimators=5, random_state=0), False),
    "histogram": (lambda: HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=5), True),
}


def check_answers(model, X, n_classes, margins):
    """The class that leads is the model's, and no other where the lead is beyond the rounding."""
    found = as_ensemble(model, Table.read(X))
    assert len(found.classes) == n_classes
    probes = at_thresholds(found, X, np.random.default_rng(1))
    scores = found.scores(probes)
    own = found.predict(Table.read(probes))
    found.check_answers(probes, own)
    if margins is not None:
        given = np.asarray(margins(probes), float).reshape(len(probes), -1)
        lead = scores[:, 1:] if given.shape[1] == 1 else scores
        np.testing.assert_allclose(lead, given, atol=max(found.tolerance, 1e-12))
    return found


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", MODELS)
def test_scores_are_those_of_the_model(name, n_classes):
    rng = np.random.default_rng(0)
    make, gaps = MODELS[name]
    X = rows(rng, 120, gaps)
    y = np.digitize(np.nan_to_num(X).sum(axis=1), [-1.0, 0.5])[:, None].ravel() % n_classes
    model = make().fit(X, y)
    if "boosting" in name or name == "histogram":
        check_answers(model, X, n_classes, model.decision_function)
    else:
        n = model.n_estimators
        found = check_answers(model, X, n_classes, lambda Z: n * model.predict_proba(Z))
        assert (found.tolerance == 0) == (name != "shallow forest")


@pytest.mark.interop
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", ["xgboost", "lightgbm"])
def test_scores_of_other_packages_are_those_of_the_model(name, n_classes):
    package = pytest.importorskip(name)
    rng = np.random.default_rng(0)
    for gaps in (False, True):
        X = rows(rng, 200, gaps)
        X[:, 2] = X[:, 2].round()
        y = np.digitize(np.nan_to_num(X).sum(axis=1), [-1.0, 0.5]) % n_classes
        if name == "xgboost":
            model = package.XGBClassifier(n_estimators=6, max_depth=3).fit(X, y)
            margins = lambda Z, model=model: model.predict(Z, output_margin=True)  # noqa: E731
        else:
            model = package.LGBMClassifier(n_estimators=6, num_leaves=6, verbose=-1).fit(X, y)
            margins = lambda Z, model=model: model.predict(Z, raw_score=True)  # noqa: E731
        found = check_answers(model, X, n_classes, margins)
        gap = np.full((1, 3), np.nan)  # also where none was in training
        assert found.predict(Table.read(gap))[0] in range(n_classes)
        found.check_answers(gap, found.predict(Table.read(gap)))


@pytest.mark.interop
def test_what_cannot_be_read_of_other_packages():
    xgboost, lightgbm = pytest.importorskip("xgboost"), pytest.importorskip("lightgbm")
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.integers(0, 2, 60)
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(
        c=pd.Categorical(rng.choice(list("xyz"), 60))
    )
    frame["y"] = (frame["c"] == "x").astype(int)
    table = Table.read(X)
    for model, message in (
        (xgboost.XGBClassifier(booster="dart", n_estimators=2).fit(X, y), "booster 'dart'"),
        (xgboost.XGBClassifier(missing=-1.0, n_estimators=2).fit(X, y), "takes -1.0 as missing"),
        (
            xgboost.XGBClassifier(enable_categorical=True, max_cat_to_onehot=1, n_estimators=2).fit(
                frame[["a", "c"]], frame["y"]
            ),
            "splits on categories itself",
        ),
        (  # none of its splits asks about the categories
            xgboost.XGBClassifier(enable_categorical=True, max_depth=1, n_estimators=1).fit(
                frame[["a", "c"]], frame["a"] > 0
            ),
            "splits on categories itself",
        ),
        (
            lightgbm.LGBMClassifier(n_estimators=2, verbose=-1, min_child_samples=2).fit(
                frame[["a", "c"]], frame["y"]
            ),
            "splits on categories itself",
        ),
        (
            lightgbm.LGBMClassifier(
                boosting_type="rf", bagging_freq=1, bagging_fraction=0.5, n_estimators=2, verbose=-1
            ).fit(X, y),
            "is a forest",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            as_ensemble(model, table)


@pytest.mark.interop
@pytest.mark.filterwarnings("ignore:The argument 'eval_set' is deprecated")
@pytest.mark.parametrize("name", ["xgboost", "lightgbm"])
def test_early_stopping_leaves_trees_out(name):
    package = pytest.importorskip(name)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.integers(0, 2, 200)
    held = [(X[100:], y[100:])]
    if name == "xgboost":
        model = package.XGBClassifier(n_estimators=40, early_stopping_rounds=2, max_depth=3)
        model.fit(X[:100], y[:100], eval_set=held, verbose=False)
    else:
        model = package.LGBMClassifier(n_estimators=40, verbose=-1)
        model.fit(X[:100], y[:100], eval_set=held, callbacks=[package.early_stopping(2, verbose=0)])
    found = as_ensemble(model, Table.read(X))
    assert len(found.root) < 40
    found.check_answers(X, found.predict(Table.read(X)))


def people(rng, n):
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 60, n).astype(float),
            "job": rng.choice(["clerk", "miner", "nurse"], n),
            "grade": rng.choice([1, 2, 5], n),
            "note": "dropped",
        }
    )
    frame.loc[::7, "age"] = np.nan
    return frame, np.where((frame["age"].fillna(30) > 40) ^ (frame["job"] == "miner"), "yes", "no")


@pytest.mark.parametrize("last", ["forest", "histogram"])
def test_pipelines_are_mapped_back_to_raw_columns(last):
    frame, y = people(np.random.default_rng(0), 150)
    steps = ColumnTransformer(
        [
            ("age", make_pipeline(SimpleImputer(), StandardScaler()), ["age"]),
            ("job", OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["job"]),
            ("grade", OrdinalEncoder(), ["grade"]),
        ]
    )
    model = make_pipeline(steps, MODELS[last][0]()).fit(frame, y)
    found = as_ensemble(model, Table.read(frame))
    assert found.space.names == ("age", "job", "grade")
    table = Table.read(frame)
    encoded = np.asarray(found.space.encode(table), float)
    own = found.predict(table)
    np.testing.assert_array_equal(found.classes[own], model.predict(frame))
    found.check_answers(encoded, own)
    moved = encoded.copy()  # another age, job and grade, as the pipeline is given them
    moved[:, 0], moved[:, 1], moved[:, 2] = 33.0, 2.0, 1.0
    expected = model.predict(frame.assign(age=33.0, job="nurse", grade=2))
    np.testing.assert_array_equal(found.classes[found.predict(table, moved)], expected)
    found.check_answers(moved, found.predict(table, moved))


def test_a_search_for_settings_is_its_best_estimator():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.integers(0, 2, 60)
    search = GridSearchCV(RandomForestClassifier(3, random_state=0), {"max_depth": [2]}).fit(X, y)
    assert len(as_ensemble(search, Table.read(X)).root) == 3


def test_what_is_no_ensemble_of_trees_is_refused():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 2, 60)
    boosted = AdaBoostClassifier(n_estimators=2).fit(X, y)
    with pytest.raises(NotATreeError, match=r"got AdaBoostClassifier: certified are trees, risk"):
        as_ensemble(boosted, Table.read(X))
    mixed = make_pipeline(PCA(2), RandomForestClassifier(2)).fit(X, y)
    with pytest.raises(NotATreeError, match=r"step 'pca' \(PCA\) cannot be followed back"):
        as_ensemble(mixed, Table.read(X))
    several = RandomForestClassifier(2).fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="2 targets at once"):
        as_ensemble(several, Table.read(X))


def test_moved_rows_keep_their_digits_beside_rows_of_single_precision():
    """A threshold in double precision lies between two values of single precision."""
    rng = np.random.default_rng(0)
    X = rng.random((300, 2)).astype(np.float32)
    model = HistGradientBoostingClassifier(max_iter=5).fit(X, X[:, 0] + X[:, 1] > 1)
    table = Table.read(X)
    found = as_ensemble(model, table)
    moved = at_thresholds(found, X[:60].astype(np.float64), rng)
    table = table.take(np.arange(len(moved)))
    np.testing.assert_array_equal(found.predict(table, moved), model.predict(moved))
