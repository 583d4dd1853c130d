"""The command `steadytree certify`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from steadytree.cli.options import EXCEEDED, AsJson, Data, parse_share
from steadytree.cli.output import check_order, echo_json
from steadytree.cli.paths import READS

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
    target: Annotated[str, typer.Option(metavar="COLUMN", help="The column with the truth.")],
    noise: Annotated[
        Path, typer.Option(metavar="FILE", help="How far inputs may move, as TOML."), READS
    ],
    min_certified: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE",
            help="Exit with 3 if fewer rows stay right after the worst perturbation.",
        ),
    ] = None,
    counterexamples: Annotated[
        int, typer.Option(min=0, help="How many of the smallest harmful moves to show.")
    ] = 5,
    as_json: AsJson = False,
) -> None:
    """Say how far inputs can move before the tree answers differently.

    The worst-case accuracy is the share of rows that are right and stay so, whatever happens within
    the perturbation's budget.
    """
    from steadytree.cli.output import Progress
    from steadytree.models.files import load
    from steadytree.reporting.data_set import DataSet
    from steadytree.robustness.certify import certify as certify_tree
    from steadytree.robustness.perturbation import Perturbation

    check_order("certify", model, data)
    perturbation = Perturbation.from_toml(noise)
    least = None if min_certified is None else parse_share(min_certified, "--min-certified")
    if least is not None and perturbation.budget is None:
        raise ValueError(f"--min-certified needs a budget in {str(noise)!r}: add budget = ...")
    with Progress() as progress:
        progress.say(f"reading {data}")
        tree, rows = load(model), DataSet.read(data, target)
        progress.say("looking for the smallest harmful moves")
        found = certify_tree(tree, rows.features, rows.labels, perturbation)
    worst = None if perturbation.budget is None else found.worst_case_accuracy
    failed = least is not None and worst is not None and worst < least
    if as_json:
        echo_json({**_plain(found.to_dict()), "min_certified": least, "passed": not failed})
    else:
        _show(found, counterexamples)
    if failed:
        typer.echo(
            f"limit exceeded: worst-case accuracy is {worst:.4g}, and --min-certified asks for "
            f"{min_certified}.",
            err=True,
        )
        raise typer.Exit(EXCEEDED)


def _show(found: Any, most: int) -> None:
    for reading in found.measurements():
        typer.echo(f"{reading}  ({reading.meaning})")
    examples = found.counterexamples(most)
    if examples:
        typer.echo("smallest moves that turn a right answer wrong:")
    for example in examples:
        typer.echo(f"  {example}")


def _plain(value: Any) -> Any:
    """Infinity as null: JSON has none."""
    if isinstance(value, dict):
        return {key: _plain(inside) for key, inside in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inside) for inside in value]
    return None if isinstance(value, float) and value in (float("inf"), float("-inf")) else value
