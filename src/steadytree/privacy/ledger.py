"""Ledger: what was spent on whose data, written down before the answer leaves."""

import contextlib
import logging
import os
import secrets
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

from steadytree._base.exceptions import BudgetError, ChainError
from steadytree._base.files import check_can_write, locked, sync_folder
from steadytree.privacy.ledger_lines import (
    LONGEST_TEXT,
    START,
    ZERO,
    Chain,
    Entry,
    Mark,
    compose,
    decimal_of,
    mark_path,
    seal,
)

HEADER = "steadytree ledger 2"
OLD_HEADER = "steadytree ledger 1"
MODE = 0o600  # nobody else needs to read who was asked what
_LOG = logging.getLogger(__name__)
_LOG.addHandler(logging.NullHandler())  # a refusal is raised too: nobody should read it twice


class Ledger:
    """The privacy budget of one data set at one holder, in a file that only grows.

    `spend` returns only after the line is on the disk (written, then synced); an answer sent
    after that can never be missing from the file, whenever the process or the machine dies. A
    lock on the file makes processes spend one after the other.

    Each line bears its number and a hash of all lines before it, and the newest line lies in a
    second file as well, the mark ("patients.ledger.mark"), written first. A last line that a crash
    cut off is completed from the mark and counts as spent. Anything else that is not whole (a cut,
    altered, missing, swapped or repeated line, an older copy, a missing mark) is refused.

    What a ledger cannot see: someone who restores older copies of both files, makes up new ones,
    or keeps two ledgers for the same rows.

    Parameters
    ----------
    path : str or path-like
        The file; made on first use, where neither it nor its mark is there. One file for each
        data set and holder. One of version 1 has to be upgraded (`steadytree private ledger FILE
        --budget B --upgrade`).
    budget : float
        The most epsilon that all answers together may cost. A file knows its budget: opening it
        with another one is refused.
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
    steadytree.privacy.ledger.BudgetError: epsilon 0.7 asked for 'another tree', but 0.6 of 1.0 is \
left: ask for less.
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
            first = first_line(secrets.token_hex(16), self._budget, self._delta)
            Mark(START, seal(START, first)).begin(self._mark_path)
        with self._open() as handle, locked(handle):
            self._mend(handle, self._read(handle))

    # ---- what is known ----
    @property
    def budget(self) -> float:
        return float(self._budget)

    @property
    def entries(self) -> list[Entry]:
        """Every line so far."""
        with self._open() as handle, locked(handle):
            return self._read(handle).entries

    @property
    def spent(self) -> float:
        """Epsilon of all answers together; never more than the budget."""
        return float(min(compose(self.entries)[0], self._budget))

    @property
    def left(self) -> float:
        """Epsilon that may still be spent."""
        return float(max(self._budget - compose(self.entries)[0], ZERO))

    @property
    def spent_delta(self) -> float:
        return float(compose(self.entries)[1])

    def answered(self, request: str) -> bool:
        """Whether a request of this name was paid for already."""
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
    ) -> None:
        """Write down an answer's cost, or refuse it; the answer may leave only after this returns.

        Parameters
        ----------
        epsilon : float
        what, mechanism : str
            For people who read the ledger; never put data into them.
        delta : float, default=0.0
        parallel : (group, part), optional
            Parts of one group share no row and cost as much as the dearest of them.
        request : str, optional
            Name of the request; one that was paid for already is refused.

        Raises
        ------
        BudgetError
            Where the cost exceeds what is left, or the ledger is not whole; nothing is written
            then.
        """
        group, part = parallel
        if max(len(str(group)), len(str(part))) > LONGEST_TEXT:
            # cut off, two groups could pass for one and cost as much as the dearer
            raise ValueError(f"names of parallel parts may have at most {LONGEST_TEXT} characters.")
        entry = Entry(
            decimal_of(epsilon, "epsilon"),
            decimal_of(delta, "delta"),
            *(str(text)[:LONGEST_TEXT] for text in (what, mechanism, group, part, request)),
        )
        with self._open() as handle, locked(handle):
            known = self._read(handle)
            self._check(entry, known.entries)
            self._mend(handle, known)
            self._write_down(handle, known, entry)
        _LOG.info("spent epsilon %s, delta %s on %s (%s)", epsilon, delta, what, mechanism)

    def check(self, epsilon: float, what: str, *, delta: float = 0.0, request: str = "") -> None:
        """Refuse what `spend` would refuse, and write nothing."""
        amounts = decimal_of(epsilon, "epsilon"), decimal_of(delta, "delta")
        entry = Entry(*amounts, what=what, request=request)
        self._check(entry, self.entries)

    def _check(self, entry: Entry, entries: list[Entry]) -> None:
        if entry.request and any(old.request == entry.request for old in entries):
            _LOG.warning("refused: request %s was answered before", entry.request)
            raise BudgetError(f"request {entry.request!r} was answered before: it is not repeated.")
        epsilon, delta = compose([*entries, entry])
        if epsilon > self._budget:
            left = max(self._budget - compose(entries)[0], ZERO)
            _LOG.warning("refused: epsilon %s asked, %s left", entry.epsilon, left)
            raise BudgetError(
                f"epsilon {entry.epsilon} asked for {entry.what!r}, but {left} of {self._budget} "
                "is left: ask for less."
            )
        if delta > self._delta:
            _LOG.warning("refused: delta %s asked", entry.delta)
            raise BudgetError(
                f"delta {entry.delta} asked for {entry.what!r}, which would exceed the ledger's "
                f"delta of {self._delta}: use a pure mechanism."
            )

    # ---- the file ----
    @contextlib.contextmanager
    def _open(self) -> Iterator[int]:
        make = 0
        if not self.path.exists():
            mark = self._mark()
            # one that was begun and never written to may be made; a lost one may not
            make = os.O_CREAT if mark is not None and mark.is_first else 0
        flags = os.O_RDWR | os.O_APPEND | getattr(os, "O_BINARY", 0) | make
        try:
            handle = os.open(self.path, flags, MODE)
        except FileNotFoundError as error:
            raise not_whole(self.path) from error
        try:
            yield handle
        finally:
            os.close(handle)

    def _mark(self) -> Mark | None:
        try:
            return Mark.read(self._mark_path)
        except ChainError as error:
            raise not_whole(self.path) from error

    def _read(self, handle: int) -> "_Known":
        """What the file shows, completed from the mark; refuses whatever is not whole."""
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
            raise not_whole(self.path) from error
        begun = first.decode().partition(" budget ")[2].split(" delta ")
        if begun != [str(self._budget), str(self._delta)]:
            raise ValueError(
                f"{self.path.name!r} was begun with budget {' and delta '.join(begun)}, not with "
                f"budget {self._budget} and delta {self._delta}: a budget cannot be changed later."
            )
        return _Known(entries, mark, chain.head, missing)

    def _check_kind(self, content: bytes, mark: Mark | None) -> None:
        """Refuse a file that is no ledger, or an old one; a damaged ledger is refused later."""
        if mark is None and content.startswith(OLD_HEADER.encode() + b" "):
            raise BudgetError(
                f"{self.path.name!r} is a ledger of version 1: stop all who use it, then run "
                f"'steadytree private ledger {self.path.name} --budget {self._budget} --upgrade'."
            )
        start = HEADER.partition(" ")[0].encode()
        if not start.startswith(content[: len(start)]):
            raise ValueError(
                f"{self.path.name!r} is no ledger: name another file, or restore it if it was one."
            )

    def _mend(self, handle: int, known: "_Known") -> None:
        """Complete what a crash cut off."""
        if known.missing:
            self._append(handle, known.missing)
            sync_folder(self.path.parent)  # the file itself may be new

    def _write_down(self, handle: int, known: "_Known", entry: Entry) -> None:
        """The mark first: whatever happens after it, the line counts."""
        line = seal(known.head, entry.to_body(len(known.entries) + 1))
        size = os.fstat(handle).st_size
        Mark(known.head, line).write(self._mark_path)
        try:
            self._append(handle, line)
        except OSError:
            # a full disk: nothing leaves after a failed line, so it need not count as spent. Where
            # a part of the line stays, or the old mark cannot be put back, it counts.
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
    """What a ledger shows: its lines, its mark, the hash of all lines, bytes to be completed."""

    entries: list[Entry]
    mark: Mark
    head: str
    missing: bytes


def first_line(name: str, budget: Decimal, delta: Decimal) -> bytes:
    """What a ledger begins with: its own random name, and what all answers may cost."""
    return f"{HEADER} id {name} budget {budget} delta {delta}".encode()


def not_whole(path: Path) -> BudgetError:
    """Why nothing is spent from a ledger that is not whole, and what to do."""
    return BudgetError(
        f"the ledger {path.name!r} was removed or replaced, cut short or altered, or is an older "
        "copy than its mark, so nobody can tell what was spent: restore the newest "
        f"{path.name!r} and {mark_path(path).name!r} together, or count these rows' "
        "budget as spent."
    )


def _content(handle: int) -> bytes:
    os.lseek(handle, 0, os.SEEK_SET)
    parts = []
    while part := os.read(handle, 1 << 20):
        parts.append(part)
    return b"".join(parts)


def charge(ledger: Ledger | None, amounts: dict[str, float], mechanism: str) -> Decimal:
    """Spend several amounts of one release as one line, so that no part of it is left unpaid."""
    total = sum((decimal_of(amount, "epsilon") for amount in amounts.values()), ZERO)
    if ledger is not None and total > 0:
        ledger.spend(total, " + ".join(amounts), mechanism)
    return total
