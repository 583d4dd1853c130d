"""The command line: `steadytree` and its commands."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import Annotated, Any, NoReturn

import typer

from steadytree.cli import (
    certify,
    compare,
    diff,
    explain,
    export,
    fit,
    predict,
    private,
    report,
    reproduce,
    score,
    warm_up,
)
from steadytree.cli.options import App

WRONG_USE = 2
SHOW_TRACEBACK = "STEADYTREE_TRACEBACK"
STOPPED = 130
CLOSED_OUTPUT = 141  # as shells count the signal of a closed pipe
# typer raises click's errors, under names that differ between its versions
USAGE_ERROR: type[Any] = next(
    kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException"
)
app = App(
    name="steadytree",
    invoke_without_command=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def main() -> NoReturn:
    """Run the command line; an error is one line on standard error and exit code 2.

    An error that no command expects is one line, too; with STEADYTREE_TRACEBACK set it is raised.
    """
    for stream in (sys.stdout, sys.stderr):  # a console that lacks a sign still gets the rest
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = app(prog_name="steadytree", standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(STOPPED)
    except Exception as error:
        if isinstance(error, BrokenPipeError) and _is_output_closed():
            sys.exit(CLOSED_OUTPUT)
        if os.environ.get(SHOW_TRACEBACK):
            raise
        _fail(_message(error))
    sys.exit(code if isinstance(code, int) else 0)


def _is_output_closed() -> bool:
    """Whether nobody reads the output any more, such as `head`; the rest of it is thrown away."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return True
    return False


def _message(error: Exception) -> str:
    """What went wrong and what to do, from any exception."""
    if isinstance(error, USAGE_ERROR):
        return str(error.format_message()).replace(": Value error, ", ": ")  # pydantic's words
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}" if error.filename else str(error)
    if isinstance(error, ValueError | TypeError | ImportError) and str(error):
        return str(error)
    if isinstance(error, RecursionError):
        return "something is nested too deeply: pass a smaller model, or prune it first."
    if isinstance(error, MemoryError):
        return "there is not enough memory: pass fewer rows or columns, or a smaller model."
    what = f"{type(error).__name__}: {error}".rstrip(": ")
    return (
        f"unexpected {what}: please report it; {SHOW_TRACEBACK}=1 before the command shows where "
        "it happened."
    )


def _fail(message: str) -> NoReturn:
    with contextlib.suppress(OSError):  # nobody reads it any more
        typer.echo(f"error: {' '.join(message.split())}", err=True)
    sys.exit(WRONG_USE)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import PackageNotFoundError
        from importlib.metadata import version as version_of

        try:
            typer.echo(f"steadytree {version_of('steadytree')}")
        except PackageNotFoundError:
            typer.echo("steadytree, run without being installed")
        raise typer.Exit()


@app.callback()
def options(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Decision trees and risk scores you can trust: stable, robust, private, with a report."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


app.command(epilog=report.EXAMPLES, titles=report.TITLES)(report.report)
app.command(epilog=compare.EXAMPLES)(compare.compare)
app.add_typer(private.app, name="private", epilog=private.EXAMPLES)
app.command(epilog=diff.DIFF_EXAMPLES)(diff.diff)
app.command(epilog=fit.EXAMPLES)(fit.fit)
app.command(epilog=diff.RETRAIN_EXAMPLES)(diff.retrain)
app.command(epilog=certify.EXAMPLES)(certify.certify)
app.command(epilog=predict.EXAMPLES)(predict.predict)
app.command(epilog=explain.EXAMPLES)(explain.explain)
app.command(epilog=export.EXAMPLES)(export.export)
app.command(epilog=score.EXAMPLES)(score.score)
app.command(epilog=warm_up.EXAMPLES)(warm_up.warm_up)
app.command(epilog=reproduce.EXAMPLES, context_settings=reproduce.PASS_ON)(reproduce.reproduce)
