"""The command `steadytree fit`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

import steadytree as st
from steadytree._base.files import check_can_write
from steadytree._base.progress import Progress
from steadytree.cli.options import (
    READS,
    AsJson,
    Drop,
    MaxLeaves,
    MayFill,
    MayRead,
    Target,
    TreeOut,
    option,
)
from steadytree.cli.output import show, warn_of_columns

EXAMPLES = """\b
Examples:
  steadytree fit q1.csv --target outcome --drop id --out q1.tree.json
  steadytree fit rows.parquet --target outcome
  steadytree fit q2.csv --target outcome --learner stable --bins q1.tree.json
  steadytree fit rows/ --target outcome --max-depth 6 --cache binned --out big.tree.json

A steady tree is fitted to one file, read as a whole. Several Parquet or Arrow files, a folder of
them, a file of more than 1,000,000 rows and --cache mean a stable tree, fitted block by block: the
data may be larger than memory. With --learner steady the splits are learned from 100,000 of these
rows, drawn by chance, and the leaves count all of them."""
Learner = StrEnum("Learner", "STEADY STABLE")
MOST_ROWS = 1_000_000  # that are read as a whole unless a learner is named
OF_STABLE = ("epsilon", "thresholds", "criterion", "bins", "cache")
Criterion = StrEnum("Criterion", "COUNT GINI")


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
    learner: Annotated[
        Learner | None, typer.Option(help="Learner; default: steady for a file, stable for more.")
    ] = None,
    max_leaves: MaxLeaves = 8,
    max_depth: Annotated[
        int | None,
        typer.Option(min=1, max=30, help="Maximum depth; default: none if steady, 5 if stable."),
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Stable tree: share of the score a split may give up; 0 is greedy, default 0.1.",
        ),
    ] = None,
    thresholds: Annotated[
        int | None,
        typer.Option(
            min=1, max=65_000, help="Stable tree: candidate thresholds a column, default 500."
        ),
    ] = None,
    criterion: Annotated[
        Criterion | None, typer.Option(help="Stable tree: criterion of splits, default gini.")
    ] = None,
    bins: Annotated[
        MayRead, option("FILE", "Stable tree: reuse the bins and the seed of this tree.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the splits.")] = 0,
    cache: Annotated[
        MayFill, option("FOLDER", "Keep the binned data here for the next fit.")
    ] = None,
    fingerprints: Annotated[
        bool,
        typer.Option(
            "--fingerprints", help="Write hashes of the rows too (*.rows.json), for retraining."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Fit a steady or a stable tree, and save it.

    Both can be fitted to files of any size.
    """
    if not target:  # some versions of typer accept a missing required option
        raise ValueError("--target is missing: name the column to predict.")
    check_can_write(out)
    from steadytree.data.dataset import fingerprint_path, write_fingerprints
    from steadytree.data.parts import Parts
    from steadytree.data.readers import is_csv
    from steadytree.models.files import model_hash
    from steadytree.reporting.checks import check_categories, check_classes, check_texts
    from steadytree.reporting.data_set import DataSet

    is_text = any(is_csv(path) for path in data)
    if is_text and (len(data) > 1 or cache is not None):
        raise ValueError(
            "a csv file is read as a whole: pass one of them and no --cache, "
            "or convert the files to Parquet."
        )
    if fingerprints:
        check_can_write(fingerprint_path(out))
    given = dict(zip(OF_STABLE, (epsilon, thresholds, criterion, bins, cache), strict=True))
    named = [f"--{name}" for name, value in given.items() if value is not None]
    chosen = learner or _learner_for(data, target, is_text, bool(named))
    model: Any
    if chosen is Learner.STEADY:
        if named:
            raise ValueError(f"{named[0]} belongs to a stable tree: add --learner stable.")
        model = st.SteadyTreeClassifier(max_leaves, max_depth=max_depth, random_state=seed)
    else:
        model = st.StableTreeClassifier(
            max_depth=max_depth or 5,
            epsilon=0.1 if epsilon is None else epsilon,
            n_thresholds=thresholds or 500,
            criterion="gini" if criterion is None else criterion.value,
            random_state=None if bins else seed,
            bins=None if bins is None else st.load(bins),
        )
    in_memory = is_text or _learner_for(data, target, is_text, bool(named)) is Learner.STEADY
    in_memory = in_memory and (is_text or chosen is Learner.STEADY)
    if fingerprints and not in_memory:
        raise ValueError("--fingerprints needs the rows in memory: pass one file of them.")
    with Progress() as progress:
        if in_memory:
            progress.update(f"reading {data[0]}")
            rows = DataSet.read(data[0], target, drop or [])
            check_texts(rows.features)
            check_classes(rows.labels, target)
            progress.update("fitting")
            model.fit(rows.features, rows.labels)
            warn_of_columns(rows.features)
        else:
            columns = _kept_columns(data, target, drop or [])
            if chosen is Learner.STEADY:
                progress.update("fitting")
                model.fit(Parts(data, target, columns), target)
            else:
                model.fit_files(data, target, columns, cache, progress=progress.update)
    tree = model.tree_
    check_classes(tree.classes, target)
    n_rows = int(tree.weight[0])
    check_categories(tree.space, n_rows)
    model.save(out)
    written = [out]
    if fingerprints:
        written.append(fingerprint_path(out))
        write_fingerprints(written[1], rows.features, rows.labels)
    size = {"n_rows": n_rows, "n_leaves": tree.n_leaves, "depth": tree.depth}
    size = {"learner": chosen.value, **size}
    leaves = "1 leaf" if tree.n_leaves == 1 else f"{tree.n_leaves} leaves"
    lines = [f"{chosen.value} tree: {n_rows:,} rows, {leaves}, depth {tree.depth}"]
    if chosen is Learner.STEADY:
        size["choice"] = model.choice_.reason
        lines += [model.choice_.reason, *([tree.note] if tree.note else [])]
    show({**size, "sha256": model_hash(tree)}, lines, as_json, written)


def _learner_for(data: list[Path], target: str, is_text: bool, of_stable: bool) -> Learner:
    """The usual learner: steady for one file that can be read as a whole."""
    if of_stable or len(data) > 1 or data[0].is_dir():
        return Learner.STABLE
    if is_text:
        return Learner.STEADY
    from steadytree.data.blocks import DataFiles

    n_rows = DataFiles(data, target).n_rows
    return Learner.STABLE if n_rows is None or n_rows > MOST_ROWS else Learner.STEADY


def _kept_columns(data: list[Path], target: str, drop: list[str]) -> list[str] | None:
    """The columns that are left, or None for all."""
    from steadytree.data.blocks import DataFiles
    from steadytree.data.table import quote

    names = DataFiles(data, target).names
    unknown = [name for name in drop if name not in names]
    if unknown:
        raise ValueError(f"--drop names {quote(unknown)}, but the files have {quote(names)}.")
    return [name for name in names if name not in drop] if drop else None
