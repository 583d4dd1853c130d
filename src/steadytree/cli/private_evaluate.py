"""The command `steadytree private evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from steadytree.cli._ledger import NewLedger, open_ledger


def evaluate(
    tree: Annotated[Path, typer.Argument(metavar="TREE", help="A tree file.")],
    data: Annotated[Path, typer.Argument(metavar="DATA", help="A csv or parquet file.")],
    target: Annotated[str, typer.Option(metavar="COLUMN", help="The column to predict.")],
    schema: Annotated[Path, typer.Option(metavar="FILE", help="The filled-in schema.")],
    epsilon: Annotated[float, typer.Option(help="What this answer may cost.")],
    ledger: Annotated[Path, typer.Option(metavar="FILE", help="The data's ledger.")],
    budget: Annotated[float, typer.Option(help="All epsilon that these data may ever cost.")],
    new_ledger: NewLedger = False,
) -> None:
    """Tell with noise how often a tree is right on private rows; exit 3 where nothing is left."""
    from steadytree.cli.private import read_rows
    from steadytree.core.schema import Schema
    from steadytree.interop.data_file import column_names
    from steadytree.interop.tree_file import load
    from steadytree.measure.private_accuracy import private_accuracy
    from steadytree.privacy.ledger import BudgetError

    if target not in column_names(data):
        raise ValueError(f"--target {target!r} is no column of the data.")
    declared, model = Schema.load(schema), load(tree)
    account = open_ledger(ledger, budget, new_ledger)
    X, y = read_rows(data, declared, target)
    try:
        found = private_accuracy(model, X, y, epsilon, declared, account)
    except BudgetError as error:
        typer.echo(f"refused: {error}", err=True)
        raise typer.Exit(3) from None
    low, high = found.interval
    typer.echo(f"accuracy {found.accuracy:.3f}, 95 % interval {low:.3f} to {high:.3f}")
    typer.echo(found.privacy.guarantee)
    typer.echo(f"left in the ledger: {account.left:g}")
