"""GridTransport and the relay: messages and nothing else, and few imports."""

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest

from steadytree.federated.flower.transport import GridTransport, relay
from tests._base.clocks import ToldClock

PROGRAM = """
import sys
from steadytree.federated.flower import transport
heavy = {"pandas", "sklearn", "numba", "scipy", "opendp"} & set(sys.modules)
assert not heavy, heavy
"""


def test_the_relay_loads_little():
    """It starts for every message, and must not load what only the coordinator needs."""
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)


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


def test_a_grid_brings_back_messages_and_nothing_else(thin):
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
        assert json.loads(reply["letter"]["json"]) == {"version": 2, "ok": False, "code": code}
        assert list(reply) == ["letter"]
