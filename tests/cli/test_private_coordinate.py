"""`steadytree private coordinate` and `holder join`, up to where Flower begins."""

import json
import pathlib
import signal
import socket
import subprocess
import sys
from types import SimpleNamespace

import pytest

from steadytree.federated.flower.transport import GridTransport, relay
from tests._base.clocks import ToldClock
from tests.federated import hospitals

COMMAND = ("private",)
KEYS = ["ca.crt", "server.pem", "server.key", "sign.key"]
KEYS += ["north.node.pub", "south.node.pub", "east.node.pub"]


@pytest.fixture(autouse=True)
def schema(run):
    hospitals.SCHEMA.save("schema.toml")


@pytest.fixture
def ready(run, monkeypatch):
    """A plan with all its keys, as far as their names go, and a Flower that is never started."""
    for module in ("superlink", "supernode"):
        monkeypatch.setattr(f"steadytree.federated.flower.{module}.require", lambda *_, **__: None)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    write_plan(port)
    pathlib.Path("keys/coordinator").mkdir(parents=True)
    for name in KEYS:
        pathlib.Path("keys/coordinator", name).touch()
    return run


def write_plan(port):
    hospitals.write_plan(superlink=f"127.0.0.1:{port}", testing_seed=None)


def change_plan(old, new):
    path = pathlib.Path("plan.toml")
    path.write_text(path.read_text().replace(old, new))


def check_refused(result, message):
    code, _, err = result
    assert code == 2
    assert message in err
    assert len(err.strip().splitlines()) == 1


def test_without_the_extra_a_plan_says_what_to_install(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "flwr", None)
    write_plan(1)
    what = "needs flwr: pip install 'steadytree[federated]'"
    check_refused(run("coordinate", "plan.toml"), what)
    join = ("holder", "join", "--keys", "k", "--superlink", "a:1", "--socket", "s")
    check_refused(run(*join), what)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    for name in [name for name in sys.modules if name.startswith("cryptography.")]:
        monkeypatch.setitem(sys.modules, name, None)
    check_refused(run("keys", "plan.toml"), "needs cryptography: pip install 'steadytree[private]'")
    assert not pathlib.Path("keys").exists()


@pytest.mark.parametrize("name", KEYS)
def test_a_missing_key_is_named(ready, name):
    pathlib.Path("keys/coordinator", name).unlink()
    check_refused(ready("coordinate", "plan.toml"), f"{name}' is missing")


def test_a_port_in_use_is_told(ready):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        write_plan(other.getsockname()[1])
        check_refused(ready("coordinate", "plan.toml"), "another program uses the port")


def test_an_address_of_another_machine_is_told(ready):
    change_plan("127.0.0.1", "192.0.2.1")
    check_refused(ready("coordinate", "plan.toml"), "not of this machine")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("epsilon", "minimum = 4\nepsilon", "only 3 holders"),
        ('"tree.json"', '"no/tree.json"', "make its folder first"),
        ("study", "checkpoint = 'schema.toml'\nstudy", "which the plan's schema reads"),
        ("study", "checkpoint = 'other.toml'\nstudy", "is not a checkpoint"),
    ],
)
def test_a_wrong_plan_is_told_before_anything_starts(ready, old, new, message):
    pathlib.Path("other.toml").write_text("other = 1\n")
    change_plan(old, new)
    check_refused(ready("coordinate", "plan.toml"), message)


def test_a_checkpoint_of_another_study_is_told(ready):
    text = '{"steadytree checkpoint": 1, "plan": "of another", "rounds": {}}'
    pathlib.Path("hospitals.checkpoint.json").write_text(text)
    check_refused(ready("coordinate", "plan.toml"), "is of another study")


def test_joining_needs_keys_and_a_free_port(ready):
    join = ("holder", "join", "--superlink", "127.0.0.1:1", "--socket", "s", "--keys", "north")
    check_refused(ready(*join), "ca.crt' is missing")
    pathlib.Path("north").mkdir()
    for name in ("ca.crt", "node.key"):
        pathlib.Path("north", name).touch()
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        check_refused(ready(*join, "--port", port), f"port {port} is in use")


# ---- the two thin ends of Flower ----
class Message(SimpleNamespace):
    """As much of Flower's message as is used."""

    def __init__(self, content, dst_node_id=None, message_type=None, ttl=None, reply_to=None):
        super().__init__(content=content, to=dst_node_id)


@pytest.fixture
def thin(monkeypatch):
    flower = SimpleNamespace(Message=Message, RecordDict=dict, ConfigRecord=dict)
    path = "steadytree.federated.flower.transport.require"
    monkeypatch.setattr(path, lambda *_, **__: flower)


class Grid:
    """A grid whose nodes answer by functions; one that returns None reports a failure."""

    def __init__(self, nodes):
        self._nodes, self._replies = nodes, {}

    def get_node_ids(self):
        return list(self._nodes)

    def push_messages(self, messages):
        for message in messages:
            node = message.to
            content = self._nodes[node](message.content["letter"]["json"])
            metadata = SimpleNamespace(reply_to_message_id=str(node), src_node_id=node)
            reply = SimpleNamespace(content=content, metadata=metadata)
            reply.has_error = lambda content=content: content is None
            self._replies[str(node)] = reply
        return list(self._replies)

    def pull_messages(self, ids):
        return [self._replies[each] for each in ids]


def test_a_grid_brings_back_letters_and_nothing_else(thin):
    nodes = {
        1: lambda letter: {"letter": {"json": letter + b"!"}},
        2: lambda letter: None,
        3: lambda letter: {"letter": {"json": "text"}},
        4: lambda letter: {"other": {}},
    }
    names = {"a": 1, "b": 2, "c": 3, "d": 4, "offline": 5}
    found = GridTransport(Grid(nodes), names, ToldClock()).exchange(dict.fromkeys(names, b"?"), 5.0)
    assert found == {"a": b"?!", "c": b"", "d": b""}


def test_a_grid_waits_for_late_replies_until_the_time_is_over(thin, monkeypatch):
    grid, clock = Grid({1: lambda letter: {"letter": {"json": b"late"}}}), ToldClock()
    pull = grid.pull_messages
    monkeypatch.setattr(grid, "pull_messages", lambda ids: pull(ids) if clock.now() > 3 else [])
    transport = GridTransport(grid, {"a": 1}, clock)
    assert transport.exchange({"a": b"?"}, 2.5) == {}
    assert 2.5 <= clock.now() < 3
    assert transport.exchange({"a": b"?"}, 2.5) == {"a": b"late"}
    assert 3 < clock.now() < 3.5


def test_a_relay_says_nothing_of_what_went_wrong(thin, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    here = SimpleNamespace(node_config={"gateway": "none.sock"})
    nowhere = SimpleNamespace(node_config={})
    for content, context, code in [
        ({"letter": {"json": b"{}"}}, here, "UNREACHABLE"),
        ({"letter": {"json": b"{}"}}, nowhere, "UNREACHABLE"),
        ({"letter": {"json": "text"}}, here, "MALFORMED"),
        ({}, here, "UNREACHABLE"),
    ]:
        reply = relay(Message(content), context).content
        assert json.loads(reply["letter"]["json"]) == {"version": 1, "ok": False, "code": code}
        assert list(reply) == ["letter"]


# ---- a leash: what is started ends with whoever started it ----
OWNER = """
import subprocess, sys, time
held = subprocess.Popen(
    [sys.executable, "-m", "steadytree.federated.flower.supervised_process", sys.executable, "-c",
     "import os, time; print(os.getpid(), flush=True); time.sleep(600)"],
    stdin=subprocess.PIPE,
)
time.sleep(600)
"""


def has_ended(number):
    """Whether a process is no more; one that nobody has asked for its exit code counts as ended."""
    try:
        return (
            pathlib.Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
        )
    except OSError:
        return True


@pytest.mark.skipif(sys.platform == "win32", reason="needs process groups")
def test_what_is_on_a_leash_ends_with_its_owner_even_by_kill_9():
    with subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE) as owner:
        child = int(owner.stdout.readline())
        owner.send_signal(signal.SIGKILL)
        # the pipe closes when the last of them has ended
        assert owner.stdout.read() == b""
    # its files are closed a moment before the system knows it as ended
    hospitals.wait_until(lambda: has_ended(child))
