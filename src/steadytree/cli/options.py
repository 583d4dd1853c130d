"""Opening a ledger from the command line: a new one only where that is said."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steadytree._base.files import Place
from steadytree.cli.paths import CHANGES, READS, Does

if TYPE_CHECKING:
    from steadytree.privacy.ledger import Ledger

AsJson = Annotated[bool, typer.Option("--json", help="Print all figures as JSON.")]
Data = Annotated[Path, typer.Argument(metavar="DATA", help="A csv or parquet file."), READS]
Target = Annotated[str, typer.Option(metavar="COLUMN", help="The column to predict.")]
MaybeTarget = Annotated[str | None, typer.Option(metavar="COLUMN", help="The column to predict.")]
Drop = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="A column to leave out; may be repeated."),
]
Noise = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="How far inputs may move, as TOML; else 2% of ranges."),
    READS,
]
MaxDepth = Annotated[int, typer.Option(min=1, max=30, help="Most questions from first to answer.")]
MaxFlips = Annotated[
    str | None,
    typer.Option(metavar="LIMIT", help="Most changed decisions: 5%, 0.05, or 12 for 12 rows."),
]


def _files_of_plan(values: dict[str, Any]) -> tuple[Place, ...]:
    from steadytree.federated.study_config import Plan

    return Plan.load(values["plan"]).files


PlanFile = Annotated[
    Path,
    typer.Argument(metavar="PLAN", help="A plan file (toml)."),
    Does(None, _files_of_plan),
]
SchemaFile = Annotated[
    Path, typer.Option("--schema", metavar="FILE", help="The agreed schema."), READS
]
LedgerFile = Annotated[
    Path, typer.Option("--ledger", metavar="FILE", help="The rows' ledger."), CHANGES
]
Budget = Annotated[float, typer.Option(help="All epsilon that these rows may ever cost.")]


EXCEEDED = 3


def parse_share(text: str, option: str) -> float:
    """A share: "1%", "1 %" or "0.01".

    Examples
    --------
    >>> parse_share("5%", "--max-loss"), parse_share("0.01", "--max-loss")
    (0.05, 0.01)
    """
    bare = text.strip().removesuffix("%")
    try:
        share = float(bare) / (100 if bare != text.strip() else 1)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise ValueError(f"{option} must be a share such as 5% or 0.05, got {text!r}.")
    return share


def parse_flips(text: str, n_rows: int) -> float:
    """Most rows whose decision may change: "5%" of them, "0.05" of them, or "12" rows.

    Examples
    --------
    >>> parse_flips("5%", 200), parse_flips("12", 200)
    (10.0, 12.0)
    """
    if text.strip().isdigit():
        return float(text)
    try:
        return parse_share(text, "--max-flips") * n_rows
    except ValueError:
        raise ValueError(
            "--max-flips must be a share such as 5% or 0.05, or a whole number of rows such as 12, "
            f"got {text!r}."
        ) from None


def stop_if_exceeded(n_flips: int, n_rows: int, limit: str | None) -> None:
    """End with exit code 3 where more decisions change than were allowed."""
    if limit is None:
        return
    if n_flips > parse_flips(limit, n_rows) + 1e-9:
        typer.echo(
            f"limit exceeded: {n_flips:,} of {n_rows:,} decisions change, "
            f"and --max-flips allows {limit}.",
            err=True,
        )
        raise typer.Exit(EXCEEDED)


class Method(StrEnum):
    """How a private tree is grown."""

    GIBBS = "gibbs"
    GREEDY = "greedy"
    TOPDOWN = "topdown"


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
