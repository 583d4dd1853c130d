"""The command `steadytree report`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from steadytree.cli._command import command_line

EXAMPLES = """\b
Examples:
  steadytree report
  steadytree report patients.csv --target outcome --drop id --out outcome.html
  steadytree report new.csv --target outcome --model outcome.tree.json"""


class Criterion(StrEnum):
    """What a split is judged by."""

    COUNT = "count"
    GINI = "gini"


def report(
    data: Annotated[
        Path | None,
        typer.Argument(metavar="DATA", help="A csv or parquet file; without it, breast cancer."),
    ] = None,
    target: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column to predict.")
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A saved tree (*.tree.json) to judge, on all rows.",
        ),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where to write the page.")] = Path(
        "report.html"
    ),
    drop: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A column to leave out; may be repeated."),
    ] = None,
    max_depth: Annotated[
        int, typer.Option(min=1, max=30, help="Most questions from first to answer.")
    ] = 5,
    criterion: Annotated[
        Criterion, typer.Option(help="What splits are judged by.")
    ] = Criterion.COUNT,
    seed: Annotated[
        int, typer.Option(min=0, help="Which rows are held out, and how ties are broken.")
    ] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print all figures as JSON.")] = False,
) -> None:
    """Fit a tree (or take one) and report on it, in the terminal and as one offline HTML page.

    A new tree is fitted on 70 % of the rows and judged on the other 30 %.
    """
    from steadytree.core.atomic import check_can_write
    from steadytree.reporting.progress import Progress

    check_can_write(out)
    if data is None and target is not None:
        raise ValueError("--target names a column of no data: pass a csv or parquet file too.")
    with Progress() as progress:
        progress.say("starting")
        from steadytree.interop.tree_file import load
        from steadytree.reporting.data_set import DataSet

        tree = None if model is None else load(model)
        progress.say(f"reading {data or 'the data'}")
        columns = drop or []
        data_set = DataSet.read(data, target, columns) if data else DataSet.breast_cancer(columns)
        progress.say("fitting and judging a tree" if tree is None else "judging the tree")
        if tree is None:
            found = data_set.fit_and_judge(max_depth, criterion.value, seed, command_line())
        else:
            found = data_set.judge(tree, command_line())
        progress.say(f"writing {out}")
        found.write(out)
    _show(found.data, out, as_json)


def _show(data: dict[str, Any], out: Path, as_json: bool) -> None:
    if as_json:
        import json

        typer.echo(json.dumps(data, ensure_ascii=False, allow_nan=False))
        return
    from rich.console import Console

    from steadytree.reporting.render_text import render_text, terminal_view

    console = Console()
    if console.is_terminal:
        console.print(terminal_view(data))
    else:
        typer.echo(render_text(data))
    typer.echo(f"\nwritten: {out}")
