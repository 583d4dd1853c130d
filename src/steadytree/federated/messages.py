"""Requests and answers as letters; what comes in is checked as if an enemy had written it."""

import base64
import binascii
import re
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from steadytree._base.exceptions import MessageError, RefusedError
from steadytree.federated.framing import VERSION, digest_of, write
from steadytree.privacy.budget import MOST_RELEASED
from steadytree.privacy.mechanisms import check_epsilon

KINDS = ("rows", "block", "last block", "choice", "leaf counts", "side counts")
BLOCKS = ("block", "last block")
MOST_TREES, MOST_BINS = 64, 1_000  # of one request
LARGEST = 2**40
NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


@dataclass(frozen=True)
class Request:
    """One question to one holder.

    Parameters
    ----------
    session : str
        Names the training run; letters, digits, ``_.-``.
    round : int
        Rises within a session; a holder answers each number once.
    kind : {"rows", "block", "last block", "choice", "leaf counts", "side counts"}
        The number of rows; a whole-tree block drawn below each leaf, for pure leaves or, where
        none comes after it, for leaves that classify most rows right; one question chosen at each
        leaf; class counts of the leaves; class counts of both sides of given questions.
    epsilon : float
        What the answer may cost.
    schema : str
        Digest of the schema that both sides must share.
    n_bins : int
        Bins of numeric columns, hence the list of questions.
    trees : tuple of tuples of int
        Trees so far, as `privacy.drawn.to_numbers` writes them; the cost is divided among them.
    depth : int
        Levels of a block.
    questions : tuple of tuples of int
        For "side counts": questions for each leaf of the one tree.
    """

    session: str
    round: int
    kind: str
    epsilon: float
    schema: str
    n_bins: int = 32
    trees: tuple[tuple[int, ...], ...] = ((-1,),)
    depth: int = 0
    questions: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.session, str) or not NAME.fullmatch(self.session):
            raise RefusedError("session must be 1 to 64 letters, digits or any of _.-")
        if self.kind not in KINDS:
            raise RefusedError(f"kind must be one of {KINDS}.")
        for name, low, high in (("round", 0, 10**9), ("n_bins", 2, MOST_BINS), ("depth", 0, 3)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
                raise RefusedError(f"{name} must be a whole number from {low} to {high}.")
        if not 1 <= len(self.trees) <= MOST_TREES:
            raise RefusedError(f"trees must be 1 to {MOST_TREES} trees.")
        try:
            check_epsilon(self.epsilon)
        except (TypeError, ValueError) as error:
            raise RefusedError(str(error)) from None

    @property
    def name(self) -> str:
        """What the ledger calls this request."""
        return f"{self.session}:{self.round}"


@dataclass(frozen=True, eq=False)
class Answer:
    """Noised whole numbers; nothing else leaves a holder.

    Parameters
    ----------
    holder, session : str
    round : int
    kind : str
    numbers : read-only int64 array, one dimension
    private : bool, default=False
        Whether its noise protects; an answer that does not say so does not.
    """

    holder: str
    session: str
    round: int
    kind: str
    numbers: NDArray[np.int64]
    private: bool = False

    def __post_init__(self) -> None:
        numbers = np.asarray(self.numbers)
        if numbers.ndim != 1 or numbers.dtype.kind not in "iu" or len(numbers) > MOST_RELEASED:
            raise RefusedError("an answer must be a list of whole numbers.")
        if len(numbers) and (numbers.min() < -LARGEST or numbers.max() > LARGEST):
            raise RefusedError("an answer holds a number too large to be a count.")
        numbers = numbers.astype(np.int64)
        numbers.flags.writeable = False
        object.__setattr__(self, "numbers", numbers)

    def check(self, request: Request, size: int | None = None) -> NDArray[np.int64]:
        """The numbers, if they answer this request and are as many as expected."""
        asked = (request.session, request.round, request.kind)
        if (self.session, self.round, self.kind) != asked:
            raise RefusedError(f"holder {self.holder!r} answered another request.")
        if size is not None and len(self.numbers) != size:
            raise RefusedError(
                f"holder {self.holder!r} sent {len(self.numbers)} numbers, {size} were asked for."
            )
        return self.numbers


class Party(Protocol):
    """All that a coordinator knows of a holder."""

    @property
    def name(self) -> str: ...

    @property
    def private(self) -> bool: ...

    def answer(self, request: Request) -> Answer: ...


FIELDS = ("session", "round", "kind", "epsilon", "schema", "n_bins", "trees", "depth", "questions")


def question(request: Request) -> bytes:
    """The letter that asks a request; its digest names the question.

    Examples
    --------
    >>> letter = question(Request("study", 3, "rows", 0.5, "abc"))
    >>> read_question(__import__("json").loads(letter)).name
    'study:3'
    """
    content: dict[str, Any] = {name: getattr(request, name) for name in FIELDS}
    return write({"version": VERSION, "type": "question", "request": content})


def read_question(content: dict[str, Any]) -> Request:
    """The request in a letter; refuses fields that are missing, unknown or of a wrong type."""
    found = content.get("request")
    if set(content) != {"version", "type", "request"} or not isinstance(found, dict):
        raise MessageError("a question needs a request and nothing else.")
    if set(found) != set(FIELDS) or not isinstance(found["schema"], str):
        raise MessageError("a request has fields that are missing or unknown.")
    if isinstance(found["epsilon"], bool) or not isinstance(found["epsilon"], int | float):
        raise MessageError("epsilon must be a number.")
    listed = {name: _lists(found[name]) for name in ("trees", "questions")}
    try:
        return Request(**{**found, **listed, "epsilon": float(found["epsilon"])})
    except (RefusedError, TypeError, OverflowError):
        raise MessageError("a request is not well formed.") from None


def _lists(value: Any) -> tuple[tuple[int, ...], ...]:
    if not isinstance(value, list):
        raise MessageError("trees and questions must be lists of lists of whole numbers.")
    for inner in value:
        if not isinstance(inner, list) or not all(type(number) is int for number in inner):
            raise MessageError("trees and questions must be lists of lists of whole numbers.")
    return tuple(tuple(inner) for inner in value)


def answer_letter(answer: Answer, digest: str) -> bytes:
    """The letter that answers the question of this digest."""
    packed = base64.b64encode(answer.numbers.astype("<i8").tobytes()).decode()
    content = {"holder": answer.holder, "session": answer.session, "round": answer.round}
    content |= {"kind": answer.kind, "question": digest, "numbers": packed}
    content["private"] = answer.private  # with the answer, so that a stored one keeps it
    return write({"version": VERSION, "ok": True, "type": "answer", "answer": content})


def read_answer(content: dict[str, Any], asked: bytes) -> Answer:
    """The answer in a letter, if it answers the letter that was asked."""
    found = content.get("answer")
    wanted = {"holder", "session", "round", "kind", "question", "numbers", "private"}
    if content.get("ok") is not True or not isinstance(found, dict) or set(found) != wanted:
        raise MessageError("sent something that is no answer")
    texts = ("holder", "session", "kind", "question", "numbers")
    plain = type(found["round"]) is int and type(found["private"]) is bool
    if not plain or any(not isinstance(found[name], str) for name in texts):
        raise MessageError("sent something that is no answer")
    if found["question"] != digest_of(asked):
        raise MessageError("answered another question")
    try:
        raw = base64.b64decode(found["numbers"], validate=True)
        numbers = np.frombuffer(raw, "<i8").astype(np.int64)
        names = (found["holder"], found["session"], found["round"], found["kind"])
        return Answer(*names, numbers, found["private"])
    except (binascii.Error, ValueError):  # RefusedError too: not whole numbers, or too large
        raise MessageError("sent numbers that are no counts") from None
