"""Letters: questions and answers as bytes, the same on a socket, in a file and over Flower.

A letter is one JSON object. Replies carry an answer or one code of a fixed list: no text of an
error ever travels, since it could tell of rows. This module and what it imports need the standard
library only, so that a relay starts quickly.
"""

import hashlib
import json
import socket
from enum import StrEnum
from typing import Any

from steadytree._base.clock import CLOCK, Clock, Limit

VERSION = 1
LARGEST_QUESTION = 8 * 2**20
LARGEST_REPLY = 64 * 2**20
LENGTH = 4  # bytes before each frame


class Refusal(StrEnum):
    """Why there is no answer; nothing else is said."""

    MALFORMED = "MALFORMED"
    TOO_LARGE = "TOO_LARGE"
    SCHEMA = "SCHEMA"
    BUDGET = "BUDGET"
    CHANGED = "CHANGED"
    STALE = "STALE"
    LOST = "LOST"
    BUSY = "BUSY"
    INTERNAL = "INTERNAL"
    UNREACHABLE = "UNREACHABLE"
    TOO_SMALL = "TOO_SMALL"
    UNSIGNED = "UNSIGNED"


MEANING = {
    Refusal.MALFORMED: "it could not read the question",
    Refusal.TOO_LARGE: "the question is too large",
    Refusal.SCHEMA: "its schema differs",
    Refusal.BUDGET: "its privacy budget does not cover the question",
    Refusal.CHANGED: "another question was asked under the same study and number",
    Refusal.STALE: "a later question of the study was answered already",
    Refusal.LOST: "the question was paid for, but its stored answer is gone",
    Refusal.BUSY: "it has too many open connections",
    Refusal.INTERNAL: "it failed by itself (its own log says more)",
    Refusal.UNREACHABLE: "its gateway could not be reached",
    Refusal.TOO_SMALL: "the question's epsilon is less than it answers for",
    Refusal.UNSIGNED: "the letter is not signed with the coordinator's key that it has",
}
PASSING = frozenset([Refusal.BUSY, Refusal.INTERNAL, Refusal.UNREACHABLE])  # worth asking again


class MessageError(ValueError):
    """Bytes that are no letter."""


class UnsignedError(MessageError):
    """A letter without the signature that it needs."""


def write(content: dict[str, Any]) -> bytes:
    """One form for each content, so that its digest is one too.

    Examples
    --------
    >>> write({"b": 1, "a": 0.5})
    b'{"a":0.5,"b":1}'
    """
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def read(letter: bytes, largest: int = LARGEST_REPLY) -> dict[str, Any]:
    """The JSON object in a letter; refuses anything else."""
    if len(letter) > largest:
        raise MessageError("a letter is too large.")
    try:
        content = json.loads(letter, parse_constant=_no_constant, object_pairs_hook=only_once)
    except (ValueError, RecursionError):
        raise MessageError("a letter is not JSON.") from None
    if not isinstance(content, dict) or content.get("version") != VERSION:
        raise MessageError(f"a letter must be an object of version {VERSION}.")
    return content


STATUS = write({"version": VERSION, "type": "status"})
# a signed letter: this line, then the signature, then the letter as it is
SIGNED, SIGNATURE = b"steadytree signed letter 1\n", 64


def envelope(letter: bytes, signature: bytes) -> bytes:
    """A letter with its signature before it."""
    return SIGNED + signature + letter


def unsigned(letter: bytes) -> bytes:
    """A letter without its envelope, whoever signed it."""
    if letter.startswith(SIGNED):
        return letter[len(SIGNED) + SIGNATURE :]
    return letter


def refusal(code: Refusal) -> bytes:
    """The reply that says why there is no answer."""
    return write({"version": VERSION, "ok": False, "code": str(code)})


def refusal_code(content: dict[str, Any]) -> Refusal | None:
    """The code of a refusal; None for any other letter."""
    if content.get("ok") is not False:
        return None
    try:
        return Refusal(str(content.get("code")))
    except ValueError:
        return Refusal.MALFORMED


def digest_of(letter: bytes) -> str:
    """What tells questions apart."""
    return hashlib.sha256(letter).hexdigest()


def only_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON, refused where a name comes twice: readers would see different ones."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name comes twice.")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(name)


# ---- frames: four bytes of length, then the letter ----
def send_frame(connection: socket.socket, letter: bytes) -> None:
    """Send one letter."""
    connection.sendall(len(letter).to_bytes(LENGTH, "big") + letter)


def receive_frame(
    connection: socket.socket, largest: int, seconds: float, clock: Clock = CLOCK
) -> bytes:
    """Receive one letter of at most `largest` bytes, all of it within the time."""
    limit = Limit(seconds, clock=clock)
    size = int.from_bytes(_receive(connection, LENGTH, limit), "big")
    if size > largest:
        raise MessageError("a letter is too large.")
    return _receive(connection, size, limit)


def _receive(connection: socket.socket, size: int, limit: Limit) -> bytes:
    parts, missing = [], size
    while missing:
        left = limit.left
        if left == 0:
            raise TimeoutError("a letter took too long.")
        connection.settimeout(left)
        part = connection.recv(min(missing, 1 << 20))
        if not part:
            raise MessageError("a letter was cut off.")
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


def carry(path: str, letter: bytes, seconds: float) -> bytes:
    """Carry a letter to the gateway at a Unix socket and bring back its reply."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(seconds)
        connection.connect(path)
        send_frame(connection, letter)
        return receive_frame(connection, LARGEST_REPLY, seconds)
