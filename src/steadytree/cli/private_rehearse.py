"""The command `steadytree private rehearse`."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steadytree.cli.options import AsJson, MayFill, option
from steadytree.cli.output import csv_text, show

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from steadytree.federated.study import StudyConfig

HOSPITALS = ("north", "south", "east")
VICTIM = "south"  # killed after its first answer
STARTING, LASTING = 120.0, 600.0  # seconds
SCHEMA = """classes = ["home", "stays"]

[columns.age]
kind = "integer"
low = 0
high = 100

[columns.pressure]
kind = "numeric"
low = 60
high = 220

[columns.ward]
kind = "categorical"
categories = ["general", "heart", "lung"]
"""
PLAN = """study = "rehearsal"
schema = "schema.toml"
holders = ["north", "south", "east"]
epsilon = 1.0
out = "rehearsal.tree.json"
superlink = "127.0.0.1:{port}"
join = 300
deadline = 300
attempt = 60
"""


def rehearse(
    folder: Annotated[MayFill, option("FOLDER", "Keep all files here; it must be empty.")] = None,
    rows: Annotated[int, typer.Option(help="Made-up patients of each hospital.", min=1)] = 1_000,
    flower: Annotated[
        bool, typer.Option("--flower", help="Over Flower at 127.0.0.1, with TLS; else by sockets.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Rehearse a study of three hospitals on this machine.

    One holder is killed and resumes; all ledgers are verified at the end.

    Patients are made up. All processes are real: gateways, and with --flower also relays and
    Flower's SuperLink. No option is required, and without --folder all files are removed.
    """
    import tempfile

    from steadytree._base.optional import require

    require("opendp", extra="private", purpose="a rehearsal")
    require("cryptography", extra="private", purpose="a rehearsal")
    if flower:
        require("flwr", extra="federated", purpose="--flower")
    if folder is not None and folder.exists() and any(folder.iterdir()):
        raise ValueError(
            f"{str(folder)!r} is not empty: name another folder, so that none is lost."
        )
    with tempfile.TemporaryDirectory() as scratch:
        where = folder or Path(scratch)
        where.mkdir(parents=True, exist_ok=True)
        announce: Callable[[str], None] = (lambda _: None) if as_json else typer.echo
        account = _Rehearsal(where.resolve(), announce).run(rows, flower)
    show(account, _lines(account), as_json, [] if folder is None else [folder])


def _lines(account: dict[str, Any]) -> list[str]:
    found = [
        "",
        f"tree: {account['leaves']} leaves, accuracy on new patients {account['accuracy']:.3f}",
    ]
    found.append(
        f"rounds {account['rounds']}; repeated requests {account['asked_again']}, paid once"
    )
    for name, one in account["ledgers"].items():
        found.append(
            f"{name}: spent {one['spent']:.4g} of {one['budget']:g}, {one['lines'] - 1} answers; "
            f"ledger whole, {one['receipts']} receipts signed by the coordinator"
        )
    return found


class _Rehearsal:
    """All processes of a study in one folder; they end with it."""

    def __init__(self, folder: Path, announce: Callable[[str], None]) -> None:
        self._folder, self._announce = folder, announce
        self._running: dict[str, subprocess.Popen[str]] = {}

    def run(self, n_rows: int, flower: bool) -> dict[str, Any]:
        import threading

        from steadytree.federated.study import StudyConfig

        self._write_files(n_rows)
        self._call("keys", "plan.toml")
        self._announce("keys made: a folder for each hospital, and one for the coordinator")
        plan = StudyConfig.load(self._folder / "plan.toml")
        with ExitStack() as stack:
            stack.callback(self._stop)
            for name in HOSPITALS:
                self._serve(name, first=True)
            if flower:
                for name in HOSPITALS:
                    self._start(f"{name} relay", *self._relay(name, plan.superlink))
            failed: list[Exception] = []
            study = threading.Thread(target=self._coordinate, args=(plan, flower, failed))
            self._announce(f"coordinating {plan.study!r} for epsilon {plan.epsilon:g}")
            study.start()
            self._kill_once(study)
            study.join(LASTING)
            if failed:
                raise failed[0]
        return self._account(plan)

    def _write_files(self, n_rows: int) -> None:
        from steadytree.federated.flower.superlink import free_port

        (self._folder / "schema.toml").write_text(SCHEMA, "utf-8")
        (self._folder / "plan.toml").write_text(PLAN.format(port=free_port()), "utf-8")
        for seed, name in enumerate(HOSPITALS):
            (self._folder / f"{name}.csv").write_text(csv_text(_patients(n_rows, seed)), "utf-8")
        self._announce("schema.toml, declared from general knowledge:\n")
        self._announce("\n".join("    " + line for line in SCHEMA.splitlines()) + "\n")

    # ---- processes ----
    def _command(self, *arguments: str) -> list[str]:
        import sys

        return [sys.executable, "-m", "steadytree", "private", *arguments]

    def _call(self, *arguments: str) -> None:
        import subprocess

        how: dict[str, Any] = {"cwd": self._folder, "capture_output": True, "text": True}
        done = subprocess.run(self._command(*arguments), **how)
        if done.returncode:
            raise OSError(done.stderr.strip() or f"{arguments[0]} ended with {done.returncode}.")

    def _start(self, what: str, *arguments: str) -> subprocess.Popen[str]:
        import subprocess

        with (self._folder / f"{what}.log".replace(" ", ".")).open("a", encoding="utf-8") as log:
            how: dict[str, Any] = {"cwd": self._folder, "stdout": log, "stderr": log, "text": True}
            self._running[what] = subprocess.Popen(self._command(*arguments), **how)
        return self._running[what]

    def _serve(self, name: str, first: bool = False) -> None:
        """Start a gateway, and wait until it serves."""
        socket = self._folder / f"{name}.sock"
        rows = ("--data", f"{name}.csv", "--target", "outcome", "--schema", "schema.toml")
        account = ("--ledger", f"{name}.ledger", "--budget", "2", "--study", "rehearsal=1")
        key = ("--coordinator-key", f"keys/{name}/coordinator.sign.pub", "--socket", f"{name}.sock")
        socket.unlink(missing_ok=True)
        new = ("--new-ledger",) if first else ()
        process = self._start(name, "holder", "serve", "--name", name, *rows, *account, *key, *new)
        self._wait(socket.exists, process)
        self._announce(f"gateway of {name} serves (process {process.pid})")

    def _relay(self, name: str, superlink: str) -> tuple[str, ...]:
        keys = ("--keys", f"keys/{name}/relay", "--superlink", superlink)
        return ("holder", "join", *keys, "--socket", f"{name}.sock", "--same-user")

    def _wait(self, ready: Callable[[], bool], process: subprocess.Popen[str]) -> None:
        from steadytree._base.clock import CLOCK, Limit

        limit = Limit(STARTING)
        while not ready():
            if process.poll() is not None or limit.left == 0:
                raise OSError(f"a gateway did not start: see the logs in {str(self._folder)!r}.")
            CLOCK.sleep(0.05)

    def _coordinate(self, plan: StudyConfig, flower: bool, failed: list[Exception]) -> None:
        import os

        from steadytree.federated.coordinator import run_study
        from steadytree.federated.signed_files import SignedMessages
        from steadytree.federated.transport import Sockets

        try:
            if flower:
                self._call("coordinate", "plan.toml", "--logs", "logs")
                return
            # a socket's path may have about a hundred bytes: those relative to here are short
            paths = {n: os.path.relpath(self._folder / f"{n}.sock") for n in HOSPITALS}
            run_study(plan, SignedMessages(Sockets(paths), plan.keys / "coordinator" / "sign.key"))
        except (ValueError, OSError) as error:
            failed.append(error)

    def _kill_once(self, study: Any) -> None:
        """Kill a gateway after its first answer, and start it again."""
        from steadytree._base.clock import CLOCK

        store = self._folder / f"{VICTIM}.ledger.answers"
        while study.is_alive() and not list(store.glob("*.answer")):
            CLOCK.sleep(0.02)
        self._running[VICTIM].kill()
        self._running[VICTIM].wait()
        self._announce(f"killed the gateway of {VICTIM} after its first answer (kill -9)")
        self._serve(VICTIM)

    def _stop(self) -> None:
        for process in self._running.values():
            process.terminate()
        for process in self._running.values():
            process.wait()

    # ---- afterwards ----
    def _account(self, plan: StudyConfig) -> dict[str, Any]:
        import json

        import steadytree as st
        from steadytree.federated.receipts import verify_ledger

        key = plan.keys / "coordinator" / "sign.pub"
        ledgers = {
            name: verify_ledger(self._folder / f"{name}.ledger", None, key, plan.checkpoint)
            for name in HOSPITALS
        }
        facts, tree = json.loads(plan.facts.read_text("utf-8")), st.load(plan.out)
        known = {"accuracy": _accuracy(tree), "leaves": tree.n_leaves, "ledgers": ledgers}
        return {**known, **{name: facts[name] for name in ("rounds", "asked_again")}}


def _accuracy(tree: Any) -> float:
    """The share of new patients that the tree predicts."""
    import numpy as np

    tested = _patients(2_000, 99)[1:]
    found = tree.predict(np.array([row[:-1] for row in tested], object))
    return sum(a == row[-1] for a, row in zip(found, tested, strict=True)) / len(tested)


def _patients(n_rows: int, seed: int) -> list[list[Any]]:
    """Names of columns, and made-up patients: one in ten goes home or stays whatever the rule."""
    import random

    rng, lines = random.Random(seed), [["age", "pressure", "ward", "outcome"]]
    for _ in range(n_rows):
        age, pressure = rng.randint(18, 95), round(rng.gauss(135, 20), 1)
        ward = rng.choice(["general", "heart", "lung"])
        stays = (pressure > 140 if ward == "heart" else age > 70) ^ (rng.random() < 0.1)
        lines.append([age, pressure, ward, "stays" if stays else "home"])  # type: ignore[list-item]
    return lines
