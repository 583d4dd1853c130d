"""Requests and answers as letters; what comes in is checked as if an enemy had written it."""

import base64
import binascii
from typing import Any

import numpy as np

from steadytree.sources.letters import VERSION, LetterError, digest_of, write
from steadytree.sources.messages import Answer, RefusedError, Request

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
        raise LetterError("a question needs a request and nothing else.")
    if set(found) != set(FIELDS) or not isinstance(found["schema"], str):
        raise LetterError("a request has fields that are missing or unknown.")
    if isinstance(found["epsilon"], bool) or not isinstance(found["epsilon"], int | float):
        raise LetterError("epsilon must be a number.")
    listed = {name: _lists(found[name]) for name in ("trees", "questions")}
    try:
        return Request(**{**found, **listed, "epsilon": float(found["epsilon"])})
    except (RefusedError, TypeError, OverflowError):
        raise LetterError("a request is not well formed.") from None


def _lists(value: Any) -> tuple[tuple[int, ...], ...]:
    if not isinstance(value, list):
        raise LetterError("trees and questions must be lists of lists of whole numbers.")
    for inner in value:
        if not isinstance(inner, list) or not all(type(number) is int for number in inner):
            raise LetterError("trees and questions must be lists of lists of whole numbers.")
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
        raise LetterError("sent something that is no answer")
    texts = ("holder", "session", "kind", "question", "numbers")
    plain = type(found["round"]) is int and type(found["private"]) is bool
    if not plain or any(not isinstance(found[name], str) for name in texts):
        raise LetterError("sent something that is no answer")
    if found["question"] != digest_of(asked):
        raise LetterError("answered another question")
    try:
        raw = base64.b64decode(found["numbers"], validate=True)
        numbers = np.frombuffer(raw, "<i8").astype(np.int64)
        names = (found["holder"], found["session"], found["round"], found["kind"])
        return Answer(*names, numbers, found["private"])
    except (binascii.Error, ValueError):  # RefusedError too: not whole numbers, or too large
        raise LetterError("sent numbers that are no counts") from None
