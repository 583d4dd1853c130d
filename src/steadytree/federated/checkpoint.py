"""Checkpoint: the rounds of a study so far, from which it is resumed."""

import base64
import binascii
import json
from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np

from steadytree._base.exceptions import HolderError, RefusedError
from steadytree._base.files import check_can_write, write_text_atomically
from steadytree.federated.messages import Answer, Outcome, Request
from steadytree.federated.receipts import read_head
from steadytree.privacy.ledger_lines import ChainHead

CHECKPOINT_VERSION = 1


class Checkpoint:
    """Answers by round, in memory and, if a path is given, in a file written after each round.

    How a tree is grown depends on the plan and the answers alone. So a study is resumed by growing
    it again from the beginning, with the rounds in the checkpoint answered from there. `plan` is
    the digest of the plan; a checkpoint of another plan is refused.
    """

    def __init__(self, path: str | PathLike[str] | None = None, plan: str = "") -> None:
        self._path = None if path is None else check_can_write(path)
        self._plan = plan
        self._rounds: dict[str, dict[str, Any]] = {}
        self.heads: dict[str, ChainHead] = {}  # of the holders' ledgers
        if self._path is None or not self._path.exists():
            return
        try:
            found = json.loads(self._path.read_text(encoding="utf-8"))
            known = found["steadytree checkpoint"], found["plan"]
            self._rounds = dict(found["rounds"])
            kept = found.get("ledgers", {}).items()
            heads = {name: read_head({"ledger": ChainHead(*x)._asdict()}) for name, x in kept}
            self.heads = {name: head for name, head in heads.items() if head is not None}
            if len(self.heads) < len(heads):
                raise ValueError("a head of a ledger is damaged")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            message = f"{str(self._path)!r} is not a checkpoint: name another file."
            raise ValueError(message) from None
        if known != (CHECKPOINT_VERSION, plan):
            raise ValueError(
                f"the checkpoint {str(self._path)!r} is of another study, or the plan was changed "
                "since: name another checkpoint and study, or continue with the old plan."
            )

    @property
    def n_rounds(self) -> int:
        return len(self._rounds)

    def recall(self, number: int, requests: Mapping[str, Request]) -> Outcome | None:
        """The outcome of a round; None if it was not noted."""
        noted = self._rounds.get(str(number))
        if noted is None:
            return None
        try:
            return self._recalled(number, noted, requests)
        except (KeyError, TypeError, AttributeError, binascii.Error, RefusedError):
            message = f"round {number} of the checkpoint is damaged: restore the file, or remove it"
            raise ValueError(f"{message}, and holders send their answers again.") from None

    def _recalled(
        self, number: int, noted: dict[str, Any], requests: Mapping[str, Request]
    ) -> Outcome:
        found: Outcome = {}
        for name, request in requests.items():
            kept = noted.get(name)
            if kept is None or kept["question"] != request.digest:
                raise ValueError(
                    f"round {number} of the checkpoint has other requests: it is of another plan "
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

    def note(self, number: int, requests: Mapping[str, Request], outcome: Outcome) -> None:
        """Keep the outcome of a round; it is on disk when this returns."""
        noted: dict[str, Any] = {}
        for name, request in requests.items():
            kept: dict[str, Any] = {"question": request.digest, "kind": request.kind}
            found = outcome[name]
            if isinstance(found, Answer):
                numbers = base64.b64encode(found.numbers.astype("<i8").tobytes()).decode()
                kept |= {"epsilon": str(request.epsilon), "private": found.private}
                kept["numbers"] = numbers
            else:
                kept["gone"] = getattr(found, "reason", str(found))
            noted[name] = kept
        self._rounds[str(number)] = noted
        if self._path is not None:
            content = {"steadytree checkpoint": CHECKPOINT_VERSION, "plan": self._plan}
            content |= {"rounds": self._rounds, "ledgers": self.heads}
            write_text_atomically(self._path, json.dumps(content) + "\n")
