"""The command line: `steadytree` and its commands."""

from __future__ import annotations

import sys
from typing import Annotated, Any, NoReturn

import typer

from steadytree.cli import (
    certify,
    compare,
    diff,
    explain,
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
STOPPED = 130
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
    """Run the command line; an error is one line on standard error and exit code 2."""
    try:
        code = app(prog_name="steadytree", standalone_mode=False)
    except USAGE_ERROR as error:
        _fail(error.format_message())
    except OSError as error:
        _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except (ValueError, TypeError, ImportError) as error:
        _fail(str(error))
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(STOPPED)
    sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str) -> NoReturn:
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


app.command(epilog=report.EXAMPLES)(report.report)
app.command(epilog=compare.EXAMPLES)(compare.compare)
app.add_typer(private.app, name="private", epilog=private.EXAMPLES)
app.command(epilog=diff.DIFF_EXAMPLES)(diff.diff)
app.command(epilog=fit.EXAMPLES)(fit.fit)
app.command(epilog=diff.RETRAIN_EXAMPLES)(diff.retrain)
app.command(epilog=certify.EXAMPLES)(certify.certify)
app.command(epilog=predict.EXAMPLES)(predict.predict)
app.command(epilog=explain.EXAMPLES)(explain.explain)
app.command(epilog=score.EXAMPLES)(score.score)
app.command(epilog=warm_up.EXAMPLES)(warm_up.warm_up)
app.command(epilog=reproduce.EXAMPLES, context_settings=reproduce.PASS_ON)(reproduce.reproduce)
