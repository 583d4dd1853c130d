"""The command `steadytree fit`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

import steadytree as st
from steadytree._base.files import check_can_write
from steadytree.cli.options import FILLS, READS, AsJson, Drop, MaxDepth, Target, TreeOut
from steadytree.cli.output import Progress, echo_json, names_of, say_written, warn_of_row_numbers

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
        Path | None,
        typer.Option(metavar="FOLDER", help="Keep the binned data here for the next fit."),
        FILLS,
    ] = None,
    fingerprints: Annotated[
        bool,
        typer.Option(
            "--fingerprints", help="Write hashes of the rows too (*.rows.json), for retraining."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Fit a stable tree to files of any size and save it."""
    if not target:  # some versions of typer accept a missing required option
        raise ValueError("--target is missing: name the column to predict.")
    check_can_write(out)
    from steadytree.models.files import model_hash
    from steadytree.reporting.checks import check_categories
    from steadytree.stability.fingerprints import fingerprint_path, write_fingerprints

    is_text = any(path.suffix.lower() in TEXT_FILES for path in data)
    if fingerprints:
        check_can_write(fingerprint_path(out))
        if not is_text:
            raise ValueError("--fingerprints needs the rows in memory: pass a csv file.")

    model = st.StableTreeClassifier(
        max_depth=max_depth, epsilon=epsilon, n_thresholds=thresholds, random_state=seed
    )
    with Progress() as progress:
        if is_text:
            rows = _fit_text(model, data, target, drop or [], cache, progress.say)
        else:
            _fit_blocks(model, data, target, drop or [], cache, progress.say)
    tree = model.tree_
    n_rows = int(tree.weight[0])
    check_categories(tree.space, n_rows)
    model.save(out)
    written = [out]
    if fingerprints:
        written.append(fingerprint_path(out))
        write_fingerprints(written[1], rows.features, rows.labels)
    if as_json:
        size = {"n_rows": n_rows, "n_leaves": tree.n_leaves, "depth": tree.depth}
        echo_json({**size, "sha256": model_hash(tree), "written": names_of(written)})
        return
    typer.echo(f"{n_rows:,} rows, {tree.n_leaves} leaves, depth {tree.depth}")
    say_written(*written)


def _fit_text(
    model: st.StableTreeClassifier,
    data: list[Path],
    target: str,
    drop: list[str],
    cache: Path | None,
    on_progress: Callable[[str], None],
) -> Any:
    """Fit to one csv file, in memory; returns its rows."""
    from steadytree.reporting.checks import check_texts
    from steadytree.reporting.data_set import DataSet

    if len(data) > 1 or cache is not None:
        raise ValueError(
            "a csv file is read as a whole: pass one of them and no --cache, "
            "or convert the files to Parquet."
        )
    on_progress(f"reading {data[0]}")
    rows = DataSet.read(data[0], target, drop)
    check_texts(rows.features)
    on_progress("fitting")
    model.fit(rows.features, rows.labels)
    warn_of_row_numbers(rows.features)
    return rows


def _fit_blocks(
    model: st.StableTreeClassifier,
    data: list[Path],
    target: str,
    drop: list[str],
    cache: Path | None,
    on_progress: Callable[[str], None],
) -> None:
    """Fit to files that may be larger than memory."""
    from steadytree.data.blocks import DataFiles
    from steadytree.data.table import quote

    names = DataFiles(data, target).names
    unknown = [name for name in drop if name not in names]
    if unknown:
        raise ValueError(f"--drop names {quote(unknown)}, but the files have {quote(names)}.")
    columns = [name for name in names if name not in drop] if drop else None
    model.fit_files(data, target, columns, cache, progress=on_progress)
