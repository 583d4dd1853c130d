"""private_accuracy: paid for, noised, and within its interval."""

import numpy as np
import pytest

from steadytree.data.schema import Schema
from steadytree.privacy.evaluation import _exact_counts, private_accuracy
from steadytree.privacy.ledger import BudgetError, Ledger
from steadytree.privacy.mechanisms import NOT_PRIVATE
from steadytree.privacy.private_tree import PrivateTreeClassifier
from tests.federated.test_holder import SCHEMA, Untouchable, frame


def test_a_spent_budget_is_refused_before_rows_are_looked_at(tmp_path, fitted):
    ledger = Ledger(tmp_path / "l", 1.0)
    ledger.spend(0.5, "earlier")
    with pytest.raises(BudgetError, match=r"0\.5 of 1\.0 is left"):
        PrivateTreeClassifier(0.6, SCHEMA, ledger=ledger, testing_seed=0).fit(
            Untouchable(), Untouchable()
        )
    with pytest.raises(BudgetError, match=r"0\.5 of 1\.0 is left"):
        private_accuracy(fitted, Untouchable(), Untouchable(), 0.6, SCHEMA, ledger, testing_seed=0)
    assert ledger.spent == 0.5


@pytest.fixture(scope="module")
def fitted():
    return PrivateTreeClassifier(4.0, SCHEMA, testing_seed=0).fit(*frame(500, 0))


def test_an_evaluation_is_paid_for_before_it_is_made(tmp_path, fitted):
    ledger = Ledger(tmp_path / "l", 1.0)
    found = private_accuracy(fitted, *frame(400, 1), 0.6, SCHEMA, ledger, testing_seed=0)
    assert ledger.left == 0.4
    assert (ledger.entries[0].what, ledger.entries[0].mechanism) == ("accuracy", NOT_PRIVATE)
    low, high = found.interval
    assert low <= found.accuracy <= high
    assert low < high
    assert found.measurement().value == found.accuracy
    with pytest.raises(BudgetError, match=r"0\.4 of 1\.0 is left"):
        private_accuracy(fitted, *frame(400, 1), 0.6, SCHEMA, ledger, testing_seed=0)


def test_intervals_of_evaluations_hold_the_true_share(fitted):
    """Of 200 samples of rows, at least 95 % of the intervals hold what all rows together give."""
    X, y = frame(20_000, 2)
    y = np.where(np.random.default_rng(1).random(len(y)) < 0.2, "no", y)
    truth = (fitted.predict(X) == y).mean()
    rng, held = np.random.default_rng(0), 0
    for seed in range(200):
        rows = rng.integers(0, len(y), 150)
        found = private_accuracy(fitted, X.iloc[rows], y[rows], 0.5, SCHEMA, testing_seed=seed)
        held += found.interval[0] <= truth <= found.interval[1]
    assert held >= 190


def test_one_row_moves_one_counter_of_an_evaluation(fitted):
    X, y = frame(60, 3)
    tree, values, labels = fitted.tree_, SCHEMA.encode(X), SCHEMA.encode_labels(y)
    whole = _exact_counts(tree, SCHEMA, values, labels)
    assert whole.sum() == 60
    for row in range(60):
        kept = np.arange(60) != row
        fewer = _exact_counts(tree, SCHEMA, values[kept], labels[kept])
        assert np.abs(whole - fewer).sum() == 1


@pytest.mark.parametrize("value", ["text", None, [1], float("inf"), 10**400])
def test_no_value_stops_an_evaluation(fitted, value):
    rows = [[value, 1.0, "x"], [1.0, 1.0, value]]
    found = private_accuracy(fitted, rows, ["yes", value], 1.0, SCHEMA, testing_seed=0)
    assert found.counts.shape == (2, 2)


def test_an_evaluation_on_nothing_is_an_answer_too(fitted):
    X, y = frame(5, 0)
    found = private_accuracy(fitted, X[:0], y[:0], 1.0, SCHEMA, testing_seed=0)
    assert 0 <= found.interval[0] <= found.accuracy <= found.interval[1] <= 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"epsilon": 0}, "epsilon must be"),
        ({"schema": None}, "schema must be"),
        ({"level": 1.0}, "level must"),
        ({"ledger": "file"}, "ledger must be"),
        ({"schema": Schema({"a": (0, 8)}, classes=["no", "yes"])}, "other columns"),
        (
            {"schema": Schema({"a": (0, 8), "b": (0, 8)}, {"c": ["x", "y"]}, ["no", "yes"])},
            "other categories",
        ),
    ],
)
def test_wrong_evaluations_are_refused(fitted, wrong, message):
    arguments = {"epsilon": 1.0, "schema": SCHEMA, "testing_seed": 0, **wrong}
    with pytest.raises((TypeError, ValueError), match=message):
        private_accuracy(fitted, *frame(20, 0), **arguments)


def test_an_evaluation_protects_persons(tmp_path, fitted):
    """Three rows a person at 1.5 have the noise of rows at 0.5, and intervals for it."""
    X, y = frame(90, 1)
    ledger, whose = Ledger(tmp_path / "l", 2.0), np.arange(90) % 20
    how = {"persons": whose, "rows_per_person": 3, "testing_seed": 0}
    found = private_accuracy(fitted, X, y, 1.5, SCHEMA, ledger, **how)
    twin = private_accuracy(fitted, X[:60], y[:60], 0.5, SCHEMA, testing_seed=0)
    assert found.counts.tolist() == twin.counts.tolist()
    assert found.interval == twin.interval
    assert ledger.spent == 1.5
    assert found.privacy.relation == "add or remove one person with at most 3 rows"
