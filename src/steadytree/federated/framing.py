"""Messages as bytes, the same on a socket, in a file and over Flower.

A message is one JSON object in canonical form. A reply carries an answer or one code of a fixed
list: no text of an error ever travels, since it could reveal rows. This module imports little, so
that a relay starts quickly.
"""

import hashlib
import json
import socket
from enum import StrEnum
from typing import Any

import msgspec

from steadytree._base.clock import CLOCK, Clock, Limit
from steadytree._base.exceptions import MessageError

VERSION = 2
LARGEST_REQUEST = 8 * 2**20
LARGEST_REPLY = 64 * 2**20
LENGTH = 4  # bytes before each frame
_ENCODER = msgspec.json.Encoder(order="sorted")


class Refusal(StrEnum):
    """Why there is no answer; all that a refusal reveals."""

    meaning: str

    def __new__(cls, kind: str, meaning: str) -> "Refusal":
        member = str.__new__(cls, kind)
        member._value_, member.meaning = kind, meaning
        return member

    MALFORMED = "MALFORMED", "it could not read the question"
    TOO_LARGE = "TOO_LARGE", "the question is too large"
    SCHEMA = "SCHEMA", "its schema differs"
    BUDGET = "BUDGET", "its privacy budget does not cover the question"
    CHANGED = "CHANGED", "another question was asked under the same study and number"
    STALE = "STALE", "a later question of the study was answered already"
    LOST = "LOST", "the question was paid for, but its stored answer is gone"
    BUSY = "BUSY", "it has too many open connections"
    INTERNAL = "INTERNAL", "it failed by itself (its own log says more)"
    UNREACHABLE = "UNREACHABLE", "its gateway could not be reached"
    TOO_SMALL = "TOO_SMALL", "the question's epsilon is less than it answers for"
    LEDGER = "LEDGER", "its ledger was copied back or replaced since it was last seen"
    PLAN = "PLAN", "the question is not one of the plan that it agreed to"
    QUOTA = "QUOTA", "the study used up the work that it does for one"
    UNSIGNED = "UNSIGNED", "the message is not signed with the coordinator's key that it has"


PASSING = frozenset([Refusal.BUSY, Refusal.INTERNAL, Refusal.UNREACHABLE])  # worth asking again


def write(content: Any) -> bytes:
    """The canonical text of a message: keys sorted, no spaces, each number in its shortest form.

    >>> write({"b": 1, "a": 0.5})
    b'{"a":0.5,"b":1}'
    """
    message = _ENCODER.encode(content)
    if b"null" in message:  # msgspec writes nan and infinity as null: refuse them
        json.dumps(msgspec.to_builtins(content), allow_nan=False)
    return message


def read(message: bytes, largest: int = LARGEST_REPLY) -> dict[str, Any]:
    """The JSON object in a message; refuses anything else, and all bytes but the canonical ones."""
    if len(message) > largest:
        raise MessageError("a message is too large.")
    try:
        content = msgspec.json.decode(message)
        canonical = write(content)
    except (msgspec.DecodeError, ValueError, RecursionError):
        raise MessageError("a message is not JSON.") from None
    version = content.get("version") if isinstance(content, dict) else None
    version = version if type(version) is int else 0
    if 0 < version < VERSION:
        raise MessageError(
            f"a message is of version {version}, this side uses version {VERSION}: update "
            "steadytree on the side that sent it."
        )
    if version != VERSION:
        raise MessageError(f"a message must be an object of version {VERSION}.")
    if canonical != message:
        raise MessageError("a message is not in canonical form.")
    return dict(content)


STATUS = write({"version": VERSION, "type": "status"})
# a signed message: this line, then the signature, then the message as it is
SIGNED, SIGNATURE = b"steadytree signed letter 1\n", 64


def envelope(message: bytes, signature: bytes) -> bytes:
    """A message with its signature before it."""
    return SIGNED + signature + message


def addressed(holder: str, message: bytes) -> bytes:
    """The bytes that are signed: a message to one holder, which nobody else accepts."""
    return SIGNED + holder.encode() + b"\n" + message


def unsigned(message: bytes) -> bytes:
    """A message without its envelope, whoever signed it."""
    return message[len(SIGNED) + SIGNATURE :] if message.startswith(SIGNED) else message


def refusal(kind: Refusal) -> bytes:
    """The reply that says why there is no answer."""
    return write({"version": VERSION, "ok": False, "code": str(kind)})


def refusal_in(content: dict[str, Any]) -> Refusal | None:
    """The code of a refusal; None for any other message."""
    if content.get("ok") is not False:
        return None
    return Refusal.__members__.get(str(content.get("code")), Refusal.MALFORMED)


def digest_of(message: bytes) -> str:
    return hashlib.sha256(message).hexdigest()


# ---- frames: four bytes of length, then the message ----
def send_frame(connection: socket.socket, message: bytes) -> None:
    connection.sendall(len(message).to_bytes(LENGTH, "big") + message)


def receive_frame(
    connection: socket.socket, largest: int, seconds: float, clock: Clock = CLOCK
) -> bytes:
    """Receive one message of at most `largest` bytes, all of it within the time."""
    limit = Limit(seconds, clock=clock)
    size = int.from_bytes(_receive(connection, LENGTH, limit), "big")
    if size > largest:
        raise MessageError("a message is too large.")
    return _receive(connection, size, limit)


def _receive(connection: socket.socket, size: int, limit: Limit) -> bytes:
    content = bytearray()
    while len(content) < size:
        if (left := limit.left) == 0:
            raise TimeoutError("a message took too long.")
        connection.settimeout(left)
        part = connection.recv(min(size - len(content), 1 << 20))
        if not part:
            raise MessageError("a message was cut off.")
        content += part
    return bytes(content)


def carry(path: str, message: bytes, seconds: float) -> bytes:
    """Carry a message to the gateway at a Unix socket and bring back its reply."""
    if not hasattr(socket, "AF_UNIX"):
        raise OSError("this system has no Unix sockets: use files (steadytree private answer).")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(seconds)
        connection.connect(path)
        send_frame(connection, message)
        return receive_frame(connection, LARGEST_REPLY, seconds)
