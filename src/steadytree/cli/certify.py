"""The command `steadytree certify`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import steadytree as st
from steadytree.cli.options import LIMIT_EXCEEDED, READS, AsJson, Data, parse_share
from steadytree.cli.output import Progress, check_order, echo_json

EXAMPLES = """\b
Examples:
  steadytree certify model.tree.json new.csv --target outcome --noise noise.toml
  steadytree certify model.tree.json new.csv --target outcome --noise noise.toml --min-certified 80%
\b
noise.toml, for example (whole: columns that move in whole steps; may be left out):
  whole = ["age"]
  [radius]
  age = 2
  income = 500"""


def certify(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A saved tree (*.tree.json)."), READS
    ],
    data: Data,
    target: Annotated[
        str, typer.Option(metavar="COLUMN", help="The column with the true classes.")
    ],
    noise: Annotated[
        Path, typer.Option(metavar="FILE", help="Perturbation of the inputs (TOML)."), READS
    ],
    min_certified: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE",
            help="Exit with 3 if the worst-case accuracy is lower.",
        ),
    ] = None,
    counterexamples: Annotated[
        int, typer.Option(min=0, help="Number of smallest counterexamples to show.")
    ] = 5,
    as_json: AsJson = False,
) -> None:
    """Certify how far inputs can move before the tree's prediction changes.

    The worst-case accuracy is the share of rows that are predicted correctly under every
    perturbation within the budget.
    """
    from steadytree.reporting.data_set import DataSet

    check_order("certify", model, data)
    perturbation = st.Perturbation.from_toml(noise)
    least = None if min_certified is None else parse_share(min_certified, "--min-certified")
    if least is not None and perturbation.budget is None:
        raise ValueError(f"--min-certified needs a budget in {str(noise)!r}: add budget = ...")
    with Progress() as progress:
        progress.say(f"reading {data}")
        tree, rows = st.load(model), DataSet.read(data, target)
        progress.say("searching for the smallest perturbations")
        found = st.certify(tree, rows.features, rows.labels, perturbation)
    worst = None if perturbation.budget is None else found.worst_case_accuracy
    failed = least is not None and worst is not None and worst < least
    if as_json:
        echo_json({**_plain(found.to_dict()), "min_certified": least, "passed": not failed})
    else:
        _show(found, counterexamples)
    if failed:
        typer.echo(
            f"limit exceeded: worst-case accuracy is {worst:.4g}, and --min-certified is "
            f"{min_certified}.",
            err=True,
        )
        raise typer.Exit(LIMIT_EXCEEDED)


def _show(found: Any, most: int) -> None:
    for measurement in found.measurements():
        typer.echo(f"{measurement}  ({measurement.meaning})")
    examples = found.counterexamples(most)
    if examples:
        typer.echo("smallest perturbations that make a correct prediction wrong:")
    for example in examples:
        typer.echo(f"  {example}")


def _plain(value: Any) -> Any:
    """Infinity as null: JSON has none."""
    if isinstance(value, dict):
        return {key: _plain(inside) for key, inside in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inside) for inside in value]
    return None if isinstance(value, float) and value in (float("inf"), float("-inf")) else value
