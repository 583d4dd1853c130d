"""The command `steadytree private evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from steadytree.cli._command import check_order
from steadytree.cli._ledger import NewLedger, open_ledger
from steadytree.cli._options import AsJson, Budget, Data, LedgerFile, Target
from steadytree.cli._output import echo_json, refuse_spending
from steadytree.cli._places import READS


def evaluate(
    tree: Annotated[Path, typer.Argument(metavar="TREE", help="A tree file."), READS],
    data: Data,
    target: Target,
    schema: Annotated[Path, typer.Option(metavar="FILE", help="The filled-in schema."), READS],
    epsilon: Annotated[float, typer.Option(help="What this answer may cost.")],
    ledger: LedgerFile,
    budget: Budget,
    new_ledger: NewLedger = False,
    as_json: AsJson = False,
) -> None:
    """Tell with noise how often a tree is right on private rows; exit 3 where nothing is left."""
    from steadytree.cli.private import read_rows
    from steadytree.core.schema import Schema
    from steadytree.interop.data_file import column_names
    from steadytree.interop.tree_file import load
    from steadytree.measure.private_accuracy import private_accuracy
    from steadytree.privacy.ledger import BudgetError

    check_order("private evaluate", tree, data)
    if target not in column_names(data):
        raise ValueError(f"--target {target!r} is no column of the data.")
    declared, model = Schema.load(schema), load(tree)
    account = open_ledger(ledger, budget, new_ledger)
    X, y = read_rows(data, declared, target)
    try:
        found = private_accuracy(model, X, y, epsilon, declared, account)
    except BudgetError as error:
        refuse_spending(error)
    low, high = found.interval
    if as_json:
        told = {"accuracy": float(found.accuracy), "interval": [float(low), float(high)]}
        echo_json({**told, **found.privacy.to_dict(), "left": account.left})
        return
    typer.echo(f"accuracy {found.accuracy:.3f}, 95 % interval {low:.3f} to {high:.3f}")
    typer.echo(found.privacy.guarantee)
    typer.echo(f"left in the ledger: {account.left:g}")
