"""The command `steadytree fit`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steadytree.cli.options import AsJson, Drop, MaxDepth, Target
from steadytree.cli.output import echo_json, say_written, warn_of_row_numbers
from steadytree.cli.paths import FILLS, READS, WRITES

if TYPE_CHECKING:
    from steadytree.stability.stable_tree import StableTreeClassifier

TEXT_FILES = (".csv", ".tsv", ".txt")
EXAMPLES = """\b
Examples:
  steadytree fit q1.csv --target outcome --drop id --out q1.tree.json
  steadytree fit rows.parquet --target outcome
  steadytree fit rows/ --target outcome --max-depth 6 --cache binned --out big.tree.json

Parquet and Arrow files are read block by block, so they may hold more rows than memory; a csv file
is read as a whole."""


def fit(
    data: Annotated[
        list[Path],
        typer.Argument(
            metavar="DATA...", help="A csv file; or Parquet or Arrow files, or folders of them."
        ),
        READS,
    ],
    target: Target,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="Where to write the tree."), WRITES
    ] = Path("fitted.tree.json"),
    drop: Drop = None,
    max_depth: MaxDepth = 5,
    epsilon: Annotated[
        float, typer.Option(min=0, help="Score that may be given up for stability; 0 is greedy.")
    ] = 0.1,
    thresholds: Annotated[
        int, typer.Option(min=1, max=65_000, help="Candidate thresholds of a column.")
    ] = 500,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the noise of splits.")] = 0,
    cache: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Keep the binned rows here, for the next fit."),
        FILLS,
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Fit a stable tree on files of any size and write it."""
    from steadytree._base.files import check_can_write

    if not target:  # some versions of typer let a needed option be left out
        raise ValueError("say which column to predict, with --target NAME.")
    check_can_write(out)
    from steadytree.cli.output import Progress
    from steadytree.models.files import model_hash
    from steadytree.reporting.checks import check_categories
    from steadytree.stability.stable_tree import StableTreeClassifier

    model = StableTreeClassifier(
        max_depth=max_depth, epsilon=epsilon, n_thresholds=thresholds, random_state=seed
    )
    with Progress() as progress:
        if any(path.suffix.lower() in TEXT_FILES for path in data):
            _fit_text(model, data, target, drop or [], cache, progress.say)
        else:
            _fit_blocks(model, data, target, drop or [], cache, progress.say)
    tree = model.tree_
    n_rows = int(tree.weight[0])
    check_categories(tree.space, n_rows)
    model.save(out)
    if as_json:
        size = {"n_rows": n_rows, "n_leaves": tree.n_leaves, "depth": tree.depth}
        echo_json({**size, "sha256": model_hash(tree), "written": [str(out)]})
        return
    typer.echo(f"{n_rows:,} rows, {tree.n_leaves} leaves, depth {tree.depth}")
    say_written(out)


def _fit_text(
    model: StableTreeClassifier,
    data: list[Path],
    target: str,
    drop: list[str],
    cache: Path | None,
    say: Callable[[str], None],
) -> None:
    """Fit on one file of text, in memory."""
    from steadytree.reporting.checks import check_texts
    from steadytree.reporting.data_set import DataSet

    if len(data) > 1 or cache is not None:
        raise ValueError(
            "a csv file is read as a whole: pass one of them and no --cache, "
            "or convert the files to Parquet."
        )
    say(f"reading {data[0]}")
    rows = DataSet.read(data[0], target, drop)
    check_texts(rows.features)
    say("fitting")
    model.fit(rows.features, rows.labels)
    warn_of_row_numbers(rows.features)


def _fit_blocks(
    model: StableTreeClassifier,
    data: list[Path],
    target: str,
    drop: list[str],
    cache: Path | None,
    say: Callable[[str], None],
) -> None:
    """Fit on files that may hold more rows than memory."""
    from steadytree.data.blocks import DataFiles
    from steadytree.data.table import quote

    names = DataFiles(data, target).names
    unknown = [name for name in drop if name not in names]
    if unknown:
        raise ValueError(f"--drop names {quote(unknown)}, but the files have {quote(names)}.")
    columns = [name for name in names if name not in drop] if drop else None
    model.fit_files(data, target, columns, cache, progress=say)
