"""Ledger: the privacy budget of a data set, spent durably before an answer is released."""

import contextlib
import hashlib
import json
import logging
import os
import re
import secrets
import zlib
from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

from steadytree._base.exceptions import BudgetError, ChainError
from steadytree._base.files import check_can_write, locked, sync_folder, write_text_atomically
from steadytree.privacy.ledger_lines import (
    START,
    ZERO,
    Chain,
    Entry,
    Mark,
    compose,
    decimal_of,
    mark_path,
)

HEADER = "steadytree ledger 2"
OLD_HEADER = "steadytree ledger 1"
LONGEST_TEXT = 200
MODE = 0o600  # for the owner only
_NUMBER = rb"([0-9.eE+-]+)"
_OLD_LINE = re.compile(_NUMBER + b" " + _NUMBER + rb" ([0-9a-f]{8}) (\[.*\]) ([0-9a-f]{8})")
_LOG = logging.getLogger(__name__)
_LOG.addHandler(logging.NullHandler())  # a refusal is raised too, and should not be shown twice


class Ledger:
    """The privacy budget of one data set at one holder, in an append-only file.

    `spend` returns only after the line is on disk (written, then synced); an answer sent after
    that can never be missing from the file, whenever the process or the machine dies. A lock on
    the file makes processes spend one after the other.

    Each line has its number and a hash of all lines before it, and the newest line is also in a
    second file, the mark ("patients.ledger.mark"), which is written first. A last line that was
    interrupted by a crash is completed from the mark and counts as spent. Any other damage (a
    truncated, altered, missing, swapped or repeated line, an older copy, a missing mark) is
    refused.

    A ledger cannot detect that someone restores older copies of both files, forges new ones, or
    keeps two ledgers for the same rows.

    Parameters
    ----------
    path : str or path-like
        The file; created on first use, if neither it nor its mark exists. One file for each data
        set and holder. One of version 1 has to be upgraded (`steadytree private ledger FILE
        --budget B --upgrade`).
    budget : float
        The most epsilon that all answers together may cost. It is stored in the file: opening the
        file with another budget is refused.
    delta : float, default=0.0
        The same for delta; 0 allows pure mechanisms only.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger(f"{folder.name}/patients.ledger", budget=1.0)
    >>> ledger.spend(0.4, "tree")
    >>> ledger.spent, ledger.left
    (0.4, 0.6)
    >>> ledger.spend(0.7, "another tree")
    Traceback (most recent call last):
        ...
    steadytree._base.exceptions.BudgetError: epsilon 0.7 asked for 'another tree', but 0.6 of 1.0 \
is left: ask for less.
    >>> folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str], budget: float, delta: float = 0.0) -> None:
        self.path = check_can_write(path)
        self._budget = decimal_of(budget, "budget")
        self._delta = decimal_of(delta, "delta")
        if self._budget <= 0:
            raise ValueError(f"budget must be more than 0, got {budget}.")
        if self._delta >= 1:
            raise ValueError(f"delta must be in [0, 1), got {delta}.")
        self._mark_path = mark_path(self.path)
        if not (self.path.exists() or self._mark_path.exists()):
            first = _first_line(secrets.token_hex(16), self._budget, self._delta)
            Mark.after(START, first).begin(self._mark_path)
        with self._open() as handle:
            self._mend(handle, self._read(handle))

    @property
    def budget(self) -> float:
        return float(self._budget)

    @property
    def entries(self) -> list[Entry]:
        """Every line so far."""
        with self._open() as handle:
            return self._read(handle).entries

    @property
    def spent(self) -> float:
        """Epsilon of all answers together; at most the budget."""
        return float(min(self.cost(self.entries)[0], self._budget))

    @property
    def left(self) -> float:
        """Epsilon that may still be spent."""
        return float(max(self._budget - self.cost(self.entries)[0], ZERO))

    @property
    def spent_delta(self) -> float:
        return float(self.cost(self.entries)[1])

    def cost(self, entries: Iterable[Entry]) -> tuple[Decimal, Decimal]:
        """Epsilon and delta of some entries together, with this ledger's delta."""
        return compose(entries, self._delta)

    def answered(self, request: str) -> bool:
        """Whether a request of this name has been paid for."""
        return any(entry.request == request for entry in self.entries)

    # ---- spending ----
    def spend(
        self,
        epsilon: float | Decimal,
        what: str,
        mechanism: str = "",
        *,
        delta: float = 0.0,
        parallel: tuple[str, str] = ("", ""),
        request: str = "",
        rho: float | Decimal = 0.0,
    ) -> None:
        """Record the cost of an answer, or refuse it; release the answer only after this returns.

        Parameters
        ----------
        epsilon : float
        what, mechanism : str
            For readers of the ledger; must not contain data.
        delta : float, default=0.0
        parallel : (group, part), optional
            Parts of one group share no row and cost as much as the most expensive of them.
        request : str, optional
            Name of the request; one that has been paid for is refused.
        rho : float, default=0.0
            The cost under zCDP, of an answer whose epsilon and delta are 0; needs a ledger with a
            delta.

        Raises
        ------
        BudgetError
            If the cost exceeds what is left, or the ledger is damaged; nothing is written.
        """
        if any(len(str(name)) > LONGEST_TEXT for name in parallel):
            # truncated, two groups could be taken for one and cost too little
            raise ValueError(f"names of parallel parts may have at most {LONGEST_TEXT} characters.")
        amounts = decimal_of(epsilon, "epsilon"), decimal_of(delta, "delta")
        texts = (str(text)[:LONGEST_TEXT] for text in (what, mechanism, *parallel, request))
        entry = Entry(*amounts, *texts, rho=decimal_of(rho, "rho"))
        with self._open() as handle:
            known = self._read(handle)
            self._check(entry, known.entries)
            self._mend(handle, known)
            self._record(handle, known, entry)
        _LOG.info("spent epsilon %s, delta %s on %s (%s)", epsilon, delta, what, mechanism)

    def check(
        self,
        epsilon: float | Decimal,
        what: str,
        *,
        delta: float = 0.0,
        request: str = "",
        rho: float | Decimal = 0.0,
    ) -> None:
        """Refuse what `spend` would refuse, without writing."""
        amounts = decimal_of(epsilon, "epsilon"), decimal_of(delta, "delta")
        entry = Entry(*amounts, what=what, request=request, rho=decimal_of(rho, "rho"))
        self._check(entry, self.entries)

    def _check(self, entry: Entry, entries: list[Entry]) -> None:
        epsilon, delta = self.cost([*entries, entry])
        if entry.request and any(old.request == entry.request for old in entries):
            message = f"request {entry.request!r} was answered before: it is not repeated."
        elif epsilon > self._budget:
            left = max(self._budget - self.cost(entries)[0], ZERO)
            asked = f"rho {entry.rho}" if entry.rho else f"epsilon {entry.epsilon}"
            message = (
                f"{asked} asked for {entry.what!r}, but {left} of {self._budget} is left: ask for "
                "less."
            )
            if entry.rho and not self._delta:
                message = f"{asked} asked for {entry.what!r}, which needs a ledger with a delta."
        elif delta > self._delta:
            message = (
                f"delta {entry.delta} asked for {entry.what!r}, which would exceed the ledger's "
                f"delta of {self._delta}: use a pure mechanism."
            )
        else:
            return
        _LOG.warning("refused: %s", message)
        raise BudgetError(message)

    # ---- the file ----
    @contextlib.contextmanager
    def _open(self) -> Iterator[int]:
        flags = os.O_RDWR | os.O_APPEND | getattr(os, "O_BINARY", 0)
        if not self.path.exists():
            mark = self._mark()
            # one that was never written to may be created; a lost one may not
            flags |= os.O_CREAT if mark is not None and mark.before == START else 0
        try:
            handle = os.open(self.path, flags, MODE)
        except FileNotFoundError as error:
            raise _damaged(self.path) from error
        try:
            with locked(handle):
                yield handle
        finally:
            os.close(handle)

    def _mark(self) -> Mark | None:
        try:
            return Mark.read(self._mark_path)
        except ChainError as error:
            raise _damaged(self.path) from error

    def _read(self, handle: int) -> "_Known":
        """The file's content, completed from the mark; a damaged ledger is refused."""
        content, mark = _content(handle), self._mark()
        self._check_kind(content, mark)
        try:
            if mark is None:
                raise ChainError("there is no mark.")
            missing = mark.missing(Chain.of(content))
            chain = Chain.of(content + missing)
            first, *bodies = chain.bodies
            entries = [Entry.from_body(body, n) for n, body in enumerate(bodies, 1)]
        except (ValueError, ArithmeticError, TypeError) as error:
            raise _damaged(self.path) from error
        begun = first.decode().partition(" budget ")[2].split(" delta ")
        if begun != [str(self._budget), str(self._delta)]:
            raise ValueError(
                f"{self.path.name!r} was created with budget {' and delta '.join(begun)}, not with "
                f"budget {self._budget} and delta {self._delta}: a budget cannot be changed later."
            )
        return _Known(entries, mark, chain.heads[-1], missing)

    def _check_kind(self, content: bytes, mark: Mark | None) -> None:
        """Refuse a file that is not a ledger, or one of version 1."""
        if mark is None and content.startswith(OLD_HEADER.encode() + b" "):
            raise BudgetError(
                f"{self.path.name!r} is a ledger of version 1: stop every process that uses it, "
                "then run "
                f"'steadytree private ledger {self.path.name} --budget {self._budget} --upgrade'."
            )
        start = HEADER.partition(" ")[0].encode()
        if not start.startswith(content[: len(start)]):
            message = "is not a ledger: name another file, or restore it if it was one."
            raise ValueError(f"{self.path.name!r} {message}")

    def _mend(self, handle: int, known: "_Known") -> None:
        """Complete a line that a crash interrupted."""
        if known.missing:
            self._append(handle, known.missing)
            sync_folder(self.path.parent)  # the file itself may be new

    def _record(self, handle: int, known: "_Known", entry: Entry) -> None:
        """Write the mark first: whatever happens after it, the line counts."""
        mark = Mark.after(known.head, entry.to_body(len(known.entries) + 1))
        size = os.fstat(handle).st_size
        mark.write(self._mark_path)
        try:
            self._append(handle, mark.line)
        except OSError:
            # a full disk: nothing is released after a failed line, so it need not count as spent.
            # If a part of the line stays, or the old mark cannot be restored, it counts.
            if os.fstat(handle).st_size == size:
                known.mark.write(self._mark_path)
            raise

    def _append(self, handle: int, line: bytes) -> None:
        size = os.fstat(handle).st_size
        written = 0
        try:
            while written < len(line):
                written += os.write(handle, line[written:])
            os.fsync(handle)
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(handle, size)
            raise


class _Known(NamedTuple):
    entries: list[Entry]
    mark: Mark
    head: str  # hash of all lines
    missing: bytes  # the rest of an interrupted line


def _first_line(name: str, budget: Decimal, delta: Decimal) -> bytes:
    return f"{HEADER} id {name} budget {budget} delta {delta}".encode()


def _damaged(path: Path) -> BudgetError:
    return BudgetError(
        f"the ledger {path.name!r} was removed or replaced, truncated or altered, or is an older "
        "copy than its mark, so what was spent is unknown: restore the newest "
        f"{path.name!r} and {mark_path(path).name!r} together, or consider the budget of these "
        "rows spent."
    )


def _content(handle: int) -> bytes:
    os.lseek(handle, 0, os.SEEK_SET)
    with os.fdopen(handle, "rb", closefd=False) as file:
        return file.read()


def charge(ledger: Ledger | None, amounts: dict[str, float], mechanism: str) -> Decimal:
    """Spend all amounts of one release as one line, so that none of them is left unpaid."""
    total = sum((decimal_of(amount, "epsilon") for amount in amounts.values()), ZERO)
    if ledger is not None and total > 0:
        ledger.spend(total, " + ".join(amounts), mechanism)
    return total


# ---- version 1, whose lines were not chained ----
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
        bodies = _bodies(content, terms)
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
        raise _damaged(path)
    write_text_atomically(path, b"".join(lines).decode(), for_owner=True)


def _bodies(content: bytes, terms: tuple[Decimal, Decimal]) -> list[bytes]:
    """The lines in today's form; the id is a hash, so that a repeated upgrade gives the same."""
    first, *lines, tail = content.split(b"\n")
    if first != f"{OLD_HEADER} budget {terms[0]} delta {terms[1]}".encode() or tail:
        raise ValueError("the first line differs, or the last is incomplete.")
    bodies = [_first_line(hashlib.sha256(content).hexdigest()[:32], *terms)]
    for number, line in enumerate(lines, 1):
        found = _OLD_LINE.fullmatch(line)
        if found is None:
            raise ValueError("a line is incomplete.")
        epsilon, delta, first_check, texts, last_check = found.groups()
        if first_check != _checksum(epsilon + b" " + delta) or last_check != _checksum(line[:-9]):
            raise ValueError("a line was altered.")
        amounts = Decimal(epsilon.decode()), Decimal(delta.decode())
        bodies.append(Entry(*amounts, *json.loads(texts)).to_body(number))
    return bodies


def _checksum(body: bytes) -> bytes:
    return f"{zlib.crc32(body):08x}".encode()
