"""A study over Flower: a ClientApp that relays messages, and a ServerApp that runs the study.

The relay sees no rows and samples no noise: it may run as a user that can open the gateway's socket
and nothing else. Flower starts a process for every message, so the imports at the top are few, and
those of the coordinator are in `main`.
"""

import json
from collections.abc import Mapping
from typing import Any

from steadytree._base.clock import CLOCK, Clock, Limit
from steadytree._base.files import write_text_atomically
from steadytree._base.optional import require
from steadytree.federated.framing import LARGEST_REQUEST, Refusal, carry, refusal

QUERY = "steadytree"
RECORD, FIELD = "letter", "json"
PATIENCE = 600.0  # seconds for a gateway to answer
POLL = 0.2  # seconds between polls for replies
WRONG_USE, LIMIT = 2, 3  # exit codes of the command


def make_client_app() -> Any:
    """The relay as a Flower ClientApp; the gateway's socket is in the node's own config."""
    clientapp = require("flwr.clientapp", extra="federated", purpose="a relay")
    app = clientapp.ClientApp()
    app.query(QUERY)(relay)
    return app


def relay(message: Any, context: Any) -> Any:
    """Carry one message to the gateway; every failure is a fixed code."""
    flower = require("flwr.app", extra="federated", purpose="a relay")
    try:
        payload = message.content[RECORD][FIELD]
        gateway = str(context.node_config["gateway"])
        if isinstance(payload, bytes) and len(payload) <= LARGEST_REQUEST:
            reply = carry(gateway, payload, PATIENCE)
        else:
            reply = refusal(Refusal.MALFORMED)
    except Exception:  # Flower would send its text to the coordinator
        reply = refusal(Refusal.UNREACHABLE)
    content = flower.RecordDict({RECORD: flower.ConfigRecord({FIELD: reply})})
    return flower.Message(content, reply_to=message)


class GridTransport:
    """Messages over Flower's grid; `nodes` maps holders to ids of their registered SuperNodes."""

    def __init__(self, grid: Any, nodes: Mapping[str, int], clock: Clock = CLOCK) -> None:
        self._grid, self._nodes, self._clock = grid, dict(nodes), clock
        self.names = tuple(nodes)
        self._flower = require("flwr.app", extra="federated", purpose="a study over Flower")

    def exchange(self, messages: Mapping[str, bytes], seconds: float) -> dict[str, bytes]:
        """The replies of nodes that are online, if they arrive in time."""
        limit = Limit(seconds, clock=self._clock)
        holders = {self._nodes[name]: name for name in messages}
        online = set(self._grid.get_node_ids())
        sent = [
            self._message(node, messages[name], max(seconds, 1.0))
            for node, name in holders.items()
            if node in online
        ]
        replies: dict[str, bytes] = {}
        waiting = set(self._grid.push_messages(sent)) if sent else set()
        while waiting and limit.left > 0:
            for message in self._grid.pull_messages(waiting):
                waiting.discard(message.metadata.reply_to_message_id)
                name = holders.get(message.metadata.src_node_id)
                reply = _payload_of(message)
                if name is not None and reply is not None:
                    replies[name] = reply
            if waiting:
                self._clock.sleep(POLL)
        return replies

    def _message(self, node: int, payload: bytes, seconds: float) -> Any:
        flower, kind = self._flower, f"query.{QUERY}"
        content = flower.RecordDict({RECORD: flower.ConfigRecord({FIELD: payload})})
        return flower.Message(content, dst_node_id=node, message_type=kind, ttl=seconds)


def _payload_of(message: Any) -> bytes | None:
    """The payload of a Flower message; None if Flower reports a failure, empty if there is none."""
    if message.has_error():
        return None
    try:
        payload = message.content[RECORD][FIELD]
    except (KeyError, TypeError):
        return b""
    return payload if isinstance(payload, bytes) else b""


def make_server_app() -> Any:
    """The coordinator as a Flower ServerApp; the plan's path is in the run's config."""
    serverapp = require("flwr.serverapp", extra="federated", purpose="a study over Flower")
    app = serverapp.ServerApp()
    app.main()(main)
    return app


def main(grid: Any, context: Any) -> None:
    """Run the plan named in the run's config; its facts file records how it ended."""
    from steadytree.federated.coordinator import run_study
    from steadytree.federated.signed_files import SignedMessages
    from steadytree.federated.study import StudyConfig
    from steadytree.privacy.ledger import BudgetError

    config = StudyConfig.load(context.run_config["plan"])
    nodes = json.loads(context.run_config["nodes"])
    grid = GridTransport(grid, {name: int(nodes[name]) for name in config.holders})
    try:
        # others can reach holders over Flower too: messages are signed with the coordinator's key
        run_study(config, SignedMessages(grid, config.keys / "coordinator" / "sign.key"))
    except Exception as error:
        # everything known here was received as codes and noised numbers
        limit = isinstance(error, BudgetError) or getattr(error, "refusal", None) == Refusal.BUDGET
        facts = {"ok": False, "reason": str(error), "exit": LIMIT if limit else WRONG_USE}
        write_text_atomically(config.facts, json.dumps(facts, indent=2) + "\n")
        if not isinstance(error, ValueError | TypeError | OSError):
            raise
