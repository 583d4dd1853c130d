"""The holder's gateway: what it answers, what it refuses, and what a crash leaves behind."""

import json
import pathlib
import signal
import stat
import sys
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadytree.data.splits import SplitTable
from steadytree.federated.framing import LARGEST_QUESTION, Code, carry, read, write
from steadytree.federated.gateway import Gateway
from steadytree.federated.gateway_server import GatewayServer
from steadytree.federated.messages import question, read_answer
from steadytree.privacy.ledger import Ledger
from steadytree.privacy.sampled_tree import BlockRows, from_numbers, rows_by_leaf
from tests._base.clocks import ToldClock
from tests.federated import hospitals
from tests.federated.hospitals import ask, gateway_of, letter

COMMAND = ("private", "holder")
unix_only = pytest.mark.skipif(sys.platform == "win32", reason="needs Unix sockets")


@pytest.fixture
def gateway(tmp_path):
    with gateway_of(tmp_path) as found:
        yield found


def code_of(reply):
    return read(reply).get("code")


def test_an_answer_is_what_the_holder_itself_would_say(tmp_path, gateway):
    (tmp_path / "twin").mkdir()
    twin = hospitals.make_holder(tmp_path / "twin")
    for number, kind in enumerate(["rows", "leaf counts", "choice"]):
        request = ask(kind, number)
        reply = read_answer(read(gateway.reply(question(request))), question(request))
        assert reply.check(request).tolist() == twin.answer(request).numbers.tolist()
    assert gateway.holder.ledger.spent == 1.5


def test_a_repeated_question_gets_the_same_answer_and_costs_nothing(tmp_path):
    with gateway_of(tmp_path, seed=1) as first:
        reply = first.reply(letter())
        assert first.reply(letter()) == reply
    with gateway_of(tmp_path, seed=2) as restarted:  # other noise, were any drawn
        assert restarted.reply(letter()) == reply
        assert restarted.holder.ledger.spent == 0.5


@pytest.mark.parametrize(
    "changed",
    [{"epsilon": 0.25}, {"kind": "leaf counts"}, {"n_bins": 8}, {"trees": ((0, -1, -1),)}],
)
def test_a_changed_question_under_an_old_number_is_refused(gateway, changed):
    gateway.reply(letter())
    assert code_of(gateway.reply(letter(**changed))) == "CHANGED"
    assert gateway.holder.ledger.spent == 0.5


def test_studies_do_not_share_numbers(gateway):
    one, other = gateway.reply(letter()), gateway.reply(letter(session="other"))
    assert read(one)["answer"]["session"] != read(other)["answer"]["session"]
    assert gateway.holder.ledger.spent == 1.0


def test_it_refuses_when_the_budget_is_spent_and_says_no_more(gateway):
    gateway.reply(letter(epsilon=3.8))
    reply = gateway.reply(letter(round=1))
    assert json.loads(reply) == {"version": 1, "ok": False, "code": "BUDGET"}
    assert gateway.holder.ledger.spent == 3.8
    assert not list(gateway._store.folder.glob("study.1.*"))


WRONG = [
    b"",
    b"\xff\xfe",
    b"null",
    b"[" * 100_000,
    b'{"version": 2, "type": "status"}',
    b'{"version": 1, "type": "everything"}',
    b'{"version": 1, "type": "hello"}',
    b'{"version": 1, "type": "hello", "epsilon": NaN}',
    b'{"version": 1, "type": "question"}',
    letter().replace(b"rows", b"all rows"),
    letter().replace(b"0.5", b"NaN"),
    letter().replace(b"0.5", b"-1"),
    letter().replace(b"0.5", b'"0.5"'),
    letter().replace(b"0.5", b"true"),
    letter().replace(b"[[-1]]", b"[[-1.0]]"),
    letter().replace(b"[[-1]]", b"[[true]]"),
    letter().replace(b"[[-1]]", b"[[0,-1]]"),
    letter().replace(b"[[-1]]", b"[[-1,-1]]"),
    letter().replace(b"[[-1]]", b"[]"),
    letter().replace(b"[[-1]]", b"-1"),
    letter().replace(b'"study"', b'"../study"'),
    letter().replace(b'"round":0', b'"round":-1'),
    letter().replace(b'"n_bins":4', b'"n_bins":4,"more":1'),
    letter(kind="side counts", questions=((10**6,),)),
]


@pytest.mark.parametrize("wrong", WRONG, ids=range(len(WRONG)))
def test_what_is_no_question_costs_nothing_and_learns_nothing(gateway, wrong):
    assert json.loads(gateway.reply(wrong)) == {"version": 1, "ok": False, "code": "MALFORMED"}
    assert gateway.holder.ledger.spent == 0


@given(st.binary(max_size=300))
def test_any_bytes_get_a_fixed_code(tmp_path_factory, noise):
    with gateway_of(tmp_path_factory.mktemp("any")) as gateway:
        assert code_of(gateway.reply(noise)) == "MALFORMED"


def test_sizes_are_limited(gateway):
    deep = tuple([0, -1] * 70 + [-1])
    wide = tuple(tuple(range(9)) for _ in range(1))
    assert code_of(gateway.reply(letter(kind="leaf counts", trees=(deep,)))) == "TOO_LARGE"
    assert code_of(gateway.reply(b" " * (LARGEST_QUESTION + 1))) == "TOO_LARGE"
    assert read(gateway.reply(letter(kind="side counts", questions=wide)))["ok"]


def test_another_schema_is_refused(gateway):
    other = letter().replace(hospitals.DIGEST.encode(), b"0" * 64)
    assert code_of(gateway.reply(other)) == "SCHEMA"


def test_an_older_question_that_was_never_answered_is_stale(gateway):
    gateway.reply(letter(round=5))
    assert code_of(gateway.reply(letter(round=4))) == "STALE"


def test_a_lost_answer_is_never_drawn_again(gateway):
    gateway.reply(letter())
    for path in gateway._store.folder.glob("*.answer"):
        path.write_text(path.read_text().replace("numbers", "Numbers"))  # damaged counts as lost
    assert code_of(gateway.reply(letter())) == "LOST"
    for path in gateway._store.folder.glob("*.answer"):
        path.unlink()
    assert code_of(gateway.reply(letter())) == "LOST"
    assert gateway.holder.ledger.spent == 0.5


def test_no_text_of_an_error_leaves_or_is_logged(gateway, monkeypatch, caplog):
    def fails(*_):
        raise RuntimeError("row 17: age 34.125")

    monkeypatch.setattr(gateway.holder, "_numbers", fails)
    with caplog.at_level("DEBUG"):
        assert json.loads(gateway.reply(letter())) == {
            "version": 1,
            "ok": False,
            "code": "INTERNAL",
        }
    assert "34.125" not in caplog.text
    # made to fail by rows, it costs; or one could ask for it again and again
    assert gateway.holder.ledger.spent == 0.5
    monkeypatch.undo()
    assert code_of(gateway.reply(letter())) == "LOST"


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


def test_a_question_about_many_leaves_costs_its_epsilon_once(gateway):
    reply = gateway.reply(letter(kind="leaf counts", trees=((0, 1, -1, -1, 2, -1, -1),)))
    assert read(reply)["ok"]
    assert gateway.holder.ledger.spent == 0.5


# ---- what costs nothing ----
def test_hello_and_status_look_at_no_row(gateway):
    known = read(gateway.reply(write({"version": 1, "type": "hello", "study": "s", "epsilon": 4})))
    assert known["holder"] == "north"
    assert known["enough"] is True
    assert known["schema"]["classes"] == ["ill", "well"]
    gateway.reply(letter(epsilon=1.5))
    for study, enough in (("another", False), ("study", True)):  # what it paid is part of it
        hello = write({"version": 1, "type": "hello", "study": study, "epsilon": 4})
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
            first.reply(letter())  # and its bytes never arrive
        else:
            monkeypatch.setattr(whole, step, dies)
            with pytest.raises(Died):
                first.reply(letter())
            assert first.holder.ledger.spent == 0
    with gateway_of(tmp_path) as restarted:
        reply = restarted.reply(letter())
        assert read(reply)["ok"]
        assert restarted.reply(letter()) == reply
        assert restarted.holder.ledger.spent == 0.5
        assert len(restarted.holder.ledger.entries) == 1


KILLER = """
import os, signal, sys
from steadytree.cli import app as cli
from steadytree.privacy.ledger import Ledger
from steadytree.federated.gateway import AnswerStore

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
def test_a_gateway_killed_in_the_middle_of_a_question_goes_on_after_a_restart(tmp_path, step):
    hospitals.write_files(tmp_path, ["north"])
    program = ("-c", KILLER.format(step=step))
    process = hospitals.start_gateway(tmp_path, program=program)
    with pytest.raises((OSError, ValueError)):
        hospitals.send(tmp_path, "north", letter())
    assert hospitals.stop(process) == -signal.SIGKILL
    spent = Ledger(tmp_path / "north.ledger", 4.0).spent
    assert spent == (0.5 if step == "send" else 0.0)
    process = hospitals.start_gateway(tmp_path)  # over the socket that was left behind
    try:
        reply = hospitals.send(tmp_path, "north", letter())
        assert read(reply)["ok"]
        assert hospitals.send(tmp_path, "north", letter()) == reply
        assert read(hospitals.send(tmp_path, "north", hospitals.STATUS))["spent"] == 0.5
    finally:
        assert hospitals.stop(process) == 0
    assert not (tmp_path / "north.sock").exists()
    log = (tmp_path / "north.log").read_text()
    assert "study study question 0 (rows)" in log
    cells = (tmp_path / "north.csv").read_text().split()[1:]
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
            assert code_of(hospitals.send(tmp_path, "north", letter())) == Code.INTERNAL
        assert read(hospitals.send(tmp_path, "north", hospitals.STATUS))["spent"] == 0
    finally:
        assert hospitals.stop(process) == 0
    ledger = Ledger(tmp_path / "north.ledger", 4.0)
    assert (ledger.spent, ledger.entries) == (0.0, [])
    with gateway_of(tmp_path) as mended:
        assert read(mended.reply(letter()))["ok"]
        assert mended.holder.ledger.spent == 0.5


def test_a_full_disk_at_the_answers_spends_nothing(gateway, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(gateway._store, "keep", full)
    assert code_of(gateway.reply(letter())) == "INTERNAL"
    assert gateway.holder.ledger.spent == 0
    monkeypatch.undo()
    assert read(gateway.reply(letter()))["ok"]


@pytest.mark.parametrize("work", [0.0, 0.1, 0.25, 2.3])
def test_replies_leave_on_the_grid_of_the_pace(gateway, monkeypatch, work):
    clock = ToldClock()
    paced = Gateway(gateway.holder, gateway._store, pace=0.25, clock=clock)
    draft = gateway.holder.draft

    def slow(*asked):
        clock.sleep(work)
        return draft(*asked)

    monkeypatch.setattr(gateway.holder, "draft", slow)
    assert read(paced.reply(letter()))["ok"]
    assert clock.slept[0] == work
    assert 0 < clock.slept[1] <= 0.25
    assert clock.now() / 0.25 == pytest.approx(round(clock.now() / 0.25))
    assert clock.now() > work


# ---- the socket and the command ----
@unix_only
def test_the_socket_is_for_its_owner_only_and_disappears(gateway, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    server = GatewayServer(gateway, "g.sock")
    assert stat.S_IMODE(pathlib.Path("g.sock").stat().st_mode) == 0o600
    thread = threading.Thread(target=server.serve)
    thread.start()
    try:
        assert read(carry("g.sock", hospitals.STATUS, hospitals.PATIENCE))["spent"] == 0
        assert code_of(carry("g.sock", b"hm", hospitals.PATIENCE)) == "MALFORMED"
        with pytest.raises(ValueError, match="serves at"):
            GatewayServer(gateway, "g.sock")
    finally:
        server.stop()
        thread.join(hospitals.PATIENCE)
    assert not pathlib.Path("g.sock").exists()


@unix_only
def test_a_socket_path_is_checked(gateway, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pathlib.Path("file").touch()
    for path, message in [("file", "no socket"), ("x" * 120, "at most"), ("no/a", "folder first")]:
        with pytest.raises((ValueError, OSError), match=message):
            GatewayServer(gateway, path)
    with pytest.raises(ValueError, match="no group"):
        GatewayServer(gateway, "g.sock", group="no-such-group")


@pytest.fixture
def run(run, tmp_path):
    """Commands of a holder, in a folder with its rows and schema."""
    hospitals.write_files(tmp_path, ["north"])
    return run


def serve(run, **changed):
    values = {"data": "north.csv", "schema": "schema.toml", "ledger": "l", "budget": 1.0, **changed}
    listed = [part for name, value in values.items() for part in (f"--{name}", value)]
    new = [] if pathlib.Path(values["ledger"]).exists() else ["--new-ledger"]
    return run("serve", *listed, *new)


@unix_only
def test_status_shows_what_is_left(run, tmp_path):
    process = hospitals.start_gateway(tmp_path)
    try:
        hospitals.send(tmp_path, "north", letter(epsilon=1.0))
        code, out, _ = run("status", "--socket", "north.sock")
    finally:
        hospitals.stop(process)
    assert code == 0
    assert "spent 1, left 3 of 4" in out
    assert "answered 1 questions" in out
    code, _, err = run("status", "--socket", "north.sock")
    assert code == 2
    assert "no gateway serves" in err


@unix_only
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"target": "nothing"}, "no column"),
        ({"data": "none.csv"}, "no file"),
        ({"schema": "north.csv"}, "cannot be read as a schema"),
        ({"name": "a b"}, "name must be"),
        ({"budget": -1}, "budget must be"),
        ({"socket": "no/such.sock"}, "folder first"),
    ],
)
def test_wrong_use_is_one_line_and_exit_2(run, tmp_path, changed, message):
    code, _, err = serve(run, **changed)
    assert code == 2
    assert message in err
    assert len(err.strip().splitlines()) == 1


@unix_only
def test_a_ledger_of_another_holder_or_budget_is_refused(run, tmp_path):
    with gateway_of(tmp_path, "north"):
        pass
    code, _, err = serve(run, ledger="north.ledger", budget=4, name="south")
    assert code == 2
    assert "another holder" in err
    code, _, err = serve(run, ledger="north.ledger", budget=5, name="north")
    assert code == 2
    assert "cannot be changed" in err
    with gateway_of(tmp_path, "north"):
        code, _, err = serve(run, ledger="north.ledger", budget=4, name="north")
    assert code == 2
    assert "another gateway" in err
    assert Ledger(tmp_path / "north.ledger", 4.0).spent == 0
