"""Questions and answers as signed, numbered files."""

import base64
import datetime
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, field

from steadytree._base.documents import Document, convert, parse_json
from steadytree._base.exceptions import HolderError, MessageError, UnsignedError
from steadytree._base.files import write_text_atomically
from steadytree.data.schema import Schema, from_dict, to_dict
from steadytree.federated import framing, messages
from steadytree.federated.framing import SIGNATURE, SIGNED, addressed, envelope, read, write
from steadytree.federated.holder import schema_digest
from steadytree.federated.keys import is_signed, read_key
from steadytree.federated.messages import Answer, Outcome, Request, read_request
from steadytree.federated.receipts import Receipts
from steadytree.federated.study import StudyConfig
from steadytree.federated.transport import Transport
from steadytree.privacy.ledger_lines import ChainHead

SIGNED_VERSION = 2
MOST_AHEAD = 300.0  # seconds that a file may seem to come from the future


class _SignedFile(Document):
    version: Literal[2] = field(name="steadytree file")
    made: str
    study: str
    number: Annotated[int, Meta(ge=0)]
    holder: str
    letter: dict[str, Any]


class RequestFile(_SignedFile):
    """A question, with all that people shall see of it beside its message."""

    kind: Literal["question"]
    asks_for: str = field(name="asks for")
    epsilon: float
    epsilon_of_study: float = field(name="epsilon of the study")
    schema: dict[str, Any]
    seals: dict[str, str]  # signatures for a gateway, which gets messages without the file


class AnswerFile(_SignedFile):
    """An answer, and the digest of the request that it answers."""

    kind: Literal["answer"]
    question: str
    private: bool


def write_signed(path: Path, content: dict[str, Any], key: Path) -> None:
    """Write a file that says when it was made, signed with an Ed25519 key."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    signed = {"steadytree file": SIGNED_VERSION, "made": now, **content}
    signature = base64.b64encode(read_key(key).sign(write(signed))).decode()
    write_text_atomically(path, json.dumps({**signed, "signature": signature}, indent=2) + "\n")


def read_signed(path: Path, document: type[_SignedFile], key: Path) -> dict[str, Any]:
    """The content of a file, if the owner of the key wrote it, whole and of this kind."""
    name = repr(str(path))
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {name}: check the path.")
    if path.stat().st_size > 2 * framing.LARGEST_REPLY:
        raise ValueError(f"{name} is too large to be a message.")
    try:
        content = parse_json(path.read_text(encoding="utf-8"))
        version = content.get("steadytree file")
        signature = base64.b64decode(content.pop("signature"), validate=True)
        signed = write(content)
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        raise ValueError(f"{name} is not a signed file of steadytree.") from None
    if version == 1:
        raise ValueError(
            f"{name} is of version 1, of an older steadytree: update the side that wrote it, and "
            "make it again with `steadytree private ask` or `answer`."
        )
    if not is_signed(signed, signature, read_key(key, public=True)):
        message = f"was not signed by the owner of {key.name!r}, or was changed since"
        raise ValueError(f"{name} {message}: do not use it.")
    kind = "question" if document is RequestFile else "answer"
    try:
        convert(content, document)
    except ValueError as error:
        raise ValueError(
            f"{name} is not a signed {kind} file: {error}: do not answer it."
        ) from None
    try:
        made = datetime.datetime.fromisoformat(content["made"])
        ahead = (made - datetime.datetime.now(datetime.UTC)).total_seconds()
    except (ValueError, TypeError):
        raise ValueError(f"{name} does not say when it was made.") from None
    if ahead > MOST_AHEAD:
        message = f"{name} was made {ahead:.0f} s from now: the clocks disagree, set them right."
        raise ValueError(message)
    return dict(content)


# ---- signatures ----
def sign_message(message: bytes, holder: str, key: Path) -> bytes:
    """The signature of a message to one holder: nobody else accepts it."""
    signature: bytes = read_key(key).sign(addressed(holder, message))
    return signature


def message_opener(key: Path, holder: str) -> Callable[[bytes], bytes]:
    """What opens messages that the owner of the key signed for this holder, and no others.

    The signature is checked on the bytes as they came, before anything in them is read.
    """
    public, start = read_key(key, public=True), len(SIGNED) + SIGNATURE

    def open_message(message: bytes) -> bytes:
        if not message.startswith(SIGNED):
            raise UnsignedError("a message is not signed.")
        signature, content = message[len(SIGNED) : start], message[start:]
        if not is_signed(addressed(holder, content), signature, public):
            raise UnsignedError("a message is signed by somebody else.")
        return content

    return open_message


class SignedMessages:
    """A transport whose messages are signed with the coordinator's ``sign.key``."""

    def __init__(self, transport: Transport, key: Path) -> None:
        self._transport, self._key, self.names = transport, key, transport.names
        read_key(key)  # a key that is missing is refused now

    def sign(self, holder: str, content: bytes) -> bytes:
        """The coordinator's signature, for one holder."""
        return sign_message(content, holder, self._key)

    def exchange(self, messages: Mapping[str, bytes], seconds: float) -> dict[str, bytes]:
        signed = {n: envelope(x, sign_message(x, n, self._key)) for n, x in messages.items()}
        return self._transport.exchange(signed, seconds)


# ---- the coordinator's files ----
class Waiting(Exception):
    """The next round has to be carried by hand: its requests, by holder."""

    def __init__(self, requests: Mapping[str, Request]) -> None:
        super().__init__("the next round has to be asked.")
        self.requests = dict(requests)


class FileHolders:
    """Holders whose answers to one round lie in signed files; the next round raises `Waiting`.

    The study goes on without the holders named in `without`.
    """

    rows_per_person: int | None = None  # files do not say whom a holder protects: rows, at least

    def __init__(
        self,
        plan: StudyConfig,
        answers: Sequence[Path] = (),
        without: Sequence[str] = (),
        receipts: Receipts | None = None,
    ) -> None:
        self._receipts = receipts or Receipts(plan.study, {})
        for name in without:
            if name not in plan.holders:
                raise ValueError(f"{name!r} is not a holder of the plan.")
        self.names, self._without = plan.holders, set(without)
        contents = [_read_answer_file(plan, path) for path in answers]
        numbers = sorted({content["number"] for content in contents})
        if len(numbers) > 1:
            raise ValueError(
                f"the answers are to questions {numbers}: merge one number at a time, such as "
                f"{plan.study}.{numbers[-1]:04d}.*.answer.json."
            )
        self._found = {content["holder"]: content for content in contents}
        for name in self._found:
            if sum(content["holder"] == name for content in contents) > 1:
                raise ValueError(f"there are two answers of holder {name!r}.")
        self._number = numbers[0] if numbers else None
        self.private = bool(answers) and all(each["private"] for each in contents)

    def ask(self, requests: Mapping[str, Request]) -> Outcome:
        """The answers in the files, where they are to this round."""
        number = next(iter(requests.values())).round
        if self._number is None or self._number < number:
            raise Waiting(requests)
        if self._number > number:
            message = f"the answers are to question {self._number}, but question {number} is open."
            raise ValueError(message)
        for name in requests:
            if name not in self._without and name not in self._found:
                raise ValueError(
                    f"the answer of holder {name!r} to question {number} is missing: pass it, or "
                    f"go on without with --without {name}."
                )
        return {name: self._answer(name, request) for name, request in requests.items()}

    def _answer(self, name: str, request: Request) -> Answer | Exception:
        if name in self._without:
            return HolderError(name, "the study goes on without it")
        try:
            content = read(write(self._found[name]["letter"]))
            answer = messages.read_answer(content, request, name)
            self._receipts.note(name, answer.ledger)
        except MessageError as error:
            return HolderError(name, str(error).rstrip("."))
        except HolderError as error:
            return error
        return answer


def write_requests(
    plan: StudyConfig,
    requests: Mapping[str, Request],
    folder: Path,
    heads: dict[str, ChainHead] | None = None,
) -> list[Path]:
    """One signed question for each holder, named by study, number and holder.

    `heads` of the checkpoint: each question brings a receipt for the answer before it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    key, paths = plan.keys / "coordinator" / "sign.key", []
    receipts = Receipts(plan.study, heads or {}, lambda name, x: sign_message(x, name, key))
    for name, request in requests.items():
        path = folder / f"{plan.study}.{request.round:04d}.{name}.question.json"
        content: dict[str, Any] = {"kind": "question", "study": plan.study, "number": request.round}
        content |= {"holder": name, "asks for": request.kind, "epsilon": request.epsilon}
        content |= {"epsilon of the study": plan.epsilon, "schema": to_dict(plan.schema)}
        content["letter"] = read(messages.request_message(request, receipts.of(name)))
        content["seals"] = {each: _seal(content, each, key) for each in ("letter", "hello")}
        write_signed(path, content, key)
        paths.append(path)
    return paths


def _seal(content: Mapping[str, Any], what: str, key: Path) -> str:
    signature = sign_message(_message(content, what), content["holder"], key)
    return base64.b64encode(signature).decode()


def _message(content: Mapping[str, Any], what: str) -> bytes:
    return hello(content) if what == "hello" else write(content["letter"])


def sealed(content: Mapping[str, Any], what: str) -> bytes:
    """The message ("letter") or the hello of a question file, in its envelope."""
    try:
        signature = base64.b64decode(content["seals"][what], validate=True)
    except (KeyError, ValueError):
        raise ValueError("the question's message is not sealed: ask for a new one.") from None
    return envelope(_message(content, what), signature)


def _read_answer_file(plan: StudyConfig, path: Path) -> dict[str, Any]:
    holder = _holder_of(path, plan)
    content = read_signed(path, AnswerFile, plan.keys / "coordinator" / f"{holder}.sign.pub")
    if content["holder"] != holder:
        raise ValueError(f"{str(path)!r} is not named as its content says.")
    if content["study"] != plan.study:
        raise ValueError(f"{str(path)!r} is an answer to another study.")
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
def read_request_file(path: Path, keys: Path) -> dict[str, Any]:
    """A question of the coordinator whose key the holder has."""
    content = read_signed(path, RequestFile, keys / "coordinator.sign.pub")
    try:
        request = read_request(content["letter"])
    except MessageError as error:
        raise ValueError(f"{str(path)!r} holds no question: {error}") from None
    schema = schema_digest(Schema(**from_dict(content["schema"], "the question")))
    shown = (content["study"], content["number"], content["epsilon"], content["asks for"], schema)
    if shown != (request.session, request.round, request.epsilon, request.kind, request.schema):
        raise ValueError(f"{str(path)!r} says one thing and asks another: do not answer it.")
    return content


def answer_path(path: Path) -> Path:
    """Where the answer to a question file goes: beside it."""
    answer = path.with_name(path.name.replace(".question.json", ".answer.json"))
    return answer if answer != path else path.with_name(path.name + ".answer.json")


def write_answer_file(
    request_path: Path, content: Mapping[str, Any], reply: bytes, private: bool, keys: Path
) -> Path:
    path = answer_path(request_path)
    answer = {name: content[name] for name in ("study", "number", "holder")}
    answer |= {"kind": "answer", "question": read_request(content["letter"]).digest}
    answer |= {"private": private, "letter": read(reply)}
    write_signed(path, answer, keys / "sign.key")
    return path


def hello(content: Mapping[str, Any]) -> bytes:
    """What to ask a gateway before a question is handed to it."""
    known = {"study": content["study"], "epsilon": content["epsilon of the study"]}
    return write({"version": framing.VERSION, "type": "hello", "round": content["number"], **known})
