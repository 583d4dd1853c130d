"""The commands of `steadytree private`; those for several holders are in files of their own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

import steadytree as st
from steadytree._base.exceptions import BudgetError
from steadytree._base.files import check_can_write, write_text_atomically
from steadytree._base.progress import Progress
from steadytree.cli import (
    options,
    private_holder,
    private_rehearse,
    private_study,
)
from steadytree.cli.options import (
    CHANGES,
    AsJson,
    Budget,
    Data,
    MayRead,
    Method,
    NewLedger,
    Reads,
    SchemaFile,
    WitnessFile,
    option,
)
from steadytree.cli.output import check_order, show, stop

if TYPE_CHECKING:
    from steadytree.data.table import Table

DEFAULT_EPSILONS = (0.1, 0.5, 1.0, 2.0, 8.0)
PICTURES = (".png", ".svg", ".pdf")
EXAMPLES = """\b
Examples:
  steadytree private schema patients.csv --target outcome --out patients.schema.toml
  steadytree private simulate --schema patients.schema.toml --rows 5000
  steadytree private fit patients.csv --target outcome --schema patients.schema.toml \\
      --epsilon 1 --ledger patients.ledger --new-ledger --budget 2 --out outcome.tree.json
  steadytree private evaluate outcome.tree.json patients.csv --target outcome \\
      --schema patients.schema.toml --epsilon 0.2 --ledger patients.ledger --budget 2
  steadytree private ledger patients.ledger --budget 2"""

LEDGER_EXAMPLES = """\b
Examples:
  steadytree private ledger patients.ledger --budget 2
  steadytree private ledger verify patients.ledger --coordinator-key coordinator.sign.pub"""

app = options.App(
    help="Learn under differential privacy, and record what is spent.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command()
def schema(
    data: Data,
    target: options.Target,
    out: Annotated[options.Writes, option("FILE", "Where to write the schema.")] = Path(
        "schema.toml"
    ),
    as_json: AsJson = False,
) -> None:
    """Write a schema to fill in, from the column names alone.

    No value is read.
    """
    from steadytree.data.schema import template_of_names

    if check_can_write(out).exists():
        raise ValueError(f"{out} exists: name another file, so that none is lost.")
    columns = [name for name in names_with(data, target) if name != target]
    write_text_atomically(out, template_of_names(columns))
    show({"columns": columns}, [], as_json, [out])
    if not as_json:
        typer.echo('Replace every "fill in" from general knowledge, not from the data.')


@app.command()
def simulate(
    schema: SchemaFile,
    rows: Annotated[int, typer.Option(help="Approximate number of rows of the private fit.")],
    epsilon: Annotated[
        list[float] | None, typer.Option(help="Privacy budget of a fit; may be repeated.")
    ] = None,
    public_data: Annotated[
        options.MayRead,
        option(
            "FILE",
            "PUBLIC rows (csv or parquet), NEVER the private ones: nothing protects these. "
            "Without it, rows are generated from the schema.",
        ),
    ] = None,
    target: Annotated[str | None, option("COLUMN", "The public data's column to predict.")] = None,
    method: Annotated[Method, typer.Option(help="How to grow the trees.")] = Method.GIBBS,
    repeats: Annotated[int, typer.Option(help="Number of fits at each epsilon.", min=2)] = 10,
    seed: Annotated[int, typer.Option(help="Random seed.", min=0)] = 0,
    out: Annotated[options.MayWrite, option("FILE", "Where to plot it (png, svg, pdf).")] = None,
    as_json: AsJson = False,
) -> None:
    """Estimate how accurate private trees will be.

    No budget is spent.

    Only for public or generated rows: the results are exact, charged to no ledger and not private.
    Choosing epsilon by trying it on the private rows is a release of its own.
    """
    from steadytree._base.optional import require

    if (public_data is None) != (target is None):
        raise ValueError("--public-data and --target belong together.")
    if out is not None:
        check_can_write(out)
        require("matplotlib", extra="plot", purpose="--out")
        if out.suffix not in PICTURES:
            raise ValueError(f"--out must end in one of {', '.join(PICTURES)}, got {str(out)!r}.")
    declared, data = st.Schema.load(schema), None
    if public_data is not None and target is not None:
        names_with(public_data, target)
        data = read_rows(public_data, declared, target)[:2]
    tried: dict[str, Any] = {"method": method.value, "repeats": repeats, "random_state": seed}
    found = st.simulate(declared, rows, epsilon or DEFAULT_EPSILONS, data, **tried)
    if out is not None:
        found.plot().figure.savefig(out)
    source = "generated rows" if data is None else f"{public_data}, taken to be public"
    warning = f"from {source}: no budget was spent, and these results are not private"
    show(found.to_dict(), [str(found), warning], as_json, [out])


@app.command()
def fit(
    data: Data,
    target: options.Target,
    schema: SchemaFile,
    epsilon: Annotated[float, typer.Option(help="Privacy budget of this tree.")],
    ledger: options.LedgerFile,
    budget: Budget,
    out: options.TreeOut,
    new_ledger: NewLedger = False,
    witness: WitnessFile = None,
    method: Annotated[Method, typer.Option(help="How to grow the tree.")] = Method.GIBBS,
    persons: options.Persons = None,
    rows_per_person: options.RowsPerPerson = None,
    as_json: AsJson = False,
) -> None:
    """Fit a private tree, charge the ledger and save the tree.

    Exit code 3 if the budget is spent.
    """
    check_can_write(out)
    names_with(data, target)
    declared = st.Schema.load(schema)
    account = options.open_ledger(ledger, budget, new_ledger, witness)
    more: dict[str, Any] = {"ledger": account, "rows_per_person": rows_per_person}
    model = st.PrivateTreeClassifier(epsilon, declared, method.value, **more)
    try:
        with Progress() as progress:
            progress.update(f"reading {data}")
            X, y, whose = read_rows(data, declared, target, persons)
            progress.update("fitting a private tree")
            model.fit(X, y, persons=whose)
    except BudgetError as error:
        stop(f"refused: {error}")
    model.save(out)
    statement = model.privacy_.to_dict()
    spent = [f"  epsilon {amount:.4g} on {use}" for use, amount in statement["spent"].items()]
    lines = [statement["guarantee"], *spent, f"left in the ledger: {account.left:g}"]
    show({**statement, "left": account.left}, lines, as_json, [out])


@app.command()
def evaluate(
    tree: Annotated[options.Reads, typer.Argument(metavar="TREE", help="A tree file.")],
    data: Data,
    target: options.Target,
    schema: SchemaFile,
    epsilon: Annotated[float, typer.Option(help="Privacy budget of this evaluation.")],
    ledger: options.LedgerFile,
    budget: Budget,
    new_ledger: NewLedger = False,
    witness: WitnessFile = None,
    persons: options.Persons = None,
    rows_per_person: options.RowsPerPerson = None,
    as_json: AsJson = False,
) -> None:
    """Estimate a tree's accuracy on private rows, with noise.

    Exit code 3 if the budget is spent.
    """
    check_order("private evaluate", tree, data)
    names_with(data, target)
    declared, model = st.Schema.load(schema), st.load(tree)
    account = options.open_ledger(ledger, budget, new_ledger, witness)
    X, y, whose = read_rows(data, declared, target, persons)
    more: dict[str, Any] = {"persons": whose, "rows_per_person": rows_per_person}
    try:
        found = st.private_accuracy(model, X, y, epsilon, declared, account, **more)
    except BudgetError as error:
        stop(f"refused: {error}")
    low, high = found.interval
    values = {"accuracy": float(found.accuracy), "interval": [float(low), float(high)]}
    estimate = f"accuracy {found.accuracy:.3f}, 95 % interval {low:.3f} to {high:.3f}"
    lines = [estimate, found.privacy.guarantee, f"left in the ledger: {account.left:g}"]
    show({**values, **found.privacy.to_dict(), "left": account.left}, lines, as_json)


for name in ("keys", "coordinate", "ask", "answer", "merge"):
    app.command()(getattr(private_study, name))
app.command()(private_rehearse.rehearse)


# ---- the ledger ----
class _ShowsByDefault(TyperGroup):
    """`ledger FILE` without the name of a command shows the file."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] != "--help":
            args = ["show", *args]
        return super().parse_args(ctx, args)


ledger_app = options.App(
    help="Show what was spent, or verify a ledger.",
    cls=_ShowsByDefault,
    no_args_is_help=True,
    rich_markup_mode=None,
)


@ledger_app.command(name="show")
def show_ledger(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="A ledger."), CHANGES],
    budget: Budget,
    delta: Annotated[
        float, option("<float>", "Total delta that may ever be spent on the data.")
    ] = 0.0,
    upgrade: Annotated[
        bool,
        typer.Option(
            "--upgrade", help="Convert a ledger of version 1 to the current version first."
        ),
    ] = False,
    witness: WitnessFile = None,
    as_json: AsJson = False,
) -> None:
    """Show what was spent on which release, and what is left."""
    from steadytree.privacy.old_ledger import upgrade_ledger

    if path is None:  # the lower bound of typer does not ask for it below a default command
        raise ValueError("FILE is missing: name the ledger, as in the examples of --help.")
    if not path.exists():
        raise ValueError(f"{path}: no such ledger.")
    if upgrade:
        upgrade_ledger(path, budget, delta)
    account = st.Ledger(path, budget, delta, witness)
    entries = [
        {"epsilon": str(one.epsilon), "what": one.what, "mechanism": one.mechanism}
        | ({"rho": str(one.rho)} if one.rho else {})
        for one in account.entries
    ]
    costs = [f"rho {one.rho:g}" if one.rho else f"{one.epsilon:g}" for one in account.entries]
    lines = [
        f"{cost:>12} {one.what} ({one.mechanism or 'unknown'})"
        for cost, one in zip(costs, account.entries, strict=True)
    ]
    lines.append(f"spent {account.spent:g}, left {account.left:g} of {account.budget:g}")
    sums = {"budget": account.budget, "spent": account.spent, "left": account.left}
    show({**sums, "entries": entries}, lines, as_json)


@ledger_app.command()
def verify(
    path: Annotated[Reads, typer.Argument(metavar="FILE", help="A ledger, beside its mark.")],
    receipts: Annotated[
        MayRead, option("FILE", "Receipts of a coordinator; by default those beside the ledger.")
    ] = None,
    coordinator_key: Annotated[
        MayRead, option("FILE", "coordinator.sign.pub, to check the signatures of receipts.")
    ] = None,
    checkpoint: Annotated[
        MayRead, option("FILE", "The coordinator's checkpoint, with the heads that it saw.")
    ] = None,
    holder: Annotated[
        str | None, option("NAME", "The holder in the checkpoint; by default that of the receipts.")
    ] = None,
    witness: Annotated[MayRead, option("FILE", "The ledger's witness.")] = None,
    as_json: AsJson = False,
) -> None:
    """Verify a ledger as a third party.

    Nothing is written, and the budget need not be known.

    It checks the hashes and numbers of all lines and the mark, that no more than the budget was
    spent, and that the ledger continues every head that a coordinator or a witness has recorded.
    Exit code 2 if a check fails.
    """
    from steadytree.federated.receipts import verify_ledger

    known = verify_ledger(path, receipts, coordinator_key, checkpoint, holder, witness)
    lines = [
        f"whole: {known['lines']} lines, numbered and chained, the last as in the mark",
        f"spent {known['spent']:g} of {known['budget']:g}",
        f"head {known['head']}",
    ]
    signed = "signed" if coordinator_key is not None else "signatures not checked"
    lines.append(f"receipts of coordinators: {known['receipts']} ({signed})")
    for name in ("checkpoint", "witness"):
        if known[name] is not None:
            lines.append(f"a continuation of line {known[name]} in the {name}")
    show(known, lines, as_json)


app.add_typer(ledger_app, name="ledger", epilog=LEDGER_EXAMPLES)
app.add_typer(private_holder.app, name="holder", epilog=private_holder.EXAMPLES)


def names_with(data: Path, target: str) -> list[str]:
    """Names of a file's columns, of which the target must be one."""
    from steadytree.data.readers import column_names

    names = column_names(data)
    if target not in names:
        raise ValueError(f"--target {target!r} is not a column of the data.")
    return names


def read_rows(
    data: Path, declared: st.Schema, target: str, persons: str | None = None
) -> tuple[Table, Any, Any]:
    """Rows, labels and persons of a file, each value read on its own as the schema declares it."""
    from steadytree.data.readers import read_cells

    listed = [*declared.classes, *(text for known in declared.space.categories for text in known)]
    as_they_stand = {str(value) for value in listed}
    others = [target] if persons is None else [target, persons]
    table = read_cells(data, list(dict.fromkeys([*declared.names, *others])), as_they_stand)
    y, *whose = (table.select([name]).columns[0] for name in others)
    return table.select(declared.names), y, whose[0] if whose else None
