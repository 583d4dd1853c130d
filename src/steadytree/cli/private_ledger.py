"""The commands `steadytree private ledger FILE` and `steadytree private ledger verify FILE`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import steadytree as st
from steadytree.cli import options
from steadytree.cli.options import CHANGES, AsJson, Budget, MayRead, Reads, WitnessFile, option
from steadytree.cli.output import show

EXAMPLES = """\b
Examples:
  steadytree private ledger patients.ledger --budget 2
  steadytree private ledger verify patients.ledger --coordinator-key coordinator.sign.pub"""


class _ShowsByDefault(TyperGroup):
    """`ledger FILE` without the name of a command shows the file."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] != "--help":
            args = ["show", *args]
        return super().parse_args(ctx, args)


app = options.App(
    help="Show what was spent on which release, or verify a ledger; by default show.",
    cls=_ShowsByDefault,
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command(name="show")
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
    from steadytree.privacy.ledger import upgrade_ledger

    if not path.exists():
        raise ValueError(f"{path}: no such ledger.")
    if upgrade:
        upgrade_ledger(path, budget, delta)
    account = st.Ledger(path, budget, delta, witness)
    entries = [
        {"epsilon": str(one.epsilon), "what": one.what, "mechanism": one.mechanism}
        for one in account.entries
    ]
    lines = [
        f"{float(one.epsilon):>12g} {one.what} ({one.mechanism or 'unknown'})"
        for one in account.entries
    ]
    lines.append(f"spent {account.spent:g}, left {account.left:g} of {account.budget:g}")
    sums = {"budget": account.budget, "spent": account.spent, "left": account.left}
    show({**sums, "entries": entries}, lines, as_json)


@app.command()
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
    """Verify a ledger as a third party: nothing is written, no budget need be known.

    Hashes, numbers and mark; that no more was spent than the budget; and that the ledger is a
    continuation of every head that a coordinator or a witness has noted. Exit 2 if it is not.
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
