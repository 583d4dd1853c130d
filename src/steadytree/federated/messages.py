"""Requests and answers as messages; what comes in is checked, whoever sent it."""

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Protocol, TypeVar

import msgspec
import numpy as np
from msgspec import UNSET, Meta, UnsetType
from numpy.typing import NDArray

from steadytree._base.documents import Document, canonical_json, convert
from steadytree._base.exceptions import MessageError, RefusedError
from steadytree.federated.framing import VERSION, write
from steadytree.privacy.budget import MOST_RELEASED
from steadytree.privacy.ledger_lines import ChainHead
from steadytree.privacy.mechanisms import check_epsilon

T = TypeVar("T")
CHOICES = {"choice": "gini", "entropy choice": "entropy"}  # and how splits are scored
SUM = "secure sum"
KINDS = ("rows", "block", "last block", *CHOICES, "leaf counts", "side counts", SUM)
BLOCKS = ("block", "last block")
MOST_TREES, MOST_BINS = 64, 1_000  # of one request
LARGEST = 2**40
WHOLE = 1_000  # weight of a row that counts in full
NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_END = b',"ok":true,"type":"answer","version":2}'  # of an answer in canonical form


class SumStep(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One step of a secure sum; see `masking`."""

    step: Literal["keys", "shares", "vector", "unmask"]
    first: Annotated[int, Meta(ge=0, le=10**9)]  # round of the first step, which names the sum
    what: Literal["rows", "bins", "leaf counts"]  # counts that are summed
    rho: Annotated[float, Meta(gt=0, le=1e12)]  # what the sum costs each holder, under zCDP
    minimum: Annotated[int, Meta(ge=2, le=10**4)]  # holders whose vectors are summed, at least
    honest: Annotated[int, Meta(ge=1, le=10**4)]  # of these, whose noise must be enough
    # holders, and what each sent: "shares": keys; "vector": shares for the one who is asked;
    # "unmask": nothing, these sent vectors
    parts: dict[str, str] = {}


class Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One request to one holder, as it travels."""

    session: str  # names the training run: letters, digits, _.-
    round: int  # rises within a session; a holder answers each number once
    # "rows": their number. "block", "last block": a whole-tree block sampled below each leaf, for
    # pure leaves, or for leaves that classify most rows correctly. "choice", "entropy choice": one
    # split chosen at each leaf. "leaf counts", "side counts": class counts of leaves, or of both
    # sides of splits. Choices and side counts leave out closed leaves, -2 in a tree.
    kind: str
    epsilon: float  # what the answer may cost
    schema: str  # digest of the schema that both sides must share
    n_bins: int = 32  # of numeric columns, hence the list of candidate splits
    trees: tuple[tuple[int, ...], ...] = ((-1,),)  # so far; the cost is divided among them
    depth: int = 0  # levels of a block
    questions: tuple[tuple[int, ...], ...] = ()  # for "side counts": splits of each open leaf
    # of blocks: what a row of each class counts, in units of 1 / WHOLE; unset: every row 1
    weights: tuple[int, ...] | UnsetType = UNSET
    sum: SumStep | UnsetType = UNSET  # for "secure sum"; epsilon is then that of the whole study

    def __post_init__(self) -> None:
        if not isinstance(self.session, str) or not NAME.fullmatch(self.session):
            raise RefusedError("session must be 1 to 64 letters, digits or any of _.-")
        if self.kind not in KINDS:
            raise RefusedError(f"kind must be one of {KINDS}.")
        for name, low, high in (("round", 0, 10**9), ("n_bins", 2, MOST_BINS), ("depth", 0, 3)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
                raise RefusedError(f"{name} must be an integer from {low} to {high}.")
        if not 1 <= len(self.trees) <= MOST_TREES:
            raise RefusedError(f"trees must be 1 to {MOST_TREES} trees.")
        if self.weights is not UNSET:
            _check_weights(self.kind, self.weights)
        if (self.kind == SUM) != (self.sum is not UNSET):
            raise RefusedError("a secure sum, and nothing else, needs a step.")
        try:
            check_epsilon(self.epsilon)
        except (TypeError, ValueError) as error:
            raise RefusedError(str(error)) from None
        msgspec.structs.force_setattr(self, "epsilon", float(self.epsilon))

    @property
    def name(self) -> str:
        return f"{self.session}:{self.round}"

    @property
    def digest(self) -> str:
        """What tells requests apart: SHA-256 of the message of version 1.

        Stored answers and checkpoints name requests by it, so it outlives versions of messages.
        """
        content = {"version": 1, "type": "question", "request": msgspec.to_builtins(self)}
        return hashlib.sha256(canonical_json(content)).hexdigest()


def _check_weights(kind: str, weights: tuple[int, ...]) -> None:
    valid = all(type(each) is int and 0 <= each <= WHOLE for each in weights)  # bool is no weight
    if kind not in BLOCKS or not valid or not any(weights):
        raise RefusedError(f"weights are of blocks: integers from 0 to {WHOLE}, not all 0.")


@dataclass(frozen=True, eq=False)
class Answer:
    """Noised integers, read-only; nothing else leaves a holder."""

    holder: str
    session: str
    round: int
    kind: str
    numbers: NDArray[np.int64]
    private: bool = False  # whether its noise protects
    ledger: ChainHead | None = None  # the holder's, after it had paid

    def __post_init__(self) -> None:
        numbers = np.asarray(self.numbers)
        if numbers.ndim != 1 or numbers.dtype.kind not in "iu" or len(numbers) > MOST_RELEASED:
            raise RefusedError("an answer must be a list of integers.")
        if len(numbers) and (numbers.min() < -LARGEST or numbers.max() > LARGEST):
            raise RefusedError("an answer holds a number too large to be a count.")
        numbers = numbers.astype(np.int64)
        numbers.flags.writeable = False
        object.__setattr__(self, "numbers", numbers)

    def check(self, request: Request, size: int | None = None) -> NDArray[np.int64]:
        """The numbers, if they answer this request and are as many as expected."""
        wanted = (request.session, request.round, request.kind)
        if (self.session, self.round, self.kind) != wanted:
            raise RefusedError(f"holder {self.holder!r} answered another request.")
        if size is not None and len(self.numbers) != size:
            raise RefusedError(
                f"holder {self.holder!r} sent {len(self.numbers)} numbers, {size} were asked for."
            )
        return self.numbers


Outcome = dict[str, Answer | Exception]  # of a round, by holder


class HolderLike(Protocol):
    """All that a coordinator knows of a holder."""

    name: str

    @property
    def private(self) -> bool: ...

    def answer(self, request: Request) -> Answer: ...


# ---- on the wire ----
class LedgerHead(Document):
    """How far a holder's ledger has come, as it travels."""

    ledger: Annotated[str, Meta(max_length=64)]
    number: Annotated[int, Meta(ge=0)]
    head: Annotated[str, Meta(max_length=64)]


class Receipt(LedgerHead):
    """What a coordinator noted of a holder's ledger, signed by the coordinator."""

    study: Annotated[str, Meta(max_length=64)]
    holder: Annotated[str, Meta(max_length=64)]
    # base64; empty if messages are not signed
    signature: Annotated[str, Meta(max_length=200)]

    @property
    def noted(self) -> ChainHead:
        return ChainHead(self.ledger, self.number, self.head)


class _RequestMessage(Document):
    version: Literal[2]
    type: Literal["question"]
    request: Request
    receipt: Receipt | UnsetType = UNSET


class Hello(Document):
    """What a coordinator asks before a study: is there enough for it?"""

    version: Literal[2]
    type: Literal["hello"]
    study: str
    epsilon: Annotated[float, Meta(ge=0)]
    round: int | UnsetType = UNSET
    receipt: Receipt | UnsetType = UNSET


class _Numbers(Document):
    holder: str
    session: str
    round: int
    kind: str
    question: str  # digest of the request
    numbers: bytes  # little-endian int64, in base64 on the wire
    private: bool  # with the answer, so that a stored one keeps it


class _Reply(Document):
    version: Literal[2]
    ok: bool
    type: Literal["answer"]
    answer: _Numbers
    ledger: LedgerHead | UnsetType = UNSET  # added when it is sent


def request_message(request: Request, receipt: Receipt | None = None) -> bytes:
    """The message that carries a request, and a receipt for the answer before it.

    >>> from steadytree.federated.framing import read
    >>> read_request(read(request_message(Request("study", 3, "rows", 0.5, "abc")))).name
    'study:3'
    """
    more = {} if receipt is None else {"receipt": receipt}
    return write(_RequestMessage(version=2, type="question", request=request, **more))


def read_request(content: dict[str, Any]) -> Request:
    """The request in a message; refuses fields that are missing, unknown or of a wrong type."""
    found = _read(content, _RequestMessage, "request")
    if write(found) != write(content):  # a field was left to its default
        raise MessageError("a request has fields that are missing, or not in canonical form.")
    return found.request


def read_receipt(content: dict[str, Any]) -> Receipt | None:
    """The receipt in a message that was read before; None if it has none."""
    return _read(content["receipt"], Receipt, "receipt") if "receipt" in content else None


def read_hello(content: dict[str, Any]) -> Hello:
    """What a hello asks; refuses fields that are missing, unknown or of a wrong type."""
    return _read(content, Hello, "hello")


def _read(content: dict[str, Any], document: type[T], what: str) -> T:
    try:
        return convert(content, document)
    except ValueError as error:
        raise MessageError(f"a {what} is not well formed: {error}.") from None


def answer_message(answer: Answer, digest: str) -> bytes:
    """The message that answers the request of this digest."""
    fields = {**vars(answer), "numbers": answer.numbers.astype("<i8").tobytes()}
    del fields["ledger"]  # it is known after the answer was stored and paid for
    found = _Numbers(**fields, question=digest)
    return write(_Reply(version=2, ok=True, type="answer", answer=found))


def with_head(message: bytes, head: ChainHead) -> bytes:
    """A stored answer with the head of the ledger that paid for it."""
    start, _, _ = message.rpartition(_END)
    return start + b',"ledger":' + write(head._asdict()) + _END


def current_answer(message: bytes) -> bytes:
    """A stored answer as this version writes it; version 1 differs in its number alone."""
    content = json.loads(message)
    return write({**content, "version": VERSION}) if content.get("version") == 1 else message


def read_answer(content: dict[str, Any], request: Request, holder: str | None = None) -> Answer:
    """The answer in a message, if it answers this request, and is of this holder."""
    try:
        reply = convert(content, _Reply)
        found, canonical = reply.answer, reply.ok and write(reply) == write(content)
    except ValueError:
        canonical = False
    if not canonical:
        raise MessageError("sent something that is not an answer")
    if found.question != request.digest:
        raise MessageError("answered another question")
    try:
        numbers = np.frombuffer(found.numbers, "<i8").astype(np.int64)
        names = (found.holder, found.session, found.round, found.kind)
        head = None
        if reply.ledger is not UNSET:
            head = ChainHead(reply.ledger.ledger, reply.ledger.number, reply.ledger.head)
        answer = Answer(*names, numbers, found.private, head)
    except ValueError:  # RefusedError too: not integers, or too large
        raise MessageError("sent numbers that are not counts") from None
    if holder not in (None, answer.holder):
        raise MessageError("sent an answer in another holder's name")
    return answer
