import importlib
import pickle
from functools import partial

import hypothesis
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    export_graphviz,
    export_text,
    plot_tree,
)

from steadytree.data.feature_space import FeatureSpace
from steadytree.models import sklearn as sklearn_tree
from steadytree.models.one_hot import one_hot
from steadytree.models.sklearn import as_tree, from_sklearn, to_sklearn
from steadytree.models.tree import Tree
from steadytree.stability.stable_tree import StableTreeClassifier
from tests.models.trees import random_rows, random_tree, trees

X, Y = load_wine(return_X_y=True)
NAMES = np.array(["barolo", "grignolino", "barbera"], dtype=object)[Y]


def with_missing_values(X):
    X = X.copy()
    X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    return X


def only_missing_tells():
    """Rows whose class is whether the value is there: scikit-learn splits at infinity."""
    return np.array([[1.0], [2.0], [np.nan], [np.nan]]), [0, 0, 1, 1]


def grown(rows=X, labels=Y, weights=None, tree=DecisionTreeClassifier, **parameters):
    """A fitted tree and the rows it saw."""
    return tree(random_state=0, **parameters).fit(rows, labels, sample_weight=weights), rows


def grown_in_a_forest():
    forest = RandomForestClassifier(n_estimators=2, random_state=0).fit(X, NAMES)
    return forest.estimators_[1], X


FRAME = pd.DataFrame(X, columns=[f"measure {j}" for j in range(X.shape[1])])
CASES = {
    "plain": grown,
    "class-weighted": partial(grown, class_weight={0: 0.3, 1: 2.5, 2: 1.7}),
    "sample-weighted": partial(grown, weights=np.random.default_rng(0).random(len(X))),
    "best-first": partial(grown, max_leaf_nodes=7),
    "pruned": partial(grown, ccp_alpha=0.02),
    "entropy": partial(grown, criterion="entropy"),
    "missing": partial(grown, with_missing_values(X)),
    "only missing": partial(grown, *only_missing_tells()),
    "extra": partial(grown, tree=ExtraTreeClassifier),
    "extra missing": partial(grown, with_missing_values(X), tree=ExtraTreeClassifier),
    "text labels": partial(grown, labels=NAMES),
    "one leaf": partial(grown, labels=np.zeros(len(X), int)),
    "frame": partial(grown, FRAME),
    "forest": grown_in_a_forest,
}
WEIGHTED = ("class-weighted", "sample-weighted", "forest")


def fit(case):
    return CASES[case]()


@pytest.mark.parametrize("case", CASES)
def test_a_scikit_learn_tree_goes_there_and_back(case):
    model, rows = fit(case)
    back = to_sklearn(from_sklearn(model))
    before, after = (each.tree_.__getstate__() for each in (model, back))
    assert before["max_depth"] == after["max_depth"]
    np.testing.assert_array_equal(after["values"], before["values"], strict=True)
    for name in before["nodes"].dtype.names:
        if name == "impurity":
            expected = 1 - (before["values"][:, 0] ** 2).sum(axis=1)
            np.testing.assert_allclose(after["nodes"][name], expected, atol=1e-12)
            if case != "entropy":
                np.testing.assert_allclose(expected, before["nodes"][name], atol=1e-12)
        elif name == "n_node_samples" and case in WEIGHTED:
            rounded = np.maximum(np.rint(before["nodes"]["weighted_n_node_samples"]), 1)
            np.testing.assert_array_equal(after["nodes"][name], rounded)
        elif name == "missing_go_to_left":  # best-first growth leaves it set at some leaves
            cleared = before["nodes"][name] * (before["nodes"]["left_child"] >= 0)
            np.testing.assert_array_equal(after["nodes"][name], cleared)
        else:
            np.testing.assert_array_equal(after["nodes"][name], before["nodes"][name], strict=True)
    for method in ("predict", "predict_proba", "apply"):
        np.testing.assert_array_equal(
            getattr(back, method)(rows), getattr(model, method)(rows), strict=True
        )
    assert (back.decision_path(rows) != model.decision_path(rows)).nnz == 0
    assert set(vars(back)) == set(vars(DecisionTreeClassifier().fit(rows, model.predict(rows))))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("observed", [False, True])
def test_our_tree_decides_as_the_one_it_was_read_from(case, observed):
    model, rows = fit(case)
    tree = from_sklearn(model, rows if observed else None)
    values = np.asarray(rows)
    beside = [np.nextafter(values, to) for to in (-np.inf, np.inf)]
    on_thresholds = np.resize(model.tree_.threshold[np.isfinite(model.tree_.threshold)], X.shape)
    for table in (values, *beside, on_thresholds[:, : values.shape[1]]):
        seen = pd.DataFrame(table, columns=rows.columns) if case == "frame" else table
        np.testing.assert_array_equal(tree.predict(seen), model.predict(seen))
        np.testing.assert_array_equal(tree.predict_proba(seen), model.predict_proba(seen))
        np.testing.assert_array_equal(tree.apply(seen), model.apply(seen))
        theirs = model.decision_path(seen)
        # scikit-learn 1.6 draws another path for missing values than it goes
        arrives = np.asarray(theirs[np.arange(len(table)), model.apply(seen)]).ravel() == 1
        assert arrives[~np.isnan(table).any(axis=1)].all()
        assert (tree.decision_path(seen)[arrives] != theirs[arrives]).nnz == 0


@hypothesis.settings(max_examples=200)
@hypothesis.given(tree=trees(max_categorical=0, single_precision=True, empty_leaves=False))
def test_our_tree_goes_there_and_back(tree):
    back = from_sklearn(to_sklearn(tree))
    assert back.space.names == tree.space.names
    assert back.key()[1:] == tree.key()[1:]
    np.testing.assert_array_equal(back.left, tree.left)


# ---- float32: x = 0.1 against a threshold of 0.1 ----
def stump(threshold, single_precision=False):
    space = FeatureSpace.declare(bounds={"a": (0, 1)})
    shape = [0, -1, -1], [threshold, np.nan, np.nan], [1, -1, -1], [2, -1, -1]
    value = [[0.5, 0.5], [1, 0], [0, 1]]
    return Tree(space, ["low", "high"], *shape, value, [2, 1, 1], single_precision=single_precision)


def test_a_tree_read_from_scikit_learn_rounds_as_it_does():
    model = to_sklearn(stump(0.1))
    del model.feature_names_in_
    tree = from_sklearn(model)
    assert tree.threshold[0] == 0.1
    rows = np.array([[0.1], [np.nextafter(0.1, 0)], [0.09999999]])
    assert model.predict(rows).tolist() == ["high", "high", "low"]
    assert tree.predict(rows).tolist() == ["high", "high", "low"]
    assert stump(0.1).predict(rows).tolist() == ["low", "low", "low"]


def test_export_agrees_on_float32_neighbours_of_a_float64_threshold():
    near = np.float32(0.1)
    rows = np.array([near, np.nextafter(near, np.float32(0)), np.nextafter(near, np.float32(1))])
    tree, rows = stump(0.1), rows.astype(np.float32)[:, None]
    exported = to_sklearn(tree)
    del exported.feature_names_in_
    assert tree.predict(rows).tolist() == ["high", "low", "high"]
    assert exported.predict(rows).tolist() == ["high", "low", "high"]
    assert exported.tree_.threshold[0] == 0.1


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("grid", ["midpoint", "equidistant", "quantile"])
def test_learned_trees_and_their_exports_agree_on_decimals(grid, seed):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 10, (200, 4)) / 10
    labels = (rows[:, 0] + rows[:, 1] * rows[:, 2] > rng.normal(0.6, 0.2, 200)).astype(int)
    model = StableTreeClassifier(max_depth=3, epsilon=0, random_state=0, grid=grid)
    model.fit(rows, labels)
    assert model.tree_.n_leaves > 3
    np.testing.assert_array_equal(model.to_sklearn().apply(rows), model.apply(rows))


# ---- what is read off besides ----
def test_bounds_come_from_thresholds_or_from_rows():
    model, _ = fit("missing")
    tree = from_sklearn(model)
    for j, column in enumerate(tree.space):
        asked = tree.threshold[(tree.feature == j) & np.isfinite(tree.threshold)]
        expected = (asked.min(), asked.max()) if len(asked) else (0.0, 1.0)
        assert (column.name, column.kind, column.missing) == (f"x{j}", "numeric", True)
        assert (column.low, column.high) == expected
    observed = from_sklearn(model, X).space
    assert [column.low for column in observed] == X.min(axis=0).tolist()
    assert not any(column.missing for column in observed)
    assert observed[12].kind == "integer"


def test_bounds_of_few_rows_are_widened_to_the_thresholds():
    model = DecisionTreeClassifier().fit([[0.0], [4.0]], [0, 1])
    column = from_sklearn(model, [[0.0], [1.0]]).space[0]
    assert (column.kind, column.low, column.high) == ("numeric", 0.0, 2.0)


def test_a_column_asked_for_missing_values_may_be_missing():
    model, rows = fit("only missing")
    assert from_sklearn(model).threshold[0] == np.inf
    assert from_sklearn(model, rows[:2]).space[0].missing


def test_names_come_from_the_estimator_else_from_the_rows():
    frame = pd.DataFrame({"b": [0.0, 1.0], "a": [1.0, 5.0]})
    named = DecisionTreeClassifier().fit(frame, [0, 1])
    assert from_sklearn(named).space.names == ("b", "a")
    assert from_sklearn(named, frame[["a", "b"]]).space.names == ("b", "a")
    assert from_sklearn(named, frame.to_numpy()).space.names == ("b", "a")
    unnamed = DecisionTreeClassifier().fit(frame.to_numpy(), [0, 1])
    assert from_sklearn(unnamed).space.names == ("x0", "x1")
    assert from_sklearn(unnamed, frame).space.names == ("b", "a")
    assert not hasattr(to_sklearn(from_sklearn(unnamed)), "feature_names_in_")
    with pytest.raises(ValueError, match="1 features, but 2 are expected"):
        from_sklearn(unnamed, frame[["a"]])
    with pytest.raises(ValueError, match="lacks the column"):
        from_sklearn(named, frame[["a"]])
    with pytest.raises(ValueError, match="'a' of X hold categories"):
        from_sklearn(named, frame.assign(a=["one", "two"]))


# ---- refusals ----
@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (DecisionTreeClassifier(), NotFittedError, "not fitted yet"),
        (DecisionTreeRegressor().fit(X, Y), TypeError, "leaves hold numbers and not classes"),
        (RandomForestClassifier(2).fit(X, Y), TypeError, "pass one of its estimators_"),
        (make_pipeline(StandardScaler(), DecisionTreeClassifier()), NotFittedError, "not fitted"),
        (StableTreeClassifier(), TypeError, "holds none"),
        (LogisticRegression(), TypeError, "got LogisticRegression"),
        (GaussianNB().fit(X, Y), TypeError, "not a decision tree: pass a decision tree"),
        (DecisionTreeClassifier().fit(X, np.stack([Y, Y], axis=1)), ValueError, "2 targets"),
        (None, TypeError, "got NoneType: pass a Tree"),
        ("q2.tree.json", TypeError, "got str: pass a Tree"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_tree_is_refused_with_advice(model, error, message):
    for read in (as_tree, to_sklearn):
        with pytest.raises(error, match=message):
            read(model)


def test_as_tree_takes_trees_learners_and_scikit_learn_trees():
    tree = stump(0.5)
    assert as_tree(tree) is tree
    learner = StableTreeClassifier(max_depth=2, random_state=0).fit(X, Y)
    assert as_tree(learner) is learner.tree_
    model, _ = fit("plain")
    assert as_tree(model) == from_sklearn(model)


# ---- scikit-learn 1.10: another constructor and another layout ----
NEW_FIELDS = [("left_cat_bitset", np.uint32, (8,)), ("split_kind", np.int8)]


def test_nodes_fit_the_layout_of_scikit_learn_1_10(monkeypatch):
    compiled = importlib.import_module("sklearn.tree._tree")
    made = []

    class NewTree:
        def __init__(self, n_features, n_classes, n_outputs, n_categories):
            made.append((n_features, n_classes.tolist(), n_outputs, n_categories.tolist()))

        def __setstate__(self, state):
            made.append(state["nodes"])

    old = np.dtype(compiled.NODE_DTYPE)
    layout = np.dtype([(name, old[name]) for name in old.names] + NEW_FIELDS)
    monkeypatch.setattr(compiled, "Tree", NewTree)
    monkeypatch.setattr(compiled, "NODE_DTYPE", layout)
    monkeypatch.setattr(sklearn_tree, "_compare", lambda tree, estimator: None)
    to_sklearn(stump(0.1))
    assert made[0] == (1, [2], 1, [-1])
    assert made[1]["split_kind"].tolist() == [0, -1, -1]
    assert not made[1]["left_cat_bitset"].any()


def test_category_splits_of_scikit_learn_1_10_are_refused():
    model, _ = fit("plain")
    model.is_categorical_ = np.zeros(X.shape[1], bool)
    assert from_sklearn(model).n_nodes == model.tree_.node_count
    model.is_categorical_[3] = True
    with pytest.raises(ValueError, match="splits on categories"):
        from_sklearn(model)


# ---- readers ----
@pytest.fixture(scope="module")
def mixed():
    """A tree with numbers and categories, rows for it, and its export."""
    tree = random_tree(np.random.default_rng(4), n_leaves=9)
    assert tree.space.categorical[tree.feature[~tree.is_leaf]].any()
    rows = random_rows(np.random.default_rng(0), tree, 60)
    return tree, one_hot(tree, rows), to_sklearn(tree)


def test_export_is_a_plain_estimator(mixed):
    _, columns, exported = mixed
    assert type(exported) is DecisionTreeClassifier
    fitted = DecisionTreeClassifier().fit(columns, exported.predict(columns))
    assert {k: type(v) for k, v in vars(exported).items() if k[-1] == "_"} == {
        k: type(v) for k, v in vars(fitted).items() if k[-1] == "_"
    }
    again = clone(exported).fit(columns, exported.predict(columns))
    assert again.get_depth() <= exported.get_depth()
    assert "DecisionTreeClassifier" in exported._repr_html_()
    assert exported.feature_importances_.sum() == pytest.approx(1)
    assert exported.get_n_leaves() == exported.tree_.n_leaves
    assert exported.score(columns, exported.predict(columns)) == 1


def test_text_and_graphviz_name_every_question(mixed):
    _, _, exported = mixed
    asked = set(exported.feature_names_in_[exported.tree_.feature[exported.tree_.feature >= 0]])
    text = export_text(exported, feature_names=list(exported.feature_names_in_))
    drawn = export_graphviz(exported, feature_names=list(exported.feature_names_in_), filled=True)
    for name in asked:
        assert name in text
        assert name in drawn
    assert text.count("class:") == exported.get_n_leaves()


def test_plot_tree_draws_every_node(mixed):
    figure = pytest.importorskip("matplotlib.figure").Figure()
    pytest.importorskip("matplotlib.backends.backend_agg").FigureCanvasAgg(figure)
    _, _, exported = mixed
    drawn = plot_tree(exported, ax=figure.add_subplot(), filled=True)
    assert sum("samples" in each.get_text() for each in drawn) == exported.tree_.node_count


def test_pickled_exports_stay_the_same(mixed):
    _, columns, exported = mixed
    back = pickle.loads(pickle.dumps(exported))
    np.testing.assert_array_equal(back.predict_proba(columns), exported.predict_proba(columns))
    assert from_sklearn(back) == from_sklearn(exported)


def test_exports_can_be_calibrated():
    rows, labels = load_iris(return_X_y=True, as_frame=True)
    model = StableTreeClassifier(max_depth=2, epsilon=0, random_state=0).fit(rows, labels)
    calibrated = CalibratedClassifierCV(FrozenEstimator(model.to_sklearn()), cv=3)
    assert calibrated.fit(rows, labels).score(rows, labels) > 0.9


def test_names_are_made_up_where_the_estimator_has_none():
    rows, labels = [[0.0, 5.0], [1.0, 4.0]], ["no", "yes"]
    estimator = DecisionTreeClassifier(random_state=0, max_features=1).fit(rows, labels)
    assert from_sklearn(estimator, rows).space.names == ("x0", "x1")
    assert from_sklearn(estimator).predict(rows).tolist() == labels
