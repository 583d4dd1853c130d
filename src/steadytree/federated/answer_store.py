"""AnswerStore: the answers of one holder on disk."""

import contextlib
import json
import os
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

from steadytree._base.files import write_text_atomically
from steadytree.federated import messages
from steadytree.federated.framing import digest_of
from steadytree.federated.messages import Request
from steadytree.privacy.ledger_lines import EVERYTHING, ZERO

IDENTITY, LOCK, MARK = "identity.json", "serving.lock", "spent"


class AnswerStore:
    """The answers of one holder, one file each, in a folder beside its ledger.

    The order is: store, pay, send. An answer that is stored but not paid for was never sent; it is
    paid for when its request is repeated. An answer that was paid for but is not stored was lost
    because files were removed, and is never computed again: new noise would reveal more than was
    paid for. The folder is created for its owner only, and belongs to one holder and schema.
    """

    def __init__(self, folder: Path, holder: str, schema: str) -> None:
        self.folder = folder
        folder.mkdir(mode=0o700, exist_ok=True)
        folder.chmod(0o700)  # a restored one may be readable by others, and answers unpaid
        self._lock = _lock_alone(folder / LOCK)
        self._used: dict[str, tuple[int, set[int]]] = {}  # by study, once read
        try:
            _check_identity(folder / IDENTITY, {"holder": holder, "schema": schema})
        except ValueError:
            self.close()
            raise

    def find(self, session: str, number: int) -> tuple[str, bytes] | None:
        """Digest of a stored request, and its answer; None if there is none, or it is damaged."""
        damaged = (ValueError, KeyError, TypeError, AttributeError)
        with contextlib.suppress(FileNotFoundError, *damaged):
            found = json.loads(self._path(session, number).read_text(encoding="utf-8"))
            message = found["letter"].encode()
            if digest_of(message) == found["check"]:
                return str(found["question"]), messages.current_answer(message)
        return None

    def keep(self, request: Request, message: bytes, work: int) -> None:
        """Store an answer; it is on disk when this returns."""
        content: dict[str, Any] = {"question": request.digest, "check": digest_of(message)}
        content |= {"letter": message.decode(), "work": work, "bins": request.n_bins}
        session, number = request.session, request.round
        used, bins = self.used(session)
        write_text_atomically(self._path(session, number), json.dumps(content))
        self._used[session] = used + work, bins | {request.n_bins}

    def used(self, session: str) -> tuple[int, set[int]]:
        """Steps of work of a study's stored answers, and the bins that it asked with."""
        if session in self._used:
            return self._used[session]
        work, bins = 0, set[int]()
        for path in self.folder.glob(f"{session}.*.answer"):
            with contextlib.suppress(OSError, ValueError, TypeError, AttributeError):
                # a study's name may begin like another's
                if path.name.removeprefix(f"{session}.").removesuffix(".answer").isdigit():
                    found = json.loads(path.read_text(encoding="utf-8"))
                    work += int(found.get("work", 0))
                    bins |= {int(found["bins"])} if "bins" in found else set()
        self._used[session] = work, bins
        return work, bins

    def drop(self, session: str, number: int) -> None:
        """Remove an answer that could not be paid for."""
        self._path(session, number).unlink(missing_ok=True)

    @property
    def spent(self) -> Decimal:
        """The highest known amount spent in the ledger; infinity if the mark is damaged."""
        try:
            return Decimal((self.folder / MARK).read_text(encoding="utf-8").strip())
        except FileNotFoundError:
            return ZERO
        except (ValueError, ArithmeticError):
            return EVERYTHING

    def mark_spent(self, epsilon: Decimal) -> None:
        """Record what the ledger shows, so that a lost or older ledger is detected."""
        if epsilon > self.spent:
            write_text_atomically(self.folder / MARK, f"{epsilon}\n")

    def close(self) -> None:
        """Release the folder for another process."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _path(self, session: str, number: int) -> Path:
        return self.folder / f"{session}.{number}.answer"


def _lock_alone(path: Path) -> int:
    handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
    if sys.platform != "win32":
        import fcntl

        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            message = f"another gateway serves {path.parent.name!r}: stop it first."
            raise ValueError(message) from None
    return handle


def _check_identity(path: Path, wanted: dict[str, str]) -> None:
    if not path.exists():
        write_text_atomically(path, json.dumps(wanted) + "\n")
        return
    found = None
    with contextlib.suppress(ValueError):
        found = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(found, dict):
        raise ValueError(f"{str(path)!r} is damaged: restore the folder from a backup.")
    for name, value in wanted.items():
        if found.get(name) != value:
            raise ValueError(
                f"the ledger beside {path.parent.name!r} was created for another {name}: use that "
                "one, or name a new ledger for other rows."
            )
