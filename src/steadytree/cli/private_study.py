"""The commands `steadytree private keys | coordinate | ask | answer | merge`."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import steadytree as st
from steadytree._base.files import UsedPath, check_can_fill, check_can_write
from steadytree.cli import options
from steadytree.cli.options import FILLS, READS, AsJson, Does, MayFill, MayRead, PlanFile, option
from steadytree.cli.output import LIMIT_EXCEEDED, show, stop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from steadytree.federated.flower.superlink import SuperLink
    from steadytree.federated.study import StudyConfig


def _answer_and_store(values: dict[str, Any]) -> list[UsedPath]:
    """Files that an answer writes and no option names."""
    from steadytree.cli.private_holder import store_of
    from steadytree.federated.signed_files import answer_path

    found = [UsedPath(answer_path(values["question"]), "write", "the answer to QUESTION")]
    if values["ledger"] is not None:
        found.append(UsedPath(store_of(values["ledger"]), "fill", "the store of --ledger"))
    return found


def ask(
    plan: PlanFile,
    out: Annotated[Path, option("FOLDER", "Where to write the requests."), FILLS] = Path(
        "questions"
    ),
    as_json: AsJson = False,
) -> None:
    """Write the next signed, numbered request to each holder."""
    from steadytree.federated.checkpoint import Checkpoint
    from steadytree.federated.coordinator import learn
    from steadytree.federated.signed_files import FileHolders, Waiting, write_requests
    from steadytree.federated.study import StudyConfig

    study = StudyConfig.load(plan)
    check_can_fill(out)
    check_can_write(study.checkpoint)
    checkpoint = Checkpoint(study.checkpoint, study.digest)
    try:
        learn(study, FileHolders(study), checkpoint)
    except Waiting as waiting:
        written = write_requests(study, waiting.requests, out, checkpoint.heads)
        show({"finished": False}, [], as_json, written)
        return
    done = {"finished": True, "tree": str(study.out)}
    show(done, [f"nothing is left to ask: {study.out} is the tree"], as_json, [])


def answer(
    question: Annotated[
        Path,
        typer.Argument(metavar="QUESTION", help="A request file."),
        Does("read", _answer_and_store),
    ],
    keys: options.HolderKeys,
    socket: Annotated[
        Path | None,
        option("FILE", "Socket of a serving gateway; or the options below."),
        options.CONNECTS,
    ] = None,
    data: Annotated[MayRead, option("FILE", "The rows.")] = None,
    target: options.OptionalTarget = None,
    schema: Annotated[MayRead, option("FILE", "The completed schema (TOML).")] = None,
    ledger: options.OptionalLedger = None,
    budget: Annotated[
        float | None, typer.Option(help="Total epsilon that may ever be spent on the data.")
    ] = None,
    new_ledger: options.NewLedger = False,
    witness: options.WitnessFile = None,
    name: Annotated[
        str | None, typer.Option(help="This holder; by default the name of its folder of keys.")
    ] = None,
    persons: options.Persons = None,
    rows_per_person: options.RowsPerPerson = None,
    as_json: AsJson = False,
    testing_seed: Annotated[int | None, typer.Option(hidden=True)] = None,
) -> None:
    """Check a request and write its signed answer.

    Exit code 3 if the budget is spent.
    """
    from steadytree.federated.signed_files import answer_path, read_request_file, write_answer_file

    content = read_request_file(question, keys)
    check_can_write(answer_path(question))
    needed = (data, schema, ledger, budget)
    if (socket is None) == any(each is None for each in needed):
        raise ValueError("name --socket, or --data, --schema, --ledger and --budget.")
    if ledger is not None:
        options.check_ledger(ledger, new_ledger)
    elif new_ledger:
        raise ValueError("--new-ledger belongs to --ledger: a serving gateway has one.")
    own = name or keys.resolve().name
    if content["holder"] != own:
        raise ValueError(f"the request is for {content['holder']!r}, this is {own!r}.")
    protected = (persons, rows_per_person)
    if socket is not None and any(protected):
        raise ValueError("--persons belongs to --data: a serving gateway has its own.")
    rows = (own, data, target, schema, (ledger, budget, 0.0, witness), testing_seed, protected)
    with _door(socket, rows, content) as ask:
        known = _check_hello(ask, content)
        reply = _ask(ask, content)
    path = write_answer_file(question, content, reply, bool(known["private"]), keys)
    so_far, announced = known["spent"] + content["epsilon"], content["epsilon of the study"]
    request = {"study": content["study"], "question": content["number"]}
    cost = {"epsilon": content["epsilon"], "spent": so_far, "epsilon of the study": announced}
    lines = [
        f"request {content['number']} of {content['study']}: {content['asks for']}",
        f"spent epsilon {content['epsilon']:.4g}, once, however often it is answered",
        f"spent on the study so far: {so_far:.4g} of {announced:.4g}",
    ]
    show(request | cost, lines, as_json, [path])


def merge(
    plan: PlanFile,
    answers: Annotated[
        list[Path], typer.Argument(metavar="ANSWER...", help="Answer files."), READS
    ],
    without: Annotated[list[str] | None, option("NAME", "Continue without this holder.")] = None,
    as_json: AsJson = False,
) -> None:
    """Check the answers of one round and continue.

    After the last round the tree is written.
    """
    from steadytree.federated.checkpoint import Checkpoint
    from steadytree.federated.coordinator import finish, learn
    from steadytree.federated.receipts import Receipts
    from steadytree.federated.signed_files import FileHolders, Waiting
    from steadytree.federated.study import StudyConfig

    study = StudyConfig.load(plan)
    for path in (study.out, study.checkpoint, study.facts):
        check_can_write(path)
    checkpoint = Checkpoint(study.checkpoint, study.digest)
    try:
        receipts = Receipts(study.study, checkpoint.heads)
        done = learn(study, FileHolders(study, answers, without or (), receipts), checkpoint)
    except Waiting:
        line = f"merged: requests answered so far: {checkpoint.n_rounds}; now ask the next"
        show({"finished": False, "answered": checkpoint.n_rounds}, [line], as_json, [])
        return
    finish(study, done)
    finished = {"finished": True, "answered": checkpoint.n_rounds, **done.privacy.to_dict()}
    show(finished, [done.privacy.guarantee], as_json, [study.out])


@contextmanager
def _door(
    socket: Path | None, rows: tuple[Any, ...], content: dict[str, Any]
) -> Iterator[Callable[[bytes], bytes]]:
    """Messages to a serving gateway, or to one that lives as long as the command."""
    if socket is not None:
        from steadytree.federated.framing import carry

        def through(message: bytes) -> bytes:
            try:
                return carry(str(socket), message, 600.0)
            except OSError:
                raise ValueError(f"no gateway serves at {str(socket)!r}: start it.") from None

        yield through
        return
    from steadytree.cli.private_holder import load_holder, open_gateway
    from steadytree.federated.gateway import Terms
    from steadytree.privacy.ledger_lines import decimal_of

    # what the file says the study costs is all that it may cost
    agreed = decimal_of(content["epsilon of the study"], "epsilon of the study")
    terms = Terms({content["study"]: agreed})
    gateway, store = open_gateway(load_holder(*rows), rows[4][0], 0.0, terms)
    try:
        yield gateway.reply
    finally:
        store.close()


def _check_hello(ask: Callable[[bytes], bytes], content: dict[str, Any]) -> dict[str, Any]:
    """The gateway's handshake; refuses a request that exceeds what its file announces."""
    from steadytree.data.schema import from_dict
    from steadytree.federated.framing import read
    from steadytree.federated.signed_files import sealed
    from steadytree.federated.study import schema_difference

    known = read(ask(sealed(content, "hello")))
    if known.get("ok") is not True:
        raise ValueError(f"the gateway refused: {known.get('code')}. Nothing was spent.")
    if known["holder"] != content["holder"]:
        raise ValueError(
            f"the request is for {content['holder']!r}, the gateway is of {known['holder']!r}. "
            "Nothing was spent."
        )
    requested = st.Schema(**from_dict(content["schema"], "the request"))
    differs = schema_difference(requested, known["schema"])
    if differs:
        raise ValueError(f"the schemas differ: {differs} Nothing was spent.")
    if not known["enough"]:
        stop("refused: less is left than the study's epsilon. Nothing was spent.")
    announced = content["epsilon of the study"]
    if known["spent"] + content["epsilon"] > announced * (1 + 1e-9):
        stop(
            f"refused: with this request the study would cost more than the {announced:g} that it "
            "announces. Nothing was spent."
        )
    return known


def _ask(ask: Callable[[bytes], bytes], content: dict[str, Any]) -> bytes:
    from steadytree.federated.framing import Refusal, read, refusal_in
    from steadytree.federated.signed_files import sealed

    reply = ask(sealed(content, "letter"))
    code = refusal_in(read(reply))
    if code is None:
        return reply
    stop(f"refused: {code.meaning}.", LIMIT_EXCEEDED if code == Refusal.BUDGET else 2)


LOOKING = 30.0  # seconds between calls of Flower's, each of which takes seconds


def keys(
    plan: Annotated[
        MayRead, typer.Argument(metavar="PLAN", help="Make the keys of all holders of a plan.")
    ] = None,
    holder: Annotated[
        str | None, option("NAME", "Make the keys of one holder (run by that holder)."), FILLS
    ] = None,
    host: Annotated[
        list[str] | None,
        typer.Option(help="Another host name of the coordinator; may be repeated."),
    ] = None,
    renew: Annotated[
        bool, typer.Option("--renew", help="Only a new certificate of the coordinator.")
    ] = False,
    revoke: Annotated[
        str | None, option("NAME", "Revoke a holder's keys (run by the coordinator).")
    ] = None,
    encrypt: Annotated[
        bool,
        typer.Option("--encrypt", help="Encrypt keys that sign with $STEADYTREE_PASSPHRASE."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Create, renew or revoke certificates and keys.

    For all holders of a plan, or for one.
    """
    from steadytree.federated import keys as made
    from steadytree.federated.study import StudyConfig

    if (plan is None) == (holder is None):
        raise ValueError("name a plan, or --holder and no plan.")
    secret = made.passphrase() if encrypt else None
    if encrypt and secret is None:
        raise ValueError(f"--encrypt needs a passphrase: set {made.PASSPHRASE}.")
    if plan is None:
        folders = [Path(str(holder))]
        made.make_holder_keys(folders[0], secret)
        advice = "Send relay/node.pub and sign.pub to the coordinator, no more."
    else:
        study = StudyConfig.load(plan)
        own = study.superlink.rpartition(":")[0].strip("[]")
        hosts = list(dict.fromkeys([own, *(host or []), "localhost", "127.0.0.1"]))
        if renew or revoke is not None:
            folder = study.keys / "coordinator"
            done = made.revoke_holder(folder, revoke) if revoke is not None else []
            if renew:
                made.renew_certificate(folder, hosts)
                done.append(folder / "server.pem")
            show({}, [], as_json, done)
            return
        folders = made.make_study_keys(study.keys, study.holders, hosts, secret)
        advice = "Hand each holder its own folder by a safe way, and delete it here afterwards."
    show({}, [], as_json, folders)
    if not as_json:
        typer.echo(advice)


def coordinate(
    plan: PlanFile,
    logs: Annotated[MayFill, option("FOLDER", "Keep the files and logs of Flower here.")] = None,
    as_json: AsJson = False,
) -> None:
    """Run a study over Flower, or resume it.

    Exit code 3 if the budget is spent.
    """
    import signal
    import tempfile

    from steadytree.federated.checkpoint import Checkpoint
    from steadytree.federated.flower.superlink import SuperLink, check_ready
    from steadytree.federated.study import StudyConfig

    study = StudyConfig.load(plan)
    check_ready(study)
    for path in (study.out, study.checkpoint, study.facts):
        check_can_write(path)
    done = Checkpoint(study.checkpoint, study.digest).n_rounds
    if done:
        typer.echo(f"resuming after round {done}", err=as_json)
    with tempfile.TemporaryDirectory() as scratch:
        folder = logs or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        study.facts.unlink(missing_ok=True)
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends the child processes too
        with SuperLink(study, plan, folder.resolve()) as link:
            nodes = link.register()
            typer.echo(f"waiting for {', '.join(study.holders)} at {study.superlink}", err=as_json)
            facts = _wait(study, link, link.run(nodes))
    show(facts, _lines(facts), as_json, [study.out] if facts["ok"] else [])
    if not facts["ok"]:
        stop(f"error: {facts['reason']}", facts["exit"])


def _wait(study: StudyConfig, link: SuperLink, run: str) -> dict[str, Any]:
    """The result of the study, from the file that it writes at its end."""
    import json

    from steadytree._base.clock import CLOCK, Limit

    looked = Limit(LOOKING)
    while not study.facts.exists():
        if not link.is_alive:
            raise OSError("the SuperLink ended: run the same command again, nothing is lost.")
        if looked.left == 0:
            looked = Limit(LOOKING)
            if link.status(run).startswith("finished") and not study.facts.exists():
                raise OSError("the study was stopped: run the same command again to go on.")
        CLOCK.sleep(0.2)
    facts: dict[str, Any] = json.loads(study.facts.read_text(encoding="utf-8"))
    return facts


def _lines(facts: dict[str, Any]) -> Iterator[str]:
    if facts["ok"]:
        yield facts["privacy"]["guarantee"]
        yield f"rounds {facts['rounds']}, of which {facts['resumed']} from the checkpoint"
        yield f"seconds {sum(facts['seconds']):.1f}, asked again {facts['asked_again']}"
        yield f"bytes to holders {facts['bytes_out']}, from holders {facts['bytes_in']}"
        for name, amount in facts["epsilons"].items():
            note = ", went away" if name in facts["gone"] else ""
            yield f"  epsilon {amount:.4g} of {name}{note}"
