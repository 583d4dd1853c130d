"""The command `steadytree report`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

import steadytree as st
from steadytree._base.files import check_can_write, check_is_page
from steadytree._base.optional import uncollected
from steadytree._base.progress import Progress
from steadytree.cli import options
from steadytree.cli.options import (
    AsJson,
    Drop,
    Jobs,
    MaxLeaves,
    MayRead,
    MayWrite,
    Noise,
    PageOut,
    option,
)
from steadytree.cli.output import command_line, show_page, stop, warn_of_columns

USUAL_LEARNERS = "steady,cart,stable"
EXAMPLES = """\b
Examples:
  steadytree report
  steadytree report patients.csv --target outcome --drop id --by sex --out outcome.html
  steadytree report new.csv --target outcome --model outcome.tree.json
  steadytree report rows/ --target outcome --model outcome.tree.json
  steadytree report new.csv --target outcome --model pipeline.pkl --trust
  steadytree report q2.csv --target outcome --model q2.tree.json --previous q1.tree.json \\
      --noise noise.toml --limits limits.toml
\b
limits.toml, for example:
  min_accuracy = "90%"
  max_flips = "5%"
  min_worst_case_accuracy = 0.8

Exit code 3 if a limit fails or could not be measured; the page is written anyway."""


LISTED = {
    "The rows": "target drop by positive",
    "The model": "model trust previous ledger budget",
    "To fit a tree, without --model": "learner max_leaves max_depth criterion seed save_model",
    "What is measured": "limits noise learners comparison schema quick jobs",
    "The page": "out sign_off as_json",
}
TITLES = {name: title for title, names in LISTED.items() for name in names.split()}
Criterion = StrEnum("Criterion", "COUNT GINI")
Learner = StrEnum("Learner", "STEADY GREEDY CART STABLE PARETO ROBUST")


def report(
    data: Annotated[
        MayRead,
        typer.Argument(
            metavar="[DATA]",
            help="A csv, Parquet or Arrow file, or a folder of the last two; default: breast "
            "cancer data.",
        ),
    ] = None,
    target: options.OptionalTarget = None,
    model: Annotated[
        MayRead,
        option(
            "FILE",
            "A saved model, evaluated on all rows: *.tree.json, *.card.json, skops, or with "
            "--trust pickle or joblib.",
        ),
    ] = None,
    trust: options.Trust = False,
    previous: Annotated[MayRead, option("FILE", "The tree in use, as --model.")] = None,
    limits: Annotated[MayRead, option("FILE", "Limits to check (TOML).")] = None,
    sign_off: Annotated[
        MayRead, option("FILE", "Owner, intended use, decision, signatures (TOML).")
    ] = None,
    noise: Noise = None,
    by: Annotated[
        list[str] | None, option("COLUMN", "Evaluate groups by this column; may be repeated.")
    ] = None,
    positive: Annotated[
        str | None,
        option("LABEL", "The event that risks and rates are about; usually the last label."),
    ] = None,
    learner: Annotated[
        Learner | None,
        typer.Option(help="Learner (default: steady); with --model, the one it was fitted with."),
    ] = None,
    learners: Annotated[
        str | None,
        option(
            "NAMES",
            "Learners to compare with, or none; else steady,cart,stable, with --quick none.",
        ),
    ] = None,
    comparison: Annotated[
        MayRead, option("FILE", "A page of steadytree compare to include.")
    ] = None,
    ledger: options.OptionalLedger = None,
    budget: Annotated[float | None, typer.Option(help="Total epsilon of the ledger.")] = None,
    schema: Annotated[
        MayRead, option("FILE", "A schema (TOML): adds accuracy against epsilon.")
    ] = None,
    out: PageOut = Path("report.html"),
    save_model: Annotated[
        MayWrite, option("FILE", "Where to save the model (*.tree.json or *.card.json).")
    ] = None,
    drop: Drop = None,
    max_leaves: MaxLeaves = 8,
    max_depth: Annotated[
        int | None,
        typer.Option(min=1, max=30, help="Maximum depth; default: none if steady, else 5."),
    ] = None,
    criterion: Annotated[
        Criterion, typer.Option(help="Criterion of greedy splits.")
    ] = Criterion.GINI,
    quick: Annotated[
        bool, typer.Option("--quick", help="Skip slow sections that were not requested.")
    ] = False,
    jobs: Jobs = 1,
    seed: Annotated[
        int, typer.Option(min=0, help="Random seed of the held-out rows and of ties.")
    ] = 0,
    as_json: AsJson = False,
) -> None:
    """Report on a saved or a new tree, as text and as a page.

    The page is one HTML file that needs no network.

    Without --model, a tree is fitted to 70 % of the rows and evaluated on the others.
    """
    check_is_page(out)
    for path in filter(None, (out, save_model)):
        check_can_write(path)
    if data is None and target is not None:
        raise ValueError("--target needs data: pass a csv or parquet file too.")
    listed = learners or ("none" if quick else USUAL_LEARNERS)
    named = [] if listed == "none" else [name.strip() for name in listed.split(",")]
    with Progress() as progress, uncollected():
        progress.update("starting")
        from steadytree.reporting.data_set import DataSet
        from steadytree.reporting.options import Limits, ReportOptions, SignOff
        from steadytree.reporting.report import report_file
        from steadytree.reporting.text import brief_view, render_brief

        chosen = ReportOptions(
            previous=None if previous is None else st.load(previous, trust),
            limits=Limits.of(limits),
            sign_off=SignOff.of(sign_off),
            perturbation=None if noise is None else st.Perturbation.from_toml(noise),
            schema=None if schema is None else st.Schema.load(schema),
            ledger=_open_ledger(ledger, budget),
            positive=positive,
            learner_name=None if learner is None else learner.value,
            max_leaf_nodes=max_leaves,
            max_depth=max_depth,
            criterion=criterion.value,
            compared_learners=named,
            comparison_file=comparison,
            quick=quick,
            seed=seed,
            n_jobs=jobs,
            command=command_line(),
        )
        saved = None if model is None else st.load(model, trust)
        progress.update(f"reading {data or 'the data'}")
        rows = DataSet.open(data, target, drop or [], by or [], any_size=True)
        found, measured = report_file(rows, saved, chosen, progress)
        progress.update(f"writing {out}")
        if save_model is not None:
            st.save(measured, save_model)
        found.write(out)
    if model is None:
        warn_of_columns(rows.features)
    view = brief_view, render_brief
    show_page(found.data, found.data, *view, as_json, out, save_model)
    failed = [_failed_text(one) for one in found.failed]
    if failed:
        stop("\n".join(failed))


def _open_ledger(path: Path | None, budget: float | None) -> st.Ledger | None:
    if (path is None) != (budget is None):
        raise ValueError("--ledger and --budget belong together: pass both.")
    if path is None or budget is None:
        return None
    if not path.exists():
        raise ValueError(f"{path}: no such ledger.")
    return st.Ledger(path, budget)


def _failed_text(one: dict[str, Any]) -> str:
    what = "could not be measured" if one["value"] is None else f"is {one['shown']}"
    return (
        f"limit exceeded: {one['meaning']} ({one['name']}) {what}, and the limit is "
        f"{one['shown_limit']}."
    )
