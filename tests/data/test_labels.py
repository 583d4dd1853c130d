"""Labels of every type a user has: the same result as plain text or numbers, nothing compiled."""

import inspect
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as some
from sklearn.tree import DecisionTreeClassifier

import steadytree as st
from steadytree.data.labels import (
    check_labels,
    class_indices,
    label_array,
    labels_like,
    match_labels,
    stratified_folds,
    unite_classes,
)
from tests.test_kernels import ALL

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(size=(80, 2)).round(2), columns=["a", "b"])
BITS = ((X["a"] + rng.normal(size=80) / 2) > 0).to_numpy()
TEXT = np.where(BITS, "yes", "no")
BOUNDS = {"a": (-4, 4), "b": (-4, 4)}
STABLE = st.StableTreeClassifier(max_depth=2, epsilon=0.3, random_state=0)

# labels as a user may hold them, with the same labels as a plain array
LABELS = {
    "list": (TEXT.tolist(), TEXT),
    "object": (pd.Series(TEXT, dtype=object), TEXT),
    "string": (pd.Series(TEXT, dtype="string"), TEXT),
    "category": (pd.Series(TEXT, dtype="category"), TEXT),
    "bool": (pd.Series(BITS), BITS),
    "boolean": (pd.Series(BITS, dtype="boolean"), BITS),
    "bool objects": (pd.Series(BITS, dtype=object), BITS),
    "Int64": (pd.Series(BITS, dtype="Int64"), BITS.astype(int)),
    "category of numbers": (pd.Series(BITS.astype(int), dtype="category"), BITS.astype(int)),
    "polars text": (pl.Series(TEXT), TEXT),
    "polars categories": (pl.Series(TEXT, dtype=pl.Categorical), TEXT),
    "polars bool": (pl.Series(BITS), BITS),
    "polars numbers": (pl.Series(BITS.astype(np.int8)), BITS.astype(int)),
}


def schema(plain):
    return st.Schema(bounds=BOUNDS, classes=np.unique(plain).tolist())


def fitted(plain, seed=0):
    return DecisionTreeClassifier(max_depth=2, random_state=seed).fit(X[seed:], plain[seed:])


def fit(learner):
    def run(y, plain):
        model = learner(plain).fit(X, y)
        known = model.classes_.tolist(), [type(label) for label in model.classes_.tolist()]
        return known, model.predict_proba(X)

    return run


def score(learner):
    return lambda y, plain: learner(plain).fit(X, plain).score(X, y)


def measurements(found):
    listed = found.measurements() if callable(found.measurements) else found.measurements
    return [reading.to_dict() for reading in listed]


def report(y, plain):
    made = st.report(
        fitted(plain), X, y, train=(X, y), learner=STABLE, schema=schema(plain), date="2026-01-01",
        perturbation=st.Perturbation(radius=0.1), previous=fitted(plain, 1), by={"sign": BITS},
    )  # fmt: skip
    return str(made)


def compare(y, plain):
    options = {"n_folds": 2, "max_depth": 2, "random_state": 0}
    found = st.compare(["cart", "score"], X, y, **options).columns()
    return {name: column for name, column in found.items() if name != "fit time"}


LEARNERS = {
    "StableTreeClassifier": lambda plain: STABLE,
    "SteadyTreeClassifier": lambda plain: st.SteadyTreeClassifier(max_leaf_nodes=3),
    "ParetoTreeClassifier": lambda plain: st.ParetoTreeClassifier(
        n_trees=4, grid={"max_depth": [2]}, random_state=0
    ),
    "RetrainedTreeClassifier": lambda plain: st.RetrainedTreeClassifier(
        fitted(plain, 1), STABLE, n_repeats=1
    ),
    "RobustTreeClassifier": lambda plain: st.RobustTreeClassifier(
        max_depth=1, perturbation=st.Perturbation(radius=0.1), random_state=0
    ),
    "RiskScoreClassifier": lambda plain: st.RiskScoreClassifier(
        noise=0.0, gamma=0.1, n_rounds=10, random_state=0
    ),
    "PrivateTreeClassifier": lambda plain: st.PrivateTreeClassifier(
        5.0, schema(plain), max_depth=1, testing_seed=0
    ),
}

CALLS = {
    **{f"{name}.fit": fit(learner) for name, learner in LEARNERS.items()},
    **{f"{name}.score": score(learner) for name, learner in LEARNERS.items()},
    "StableTreeClassifier.prepare": lambda y, plain: STABLE.prepare(X, y).labels,
    "Schema.encode_labels": lambda y, plain: schema(plain).encode_labels(y),
    "average_sensitivity": lambda y, plain: st.average_sensitivity(STABLE, X, y).distances,
    "by_group": lambda y, plain: measurements(st.by_group(fitted(plain), X, y, BITS)),
    "calibration": lambda y, plain: measurements(st.calibration(fitted(plain), X, y)),
    "certify": lambda y, plain: measurements(
        st.certify(fitted(plain), X, y, st.Perturbation(radius=0.1))
    ),
    "compare": compare,
    "diff": lambda y, plain: str(st.diff(fitted(plain), fitted(plain, 1), X, y)),
    "distributional_sensitivity": lambda y, plain: (
        st.distributional_sensitivity(STABLE, X, y, n_rows=2, n_trees=3).transported
    ),
    "plot": lambda y, plain: st.plot(fitted(plain), X, y).svg,
    "private_accuracy": lambda y, plain: (
        st.private_accuracy(fitted(plain), X, y, 1.0, schema(plain), testing_seed=0).accuracy
    ),
    "refits": lambda y, plain: measurements(st.refits(STABLE, X, y, repeats=2)),
    "report": report,
    "separation": lambda y, plain: measurements(st.separation(X, y, r=0.1)),
    "shift_accuracy": lambda y, plain: measurements(
        st.shift_accuracy(fitted(plain), X, y, 0.9, repeats=2, random_state=0)
    ),
    "stability_curve": lambda y, plain: st.stability_curve(
        STABLE, X, y, epsilons=(0, 0.3), n_folds=2, n_seeds=2
    ).to_dict(),
}


def test_every_public_function_that_takes_labels_is_called():
    found = set()
    for name in st.__all__:
        thing = getattr(st, name)
        parts = {name: thing} if inspect.isfunction(thing) else {}
        if inspect.isclass(thing):
            members = inspect.getmembers(thing, inspect.isfunction)
            parts = {f"{name}.{m}": f for m, f in members if not m.startswith("_")}
        found |= {part for part, f in parts.items() if "y" in inspect.signature(f).parameters}
    assert found == set(CALLS)


@pytest.mark.parametrize("name", CALLS)
def test_labels_of_any_type_mean_the_same(name):
    expected = {plain.dtype: CALLS[name](plain, plain) for _, plain in LABELS.values()}
    for kind, (labels, plain) in LABELS.items():
        if kind == "bool objects" and name.endswith(".score"):
            continue  # refused by scikit-learn's own accuracy_score
        np.testing.assert_equal(CALLS[name](labels, plain), expected[plain.dtype], kind)


@pytest.mark.parametrize("kind", LABELS)
def test_labels_of_any_type_compile_nothing(kind):
    def use(y):
        st.average_sensitivity(STABLE, X, y)
        st.average_sensitivity(STABLE, X, y, removed=2, repeats=2)
        st.distributional_sensitivity(STABLE, X, y, n_rows=2, n_trees=2)
        st.StableTreeClassifier(2, lookahead=2, criterion="count", random_state=0).fit(X, y)

    def compiled():
        compiled = {name: kernel for name, kernel in ALL.items() if hasattr(kernel, "signatures")}
        return {name: list(kernel.signatures) for name, kernel in compiled.items()}

    use(np.arange(len(X)) % 2)
    before = compiled()
    assert all(before[name] for name in ("grow_rows", "leave_out_counted", "regrow_without"))
    assert before["score_ahead"]
    use(LABELS[kind][0])
    use(np.where(BITS, "a much longer label", "b"))
    assert compiled() == before


def test_labels_keep_their_type():
    assert label_array(pd.Series([1, 0], dtype="Int64")).dtype == np.int64
    assert label_array(pd.Series([True, False], dtype=object)).dtype == np.bool_


def test_labels_that_numpy_would_change_are_refused():
    masked = np.ma.masked_array([0, 1, 1], mask=[False, False, True])
    with pytest.raises(TypeError, match="y is a masked array"):
        check_labels(masked, 3)
    assert check_labels(np.ma.masked_array([0, 1, 1]), 3).tolist() == [0, 1, 1]
    with pytest.raises(ValueError, match=r"label 'a\\x00' ends in a NUL sign"):
        check_labels(np.array(["a", "a\0", "b"], dtype=object), 3)
    assert check_labels(np.array(["a", "\0a"], dtype=object), 2).tolist() == ["a", "\0a"]


def test_labels_are_matched_as_text_where_none_fits():
    assert match_labels(["1", "unclear"], [0, 1]) == [1, -1]
    assert labels_like(np.array([0, 1]), np.array(["0", "1", "unclear"])).tolist() == ["0", "1"]
    assert unite_classes(np.array(["a", "c"]), np.array(["b", "c"])).tolist() == ["a", "b", "c"]


@given(
    labels=some.lists(some.sampled_from([0, 1, 2, 5]), min_size=12, max_size=60),
    n_folds=some.integers(2, 5),
    seed=some.none() | some.integers(0, 5),
)
def test_folds_are_those_of_scikit_learn(labels, n_folds, seed):
    from sklearn.model_selection import StratifiedKFold

    labels = np.array(labels + [0] * n_folds)
    theirs = StratifiedKFold(n_folds, shuffle=seed is not None, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a class with fewer rows than folds
        expected = list(theirs.split(labels, labels))
    for ours, other in zip(stratified_folds(labels, n_folds, seed), expected, strict=True):
        np.testing.assert_array_equal(ours[0], other[0])
        np.testing.assert_array_equal(ours[1], other[1])


@pytest.mark.parametrize(
    "labels",
    [
        np.array([3, -2, 3, 7], np.int8),
        np.array([2**63 + 5, 2**63, 2**63 + 5, 2**63 + 1], np.uint64),  # beyond whole numbers here
        np.array([0, 2**62, -(2**62)]),  # too far apart to be counted
        np.array([5, 6, 5, 5, 9, 6, 6, 6], np.uint16),
        np.array([4]),
        np.array([True, False, True]),
        np.array(["yes", "no", "yes"], object),
        np.array([0.5, -1.0, 0.5]),
        np.array([], np.int64),
    ],
)
def test_classes_and_indices_are_those_of_sorting(labels):
    classes, found = class_indices(labels)
    expected, inverse = np.unique(labels, return_inverse=True)
    np.testing.assert_array_equal(classes, expected, strict=True)
    np.testing.assert_array_equal(found, inverse)
    assert found.dtype == np.int32


@pytest.mark.parametrize("infinite", [np.inf, -np.inf])
def test_one_infinite_label_is_refused(infinite):
    with pytest.raises(ValueError, match=r"Input y contains infinity or a value too large"):
        check_labels(np.array([0.0, infinite, 1.0]), 3)


def test_text_and_numbers_are_no_labels_together():
    for mixed in (["a", 1], [2.5, "b", "b"]):
        with pytest.raises(TypeError, match="y mixes text and numbers as labels"):
            check_labels(np.array(mixed, dtype=object), len(mixed))
