"""The command `steadytree fit`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import steadytree as st
from steadytree._base.files import check_can_write
from steadytree.cli.options import READS, AsJson, Drop, MaxDepth, MayFill, Target, TreeOut, option
from steadytree.cli.output import Progress, show, warn_of_row_numbers

TEXT_FILES = (".csv", ".tsv", ".txt")
EXAMPLES = """\b
Examples:
  steadytree fit q1.csv --target outcome --drop id --out q1.tree.json
  steadytree fit rows.parquet --target outcome
  steadytree fit rows/ --target outcome --max-depth 6 --cache binned --out big.tree.json

Parquet and Arrow files are read block by block and may be larger than memory; a csv file is read
as a whole."""


def fit(
    data: Annotated[
        list[Path],
        typer.Argument(
            metavar="DATA...", help="A csv file; or Parquet or Arrow files, or folders of them."
        ),
        READS,
    ],
    target: Target,
    out: TreeOut = Path("fitted.tree.json"),
    drop: Drop = None,
    max_depth: MaxDepth = 5,
    epsilon: Annotated[
        float,
        typer.Option(min=0, help="Score of a split that may be lost for stability; 0 is greedy."),
    ] = 0.1,
    thresholds: Annotated[
        int, typer.Option(min=1, max=65_000, help="Number of candidate thresholds per column.")
    ] = 500,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the splits.")] = 0,
    cache: Annotated[
        MayFill, option("FOLDER", "Keep the binned data here for the next fit.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Fit a stable tree to files of any size and save it."""
    if not target:  # some versions of typer accept a missing required option
        raise ValueError("--target is missing: name the column to predict.")
    check_can_write(out)
    from steadytree.models.files import model_hash
    from steadytree.reporting.checks import check_categories, check_texts
    from steadytree.reporting.data_set import DataSet

    model = st.StableTreeClassifier(
        max_depth=max_depth, epsilon=epsilon, n_thresholds=thresholds, random_state=seed
    )
    with Progress() as progress:
        if any(path.suffix.lower() in TEXT_FILES for path in data):
            if len(data) > 1 or cache is not None:
                raise ValueError(
                    "a csv file is read as a whole: pass one of them and no --cache, "
                    "or convert the files to Parquet."
                )
            progress.update(f"reading {data[0]}")
            rows = DataSet.read(data[0], target, drop or [])
            check_texts(rows.features)
            progress.update("fitting")
            model.fit(rows.features, rows.labels)
            warn_of_row_numbers(rows.features)
        else:
            columns = _kept_columns(data, target, drop or [])
            model.fit_files(data, target, columns, cache, progress=progress.update)
    tree = model.tree_
    n_rows = int(tree.weight[0])
    check_categories(tree.space, n_rows)
    model.save(out)
    size = {"n_rows": n_rows, "n_leaves": tree.n_leaves, "depth": tree.depth}
    line = f"{n_rows:,} rows, {tree.n_leaves} leaves, depth {tree.depth}"
    show({**size, "sha256": model_hash(tree)}, [line], as_json, [out])


def _kept_columns(data: list[Path], target: str, drop: list[str]) -> list[str] | None:
    """The columns that are left, or None for all."""
    from steadytree.data.blocks import DataFiles
    from steadytree.data.table import quote

    names = DataFiles(data, target).names
    unknown = [name for name in drop if name not in names]
    if unknown:
        raise ValueError(f"--drop names {quote(unknown)}, but the files have {quote(names)}.")
    return [name for name in names if name not in drop] if drop else None
