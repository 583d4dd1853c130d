"""The commands of `steadytree private`; those for several holders are in files of their own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steadytree.cli import private as private_evaluate
from steadytree.cli import private as private_simulate
from steadytree.cli import private_holder, private_study
from steadytree.cli import private_study as private_files
from steadytree.cli.options import (
    AsJson,
    Budget,
    Data,
    LedgerFile,
    Method,
    NewLedger,
    Target,
    open_ledger,
)
from steadytree.cli.output import check_order, echo_json, names_of, refuse_spending, say_written
from steadytree.cli.paths import CHANGES, READS, WRITES, App

if TYPE_CHECKING:
    from steadytree.data.schema import Schema
    from steadytree.data.table import Table


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
    from steadytree._base.exceptions import BudgetError
    from steadytree.data.readers import column_names
    from steadytree.data.schema import Schema
    from steadytree.models.files import load
    from steadytree.privacy.evaluation import private_accuracy

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


DEFAULT_EPSILONS = (0.1, 0.5, 1.0, 2.0, 8.0)
PICTURES = (".png", ".svg", ".pdf")


def simulate(
    schema: Annotated[Path, typer.Option(metavar="FILE", help="The filled-in schema."), READS],
    rows: Annotated[int, typer.Option(help="Rows that the private fit will have, about.")],
    epsilon: Annotated[
        list[float] | None, typer.Option(help="What a fit may cost; may be given several times.")
    ] = None,
    public_data: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="PUBLIC rows, csv or parquet; NEVER the private ones: nothing protects these. "
            "Without it, rows are made up from the schema.",
        ),
        READS,
    ] = None,
    target: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The public data's column to predict.")
    ] = None,
    method: Annotated[Method, typer.Option(help="How to grow the trees.")] = Method.GIBBS,
    repeats: Annotated[int, typer.Option(help="Fits at each epsilon.", min=2)] = 10,
    seed: Annotated[int, typer.Option(help="For the same figures again.", min=0)] = 0,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to draw it (png, svg, pdf)."), WRITES
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Tell how accurate private trees would be, before anything is spent.

    Only for public or made-up rows: what is printed is exact, charged to no ledger and protects
    nobody. Choosing epsilon by trying it on the private rows is a release of its own.
    """
    from steadytree._base.files import check_can_write
    from steadytree._base.optional import require
    from steadytree.data.schema import Schema
    from steadytree.privacy.simulation import simulate as simulate_fits

    if (public_data is None) != (target is None):
        raise ValueError("--public-data and --target belong together.")
    if out is not None:
        check_can_write(out)
        require("matplotlib", extra="plot", purpose="--out")
        if out.suffix not in PICTURES:
            raise ValueError(f"--out must end in one of {', '.join(PICTURES)}, got {str(out)!r}.")
    declared, data = Schema.load(schema), None
    if public_data is not None and target is not None:
        data = _public_rows(public_data, declared, target)
    found = simulate_fits(
        declared,
        rows,
        epsilon or DEFAULT_EPSILONS,
        data,
        method=method.value,
        repeats=repeats,
        random_state=seed,
    )
    if out is not None:
        found.plot().figure.savefig(out)
    if as_json:
        echo_json({**found.to_dict(), "written": names_of([out])})
        return
    typer.echo(str(found))
    source = "made-up rows" if data is None else f"{public_data}, taken to be public"
    typer.echo(f"from {source}: nothing was spent, and nothing of this is private")
    say_written(out)


def _public_rows(path: Path, declared: object, target: str) -> tuple[object, object]:
    from steadytree.data.readers import column_names

    if target not in column_names(path):
        raise ValueError(f"--target {target!r} is no column of the data.")
    return read_rows(path, declared, target)  # type: ignore[arg-type]


EXAMPLES = """\b
Examples:
  steadytree private schema patients.csv --target outcome --out patients.schema.toml
  steadytree private simulate --schema patients.schema.toml --rows 5000
  steadytree private fit patients.csv --target outcome --schema patients.schema.toml \\
      --epsilon 1 --ledger patients.ledger --new-ledger --budget 2 --out outcome.tree.json
  steadytree private evaluate outcome.tree.json patients.csv --target outcome \\
      --schema patients.schema.toml --epsilon 0.2 --ledger patients.ledger --budget 2
  steadytree private ledger patients.ledger --budget 2"""

app = App(
    help="Learn from data you may not see: declare, fit, keep account.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


app.add_typer(private_holder.app, name="holder", epilog=private_holder.EXAMPLES)
app.command()(private_simulate.simulate)
app.command()(private_evaluate.evaluate)
app.command()(private_study.keys)
app.command()(private_study.coordinate)
app.command()(private_files.ask)
app.command()(private_files.answer)
app.command()(private_files.merge)


@app.command()
def schema(
    data: Data,
    target: Target,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where to write it."), WRITES] = Path(
        "schema.toml"
    ),
    as_json: AsJson = False,
) -> None:
    """Write a schema to fill in, from column names alone; no value is read."""
    from steadytree._base.files import check_can_write, write_text_atomically
    from steadytree.data.readers import column_names
    from steadytree.data.schema import template_of_names

    if check_can_write(out).exists():
        raise ValueError(f"{out} exists: name another file, so that none is lost.")
    names = column_names(data)
    _check_target(target, names)
    columns = [name for name in names if name != target]
    write_text_atomically(out, template_of_names(columns))
    if as_json:
        echo_json({"columns": columns, "written": [str(out)]})
        return
    say_written(out)
    typer.echo('Fill in every "fill in" from general knowledge, not the data.')


@app.command()
def fit(
    data: Data,
    target: Target,
    schema: Annotated[Path, typer.Option(metavar="FILE", help="The filled-in schema."), READS],
    epsilon: Annotated[float, typer.Option(help="What this tree may cost.")],
    ledger: LedgerFile,
    budget: Budget,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where to write the tree."), WRITES],
    new_ledger: NewLedger = False,
    method: Annotated[Method, typer.Option(help="How to grow the tree.")] = Method.GIBBS,
    as_json: AsJson = False,
) -> None:
    """Fit a private tree, charge the ledger, write the tree; exit 3 where the budget is spent."""
    from steadytree._base.exceptions import BudgetError
    from steadytree._base.files import check_can_write
    from steadytree.cli.output import Progress
    from steadytree.data.readers import column_names
    from steadytree.data.schema import Schema
    from steadytree.privacy.private_tree import PrivateTreeClassifier

    check_can_write(out)
    _check_target(target, column_names(data))
    declared, account = Schema.load(schema), open_ledger(ledger, budget, new_ledger)
    model = PrivateTreeClassifier(epsilon, declared, method.value, ledger=account)
    try:
        with Progress() as progress:
            progress.say(f"reading {data}")
            X, y = read_rows(data, declared, target)
            progress.say("fitting a private tree")
            model.fit(X, y)
    except BudgetError as error:
        refuse_spending(error)
    model.save(out)
    if as_json:
        echo_json({**model.privacy_.to_dict(), "left": account.left, "written": [str(out)]})
        return
    _show(model.privacy_.to_dict(), account.left)
    say_written(out)


@app.command(name="ledger")
def show_ledger(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="A ledger."), CHANGES],
    budget: Budget,
    delta: Annotated[
        float, typer.Option(help="All delta that these rows may ever cost.", metavar="<float>")
    ] = 0.0,
    upgrade: Annotated[
        bool, typer.Option("--upgrade", help="Write a ledger of version 1 in today's form first.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show what was spent on what, and what is left."""
    from steadytree.privacy.ledger import Ledger, upgrade_ledger

    if not path.exists():
        raise ValueError(f"{path}: no such ledger.")
    if upgrade:
        upgrade_ledger(path, budget, delta)
    account = Ledger(path, budget, delta)
    if as_json:
        entries = [
            {"epsilon": str(one.epsilon), "what": one.what, "mechanism": one.mechanism}
            for one in account.entries
        ]
        told = {"budget": account.budget, "spent": account.spent, "left": account.left}
        echo_json({**told, "entries": entries})
        return
    for entry in account.entries:
        typer.echo(f"{float(entry.epsilon):>12g} {entry.what} ({entry.mechanism or 'unknown'})")
    typer.echo(f"spent {account.spent:g}, left {account.left:g} of {account.budget:g}")


def _check_target(target: str, names: list[str]) -> None:
    if target not in names:
        raise ValueError(f"--target {target!r} is no column of the data.")


def read_rows(data: Path, declared: Schema, target: str) -> tuple[Table, Any]:
    """Rows and labels of a file, each cell read by itself."""
    from steadytree.data.readers import read_cells

    listed = [*declared.classes, *(text for known in declared.space.categories for text in known)]
    as_they_stand = {str(value) for value in listed}
    table = read_cells(data, list(dict.fromkeys([*declared.names, target])), as_they_stand)
    return table.select(declared.names), table.select([target]).columns[0]


def _show(statement: dict[str, Any], left: float) -> None:
    typer.echo(statement["guarantee"])
    for purpose, amount in statement["spent"].items():
        typer.echo(f"  epsilon {amount:.4g} on {purpose}")
    typer.echo(f"left in the ledger: {left:g}")
