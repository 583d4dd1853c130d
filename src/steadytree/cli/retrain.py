"""The command `steadytree retrain`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steadytree.cli.options import AsJson, Drop, MaxFlips, Target
from steadytree.cli.output import warn_of_row_numbers
from steadytree.cli.paths import READS, WRITES

if TYPE_CHECKING:
    from collections.abc import Sequence

EXAMPLES = """\b
Examples:
  steadytree retrain q2.csv --target outcome --previous q1.tree.json
  steadytree retrain q2.csv --target outcome --previous q1.tree.json --max-loss 2% \\
      --out q2.tree.json --picture changes.svg --max-flips 5%

Exit code 3 where more decisions change than --max-flips allows; the tree is written anyway."""


def retrain(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="New rows, csv or parquet."), READS],
    target: Target,
    previous: Annotated[
        Path, typer.Option(metavar="FILE", help="The tree in use (*.tree.json)."), READS
    ],
    max_loss: Annotated[
        str,
        typer.Option(metavar="SHARE", help="Score that may be given up to stay close to it."),
    ] = "1%",
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="Where to write the new tree."), WRITES
    ] = Path("retrained.tree.json"),
    picture: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where to draw what changed, an SVG file."),
        WRITES,
    ] = None,
    max_flips: MaxFlips = None,
    drop: Drop = None,
    trees: Annotated[int, typer.Option(min=2, help="Bootstrap trees to choose from.")] = 100,
    seed: Annotated[int, typer.Option(min=0, help="Which rows are held out and drawn.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Learn a tree from new rows that changes no more than needed, and show what changed.

    A quarter of the rows is held out. Of many trees that score at most --max-loss below plain
    retraining on them (area under the ROC curve), the one nearest to the tree in use is taken.
    """
    from steadytree._base.files import check_can_write
    from steadytree.cli.diff import show_diff
    from steadytree.cli.options import parse_flips, parse_share, stop_if_exceeded

    loss = parse_share(max_loss, "--max-loss")
    if max_flips is not None:
        parse_flips(max_flips, 1)
    for path in filter(None, (out, picture)):
        check_can_write(path)
    from steadytree.cli.output import Progress
    from steadytree.data.labels import told_as
    from steadytree.models.files import load, save
    from steadytree.reporting.checks import check_texts
    from steadytree.reporting.data_set import DataSet
    from steadytree.reporting.diff import diff
    from steadytree.stability.pareto_tree import ParetoTreeClassifier

    with Progress() as progress:
        progress.say(f"reading {data}")
        old, data_set = load(previous), DataSet.read(data, target, drop or [])
        _check_no_new_columns(old.space.names, data_set.features.names or ())
        check_texts(data_set.features)
        labels = told_as(data_set.labels, old.classes)
        progress.say("retraining")
        model = ParetoTreeClassifier(
            previous=old, max_score_loss=loss, n_trees=trees, random_state=seed
        ).fit(data_set.features, labels)
        found = diff(old, model, data_set.features, labels)
        save(model.tree_, out)
        if picture is not None:
            found.write(picture)
    warn_of_row_numbers(data_set.features)
    show_diff(found, as_json, out, picture)
    if found.rows is not None:
        stop_if_exceeded(len(found.rows.flipped), found.rows.n_rows, max_flips)


def _check_no_new_columns(known: Sequence[str], given: Sequence[str]) -> None:
    from steadytree.data.table import quote

    new = [name for name in given if name not in set(known)]
    if new and set(known) <= set(given):
        raise ValueError(
            f"the rows have column(s) that the tree in use was not learned from: {quote(new)}. "
            "Leave each out with --drop."
        )
