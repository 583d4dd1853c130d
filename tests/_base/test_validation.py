"""What parameters may be: numbers within ends, words of a list, objects of a class."""

import math
import re

import numpy as np
import pytest

import steadytree as st
from steadytree._base.validation import Boolean, Instance, Integer, OneOf, Real, validate

X = np.arange(40.0).reshape(20, 2)
Y = np.arange(20) % 2
SCHEMA = st.Schema(bounds={"x0": (0, 40), "x1": (0, 40)}, classes=[0, 1])
STABLE = st.StableTreeClassifier(max_depth=2, epsilon=0.1, random_state=0)
LEARNERS = [
    (st.StableTreeClassifier, {}, ("max_depth", "n_thresholds", "min_samples_leaf", "lookahead")),
    (st.StableTreeClassifier, {}, ("epsilon",)),
    (st.ParetoTreeClassifier, {}, ("n_trees", "max_score_loss", "validation_fraction")),
    (st.RobustTreeClassifier, {}, ("max_depth", "n_thresholds", "n_jobs", "max_nodes")),
    (st.RobustTreeClassifier, {}, ("regularisation", "time_limit")),
    (
        st.PrivateTreeClassifier,
        {"epsilon": 1.0, "schema": SCHEMA},
        ("epsilon", "max_depth", "max_splits", "public_rows", "leaf_share", "error"),
    ),
]
FUNCTIONS = {
    "removed": lambda: st.average_sensitivity(STABLE, X, Y, removed=True),
    "repeats": lambda: st.average_sensitivity(STABLE, X, Y, repeats=True),
    "seeds": lambda: st.average_sensitivity(STABLE, X, Y, seeds=True),
    "n_trees": lambda: st.distributional_sensitivity(STABLE, X, Y, n_trees=True),
    "n_rows": lambda: st.distributional_sensitivity(STABLE, X, Y, n_rows=True, n_trees=2),
    "n_folds": lambda: st.stability_curve(STABLE, X, Y, n_folds=True),
    "n_seeds": lambda: st.stability_curve(STABLE, X, Y, n_seeds=True),
    "repeats ": lambda: st.refits(STABLE, X, Y, repeats=True),
    "repeats  ": lambda: st.shift_accuracy(STABLE.fit(X, Y), X, Y, 0.9, repeats=True),
    "n_bins": lambda: st.calibration(STABLE.fit(X, Y), X, Y, n_bins=True),
    "n_folds ": lambda: st.compare(["cart"], X, Y, n_folds=True),
    "max_depth": lambda: st.compare(["cart"], X, Y, n_folds=2, max_depth=True),
    "n_rows ": lambda: st.simulate(SCHEMA, True, 1.0),
    "repeats   ": lambda: st.simulate(SCHEMA, 20, 1.0, repeats=True),
    "runs": lambda: st.audit_privacy(len, [0], [1], 1.0, runs=True),
}


@pytest.mark.parametrize(
    ("learner", "needed", "name"),
    [(learner, needed, name) for learner, needed, names in LEARNERS for name in names],
)
def test_no_learner_takes_true_for_one(learner, needed, name):
    with pytest.raises(TypeError, match=rf"^{name} must be"):
        learner(**{**needed, name: True}).fit(X, Y)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_function_takes_true_for_one(name):
    with pytest.raises(TypeError, match=rf"^{name.strip()} must be"):
        FUNCTIONS[name]()


@pytest.mark.parametrize("value", [1, 5, np.int64(3), np.uint8(2)])
def test_integers_of_numpy_are_integers(value):
    assert type(Integer(1, 5).check(value, "n")) is int


@pytest.mark.parametrize("value", [0, 6, -(10**30)])
def test_the_message_says_what_is_allowed(value):
    with pytest.raises(ValueError, match=rf"^n must be 'cv' or a whole .* 5, got {value}\.$"):
        Integer(1, 5, also=("cv",)).check(value, "n")


@pytest.mark.parametrize("value", ["1", None, 1.0, np.float64(1), np.True_, [1]])
def test_other_things_are_no_integers(value):
    with pytest.raises(TypeError, match=r"^n must be a whole number of at least 1, got"):
        Integer(1).check(value, "n")


def test_numbers():
    assert Real(0, 1).check(np.float32(0.5), "share") == 0.5
    assert Real(0).check(3, "seconds") == 3.0
    with pytest.raises(TypeError, match=r"^share must be a number from 0 to 1, got '1'"):
        Real(0, 1).check("1", "share")
    for wrong in (np.nan, -0.1, 1.1):
        with pytest.raises(ValueError, match=r"^share must be a number from 0 to 1, got"):
            Real(0, 1).check(wrong, "share")


@pytest.mark.parametrize(
    ("allowed", "right", "wrong", "message"),
    [
        (Real(above=0), (1e-9, math.inf), (0, -1, math.nan), "a number above 0"),
        (Real(above=0, below=0.5), (0.1,), (0, 0.5), "a number above 0 and below 0.5"),
        (Real(least=0, below=1), (0, 0.999), (1, -0.1), "a number of at least 0 and below 1"),
        (Real(0, below=math.inf), (0, 1e300), (math.inf, -1), "a finite number of at least 0"),
        (Real(0, 1, also=("1se",)), ("1se", 1), (2, "se"), "'1se' or a number from 0 to 1"),
        (Integer(2, also=(None,)), (None, 2), (1,), "None or a whole number of at least 2"),
        (OneOf("up", "down"), ("up",), ("left", 1, None, ["up"]), r"one of \('up', 'down'\)"),
        (Boolean(), (True, np.False_), (1, "True", None), "True or False"),
    ],
)
def test_values_and_messages(allowed, right, wrong, message):
    for value in right:
        assert allowed.check(value, "p") == value
    for value in wrong:
        with pytest.raises(
            ValueError, match=rf"^p must be {message}, got {re.escape(repr(value))}\.$"
        ):
            allowed.check(value, "p")


def test_objects_of_a_class():
    mapping = Instance(dict, "a dict of names")
    assert mapping.check(None, "p") is None
    with pytest.raises(TypeError, match=r"^p must be a dict of names or None, got list\.$"):
        mapping.check([], "p")
    with pytest.raises(TypeError, match=r"^p must be a dict of names, got NoneType\.$"):
        Instance(dict, "a dict of names", optional=False).check(None, "p")


def test_a_table_is_checked_in_its_order():
    class Estimator:
        a, b = 0, "wrong"

    with pytest.raises(ValueError, match=r"^b must be"):
        validate(Estimator(), {"a": Integer(0), "b": OneOf("right")})
    with pytest.raises(ValueError, match=r"^a must be"):
        validate(Estimator(), {"a": Integer(1), "b": OneOf("right")})


def test_messages_are_whole_sentences():
    assert Integer(1, 8).check(3, "max_depth") == 3
    assert Real(0, 1).check(0.5, "error") == 0.5
    with pytest.raises(
        TypeError, match=r"^max_depth must be a whole number from 1 to 8, got True\.$"
    ):
        Integer(1, 8).check(True, "max_depth")
    with pytest.raises(ValueError, match=r"^error must be a number from 0 to 1, got nan\.$"):
        Real(0, 1).check(math.nan, "error")
    with pytest.raises(ValueError, match=r"^criterion must be one of \('count', 'gini'\), got 'en"):
        OneOf("count", "gini").check("entropy", "criterion")
