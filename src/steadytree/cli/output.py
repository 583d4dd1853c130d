"""What commands print: results as text or JSON, files written, warnings, progress."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NoReturn

import typer

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

LIMIT_EXCEEDED = 3  # exit code: a limit is not met, or a privacy budget is spent


def command_line() -> str:
    """The command line, quoted where needed."""
    import shlex

    return shlex.join(["steadytree", *sys.argv[1:]])


def check_order(command: str, tree: Path, data: Path) -> None:
    """Refuse data and tree in the wrong order."""
    if data.suffix.lower() == ".json" and tree.suffix.lower() != ".json":
        raise ValueError(
            f"{str(tree)!r} looks like a data file, and the tree comes first: "
            f"steadytree {command} {data} {tree} ..."
        )


def show(
    values: dict[str, Any],
    lines: Iterable[str],
    as_json: bool,
    written: Iterable[Path | None] | None = None,
) -> None:
    """Print results as lines, with the files written, or all of it as one JSON document.

    None stands for a file that was not requested.
    """
    paths = [str(path) for path in written or () if path is not None]
    if as_json:
        import json

        document = values if written is None else {**values, "written": paths}
        typer.echo(json.dumps(document, ensure_ascii=False, allow_nan=False))
        return
    for line in (*lines, *(f"written: {path}" for path in paths)):
        typer.echo(line)


def csv_text(lines: Iterable[Iterable[Any]]) -> str:
    """Lines as csv."""
    import csv
    import io

    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue()


def show_page(
    page: dict[str, Any], part: Any, view: Any, text: Any, as_json: bool, *written: Path | None
) -> None:
    """Print the content of a page: formatted in a terminal, else as plain text, or all as JSON."""
    if not as_json:
        from rich.console import Console

        console = Console()
        if console.is_terminal:
            console.print(view(part))
        else:
            typer.echo(text(part))
    show(page, [""], as_json, written)


def warn_of_columns(table: Any) -> None:
    """Warn on standard error of columns that number the rows, or are numbers with some text."""
    from steadytree.data.column import row_numbers
    from steadytree.data.table import quote
    from steadytree.reporting.checks import drop_options, mixed_numbers

    for name, text in mixed_numbers(table).items():
        typer.echo(
            f"warning: {name!r} holds numbers, but also text such as {text!r}, so each number was "
            "read as a category: correct the text or leave it empty",
            err=True,
        )
    found = row_numbers(table)
    if found:
        what = "numbers the rows" if len(found) == 1 else "number the rows"
        advice = f"leave out with {drop_options(found)}"
        typer.echo(
            f"warning: {quote(found)} {what} and cannot predict new rows: {advice}", err=True
        )


def stop(message: str, code: int = LIMIT_EXCEEDED) -> NoReturn:
    """Print why the command ends on standard error, and end it."""
    typer.echo(message, err=True)
    raise typer.Exit(code)
