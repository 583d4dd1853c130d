"""The command `steadytree certify`."""

from __future__ import annotations

from typing import Annotated

import typer

import steadytree as st
from steadytree._base.progress import Progress
from steadytree.cli.options import AsJson, Data, ModelFile, Reads, Trust, option, parse_share
from steadytree.cli.output import check_order, show, stop

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
    model: Annotated[Reads, typer.Argument(metavar="MODEL", help=ModelFile)],
    data: Data,
    target: Annotated[str, option("COLUMN", "The column with the true classes.")],
    noise: Annotated[Reads, option("FILE", "Perturbation of the inputs (TOML).")],
    min_certified: Annotated[
        str | None, option("SHARE", "Exit with 3 if the worst-case accuracy is lower.")
    ] = None,
    counterexamples: Annotated[
        int, typer.Option(min=0, help="Number of smallest counterexamples to show.")
    ] = 5,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Certify how far inputs can move before the tree's prediction changes.

    The worst-case accuracy is the share of rows that are predicted correctly under every
    perturbation within the budget.
    """
    from steadytree.reporting.data_set import DataSet
    from steadytree.reporting.formatting import plain

    check_order("certify", model, data)
    perturbation = st.Perturbation.from_toml(noise)
    least = None if min_certified is None else parse_share(min_certified, "--min-certified")
    if least is not None and perturbation.budget is None:
        raise ValueError(f"--min-certified needs a budget in {str(noise)!r}: add budget = ...")
    with Progress() as progress:
        progress.update(f"reading {data}")
        tree, rows = st.load(model, trust), DataSet.read(data, target)
        progress.update("searching for the smallest perturbations")
        found = st.certify(tree, rows.features, rows.labels, perturbation)
    worst = None if perturbation.budget is None else found.worst_case_accuracy
    failed = least is not None and worst is not None and worst < least
    lines = [f"{one}  ({one.meaning})" for one in found.measurements()]
    examples = [f"  {example}" for example in found.counterexamples(counterexamples)]
    if examples:
        lines += ["smallest perturbations that make a correct prediction wrong:", *examples]
    result = {**plain(found.to_dict()), "min_certified": least, "passed": not failed}
    show(result, lines, as_json)
    if failed:
        stop(
            f"limit exceeded: worst-case accuracy is {worst:.4g}, and --min-certified is "
            f"{min_certified}."
        )
