"""Coordinator: what it refuses, what it charges, what it marks as not private."""

import logging

import numpy as np
import pytest

from steadytree.data.schema import Schema
from steadytree.federated.coordinator import Coordinator
from steadytree.federated.messages import Answer
from steadytree.federated.transport import InMemory
from steadytree.privacy.ledger import BudgetError
from steadytree.privacy.mechanisms import NOT_PRIVATE
from steadytree.privacy.private_tree import PrivateTreeClassifier
from tests.federated import hospitals
from tests.federated.hospitals import NAMES, gateway_of, make_holder, with_terms
from tests.federated.studies import Faulty, make_plan, run_study
from tests.federated.test_holder import SCHEMA, ask, holders


def test_nobody_chooses_the_seed_of_real_holders(tmp_path):
    pytest.importorskip("opendp")
    several = holders(tmp_path, 1.0, 2, seed=None)
    with pytest.raises(ValueError, match="or to none of them"):
        Coordinator(several, SCHEMA, 1.0, "secure_sum", testing_seed=0).fit()
    assert [holder.ledger.spent for holder in several] == [0.0, 0.0]


def test_one_seeded_holder_marks_the_tree_of_all(tmp_path):
    pytest.importorskip("opendp")
    (tmp_path / "real").mkdir()
    mixed = [holders(tmp_path, 1.0, 1)[0], holders(tmp_path / "real", 1.0, 2, seed=None)[1]]
    assert Coordinator(mixed, SCHEMA, 1.0, n_bins=4).fit().tree_.note == NOT_PRIVATE
    real = holders(tmp_path / "real", 1.0, 1, seed=None)
    assert Coordinator(real, SCHEMA, 1.0, n_bins=4).fit().tree_.note == ""


def test_a_holder_that_does_not_say_so_is_not_private(tmp_path):
    pytest.importorskip("opendp")

    class Silent:
        name = "silent"
        inner = holders(tmp_path, 1.0, 1, seed=None)[0]

        def answer(self, request):
            return self.inner.answer(request)

    assert not Coordinator([Silent()], SCHEMA, 1.0, n_bins=4).fit().privacy_.private


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


@pytest.fixture
def real_plan(tmp_path):
    pytest.importorskip("opendp")
    names = list(NAMES[:2])
    few = {"holders": names, "minimum": 1, "testing_seed": None}
    return make_plan(tmp_path, **few, method="vote")


def test_a_seeded_holder_that_was_silent_at_the_handshake_marks_the_model(tmp_path, real_plan):
    def silent_at_first(name, asked, reply):
        return None if name == "south" and b'"hello"' in asked else reply

    with gateway_of(tmp_path, "north", seed=None) as one, gateway_of(tmp_path, "south") as two:
        study = run_study(real_plan, Faulty([one, two], silent_at_first))
    assert study.missing == ()
    assert not study.privacy.private


@pytest.mark.parametrize("lost", [True, False])
def test_answers_that_were_sampled_with_a_seed_stay_marked(tmp_path, real_plan, lost):
    for seed in (5, None):  # the second time every answer comes from the store or checkpoint
        with (
            gateway_of(tmp_path, "north", seed=seed) as one,
            gateway_of(tmp_path, "south", seed=seed) as two,
        ):
            study = run_study(real_plan, InMemory([one, two]))
            assert not study.privacy.private
        if lost:
            real_plan.checkpoint.unlink()


def test_private_answers_leave_the_model_private(tmp_path, real_plan):
    for _ in range(2):  # resumed too
        with (
            gateway_of(tmp_path, "north", seed=None) as one,
            gateway_of(tmp_path, "south", seed=None) as two,
        ):
            assert run_study(real_plan, InMemory([one, two])).privacy.private


def test_a_seed_of_the_coordinator_marks_the_model(tmp_path):
    pytest.importorskip("opendp")
    one = make_holder(tmp_path, seed=None)
    fitted = Coordinator([one], hospitals.SCHEMA, 1.0, n_bins=4, testing_seed=0).fit()
    assert not fitted.privacy_.private


def test_a_study_of_signed_messages_ends_in_the_same_tree(tmp_path, keys):
    from steadytree.federated.signed_files import SignedMessages, message_opener

    plan = make_plan(tmp_path, holders=["north"], method="vote")
    (tmp_path / "twin").mkdir()
    with gateway_of(tmp_path / "twin") as one:
        plain = run_study(plan, InMemory([one]))
    plan.checkpoint.unlink()
    with gateway_of(tmp_path) as one:
        opener = message_opener(keys / "north" / "coordinator.sign.pub", "north")
        strict = InMemory([with_terms(one, open_message=opener)])
        with pytest.raises(ValueError, match="not signed"):
            run_study(plan, strict)
        signed = run_study(plan, SignedMessages(strict, keys / "coordinator" / "sign.key"))
    assert signed.tree == plain.tree


def test_writing_a_seeded_tree_is_logged(tmp_path, caplog):
    with gateway_of(tmp_path) as one:
        run_study(make_plan(tmp_path, holders=["north"]), InMemory([one]))
    assert "NOT PRIVATE" in caplog.text


def test_secure_noise_makes_a_private_model(tmp_path):
    pytest.importorskip("opendp")
    several = holders(tmp_path, 4.0, 2, seed=None)
    fitted = Coordinator(several, SCHEMA, 4.0, n_bins=4).fit()
    assert fitted.privacy_.private
    assert "epsilon 4" in fitted.privacy_.guarantee


def test_a_holder_with_less_left_stops_the_run(tmp_path):
    several = holders(tmp_path, 1.0, 3)
    several[2].ledger.spend(0.5, "earlier tree")
    with pytest.raises(BudgetError, match="is left"):
        Coordinator(several, SCHEMA, 1.0, n_bins=4, testing_seed=0).fit()
    assert several[2].ledger.spent <= 1.0


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
            counts = np.ones(len(SCHEMA.classes), int)
            kept = self.numbers if "block" in request.kind else counts
            return Answer("liar", request.session, request.round, request.kind, kept)

    for numbers in ([0, -1], [0, 0, 0, -1, -1, -1, -1], [999, -1, -1]):
        with pytest.raises(ValueError, match=r"tree|deeper"):
            Coordinator([Rows(np.array(numbers))], SCHEMA, 1.0, n_bins=4).fit()


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
