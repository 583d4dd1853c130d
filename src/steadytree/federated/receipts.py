"""Receipts: what a coordinator notes of each holder's ledger, and what others can verify by them.

A reply carries the head of the holder's ledger. The coordinator keeps it in its checkpoint, and
sends it back, signed, with the next message to that holder, which keeps it beside its ledger. So a
ledger that is copied back or replaced is noticed on both sides, and by a third party that has the
ledger, the receipts and the coordinator's public key.
"""

import base64
import contextlib
from collections.abc import Callable, Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

from steadytree._base.documents import convert, parse_json
from steadytree._base.exceptions import ChainError, HolderError
from steadytree._base.files import write_text_atomically
from steadytree.federated.framing import addressed, write
from steadytree.federated.keys import is_signed, read_key
from steadytree.federated.messages import Receipt
from steadytree.privacy.ledger_lines import Account, ChainHead, Mark, compose, mark_path
from steadytree.privacy.witness import Witness

RECEIPTS = "receipts"  # in the store beside a ledger
HEADER = b"steadytree receipt 1\n"
Sign = Callable[[str, bytes], bytes]  # of bytes for one holder


class Receipts:
    """The coordinator's side: heads of the holders' ledgers in one study, which only rise.

    `heads` are those of the checkpoint, which keeps them. Without `sign`, for messages that are not
    signed, receipts have no signature.
    """

    def __init__(self, study: str, heads: dict[str, ChainHead], sign: Sign | None = None) -> None:
        self._study, self._heads, self._sign = study, heads, sign

    def of(self, holder: str) -> Receipt | None:
        """The receipt to send to a holder; None as long as it has shown no head."""
        head = self._heads.get(holder)
        if head is None:
            return None
        signature = b"" if self._sign is None else self._sign(holder, _content(self._study, *head))
        text = base64.b64encode(signature).decode()
        return Receipt(**head._asdict(), study=self._study, holder=holder, signature=text)

    def note(self, holder: str, head: ChainHead | None) -> None:
        """Keep a newer head; a HolderError if a ledger went back or is another one."""
        known = self._heads.get(holder)
        if known is None:
            if head is not None:
                self._heads[holder] = head
            return
        same = head is not None and head.ledger == known.ledger
        if head is None or not same or head.number < known.number:
            raise HolderError(holder, "its ledger was copied back or replaced: restore the newest")
        if head.number == known.number and head != known:
            raise HolderError(holder, "its ledger was altered: restore the newest")
        self._heads[holder] = head


def read_head(reply: dict[str, Any]) -> ChainHead | None:
    """The head in a reply to a hello, whoever sent it."""
    found = reply.get("ledger")
    if not isinstance(found, dict) or set(found) != set(ChainHead._fields):
        return None
    head = ChainHead(**found)
    types = (str, int, str)
    is_head = all(type(value) is kind for value, kind in zip(head, types, strict=True))
    return head if is_head else None


def _content(study: str, ledger: str, number: int, head: str) -> bytes:
    """The bytes that a coordinator signs."""
    return HEADER + write({"study": study, "ledger": ledger, "number": number, "head": head})


# ---- the holder's side ----
def keep_receipt(path: Path, receipt: Receipt) -> None:
    """Add a receipt to the file beside the ledger, if it names a later line than its study's do.

    So a study adds at most one line for each of the ledger's, whatever a coordinator sends.
    """
    lines, known = list[str](), (receipt.study, receipt.ledger)
    with contextlib.suppress(FileNotFoundError):
        lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    for line in lines:
        with contextlib.suppress(ValueError):  # a damaged one is for whoever verifies
            kept = convert(parse_json(line), Receipt)
            if (kept.study, kept.ledger) == known and kept.number >= receipt.number:
                return
    added = [*lines, write(receipt).decode()]
    write_text_atomically(path, "".join(line + "\n" for line in added), for_owner=True)


def read_receipts(path: Path) -> list[Receipt]:
    """The receipts of a file; a last line that was interrupted is left out."""
    found = []
    for line in path.read_bytes().split(b"\n")[:-1]:
        try:
            found.append(convert(parse_json(line), Receipt))
        except ValueError:
            message = f"{str(path)!r} has a line that is not a receipt: restore the file."
            raise ValueError(message) from None
    return found


# ---- a third party ----
def verify_ledger(
    path: Path,
    receipts: Path | None = None,
    coordinator_key: Path | None = None,
    checkpoint: Path | None = None,
    holder: str | None = None,
    witness: Path | None = None,
) -> dict[str, Any]:
    """What the files of a ledger prove; a ValueError says what they do not. Nothing is written."""
    name = path.name
    try:
        known = Account.read(path.read_bytes(), Mark.read(mark_path(path)))
    except ChainError as error:
        raise ValueError(f"the ledger {name!r} is not whole: {error}") from None
    if known.missing:
        raise ValueError(
            f"the last line of {name!r} is only in its mark: open it once, then verify."
        )
    epsilon, delta = compose(known.entries, Decimal(known.terms[1]))
    if epsilon > Decimal(known.terms[0]) or delta > Decimal(known.terms[1]):
        raise ValueError(f"{name!r} has spent {epsilon} of a budget of {known.terms[0]}.")
    beside = path.with_name(f"{name}.answers") / RECEIPTS
    listed = read_receipts(receipts or beside) if receipts or beside.is_file() else []
    if coordinator_key is not None:
        _check_signatures(listed, coordinator_key)
    _check_heads(name, known, [(f"a receipt of {one.study!r}", one.noted) for one in listed])
    seen: dict[str, int | None] = {"checkpoint": None, "witness": None}
    holders = {one.holder for one in listed} | ({holder} if holder else set())
    noted = [] if checkpoint is None else _heads_in(checkpoint, holders)
    if witness is not None and (head := Witness(witness).read()) is not None:
        noted.append(("the witness", head))
    for what, head in noted:
        _check_heads(name, known, [(what, head)])
        seen["witness" if "witness" in what else "checkpoint"] = head.number
    for what, given in (("checkpoint", checkpoint), ("witness", witness)):
        if given is not None and seen[what] is None:
            raise ValueError(f"{str(given)!r} has no head of this ledger: name another --{what}.")
    sums = {"budget": float(known.terms[0]), "spent": float(epsilon), "lines": known.head.number}
    return {**sums, "head": known.head.head, "receipts": len(listed), **seen}


def _check_heads(name: str, known: Account, noted: Iterable[tuple[str, ChainHead]]) -> None:
    for what, head in noted:
        if not known.has(head):
            raise ValueError(
                f"the ledger {name!r} is an older copy or another one: {what} names line "
                f"{head.number} with another hash."
            )


def _check_signatures(listed: list[Receipt], key: Path) -> None:
    public = read_key(key, public=True)
    for one in listed:
        try:
            signature = base64.b64decode(one.signature, validate=True)
        except ValueError:
            signature = b""
        if not is_signed(addressed(one.holder, _content(one.study, *one.noted)), signature, public):
            raise ValueError(f"the receipt of line {one.number} was not signed by {key.name!r}.")


def _heads_in(checkpoint: Path, holders: set[str]) -> list[tuple[str, ChainHead]]:
    """Heads of some holders in a checkpoint; of the only one, if none is named."""
    try:
        kept = parse_json(checkpoint.read_text(encoding="utf-8"))["ledgers"]
        found = {name: ChainHead(*head) for name, head in kept.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError(
            f"{str(checkpoint)!r} is not a checkpoint with heads of ledgers."
        ) from None
    chosen = holders or set(found)
    if len(chosen) > 1 and not holders:
        raise ValueError(f"the checkpoint has {', '.join(sorted(found))}: name one with --holder.")
    return [("the checkpoint", found[name]) for name in sorted(chosen) if name in found]
