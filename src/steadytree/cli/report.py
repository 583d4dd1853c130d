"""The command `steadytree report`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steadytree.cli.options import EXCEEDED, AsJson, Drop, MaxDepth, MaybeTarget, Noise
from steadytree.cli.output import (
    command_line,
    echo_json,
    say_written,
    show_page,
    warn_of_row_numbers,
)
from steadytree.cli.paths import CHANGES, READS, WRITES

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

Exit code 3 where a stated limit fails or could not be measured; the page is written anyway."""


class Criterion(StrEnum):
    """What a split is judged by."""

    COUNT = "count"
    GINI = "gini"


class Learner(StrEnum):
    """How the tree is learned."""

    GREEDY = "greedy"
    CART = "cart"
    STABLE = "stable"
    PARETO = "pareto"
    ROBUST = "robust"


def report(
    data: Annotated[
        Path | None,
        typer.Argument(metavar="[DATA]", help="A csv or parquet file; without it, breast cancer."),
        READS,
    ] = None,
    target: MaybeTarget = None,
    model: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A saved tree or card to judge, on all rows."),
        READS,
    ] = None,
    previous: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The tree in use so far (*.tree.json)."),
        READS,
    ] = None,
    limits: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Limits to keep to, as TOML."), READS
    ] = None,
    noise: Noise = None,
    by: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Judge groups by this column; may be repeated."),
    ] = None,
    learner: Annotated[
        Learner | None,
        typer.Option(help="How to learn the tree; with --model, how it was learned."),
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
        typer.Option(metavar="FILE", help="A page of steadytree compare to take over."),
        READS,
    ] = None,
    ledger: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The data's privacy ledger."), CHANGES
    ] = None,
    budget: Annotated[float | None, typer.Option(help="The ledger's whole budget.")] = None,
    schema: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Adds accuracy against epsilon."), READS
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="Where to write the page."), WRITES
    ] = Path("report.html"),
    drop: Drop = None,
    max_depth: MaxDepth = 5,
    criterion: Annotated[
        Criterion, typer.Option(help="What greedy splits are judged by.")
    ] = Criterion.COUNT,
    quick: Annotated[
        bool, typer.Option("--quick", help="Leave out what takes long and was not asked for.")
    ] = False,
    jobs: Annotated[int, typer.Option(min=1, help="Processes for comparing.")] = 1,
    seed: Annotated[
        int, typer.Option(min=0, help="Which rows are held out, and how ties are broken.")
    ] = 0,
    as_json: AsJson = False,
) -> None:
    """Fit a tree (or take one) and report on it, in the terminal and as one offline HTML page.

    Without --model, 70 % of the rows are used to fit a tree and the others to judge it.
    """
    from steadytree._base.files import check_can_write
    from steadytree.cli.output import Progress

    check_can_write(out)
    if data is None and target is not None:
        raise ValueError("--target names a column of no data: pass a csv or parquet file too.")
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
    """What the named files hold."""
    from steadytree.data.schema import Schema
    from steadytree.models.files import load
    from steadytree.privacy.ledger import Ledger
    from steadytree.reporting.limits import Limits
    from steadytree.robustness.perturbation import Perturbation

    account = files["ledger"]
    if (account is None) != (budget is None):
        raise ValueError("--ledger and --budget belong together: a ledger knows its budget.")
    if account is not None and not account.exists():
        raise ValueError(f"{account}: no such ledger.")
    previous, noise = files["previous"], files["noise"]
    return {
        "previous": None if previous is None else load(previous),
        "limits": Limits.of(files["limits"]),
        "perturbation": None if noise is None else Perturbation.from_toml(noise),
        "schema": None if files["schema"] is None else Schema.load(files["schema"]),
        "ledger": None if account is None else Ledger(account, budget or 0.0),
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
    """End with exit code 3 where a stated limit is not kept, or nobody could tell."""
    for one in found.failed:
        what = "could not be measured" if one["value"] is None else f"is {one['shown']}"
        typer.echo(
            f"limit exceeded: {one['meaning']} ({one['name']}) {what}, and the limit is "
            f"{one['shown_limit']}.",
            err=True,
        )
    if found.failed:
        raise typer.Exit(EXCEEDED)
