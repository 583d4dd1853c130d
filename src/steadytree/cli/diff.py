"""The commands `steadytree diff` and `steadytree retrain`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import steadytree as st
from steadytree._base.files import check_can_write
from steadytree.cli import options
from steadytree.cli.options import AsJson, Drop, MaxFlips, MayRead, MayWrite, Reads, Writes, option
from steadytree.cli.output import Progress, show, warn_of_row_numbers

DIFF_EXAMPLES = """\b
Examples:
  steadytree diff q1.tree.json q2.tree.json
  steadytree diff q1.tree.json q2.tree.json --data q2.csv --target outcome --out changes.svg
  steadytree diff q1.tree.json q2.tree.json --data q2.csv --max-flips 5%

Exit code 3 if more predictions change than --max-flips allows."""
RETRAIN_EXAMPLES = """\b
Examples:
  steadytree retrain q2.csv --target outcome --previous q1.tree.json
  steadytree retrain q2.csv --target outcome --previous q1.tree.json --max-loss 2% \\
      --out q2.tree.json --picture changes.svg --max-flips 5%

Exit code 3 if more predictions change than --max-flips allows; the tree is written anyway."""


def diff(
    old: Annotated[Reads, typer.Argument(metavar="OLD", help="A saved tree (*.tree.json).")],
    new: Annotated[Reads, typer.Argument(metavar="NEW", help="The tree to compare it with.")],
    data: Annotated[
        MayRead, option("FILE", "Rows to compare predictions on (csv or parquet).")
    ] = None,
    target: options.TrueClasses = None,
    max_flips: MaxFlips = None,
    out: Annotated[MayWrite, option("FILE", "Where to write the plot (SVG).")] = None,
    as_json: AsJson = False,
) -> None:
    """Show what changed between two saved trees, and which predictions change."""
    if data is None and (max_flips is not None or target is not None):
        raise ValueError("--max-flips and --target need rows: pass them with --data.")
    _check_before_work(max_flips, out)
    rows, labels = (None, None) if data is None else _read(data, target)
    found = st.diff(st.load(old), st.load(new), rows, labels)
    if out is not None:
        found.write(out)
    _show(found, max_flips, as_json, out)


def retrain(
    data: Annotated[Reads, typer.Argument(metavar="DATA", help="New rows (csv or parquet).")],
    target: options.Target,
    previous: Annotated[Reads, option("FILE", "The tree in use (*.tree.json).")],
    max_loss: Annotated[str, option("SHARE", "Score that may be lost to stay close to it.")] = "1%",
    out: Annotated[Writes, option("FILE", "Where to write the new tree.")] = Path(
        "retrained.tree.json"
    ),
    picture: Annotated[MayWrite, option("FILE", "Where to plot what changed (SVG).")] = None,
    max_flips: MaxFlips = None,
    drop: Drop = None,
    trees: Annotated[int, typer.Option(min=2, help="Number of bootstrap trees.")] = 100,
    seed: Annotated[
        int, typer.Option(min=0, help="Random seed of the held-out rows and trees.")
    ] = 0,
    as_json: AsJson = False,
) -> None:
    """Fit a tree to new rows that stays close to the tree in use, and show what changed.

    A quarter of the rows is held out. Of the candidate trees whose area under the ROC curve on
    these rows is at most --max-loss below that of plain retraining, the nearest to the tree in use
    is taken.
    """
    loss = options.parse_share(max_loss, "--max-loss")
    _check_before_work(max_flips, out, picture)
    from steadytree.data.labels import labels_like
    from steadytree.data.table import quote
    from steadytree.reporting.checks import check_texts
    from steadytree.reporting.data_set import DataSet

    with Progress() as progress:
        progress.update(f"reading {data}")
        old, data_set = st.load(previous), DataSet.read(data, target, drop or [])
        given, known = data_set.features.names or (), set(old.space.names)
        new = [name for name in given if name not in known]
        if new and known <= set(given):
            raise ValueError(
                f"the rows have column(s) that the tree in use was not fitted on: {quote(new)}. "
                "Leave each out with --drop."
            )
        check_texts(data_set.features)
        labels = labels_like(data_set.labels, old.classes)
        progress.update("retraining")
        model = st.ParetoTreeClassifier(
            previous=old, max_score_loss=loss, n_trees=trees, random_state=seed
        ).fit(data_set.features, labels)
        found = st.diff(old, model, data_set.features, labels)
        st.save(model.tree_, out)
        if picture is not None:
            found.write(picture)
    warn_of_row_numbers(data_set.features)
    _show(found, max_flips, as_json, out, picture)


def _check_before_work(max_flips: str | None, *outputs: Path | None) -> None:
    """Refuse a limit that cannot be parsed and a file that cannot be written."""
    if max_flips is not None:
        options.parse_flips(max_flips, 1)
    for path in filter(None, outputs):
        check_can_write(path)


def _show(found: Any, max_flips: str | None, as_json: bool, *written: Path | None) -> None:
    """Print a diff, with colours in a terminal, or as JSON; exit 3 where a limit is exceeded."""
    if not as_json:
        from rich.console import Console

        from steadytree.reporting.diff import diff_text

        console = Console()
        if console.is_terminal:
            console.print(diff_text(found.formatted), soft_wrap=True)
        else:
            typer.echo(str(found))
    show(found.formatted, [], as_json, written)
    if found.rows is not None:
        options.stop_if_exceeded(len(found.rows.flipped), found.rows.n_rows, max_flips)


def _read(path: Path, target: str | None) -> tuple[Any, Any]:
    """Rows of a file, and their classes where a column is named."""
    from steadytree.data.readers import read_data
    from steadytree.reporting.checks import check_names, labels_of

    table = read_data(path)
    if target is None:
        return table, None
    check_names(table.names or (), [target], "the target")
    return table, labels_of(table, target)
