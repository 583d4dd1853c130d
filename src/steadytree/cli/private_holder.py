"""The commands `steadytree private holder serve | status`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steadytree._base.files import Place
from steadytree.cli.options import AsJson, Budget, LedgerFile, NewLedger, SchemaFile, check_ledger
from steadytree.cli.output import echo_json
from steadytree.cli.paths import CONNECTS, READS, WRITES, App, Does

if TYPE_CHECKING:
    from steadytree.federated.gateway import Terms
    from steadytree.federated.holder import Holder

EXAMPLES = """\b
Examples:
  steadytree private holder serve --data rows.parquet --target outcome --schema s.toml \\
      --ledger spent.db --new-ledger --budget 1.0 --name north --socket north.sock \\
      --study heart-2026=1.0 --coordinator-key keys/coordinator.sign.pub
  steadytree private holder status --socket north.sock"""

app = App(
    help="Keep rows, noise and ledger in a daemon of your own.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Rows = Annotated[Path, typer.Option("--data", metavar="FILE", help="A csv or parquet file."), READS]
Target = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="The column to predict; the one not in the schema."),
]
Name = Annotated[str, typer.Option(help="What the plan calls this holder.")]
Seed = Annotated[
    int | None, typer.Option(hidden=True, help="FOR TESTS ONLY: seeded noise, NOT PRIVATE.")
]


def store_of(ledger: Path) -> Path:
    """The folder of answers that a gateway keeps beside its ledger."""
    return ledger.with_name(ledger.name + ".answers")


def _socket_of(socket: Path | None, ledger: Path) -> Path:
    return socket or ledger.with_name(ledger.name + ".sock")


def _kept_beside(values: dict[str, Any]) -> list[Place]:
    """What a gateway writes beside its ledger."""
    found = [Place(store_of(values["ledger"]), "fill", "the store of --ledger")]
    if values["socket"] is None:
        found.append(Place(_socket_of(None, values["ledger"]), "write", "the socket of --ledger"))
    return found


@app.command(epilog=EXAMPLES)
def serve(
    data: Rows,
    schema: SchemaFile,
    ledger: LedgerFile,
    budget: Budget,
    name: Name = "holder",
    target: Target = None,
    socket: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The socket; by default LEDGER.sock."),
        Does("write", _kept_beside),
    ] = None,
    group: Annotated[
        str | None, typer.Option(help="A group that may open the socket too (0660, not 0600).")
    ] = None,
    pace: Annotated[
        float, typer.Option(help="Replies leave on a grid of so many seconds.", min=0, max=60)
    ] = 0.25,
    study: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=EPSILON", help="Answer this study only, up to its epsilon."),
    ] = None,
    coordinator_key: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Believe letters signed with coordinator.sign.pub only."),
        READS,
    ] = None,
    least_epsilon: Annotated[
        float, typer.Option(help="Refuse questions for less than this.", min=0)
    ] = 1e-3,
    new_ledger: NewLedger = False,
    log: Annotated[
        Path | None, typer.Option(metavar="FILE", help="By default standard error."), WRITES
    ] = None,
    testing_seed: Seed = None,
) -> None:
    """Answer well-formed questions over a local socket until stopped (SIGTERM, Ctrl-C)."""
    import logging
    import signal

    from steadytree.federated.gateway_server import GatewayServer

    form = "%(asctime)s %(levelname)s %(message)s"
    logging.basicConfig(filename=log, level=logging.INFO, format=form)
    check_ledger(ledger, new_ledger)
    terms = read_terms(name, study, least_epsilon, coordinator_key)
    holder = load_holder(name, data, target, schema, (ledger, budget), testing_seed)
    gateway, store = open_gateway(holder, ledger, pace, terms)
    try:
        server = GatewayServer(gateway, _socket_of(socket, ledger), group)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: server.stop())
        if not holder.private:
            typer.echo("NOT PRIVATE: the noise comes from a testing seed.", err=True)
        typer.echo(f"serving {holder.name} at {server.path}, left {holder.ledger.left:g}")
        server.serve()
    finally:
        store.close()
    typer.echo(f"stopped {holder.name}")


@app.command()
def status(
    socket: Annotated[Path, typer.Option(metavar="FILE", help="The gateway's socket."), CONNECTS],
    as_json: AsJson = False,
) -> None:
    """Show what a serving gateway has spent and what is left."""
    from steadytree.federated.flower.supernode import ASKING
    from steadytree.federated.framing import VERSION, carry, read, write

    try:
        reply = carry(str(socket), write({"version": VERSION, "type": "status"}), ASKING)
    except OSError:
        raise ValueError(f"no gateway serves at {str(socket)!r}: start it first.") from None
    known = read(reply)
    if known.get("ok") is not True:
        raise ValueError(f"the gateway refused: {known.get('code')}.")
    if as_json:
        named = ("holder", "private", "spent", "left", "budget", "answers")
        echo_json({name: known[name] for name in named})
        return
    note = "" if known["private"] else ", NOT PRIVATE (testing seed)"
    typer.echo(f"holder {known['holder']}{note}")
    typer.echo(f"spent {known['spent']:g}, left {known['left']:g} of {known['budget']:g}")
    typer.echo(f"answered {known['answers']} questions")


@app.command()
def join(
    keys: Annotated[Path, typer.Option(metavar="FOLDER", help="This holder's keys."), READS],
    superlink: Annotated[str, typer.Option(metavar="HOST:PORT", help="The coordinator.")],
    socket: Annotated[Path, typer.Option(metavar="FILE", help="The gateway's socket."), CONNECTS],
    port: Annotated[int, typer.Option(help="A local port for Flower; 0 takes a free one.")] = 0,
    same_user: Annotated[
        bool, typer.Option("--same-user", help="FOR TRIALS: join as the user who has the rows.")
    ] = False,
) -> None:
    """Connect a gateway to a coordinator over Flower, again and again until stopped."""
    import logging

    from steadytree.federated.flower.supernode import SuperNode, check_gateway

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    node = SuperNode(keys, superlink, socket, port)
    check_gateway(socket, same_user)
    node.stop_on_signals()
    typer.echo(f"joining {superlink}")
    node.run()
    typer.echo("left")


def read_terms(
    name: str, studies: list[str] | None, least_epsilon: float, key: Path | None
) -> Terms:
    """What the options of `serve` say that a holder agreed to."""
    from steadytree.federated.framing import unsigned
    from steadytree.federated.gateway import Terms
    from steadytree.federated.signed_files import letter_opener
    from steadytree.privacy.ledger_lines import decimal_of

    agreed = {}
    for each in studies or ():
        study, _, epsilon = each.rpartition("=")
        try:
            agreed[study] = decimal_of(float(epsilon), "epsilon")
        except ValueError:
            study = ""
        if not study:
            raise ValueError(f"--study must be NAME=EPSILON, got {each!r}.")
    opener = unsigned if key is None else letter_opener(key, name)
    return Terms(agreed or None, least_epsilon, opener)


def load_holder(
    name: str,
    data: Path,
    target: str | None,
    schema: Path,
    account: tuple[Path, float],
    testing_seed: int | None = None,
) -> Holder:
    """The holder of a file of rows; the target is the one column that is not in the schema."""
    from steadytree.cli.private import read_rows
    from steadytree.data.readers import column_names
    from steadytree.data.schema import Schema
    from steadytree.federated.holder import Holder
    from steadytree.privacy.ledger import Ledger

    declared = Schema.load(schema)
    names = column_names(data)
    if target is None:
        others = [each for each in names if each not in declared.names]
        if len(others) != 1:
            raise ValueError(
                f"the data have {len(others)} columns that are not in the schema: name the one "
                "to predict with --target."
            )
        target = others[0]
    if target not in names:
        raise ValueError(f"--target {target!r} is no column of the data.")
    X, y = read_rows(data, declared, target)
    return Holder(name, declared, X, y, Ledger(*account), testing_seed=testing_seed)


def open_gateway(holder: Holder, ledger: Path, pace: float, terms: Terms | None = None) -> tuple:
    """The gateway of a holder and its store of answers, in a folder beside the ledger."""
    from steadytree.federated.gateway import AnswerStore, Gateway
    from steadytree.federated.holder import schema_digest

    store = AnswerStore(store_of(ledger), holder.name, schema_digest(holder.schema))
    try:
        return Gateway(holder, store, pace, terms), store
    except ValueError:
        store.close()
        raise
