"""What scikit-learn's own tools expect of every learner: routing, frames, searches, pickles."""

import pathlib
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import steadytree as st
from steadytree.models.base import LAYOUT_KEY
from steadytree.robustness.robust_tree import RobustTreeClassifier
from steadytree.stability.pareto_regressor import ParetoTreeRegressor
from steadytree.stability.pareto_tree import ParetoTreeClassifier

QUICK = [
    st.StableTreeClassifier(max_depth=2, random_state=0),
    st.SteadyTreeClassifier(max_leaf_nodes=4, random_state=0),
    st.RiskScoreClassifier(max_conditions=3, random_state=0),
    st.RetrainedTreeClassifier(n_repeats=1),
]
LONGER = [
    ParetoTreeClassifier(n_trees=4, random_state=0),
    RobustTreeClassifier(max_depth=1, n_thresholds=4),
]
names = {"ids": lambda model: type(model).__name__}
every_learner = pytest.mark.parametrize(
    "learner", [*QUICK, *(pytest.param(model, marks=pytest.mark.slow) for model in LONGER)], **names
)


@pytest.fixture(scope="module")
def rows():
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"age": random.uniform(20, 90, 90), "ward": random.choice([*"AB"], 90)})
    frame.loc[::9, "age"] = np.nan
    return frame, pd.Series(np.where(frame["age"].fillna(60) > 55, "ill", "well"))


# ---- default settings; those of the other learners are in their own tests ----
@pytest.mark.slow
@parametrize_with_checks(
    [ParetoTreeClassifier(), ParetoTreeRegressor(), RobustTreeClassifier()],
    expected_failed_checks=lambda estimator: (
        {"check_class_weight_classifiers": "a pure leaf predicts its class, whatever its weight"}
        if isinstance(estimator, RobustTreeClassifier)
        else {"check_sample_weight_equivalence_on_dense_data": "rows are held out, not weights"}
    ),
)
def test_default_settings_follow_the_contract(estimator, check, no_time_passes):
    check(estimator)


def test_no_learner_is_left_out_of_the_checks():
    texts = [path.read_text("utf-8") for path in pathlib.Path(__file__).parent.rglob("test_*.py")]
    checked = " ".join(text for text in texts if "@parametrize_with_checks(" in text)
    learners = [name for name in st.__all__ if name.endswith(("Classifier", "Regressor"))]
    assert len(learners) >= 7
    for name in learners:
        # a private learner needs a schema, and its class for these checks reads one off the data
        made = "DeclaredFromData(" if name == "PrivateTreeClassifier" else f"{name}()"
        assert made in checked, name


# ---- what it is used with ----
@pytest.mark.parametrize("learner", QUICK[:2], **names)
def test_weights_are_routed_to_the_learner(learner, rows):
    X, y = rows
    asks = {True: 3.0, False: 1.0}
    for routed, weight in asks.items():
        with sklearn.config_context(enable_metadata_routing=True):
            model = clone(learner).set_fit_request(sample_weight=routed)
            model.set_score_request(sample_weight=False)
            options = {"cv": 3, "return_estimator": True, "error_score": "raise"}
            if routed:
                options["params"] = {"sample_weight": np.full(len(y), 3.0)}
            found = cross_validate(model, X, y, **options)
        assert [fitted.tree_.weight[0] for fitted in found["estimator"]] == [60 * weight] * 3


@every_learner
def test_frames_of_a_column_transformer(learner, rows):
    X, y = rows
    steps = make_column_transformer(
        (StandardScaler(), ["age"]), (OneHotEncoder(sparse_output=False), ["ward"])
    )
    is_quick = isinstance(learner, st.StableTreeClassifier)
    for form in ("default", "pandas", "polars") if is_quick else ("pandas",):
        pipeline = make_pipeline(clone(steps).set_output(transform=form), clone(learner))
        pipeline.fit(X, y)
        assert pipeline.score(X, y) > 0.8
        assert hasattr(pipeline[-1], "feature_names_in_") == (form != "default")


@every_learner
def test_sparse_columns_are_refused_in_plain_words(learner, rows):
    X, y = rows
    steps = ColumnTransformer([("ward", OneHotEncoder(), ["ward"])], sparse_threshold=1.0)
    with pytest.raises(TypeError, match=r"sparse matrix, which trees here do not take.*toarray"):
        make_pipeline(steps, clone(learner)).fit(X, y)


@every_learner
def test_searches_and_the_names_of_a_step(learner, rows):
    X, y = rows
    grid = GridSearchCV(clone(learner), {}, cv=2).fit(X, y)
    assert grid.best_score_ > 0.7
    assert list(grid.best_estimator_.feature_names_in_) == ["age", "ward"]
    with pytest.raises(ValueError, match="feature names"):
        grid.predict(X[["ward", "age"]].rename(columns={"age": "years"}))


def test_cross_validation_with_a_tree_in_use(rows):
    X, y = rows
    old = st.StableTreeClassifier(max_depth=1, random_state=0).fit(X[:45], y[:45])
    for previous in (old, old.tree_):
        learner = st.RetrainedTreeClassifier(previous=previous, n_repeats=1)
        assert cross_val_score(learner, X, y, cv=3).min() > 0.8
        kept = clone(learner).previous  # fitted, though clone makes new learners elsewhere
        np.testing.assert_array_equal(kept.predict(X), old.predict(X))


@every_learner
def test_pickles_are_read_back_and_those_of_another_version_refused(learner, rows):
    X, y = rows
    model = clone(learner).fit(X, y)
    data = pickle.dumps(model)
    np.testing.assert_array_equal(pickle.loads(data).predict_proba(X), model.predict_proba(X))
    state = {**model.__getstate__(), LAYOUT_KEY: 1}
    with pytest.raises(ValueError, match="another version of steadytree: fit the model again"):
        type(model).__new__(type(model)).__setstate__(state)


# ---- forms of input ----
@every_learner
@pytest.mark.parametrize("kind", ["Int64", "boolean", "string"])
def test_nullable_labels_keep_their_type(learner, rows, kind):
    X, y = rows
    positive = (y == "ill").to_numpy()
    labels = {
        "Int64": pd.Series(positive.astype(int), dtype="Int64"),
        "boolean": pd.Series(positive, dtype="boolean"),
        "string": y.astype("string"),
    }[kind]
    model = clone(learner).fit(X, labels)
    expected = {"Int64": [0, 1], "boolean": [False, True], "string": ["ill", "well"]}[kind]
    assert model.classes_.tolist() == expected
    assert [type(label) for label in model.classes_.tolist()] == [type(each) for each in expected]
    assert set(model.predict(X).tolist()) <= set(expected)
    with_gap = labels.copy()
    with_gap[3] = pd.NA
    with pytest.raises(ValueError, match=r"1 label\(s\) are missing, the first in row 3"):
        clone(learner).fit(X, with_gap)


@every_learner
def test_lazy_frames_and_repeated_columns_are_refused_in_plain_words(learner, rows):
    X, y = rows
    lazy = pl.from_pandas(X).lazy()
    with pytest.raises(TypeError, match=r"LazyFrame.*collect\(\)"):
        clone(learner).fit(lazy, y)
    fitted = clone(learner).fit(X, y)
    with pytest.raises(TypeError, match=r"LazyFrame.*collect\(\)"):
        fitted.predict(lazy)
    twice = pd.concat([X, X[["age"]]], axis=1)
    for use in (lambda: clone(learner).fit(twice, y), lambda: fitted.predict(twice)):
        with pytest.raises(ValueError, match="'age' appear more than once: rename or drop them"):
            use()
