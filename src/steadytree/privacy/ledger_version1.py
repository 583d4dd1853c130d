"""upgrade_ledger: a ledger of version 1, whose lines nothing bound together, as one of today."""

import hashlib
import json
import os
import re
import zlib
from decimal import Decimal

from steadytree._base.exceptions import BudgetError, ChainError
from steadytree._base.files import check_can_write, write_text_atomically
from steadytree.privacy.ledger import OLD_HEADER, first_line, not_whole
from steadytree.privacy.ledger_lines import START, Entry, Mark, decimal_of, mark_path, seal, unseal

_NUMBER = rb"([0-9.eE+-]+)"
_LINE = re.compile(_NUMBER + b" " + _NUMBER + rb" ([0-9a-f]{8}) (\[.*\]) ([0-9a-f]{8})")


def upgrade_ledger(path: str | os.PathLike[str], budget: float, delta: float = 0.0) -> None:
    """Write a ledger of version 1 again in the form that `Ledger` reads, with its mark.

    Nobody may use the ledger meanwhile. Only one whose lines are all whole is taken: version 1 went
    on behind a line that a crash had cut off, and nobody can tell such a line from one that was
    altered. That a line was removed cannot be seen in version 1. When this is interrupted, run it
    again.

    Parameters
    ----------
    path : str or path-like
    budget, delta : float
        As the ledger was begun with; version 1 could not tell whether its first line was altered.

    Raises
    ------
    BudgetError
        Where a line is not whole, or there is a mark of other lines; nothing is changed then.
    """
    place = check_can_write(path)
    content = place.read_bytes()
    if not content.startswith(OLD_HEADER.encode() + b" "):
        raise ValueError(f"{place.name!r} is no ledger of version 1: there is nothing to upgrade.")
    terms = decimal_of(budget, "budget"), decimal_of(delta, "delta")
    try:
        bodies = _bodies(content, terms)
    except (ValueError, ArithmeticError) as error:
        raise BudgetError(
            f"{place.name!r} was begun with another budget, or has a line that was cut off or "
            "altered: check --budget, restore a whole one, or count these rows' budget as spent."
        ) from error
    before, lines = START, []
    for body in bodies:
        lines.append(seal(before, body))
        mark = Mark(before, lines[-1])
        before = unseal(before, lines[-1])[1]
    # the mark first: an old ledger with a mark is not spent from, and all this can be done again
    mark.begin(mark_path(place))
    try:
        found = Mark.read(mark_path(place))
    except ChainError as error:
        raise not_whole(place) from error
    if found != mark:
        raise not_whole(place)
    write_text_atomically(place, b"".join(lines).decode(), for_owner=True)


def _bodies(content: bytes, terms: tuple[Decimal, Decimal]) -> list[bytes]:
    """The lines as they are written today; an id that another try would give too."""
    first, *lines, tail = content.split(b"\n")
    if first != f"{OLD_HEADER} budget {terms[0]} delta {terms[1]}".encode() or tail:
        raise ValueError("the first line says something else, or the last is not whole.")
    name = hashlib.sha256(content).hexdigest()[:32]
    entries = [_entry(line) for line in lines]
    return [
        first_line(name, *terms),
        *(entry.to_body(number) for number, entry in enumerate(entries, 1)),
    ]


def _entry(line: bytes) -> Entry:
    found = _LINE.fullmatch(line)
    if found is None:
        raise ValueError("a line is not whole.")
    epsilon, delta, first_check, texts, last_check = found.groups()
    if first_check != _check(epsilon + b" " + delta) or last_check != _check(line[:-9]):
        raise ValueError("a line was altered.")
    return Entry(Decimal(epsilon.decode()), Decimal(delta.decode()), *json.loads(texts))


def _check(body: bytes) -> bytes:
    return f"{zlib.crc32(body):08x}".encode()
