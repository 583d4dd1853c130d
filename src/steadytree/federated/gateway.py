"""Gateway: the one door to a holder's rows; letters in, letters out, and nothing else."""

import contextlib
import json
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from steadytree._base.clock import CLOCK, Clock
from steadytree._base.files import write_text_atomically
from steadytree.data.schema import to_dict
from steadytree.federated.framing import (
    LARGEST_QUESTION,
    STATUS,
    VERSION,
    MessageError,
    Refusal,
    UnsignedError,
    digest_of,
    read,
    refusal,
    unsigned,
    write,
)
from steadytree.federated.holder import Holder, schema_digest
from steadytree.federated.messages import (
    RefusedError,
    Request,
    StaleError,
    answer_letter,
    question,
    read_question,
)
from steadytree.privacy.ledger import BudgetError
from steadytree.privacy.ledger_lines import EVERYTHING, ZERO, compose, decimal_of
from steadytree.privacy.mechanisms import LARGEST_EPSILON

IDENTITY, LOCK, MARK = "identity.json", "serving.lock", "spent"


class Stored(NamedTuple):
    """What was kept for one question: the question's digest, and the letter that answers it."""

    digest: str
    letter: bytes


class AnswerStore:
    """The answers of one holder, one file each, in a folder beside its ledger.

    The order is: store, pay, send. An answer that is stored but not paid for never left; it is paid
    for when its question comes again. An answer that was paid for but is not stored was lost by
    somebody who removed files, and is never made again: a second draw would tell more than was
    paid for.

    Parameters
    ----------
    folder : path
        Made where it does not exist, for its owner only.
    holder : str
    schema : str
        Digest of the schema. A folder remembers both and refuses others.
    """

    def __init__(self, folder: Path, holder: str, schema: str) -> None:
        self.folder = folder
        folder.mkdir(mode=0o700, exist_ok=True)
        folder.chmod(0o700)  # a restored one may be open to others; answers in it may be unpaid
        self._lock = _lock_alone(folder / LOCK)
        try:
            _check_identity(folder / IDENTITY, {"holder": holder, "schema": schema})
        except ValueError:
            self.close()
            raise

    def find(self, session: str, number: int) -> Stored | None:
        """What was kept for this question; a damaged file counts as none."""
        path = self._path(session, number)
        if not path.exists():
            return None
        with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
            found = json.loads(path.read_text(encoding="utf-8"))
            letter = found["letter"].encode()
            if digest_of(letter) == found["check"]:
                return Stored(str(found["question"]), letter)
        return None

    def keep(self, session: str, number: int, digest: str, letter: bytes) -> None:
        """Keep an answer; it is on the disk when this returns."""
        content = {"question": digest, "check": digest_of(letter), "letter": letter.decode()}
        write_text_atomically(self._path(session, number), json.dumps(content))

    def drop(self, session: str, number: int) -> None:
        """Forget an answer that could not be paid for."""
        self._path(session, number).unlink(missing_ok=True)

    @property
    def spent(self) -> Decimal:
        """The most that the ledger was ever seen to have spent; a damaged mark counts as all."""
        path = self.folder / MARK
        if not path.exists():
            return ZERO
        try:
            return Decimal(path.read_text(encoding="utf-8").strip())
        except (ValueError, ArithmeticError):
            return EVERYTHING

    def mark_spent(self, epsilon: Decimal) -> None:
        """Remember what the ledger shows, so that a lost or older ledger is noticed.

        A mark only rises.
        """
        if epsilon > self.spent:
            write_text_atomically(self.folder / MARK, f"{epsilon}\n")

    def close(self) -> None:
        """Let another process serve from this folder."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _path(self, session: str, number: int) -> Path:
        return self.folder / f"{session}.{number}.answer"


def _lock_alone(path: Path) -> int:
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    if sys.platform != "win32":
        import fcntl

        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            raise ValueError(
                f"another gateway serves {path.parent.name!r}: stop it first, one is enough."
            ) from None
    return handle


def _check_identity(path: Path, wanted: dict[str, str]) -> None:
    if not path.exists():
        write_text_atomically(path, json.dumps(wanted) + "\n")
        return
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ValueError(f"{str(path)!r} is damaged: restore the folder from a backup.")
    for name, value in wanted.items():
        if found.get(name) != value:
            what = "another holder" if name == "holder" else "another schema"
            raise ValueError(
                f"the ledger beside {path.parent.name!r} was begun for {what}: use that one, or "
                "name a new ledger for other rows."
            )


MOST_NUMBERS = 2_000_000  # of one answer
MOST_NODES = 20_000  # of all trees of a question: time tells of rows, the more the longer it is
DEEPEST = 64  # levels of an asked tree
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Terms:
    """What a holder agreed to; nobody else can change it.

    Parameters
    ----------
    studies : mapping of a study's name to its epsilon, optional
        No study may cost more, and others are refused. By default the ledger alone decides.
    least_epsilon : float, default=0.0
        Questions for less are refused: many cheap ones could be timed.
    open_letter : callable, optional
        Opens signed letters (`signed.letter_opener`). By default signatures are not looked at.
    """

    studies: Mapping[str, Decimal] | None = None
    least_epsilon: float = 0.0
    open_letter: Callable[[bytes], bytes] = unsigned


class Gateway:
    """Answers letters for one holder: checks, stores, pays, and only then lets an answer go.

    A question that was answered before gets the same answer and costs nothing. The leaves that a
    question asks about share no row: they come as whole trees, and the holder refuses lists of
    numbers that are not exactly one tree each. So the cost of a question does not grow with the
    number of leaves, and this rests on nobody's word.

    Parameters
    ----------
    holder : Holder
    store : AnswerStore
    pace : float, default=0.0
        Replies leave on a grid of so many seconds, so that the time they took tells less.
    terms : Terms, optional
    clock : Clock, optional

    Examples
    --------
    See `steadytree private holder serve`.
    """

    def __init__(
        self,
        holder: Holder,
        store: AnswerStore,
        pace: float = 0.0,
        terms: Terms | None = None,
        clock: Clock = CLOCK,
    ) -> None:
        self.holder, self._store, self._pace, self._clock = holder, store, pace, clock
        self._terms = terms or Terms()
        if compose(holder.ledger.entries)[0] < store.spent:
            raise BudgetError(
                f"the ledger {holder.ledger.path.name!r} shows less spent than the answers beside "
                "it: it was lost or is an older copy. Restore the newest one."
            )
        self._turn = threading.Lock()
        self._schema = schema_digest(holder.schema)

    def reply(self, letter: bytes) -> bytes:
        """The reply to any bytes whatever; never raises."""
        start = self._clock.now()
        try:
            reply = self._reply(letter)
        except UnsignedError:
            reply = refusal(Refusal.UNSIGNED)
        except MessageError:
            reply = refusal(Refusal.MALFORMED)
        except Exception as error:  # whatever it says could tell of rows
            _LOG.error("gateway of %s failed: %s", self.holder.name, type(error).__name__)
            reply = refusal(Refusal.INTERNAL)
        if self._pace > 0:
            spent = self._clock.now() - start
            self._clock.sleep(self._pace - spent % self._pace)
        return reply

    def _reply(self, letter: bytes) -> bytes:
        if len(letter) > LARGEST_QUESTION:
            return refusal(Refusal.TOO_LARGE)
        if letter == STATUS:  # the holder's own command asks it too, and has no coordinator's key
            return self._status()
        content = read(self._terms.open_letter(letter), LARGEST_QUESTION)
        if content.get("type") == "question":
            request = read_question(content)
            with self._turn:
                reply, outcome = self._answer(request)
            what = (request.session, request.round, request.kind)
            _LOG.info("study %s question %d (%s): %s", *what, outcome)
            return reply
        if content.get("type") == "hello":
            return self._hello(content)
        if content.get("type") == "status":
            return self._status()
        raise MessageError("of no known type.")

    # ---- questions ----
    def _answer(self, request: Request) -> tuple[bytes, str]:
        if request.schema != self._schema:
            return refusal(Refusal.SCHEMA), Refusal.SCHEMA
        if not _is_of_fair_size(request, len(self.holder.schema.classes)):
            return refusal(Refusal.TOO_LARGE), Refusal.TOO_LARGE
        if request.epsilon < self._terms.least_epsilon:
            return refusal(Refusal.TOO_SMALL), Refusal.TOO_SMALL
        digest = digest_of(question(request))  # of the one form, however it was written
        kept = self._store.find(request.session, request.round)
        paid = self.holder.ledger.answered(request.name)
        if kept is not None and kept.digest != digest:
            return refusal(Refusal.CHANGED), Refusal.CHANGED
        if kept is not None and paid:
            return kept.letter, "repeated"
        if paid:
            return refusal(Refusal.LOST), Refusal.LOST
        if not self._is_agreed(request):
            return refusal(Refusal.BUDGET), Refusal.BUDGET
        if kept is not None:  # stored before a crash, and never sent
            return self._release(request, kept.letter)
        return self._draw(request, digest)

    def _is_agreed(self, request: Request) -> bool:
        """Whether the study stays within the epsilon that the holder agreed to."""
        if self._terms.studies is None:
            return True
        agreed = self._terms.studies.get(request.session)
        epsilon = decimal_of(request.epsilon, "epsilon")
        return agreed is not None and self._spent_in(request.session) + epsilon <= agreed

    def _spent_in(self, study: str, besides: Any = None) -> Decimal:
        """What a study has cost, without one of its questions."""
        entries = [e for e in self.holder.ledger.entries if e.request != f"{study}:{besides}"]
        return sum((e.epsilon for e in entries if e.request.startswith(f"{study}:")), ZERO)

    def _draw(self, request: Request, digest: str) -> tuple[bytes, str]:
        try:
            admitted = self.holder.admit(request)
        except BudgetError:
            return refusal(Refusal.BUDGET), Refusal.BUDGET
        except StaleError:
            return refusal(Refusal.STALE), Refusal.STALE
        except RefusedError:
            return refusal(Refusal.MALFORMED), Refusal.MALFORMED
        try:
            letter = answer_letter(self.holder.draft(request, admitted), digest)
        except Exception:
            # rows made it fail: whoever may ask for that again and again must pay for it
            self._pay(request)
            raise
        self._store.keep(request.session, request.round, digest, letter)
        return self._release(request, letter)

    def _release(self, request: Request, letter: bytes) -> tuple[bytes, str]:
        try:
            self._pay(request)
        except BudgetError:
            self._store.drop(request.session, request.round)
            return refusal(Refusal.BUDGET), Refusal.BUDGET
        return letter, "answered"

    def _pay(self, request: Request) -> None:
        self.holder.pay(request)
        try:
            self._store.mark_spent(compose(self.holder.ledger.entries)[0])
        except OSError as error:  # paid for all the same; the next mark counts it too
            _LOG.error("the mark of what was spent was not written: %s", type(error).__name__)

    # ---- what costs nothing, because no row is looked at ----
    def _hello(self, content: dict[str, Any]) -> bytes:
        epsilon = content.get("epsilon")
        if isinstance(epsilon, bool) or not isinstance(epsilon, int | float) or not epsilon >= 0:
            raise MessageError("hello needs an epsilon.")
        known = {"holder": self.holder.name, "private": self.holder.private}
        known |= {"schema": to_dict(self.holder.schema), "time": time.time()}
        study, wanted = str(content.get("study")), float(epsilon) * (1 - 1e-9)
        # what the study has paid already is part of its epsilon, so a resumed one is not refused
        enough = self.holder.ledger.left + float(self._spent_in(study)) >= wanted
        if self._terms.studies is not None:
            enough = enough and float(self._terms.studies.get(study, ZERO)) >= wanted
        # for who answers by files, and compares it with what the file announces
        spent = min(float(self._spent_in(study, content.get("round"))), LARGEST_EPSILON)
        known |= {"enough": enough, "spent": spent}
        return write({"version": VERSION, "ok": True, "type": "hello", **known})

    def _status(self) -> bytes:
        ledger = self.holder.ledger
        known = {"holder": self.holder.name, "private": self.holder.private}
        known |= {"budget": ledger.budget, "spent": ledger.spent, "left": ledger.left}
        known["answers"] = sum(1 for entry in ledger.entries if entry.request)
        return write({"version": VERSION, "ok": True, "type": "status", **known})


def _is_of_fair_size(request: Request, n_classes: int) -> bool:
    leaves = sum(tree.count(-1) for tree in request.trees)
    sides = 2 * sum(len(asked) for asked in request.questions)
    if max(leaves, sides) * n_classes > MOST_NUMBERS or sum(map(len, request.trees)) > MOST_NODES:
        return False
    return all(_depth(tree) <= DEEPEST for tree in request.trees)


def _depth(numbers: tuple[int, ...]) -> int:
    """Levels of a tree written root first; any list of numbers will do."""
    open_at, deepest = [0], 0
    for number in numbers:
        depth = open_at.pop() if open_at else 0
        deepest = max(deepest, depth)
        if number >= 0:
            open_at += [depth + 1, depth + 1]
    return deepest
