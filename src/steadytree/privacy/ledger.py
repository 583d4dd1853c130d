"""Ledger: the privacy budget of a data set, spent durably before an answer is released."""

import contextlib
import logging
import os
import secrets
from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path

from steadytree._base.exceptions import BudgetError, ChainError
from steadytree._base.files import (
    check_can_write,
    close_to_others,
    locked,
    sync_folder,
)
from steadytree.privacy.accounting import simple_epsilon_of
from steadytree.privacy.ledger_lines import (
    HEADER,
    OLD_HEADER,
    START,
    ZERO,
    Account,
    ChainHead,
    Entry,
    Mark,
    compose,
    decimal_of,
    first_line,
    mark_path,
)
from steadytree.privacy.witness import Witness, usual_witnesses

LONGEST_TEXT = 200
MODE = 0o600  # for the owner only
WITNESSED = "witness"  # the line from which a ledger needs its witness
_LOG = logging.getLogger(__name__)


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

    Older copies of both files, and copies that went another way, are refused where a later state
    was seen: by this object, by this user on this machine (`usual_witnesses`), or by the file that
    `witness` names. A ledger cannot detect that someone keeps two ledgers for the same rows.

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
    witness : str or path-like, optional
        A file in another place, such as a share that only grows, that notes the newest line. A
        ledger that was opened with one has to be opened with it from then on.

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

    def __init__(
        self,
        path: str | os.PathLike[str],
        budget: float,
        delta: float = 0.0,
        witness: str | os.PathLike[str] | None = None,
    ) -> None:
        self.path = check_can_write(path)
        self._budget = decimal_of(budget, "budget")
        self._delta = decimal_of(delta, "delta")
        if self._budget <= 0:
            raise ValueError(f"budget must be more than 0, got {budget}.")
        if self._delta >= 1:
            raise ValueError(f"delta must be in [0, 1), got {delta}.")
        self._mark_path = mark_path(self.path)
        self._witness = None if witness is None else Witness(check_can_write(witness))
        self._seen: ChainHead | None = None  # by this object
        if not (self.path.exists() or self._mark_path.exists()):
            if self._witness is not None and self._witness.exists:
                raise damaged(self.path)  # of another ledger, or this one was lost
            first = first_line(secrets.token_hex(16), self._budget, self._delta)
            Mark.after(START, first).begin(self._mark_path)
        with self._open() as handle:
            known = self._read(handle)
            self._mend(handle, known)
            if self._witness is not None and not _is_witnessed(known):
                self._record(handle, known, Entry(ZERO, what=WITNESSED))

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

    @property
    def extent(self) -> Decimal:
        """A number that never falls when an entry is added, computed as in every version."""
        return compose(self.entries, self._delta, simple_epsilon_of)[0]

    @property
    def head(self) -> ChainHead:
        """How far the ledger has come: what others may note, and hold against it later."""
        with self._open() as handle:
            return self._read(handle).head

    def has(self, head: ChainHead) -> bool:
        """Whether the ledger had come to this head; not, where it is an older copy or a fork."""
        with self._open() as handle:
            return self._read(handle).has(head)

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
            amount = f"rho {entry.rho}" if entry.rho else f"epsilon {entry.epsilon}"
            message = (
                f"{amount} asked for {entry.what!r}, but {left} of {self._budget} is left: ask for "
                "less."
            )
            if entry.rho and not self._delta:
                message = f"{amount} asked for {entry.what!r}, which needs a ledger with a delta."
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
            raise damaged(self.path) from error
        try:
            for path in (self.path, self._mark_path):
                close_to_others(path)  # a restored one may be readable by others
            with locked(handle):
                yield handle
        finally:
            os.close(handle)

    def _mark(self) -> Mark | None:
        try:
            return Mark.read(self._mark_path)
        except ChainError as error:
            raise damaged(self.path) from error

    def _read(self, handle: int) -> Account:
        """The file's content, completed from the mark; a damaged or older ledger is refused."""
        content, mark = _content(handle), self._mark()
        self._check_kind(content, mark)
        try:
            known = Account.read(content, mark)
            for witness in self._witnesses(known):
                witness.check(known)
        except ChainError as error:
            raise damaged(self.path) from error
        if known.terms != (str(self._budget), str(self._delta)):
            raise ValueError(
                f"{self.path.name!r} was created with budget {' and delta '.join(known.terms)}, "
                f"not with budget {self._budget} and delta {self._delta}: a budget cannot be "
                "changed later."
            )
        if self._seen is not None and not known.has(self._seen):
            raise damaged(self.path)
        if _is_witnessed(known) and (self._witness is None or not self._witness.exists):
            raise BudgetError(
                f"the ledger {self.path.name!r} has a witness, and it was not given or is lost: "
                "name it (witness=, --witness), or consider the budget of these rows spent."
            )
        self._seen = known.head
        return known

    def _witnesses(self, known: Account) -> list[Witness]:
        own = [] if self._witness is None else [self._witness]
        return usual_witnesses(known.name) + own

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

    def _mend(self, handle: int, known: Account) -> None:
        """Complete a line that a crash interrupted."""
        if known.missing:
            self._append(handle, known.missing)
            sync_folder(self.path.parent)  # the file itself may be new

    def _record(self, handle: int, known: Account, entry: Entry) -> None:
        """Write the mark first: whatever happens after it, the line counts."""
        mark = Mark.after(known.heads[-1], entry.to_body(len(known.entries) + 1))
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
        self._seen = ChainHead(known.name, len(known.heads), mark.head)
        for witness in self._witnesses(known):
            witness.note(self._seen)

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


def _is_witnessed(known: Account) -> bool:
    return any(entry.what == WITNESSED and not entry.epsilon for entry in known.entries)


def damaged(path: Path) -> BudgetError:
    """What to do where a ledger and what is known of it do not match."""
    return BudgetError(
        f"the ledger {path.name!r} was removed or replaced, truncated or altered, or is an older "
        "copy than its mark or its witness, so what was spent is unknown: restore the newest "
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
