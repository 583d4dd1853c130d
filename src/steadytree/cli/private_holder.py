"""The commands `steadytree private holder serve | status | join`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import steadytree as st
from steadytree._base.files import UsedPath
from steadytree.cli import options
from steadytree.cli.options import READS, Does, GatewaySocket, MayRead, MayWrite, Reads, option
from steadytree.cli.output import show

if TYPE_CHECKING:
    from steadytree.federated.gateway import Terms

BLOCKWISE = ("delegate", "duel", "vote")  # methods that grow trees block by block
LEVELS = 16  # of their trees
LOG_LINE = "%(asctime)s %(levelname)s %(message)s"
EXAMPLES = """\b
Examples:
  steadytree private holder serve --data rows.parquet --target outcome --schema s.toml \\
      --ledger spent.db --new-ledger --budget 1.0 --name north --socket north.sock \\
      --study heart-2026=1.0 --coordinator-key keys/coordinator.sign.pub
  steadytree private holder status --socket north.sock"""

app = options.App(
    help="Keep rows, noise and ledger in a daemon at the holder.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


def store_of(ledger: Path) -> Path:
    """The folder of answers that a gateway keeps beside its ledger."""
    return ledger.with_name(ledger.name + ".answers")


def _socket_of(socket: Path | None, ledger: Path) -> Path:
    return socket or ledger.with_name(ledger.name + ".sock")


def _kept_beside(values: dict[str, Any]) -> list[UsedPath]:
    """What a gateway writes beside its ledger."""
    found = [UsedPath(store_of(values["ledger"]), "fill", "the store of --ledger")]
    if values["socket"] is None:
        found.append(
            UsedPath(_socket_of(None, values["ledger"]), "write", "the socket of --ledger")
        )
    return found


@app.command(epilog=EXAMPLES)
def serve(
    data: Annotated[Reads, option("FILE", "A csv or parquet file.")],
    schema: options.SchemaFile,
    ledger: options.LedgerFile,
    budget: options.Budget,
    name: Annotated[str, typer.Option(help="This holder's name in the plan.")] = "holder",
    target: Annotated[
        str | None, option("COLUMN", "The column to predict; the one not in the schema.")
    ] = None,
    socket: Annotated[
        Path | None,
        option("FILE", "The socket; by default LEDGER.sock."),
        Does("write", _kept_beside),
    ] = None,
    group: Annotated[
        str | None, typer.Option(help="A group that may open the socket too (mode 0660, not 0600).")
    ] = None,
    pace: Annotated[
        float, typer.Option(help="Send replies at multiples of so many seconds.", min=0, max=60)
    ] = 0.25,
    study: Annotated[
        list[str] | None, option("NAME=EPSILON", "Answer only this study, up to this epsilon.")
    ] = None,
    plan: Annotated[
        list[Path] | None,
        option("FILE", "Answer this plan only: its study, epsilon, bins and depth; repeatable."),
        READS,
    ] = None,
    coordinator_key: Annotated[
        MayRead, option("FILE", "Accept only messages signed with coordinator.sign.pub.")
    ] = None,
    least_epsilon: Annotated[
        float, typer.Option(help="Refuse requests that cost less than this.", min=0)
    ] = 1e-3,
    most_rows: Annotated[
        int | None,
        typer.Option(
            help="A public upper bound of the number of rows, which determines reply times.", min=1
        ),
    ] = None,
    persons: options.Persons = None,
    rows_per_person: options.RowsPerPerson = None,
    new_ledger: options.NewLedger = False,
    delta: Annotated[
        float, option("<float>", "Total delta that may ever be spent on the data.")
    ] = 0.0,
    sum_keys: Annotated[
        MayRead, option("FOLDER", "This holder's keys: take part in secure sums.")
    ] = None,
    witness: options.WitnessFile = None,
    log: Annotated[MayWrite, option("FILE", "The log; by default standard error.")] = None,
    testing_seed: Annotated[
        int | None, typer.Option(hidden=True, help="FOR TESTS ONLY: seeded noise, NOT PRIVATE.")
    ] = None,
) -> None:
    """Answer requests over a local socket until stopped.

    SIGTERM and Ctrl-C stop it.
    """
    import logging
    import signal

    from steadytree.federated.masking import SumKeys
    from steadytree.federated.transport import GatewayServer

    logging.basicConfig(filename=log, level=logging.INFO, format=LOG_LINE)
    options.check_ledger(ledger, new_ledger)
    terms = read_terms(name, study, plan, least_epsilon, coordinator_key)
    account = (ledger, budget, delta, witness)
    more = (testing_seed, (persons, rows_per_person), most_rows)
    holder = load_holder(name, data, target, schema, account, *more)
    if sum_keys is not None:
        holder.sums.keys = SumKeys.load(sum_keys, name)
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
def status(socket: GatewaySocket, as_json: options.AsJson = False) -> None:
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
    named = ("holder", "private", "spent", "left", "budget", "answers")
    note = "" if known["private"] else ", NOT PRIVATE (testing seed)"
    lines = [
        f"holder {known['holder']}{note}",
        f"spent {known['spent']:g}, left {known['left']:g} of {known['budget']:g}",
        f"answered {known['answers']} requests",
    ]
    show({name: known[name] for name in named}, lines, as_json)


@app.command()
def join(
    keys: Annotated[Reads, option("FOLDER", "The relay's keys, such as keys/north/relay.")],
    superlink: Annotated[str, option("HOST:PORT", "The coordinator.")],
    socket: GatewaySocket,
    port: Annotated[int, typer.Option(help="A local port for Flower; 0 takes a free one.")] = 0,
    same_user: Annotated[
        bool, typer.Option("--same-user", help="FOR TRIALS: join as the user who owns the rows.")
    ] = False,
) -> None:
    """Connect a gateway to a coordinator over Flower.

    It reconnects until it is stopped.
    """
    import logging

    from steadytree.federated.flower.supernode import SuperNode, check_gateway

    logging.basicConfig(level=logging.INFO, format=LOG_LINE)
    node = SuperNode(keys, superlink, socket, port)
    check_gateway(socket, same_user)
    node.stop_on_signals()
    typer.echo(f"joining {superlink}")
    node.run()
    typer.echo("left")


def read_terms(
    name: str,
    studies: list[str] | None,
    plans: list[Path] | None,
    least_epsilon: float,
    key: Path | None,
) -> Terms:
    """The terms that the options of `serve` state."""
    from steadytree.federated.coordinator import bins_of
    from steadytree.federated.framing import unsigned
    from steadytree.federated.gateway import DEEPEST, Plan, Terms
    from steadytree.federated.signed_files import message_opener
    from steadytree.federated.study import StudyConfig
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
    known = {}
    for path in plans or ():
        config = StudyConfig.load(path)
        agreed[config.study] = decimal_of(config.epsilon, "epsilon")
        n_bins = bins_of(config.method, config.schema, config.n_bins)
        levels = config.limits.max_depth or (LEVELS if config.method in BLOCKWISE else DEEPEST)
        known[config.study] = Plan(n_bins, levels)
    opener = unsigned if key is None else message_opener(key, name)
    return Terms(agreed or None, known, least_epsilon, opener)


def load_holder(
    name: str,
    data: Path,
    target: str | None,
    schema: Path,
    account: tuple[Any, ...],
    testing_seed: int | None = None,
    protected: tuple[str | None, int | None] = (None, None),  # column of persons, rows of each
    most_rows: int | None = None,
) -> st.Holder:
    """The holder of a file of rows; the target is the one column that is not in the schema."""
    from steadytree.cli.private import names_with, read_rows
    from steadytree.data.readers import column_names

    declared = st.Schema.load(schema)
    if target is None:
        known = {*declared.names, protected[0]}
        others = [each for each in column_names(data) if each not in known]
        if len(others) != 1:
            raise ValueError(
                f"the data have {len(others)} columns that are not in the schema: name the one "
                "to predict with --target."
            )
        target = others[0]
    names_with(data, target)
    X, y, whose = read_rows(data, declared, target, protected[0])
    more: dict[str, Any] = {"most_rows": most_rows, "testing_seed": testing_seed}
    more |= {"persons": whose, "rows_per_person": protected[1]}
    return st.Holder(name, declared, X, y, st.Ledger(*account), **more)


def open_gateway(holder: st.Holder, ledger: Path, pace: float, terms: Terms | None = None) -> tuple:
    """The gateway of a holder and its store of answers, in a folder beside the ledger."""
    from steadytree.federated.answer_store import AnswerStore
    from steadytree.federated.gateway import Gateway
    from steadytree.federated.holder import schema_digest

    store = AnswerStore(store_of(ledger), holder.name, schema_digest(holder.schema))
    try:
        return Gateway(holder, store, pace, terms), store
    except ValueError:
        store.close()
        raise
