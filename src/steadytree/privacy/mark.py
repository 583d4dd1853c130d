"""Mark: the newest line of a ledger in a file of its own, so that a shorter ledger is noticed."""

import os
from pathlib import Path
from typing import NamedTuple

from steadytree.core.atomic import create_text, write_text_atomically
from steadytree.privacy.chain import START, Chain, ChainError, unseal

HEADER = "steadytree ledger mark 1"


class Mark(NamedTuple):
    """What a ledger ends with, or will end with when the write that is under way is done.

    The mark is on the disk before its line is. So a ledger ends with the mark's line, or a crash
    came in between and the line is completed from the mark: nothing that was paid is forgotten,
    and no amount has to be guessed.

    Parameters
    ----------
    before : str
        Hash of all lines before the newest.
    line : bytes
        The newest line, with its hash and line end.
    """

    before: str
    line: bytes

    @property
    def is_first(self) -> bool:
        """Whether nothing was spent yet."""
        return self.before == START

    def missing(self, chain: Chain) -> bytes:
        """What a write that was cut off left out; a ledger that does not fit is refused."""
        _, head = unseal(self.before, self.line)
        if chain.head == self.before and self.line.startswith(chain.tail):
            return self.line[len(chain.tail) :]
        # a mark that is older than its ledger takes nothing away from what the ledger shows
        if head in chain.heads and not chain.tail:
            return b""
        raise ChainError("the ledger does not end as its mark says.")

    @classmethod
    def read(cls, path: Path) -> "Mark | None":
        """The mark in a file, None where there is no file; a damaged one is refused."""
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        first, _, line = content.partition(b"\n")
        before = first[-64:].decode("ascii", "replace")
        if first != f"{HEADER} {before}".encode():
            raise ChainError("the mark was altered.")
        unseal(before, line)
        return cls(before, line)

    def begin(self, path: Path) -> None:
        """Write the first mark, unless another process did."""
        create_text(path, self._text)

    def write(self, path: Path) -> None:
        """Put this mark into the place of the one before; it is on the disk when this returns."""
        write_text_atomically(path, self._text, for_owner=True)

    @property
    def _text(self) -> str:
        return f"{HEADER} {self.before}\n{self.line.decode()}"


def mark_path(ledger: str | os.PathLike[str]) -> Path:
    """The mark of a ledger lies beside it."""
    path = Path(ledger)
    return path.with_name(path.name + ".mark")
