"""The commands `steadytree private keys | coordinate | ask | answer | merge`."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import steadytree as st
from steadytree._base.files import UsedPath, check_can_fill, check_can_write
from steadytree.cli.options import (
    CHANGES,
    CONNECTS,
    FILLS,
    LIMIT_EXCEEDED,
    READS,
    AsJson,
    Does,
    HolderKeys,
    NewLedger,
    PlanFile,
    check_ledger,
)
from steadytree.cli.output import echo_json, names_of, say_written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

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
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Where to write the requests."), FILLS
    ] = Path("questions"),
    as_json: AsJson = False,
) -> None:
    """Write the next signed, numbered request to each holder."""
    from steadytree.federated.coordinator import learn
    from steadytree.federated.signed_files import FileHolders, Waiting, write_requests
    from steadytree.federated.study import Checkpoint, StudyConfig

    study = StudyConfig.load(plan)
    check_can_fill(out)
    check_can_write(study.checkpoint)
    checkpoint = Checkpoint(study.checkpoint, study.digest)
    try:
        learn(study, FileHolders(study), checkpoint)
    except Waiting as waiting:
        written = list(write_requests(study, waiting.requests, out))
        if as_json:
            echo_json({"finished": False, "written": names_of(written)})
        else:
            say_written(*written)
        return
    if as_json:
        echo_json({"finished": True, "tree": str(study.out), "written": []})
    else:
        typer.echo(f"nothing is left to ask: {study.out} is the tree")


def answer(
    question: Annotated[
        Path,
        typer.Argument(metavar="QUESTION", help="A request file."),
        Does("read", _answer_and_store),
    ],
    keys: HolderKeys,
    socket: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Socket of a serving gateway; or the options below."),
        CONNECTS,
    ] = None,
    data: Annotated[Path | None, typer.Option(metavar="FILE", help="The rows."), READS] = None,
    target: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column to predict.")
    ] = None,
    schema: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The completed schema (TOML)."), READS
    ] = None,
    ledger: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The privacy ledger of the data."), CHANGES
    ] = None,
    budget: Annotated[
        float | None, typer.Option(help="Total epsilon that may ever be spent on the data.")
    ] = None,
    new_ledger: NewLedger = False,
    name: Annotated[
        str | None, typer.Option(help="This holder; by default the name of its folder of keys.")
    ] = None,
    as_json: AsJson = False,
    testing_seed: Annotated[int | None, typer.Option(hidden=True)] = None,
) -> None:
    """Check a request and write its signed answer; exit 3 if the budget is spent."""
    from steadytree.federated.signed_files import answer_path, read_request_file, write_answer_file

    content = read_request_file(question, keys)
    check_can_write(answer_path(question))
    rows = (data, schema, ledger, budget)
    if (socket is None) == any(each is None for each in rows):
        raise ValueError("name --socket, or --data, --schema, --ledger and --budget.")
    if ledger is not None:
        check_ledger(ledger, new_ledger)
    elif new_ledger:
        raise ValueError("--new-ledger belongs to --ledger: a serving gateway has one.")
    own = name or keys.resolve().name
    if content["holder"] != own:
        raise ValueError(f"the question is for {content['holder']!r}, this is {own!r}.")
    whose = (own, data, target, schema, (ledger, budget), testing_seed)
    with _door(socket, whose, content) as ask:
        known = _check_hello(ask, content)
        reply = _ask(ask, content)
    path = write_answer_file(question, content, reply, bool(known["private"]), keys)
    so_far, announced = known["spent"] + content["epsilon"], content["epsilon of the study"]
    if as_json:
        request = {"study": content["study"], "question": content["number"]}
        cost = {"epsilon": content["epsilon"], "spent": so_far, "epsilon of the study": announced}
        echo_json({**request, **cost, "written": [str(path)]})
        return
    typer.echo(f"question {content['number']} of {content['study']}: {content['asks for']}")
    typer.echo(f"spent epsilon {content['epsilon']:.4g}, once, however often it is answered")
    typer.echo(f"spent on the study so far: {so_far:.4g} of {announced:.4g}")
    say_written(path)


def merge(
    plan: PlanFile,
    answers: Annotated[
        list[Path], typer.Argument(metavar="ANSWER...", help="Answer files."), READS
    ],
    without: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Continue without this holder.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check the answers of one round and continue; write the tree after the last round."""
    from steadytree.federated.coordinator import finish, learn
    from steadytree.federated.signed_files import FileHolders, Waiting
    from steadytree.federated.study import Checkpoint, StudyConfig

    study = StudyConfig.load(plan)
    for path in (study.out, study.checkpoint, study.facts):
        check_can_write(path)
    checkpoint = Checkpoint(study.checkpoint, study.digest)
    try:
        done = learn(study, FileHolders(study, answers, without or ()), checkpoint)
    except Waiting:
        if as_json:
            echo_json({"finished": False, "answered": checkpoint.n_rounds, "written": []})
        else:
            typer.echo(
                f"merged: questions answered so far: {checkpoint.n_rounds}; now ask the next"
            )
        return
    finish(study, done)
    if as_json:
        finished = {"finished": True, "answered": checkpoint.n_rounds}
        echo_json({**finished, **done.privacy.to_dict(), "written": [str(study.out)]})
        return
    typer.echo(done.privacy.guarantee)
    say_written(study.out)


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
            f"the question is for {content['holder']!r}, the gateway is of {known['holder']!r}. "
            "Nothing was spent."
        )
    asked = st.Schema(**from_dict(content["schema"], "the question"))
    differs = schema_difference(asked, known["schema"])
    if differs:
        raise ValueError(f"the schemas differ: {differs} Nothing was spent.")
    if not known["enough"]:
        typer.echo("refused: less is left than the study's epsilon. Nothing was spent.", err=True)
        raise typer.Exit(LIMIT_EXCEEDED)
    announced = content["epsilon of the study"]
    if known["spent"] + content["epsilon"] > announced * (1 + 1e-9):
        typer.echo(
            f"refused: with this question the study would cost more than the {announced:g} that it "
            "announces. Nothing was spent.",
            err=True,
        )
        raise typer.Exit(LIMIT_EXCEEDED)
    return known


def _ask(ask: Callable[[bytes], bytes], content: dict[str, Any]) -> bytes:
    from steadytree.federated.framing import Refusal, read, refusal_code
    from steadytree.federated.signed_files import sealed

    reply = ask(sealed(content, "letter"))
    code = refusal_code(read(reply))
    if code is None:
        return reply
    typer.echo(f"refused: {code.meaning}.", err=True)
    raise typer.Exit(LIMIT_EXCEEDED if code == Refusal.BUDGET else 2)


LOOKING = 30.0  # seconds between calls of Flower's, each of which takes seconds


def keys(
    plan: Annotated[
        Path | None,
        typer.Argument(metavar="PLAN", help="Make the keys of all holders of a plan."),
        READS,
    ] = None,
    holder: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Make the keys of one holder, at that holder."),
        FILLS,
    ] = None,
    host: Annotated[
        list[str] | None,
        typer.Option(help="Another host name of the coordinator; may be repeated."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Create certificates and keys, for a plan or for one holder."""
    from steadytree.federated.keys import make_holder_keys, make_study_keys
    from steadytree.federated.study import StudyConfig

    if (plan is None) == (holder is None):
        raise ValueError("name a plan, or --holder and no plan.")
    if plan is None:
        holder = str(holder)
        make_holder_keys(Path(holder))
        _show_keys(
            [Path(holder)], "Send node.pub and sign.pub to the coordinator, no more.", as_json
        )
        return
    study = StudyConfig.load(plan)
    own = study.superlink.rpartition(":")[0].strip("[]")
    hosts = list(dict.fromkeys([own, *(host or []), "localhost", "127.0.0.1"]))
    folders = make_study_keys(study.keys, study.holders, hosts)
    advice = "Hand each holder its own folder by a safe way, and delete it here afterwards."
    _show_keys(folders, advice, as_json)


def _show_keys(folders: Iterable[Path], advice: str, as_json: bool) -> None:
    if as_json:
        echo_json({"written": names_of(folders)})
        return
    say_written(*folders)
    typer.echo(advice)


def coordinate(
    plan: PlanFile,
    logs: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Keep the files and logs of Flower here."),
        FILLS,
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run a study over Flower, or resume it; exit 3 if the budget is spent."""
    import signal
    import tempfile

    from steadytree.federated.flower.superlink import SuperLink, check_ready
    from steadytree.federated.study import Checkpoint, StudyConfig

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
    if as_json:
        echo_json({**facts, "written": [str(study.out)] if facts["ok"] else []})
    _show(facts, study, as_json)


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


def _show(facts: dict[str, Any], study: StudyConfig, as_json: bool) -> None:
    if not facts["ok"]:
        typer.echo(f"error: {facts['reason']}", err=True)
        raise typer.Exit(facts["exit"])
    if as_json:
        return
    typer.echo(facts["privacy"]["guarantee"])
    typer.echo(f"rounds {facts['rounds']}, of which {facts['resumed']} from the checkpoint")
    typer.echo(f"seconds {sum(facts['seconds']):.1f}, asked again {facts['asked_again']}")
    typer.echo(f"bytes to holders {facts['bytes_out']}, from holders {facts['bytes_in']}")
    for name, amount in facts["epsilons"].items():
        note = ", went away" if name in facts["gone"] else ""
        typer.echo(f"  epsilon {amount:.4g} of {name}{note}")
    say_written(study.out)
