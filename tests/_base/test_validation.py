"""True and False are no numbers, whoever asks for one."""

import numpy as np
import pytest

import steadytree as st
from steadytree._base.validation import check_number, check_whole_number

X = np.arange(40.0).reshape(20, 2)
Y = np.arange(20) % 2
SCHEMA = st.Schema(bounds={"x0": (0, 40), "x1": (0, 40)}, classes=[0, 1])
STABLE = st.StableTreeClassifier(max_depth=2, epsilon=0.1, random_state=0)
LEARNERS = [
    (st.StableTreeClassifier, {}, ("max_depth", "n_thresholds", "min_samples_leaf", "lookahead")),
    (st.StableTreeClassifier, {}, ("epsilon", "max_score_loss")),
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
def test_whole_numbers_of_numpy_are_whole_numbers(value):
    assert type(check_whole_number(value, "n", 1, 5)) is int


@pytest.mark.parametrize("value", [0, 6, -(10**30)])
def test_the_message_says_what_is_allowed(value):
    with pytest.raises(ValueError, match=rf"^n must be 'cv' or a whole .* 5, got {value}\.$"):
        check_whole_number(value, "n", 1, 5, also="'cv'")


@pytest.mark.parametrize("value", ["1", None, 1.0, np.float64(1), np.True_, [1]])
def test_other_things_are_no_whole_numbers(value):
    with pytest.raises(TypeError, match=r"^n must be a whole number of at least 1, got"):
        check_whole_number(value, "n", 1)


def test_numbers():
    assert check_number(np.float32(0.5), "share", 0, 1) == 0.5
    assert check_number(3, "seconds", 0) == 3.0
    with pytest.raises(TypeError, match=r"^share must be a number from 0 to 1, got '1'"):
        check_number("1", "share", 0, 1)
    for wrong in (np.nan, -0.1, 1.1):
        with pytest.raises(ValueError, match=r"^share must be a number from 0 to 1, got"):
            check_number(wrong, "share", 0, 1)
