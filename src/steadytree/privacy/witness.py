"""Witness: the newest line of a ledger that was seen, in another file; it only rises."""

import contextlib
import os
from pathlib import Path

from steadytree._base.exceptions import ChainError
from steadytree._base.files import write_text_atomically
from steadytree.privacy.ledger_lines import Account, ChainHead

HEADER = "steadytree witness 1"


class Witness:
    """A file that notes how far a ledger has come, so that an older copy or a fork is noticed.

    Ledger and mark lie in one folder, and are copied back together. A witness is useful as far as
    it is out of reach of whoever does that. One that is not `needed` is best effort: a missing file
    says nothing, and a disk that cannot be written is ignored.
    """

    def __init__(self, path: Path, needed: bool = True) -> None:
        self.path, self._needed = path, needed

    @property
    def exists(self) -> bool:
        return self.path.exists()

    def read(self) -> ChainHead | None:
        """What was noted; None if there is no file. A damaged one is refused."""
        try:
            content = self.path.read_text(encoding="ascii")
        except FileNotFoundError:
            return None
        except OSError:
            if self._needed:
                raise ChainError("the witness cannot be read.") from None
            return None
        except ValueError:
            raise ChainError("the witness was altered.") from None
        header, _, rest = content.removesuffix("\n").rpartition(" id ")
        with contextlib.suppress(ValueError):
            name, number, head = rest.split(" ")
            found = ChainHead(name, int(number), head)
            if header == HEADER and content == _text(found):
                return found
        raise ChainError("the witness was altered.")

    def check(self, known: Account) -> None:
        """Refuse a ledger that has not come as far as was noted, or went another way."""
        noted = self.read()
        if noted is not None and not known.has(noted):
            raise ChainError("the ledger is older than its witness, or another one.")

    def note(self, head: ChainHead) -> None:
        """Note a newer line; it is on disk when this returns. An older one changes nothing."""
        noted = self.read()
        if noted is not None and noted.number >= head.number:
            return
        try:
            write_text_atomically(self.path, _text(head), for_owner=True)
        except OSError:
            if self._needed:
                raise


def _text(head: ChainHead) -> str:
    return f"{HEADER} id {head.ledger} {head.number} {head.head}\n"


def usual_witnesses(name: str) -> list[Witness]:
    """The witness that every ledger has: a file of this user, on this machine, named by its id.

    It lies in the folder of programs' states (``XDG_STATE_HOME``, by default ``~/.local/state``).
    Where there is none, or it cannot be written, it is left out.
    """
    try:
        home = os.environ.get("XDG_STATE_HOME") or Path("~/.local/state").expanduser()
        folder = Path(home) / "steadytree" / "ledgers"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except (OSError, RuntimeError):  # no home
        return []
    return [Witness(folder / name, needed=False)]
