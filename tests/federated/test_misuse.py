"""What a second privacy review found at gateways and in studies, each as the misuse itself."""

import json
import os
import pathlib
import socket
import stat
import sys
import threading
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from steadytree.data.splits import SplitTable
from steadytree.federated import gateway_server as gateway_socket
from steadytree.federated import holder as holder_module
from steadytree.federated.coordinator import Coordinator
from steadytree.federated.flower.supernode import check_gateway, plain_environment
from steadytree.federated.framing import Code, MessageError, read, receive_frame, write
from steadytree.federated.gateway import AnswerStore, Gateway, Terms
from steadytree.federated.gateway_server import GatewayServer
from steadytree.federated.messages import RefusedError
from steadytree.federated.signed_files import read_question_file, write_questions
from steadytree.federated.transport import InMemory
from steadytree.privacy.ledger import BudgetError
from steadytree.privacy.ledger_lines import mark_path
from steadytree.privacy.mechanisms import release_counts
from steadytree.privacy.noise import SeededNoise
from steadytree.privacy.sampled_tree import BlockRows, from_numbers, rows_by_leaf
from tests._base.clocks import ToldClock
from tests.federated import hospitals
from tests.federated.hospitals import NAMES, SCHEMA, gateway_of, letter, make_holder
from tests.federated.test_study import Faulty, make_plan, run_study

unix_only = pytest.mark.skipif(sys.platform == "win32", reason="needs Unix sockets")


@pytest.fixture
def gateway(tmp_path):
    with gateway_of(tmp_path) as found:
        yield found


def with_terms(gateway, **terms):
    return Gateway(gateway.holder, gateway._store, terms=Terms(**terms))


def code_of(reply):
    return read(reply).get("code")


# ---- refusals depend on public numbers alone, or are paid for ----
def test_an_answer_too_large_is_paid_for(gateway, monkeypatch):
    monkeypatch.setattr(gateway.holder, "_numbers", lambda *_: np.array([2**50]))
    assert code_of(gateway.reply(letter())) == "INTERNAL"
    assert gateway.holder.ledger.spent == 0.5


def test_noise_that_could_be_too_large_is_refused_before_rows_are_looked_at(gateway, monkeypatch):
    def never(*_):
        raise AssertionError

    monkeypatch.setattr(gateway.holder, "_numbers", never)
    monkeypatch.setattr(holder_module, "LARGEST", 2**27 + 64 * 10)
    for few in ({"kind": "side counts", "questions": ((0, 1, 2, 3, 4, 5),)}, {"epsilon": 0.05}):
        assert code_of(gateway.reply(letter(**{"epsilon": 0.5, **few}))) == "MALFORMED"
    assert gateway.holder.ledger.spent == 0


def test_a_question_counts_once_in_a_leaf(gateway):
    assert code_of(gateway.reply(letter(kind="side counts", questions=((1, 1),)))) == "MALFORMED"
    assert gateway.holder.ledger.spent == 0
    with pytest.raises(RefusedError, match="must differ"):
        gateway.holder.answer(hospitals.ask("side counts", questions=((1, 1),)))


# ---- seeded noise marks the model, whenever it was drawn ----
@pytest.fixture
def real_plan(tmp_path):
    pytest.importorskip("opendp")
    names = list(NAMES[:2])
    few = {"holders": names, "minimum": 1, "testing_seed": None}
    return make_plan(tmp_path, **few, method="vote")


def test_a_seeded_holder_that_was_silent_at_the_greeting_marks_the_model(tmp_path, real_plan):
    def silent_at_first(name, asked, reply):
        return None if name == "south" and b'"hello"' in asked else reply

    with gateway_of(tmp_path, "north", seed=None) as one, gateway_of(tmp_path, "south") as two:
        study = run_study(real_plan, Faulty([one, two], silent_at_first))
    assert study.gone == ()
    assert not study.privacy.private


@pytest.mark.parametrize("lost", [True, False])
def test_answers_that_were_drawn_with_a_seed_stay_marked(tmp_path, real_plan, lost):
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
    fitted = Coordinator([one], SCHEMA, 1.0, n_bins=4, testing_seed=0).fit()
    assert not fitted.privacy_.private


# ---- what a holder agreed to ----
def test_a_study_costs_no_more_than_was_agreed(gateway):
    agreed = with_terms(gateway, studies={"study": Decimal(1)})
    replies = [agreed.reply(letter(round=number, epsilon=0.5)) for number in range(3)]
    assert [code_of(reply) for reply in replies] == [None, None, "BUDGET"]
    assert agreed.reply(letter(round=1, epsilon=0.5)) == replies[1]  # repeated, for nothing
    assert code_of(agreed.reply(letter(session="another"))) == "BUDGET"
    assert gateway.holder.ledger.spent == 1.0
    for study, epsilon, enough in (("study", 1, True), ("study", 2, False), ("another", 1, False)):
        hello = write({"version": 1, "type": "hello", "study": study, "epsilon": epsilon})
        assert read(agreed.reply(hello))["enough"] is enough


def test_questions_for_next_to_nothing_are_refused(gateway):
    agreed = with_terms(gateway, least_epsilon=1e-3)
    assert code_of(agreed.reply(letter(epsilon=1e-4))) == "TOO_SMALL"
    assert read(agreed.reply(letter(epsilon=1e-3)))["ok"]


def test_trees_of_very_many_nodes_are_refused(gateway):
    def full(depth):
        return (-1,) if depth == 0 else (0, *full(depth - 1), *full(depth - 1))

    assert code_of(gateway.reply(letter(kind="leaf counts", trees=(full(13),) * 2))) == "TOO_LARGE"
    assert gateway.holder.ledger.spent == 0


def test_a_node_costs_the_work_of_its_own_rows():
    seen = []

    class Watched(np.ndarray):
        def __le__(self, other):
            seen.append(len(self))
            return np.asarray(self) <= other

        __eq__ = __le__

    candidates = SplitTable.declared(SCHEMA.space, 4)
    X, y = hospitals.rows(0, 100)
    codes = candidates.space.binned(SCHEMA.encode(X)).view(Watched)
    block = BlockRows(codes, SCHEMA.encode_labels(y), 2, np.arange(100))
    tree = from_numbers((0, 1, -1, -1, 1, -1, -1), len(candidates))
    list(rows_by_leaf(tree, block, candidates))
    assert sum(seen) == 2 * 100  # two levels, each of all rows once


# ---- letters are signed ----
@pytest.fixture
def keys(tmp_path):
    pytest.importorskip("cryptography")
    from steadytree.federated.keys import make_study_keys

    make_study_keys(tmp_path / "keys", NAMES, ["localhost", "127.0.0.1"])
    return tmp_path / "keys"


def test_a_gateway_believes_the_coordinator_alone(gateway, keys):
    from steadytree.federated.framing import envelope
    from steadytree.federated.signed_files import letter_opener, sign_letter

    asked = letter()
    opener = letter_opener(keys / "north" / "coordinator.sign.pub", "north")
    strict = with_terms(gateway, open_letter=opener)
    own = keys / "coordinator" / "sign.key"
    wrong = [
        *(asked, b"", b"{}", write({"version": 1, "type": "hello", "study": "s", "epsilon": 1})),
        envelope(asked, sign_letter(asked, "north", keys / "south" / "sign.key")),
        envelope(asked, sign_letter(asked, "south", own)),  # meant for another holder
        envelope(asked.replace(b"0.5", b"0.6"), sign_letter(asked, "north", own)),
        envelope(asked, b"short"),
    ]
    for each in wrong:
        assert code_of(strict.reply(each)) == "UNSIGNED"
    assert gateway.holder.ledger.spent == 0
    assert read(strict.reply(envelope(asked, sign_letter(asked, "north", own))))["ok"]
    assert read(strict.reply(hospitals.STATUS))["spent"] == 0.5


def test_a_study_of_signed_letters_ends_in_the_same_tree(tmp_path, keys):
    from steadytree.federated.signed_files import SignedMessages, letter_opener

    plan = make_plan(tmp_path, holders=["north"], method="vote")
    (tmp_path / "twin").mkdir()
    with gateway_of(tmp_path / "twin") as one:
        plain = run_study(plan, InMemory([one]))
    plan.checkpoint.unlink()
    with gateway_of(tmp_path) as one:
        opener = letter_opener(keys / "north" / "coordinator.sign.pub", "north")
        strict = InMemory([with_terms(one, open_letter=opener)])
        with pytest.raises(ValueError, match="not signed"):
            run_study(plan, strict)
        signed = run_study(plan, SignedMessages(strict, keys / "coordinator" / "sign.key"))
    assert signed.tree == plain.tree


@unix_only
def test_join_refuses_the_user_of_the_rows_and_a_gateway_that_believes_anyone(
    gateway, keys, tmp_path, monkeypatch
):
    from steadytree.federated.signed_files import letter_opener

    monkeypatch.chdir(tmp_path)
    opener = letter_opener(keys / "north" / "coordinator.sign.pub", "north")
    path = pathlib.Path("g.sock")
    with pytest.raises(ValueError, match="start it first"):
        check_gateway(path, seconds=0)
    for terms in ({}, {"open_letter": opener}):
        server = GatewayServer(with_terms(gateway, **terms), path)
        thread = threading.Thread(target=server.serve)
        thread.start()
        try:
            with pytest.raises(ValueError, match="another user"):
                check_gateway(path)
            if terms:
                check_gateway(path, same_user=True)
                monkeypatch.setattr(os, "getuid", lambda: -1)
                check_gateway(path)
            else:
                with pytest.raises(ValueError, match="nobody signed"):
                    check_gateway(path, same_user=True)
        finally:
            server.stop()
            thread.join(hospitals.PATIENCE)


def test_shipped_code_does_not_get_the_environment(monkeypatch):
    monkeypatch.setenv("DATABASE_PASSWORD", "secret")
    monkeypatch.setenv("FLWR_X", "1")
    assert "secret" not in plain_environment().values()
    assert plain_environment()["FLWR_X"] == "1"


def test_the_front_lets_calls_of_nodes_through_and_nothing_else(keys):
    import http.client
    import ssl
    from http.server import BaseHTTPRequestHandler, HTTPServer

    from steadytree.federated.flower.superlink import Proxy

    seen = []

    class Inner(BaseHTTPRequestHandler):
        def do_POST(self):
            seen.append((self.path, self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.send_header("content-length", "2")
            self.end_headers()
            self.wfile.write(b"ok")

        def log_message(self, *_):
            pass

    folder = keys / "coordinator"
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(folder / "server.pem", folder / "server.key")
    inner = HTTPServer(("127.0.0.1", 0), Inner)
    inner.socket = tls.wrap_socket(inner.socket, server_side=True)
    threading.Thread(target=inner.serve_forever, daemon=True).start()
    outside = ssl.create_default_context(cafile=str(folder / "ca.crt"))

    def call(port, path, method="POST", body=b"x"):
        connection = http.client.HTTPSConnection(
            "127.0.0.1", port, context=outside, timeout=hospitals.PATIENCE
        )
        connection.request(method, path, body)
        reply = connection.getresponse()
        found = reply.status, reply.read()
        connection.close()
        return found

    with Proxy(("127.0.0.1", 0), ("127.0.0.1", inner.server_port), folder) as front:
        assert call(front.port, "/v1/fleet/pull-messages") == (200, b"ok")
        for path in (
            *("/v1/control/register-node", "/v1/control/start-run", "/v1/runtime/x", "/"),
            *("/v1/fleet/../control/start-run", "/v1/fleet/%2e%2e/control/start-run"),
            *("/v1/fleet/", "/v1/fleet/a?b", "//v1/control/start-run"),
        ):
            assert call(front.port, path)[0] == 403, path
        assert call(front.port, "/v1/fleet/pull-messages", "GET", None)[0] == 501
    inner.shutdown()
    inner.server_close()
    assert seen == [("/v1/fleet/pull-messages", b"x")]


# ---- a ledger that was lost ----
@pytest.mark.parametrize("harm", ["lost", "emptied", "older"])
@pytest.mark.parametrize("with_mark", [False, True])
def test_answers_remember_what_a_lost_ledger_forgot(tmp_path, harm, with_mark):
    path = tmp_path / "north.ledger"
    both = (path, mark_path(path))
    with gateway_of(tmp_path) as first:
        first.reply(letter())
        older = [each.read_bytes() for each in both]
        first.reply(letter(round=1))
        first.reply(letter(round=2))
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
        first.reply(letter())
        older = path.read_bytes()
        reply = first.reply(letter(round=1))
    path.write_bytes(older)
    with gateway_of(tmp_path) as again:
        assert again.holder.ledger.spent == 1.0
        assert again.reply(letter(round=1)) == reply
        assert again.holder.ledger.spent == 1.0


def test_the_mark_of_a_store_only_rises(gateway):
    store = gateway._store
    for amount, marked in (("1.5", "1.5"), ("0.5", "1.5"), ("2", "2")):
        store.mark_spent(Decimal(amount))
        assert store.spent == Decimal(marked)


# ---- files ----
def test_a_signed_file_shows_what_it_asks(tmp_path, keys):
    from steadytree.federated.signed_files import write_signed

    plan = make_plan(tmp_path)
    path = write_questions(plan, {"north": hospitals.ask(session="s1")}, tmp_path / "q")[0]
    whole = path.read_text()
    read_question_file(path, keys / "north")
    path.write_text(whole.replace('"asks for"', '"asks for": "nothing",\n"asks for"'))
    with pytest.raises(ValueError, match="no signed file"):
        read_question_file(path, keys / "north")
    other = json.loads(whole)["schema"] | {"classes": ["other", "well"]}
    for shown in ({"asks for": "leaf counts"}, {"schema": other}, {"schema": None}):
        content = {**json.loads(whole), **shown}
        del content["signature"]
        write_signed(path, content, keys / "coordinator" / "sign.key")
        with pytest.raises(ValueError, match="do not answer it"):
            read_question_file(path, keys / "north")


def test_letters_name_everything_once():
    with pytest.raises(MessageError, match="not JSON"):
        read(b'{"version":1,"type":"hello","type":"status"}')


def test_holders_whose_names_end_alike_are_told_apart(tmp_path):
    from steadytree.federated.signed_files import _holder_of

    plan = make_plan(tmp_path, holders=["north", "a.north"])
    for name in plan.holders:
        assert _holder_of(tmp_path / f"s1.0000.{name}.answer.json", plan) == name


# ---- smaller things ----
def test_laplace_noise_never_costs_more_than_was_charged():
    class Recorder(SeededNoise):
        def laplace(self, values, scale):
            self.scale = scale
            return values

    noise = Recorder(0)
    for epsilon in np.random.default_rng(0).uniform(0.01, 3, 500).tolist():
        release_counts(np.array([1]), epsilon, noise, 3)
        assert Fraction(3) / Fraction(noise.scale) <= Fraction(epsilon)


def test_a_folder_of_answers_is_closed_to_others(tmp_path):
    folder = tmp_path / "answers"
    folder.mkdir(mode=0o755)
    AnswerStore(folder, "north", "digest").close()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_stored_answer_that_is_no_text_counts_as_lost(gateway):
    gateway.reply(letter())
    for path in gateway._store.folder.glob("*.answer"):
        path.write_text(json.dumps({"question": "q", "check": "c", "letter": 7}))
    assert code_of(gateway.reply(letter())) == Code.LOST


@unix_only
def test_a_socket_that_cannot_be_probed_is_left_alone(gateway, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
        other.bind("g.sock")

        class Busy(socket.socket):
            def connect(self, _):
                raise TimeoutError

        monkeypatch.setattr(gateway_socket.socket, "socket", Busy)
        with pytest.raises(ValueError, match="in use or not yours"):
            GatewayServer(gateway, "g.sock")
    assert pathlib.Path("g.sock").exists()


@unix_only
def test_a_letter_has_one_time_limit_however_it_drips():
    one, other = socket.socketpair()
    with one, other:
        one.sendall(b"\x00\x00\x00\x09abc")
        one_byte = type("Drip", (), {"recv": lambda _, n: other.recv(1), "settimeout": min})()
        one_byte.settimeout = lambda _: None
        with pytest.raises(TimeoutError):
            receive_frame(one_byte, 100, 30.0, ToldClock(tick=20.0))


def test_writing_a_seeded_tree_is_logged(tmp_path, caplog):
    with gateway_of(tmp_path) as one:
        run_study(make_plan(tmp_path, holders=["north"]), InMemory([one]))
    assert "NOT PRIVATE" in caplog.text
