"""The command `steadytree certify`."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

import steadytree as st
from steadytree._base.progress import Progress
from steadytree.cli.options import (
    AsJson,
    DataOrFolder,
    MayRead,
    ModelFile,
    Reads,
    Trust,
    option,
    parse_share,
)
from steadytree.cli.output import check_order, show, stop

EXAMPLES = """\b
Examples:
  steadytree certify model.tree.json new.csv --target outcome --noise noise.toml
  steadytree certify model.tree.json new.csv --target outcome --radius 5% --min-certified 80%
  steadytree certify model.tree.json new.csv --target outcome --radius age=2 --radius "bmi=0.5 sd"
  steadytree certify model.tree.json new.csv --target outcome --wrong-values 1
  steadytree certify forest.skops new.csv --target outcome --radius 2% --reference train.csv
\b
noise.toml, for example (whole: columns that move in whole steps; may be left out):
  whole = ["age"]
  one_hot = [["job_clerk", "job_miner"]]
  [radius]
  age = 2
  income = "5 %"
  job_clerk = 1
  job_miner = 1"""


def certify(
    model: Annotated[Reads, typer.Argument(metavar="MODEL", help=ModelFile)],
    data: DataOrFolder,
    target: Annotated[str, option("COLUMN", "The column with the true classes.")],
    noise: Annotated[MayRead, option("FILE", "Perturbation of the inputs (TOML).")] = None,
    radius: Annotated[
        list[str] | None,
        option(
            "AMOUNT",
            "How far numbers may be off: 5% of the range, '0.5 sd', or age=2; may be repeated.",
        ),
    ] = None,
    wrong_values: Annotated[
        int | None, typer.Option(min=0, help="Maximum number of wrong values in a row.")
    ] = None,
    repeated: Annotated[
        MayRead, option("FILE", "Repeated measurements that the noise is estimated from.")
    ] = None,
    by: Annotated[
        str | None,
        option("COLUMN", "The column of --repeated that identifies what was measured."),
    ] = None,
    reference: Annotated[
        MayRead, option("FILE", "Rows that shares of ranges refer to; default: DATA.")
    ] = None,
    weight: Annotated[str | None, option("COLUMN", "A column with the weights of rows.")] = None,
    min_certified: Annotated[
        str | None, option("SHARE", "Exit with 3 if the worst-case accuracy is lower.")
    ] = None,
    counterexamples: Annotated[
        int, typer.Option(min=0, help="Number of smallest counterexamples to show.")
    ] = 5,
    time_limit: Annotated[
        float, typer.Option(help="Seconds for an ensemble; rows left then are undecided.")
    ] = math.inf,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Certify how far inputs can move before predictions change.

    The worst-case accuracy is the share of rows that are predicted correctly under every
    perturbation within the budget. For a forest or boosted trees it lies between two shares.
    """
    from steadytree.reporting.data_set import DataSet
    from steadytree.reporting.formatting import plain

    check_order("certify", model, data)
    perturbation = _stated(noise, radius, wrong_values, repeated, by)
    least = None if min_certified is None else parse_share(min_certified, "--min-certified")
    if least is not None and perturbation.budget is None:
        raise ValueError(f"--min-certified needs a budget in {str(noise)!r}: add budget = ...")
    with Progress() as progress:
        progress.update(f"reading {data}")
        fitted, rows = st.load(model, trust), DataSet.read(data, target, any_size=True)
        features, weights = _weighed(rows.features, weight)
        if perturbation.relative_to_rows:
            known = features
            if reference is not None:
                known = DataSet.read(reference, target, any_size=True).features
            perturbation = perturbation.scaled_to(known)
        labels: Any = rows.labels
        if rows.parts is not None:  # which are all rows, of which these are a sample
            if weight is not None:
                raise ValueError("--weight needs the rows in memory: pass one smaller file.")
            features, labels = rows.parts, None
        progress.update("searching for the smallest perturbations")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # notes are shown below
            found = st.certify(
                fitted, features, labels, perturbation, weights, time_limit=time_limit
            )
    worst = None if perturbation.budget is None else found.worst_case_accuracy
    failed = least is not None and worst is not None and worst < least
    lines = [f"{one}  ({one.meaning})" for one in found.measurements()]
    lines += [f"note: {note}" for note in found.remarks()]
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


def _stated(
    noise: Path | None,
    radius: list[str] | None,
    wrong_values: int | None,
    repeated: Path | None,
    by: str | None,
) -> st.Perturbation:
    """The noise that the options state, in one of three ways."""
    from steadytree.data.readers import read_data

    amounts = _amounts(radius or [])
    ways = [noise is not None, bool(radius) or wrong_values is not None, repeated is not None]
    if sum(ways) != 1:
        raise ValueError(
            "state the noise in one way: --noise FILE, or --radius and --wrong-values, or "
            "--repeated FILE with --by COLUMN."
        )
    if noise is not None:
        return st.Perturbation.from_toml(noise)
    if repeated is not None:
        if by is None:
            raise ValueError("--repeated needs --by COLUMN: which rows are of the same thing.")
        return st.Perturbation.from_repeated(read_data(repeated), by)
    if wrong_values is None:
        return st.Perturbation(radius=amounts)
    limits = {} if amounts is None else {"radius": amounts}
    return st.Perturbation.wrong_values(wrong_values, **limits)


def _amounts(given: list[str]) -> Any:
    """Amounts of named columns, or one for all numbers; None where none is given."""
    named = [text.rpartition("=") for text in given]
    if len(given) == 1 and not named[0][1]:
        return _amount(given[0])
    if not all(sign for _, sign, _ in named):
        raise ValueError(
            "--radius must be one amount for all columns, or COLUMN=AMOUNT for each, got "
            f"{', '.join(given)}."
        )
    return {name: _amount(amount) for name, _, amount in named} or None


def _amount(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text  # a share or standard deviations


def _weighed(features: Any, weight: str | None) -> tuple[Any, Any]:
    """The features without the column of weights, and the weights."""
    if weight is None:
        return features, None
    others = [name for name in features.names if name != weight]
    if len(others) == len(features.names):
        raise ValueError(f"--weight names {weight!r}, but the columns are {', '.join(others)}.")
    values = features.select([weight]).columns[0]
    if values.dtype == object:
        raise ValueError(f"--weight names {weight!r}, which holds text: weights are numbers.")
    return features.select(others), values
