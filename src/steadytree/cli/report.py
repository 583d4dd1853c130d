"""The command `steadytree report`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import steadytree as st
from steadytree._base.files import check_can_write
from steadytree.cli.options import (
    CHANGES,
    LIMIT_EXCEEDED,
    READS,
    AsJson,
    Drop,
    Jobs,
    MaxDepth,
    Noise,
    OptionalTarget,
    PageOut,
)
from steadytree.cli.output import (
    Progress,
    command_line,
    echo_json,
    say_written,
    show_page,
    warn_of_row_numbers,
)

if TYPE_CHECKING:
    from steadytree.reporting.report import Report

USUAL_LEARNERS = "cart,stable,pareto"
EXAMPLES = """\b
Examples:
  steadytree report
  steadytree report patients.csv --target outcome --drop id --by sex --out outcome.html
  steadytree report new.csv --target outcome --model outcome.tree.json
  steadytree report q2.csv --target outcome --model q2.tree.json --previous q1.tree.json \\
      --noise noise.toml --limits limits.toml
\b
limits.toml, for example:
  min_accuracy = "90%"
  max_flips = "5%"
  min_worst_case_accuracy = 0.8

Exit code 3 if a limit fails or could not be measured; the page is written anyway."""


class Criterion(StrEnum):
    """The criterion of a split."""

    COUNT = "count"
    GINI = "gini"


class Learner(StrEnum):
    """The learner of the tree."""

    GREEDY = "greedy"
    CART = "cart"
    STABLE = "stable"
    PARETO = "pareto"
    ROBUST = "robust"


def report(
    data: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DATA]", help="A csv or parquet file; default: breast cancer data."
        ),
        READS,
    ] = None,
    target: OptionalTarget = None,
    model: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A saved tree or risk score, evaluated on all rows."),
        READS,
    ] = None,
    previous: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The tree in use (*.tree.json)."),
        READS,
    ] = None,
    limits: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Limits to check (TOML)."), READS
    ] = None,
    noise: Noise = None,
    by: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Evaluate groups by this column; may be repeated."),
    ] = None,
    learner: Annotated[
        Learner | None,
        typer.Option(help="Learner of the tree; with --model, the one it was fitted with."),
    ] = None,
    learners: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Learners to compare with, or none; else cart,stable,pareto, with --quick none.",
        ),
    ] = None,
    comparison: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A page of steadytree compare to include."),
        READS,
    ] = None,
    ledger: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The privacy ledger of the data."), CHANGES
    ] = None,
    budget: Annotated[float | None, typer.Option(help="Total epsilon of the ledger.")] = None,
    schema: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A schema (TOML): adds accuracy against epsilon."),
        READS,
    ] = None,
    out: PageOut = Path("report.html"),
    drop: Drop = None,
    max_depth: MaxDepth = 5,
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
    """Report on a saved or a new tree, in the terminal and as one offline HTML page.

    Without --model, a tree is fitted to 70 % of the rows and evaluated on the others.
    """
    check_can_write(out)
    if data is None and target is not None:
        raise ValueError("--target needs data: pass a csv or parquet file too.")
    files = {"previous": previous, "limits": limits, "noise": noise}
    files |= {"ledger": ledger, "schema": schema}
    asked = learners or ("none" if quick else USUAL_LEARNERS)
    named = [] if asked == "none" else [name.strip() for name in asked.split(",")]
    with Progress() as progress:
        progress.say("starting")
        from steadytree.models.files import load
        from steadytree.reporting.data_set import DataSet
        from steadytree.reporting.file_report import report_file
        from steadytree.reporting.options import ReportOptions

        options = ReportOptions(
            **_read(files, budget),
            learner_name=None if learner is None else learner.value,
            max_depth=max_depth,
            criterion=criterion.value,
            compared_learners=named,
            comparison_file=comparison,
            quick=quick,
            seed=seed,
            n_jobs=jobs,
            command=command_line(),
        )
        saved = None if model is None else load(model)
        progress.say(f"reading {data or 'the data'}")
        rows = DataSet.open(data, target, drop or [], by or [])
        found = report_file(rows, saved, options, progress.say)
        progress.say(f"writing {out}")
        found.write(out)
    if model is None:
        warn_of_row_numbers(rows.features)
    _show(found.data, out, as_json)
    _stop_if_failed(found)


def _read(files: dict[str, Path | None], budget: float | None) -> dict[str, Any]:
    """The contents of the files."""
    from steadytree.reporting.limits import Limits

    account = files["ledger"]
    if (account is None) != (budget is None):
        raise ValueError("--ledger and --budget belong together: pass both.")
    if account is not None and not account.exists():
        raise ValueError(f"{account}: no such ledger.")
    previous, noise = files["previous"], files["noise"]
    return {
        "previous": None if previous is None else st.load(previous),
        "limits": Limits.of(files["limits"]),
        "perturbation": None if noise is None else st.Perturbation.from_toml(noise),
        "schema": None if files["schema"] is None else st.Schema.load(files["schema"]),
        "ledger": None if account is None else st.Ledger(account, budget or 0.0),
    }


def _show(data: dict[str, Any], out: Path, as_json: bool) -> None:
    if as_json:
        echo_json({**data, "written": [str(out)]})
        return
    from steadytree.reporting.text import render_text, terminal_view

    show_page(data, terminal_view, render_text)
    typer.echo()
    say_written(out)


def _stop_if_failed(found: Report) -> None:
    """End with exit code 3 where a limit fails or could not be measured."""
    for one in found.failed:
        what = "could not be measured" if one["value"] is None else f"is {one['shown']}"
        typer.echo(
            f"limit exceeded: {one['meaning']} ({one['name']}) {what}, and the limit is "
            f"{one['shown_limit']}.",
            err=True,
        )
    if found.failed:
        raise typer.Exit(LIMIT_EXCEEDED)
