"""Ledger: what was spent on whose data, written down before the answer leaves."""

import contextlib
import logging
import os
from collections.abc import Iterator
from decimal import Decimal

from steadytree.core.atomic import check_can_write, sync_folder
from steadytree.privacy._lock import locked
from steadytree.privacy.entry import LONGEST_TEXT, ZERO, Entry, compose, decimal_of

HEADER = "steadytree ledger 1"
MODE = 0o600  # nobody else needs to read who was asked what
GONE = "was removed or replaced while it was in use, so nobody can tell what was spent: restore it."
_LOG = logging.getLogger(__name__)
_LOG.addHandler(logging.NullHandler())  # a refusal is raised too: nobody should read it twice


class BudgetError(ValueError):
    """A request asked for more than is left, or nobody can tell what is left."""


class Ledger:
    """The privacy budget of one data set at one holder, in a file that only grows.

    `spend` returns only after the line is on the disk (written, then synced); an answer sent
    after that can never be missing from the file, whenever the process or the machine dies. A
    line that a crash cut off counts as spent, and, where even its amount is gone, everything
    left counts as spent. A lock on the file makes processes spend one after the other.

    What a ledger cannot see: someone who restores an older copy of the file, or keeps two
    ledgers for the same rows.

    Parameters
    ----------
    path : str or path-like
        The file; made on first use. One file for each data set and holder.
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
        with self._open(os.O_CREAT) as handle, locked(handle):
            self._begin(handle)

    # ---- what is known ----
    @property
    def budget(self) -> float:
        return float(self._budget)

    @property
    def entries(self) -> list[Entry]:
        """Every line so far, cut-off ones included."""
        with self._open() as handle, locked(handle):
            return self._read(handle)

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
            Where the cost exceeds what is left; nothing is written then.
        """
        group, part = parallel
        if max(len(str(group)), len(str(part))) > LONGEST_TEXT:
            # cut off, two groups could pass for one and cost as much as the dearer
            raise ValueError(f"names of parallel parts may have at most {LONGEST_TEXT} characters.")
        entry = Entry(
            decimal_of(epsilon, "epsilon"),
            decimal_of(delta, "delta"),
            *(str(text)[:LONGEST_TEXT] for text in (what, mechanism, group, part, request)),  # type: ignore[arg-type]
        )
        with self._open() as handle, locked(handle):
            entries = self._read(handle)
            self._check(entry, entries)
            self._append(handle, entry.to_line())
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
    def _open(self, more: int = 0) -> Iterator[int]:
        flags = os.O_RDWR | os.O_APPEND | getattr(os, "O_BINARY", 0) | more
        try:
            handle = os.open(self.path, flags, MODE)
        except FileNotFoundError as error:
            raise BudgetError(f"{self.path.name!r} {GONE}") from error
        try:
            yield handle
        finally:
            os.close(handle)

    @property
    def _header(self) -> bytes:
        return f"{HEADER} budget {self._budget} delta {self._delta}\n".encode()

    def _begin(self, handle: int) -> None:
        """Write the first line, or check that it says the same."""
        wanted = self._header
        content = _content(handle)
        cut_off = content != wanted and wanted.startswith(content)
        if cut_off:  # new, or ended in its very first write, before any answer
            os.ftruncate(handle, 0)
            self._append(handle, wanted)
            sync_folder(self.path.parent)
            return
        first = content.partition(b"\n")[0] + b"\n"
        if not first.startswith(HEADER.encode()):
            raise ValueError(f"{self.path.name!r} is no ledger: name another file.")
        if first != wanted:
            raise ValueError(
                f"{self.path.name!r} was begun as {first.decode().strip()!r}, not with budget "
                f"{self._budget} and delta {self._delta}: a budget cannot be changed later."
            )

    def _read(self, handle: int) -> list[Entry]:
        content = _content(handle)
        # a file that was emptied or replaced would give the whole budget again
        if not content.startswith(self._header):
            raise BudgetError(f"{self.path.name!r} {GONE}")
        lines = content[len(self._header) :].split(b"\n")
        return [Entry.from_line(line) for line in lines if line]

    def _append(self, handle: int, line: bytes) -> None:
        content = _content(handle)
        if content and not content.endswith(b"\n"):
            line = b"\n" + line  # behind a line that was cut off, which stays as it is
        written = 0
        try:
            while written < len(line):
                written += os.write(handle, line[written:])
            os.fsync(handle)
        except OSError:
            # a full disk: nothing leaves after a failed line, so it must not count as spent
            with contextlib.suppress(OSError):
                os.ftruncate(handle, len(content))
            raise


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
