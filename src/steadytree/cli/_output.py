"""What commands print: JSON for machines, text for people, files that were written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import typer

from steadytree.cli._limits import EXCEEDED

if TYPE_CHECKING:
    from collections.abc import Iterable


def echo_json(value: Any) -> None:
    """One document of JSON on standard output."""
    import json

    typer.echo(json.dumps(value, ensure_ascii=False, allow_nan=False))


def show_page(data: dict[str, Any], view: Any, text: Any) -> None:
    """What a page holds, for a terminal with colours and frames, for a file without."""
    from rich.console import Console

    console = Console()
    if console.is_terminal:
        console.print(view(data))
    else:
        typer.echo(text(data))


def say_written(*paths: Any) -> None:
    """Name the files that were written; None stands for one that was not asked for."""
    for path in paths:
        if path is not None:
            typer.echo(f"written: {path}")


def names_of(paths: Iterable[Any]) -> list[str]:
    """The files that were written, for JSON."""
    return [str(path) for path in paths if path is not None]


def warn_of_row_numbers(table: Any) -> None:
    """Say on standard error which columns number the rows and should be left out."""
    from steadytree.core.table import quote
    from steadytree.reporting.table_checks import drop_options, row_numbers

    found = row_numbers(table)
    if found:
        what = "numbers the rows" if len(found) == 1 else "number the rows"
        typer.echo(
            f"warning: {quote(found)} {what}, which says nothing of rows to come: leave out with "
            f"{drop_options(found)}",
            err=True,
        )


def refuse_spending(error: Exception) -> NoReturn:
    """End with exit code 3, since the budget is spent."""
    typer.echo(f"refused: {error}", err=True)
    raise typer.Exit(EXCEEDED)
