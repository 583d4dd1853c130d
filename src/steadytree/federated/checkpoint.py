"""Checkpoint: what a study has been answered so far, so that a killed coordinator can go on."""

import base64
import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from steadytree._base.exceptions import HolderError
from steadytree._base.files import check_can_write, write_text_atomically
from steadytree.federated.messages import Answer, Request

VERSION = 1


class Checkpoint:
    """Answers by round, in memory and, where a path is given, in a file written after each round.

    How a tree is grown follows from its plan and the answers alone. So a study is resumed by
    growing it again from the beginning, with the rounds that are in the journal answered from
    there.

    Parameters
    ----------
    path : path-like, optional
        The checkpoint; read where it exists.
    plan : str
        Digest of the plan. A checkpoint of another plan is refused.
    """

    def __init__(self, path: str | PathLike[str] | None = None, plan: str = "") -> None:
        self._path = None if path is None else check_can_write(path)
        self._plan = plan
        self._rounds: dict[str, dict[str, Any]] = {}
        if self._path is not None and self._path.exists():
            self._rounds = _load(self._path, plan)

    @property
    def n_rounds(self) -> int:
        return len(self._rounds)

    def recall(
        self, number: int, requests: Mapping[str, Request]
    ) -> dict[str, Answer | Exception] | None:
        """The outcome of a round that was noted; None where it was not."""
        noted = self._rounds.get(str(number))
        if noted is None:
            return None
        found: dict[str, Answer | Exception] = {}
        for name, request in requests.items():
            kept = noted.get(name)
            if kept is None or kept["question"] != request.digest:
                raise ValueError(
                    f"the checkpoint's round {number} asked something else: it is of another plan "
                    "or version. Give the study another name and checkpoint."
                )
            if "gone" in kept:
                found[name] = HolderError(name, kept["gone"])
            else:
                numbers = np.frombuffer(base64.b64decode(kept["numbers"]), "<i8")
                names = (name, request.session, request.round, request.kind)
                private = kept.get("private") is True
                found[name] = Answer(*names, numbers.astype(np.int64), private)
        return found

    def note(
        self,
        number: int,
        requests: Mapping[str, Request],
        outcome: Mapping[str, Answer | Exception],
    ) -> None:
        """Keep the outcome of a round; it is on the disk when this returns."""
        noted: dict[str, Any] = {}
        for name, request in requests.items():
            kept: dict[str, Any] = {"question": request.digest, "kind": request.kind}
            found = outcome[name]
            if isinstance(found, Answer):
                raw = found.numbers.astype("<i8").tobytes()
                kept |= {"epsilon": str(request.epsilon), "numbers": base64.b64encode(raw).decode()}
                kept["private"] = found.private
            else:
                kept["gone"] = getattr(found, "reason", str(found))
            noted[name] = kept
        self._rounds[str(number)] = noted
        if self._path is not None:
            content = {"steadytree checkpoint": VERSION, "plan": self._plan, "rounds": self._rounds}
            write_text_atomically(self._path, json.dumps(content) + "\n")


def _load(path: Path, plan: str) -> dict[str, dict[str, Any]]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        version, known, rounds = found["steadytree checkpoint"], found["plan"], found["rounds"]
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{str(path)!r} is no checkpoint: name another file.") from None
    if version != VERSION or known != plan:
        raise ValueError(
            f"the checkpoint {str(path)!r} is of another study or of a plan that was changed "
            "since: name another checkpoint and study, or go on with the old plan."
        )
    return dict(rounds)
