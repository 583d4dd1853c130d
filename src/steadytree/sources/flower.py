"""The coordinator's side of Flower: letters as messages of a ServerApp's grid."""

from collections.abc import Mapping
from typing import Any

from steadytree.core.clock import CLOCK, Clock, Limit
from steadytree.core.extras import require
from steadytree.sources.flower_relay import FIELD, QUERY, RECORD

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
