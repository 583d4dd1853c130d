"""Entry: one line of a ledger, and what several of them cost together."""

import json
import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

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
