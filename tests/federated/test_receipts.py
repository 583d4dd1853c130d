"""Receipts: a coordinator notes how far each ledger has come, and nobody can take it back."""

import json

import pytest

from steadytree._base.exceptions import HolderError
from steadytree.federated.checkpoint import Checkpoint
from steadytree.federated.framing import Refusal, read
from steadytree.federated.receipts import RECEIPTS, Receipts, read_receipts, verify_ledger
from steadytree.federated.transport import InMemory
from steadytree.privacy.ledger_lines import ChainHead, mark_path
from tests.federated.hospitals import ask, code_of, gateway_of, message
from tests.federated.studies import gateways, make_plan, run_study

COMMAND = ("private", "ledger")


def head(number, hash="a" * 64, ledger="0" * 32):
    return ChainHead(ledger, number, hash)


def both(path):
    return {each: each.read_bytes() for each in (path, mark_path(path))}


@pytest.mark.parametrize(
    "later", [head(4), head(5, "b" * 64), head(6, ledger="1" * 32), None], ids=str
)
def test_a_head_that_went_back_or_changed_is_refused(later):
    receipts = Receipts("s1", {})
    assert receipts.of("north") is None
    receipts.note("north", head(5))
    receipts.note("north", head(5))
    with pytest.raises(HolderError, match=r"ledger was .*: restore the newest"):
        receipts.note("north", later)
    receipts.note("north", head(7, "c" * 64))
    assert receipts.of("north").number == 7


def test_a_gateway_refuses_to_serve_from_an_older_ledger(tmp_path, monkeypatch):
    from steadytree.federated.messages import request_message

    path, heads = tmp_path / "north.ledger", {}
    with gateway_of(tmp_path) as first:
        older = both(path)
        reply = read(first.reply(message()))
        Receipts("study", heads).note("north", ChainHead(**reply["ledger"]))
        assert heads["north"] == first.holder.ledger.head
    for each, content in older.items():  # also what the user and the store have seen
        each.write_bytes(content)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another user"))
    (tmp_path / "north.ledger.answers" / "spent").unlink()
    with gateway_of(tmp_path) as again:
        told = request_message(ask(round=1), Receipts("study", heads).of("north"))
        assert code_of(again.reply(told)) == Refusal.LEDGER
        assert again.holder.ledger.spent == 0


def test_a_resumed_study_refuses_a_holder_whose_ledger_went_back(tmp_path, monkeypatch):
    plan = make_plan(tmp_path)
    path = tmp_path / "north.ledger"
    with gateways(tmp_path) as found:
        older = both(path)
        run_study(plan, InMemory(found))
    assert set(Checkpoint(plan.checkpoint, plan.digest).heads) == set(plan.holders)
    for each, content in older.items():
        each.write_bytes(content)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another user"))
    (tmp_path / "north.ledger.answers" / "spent").unlink()
    with gateways(tmp_path) as found, pytest.raises(ValueError, match="copied back or replaced"):
        run_study(plan, InMemory(found))


def test_a_third_party_verifies_a_ledger(tmp_path, keys, run):
    from steadytree.federated.signed_files import SignedMessages

    plan = make_plan(tmp_path)
    key = keys / "coordinator"
    with gateways(tmp_path) as found:
        path = tmp_path / "north.ledger"
        older = both(path)
        run_study(plan, SignedMessages(InMemory(found), key / "sign.key"))
    given = ("north.ledger", "--coordinator-key", key / "sign.pub")
    code, out, err = run("verify", *given, "--checkpoint", plan.checkpoint, "--json")
    assert (code, err) == (0, "")
    known = json.loads(out)
    assert known["receipts"] >= known["lines"] - 1 >= 2  # one for each answer, and the last
    assert known["checkpoint"] == known["lines"]
    assert (known["spent"], known["budget"]) == (pytest.approx(2.0), 4.0)
    code, _, err = run("verify", "north.ledger", "--coordinator-key", keys / "south" / "sign.pub")
    assert (code, "was not signed by 'sign.pub'" in err) == (2, True)
    receipts = tmp_path / "north.ledger.answers" / RECEIPTS
    newest = both(path)
    for each, content in older.items():
        each.write_bytes(content)
    assert "older copy or another" in run("verify", *given)[2]
    receipts.unlink()
    assert run("verify", *given)[0] == 0  # nothing else is known of it
    assert (
        "older copy"
        in run("verify", *given, "--checkpoint", plan.checkpoint, "--holder", "north")[2]
    )
    for each, content in newest.items():
        each.write_bytes(content)
    assert "name one with --holder" in run("verify", *given, "--checkpoint", plan.checkpoint)[2]
    path.write_bytes(path.read_bytes().replace(b"leaf counts", b"leaf count5"))
    code, _, err = run("verify", *given)
    assert (code, err.count("\n"), "is not whole" in err) == (2, 1, True)


def test_verifying_changes_nothing_and_needs_no_budget(tmp_path, run):
    with gateway_of(tmp_path) as found:
        found.reply(message())
    before = {each: each.read_bytes() for each in tmp_path.rglob("*") if each.is_file()}
    code, out, _ = run("verify", "north.ledger")
    assert (code, "spent 0.5 of 4" in out) == (0, True)
    assert {each: each.read_bytes() for each in before} == before
    with pytest.raises(ValueError, match="no head of this ledger"):
        verify_ledger(tmp_path / "north.ledger", witness=tmp_path / "none")
    (tmp_path / "r").write_bytes(b"{}\n")
    with pytest.raises(ValueError, match="not a receipt: restore"):
        read_receipts(tmp_path / "r")


def test_receipts_that_cost_nothing_do_not_fill_a_disk(tmp_path):
    from steadytree.federated.framing import write
    from steadytree.federated.messages import request_message

    path = tmp_path / "north.ledger.answers" / RECEIPTS
    with gateway_of(tmp_path) as found:
        found.reply(message())
        told = found.holder.ledger.head
        for k in range(30):  # what a coordinator can send for nothing: other studies, signatures
            for study in ("study", f"s{k}"):
                receipt = {**told._asdict(), "study": study, "holder": "north"}
                hello = {"version": 2, "type": "hello", "study": study, "epsilon": 1.0}
                sent = {**hello, "receipt": {**receipt, "signature": "x" * k}}
                assert read(found.reply(write(sent)))["ok"]
        assert len(read_receipts(path)) == 1
        sent = {**hello, "receipt": {**receipt, "signature": "x" * 10**6}}
        assert code_of(found.reply(write(sent))) == Refusal.MALFORMED
        with path.open("ab") as file:  # a crash while an older version wrote
            file.write(b'{"half":')
        found.reply(message(round=1))
        Receipts("study", heads := {}).note("north", found.holder.ledger.head)
        found.reply(request_message(ask(round=2), Receipts("study", heads).of("north")))
        assert [one.number for one in read_receipts(path)] == [told.number, told.number + 1]
        assert path.stat().st_mode & 0o777 == 0o600


def test_a_ledger_that_adds_up_under_zcdp_is_verified(tmp_path):
    from steadytree.privacy.ledger import Ledger

    ledger = Ledger(tmp_path / "year.ledger", 1.0, 1e-6)
    for _ in range(20):
        ledger.spend(0.03, "small")
    ledger.spend(0.0, "sum", rho=0.005)
    for _ in range(20):
        ledger.spend(0.005, "smaller")
    found = verify_ledger(tmp_path / "year.ledger")
    assert found["spent"] == pytest.approx(ledger.spent)
    assert sum(entry.epsilon for entry in ledger.entries) > 0.69
