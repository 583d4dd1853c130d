"""The study as a Flower ServerApp: reads the plan, runs it over the grid, writes how it ended."""

import json
from collections.abc import Mapping
from typing import Any

from steadytree._base.clock import CLOCK, Clock, Limit
from steadytree._base.files import write_text_atomically
from steadytree._base.optional import require
from steadytree.federated.coordinator import run_study
from steadytree.federated.framing import LARGEST_QUESTION, MessageError, Refusal, carry, refusal
from steadytree.federated.signed_files import SignedMessages
from steadytree.federated.study_config import StudyConfig
from steadytree.privacy.ledger import BudgetError

QUERY = "steadytree"
RECORD, FIELD = "letter", "json"
PATIENCE = 600.0  # seconds for a gateway to answer


def make_client_app() -> Any:
    """The relay as a Flower ClientApp; the gateway's socket comes from the node's own config."""
    clientapp = require("flwr.clientapp", extra="federated", purpose="a relay")
    app = clientapp.ClientApp()
    app.query(QUERY)(relay)
    return app


def relay(message: Any, context: Any) -> Any:
    """Carry one letter to the gateway; whatever goes wrong is a fixed code."""
    flower = require("flwr.app", extra="federated", purpose="a relay")
    try:
        letter = message.content[RECORD][FIELD]
        reply = _carry(str(context.node_config["gateway"]), letter)
    except Exception:  # Flower would send its text to the coordinator
        reply = refusal(Refusal.UNREACHABLE)
    content = flower.RecordDict({RECORD: flower.ConfigRecord({FIELD: reply})})
    return flower.Message(content, reply_to=message)


def _carry(path: str, letter: Any) -> bytes:
    if not isinstance(letter, bytes) or len(letter) > LARGEST_QUESTION:
        return refusal(Refusal.MALFORMED)
    try:
        return carry(path, letter, PATIENCE)
    except (OSError, MessageError):
        return refusal(Refusal.UNREACHABLE)


POLL = 0.2  # seconds between looks for replies


class GridTransport:
    """Letters over Flower: one message a holder and round, with a time to live of its own.

    Parameters
    ----------
    grid : flwr.serverapp.Grid
    nodes : mapping of holder's name to id of its registered SuperNode
    clock : Clock, optional
    """

    def __init__(self, grid: Any, nodes: Mapping[str, int], clock: Clock = CLOCK) -> None:
        self._grid, self._nodes, self._clock = grid, dict(nodes), clock
        self.names = tuple(nodes)
        self._flower = require("flwr.app", extra="federated", purpose="a study over Flower")

    def exchange(self, letters: Mapping[str, bytes], seconds: float) -> dict[str, bytes]:
        """The replies of nodes that are online, as far as they came within the time."""
        limit = Limit(seconds, clock=self._clock)
        holders = {self._nodes[name]: name for name in letters}
        online = set(self._grid.get_node_ids())
        messages = [
            self._message(node, letters[name], seconds)
            for node, name in holders.items()
            if node in online
        ]
        replies: dict[str, bytes] = {}
        waiting = set(self._grid.push_messages(messages)) if messages else set()
        while waiting and limit.left > 0:
            for message in self._grid.pull_messages(waiting):
                waiting.discard(message.metadata.reply_to_message_id)
                name = holders.get(message.metadata.src_node_id)
                reply = _letter_of(message)
                if name is not None and reply is not None:
                    replies[name] = reply
            if waiting:
                self._clock.sleep(POLL)
        return replies

    def _message(self, node: int, letter: bytes, seconds: float) -> Any:
        flower = self._flower
        content = flower.RecordDict({RECORD: flower.ConfigRecord({FIELD: letter})})
        return flower.Message(
            content, dst_node_id=node, message_type=f"query.{QUERY}", ttl=max(seconds, 1.0)
        )


def _letter_of(message: Any) -> bytes | None:
    """The letter in a message; None where Flower reports a failure or something else came."""
    if message.has_error():
        return None
    try:
        letter = message.content[RECORD][FIELD]
    except (KeyError, TypeError):
        return b""
    return letter if isinstance(letter, bytes) else b""


WRONG_USE, LIMIT = 2, 3


def make_server_app() -> Any:
    """The coordinator as a Flower ServerApp; the plan's path comes from the run's config."""
    serverapp = require("flwr.serverapp", extra="federated", purpose="a study over Flower")
    app = serverapp.ServerApp()
    app.main()(main)
    return app


def main(grid: Any, context: Any) -> None:
    """Run the plan named in the run's config; its facts file says how it ended."""
    plan = StudyConfig.load(context.run_config["plan"])
    nodes = json.loads(context.run_config["nodes"])
    grid = GridTransport(grid, {name: int(nodes[name]) for name in plan.holders})
    try:
        # Flower lets others speak to holders too: these believe the coordinator's key alone
        run_study(plan, SignedMessages(grid, plan.keys / "coordinator" / "sign.key"))
    except Exception as error:
        # all that is known here came as codes and noised numbers
        limit = isinstance(error, BudgetError) or getattr(error, "code", None) == Refusal.BUDGET
        facts = {"ok": False, "reason": str(error), "exit": LIMIT if limit else WRONG_USE}
        write_text_atomically(plan.facts, json.dumps(facts, indent=2) + "\n")
        if not isinstance(error, ValueError | TypeError | OSError):
            raise
