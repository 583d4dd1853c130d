"""Entry: one line of a ledger, and what several of them cost together."""

import hashlib
import json
import math
import os
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

from steadytree._base.exceptions import ChainError
from steadytree._base.files import create_text, write_text_atomically

START = "0" * 64  # stands for the line before the first


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
    steadytree.privacy.ledger_lines.ChainError: a line was altered or is not in its place.
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


HEADER = "steadytree ledger mark 1"


class Mark(NamedTuple):
    """What a ledger ends with, or will end with when the write that is under way is done.

    The mark is on the disk before its line is. So a ledger ends with the mark's line, or a crash
    came in between and the line is completed from the mark: nothing that was paid is forgotten,
    and no amount has to be guessed.

    Parameters
    ----------
    before : str
        Hash of all lines before the newest.
    line : bytes
        The newest line, with its hash and line end.
    """

    before: str
    line: bytes

    @property
    def is_first(self) -> bool:
        """Whether nothing was spent yet."""
        return self.before == START

    def missing(self, chain: Chain) -> bytes:
        """What a write that was cut off left out; a ledger that does not fit is refused."""
        _, head = unseal(self.before, self.line)
        if chain.head == self.before and self.line.startswith(chain.tail):
            return self.line[len(chain.tail) :]
        # a mark that is older than its ledger takes nothing away from what the ledger shows
        if head in chain.heads and not chain.tail:
            return b""
        raise ChainError("the ledger does not end as its mark says.")

    @classmethod
    def read(cls, path: Path) -> "Mark | None":
        """The mark in a file, None where there is no file; a damaged one is refused."""
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        first, _, line = content.partition(b"\n")
        before = first[-64:].decode("ascii", "replace")
        if first != f"{HEADER} {before}".encode():
            raise ChainError("the mark was altered.")
        unseal(before, line)
        return cls(before, line)

    def begin(self, path: Path) -> None:
        """Write the first mark, unless another process did."""
        create_text(path, self._text)

    def write(self, path: Path) -> None:
        """Put this mark into the place of the one before; it is on the disk when this returns."""
        write_text_atomically(path, self._text, for_owner=True)

    @property
    def _text(self) -> str:
        return f"{HEADER} {self.before}\n{self.line.decode()}"


def mark_path(ledger: str | os.PathLike[str]) -> Path:
    """The mark of a ledger lies beside it."""
    path = Path(ledger)
    return path.with_name(path.name + ".mark")


EVERYTHING = Decimal("Infinity")
ZERO = Decimal(0)
LONGEST_TEXT = 200


@dataclass(frozen=True)
class Entry:
    """What one answer cost.

    Parameters
    ----------
    epsilon, delta : Decimal
    what : str
        What was released: "tree", "leaf counts", "number of rows".
    mechanism : str
        How: "discrete Laplace", "whole tree".
    group, part : str
        Answers of one group about parts that share no row cost as much as the dearest part;
        empty where the answer is about all rows.
    request : str
        Name of the request that was answered, so that a repeated one can be told.
    """

    epsilon: Decimal
    delta: Decimal = ZERO
    what: str = ""
    mechanism: str = ""
    group: str = ""
    part: str = ""
    request: str = ""

    def to_body(self, number: int) -> bytes:
        """One line of ASCII, its number in the ledger first."""
        texts = json.dumps([self.what, self.mechanism, self.group, self.part, self.request])
        return f"{number} {self.epsilon} {self.delta} {texts}".encode()

    @classmethod
    def from_body(cls, body: bytes, number: int) -> "Entry":
        """Read a line that `to_body` wrote for this place."""
        own, epsilon, delta, texts = body.decode("ascii").split(" ", 3)
        if own != str(number):
            raise ValueError(f"line {number} bears the number {own}.")
        return cls(Decimal(epsilon), Decimal(delta), *json.loads(texts))


def decimal_of(value: float | Decimal, name: str, least: float = 0.0) -> Decimal:
    """The number as it prints, so that ten times 0.1 is 1."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise TypeError(f"{name} must be a number, got {type(value).__name__}.")
    if not math.isfinite(value) or value < least:
        raise ValueError(f"{name} must be finite and at least {least:g}, got {value}.")
    return value if isinstance(value, Decimal) else Decimal(repr(float(value)))


def compose(entries: Iterable[Entry]) -> tuple[Decimal, Decimal]:
    """Epsilon and delta of all entries together.

    Answers about the same rows add (sequential composition). Within a group, answers about parts
    that share no row cost what the dearest part costs (parallel composition): an added or removed
    row lies in one part only, and the answers about the others do not change at all. The parts
    must be told apart by what was public before the group began.
    """
    groups: dict[str, dict[str, list[Entry]]] = defaultdict(lambda: defaultdict(list))
    alone = []
    for entry in entries:
        if entry.group:
            groups[entry.group][entry.part].append(entry)
        else:
            alone.append(entry)
    epsilon = sum((entry.epsilon for entry in alone), ZERO)
    delta = sum((entry.delta for entry in alone), ZERO)
    for parts in groups.values():
        epsilon += max(sum((e.epsilon for e in part), ZERO) for part in parts.values())
        delta += max(sum((e.delta for e in part), ZERO) for part in parts.values())
    return epsilon, delta
