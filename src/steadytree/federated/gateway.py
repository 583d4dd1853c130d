"""Gateway: the only access to a holder's rows."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np

from steadytree._base import exceptions
from steadytree._base.clock import CLOCK, Clock
from steadytree._base.exceptions import BudgetError, MessageError, RefusedError
from steadytree.data.schema import Schema, to_dict
from steadytree.data.splits import SplitTable
from steadytree.federated import framing, messages
from steadytree.federated.answer_store import AnswerStore
from steadytree.federated.framing import Refusal, read, refusal, write
from steadytree.federated.holder import MOST_WORK, Holder, schema_digest
from steadytree.federated.messages import Request
from steadytree.federated.receipts import RECEIPTS, keep_receipt
from steadytree.privacy.growers import RowsInMemory
from steadytree.privacy.ledger_lines import ZERO, Entry
from steadytree.privacy.mechanisms import LARGEST_EPSILON, SeededNoise
from steadytree.privacy.tree_mechanism import sample_tree

MOST_STUDY_WORK = 50 * MOST_WORK  # steps for one study
MARGIN = 1.3  # times the measured time of a request, until its answer leaves
MOST_NUMBERS = 2_000_000  # of one answer
MOST_NODES = 20_000  # of all trees of a request: longer computations reveal more by their time
DEEPEST = 1_000  # levels of a requested tree
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Plan:
    """What a holder knows of a study's plan: its candidate splits, and how deep trees may be."""

    n_bins: int
    levels: int


@dataclass(frozen=True)
class Terms:
    """The terms that a holder agreed to."""

    studies: Mapping[str, Decimal] | None = None  # the most that each may cost; None: no limit
    plans: Mapping[str, Plan] = field(default_factory=dict)  # of studies whose plan is known
    least_epsilon: float = 0.0  # requests for less are refused: many of them could be timed
    open_message: Callable[[bytes], bytes] = (
        framing.unsigned
    )  # by default signatures are not checked


class Gateway:
    """Answers messages for one holder: checks, stores, pays, and only then releases an answer.

    A repeated request gets the same answer and costs nothing. The leaves in a request share no
    row: they are sent as whole trees, and the holder refuses lists of numbers that are not exactly
    one tree each. So the cost of a request does not grow with the number of leaves, and this does
    not depend on trust. See `steadytree private holder serve`.
    """

    def __init__(
        self,
        holder: Holder,
        store: AnswerStore,
        pace: float = 0.0,  # replies are sent at multiples of so many seconds, to hide timing
        terms: Terms | None = None,
        clock: Clock = CLOCK,
    ) -> None:
        self.holder, self._store, self._pace, self._clock = holder, store, pace, clock
        self._terms = terms or Terms()
        self._check_spent()
        self._turn, self._rate = threading.Lock(), 0.0
        if pace > 0:  # what a step of work takes on this machine, measured on no row of the holder
            self._rate = seconds_per_step(clock)
        self._schema = schema_digest(holder.schema)

    def reply(self, message: bytes) -> bytes:
        """The reply to any bytes; never raises."""
        due = [self._clock.now(), 0.0]  # when the work began, and how long it takes at most
        start = due[0]
        try:
            reply = self._reply(message, due)
        except exceptions.UnsignedError:
            reply = refusal(Refusal.UNSIGNED)
        except MessageError:
            reply = refusal(Refusal.MALFORMED)
        except Exception as error:  # its text could depend on rows
            _LOG.error("gateway of %s failed: %s", self.holder.name, type(error).__name__)
            reply = refusal(Refusal.INTERNAL)
        if self._pace > 0:
            # at a time that follows from the price, so not from the rows, whatever it took
            while (left := due[0] + due[1] - self._clock.now()) > 0:
                self._clock.sleep(left)
            self._clock.sleep(self._pace - (self._clock.now() - start) % self._pace)
        return reply

    def cancel(self) -> None:
        """Give up what is being computed; it is not stored and not paid for."""
        self.holder.cancel()

    def _reply(self, message: bytes, due: list[float]) -> bytes:
        if len(message) > framing.LARGEST_REQUEST:
            return refusal(Refusal.TOO_LARGE)
        if (
            message == framing.STATUS
        ):  # unsigned too: the holder's own command has no coordinator's key
            return self._status()
        content = read(self._terms.open_message(message), framing.LARGEST_REQUEST)
        if not self._keep_receipt(content):
            return refusal(Refusal.LEDGER)
        if content.get("type") == "question":
            request = messages.read_request(content)
            with self._turn:
                due[0] = self._clock.now()
                reply, outcome = self._answer(request, due)
            what = (request.session, request.round, request.kind, outcome)
            _LOG.info("study %s question %d (%s): %s", *what)
            return reply
        if content.get("type") == "hello":
            return self._hello(content)
        if write(content) == framing.STATUS:
            return self._status()
        raise MessageError("of no known type.")

    def _keep_receipt(self, content: dict[str, Any]) -> bool:
        """Keep what the coordinator noted of the ledger; False if the ledger is another now."""
        receipt = messages.read_receipt(content)
        if receipt is None or receipt.holder != self.holder.name:
            return True
        if not self.holder.ledger.has(receipt.noted):
            _LOG.error("the ledger is older than line %d, which was seen", receipt.number)
            return False
        if self._entries_of(receipt.study):  # others cost nothing, and could be any number
            keep_receipt(self._store.folder / RECEIPTS, receipt)
        return True

    def _answer(self, request: Request, due: list[float]) -> tuple[bytes, str]:
        """The reply to a request, and its outcome for the log."""
        if request.schema != self._schema:
            return _refuse(Refusal.SCHEMA)
        if _is_too_large(request, len(self.holder.schema.classes)):
            return _refuse(Refusal.TOO_LARGE)
        if request.epsilon < self._terms.least_epsilon:
            return _refuse(Refusal.TOO_SMALL)
        kept = self._store.find(request.session, request.round)
        paid = self.holder.ledger.answered(request.name)
        if kept is not None and kept[0] != request.digest:
            return _refuse(Refusal.CHANGED)
        if paid:
            return (
                (self._with_head(kept[1]), "repeated")
                if kept is not None
                else _refuse(Refusal.LOST)
            )
        if not self._is_agreed(request):
            return _refuse(Refusal.BUDGET)
        if kept is not None:  # stored before a crash, and never sent
            return self._release(request, kept[1])
        return self._compute(request, due)

    def _is_agreed(self, request: Request) -> bool:
        """Whether the study stays within the epsilon that the holder agreed to."""
        if self._terms.studies is None:
            return True
        entries = [*self._entries_of(request.session), self.holder.entry_of(request)]
        total = self.holder.ledger.cost(entries)[0]
        return total <= self._terms.studies.get(request.session, -1)

    def _entries_of(self, study: str) -> list[Entry]:
        return [e for e in self.holder.ledger.entries if e.request.startswith(f"{study}:")]

    def _spent_in(self, study: str, besides: Any = None) -> Decimal:
        """The cost of a study so far, without one of its rounds."""
        entries = [e for e in self._entries_of(study) if e.request != f"{study}:{besides}"]
        return self.holder.ledger.cost(entries)[0]

    def _compute(self, request: Request, due: list[float]) -> tuple[bytes, str]:
        try:
            admitted = self.holder.admit(request)
        except BudgetError:
            return _refuse(Refusal.BUDGET)
        except exceptions.TooMuchWorkError:
            return _refuse(Refusal.TOO_LARGE)
        except RefusedError as error:
            stale = isinstance(error, exceptions.StaleError)
            return _refuse(Refusal.STALE if stale else Refusal.MALFORMED)
        work = self.holder.price(request, admitted)
        used, bins = self._store.used(request.session)
        if used + work > MOST_STUDY_WORK:
            return _refuse(Refusal.QUOTA)
        if bins and bins != {request.n_bins}:  # a study keeps the candidate splits it began with
            return _refuse(Refusal.CHANGED)
        plan = self._terms.plans.get(request.session)
        if plan is not None and not _is_planned(request, plan):
            return _refuse(Refusal.PLAN)
        due[1] = MARGIN * work * self._rate
        try:
            message = messages.answer_message(self.holder.draft(request, admitted), request.digest)
        except exceptions.CancelledError:
            return _refuse(Refusal.BUSY)
        except Exception:
            # the failure depends on rows, and could be provoked again and again: it is paid for
            self._pay(request)
            raise
        self._store.keep(request, message, work)
        return self._release(request, message)

    def _release(self, request: Request, message: bytes) -> tuple[bytes, str]:
        try:
            self._pay(request)
        except BudgetError:
            self._store.drop(request.session, request.round)
            return _refuse(Refusal.BUDGET)
        return self._with_head(message), "answered"

    def _with_head(self, message: bytes) -> bytes:
        return messages.with_head(message, self.holder.ledger.head)

    def _check_spent(self) -> None:
        if self.holder.ledger.extent < self._store.spent:
            raise BudgetError(
                f"the ledger {self.holder.ledger.path.name!r} shows less spent than the answers "
                "beside it: it was lost or is an older copy. Restore the newest one."
            )

    def _pay(self, request: Request) -> None:
        self._check_spent()
        self.holder.pay(request)
        try:
            self._store.mark_spent(self.holder.ledger.extent)
        except OSError as error:  # it is paid for; the next mark includes it
            _LOG.error("the mark of what was spent was not written: %s", type(error).__name__)

    # ---- messages that cost nothing, because no row is read ----
    def _hello(self, content: dict[str, Any]) -> bytes:
        hello = messages.read_hello(content)
        known = {"holder": self.holder.name, "private": self.holder.private}
        known |= {"schema": to_dict(self.holder.schema), "time": time.time()}
        if self.holder.rows_per_person is not None:
            known["rows_per_person"] = self.holder.rows_per_person
        study, wanted = hello.study, hello.epsilon * (1 - 1e-9)
        # what the study has spent is part of its epsilon, so that a resumed one is not refused
        enough = self.holder.ledger.left + float(self._spent_in(study)) >= wanted
        if self._terms.studies is not None:
            enough = enough and float(self._terms.studies.get(study, ZERO)) >= wanted
        # for answers by files: compared with what the file states
        spent = min(float(self._spent_in(study, hello.round)), LARGEST_EPSILON)
        known |= {"enough": enough, "spent": spent, "ledger": self.holder.ledger.head._asdict()}
        return write({"version": framing.VERSION, "ok": True, "type": "hello", **known})

    def _status(self) -> bytes:
        ledger = self.holder.ledger
        known = {"holder": self.holder.name, "private": self.holder.private}
        known |= {"budget": ledger.budget, "spent": ledger.spent, "left": ledger.left}
        known["answers"] = sum(1 for entry in ledger.entries if entry.request)
        return write({"version": framing.VERSION, "ok": True, "type": "status", **known})


def seconds_per_step(clock: Clock) -> float:
    """What a step of work takes here: sums over trees for made-up rows, the median of five."""
    rng = np.random.default_rng(0)
    schema = Schema({f"x{k}": (0.0, 1.0) for k in range(8)}, classes=["no", "yes"])
    rows = RowsInMemory(schema, rng.random((1_024, 8)), rng.choice(["no", "yes"], 1_024))
    candidates = SplitTable.declared(schema.space, 33)
    block, taken = rows.padded(candidates, 8_192), []
    for _ in range(6):
        start = clock.now()
        sample_tree(block, candidates, 1.0, 2, "correct", SeededNoise(0))
        taken.append(clock.now() - start)
    steps = 0 if block.padding is None else block.padding.price.block(2)
    return float(np.median(taken[1:])) / max(steps, 1)  # the first may have been compiled


def _refuse(kind: Refusal) -> tuple[bytes, str]:
    return refusal(kind), kind


def _is_too_large(request: Request, n_classes: int) -> bool:
    leaves = sum(number < 0 for tree in request.trees for number in tree)
    sides = 2 * sum(len(splits) for splits in request.questions)
    if max(leaves, sides) * n_classes > MOST_NUMBERS or sum(map(len, request.trees)) > MOST_NODES:
        return True
    return any(_depth(tree) > DEEPEST for tree in request.trees)


def _is_planned(request: Request, plan: Plan) -> bool:
    levels = max(map(_depth, request.trees)) + request.depth
    return request.n_bins == plan.n_bins and levels <= plan.levels


def _depth(numbers: tuple[int, ...]) -> int:
    """Levels of a tree in preorder; accepts any list of numbers."""
    open_at, deepest = [0], 0
    for number in numbers:
        depth = open_at.pop() if open_at else 0
        deepest = max(deepest, depth)
        if number >= 0:
            open_at += [depth + 1, depth + 1]
    return deepest
