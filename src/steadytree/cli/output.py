"""What commands print: results as text or JSON, files written, warnings, progress."""

from __future__ import annotations

import sys
import threading
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from steadytree.cli.options import LIMIT_EXCEEDED

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


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


def echo_json(value: Any) -> None:
    """Print one JSON document on standard output."""
    import json

    typer.echo(json.dumps(value, ensure_ascii=False, allow_nan=False))


def show_page(data: dict[str, Any], view: Any, text: Any) -> None:
    """Print the content of a page: formatted in a terminal, as plain text in a file."""
    from rich.console import Console

    console = Console()
    if console.is_terminal:
        console.print(view(data))
    else:
        typer.echo(text(data))


def say_written(*paths: Any) -> None:
    """Print the files that were written; None stands for one that was not requested."""
    for path in paths:
        if path is not None:
            typer.echo(f"written: {path}")


def names_of(paths: Iterable[Any]) -> list[str]:
    """The files that were written, as JSON names them."""
    return [str(path) for path in paths if path is not None]


def warn_of_row_numbers(table: Any) -> None:
    """Warn on standard error of columns that number the rows and should be left out."""
    from steadytree.data.table import quote
    from steadytree.reporting.checks import drop_options, row_numbers

    found = row_numbers(table)
    if found:
        what = "numbers the rows" if len(found) == 1 else "number the rows"
        typer.echo(
            f"warning: {quote(found)} {what} and cannot predict new rows: leave out with "
            f"{drop_options(found)}",
            err=True,
        )


def refuse_spending(error: Exception) -> NoReturn:
    """End with exit code 3: the budget is spent."""
    typer.echo(f"refused: {error}", err=True)
    raise typer.Exit(LIMIT_EXCEEDED)


PATIENCE = 2.0  # seconds before progress is shown


class Progress:
    """Shows the current step on standard error, in a terminal, after 2 seconds."""

    def __init__(self, patience: float = PATIENCE):
        self._message = ""
        self._status: Any = None
        self._over = False
        self._lock = threading.Lock()
        self._timer = threading.Timer(patience, self._show)
        self._timer.daemon = True

    def say(self, message: str) -> None:
        """Show this step from now on."""
        with self._lock:
            self._message = message
            if self._status is not None:
                self._status.update(message)

    def __enter__(self) -> Progress:
        self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        with self._lock:
            self._over = True
            if self._status is not None:
                self._status.stop()

    def _show(self) -> None:
        from rich.console import Console

        console = Console(stderr=True)
        with self._lock:
            if console.is_terminal and not self._over:
                self._status = console.status(self._message)
                self._status.start()
