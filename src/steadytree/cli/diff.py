"""The command `steadytree diff`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from steadytree.cli.options import AsJson, MaxFlips
from steadytree.cli.output import echo_json, names_of, say_written
from steadytree.cli.paths import READS, WRITES

EXAMPLES = """\b
Examples:
  steadytree diff q1.tree.json q2.tree.json
  steadytree diff q1.tree.json q2.tree.json --data q2.csv --target outcome --out changes.svg
  steadytree diff q1.tree.json q2.tree.json --data q2.csv --max-flips 5%

Exit code 3 where more decisions change than --max-flips allows."""


def diff(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="A saved tree (*.tree.json)."), READS],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="The tree to compare it with."), READS],
    data: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Rows whose decisions are compared, csv or parquet."),
        READS,
    ] = None,
    target: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column with the true classes.")
    ] = None,
    max_flips: MaxFlips = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where to write the picture, an SVG file."),
        WRITES,
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what changed between two saved trees, and which decisions change with it."""
    from steadytree._base.files import check_can_write
    from steadytree.cli.options import parse_flips, stop_if_exceeded

    if data is None and (max_flips is not None or target is not None):
        raise ValueError("--max-flips and --target are about rows: pass these too, with --data.")
    if max_flips is not None:
        parse_flips(max_flips, 1)  # a limit that cannot be read is said before any work is done
    if out is not None:
        check_can_write(out)
    from steadytree.models.files import load
    from steadytree.reporting.diff import diff as find_diff

    rows, labels = (None, None) if data is None else _read(data, target)
    found = find_diff(load(old), load(new), rows, labels)
    if out is not None:
        found.write(out)
    show_diff(found, as_json, out)
    if found.rows is not None:
        stop_if_exceeded(len(found.rows.flipped), found.rows.n_rows, max_flips)


def show_diff(found: Any, as_json: bool, *written: Path | None) -> None:
    """Print a diff: coloured in a terminal, plain in a file, or as JSON."""
    if as_json:
        echo_json({**found.formatted, "written": names_of(written)})
        return
    from rich.console import Console

    from steadytree.reporting.diff import diff_text

    console = Console()
    if console.is_terminal:
        console.print(diff_text(found.formatted), soft_wrap=True)
    else:
        typer.echo(str(found))
    say_written(*written)


def _read(path: Path, target: str | None) -> tuple[Any, Any]:
    """Rows of a file, and their classes where a column is named."""
    from steadytree.data.readers import read_data
    from steadytree.reporting.checks import check_names, labels_of

    table = read_data(path)
    if target is None:
        return table, None
    check_names(table.names or (), [target], "the target")
    return table, labels_of(table, target)
