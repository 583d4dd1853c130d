"""The commands `steadytree private keys | coordinate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steadytree.cli._options import AsJson, PlanFile
from steadytree.cli._output import echo_json, names_of, say_written
from steadytree.cli._places import FILLS, READS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from steadytree.sources.plan import Plan
    from steadytree.sources.superlink import SuperLink

LOOKING = 30.0  # seconds between calls of Flower's, each of which takes seconds


def keys(
    plan: Annotated[
        Path | None,
        typer.Argument(metavar="PLAN", help="Make the keys of all parties of a plan."),
        READS,
    ] = None,
    holder: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Make the keys of one holder, at the holder."),
        FILLS,
    ] = None,
    host: Annotated[
        list[str] | None, typer.Option(help="Further names under which the coordinator is reached.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make certificates and keys, for a whole plan or for one holder."""
    from steadytree.sources.keys import make_holder_keys, make_study_keys
    from steadytree.sources.plan import Plan

    if (plan is None) == (holder is None):
        raise ValueError("name a plan, or --holder and no plan.")
    if plan is None:
        holder = str(holder)
        make_holder_keys(Path(holder))
        _show_keys(
            [Path(holder)], "Send node.pub and sign.pub to the coordinator, no more.", as_json
        )
        return
    study = Plan.load(plan)
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
        typer.Option(metavar="FOLDER", help="Keep Flower's files and logs here."),
        FILLS,
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run a study over Flower, or go on with an interrupted one; exit 3 for a spent budget."""
    import signal
    import tempfile

    from steadytree.core.atomic import check_can_write
    from steadytree.learn._journal import Journal
    from steadytree.sources.plan import Plan
    from steadytree.sources.superlink import SuperLink, check_ready

    study = Plan.load(plan)
    check_ready(study)
    for path in (study.out, study.checkpoint, study.facts):
        check_can_write(path)
    done = Journal(study.checkpoint, study.digest).n_rounds
    if done:
        typer.echo(f"going on after round {done}", err=as_json)
    with tempfile.TemporaryDirectory() as scratch:
        folder = logs or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        study.facts.unlink(missing_ok=True)
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that nothing is left running
        with SuperLink(study, plan, folder.resolve()) as link:
            nodes = link.register()
            typer.echo(f"waiting for {', '.join(study.holders)} at {study.superlink}", err=as_json)
            facts = _wait(study, link, link.run(nodes))
    if as_json:
        echo_json({**facts, "written": [str(study.out)] if facts["ok"] else []})
    _show(facts, study, as_json)


def _wait(study: Plan, link: SuperLink, run: str) -> dict[str, Any]:
    """How the study ended, from the file that it writes then."""
    import json

    from steadytree.core.clock import CLOCK, Limit

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


def _show(facts: dict[str, Any], study: Plan, as_json: bool) -> None:
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
