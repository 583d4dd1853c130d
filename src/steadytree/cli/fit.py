"""The command `steadytree fit`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

EXAMPLES = """\b
Examples:
  steadytree fit rows.parquet --target outcome
  steadytree fit rows/ --target outcome --depth 6 --cache binned --out big.tree.json

Files are read block by block, so they may hold more rows than memory."""


def fit(
    data: Annotated[
        list[Path],
        typer.Argument(metavar="DATA...", help="Parquet or Arrow files, or folders of them."),
    ],
    target: Annotated[str, typer.Option(metavar="COLUMN", help="The column to predict.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where to write the tree.")] = Path(
        "fitted.tree.json"
    ),
    column: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A column to learn from; may be repeated."),
    ] = None,
    depth: Annotated[int, typer.Option(min=1, max=30, help="Most questions to a leaf.")] = 5,
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
    ] = None,
) -> None:
    """Fit a stable tree on files of any size and write it."""
    from steadytree.core.atomic import check_can_write

    check_can_write(out)
    from steadytree.learn.stable import StableTreeClassifier
    from steadytree.reporting.progress import Progress

    model = StableTreeClassifier(
        max_depth=depth, epsilon=epsilon, n_thresholds=thresholds, random_state=seed
    )
    with Progress() as progress:
        model.fit_files(data, target, column, cache, progress=progress.say)
    model.save(out)
    tree = model.tree_
    typer.echo(f"{int(tree.weight[0]):,} rows, {tree.n_leaves} leaves, depth {tree.depth}")
    typer.echo(f"written: {out}", err=True)
