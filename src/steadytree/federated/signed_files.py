"""Questions and answers as signed, numbered files."""

import base64
import binascii
import datetime
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from steadytree._base.files import write_text_atomically
from steadytree._base.optional import require
from steadytree.data.schema import Schema, from_dict, to_dict
from steadytree.federated.framing import (
    LARGEST_REPLY,
    SIGNATURE,
    SIGNED,
    VERSION,
    MessageError,
    UnsignedError,
    digest_of,
    envelope,
    only_once,
    read,
    write,
)
from steadytree.federated.holder import schema_digest
from steadytree.federated.messages import Answer, Request, question, read_answer
from steadytree.federated.study import StudyConfig
from steadytree.federated.transport import HolderError, Transport

SIGNED_VERSION = 1
MOST_AHEAD = 300.0  # seconds that a file may seem to come from the future
PURPOSE = "signing files"


def write_signed(path: Path, content: dict[str, Any], key: Path) -> None:
    """Write a file that says when it was made, signed with an Ed25519 key."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    signed = {"steadytree file": SIGNED_VERSION, "made": now, **content}
    signature = _private(key).sign(write(signed))
    whole = {**signed, "signature": base64.b64encode(signature).decode()}
    write_text_atomically(path, json.dumps(whole, indent=2) + "\n")


def read_signed(path: Path, kind: str, key: Path) -> dict[str, Any]:
    """The content of a file, if the owner of the key wrote it, whole and of this kind."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {str(path)!r}: check the path.")
    if path.stat().st_size > 2 * LARGEST_REPLY:
        raise ValueError(f"{str(path)!r} is too large to be a letter.")
    try:
        content = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=only_once)
        signature = base64.b64decode(content.pop("signature"), validate=True)
        signed = write(content)
    except (ValueError, KeyError, AttributeError, TypeError, binascii.Error, RecursionError):
        raise ValueError(f"{str(path)!r} is no signed file of steadytree.") from None
    invalid = require("cryptography.exceptions", "private", PURPOSE).InvalidSignature
    try:
        _public(key).verify(signature, signed)
    except invalid:
        raise ValueError(
            f"{str(path)!r} was not signed by the owner of {key.name!r}, or was changed since: do "
            "not use it."
        ) from None
    if content.get("steadytree file") != SIGNED_VERSION or content.get("kind") != kind:
        raise ValueError(f"{str(path)!r} is no {kind}, or of another version.")
    _check_time(path, str(content.get("made")))
    return dict(content)


# ---- letters ----
def sign_letter(letter: bytes, holder: str, key: Path) -> bytes:
    """The signature of a letter to one holder: to nobody else is it worth anything."""
    signature: bytes = _private(key).sign(_to(holder) + letter)
    return signature


def letter_opener(key: Path, holder: str) -> Callable[[bytes], bytes]:
    """What opens letters that the owner of the key signed for this holder, and no others.

    The signature is checked on the bytes as they came, before anything in them is read.
    """
    public = _public(key)
    invalid = require("cryptography.exceptions", "private", PURPOSE).InvalidSignature

    def open_letter(letter: bytes) -> bytes:
        if not letter.startswith(SIGNED):
            raise UnsignedError("a letter is not signed.")
        start = len(SIGNED) + SIGNATURE
        try:
            public.verify(letter[len(SIGNED) : start], _to(holder) + letter[start:])
        except invalid:
            raise UnsignedError("a letter is signed by somebody else.") from None
        return letter[start:]

    return open_letter


class SignedMessages:
    """A transport whose letters are signed by the coordinator.

    Parameters
    ----------
    transport : Transport
    key : Path
        The coordinator's ``sign.key``.
    """

    def __init__(self, transport: Transport, key: Path) -> None:
        self._transport, self._key, self.names = transport, key, transport.names
        _private(key)

    def exchange(self, letters: Mapping[str, bytes], seconds: float) -> dict[str, bytes]:
        """Carry each letter in an envelope."""
        signed = {n: envelope(x, sign_letter(x, n, self._key)) for n, x in letters.items()}
        return self._transport.exchange(signed, seconds)


def _to(holder: str) -> bytes:
    return SIGNED + holder.encode() + b"\n"


def _check_time(path: Path, made: str) -> None:
    try:
        ahead = datetime.datetime.fromisoformat(made) - datetime.datetime.now(datetime.UTC)
    except (ValueError, TypeError):
        raise ValueError(f"{str(path)!r} does not say when it was made.") from None
    if ahead.total_seconds() > MOST_AHEAD:
        raise ValueError(
            f"{str(path)!r} was made {ahead.total_seconds():.0f} s from now: the clocks disagree, "
            "set them right."
        )


def _private(path: Path) -> Any:
    return _load(path, "load_pem_private_key", "Ed25519PrivateKey", None)


def _public(path: Path) -> Any:
    return _load(path, "load_ssh_public_key", "Ed25519PublicKey")


def _load(path: Path, function: str, kind: str, *more: Any) -> Any:
    form = require("cryptography.hazmat.primitives.serialization", "private", PURPOSE)
    curve = require("cryptography.hazmat.primitives.asymmetric.ed25519", "private", PURPOSE)
    if not path.is_file():
        raise FileNotFoundError(
            f"the key {str(path)!r} is missing: make it with `steadytree private keys`."
        )
    try:
        key = getattr(form, function)(path.read_bytes(), *more)
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, getattr(curve, kind)):
        raise ValueError(f"{str(path)!r} is no key that signs files: name another.")
    return key


class Waiting(Exception):
    """The next round has to be carried by hand: its requests, by holder."""

    def __init__(self, requests: Mapping[str, Request]) -> None:
        super().__init__("the next round has to be asked.")
        self.requests = dict(requests)


class FileHolders:
    """Holders whose answers to one round lie in files; the round after it raises `Waiting`.

    Parameters
    ----------
    plan : Plan
    answers : list of Path
        Signed answers of one round.
    without : list of str
        Holders that the study shall go on without.
    """

    def __init__(
        self, plan: StudyConfig, answers: Sequence[Path] = (), without: Sequence[str] = ()
    ) -> None:
        unknown = [name for name in without if name not in plan.holders]
        if unknown:
            raise ValueError(f"{unknown[0]!r} is no holder of the plan.")
        self.names, self._without = plan.holders, set(without)
        contents = [_read_answer_file(plan, path) for path in answers]
        numbers = sorted({content["number"] for content in contents})
        if len(numbers) > 1:
            raise ValueError(
                f"the answers are to questions {numbers}: merge one number at a time, such as "
                f"{plan.study}.{numbers[-1]:04d}.*.answer.json."
            )
        self._found: dict[str, dict[str, Any]] = {}
        for content in contents:
            if content["holder"] in self._found:
                raise ValueError(f"there are two answers of holder {content['holder']!r}.")
            self._found[content["holder"]] = content
        self._number = numbers[0] if numbers else None
        self.private = bool(answers) and all(c["private"] is True for c in self._found.values())

    def ask(self, requests: Mapping[str, Request]) -> dict[str, Answer | Exception]:
        """The answers in the files, where they are to this round."""
        number = next(iter(requests.values())).round
        if self._number is None or self._number < number:
            raise Waiting(requests)
        if self._number > number:
            raise ValueError(
                f"the answers are to question {self._number}, but question {number} is open."
            )
        asked = set(requests) - self._without
        absent = [name for name in requests if name in asked and name not in self._found]
        if absent:
            raise ValueError(
                f"the answer of holder {absent[0]!r} to question {number} is missing: pass it, or "
                f"go on without with --without {absent[0]}."
            )
        return {name: self._answer(name, request) for name, request in requests.items()}

    def _answer(self, name: str, request: Request) -> Answer | Exception:
        if name in self._without:
            return HolderError(name, "the study goes on without it")
        try:
            letter = write(self._found[name]["letter"])
            answer = read_answer(read(letter), question(request))
            if answer.holder != name:
                raise MessageError("sent an answer in another holder's name")
        except MessageError as error:
            return HolderError(name, str(error).rstrip("."))
        return answer


# ---- the coordinator's files ----
def write_questions(plan: StudyConfig, requests: Mapping[str, Request], folder: Path) -> list[Path]:
    """One signed question for each holder, named by study, number and holder."""
    folder.mkdir(parents=True, exist_ok=True)
    key, paths = plan.keys / "coordinator" / "sign.key", []
    for name, request in requests.items():
        path = folder / f"{plan.study}.{request.round:04d}.{name}.question.json"
        content: dict[str, Any] = {
            "kind": "question",
            "study": plan.study,
            "number": request.round,
            "holder": name,
            "asks for": request.kind,
            "epsilon": request.epsilon,
            "epsilon of the study": plan.epsilon,
            "schema": to_dict(plan.schema),
            "letter": read(question(request)),
        }
        letters = {"letter": write(content["letter"]), "hello": hello(content)}
        # for a gateway that wants letters signed, which it gets without the file around them
        content["seals"] = {what: _seal(each, name, key) for what, each in letters.items()}
        write_signed(path, content, key)
        paths.append(path)
    return paths


def _seal(letter: bytes, holder: str, key: Path) -> str:
    return base64.b64encode(sign_letter(letter, holder, key)).decode()


def sealed(content: Mapping[str, Any], what: str) -> bytes:
    """The letter or the hello of a question file, in its envelope."""
    letter = hello(content) if what == "hello" else write(content["letter"])
    try:
        signature = base64.b64decode(content["seals"][what], validate=True)
    except (KeyError, TypeError, ValueError):
        raise ValueError("the question's letter is not sealed: ask for a new one.") from None
    return envelope(letter, signature)


def _read_answer_file(plan: StudyConfig, path: Path) -> dict[str, Any]:
    holder = _holder_of(path, plan)
    key = plan.keys / "coordinator" / f"{holder}.sign.pub"
    content = read_signed(path, "answer", key)
    if content.get("holder") != holder or type(content.get("number")) is not int:
        raise ValueError(f"{str(path)!r} is not named as its content says.")
    if content.get("study") != plan.study:
        raise ValueError(f"{str(path)!r} is an answer to another study.")
    if not isinstance(content.get("letter"), dict):
        raise ValueError(f"{str(path)!r} holds no answer.")
    return content


def _holder_of(path: Path, plan: StudyConfig) -> str:
    """Whose key must have signed a file, by its name; the content is compared afterwards."""
    for holder in plan.holders:
        # the whole name: a holder's may end like another's
        wanted = rf"{re.escape(plan.study)}\.\d{{4,}}\.{re.escape(holder)}\.answer\.json"
        if re.fullmatch(wanted, path.name):
            return holder
    raise ValueError(
        f"{str(path)!r} is not named as an answer of a holder of the plan, or is of another study."
    )


# ---- a holder's files ----
def read_question_file(path: Path, keys: Path) -> dict[str, Any]:
    """A question of the coordinator whose key the holder has."""
    content = read_signed(path, "question", keys / "coordinator.sign.pub")
    letter = content.get("letter")
    asked = letter.get("request") if isinstance(letter, dict) else None
    shown = [content.get(key) for key in ("study", "number", "epsilon", "asks for")]
    shown.append(_digest_of_schema(content.get("schema"), path))
    keys_asked = ("session", "round", "epsilon", "kind", "schema")
    if not isinstance(asked, dict) or shown != [asked.get(key) for key in keys_asked]:
        raise ValueError(f"{str(path)!r} says one thing and asks another: do not answer it.")
    return content


def _digest_of_schema(content: Any, path: Path) -> str:
    if not isinstance(content, dict):
        raise ValueError(f"{str(path)!r} shows no schema: do not answer it.")
    return schema_digest(Schema(**from_dict(content, "the question")))


def answer_path(asked: Path) -> Path:
    """Where the answer to a question file goes: beside it."""
    path = asked.with_name(asked.name.replace(".question.json", ".answer.json"))
    return path if path != asked else asked.with_name(asked.name + ".answer.json")


def write_answer_file(
    asked: Path, content: Mapping[str, Any], reply: bytes, private: bool, keys: Path
) -> Path:
    """The signed answer beside its question."""
    path = answer_path(asked)
    answer = {name: content[name] for name in ("study", "number", "holder")}
    answer |= {"kind": "answer", "question": digest_of(write(content["letter"]))}
    answer |= {"private": private, "letter": read(reply)}
    write_signed(path, answer, keys / "sign.key")
    return path


def hello(content: Mapping[str, Any]) -> bytes:
    """What to ask a gateway before a question is handed to it."""
    known = {"study": content["study"], "epsilon": content["epsilon of the study"]}
    known["round"] = content["number"]
    return write({"version": VERSION, "type": "hello", **known})
