"""Lines of a ledger: chained by hashes, marked in a second file, and what they cost together."""

import hashlib
import json
import math
import os
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Decimal, localcontext
from pathlib import Path
from typing import NamedTuple

from steadytree._base.exceptions import ChainError
from steadytree._base.files import create_text, write_text_atomically
from steadytree.privacy.accounting import Conversion, Cost

START = "0" * 64  # hash before the first line
HEADER = "steadytree ledger 2"
MARK_HEADER = "steadytree ledger mark 1"
OLD_HEADER = "steadytree ledger 1"
_NAME = re.compile(r"[0-9a-f]{32}")
EVERYTHING = Decimal("Infinity")
ZERO = Decimal(0)


class Chain(NamedTuple):
    """Complete lines of a ledger, and the bytes after the last of them."""

    bodies: list[bytes]  # lines without their hashes
    heads: list[str]  # heads[k] is the hash of the first k lines
    tail: bytes  # empty unless a write was interrupted

    @classmethod
    def of(cls, content: bytes) -> "Chain":
        """Parse the lines of a file; a line that was altered, moved or repeated is refused."""
        *lines, tail = content.split(b"\n")
        bodies, heads = [], [START]
        for line in lines:
            body, head = unseal(heads[-1], line + b"\n")
            bodies.append(body)
            heads.append(head)
        return cls(bodies, heads, tail)


def seal(before: str, body: bytes) -> bytes:
    """A line: its body, then the hash of all lines up to and including it."""
    digest = hashlib.sha256(before.encode() + b" " + body).hexdigest()
    return body + b" " + digest.encode() + b"\n"


def unseal(before: str, line: bytes) -> tuple[bytes, str]:
    """Body and hash of a line that follows the lines with the hash `before`."""
    body = line[:-66]
    if line != seal(before, body):
        raise ChainError("a line was altered or is not in its position.")
    return body, line[-65:-1].decode()


class Mark(NamedTuple):
    """The last line of a ledger, in a second file that is written first.

    A ledger ends with the mark's line, or a crash interrupted its write and the line is completed
    from the mark: nothing that was spent is forgotten, and no amount has to be guessed.
    """

    before: str  # hash of all lines before the newest
    line: bytes  # the newest line, with its hash and line end

    @classmethod
    def after(cls, before: str, body: bytes) -> "Mark":
        """The mark of a new line after the lines with the hash `before`."""
        return cls(before, seal(before, body))

    @property
    def head(self) -> str:
        return self.line[-65:-1].decode()

    def missing(self, chain: Chain) -> bytes:
        """The bytes that an interrupted write left out; a ledger that does not match is refused."""
        unseal(self.before, self.line)
        if chain.heads[-1] == self.before and self.line.startswith(chain.tail):
            return self.line[len(chain.tail) :]
        # a mark older than its ledger does not reduce what the ledger shows
        if self.head in chain.heads and not chain.tail:
            return b""
        raise ChainError("the ledger does not end with the line of its mark.")

    @classmethod
    def read(cls, path: Path) -> "Mark | None":
        """The mark in a file, None if there is no file; a damaged one is refused."""
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        first, _, line = content.partition(b"\n")
        before = first[-64:].decode("ascii", "replace")
        if first != f"{MARK_HEADER} {before}".encode():
            raise ChainError("the mark was altered.")
        unseal(before, line)
        return cls(before, line)

    def begin(self, path: Path) -> None:
        """Write the first mark, unless another process has done so."""
        create_text(path, self._text)

    def write(self, path: Path) -> None:
        """Replace the mark; the new one is on disk when this returns."""
        write_text_atomically(path, self._text, for_owner=True)

    @property
    def _text(self) -> str:
        return f"{MARK_HEADER} {self.before}\n{self.line.decode()}"


def mark_path(ledger: str | os.PathLike[str]) -> Path:
    """Path of a ledger's mark, beside the ledger."""
    path = Path(ledger)
    return path.with_name(path.name + ".mark")


@dataclass(frozen=True)
class Entry:
    """The cost of one answer."""

    epsilon: Decimal
    delta: Decimal = ZERO
    what: str = ""  # what was released: "tree", "leaf counts", "number of rows"
    mechanism: str = ""  # "discrete Laplace", "whole tree"
    group: str = ""  # answers about disjoint parts of the rows; empty for all rows
    part: str = ""
    request: str = ""  # name of the answered request, to recognize a repeated one
    # of an answer under zCDP; then epsilon and delta are 0
    rho: Decimal = field(default=ZERO, kw_only=True)

    def to_body(self, number: int) -> bytes:
        """One line of ASCII that begins with its number; rho is written only if there is one."""
        listed = [self.what, self.mechanism, self.group, self.part, self.request]
        texts = json.dumps(listed + [str(self.rho)] * bool(self.rho))
        return f"{number} {self.epsilon} {self.delta} {texts}".encode()

    @classmethod
    def from_body(cls, body: bytes, number: int) -> "Entry":
        """Parse a line that `to_body` wrote with this number.

        Anybody can compute hashes: a line that was forged behind the last one must not give
        anything back, so no amount is negative.
        """
        own, epsilon, delta, texts = body.decode("ascii").split(" ", 3)
        if own != str(number):
            raise ValueError(f"line {number} has the number {own}.")
        named = [*json.loads(texts)]
        rho = named.pop() if len(named) > 5 else "0"
        if not all(isinstance(text, str) for text in (*named, rho)):
            raise ValueError(f"line {number} has something other than texts.")
        amounts = {"epsilon": epsilon, "delta": delta, "rho": rho}
        checked = [decimal_of(Decimal(amount), name) for name, amount in amounts.items()]
        return cls(checked[0], checked[1], *named, rho=checked[2])


class ChainHead(NamedTuple):
    """How far a ledger had come: its id, its number of lines, and the hash of all of them."""

    ledger: str
    number: int
    head: str


def first_line(name: str, budget: Decimal, delta: Decimal) -> bytes:
    """The first line of a ledger: its random id, and all that may be spent."""
    return f"{HEADER} id {name} budget {budget} delta {delta}".encode()


class Account(NamedTuple):
    """What the files of a ledger show; reading them changes nothing."""

    name: str  # the ledger's id
    terms: tuple[str, str]  # budget and delta, as they are written
    entries: list["Entry"]
    heads: list[str]  # of the chain
    mark: Mark
    missing: bytes  # the rest of an interrupted line

    @classmethod
    def read(cls, content: bytes, mark: Mark | None) -> "Account":
        """The lines of a ledger, completed from its mark; a ChainError if they do not match."""
        try:
            if mark is None:
                raise ChainError("there is no mark.")
            missing = mark.missing(Chain.of(content))
            chain = Chain.of(content + missing)
            first, *bodies = chain.bodies
            entries = [Entry.from_body(body, n) for n, body in enumerate(bodies, 1)]
            start, name, terms = first.decode().partition(" id ")[0], *_terms(first)
            if start != HEADER or not _NAME.fullmatch(name):
                raise ChainError("the first line is not that of a ledger.")
            for term in terms:
                decimal_of(Decimal(term), "budget")
        except (ValueError, ArithmeticError, TypeError) as error:
            raise ChainError(str(error)) from error
        return cls(name, terms, entries, chain.heads, mark, missing)

    @property
    def head(self) -> ChainHead:
        return ChainHead(self.name, len(self.heads) - 1, self.heads[-1])

    def has(self, head: ChainHead) -> bool:
        """Whether this ledger had come to `head`: it is no older copy, and no fork."""
        known = head.ledger == self.name and 0 <= head.number < len(self.heads)
        return known and self.heads[head.number] == head.head


def _terms(first: bytes) -> tuple[str, tuple[str, str]]:
    name, _, terms = first.decode().partition(" id ")[2].partition(" budget ")
    budget, _, delta = terms.partition(" delta ")
    return name, (budget, delta)


def decimal_of(value: float | Decimal, name: str) -> Decimal:
    """The number as it is printed, so that ten times 0.1 is 1."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise TypeError(f"{name} must be a number, got {type(value).__name__}.")
    if not math.isfinite(value) or value < 0:
        raise ValueError(f"{name} must be finite and at least 0, got {value}.")
    return value if isinstance(value, Decimal) else Decimal(repr(float(value)))


def compose(
    entries: Iterable[Entry], delta: Decimal = ZERO, convert: Conversion | None = None
) -> tuple[Decimal, Decimal]:
    """Epsilon and delta of all entries together; `delta` is all that may be lost.

    Answers about the same rows add (sequential composition), as epsilons or under zCDP, whichever
    costs less (`Cost.total`). Within a group, answers about parts that share no row cost as much as
    the most expensive part (parallel composition): an added or removed row lies in one part only,
    and the answers about the others do not change at all. The parts must be defined by what was
    public before the group began. Sums beyond 28 digits are rounded up: nothing is for free.
    """
    with localcontext() as context:
        context.rounding = ROUND_CEILING
        parts: dict[tuple[str, str], Cost] = defaultdict(Cost)
        for entry in entries:
            own = Cost.of(entry.epsilon, entry.delta, entry.rho)
            parts[entry.group, entry.part if entry.group else ""] += own
        groups: dict[str, list[Cost]] = defaultdict(list)
        for (group, _), cost in parts.items():
            groups[group].append(cost)
        both = sum((Cost.most(costs) for costs in groups.values()), Cost())
    return both.total(delta, convert)
