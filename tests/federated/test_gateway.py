"""The holder's gateway: what it answers, what it refuses, and what a crash leaves behind."""

import json
import os
import random
import signal
import stat
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadytree.data.splits import SplitTable
from steadytree.federated import holder as holder_module
from steadytree.federated.answer_store import AnswerStore
from steadytree.federated.framing import LARGEST_REQUEST, Refusal, read, write
from steadytree.federated.gateway import MARGIN, Gateway
from steadytree.federated.messages import RefusedError, read_answer, request_message
from steadytree.privacy.ledger import BudgetError, Ledger
from steadytree.privacy.ledger_lines import mark_path
from steadytree.privacy.sampled_tree import from_numbers
from steadytree.privacy.tree_mechanism import BlockRows, rows_by_leaf
from tests._base.clocks import ToldClock
from tests.federated import hospitals
from tests.federated.hospitals import ask, code_of, gateway_of, message, unix_only, with_terms


def test_an_answer_is_what_the_holder_itself_would_say(tmp_path, gateway):
    (tmp_path / "twin").mkdir()
    twin = hospitals.make_holder(tmp_path / "twin")
    for number, kind in enumerate(["rows", "leaf counts", "choice"]):
        request = ask(kind, number)
        reply = read_answer(read(gateway.reply(request_message(request))), request)
        assert reply.check(request).tolist() == twin.answer(request).numbers.tolist()
    assert gateway.holder.ledger.spent == 1.5


def test_a_repeated_request_gets_the_same_answer_and_costs_nothing(tmp_path):
    with gateway_of(tmp_path, seed=1) as first:
        reply = first.reply(message())
        assert first.reply(message()) == reply
    with gateway_of(tmp_path, seed=2) as restarted:  # other noise, were any drawn
        assert restarted.reply(message()) == reply
        assert restarted.holder.ledger.spent == 0.5


@pytest.mark.parametrize(
    "changed",
    [{"epsilon": 0.25}, {"kind": "leaf counts"}, {"n_bins": 8}, {"trees": ((0, -1, -1),)}],
)
def test_a_changed_request_under_an_old_number_is_refused(gateway, changed):
    gateway.reply(message())
    assert code_of(gateway.reply(message(**changed))) == "CHANGED"
    assert gateway.holder.ledger.spent == 0.5


def test_studies_do_not_share_numbers(gateway):
    one, other = gateway.reply(message()), gateway.reply(message(session="other"))
    assert read(one)["answer"]["session"] != read(other)["answer"]["session"]
    assert gateway.holder.ledger.spent == 1.0


def test_it_refuses_when_the_budget_is_spent_and_says_no_more(gateway):
    gateway.reply(message(epsilon=3.8))
    reply = gateway.reply(message(round=1))
    assert json.loads(reply) == {"version": 2, "ok": False, "code": "BUDGET"}
    assert gateway.holder.ledger.spent == 3.8
    assert not list(gateway._store.folder.glob("study.1.*"))


WRONG = [
    b"",
    b"\xff\xfe",
    b"null",
    b"[" * 100_000,
    b'{"type":"status","version":1}',
    b'{"type":"status","version":3}',
    b'{"type":"status","version":2.0}',
    b'{"type":"status", "version":2}',
    b'{"version":2,"type":"status"}',
    b'{"more":1,"type":"status","version":2}',
    b'{"type":"everything","version":2}',
    b'{"type":"hello","version":2}',
    b'{"epsilon":1.0,"type":"hello","version":2}',
    b'{"epsilon":1.0,"more":1,"study":"s","type":"hello","version":2}',
    b'{"epsilon":-1.0,"study":"s","type":"hello","version":2}',
    b'{"epsilon":NaN,"study":"s","type":"hello","version":2}',
    b'{"epsilon":1.00,"study":"s","type":"hello","version":2}',
    b'{"type":"question","version":2}',
    message().replace(b'"depth":0,', b""),
    message().replace(b'"depth":0', b'"depth":0,"depth":0'),
    message().replace(b"0.5", b"0.50"),
    message().replace(b"0.5", b"5e-1"),
    message().replace(b"0.5", b"1"),
    message().replace(b"study", b"stud\\u0079"),
    message() + b" ",
    message().replace(b'"version":2', b'"version":1'),
    message().replace(b"rows", b"all rows"),
    message().replace(b"0.5", b"NaN"),
    message().replace(b"0.5", b"-1"),
    message().replace(b"0.5", b'"0.5"'),
    message().replace(b"0.5", b"true"),
    message().replace(b"[[-1]]", b"[[-1.0]]"),
    message().replace(b"[[-1]]", b"[[true]]"),
    message().replace(b"[[-1]]", b"[[0,-1]]"),
    message().replace(b"[[-1]]", b"[[-1,-1]]"),
    message().replace(b"[[-1]]", b"[]"),
    message().replace(b"[[-1]]", b"-1"),
    message().replace(b'"study"', b'"../study"'),
    message().replace(b'"round":0', b'"round":-1'),
    message().replace(b'"n_bins":4', b'"n_bins":4,"more":1'),
    message(kind="side counts", questions=((10**6,),)),
]


@pytest.mark.parametrize("wrong", WRONG, ids=range(len(WRONG)))
def test_what_is_no_request_costs_nothing_and_learns_nothing(gateway, wrong):
    assert json.loads(gateway.reply(wrong)) == {"version": 2, "ok": False, "code": "MALFORMED"}
    assert gateway.holder.ledger.spent == 0


@given(st.binary(max_size=300))
def test_any_bytes_get_a_fixed_code(tmp_path_factory, noise):
    with gateway_of(tmp_path_factory.mktemp("any")) as gateway:
        assert code_of(gateway.reply(noise)) == "MALFORMED"


def test_sizes_are_limited(gateway):
    deep = tuple([0, -1] * 1_001 + [-1])
    wide = tuple(tuple(range(9)) for _ in range(1))
    assert code_of(gateway.reply(message(kind="leaf counts", trees=(deep,)))) == "TOO_LARGE"
    assert code_of(gateway.reply(b" " * (LARGEST_REQUEST + 1))) == "TOO_LARGE"
    assert read(gateway.reply(message(kind="side counts", questions=wide)))["ok"]


def test_another_schema_is_refused(gateway):
    other = message().replace(hospitals.DIGEST.encode(), b"0" * 64)
    assert code_of(gateway.reply(other)) == "SCHEMA"


def test_an_older_request_that_was_never_answered_is_stale(gateway):
    gateway.reply(message(round=5))
    assert code_of(gateway.reply(message(round=4))) == "STALE"


def test_a_lost_answer_is_never_sampled_again(gateway):
    gateway.reply(message())
    for path in gateway._store.folder.glob("*.answer"):
        path.write_text(
            path.read_text("utf-8").replace("numbers", "Numbers"), "utf-8"
        )  # damaged counts as lost
    assert code_of(gateway.reply(message())) == "LOST"
    for path in gateway._store.folder.glob("*.answer"):
        path.unlink()
    assert code_of(gateway.reply(message())) == "LOST"
    assert gateway.holder.ledger.spent == 0.5


def test_no_text_of_an_error_leaves_or_is_logged(gateway, monkeypatch, caplog):
    def fails(*_):
        raise RuntimeError("row 17: age 34.125")

    monkeypatch.setattr(gateway.holder, "_numbers", fails)
    with caplog.at_level("DEBUG"):
        assert json.loads(gateway.reply(message())) == {
            "version": 2,
            "ok": False,
            "code": "INTERNAL",
        }
    assert "34.125" not in caplog.text
    # made to fail by rows, it costs; or one could ask for it again and again
    assert gateway.holder.ledger.spent == 0.5
    monkeypatch.undo()
    assert code_of(gateway.reply(message())) == "LOST"


# ---- parallel composition rests on the trees, not on anybody's word ----
@given(st.lists(st.integers(-1, 8), min_size=1, max_size=15), st.integers(0, 99))
def test_leaves_that_are_accepted_share_no_row(numbers, seed):
    candidates = SplitTable.declared(hospitals.SCHEMA.space, 4)
    try:
        tree = from_numbers(numbers, len(candidates))
    except ValueError:
        return
    X, y = hospitals.rows(seed, 50)
    codes = candidates.space.binned(hospitals.SCHEMA.encode(X))
    block = BlockRows(codes, hospitals.SCHEMA.encode_labels(y), 2, np.arange(50))
    parts = [part.rows for part in rows_by_leaf(tree, block, candidates)]
    assert sorted(np.concatenate(parts)) == list(range(50))  # each row in exactly one leaf


def test_a_request_about_many_leaves_costs_its_epsilon_once(gateway):
    reply = gateway.reply(message(kind="leaf counts", trees=((0, 1, -1, -1, 2, -1, -1),)))
    assert read(reply)["ok"]
    assert gateway.holder.ledger.spent == 0.5


# ---- what costs nothing ----
def test_hello_and_status_look_at_no_row(gateway):
    known = read(gateway.reply(write({"version": 2, "type": "hello", "study": "s", "epsilon": 4})))
    assert known["holder"] == "north"
    assert known["enough"] is True
    assert known["schema"]["classes"] == ["ill", "well"]
    told = ("enough", "spent", "ledger", "schema", "time")  # and no number of rows
    assert set(known) == {"version", "ok", "type", "holder", "private", *told}
    gateway.reply(message(epsilon=1.5))
    for study, enough in (("another", False), ("study", True)):  # what it paid is part of it
        hello = write({"version": 2, "type": "hello", "study": study, "epsilon": 4})
        assert read(gateway.reply(hello))["enough"] is enough
    known = read(gateway.reply(hospitals.STATUS))
    assert (known["spent"], known["left"], known["answers"]) == (1.5, 2.5, 1)
    assert set(known) == {
        *("version", "ok", "type", "holder", "private", "budget", "spent", "left", "answers")
    }


# ---- crashes, at every step ----
class Died(BaseException):
    """Stands for kill -9: nothing after it runs."""


def dies(*_, **__):
    raise Died


@pytest.mark.parametrize("step", ["draft", "keep", "pay", "send"])
def test_a_crash_at_any_step_loses_and_doubles_nothing(tmp_path, monkeypatch, step):
    with gateway_of(tmp_path) as first:
        whole = first.holder if step in ("draft", "pay") else first._store
        if step == "send":
            first.reply(message())  # and its bytes never arrive
        else:
            monkeypatch.setattr(whole, step, dies)
            with pytest.raises(Died):
                first.reply(message())
            assert first.holder.ledger.spent == 0
    with gateway_of(tmp_path) as restarted:
        reply = restarted.reply(message())
        assert read(reply)["ok"]
        assert restarted.reply(message()) == reply
        assert restarted.holder.ledger.spent == 0.5
        assert len(restarted.holder.ledger.entries) == 1


KILLER = """
import os, signal, sys
from steadytree.cli import app as cli
from steadytree.privacy.ledger import Ledger
from steadytree.federated.answer_store import AnswerStore

def killed(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

if {step!r} == "keep":
    AnswerStore.keep = killed
elif {step!r} == "spend":
    Ledger.spend = killed
else:
    spend = Ledger.spend
    def spend_then_die(*args, **kwargs):
        spend(*args, **kwargs)
        killed()
    Ledger.spend = spend_then_die
cli.main()
"""


@unix_only
@pytest.mark.parametrize("step", ["keep", "spend", "send"])
def test_a_gateway_killed_in_the_middle_of_a_request_goes_on_after_a_restart(tmp_path, step):
    hospitals.write_files(tmp_path, ["north"])
    program = ("-c", KILLER.format(step=step))
    process = hospitals.start_gateway(tmp_path, program=program)
    with pytest.raises((OSError, ValueError)):
        hospitals.send(tmp_path, "north", message())
    assert hospitals.stop(process) == -signal.SIGKILL
    spent = Ledger(tmp_path / "north.ledger", 4.0).spent
    assert spent == (0.5 if step == "send" else 0.0)
    process = hospitals.start_gateway(tmp_path)  # over the socket that was left behind
    try:
        reply = hospitals.send(tmp_path, "north", message())
        assert read(reply)["ok"]
        assert hospitals.send(tmp_path, "north", message()) == reply
        assert read(hospitals.send(tmp_path, "north", hospitals.STATUS))["spent"] == 0.5
    finally:
        assert hospitals.stop(process) == 0
    assert not (tmp_path / "north.sock").exists()
    log = (tmp_path / "north.log").read_text("utf-8")
    assert "study study question 0 (rows)" in log
    cells = (tmp_path / "north.csv").read_text("utf-8").split()[1:]
    values = {cell for row in cells for cell in row.split(",")[:2] if len(cell) > 4}
    assert not [cell for cell in values if cell in log]


FULL = """
import resource, signal, sys
from steadytree.cli import app as cli
from steadytree.privacy import ledger
before = ledger.Ledger._append
def append(self, handle, line):
    if b"study" in line:  # the disk is full in the middle of the line
        size = len(ledger._content(handle))
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 9, resource.RLIM_INFINITY))
        try:
            return before(self, handle, line)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    return before(self, handle, line)
ledger.Ledger._append = append
cli.main()
"""


@unix_only
def test_a_full_disk_at_the_ledger_lets_nothing_out_and_counts_nothing(tmp_path):
    hospitals.write_files(tmp_path, ["north"])
    process = hospitals.start_gateway(tmp_path, program=("-c", FULL))
    try:
        for _ in range(3):
            assert code_of(hospitals.send(tmp_path, "north", message())) == Refusal.INTERNAL
        assert read(hospitals.send(tmp_path, "north", hospitals.STATUS))["spent"] == 0
    finally:
        assert hospitals.stop(process) == 0
    ledger = Ledger(tmp_path / "north.ledger", 4.0)
    assert (ledger.spent, ledger.entries) == (0.0, [])
    with gateway_of(tmp_path) as mended:
        assert read(mended.reply(message()))["ok"]
        assert mended.holder.ledger.spent == 0.5


def test_a_full_disk_at_the_answers_spends_nothing(gateway, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(gateway._store, "keep", full)
    assert code_of(gateway.reply(message())) == "INTERNAL"
    assert gateway.holder.ledger.spent == 0
    monkeypatch.undo()
    assert read(gateway.reply(message()))["ok"]


@pytest.mark.parametrize("work", [0.0, 0.1, 0.25, 2.3])
def test_replies_leave_on_the_grid_of_the_pace(gateway, monkeypatch, work):
    clock = ToldClock()
    paced = Gateway(gateway.holder, gateway._store, pace=0.25, clock=clock)
    draft = gateway.holder.draft

    def slow(*asked):
        clock.sleep(work)
        return draft(*asked)

    monkeypatch.setattr(gateway.holder, "draft", slow)
    assert read(paced.reply(message()))["ok"]
    assert clock.slept[0] == work
    assert 0 < clock.slept[1] <= 0.25
    assert clock.now() / 0.25 == pytest.approx(round(clock.now() / 0.25))
    assert clock.now() > work


# ---- work: priced, limited, released at a time that no row changes ----
@pytest.mark.parametrize("work", [0.0, 0.1, 0.7])
def test_an_answer_leaves_at_the_time_of_its_price(gateway, monkeypatch, work):
    clock = ToldClock()
    paced = Gateway(gateway.holder, gateway._store, pace=0.25, clock=clock)
    monkeypatch.setattr(paced, "_rate", 1e-5)
    request = ask("last block", depth=2, trees=((0, -1, -1),))
    priced = gateway.holder.price(request, gateway.holder.admit(request))
    draft = gateway.holder.draft

    def slow(*asked):
        clock.sleep(work)
        return draft(*asked)

    monkeypatch.setattr(gateway.holder, "draft", slow)
    started = clock.now()
    assert read(paced.reply(request_message(request)))["ok"]
    due = MARGIN * priced * 1e-5
    assert due > 0.7
    assert clock.now() - started == pytest.approx((due // 0.25 + 1) * 0.25)


def test_a_failure_that_depends_on_rows_leaves_when_an_answer_would(gateway, monkeypatch):
    clock, times = ToldClock(), []
    paced = Gateway(gateway.holder, gateway._store, pace=0.25, clock=clock)
    monkeypatch.setattr(paced, "_rate", 1e-6)
    numbers = gateway.holder._numbers
    for round, fail in enumerate((False, True)):
        wrong = (lambda *_: 1 / 0) if fail else numbers
        monkeypatch.setattr(gateway.holder, "_numbers", wrong)
        started = clock.now()
        reply = paced.reply(message(kind="last block", depth=2, round=round))
        assert code_of(reply) == ("INTERNAL" if fail else None)
        times.append(clock.now() - started)
    assert times[0] == times[1]
    assert gateway.holder.ledger.spent == 1.0


def test_work_is_priced_with_its_leaves_before_anything_is_paid(gateway, monkeypatch):
    one = ask("last block", depth=2)
    price = gateway.holder.price(one, gateway.holder.admit(one))
    monkeypatch.setattr(holder_module, "MOST_WORK", 2 * price)
    many = message(kind="last block", depth=2, trees=((0, 1, -1, -1, -1),))
    assert code_of(gateway.reply(many)) == "TOO_LARGE"
    assert gateway.holder.ledger.spent == 0
    assert read(gateway.reply(request_message(one)))["ok"]


def test_a_study_has_so_much_work_done_for_it_and_no_more(gateway, monkeypatch, tmp_path):
    from steadytree.federated import gateway as module

    one = ask("last block", depth=2)
    price = gateway.holder.price(one, gateway.holder.admit(one))
    monkeypatch.setattr(module, "MOST_STUDY_WORK", 2 * price)
    replies = [gateway.reply(message(kind="last block", depth=2, round=n)) for n in range(3)]
    assert [code_of(reply) for reply in replies] == [None, None, "QUOTA"]
    assert gateway.reply(message(kind="last block", depth=2, round=1)) is not None
    gateway._store._used.clear()  # the files remember, not the process
    again = Gateway(gateway.holder, gateway._store)
    assert code_of(again.reply(message(kind="last block", depth=2, round=3))) == "QUOTA"
    assert code_of(again.reply(message(kind="last block", depth=2, session="study.1"))) is None
    assert gateway.holder.ledger.spent == 1.5


def test_a_study_keeps_the_candidate_splits_that_it_began_with(gateway):
    assert read(gateway.reply(message(n_bins=4)))["ok"]
    assert code_of(gateway.reply(message(round=1, n_bins=5))) == "CHANGED"
    assert read(gateway.reply(message(round=1, n_bins=4)))["ok"]
    assert read(gateway.reply(message(session="another", n_bins=5)))["ok"]


def test_a_holder_that_knows_the_plan_answers_that_and_nothing_else(gateway):
    from steadytree.federated.gateway import Plan

    bound = with_terms(gateway, plans={"study": Plan(n_bins=4, levels=3)})
    deep = ((0, 1, -1, -1, -1),)
    for wrong in ({"n_bins": 5}, {"kind": "last block", "depth": 2, "trees": deep}):
        assert code_of(bound.reply(message(**wrong))) == "PLAN"
    assert gateway.holder.ledger.spent == 0
    assert read(bound.reply(message(kind="last block", depth=1, trees=deep)))["ok"]
    assert read(bound.reply(message(session="another", n_bins=5)))["ok"]


def test_a_plan_is_read_as_terms(tmp_path):
    from steadytree.cli.private_holder import read_terms
    from steadytree.federated.gateway import Plan

    hospitals.write_files(tmp_path, names=())
    plan = hospitals.write_plan(tmp_path, epsilon=2.0, n_bins=4)
    terms = read_terms("north", ["other=0.5"], [plan], 1e-3, None)
    assert terms.studies == {"hospitals": Decimal("2.0"), "other": Decimal("0.5")}
    assert terms.plans == {"hospitals": Plan(4, 16)}


def test_what_is_given_up_is_not_paid_for(tmp_path):
    with gateway_of(tmp_path) as first:
        first.cancel()
        assert code_of(first.reply(message(kind="last block", depth=2))) == "BUSY"
        assert first.holder.ledger.spent == 0
    with gateway_of(tmp_path) as again:
        assert read(again.reply(message(kind="last block", depth=2)))["ok"]


# ---- answers that are too large, and what a holder agreed to ----


def test_an_answer_too_large_is_paid_for(gateway, monkeypatch):
    monkeypatch.setattr(gateway.holder, "_numbers", lambda *_: np.array([2**50]))
    assert code_of(gateway.reply(message())) == "INTERNAL"
    assert gateway.holder.ledger.spent == 0.5


def test_noise_that_could_be_too_large_is_refused_before_rows_are_looked_at(gateway, monkeypatch):
    def never(*_):
        raise AssertionError

    monkeypatch.setattr(gateway.holder, "_numbers", never)
    monkeypatch.setattr(holder_module, "LARGEST", 2**27 + 64 * 10)
    for few in ({"kind": "side counts", "questions": ((0, 1, 2, 3, 4, 5),)}, {"epsilon": 0.05}):
        assert code_of(gateway.reply(message(**{"epsilon": 0.5, **few}))) == "MALFORMED"
    assert gateway.holder.ledger.spent == 0


def test_a_split_counts_once_in_a_leaf(gateway):
    assert code_of(gateway.reply(message(kind="side counts", questions=((1, 1),)))) == "MALFORMED"
    assert gateway.holder.ledger.spent == 0
    with pytest.raises(RefusedError, match="must differ"):
        gateway.holder.answer(hospitals.ask("side counts", questions=((1, 1),)))


def test_a_study_costs_no_more_than_was_agreed(gateway):
    agreed = with_terms(gateway, studies={"study": Decimal(1)})
    replies = [agreed.reply(message(round=number, epsilon=0.5)) for number in range(3)]
    assert [code_of(reply) for reply in replies] == [None, None, "BUDGET"]
    assert agreed.reply(message(round=1, epsilon=0.5)) == replies[1]  # repeated, for nothing
    assert code_of(agreed.reply(message(session="another"))) == "BUDGET"
    assert gateway.holder.ledger.spent == 1.0
    for study, epsilon, enough in (("study", 1, True), ("study", 2, False), ("another", 1, False)):
        hello = write({"version": 2, "type": "hello", "study": study, "epsilon": epsilon})
        assert read(agreed.reply(hello))["enough"] is enough


def test_requests_for_next_to_nothing_are_refused(gateway):
    agreed = with_terms(gateway, least_epsilon=1e-3)
    assert code_of(agreed.reply(message(epsilon=1e-4))) == "TOO_SMALL"
    assert read(agreed.reply(message(epsilon=1e-3)))["ok"]


def test_trees_of_very_many_nodes_are_refused(gateway):
    def full(depth):
        return (-1,) if depth == 0 else (0, *full(depth - 1), *full(depth - 1))

    assert code_of(gateway.reply(message(kind="leaf counts", trees=(full(13),) * 2))) == "TOO_LARGE"
    assert gateway.holder.ledger.spent == 0


def test_a_gateway_believes_the_coordinator_alone(gateway, keys):
    from steadytree.federated.framing import envelope
    from steadytree.federated.signed_files import message_opener, sign_message

    asked = message()
    opener = message_opener(keys / "north" / "coordinator.sign.pub", "north")
    strict = with_terms(gateway, open_message=opener)
    own = keys / "coordinator" / "sign.key"
    wrong = [
        *(asked, b"", b"{}", write({"version": 2, "type": "hello", "study": "s", "epsilon": 1})),
        envelope(asked, sign_message(asked, "north", keys / "south" / "sign.key")),
        envelope(asked, sign_message(asked, "south", own)),  # meant for another holder
        envelope(asked.replace(b"0.5", b"0.6"), sign_message(asked, "north", own)),
        envelope(asked, b"short"),
    ]
    for each in wrong:
        assert code_of(strict.reply(each)) == "UNSIGNED"
    assert gateway.holder.ledger.spent == 0
    assert read(strict.reply(envelope(asked, sign_message(asked, "north", own))))["ok"]
    assert read(strict.reply(hospitals.STATUS))["spent"] == 0.5


@pytest.mark.parametrize("harm", ["lost", "emptied", "older"])
@pytest.mark.parametrize("with_mark", [False, True])
def test_answers_remember_what_a_lost_ledger_forgot(tmp_path, harm, with_mark):
    path = tmp_path / "north.ledger"
    both = (path, mark_path(path))
    with gateway_of(tmp_path) as first:
        first.reply(message())
        older = [each.read_bytes() for each in both]
        first.reply(message(round=1))
        first.reply(message(round=2))
        newest = [each.read_bytes() for each in both]
    for each, content in list(zip(both, older, strict=True))[: 1 + with_mark]:
        each.unlink()
        if harm != "lost":
            each.write_bytes(b"" if harm == "emptied" else content)
    with pytest.raises(BudgetError, match="older copy"), gateway_of(tmp_path):
        pass
    for each, content in zip(both, newest, strict=True):
        each.write_bytes(content)
    with gateway_of(tmp_path) as restored:
        assert restored.holder.ledger.spent == 1.5


def test_a_ledger_that_lacks_its_last_line_gets_it_back(tmp_path):
    path = tmp_path / "north.ledger"
    with gateway_of(tmp_path) as first:
        first.reply(message())
        older = path.read_bytes()
        reply = first.reply(message(round=1))
    path.write_bytes(older)
    with gateway_of(tmp_path) as again:
        assert again.holder.ledger.spent == 1.0
        assert again.reply(message(round=1)) == reply
        assert again.holder.ledger.spent == 1.0


def test_the_mark_of_a_store_only_rises(gateway):
    store = gateway._store
    for amount, marked in (("1.5", "1.5"), ("0.5", "1.5"), ("2", "2")):
        store.mark_spent(Decimal(amount))
        assert store.spent == Decimal(marked)


def test_a_folder_of_answers_is_closed_to_others(tmp_path):
    folder = tmp_path / "answers"
    folder.mkdir(mode=0o755)
    AnswerStore(folder, "north", "digest").close()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_stored_answer_that_is_no_text_counts_as_lost(gateway):
    gateway.reply(message())
    for path in gateway._store.folder.glob("*.answer"):
        path.write_text(json.dumps({"question": "q", "check": "c", "letter": 7}), "utf-8")
    assert code_of(gateway.reply(message())) == Refusal.LOST


@pytest.mark.parametrize("trials", [60, pytest.param(500, marks=pytest.mark.slow)])
def test_no_older_ledger_mark_or_store_wins_budget(tmp_path, monkeypatch, trials):
    """Each file from any backup, or gone; the user of this machine remembers."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    rng, backups = random.Random(trials), []
    files = [tmp_path / "north.ledger", tmp_path / "north.ledger.mark"]
    store = tmp_path / "north.ledger.answers"

    def save():
        kept = {path: path.read_bytes() for path in [*files, *store.iterdir()] if path.is_file()}
        backups.append(kept)

    with gateway_of(tmp_path, budget=2.0) as first:
        for number in range(4):
            assert read(first.reply(message(round=number)))["ok"]
            save()
    every = sorted({path for kept in backups for path in kept})
    opened = 0
    for trial in range(trials):
        one = rng.choice(backups)
        for path in every:
            kept = one if rng.random() < 0.8 else rng.choice(backups)
            path.unlink(missing_ok=True)
            if path in kept and rng.random() < 0.97:
                path.write_bytes(kept[path])
        try:
            with gateway_of(tmp_path, budget=2.0) as again:
                opened += 1
                assert again.holder.ledger.left == 0, trial
                assert code_of(again.reply(message(round=9))) == "BUDGET"
        except ValueError:  # BudgetError is one
            continue
    assert 0 < opened < trials
