"""Opening a ledger from the command line: a new one only where that is said."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from steadytree.privacy.ledger import Ledger

NewLedger = Annotated[
    bool, typer.Option("--new-ledger", help="Begin a ledger that does not exist yet.")
]


def check_ledger(path: Path, new: bool) -> None:
    """A lost or mistyped ledger must not become a full budget by itself."""
    if not path.exists() and not new:
        raise ValueError(
            f"there is no ledger {str(path)!r}: check the path, or begin one for rows that were "
            "never asked about with --new-ledger. If it was lost, those rows' budget is spent."
        )
    if new and path.exists():
        raise ValueError(f"the ledger {str(path)!r} exists: leave --new-ledger out.")


def open_ledger(path: Path, budget: float, new: bool) -> Ledger:
    """The ledger, made where `new`; to be opened last, when nothing else can be refused."""
    from steadytree.privacy.ledger import Ledger

    check_ledger(path, new)
    return Ledger(path, budget)
