"""The holder's side of Flower: a ClientApp that hands letters to the gateway and back.

It sees no rows and draws no noise: it may run as a user that can open the gateway's socket and
nothing else. It imports little, because Flower starts a process for every message.
"""

from typing import Any

from steadytree.core.extras import require
from steadytree.sources.letters import LARGEST_QUESTION, Code, LetterError, carry, refusal

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
        reply = refusal(Code.UNREACHABLE)
    content = flower.RecordDict({RECORD: flower.ConfigRecord({FIELD: reply})})
    return flower.Message(content, reply_to=message)


def _carry(path: str, letter: Any) -> bytes:
    if not isinstance(letter, bytes) or len(letter) > LARGEST_QUESTION:
        return refusal(Code.MALFORMED)
    try:
        return carry(path, letter, PATIENCE)
    except (OSError, LetterError):
        return refusal(Code.UNREACHABLE)
