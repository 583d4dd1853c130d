"""The command `steadytree compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import steadytree as st
from steadytree._base.files import check_can_write, check_is_page, write_text_atomically
from steadytree._base.progress import Progress
from steadytree.cli import options
from steadytree.cli.options import AsJson, Drop, Jobs, MaxLeaves, MayRead, Noise, PageOut, option
from steadytree.cli.output import command_line, show_page, warn_of_columns

LEARNERS = "steady,cart,cart-cv,stable,pareto,robust,score,private,boosted"
EXAMPLES = """\b
Examples:
  steadytree compare
  steadytree compare patients.csv --target outcome --out learners.html
  steadytree compare patients.csv --target outcome --learners steady,cart --noise noise.toml

Without DATA, scikit-learn's breast cancer data are used."""


def compare(
    data: Annotated[
        MayRead, typer.Argument(metavar="[DATA]", help="A csv or parquet file.")
    ] = None,
    target: options.OptionalTarget = None,
    learners: Annotated[str, option("NAMES", "Learners, separated by commas.")] = LEARNERS,
    noise: Noise = None,
    schema: Annotated[MayRead, option("FILE", "Schema for the private learner (TOML).")] = None,
    epsilon: Annotated[float, typer.Option(help="Privacy budget of the private learner.")] = 1.0,
    folds: Annotated[
        int, typer.Option(min=2, max=20, help="Number of cross-validation folds.")
    ] = 5,
    max_depth: Annotated[int, typer.Option(min=1, max=30, help="Maximum depth of the trees.")] = 4,
    max_leaves: MaxLeaves = 8,
    time_limit: Annotated[
        float, typer.Option(help="Seconds for each search of the robust learner.")
    ] = 2.0,
    drop: Drop = None,
    jobs: Jobs = 1,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the folds.")] = 0,
    out: PageOut = Path("compare.html"),
    as_json: AsJson = False,
) -> None:
    """Compare learners: accuracy, size, stability, robustness.

    All learners are fitted to the same folds.
    """
    check_is_page(out)
    check_can_write(out)
    named = [name.strip() for name in learners.split(",") if name.strip()]
    with Progress() as progress:
        progress.update("starting")
        from steadytree.data.dataset import hash_data
        from steadytree.reporting.comparison import page_data
        from steadytree.reporting.data_set import DataSet
        from steadytree.reporting.html import render_comparison
        from steadytree.reporting.text import comparison_text, comparison_view

        perturbation = None if noise is None else st.Perturbation.from_toml(noise)
        declared = None if schema is None else st.Schema.load(schema)
        progress.update(f"reading {data or 'the data'}")
        rows = DataSet.open(data, target, drop or [])
        rows.check()
        found = st.compare(
            named,
            rows.features,
            rows.labels,
            n_folds=folds,
            max_depth=max_depth,
            max_leaf_nodes=max_leaves,
            perturbation=perturbation,
            epsilon=epsilon,
            schema=declared,
            time_limit=time_limit,
            n_jobs=jobs,
            random_state=seed,
            progress=progress,
        )
        sha256 = hash_data(rows.features, rows.labels)
        page = page_data(found, rows.title, sha256, rows.origin(command_line(), None))
        write_text_atomically(out, render_comparison(page))
    warn_of_columns(rows.features)
    show_page(page, page["comparison"], comparison_view, comparison_text, as_json, out)
