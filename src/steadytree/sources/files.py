"""Questions and answers as signed, numbered files."""

import base64
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from steadytree.core.schema import Schema
from steadytree.core.schema_file import from_dict, to_dict
from steadytree.sources.holder import schema_digest
from steadytree.sources.letters import VERSION, LetterError, digest_of, envelope, read, write
from steadytree.sources.messages import Answer, Request
from steadytree.sources.parties import HolderError
from steadytree.sources.plan import Plan
from steadytree.sources.signed import read_signed, sign_letter, write_signed
from steadytree.sources.wire import question, read_answer


class Waiting(Exception):
    """The next round has to be carried by hand: its requests, by holder."""

    def __init__(self, requests: Mapping[str, Request]) -> None:
        super().__init__("the next round has to be asked.")
        self.requests = dict(requests)


class FileParties:
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
        self, plan: Plan, answers: Sequence[Path] = (), without: Sequence[str] = ()
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
                raise LetterError("sent an answer in another holder's name")
        except LetterError as error:
            return HolderError(name, str(error).rstrip("."))
        return answer


# ---- the coordinator's files ----
def write_questions(plan: Plan, requests: Mapping[str, Request], folder: Path) -> list[Path]:
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


def _read_answer_file(plan: Plan, path: Path) -> dict[str, Any]:
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


def _holder_of(path: Path, plan: Plan) -> str:
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
