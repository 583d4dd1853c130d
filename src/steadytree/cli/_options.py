"""Options that mean the same in every command, written once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from steadytree.cli._places import CHANGES, READS, Does
from steadytree.core.places import Place

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
    from steadytree.sources.plan import Plan

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
