"""Chain: the lines of a ledger, each bound by a hash to all lines before it."""

import hashlib
from typing import NamedTuple

START = "0" * 64  # stands for the line before the first


class ChainError(ValueError):
    """A line is not the one that was written, or not in its place."""


class Chain(NamedTuple):
    """Whole lines of a ledger, and what stands behind the last of them.

    Parameters
    ----------
    bodies : list of bytes
        The lines without their hashes.
    heads : list of str
        `heads[k]` is the hash of the first k lines.
    tail : bytes
        What follows the last line end; empty unless a write was cut off.
    """

    bodies: list[bytes]
    heads: list[str]
    tail: bytes

    @property
    def head(self) -> str:
        """What stands for all lines: no other lines have it."""
        return self.heads[-1]

    @classmethod
    def of(cls, content: bytes) -> "Chain":
        """Read the lines of a file; a line that was altered, moved or repeated is refused."""
        *lines, tail = content.split(b"\n")
        bodies, heads = [], [START]
        for line in lines:
            body, head = unseal(heads[-1], line + b"\n")
            bodies.append(body)
            heads.append(head)
        return cls(bodies, heads, tail)


def seal(before: str, body: bytes) -> bytes:
    """A line: its body, then the hash of everything up to here.

    Examples
    --------
    >>> line = seal(START, b"first")
    >>> body, head = unseal(START, line)
    >>> body
    b'first'
    >>> unseal(head, line)
    Traceback (most recent call last):
        ...
    steadytree.privacy.chain.ChainError: a line was altered or is not in its place.
    """
    return body + b" " + _hash(before, body).encode() + b"\n"


def unseal(before: str, line: bytes) -> tuple[bytes, str]:
    """Body and hash of a line that stands behind the lines with the hash `before`."""
    body = line[:-66]
    if line != seal(before, body):
        raise ChainError("a line was altered or is not in its place.")
    return body, line[-65:-1].decode()


def _hash(before: str, body: bytes) -> str:
    return hashlib.sha256(before.encode() + b" " + body).hexdigest()
