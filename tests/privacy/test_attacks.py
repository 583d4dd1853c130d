"""Ways to learn more, or to spend in vain, that were tried against private learning."""

import logging

import numpy as np
import pytest

from steadytree.data.schema import Schema
from steadytree.federated.coordinator import Coordinator
from steadytree.federated.holder import Holder, SecureSum
from steadytree.federated.messages import Answer, RefusedError, Request
from steadytree.privacy.evaluation import _exact_counts, private_accuracy
from steadytree.privacy.ledger import BudgetError, Ledger
from steadytree.privacy.mechanisms import SMALLEST_PART, release_counts, score_slack, select
from steadytree.privacy.noise import NOT_PRIVATE, SeededNoise
from steadytree.privacy.private_tree import PrivateTreeClassifier
from steadytree.privacy.tree_mechanism import from_numbers
from tests.federated.test_holder import DIGEST, SCHEMA, ask, frame, holders

METHODS = ["gibbs", "greedy", "topdown"]


# ---- requests that would stop a holder ----
def chain(length):
    return (0, -1) * length + (-1,)


def test_a_tree_as_deep_as_a_chain_is_refused_before_it_is_walked(tmp_path):
    one = holders(tmp_path, 1.0, 1)[0]
    assert from_numbers(chain(64), 1)
    for kind in ("leaf counts", "choice", "block"):
        with pytest.raises(RefusedError, match="at most 64 levels"):
            one.answer(ask(kind, trees=(chain(50_000),), depth=1))
    assert one.ledger.spent == 0


def test_blocks_of_too_many_questions_are_refused(tmp_path):
    one = holders(tmp_path, 1.0, 1)[0]
    with pytest.raises(RefusedError, match="may have at most"):
        one.answer(ask("last block", n_bins=1_000, depth=3))
    assert one.ledger.spent == 0


# ---- refusals ----
class Untouchable:
    """Rows that nobody may look at."""

    def __getattribute__(self, name):
        raise AssertionError("a refusal looked at rows")


@pytest.mark.parametrize(
    "request_",
    [
        Request("run", 0, "rows", 0.5, "other schema"),
        ask(trees=((0, -1),)),
        ask("block"),
        ask("side counts", questions=((999,),)),
        ask(epsilon=2.0),  # beyond the budget
    ],
)
def test_refusals_do_not_look_at_rows(tmp_path, request_):
    """So that neither their words nor their time can tell anything of them."""
    one = holders(tmp_path, 1.0, 1)[0]
    one._values = one._labels = Untouchable()
    with pytest.raises((RefusedError, BudgetError)):
        one.answer(request_)


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


@pytest.mark.parametrize("method", ["delegate", "noisy_counts", "secure_sum"])
def test_a_run_that_one_holder_cannot_pay_costs_nobody_anything(tmp_path, method):
    several = holders(tmp_path, 1.0, 3)
    several[2].ledger.spend(0.5, "earlier")
    with pytest.raises(BudgetError, match="is left"):
        Coordinator(several, SCHEMA, 1.0, method, n_bins=4, testing_seed=0).fit()
    assert [holder.ledger.spent for holder in several] == [0.0, 0.0, 0.5]


REFUSALS = {
    "no schema": lambda: PrivateTreeClassifier(testing_seed=0).fit([[1.0]], [0]),
    "bounds": lambda: Schema({"a": (3, 1)}, classes=[0, 1]),
    "epsilon": lambda: PrivateTreeClassifier(0, SCHEMA, testing_seed=0).fit([[1.0]], [0]),
    "method": lambda: PrivateTreeClassifier(1.0, SCHEMA, "x", testing_seed=0).fit([[1.0]], [0]),
    "shape": lambda: Answer("h", "run", 0, "rows", np.array([[1]])),
    "huge": lambda: Answer("h", "run", 0, "rows", np.array([2**50])),
    "not a number": lambda: Answer("h", "run", 0, "rows", np.array([np.nan])),
    "wrong round": lambda: Answer("h", "run", 0, "rows", np.array([1])).check(ask(round=1)),
    "kind": lambda: ask("everything"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_every_refusal_is_logged(name, caplog):
    with caplog.at_level(logging.WARNING), pytest.raises((TypeError, ValueError)):
        REFUSALS[name]()
    assert "refused" in caplog.text


def test_a_holder_without_rows_is_refused_and_that_is_logged(tmp_path, caplog):
    X, y = frame(5, 0)
    with caplog.at_level(logging.WARNING), pytest.raises(ValueError, match="needs rows"):
        Holder("h", SCHEMA, X[:0], y[:0], Ledger(tmp_path / "l", 1.0), testing_seed=0)
    assert "refused" in caplog.text


# ---- paying in vain ----
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("epsilon", [1e-6, 1e-5, 1e-3])
def test_a_budget_too_small_to_be_divided_is_refused_before_it_is_spent(tmp_path, method, epsilon):
    ledger = Ledger(tmp_path / "l", 1.0)
    model = PrivateTreeClassifier(
        epsilon, SCHEMA, method, max_depth=16, ledger=ledger, testing_seed=0
    )
    if model._smallest_part() < SMALLEST_PART:
        with pytest.raises(ValueError, match="to be divided as requested"):
            model.fit(*frame(50, 0))
        assert ledger.spent == 0
    else:  # then no part of it fails later on, however deep the tree becomes
        model.set_params(max_depth=6 if method == "topdown" else 4).fit(*frame(50, 0))
        assert ledger.spent == epsilon


def test_small_parts_of_decaying_budgets_can_be_spent():
    """Depth 16 halves a budget sixteen times: 0.01 used to end in an error, half way and paid."""
    model = PrivateTreeClassifier(
        0.01, SCHEMA, "topdown", max_depth=16, error=0.0, max_splits=500, testing_seed=0
    )
    assert model.fit(*frame(300, 0)).tree_.depth >= 0


@pytest.mark.parametrize("epsilon", [np.float32(0.5), np.int64(1), 1])
def test_any_number_is_an_epsilon(tmp_path, epsilon):
    ledger = Ledger(tmp_path / "l", 2.0)
    PrivateTreeClassifier(epsilon, SCHEMA, ledger=ledger, testing_seed=0).fit(*frame(50, 0))
    assert ledger.spent == float(epsilon)


def test_parts_below_the_bound_on_rounding_are_refused():
    for draw in (
        lambda: release_counts(np.array([1]), SMALLEST_PART / 2, SeededNoise(0)),
        lambda: select(np.zeros(2), SMALLEST_PART / 2, 2.0, SeededNoise(0)),
    ):
        with pytest.raises(ValueError, match="a part of epsilon"):
            draw()


def test_rounding_of_priors_stays_within_what_is_charged():
    """Scores are added to log-priors as large as the noise: what that loses at the least part."""
    scale, prior = 2.0 / SMALLEST_PART, -12.0
    lost = np.spacing(abs(scale * prior)) / 2
    assert 4 * lost / 2.0 <= score_slack(2) / 2  # four scores, in sensitivities; half the charge


# ---- secure sums ----
def test_nobody_is_summed_when_one_holder_cannot_pay(tmp_path):
    several = holders(tmp_path, 1.0, 3)
    several[2].ledger.spend(0.5, "earlier")
    counted = []
    for holder in several:
        holder._exact_counts = lambda *_: counted.append(1)
    with pytest.raises(BudgetError):
        SecureSum(several, "run", DIGEST, 1.0, testing_seed=0)
    assert counted == []
    assert [holder.ledger.spent for holder in several] == [1.0, 1.0, 0.5]  # at least what left


def test_a_sum_without_an_absent_holder_is_no_sum(tmp_path):
    """A holder that fails half way ends the run: no sum of fewer goes out under the same noise."""
    from steadytree.data.candidates import Candidates
    from steadytree.privacy.tree_mechanism import OPEN

    several = holders(tmp_path, 1.0, 3)
    sums = SecureSum(several, "run", DIGEST, 1.0, testing_seed=0)
    candidates = Candidates.of(SCHEMA.space, 4)

    def gone(*_):
        raise ConnectionError("gone")

    several[1]._exact_counts = gone
    with pytest.raises(ConnectionError):
        sums.ask(0.6, "rows", OPEN, candidates)
    with pytest.raises(RefusedError, match="spent"):  # what was tried counts as spent
        sums.ask(0.6, "rows", OPEN, candidates)


# ---- evaluation ----
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


def test_one_row_moves_one_cell_of_an_evaluation(fitted):
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
