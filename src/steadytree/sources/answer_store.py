"""AnswerStore: answers on the disk before they are paid for, so that a crash loses neither."""

import contextlib
import json
import os
import sys
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

from steadytree.core.atomic import write_text_atomically
from steadytree.privacy.entry import EVERYTHING, ZERO
from steadytree.sources.letters import digest_of

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
