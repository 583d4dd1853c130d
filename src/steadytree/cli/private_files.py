"""The commands `steadytree private ask | answer | merge`: a study by files."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steadytree.cli._ledger import NewLedger, check_ledger
from steadytree.cli._options import AsJson, PlanFile
from steadytree.cli._output import echo_json, names_of, say_written
from steadytree.cli._places import CHANGES, CONNECTS, FILLS, READS, Does
from steadytree.core.places import Place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def _answer_and_store(values: dict[str, Any]) -> list[Place]:
    """What an answer writes that no option names."""
    from steadytree.cli.private_holder import store_of
    from steadytree.sources.files import answer_path

    found = [Place(answer_path(values["question"]), "write", "the answer to QUESTION")]
    if values["ledger"] is not None:
        found.append(Place(store_of(values["ledger"]), "fill", "the store of --ledger"))
    return found


def ask(
    plan: PlanFile,
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Where to write questions."), FILLS
    ] = Path("questions"),
    as_json: AsJson = False,
) -> None:
    """Write the next signed, numbered question for each holder that is asked."""
    from steadytree.core.atomic import check_can_fill, check_can_write
    from steadytree.learn._journal import Journal
    from steadytree.learn.study import learn
    from steadytree.sources.files import FileParties, Waiting, write_questions
    from steadytree.sources.plan import Plan

    study = Plan.load(plan)
    check_can_fill(out)
    check_can_write(study.checkpoint)
    journal = Journal(study.checkpoint, study.digest)
    try:
        learn(study, FileParties(study), journal)
    except Waiting as waiting:
        written = list(write_questions(study, waiting.requests, out))
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
        typer.Argument(metavar="QUESTION", help="A question file."),
        Does("read", _answer_and_store),
    ],
    keys: Annotated[Path, typer.Option(metavar="FOLDER", help="This holder's keys."), READS],
    socket: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Socket of a serving gateway; or:"), CONNECTS
    ] = None,
    data: Annotated[Path | None, typer.Option(metavar="FILE", help="The rows."), READS] = None,
    target: Annotated[str | None, typer.Option(metavar="COLUMN", help="Column to predict.")] = None,
    schema: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The agreed schema."), READS
    ] = None,
    ledger: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The rows' ledger."), CHANGES
    ] = None,
    budget: Annotated[float | None, typer.Option(help="All that the rows may ever cost.")] = None,
    new_ledger: NewLedger = False,
    name: Annotated[
        str | None, typer.Option(help="This holder; by default as its folder of keys is called.")
    ] = None,
    as_json: AsJson = False,
    testing_seed: Annotated[int | None, typer.Option(hidden=True)] = None,
) -> None:
    """Check a question and write its signed answer; exit 3 where the budget is spent."""
    from steadytree.core.atomic import check_can_write
    from steadytree.sources.files import answer_path, read_question_file, write_answer_file

    content = read_question_file(question, keys)
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
    so_far, whole = known["spent"] + content["epsilon"], content["epsilon of the study"]
    if as_json:
        told = {"study": content["study"], "question": content["number"]}
        cost = {"epsilon": content["epsilon"], "spent": so_far, "epsilon of the study": whole}
        echo_json({**told, **cost, "written": [str(path)]})
        return
    typer.echo(f"question {content['number']} of {content['study']}: {content['asks for']}")
    typer.echo(f"spent epsilon {content['epsilon']:.4g}, once, however often it is answered")
    typer.echo(f"the study has cost {so_far:.4g} so far, of {whole:.4g} that it says it may")
    say_written(path)


def merge(
    plan: PlanFile,
    answers: Annotated[
        list[Path], typer.Argument(metavar="ANSWER...", help="Answer files."), READS
    ],
    without: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Go on without a holder.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check the answers to one question and go on; write the tree after the last."""
    from steadytree.core.atomic import check_can_write
    from steadytree.learn._journal import Journal
    from steadytree.learn.study import finish, learn
    from steadytree.sources.files import FileParties, Waiting
    from steadytree.sources.plan import Plan

    study = Plan.load(plan)
    for path in (study.out, study.checkpoint, study.facts):
        check_can_write(path)
    journal = Journal(study.checkpoint, study.digest)
    try:
        done = learn(study, FileParties(study, answers, without or ()), journal)
    except Waiting:
        if as_json:
            echo_json({"finished": False, "answered": journal.n_rounds, "written": []})
        else:
            typer.echo(f"merged: questions answered so far: {journal.n_rounds}; now ask the next")
        return
    finish(study, done)
    if as_json:
        finished = {"finished": True, "answered": journal.n_rounds}
        echo_json({**finished, **done.privacy.to_dict(), "written": [str(study.out)]})
        return
    typer.echo(done.privacy.guarantee)
    say_written(study.out)


@contextmanager
def _door(
    socket: Path | None, rows: tuple[Any, ...], content: dict[str, Any]
) -> Iterator[Callable[[bytes], bytes]]:
    """Letters to a serving gateway, or to one that lives as long as the command."""
    if socket is not None:
        from steadytree.sources.letters import carry

        def through(letter: bytes) -> bytes:
            try:
                return carry(str(socket), letter, 600.0)
            except OSError:
                raise ValueError(f"no gateway serves at {str(socket)!r}: start it.") from None

        yield through
        return
    from steadytree.cli.private_holder import load_holder, open_gateway
    from steadytree.privacy.entry import decimal_of
    from steadytree.sources.gateway import Terms

    # what the file says the study costs is all that it may cost
    agreed = decimal_of(content["epsilon of the study"], "epsilon of the study")
    terms = Terms({content["study"]: agreed})
    gateway, store = open_gateway(load_holder(*rows), rows[4][0], 0.0, terms)
    try:
        yield gateway.reply
    finally:
        store.close()


def _check_hello(ask: Callable[[bytes], bytes], content: dict[str, Any]) -> dict[str, Any]:
    """What the gateway knows; refuses a question that goes beyond what its file announces."""
    from steadytree.core.schema import Schema
    from steadytree.core.schema_file import from_dict
    from steadytree.sources.files import sealed
    from steadytree.sources.greeting import schema_difference
    from steadytree.sources.letters import read

    known = read(ask(sealed(content, "hello")))
    if known.get("ok") is not True:
        raise ValueError(f"the gateway refused: {known.get('code')}. Nothing was spent.")
    if known["holder"] != content["holder"]:
        raise ValueError(
            f"the question is for {content['holder']!r}, the gateway is of {known['holder']!r}. "
            "Nothing was spent."
        )
    asked = Schema(**from_dict(content["schema"], "the question"))
    differs = schema_difference(asked, known["schema"])
    if differs:
        raise ValueError(f"the schemas differ: {differs} Nothing was spent.")
    if not known["enough"]:
        typer.echo("refused: less is left than the study's epsilon. Nothing was spent.", err=True)
        raise typer.Exit(3)
    whole = content["epsilon of the study"]
    if known["spent"] + content["epsilon"] > whole * (1 + 1e-9):
        typer.echo(
            f"refused: with this question the study would cost more than the {whole:g} that it "
            "announces. Nothing was spent.",
            err=True,
        )
        raise typer.Exit(3)
    return known


def _ask(ask: Callable[[bytes], bytes], content: dict[str, Any]) -> bytes:
    from steadytree.sources.files import sealed
    from steadytree.sources.letters import MEANING, Code, read, refusal_code

    reply = ask(sealed(content, "letter"))
    code = refusal_code(read(reply))
    if code is None:
        return reply
    typer.echo(f"refused: {MEANING[code]}.", err=True)
    raise typer.Exit(3 if code == Code.BUDGET else 2)
