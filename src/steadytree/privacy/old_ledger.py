"""Ledgers of version 1, whose lines were not chained, and their upgrade."""

import contextlib
import hashlib
import json
import os
import re
import zlib
from decimal import Decimal

from steadytree._base.exceptions import BudgetError, ChainError
from steadytree._base.files import check_can_write, write_text_atomically
from steadytree.privacy.ledger import damaged
from steadytree.privacy.ledger_lines import (
    OLD_HEADER,
    START,
    Entry,
    Mark,
    decimal_of,
    first_line,
    mark_path,
)

_NUMBER = rb"([0-9.eE+-]+)"
_OLD_LINE = re.compile(_NUMBER + b" " + _NUMBER + rb" ([0-9a-f]{8}) (\[.*\]) ([0-9a-f]{8})")


def upgrade_ledger(path: str | os.PathLike[str], budget: float, delta: float = 0.0) -> None:
    """Convert a ledger of version 1 to the form that `Ledger` reads, with its mark.

    No process may use the ledger meanwhile. A ledger with an incomplete line is refused: version 1
    continued after a line that a crash had interrupted, and such a line cannot be distinguished
    from an altered one. That a line was removed cannot be detected in version 1, nor that its first
    line was altered; so the budget must be given. If this is interrupted, run it again.
    """
    path = check_can_write(path)
    content = path.read_bytes()
    if not content.startswith(OLD_HEADER.encode() + b" "):
        raise ValueError(f"{path.name!r} is not a ledger of version 1: nothing to upgrade.")
    terms = decimal_of(budget, "budget"), decimal_of(delta, "delta")
    try:
        bodies = old_bodies(content, terms)
    except (ValueError, ArithmeticError) as error:
        raise BudgetError(
            f"{path.name!r} was created with another budget, or has a truncated or altered line: "
            "check --budget, restore an intact copy, or consider the budget of these rows spent."
        ) from error
    before, lines = START, []
    for body in bodies:
        mark = Mark.after(before, body)
        lines.append(mark.line)
        before = mark.head
    # the mark first: an old ledger with a mark is refused, and the upgrade can be repeated
    mark.begin(mark_path(path))
    found = None
    with contextlib.suppress(ChainError):
        found = Mark.read(mark_path(path))
    if found != mark:
        raise damaged(path)
    write_text_atomically(path, b"".join(lines).decode(), for_owner=True)


def old_bodies(content: bytes, terms: tuple[Decimal, Decimal]) -> list[bytes]:
    """Lines of version 1, which were not chained, in today's form.

    The id is a hash, so that a repeated upgrade gives the same.
    """
    first, *lines, tail = content.split(b"\n")
    if first != f"{OLD_HEADER} budget {terms[0]} delta {terms[1]}".encode() or tail:
        raise ValueError("the first line differs, or the last is incomplete.")
    bodies = [first_line(hashlib.sha256(content).hexdigest()[:32], *terms)]
    for number, line in enumerate(lines, 1):
        found = _OLD_LINE.fullmatch(line)
        if found is None:
            raise ValueError("a line is incomplete.")
        epsilon, delta, first_check, texts, last_check = found.groups()
        if first_check != _checksum(epsilon + b" " + delta) or last_check != _checksum(line[:-9]):
            raise ValueError("a line was altered.")
        both = {"epsilon": epsilon, "delta": delta}
        amounts = [decimal_of(Decimal(amount.decode()), name) for name, amount in both.items()]
        bodies.append(Entry(amounts[0], amounts[1], *json.loads(texts)).to_body(number))
    return bodies


def _checksum(body: bytes) -> bytes:
    return f"{zlib.crc32(body):08x}".encode()
