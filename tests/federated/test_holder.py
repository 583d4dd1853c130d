import logging

import numpy as np
import pandas as pd
import pytest

from steadytree.data.candidates import Candidates
from steadytree.data.schema import Schema
from steadytree.federated.coordinator import Coordinator
from steadytree.federated.holder import Holder, SecureSum, schema_digest
from steadytree.federated.messages import Answer, RefusedError, Request
from steadytree.privacy.ledger import BudgetError, Ledger
from steadytree.privacy.tree_mechanism import OPEN

SCHEMA = Schema({"a": (0, 8), "b": (0, 8)}, {"c": ["x", "y", "z"]}, classes=["no", "yes"])
METHODS = ["delegate", "duel", "vote", "local_rnm", "noisy_counts", "secure_sum"]
DIGEST = schema_digest(SCHEMA)


def frame(n_rows, seed):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "a": rng.uniform(0, 8, n_rows),
            "b": rng.uniform(0, 8, n_rows),
            "c": rng.choice(["x", "y", "z"], n_rows),
        }
    )
    return X, np.where((X["a"] > 4) ^ (X["c"] == "x"), "yes", "no")


def holders(folder, budget, k=4, n_rows=400, delta=0.0, seed=0):
    return [
        Holder(
            f"h{j}",
            SCHEMA,
            *frame(n_rows, j),
            Ledger(folder / f"{j}.ledger", budget, delta),
            testing_seed=None if seed is None else 100 * seed + j,
        )
        for j in range(k)
    ]


@pytest.fixture
def one(tmp_path):
    return holders(tmp_path, 10.0, 1)[0]


def ask(kind="rows", round=0, epsilon=0.5, **more):
    return Request("run", round, kind, epsilon, DIGEST, **{"n_bins": 4, **more})


@pytest.mark.parametrize("method", METHODS)
def test_each_method_learns_and_spends_what_it_said(tmp_path, method):
    several = holders(tmp_path, 8.0)
    fitted = Coordinator(several, SCHEMA, 8.0, method, n_bins=4, testing_seed=0).fit()
    X, y = frame(500, 99)
    assert (fitted.predict(X) == y).mean() > 0.9
    np.testing.assert_allclose(fitted.predict_proba(X).sum(axis=1), 1.0)
    for holder in several:
        assert 0 < holder.ledger.spent <= 8.0
    assert max(holder.ledger.spent for holder in several) == pytest.approx(8.0)
    assert not fitted.privacy_.private
    assert fitted.privacy_.relation == "add or remove one row of one holder"


@pytest.mark.parametrize(("k", "epsilon"), [(1, 1.0), (2, 0.1), (3, 0.7), (4, 0.3)])
@pytest.mark.parametrize("method", METHODS)
def test_a_budget_of_just_epsilon_is_enough_for_any_number_of_holders(tmp_path, method, k, epsilon):
    several = holders(tmp_path, epsilon, k)
    Coordinator(several, SCHEMA, epsilon, method, n_bins=3, testing_seed=1).fit()
    assert all(holder.ledger.spent <= epsilon for holder in several)


def test_secure_noise_makes_a_private_model(tmp_path):
    pytest.importorskip("opendp")
    several = holders(tmp_path, 4.0, 2, seed=None)
    fitted = Coordinator(several, SCHEMA, 4.0, n_bins=4).fit()
    assert fitted.privacy_.private
    assert "epsilon 4" in fitted.privacy_.guarantee


def test_zcdp_sums_cost_delta(tmp_path):
    several = holders(tmp_path, 4.0, 2, delta=1e-6)
    fitted = Coordinator(several, SCHEMA, 4.0, "secure_sum", 1e-6, testing_seed=0).fit()
    assert fitted.privacy_.delta == 1e-6
    assert [holder.ledger.spent_delta for holder in several] == [1e-6, 1e-6]


def test_a_holder_with_less_left_stops_the_run(tmp_path):
    several = holders(tmp_path, 1.0, 3)
    several[2].ledger.spend(0.5, "earlier tree")
    with pytest.raises(BudgetError, match="is left"):
        Coordinator(several, SCHEMA, 1.0, n_bins=4, testing_seed=0).fit()
    assert several[2].ledger.spent <= 1.0


# ---- one holder ----
def test_it_spends_before_it_answers(one, monkeypatch):
    def broken(*_):
        raise RuntimeError("died")

    monkeypatch.setattr(one, "_numbers", broken)
    with pytest.raises(RuntimeError):
        one.answer(ask())
    assert one.ledger.spent == 0.5


@pytest.mark.parametrize(
    ("request_", "size"),
    [
        (ask("rows"), 1),
        (ask("choice", trees=((0, -1, -1),)), 2),
        (ask("leaf counts", trees=((0, -1, -1), (-1,))), 6),
        (ask("side counts", trees=((0, -1, -1),), questions=((1, 2), (3,))), 12),
    ],
)
def test_answers_have_the_size_that_was_asked_for(one, request_, size):
    answer = one.answer(request_)
    assert len(answer.check(request_, size)) == size
    assert answer.numbers.dtype == np.int64
    with pytest.raises(ValueError, match="read-only"):
        answer.numbers[0] = 1
    with pytest.raises(RefusedError, match="were asked for"):
        answer.check(request_, size + 1)


class Recorder:
    """Notes how often a row may be counted, by the scale of the noise."""

    private = False

    def laplace(self, values, scale):
        self.scale = scale
        return values


@pytest.mark.parametrize(
    ("request_", "times"),
    [
        (ask("rows"), 1),
        (ask("leaf counts"), 1),
        (ask("leaf counts", trees=((-1,), (0, -1, -1), (1, -1, -1))), 3),
        (ask("side counts", trees=((0, -1, -1),), questions=((1, 2, 3), (4,))), 3),
    ],
)
def test_noise_grows_with_how_often_a_row_is_counted(one, request_, times):
    one._noise = Recorder()
    exact = one.answer(request_).numbers
    assert one._noise.scale == pytest.approx(times / 0.5)
    # by brute force: without its last row, the exact answer moves by `times` at most
    fewer = Holder("h", SCHEMA, *(part[:-1] for part in frame(400, 0)), one.ledger, testing_seed=0)
    fewer._noise = Recorder()
    other = Request(
        "again",
        0,
        *[
            getattr(request_, n)
            for n in ("kind", "epsilon", "schema", "n_bins", "trees", "depth", "questions")
        ],
    )
    assert np.abs(exact - fewer.answer(other).numbers).sum() <= times


def test_repeated_and_stale_rounds_are_refused_even_after_a_restart(tmp_path, caplog):
    holder = holders(tmp_path, 10.0, 1)[0]
    holder.answer(ask(round=3))
    for stale in (3, 2):
        with caplog.at_level(logging.WARNING), pytest.raises(RefusedError, match="stale"):
            holder.answer(ask(round=stale))
    assert "refused" in caplog.text
    restarted = holders(tmp_path, 10.0, 1)[0]
    with pytest.raises(BudgetError, match="answered before"):
        restarted.answer(ask(round=3))
    assert restarted.ledger.spent == 0.5


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (Request("run", 0, "rows", 0.5, "other"), "another schema"),
        (ask(trees=((0, -1),)), "one tree"),
        (ask(trees=((999, -1, -1),)), "one tree"),
        (ask("block"), "depth"),
        (ask("side counts"), "for each of its leaves"),
        (ask("side counts", questions=((999,),)), "indices in the list"),
        (ask("side counts", questions=((),)), "indices in the list"),
        ("rows, please", "a Request and nothing else"),
    ],
)
def test_a_holder_refuses_what_makes_no_sense_and_spends_nothing(one, request_, message):
    with pytest.raises(RefusedError, match=message):
        one.answer(request_)
    assert one.ledger.spent == 0


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"epsilon": float("nan")}, "epsilon must be"),
        ({"epsilon": 0.0}, "epsilon must be"),
        ({"epsilon": float("inf")}, "epsilon must be"),
        ({"round": -1}, "round must be"),
        ({"round": 1.5}, "round must be"),
        ({"kind": "everything"}, "kind must be"),
        ({"depth": 9}, "depth must be"),
        ({"n_bins": 10**6}, "n_bins must be"),
        ({"trees": ()}, "trees must be"),
        ({"trees": ((-1,),) * 65}, "trees must be"),
    ],
)
def test_requests_are_checked_when_made(wrong, message):
    with pytest.raises(RefusedError, match=message):
        ask(**wrong)


@pytest.mark.parametrize("numbers", [[1.5], [np.nan], [[1]], [2**41], [-(2**41)], ["a"], [None]])
def test_answers_are_checked_when_made(numbers):
    with pytest.raises(RefusedError, match="an answer"):
        Answer("h", "run", 0, "rows", np.array(numbers))


def test_an_answer_to_another_request_is_refused():
    answer = Answer("h", "run", 0, "rows", np.array([1]))
    with pytest.raises(RefusedError, match="another request"):
        answer.check(ask(round=1))


class Liar:
    """Answers every request with the same numbers."""

    name = "liar"

    def __init__(self, numbers):
        self.numbers = numbers

    def answer(self, request):
        return Answer("liar", request.session, request.round, request.kind, self.numbers)


def test_a_coordinator_refuses_blocks_that_are_no_trees(tmp_path):
    class Rows(Liar):
        def answer(self, request):
            kept = self.numbers if request.kind == "block" else np.array([1])
            return Answer("liar", request.session, request.round, request.kind, kept)

    for numbers in ([0, -1], [0, 0, 0, -1, -1, -1, -1], [999, -1, -1]):
        with pytest.raises(ValueError, match=r"tree|deeper"):
            Coordinator([Rows(np.array(numbers))], SCHEMA, 1.0, n_bins=4).fit()


def test_a_secure_sum_ends_with_its_budget(tmp_path):
    several = holders(tmp_path, 1.0, 2)
    sums = SecureSum(several, "run", DIGEST, 1.0, testing_seed=0)
    candidates = Candidates.of(SCHEMA.space, 4)
    sums.ask(0.6, "rows", OPEN, candidates)
    with pytest.raises(RefusedError, match="spent"):
        sums.ask(0.6, "rows", OPEN, candidates)
    assert [holder.ledger.left for holder in several] == [0.0, 0.0]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"method": "magic"}, "method must be one of"),
        ({"delta": 1e-6}, "only secure_sum"),
        ({"epsilon": 0}, "epsilon must be"),
    ],
)
def test_a_coordinator_checks_its_parameters(tmp_path, wrong, message):
    with pytest.raises(ValueError, match=message):
        Coordinator(holders(tmp_path, 1.0, 1), SCHEMA, **wrong)
    with pytest.raises(ValueError, match="names that differ"):
        Coordinator([], SCHEMA)


def test_a_holder_needs_rows_a_ledger_and_a_name(tmp_path):
    ledger = Ledger(tmp_path / "l", 1.0)
    X, y = frame(5, 0)
    with pytest.raises(ValueError, match="has none and should not take part"):
        Holder("h", SCHEMA, X[:0], y[:0], ledger, testing_seed=0)
    with pytest.raises(TypeError, match="ledger must be"):
        Holder("h", SCHEMA, X, y, None, testing_seed=0)
    with pytest.raises(ValueError, match="name must be"):
        Holder("a b", SCHEMA, X, y, ledger, testing_seed=0)
    with pytest.raises(TypeError, match="schema must be"):
        Holder("h", None, X, y, ledger, testing_seed=0)
