"""Entry: one line of a ledger, which reads itself even where a crash cut it off."""

import json
import math
import re
import zlib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

# The amount stands first and has a check of its own: a line cut off behind it still counts.
_AMOUNT = re.compile(rb"^([0-9.eE+-]+) ([0-9.eE+-]+) ([0-9a-f]{8}) ")
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
    whole : bool
        False where the line was cut off or altered; it counts all the same.
    """

    epsilon: Decimal
    delta: Decimal = ZERO
    what: str = ""
    mechanism: str = ""
    group: str = ""
    part: str = ""
    request: str = ""
    whole: bool = True

    def to_line(self) -> bytes:
        """One line of ASCII, its amount first, a checksum last."""
        amount = f"{self.epsilon} {self.delta}".encode()
        rest = json.dumps([self.what, self.mechanism, self.group, self.part, self.request]).encode()
        body = amount + b" " + _check(amount) + b" " + rest
        return body + b" " + _check(body) + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> "Entry":
        """Read a line; what cannot be read costs what it may have cost, at worst everything."""
        head = _AMOUNT.match(line)
        if head is None or _check(head[1] + b" " + head[2]) != head[3]:
            return cls(EVERYTHING, ZERO, "line that cannot be read", whole=False)
        epsilon, delta = Decimal(head[1].decode()), Decimal(head[2].decode())
        body, _, check = line.rpartition(b" ")
        if _check(body) != check:
            return cls(epsilon, delta, "line that was cut off", whole=False)
        return cls(epsilon, delta, *json.loads(body[head.end() :]))


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


def _check(body: bytes) -> bytes:
    return f"{zlib.crc32(body):08x}".encode()
