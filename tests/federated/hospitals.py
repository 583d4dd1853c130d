"""Three small hospitals for tests: a schema, rows, gateways in memory or in a process."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from steadytree.data.schema import Schema
from steadytree.federated.answer_store import AnswerStore
from steadytree.federated.framing import (
    VERSION,
    carry,
    read,
    write,
)
from steadytree.federated.gateway import Gateway, Terms
from steadytree.federated.holder import Holder, schema_digest
from steadytree.federated.messages import Request, request_message
from steadytree.privacy.ledger import Ledger

NAMES = ("north", "south", "east")
SCHEMA = Schema({"age": (0, 100), "dose": (0, 8)}, {"ward": ["A", "B", "C"]}, ["ill", "well"])
DIGEST = schema_digest(SCHEMA)
unix_only = pytest.mark.skipif(sys.platform == "win32", reason="needs Unix sockets")
PATIENCE = 600.0  # seconds: an end to what hangs, not a measure of anything
STATUS = write({"version": VERSION, "type": "status"})


def rows(seed, n_rows=400):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "age": rng.uniform(0, 100, n_rows).round(3),
            "dose": rng.uniform(0, 8, n_rows).round(3),
            "ward": rng.choice(["A", "B", "C"], n_rows),
        }
    )
    return X, np.where((X["age"] > 50) ^ (X["ward"] == "A"), "ill", "well")


def make_holder(folder, name="north", budget=4.0, seed=0, data=None):
    X, y = data if data is not None else rows(NAMES.index(name) if name in NAMES else 9)
    ledger = Ledger(pathlib.Path(folder) / f"{name}.ledger", budget)
    return Holder(name, SCHEMA, X, y, ledger, testing_seed=seed)


@contextlib.contextmanager
def gateway_of(folder, name="north", **more):
    """A gateway in this process; closing it is what a clean stop does."""
    holder = make_holder(folder, name, **more)
    store = AnswerStore(pathlib.Path(folder) / f"{name}.ledger.answers", name, DIGEST)
    try:
        yield Gateway(holder, store)
    finally:
        store.close()


def ask(kind="rows", round=0, epsilon=0.5, session="study", **more):
    return Request(session, round, kind, epsilon, DIGEST, **{"n_bins": 4, **more})


def message(**more):
    return request_message(ask(**more))


def write_files(folder, names=NAMES, n_rows=400):
    """Schema and rows as files, as a holder has them."""
    SCHEMA.save(pathlib.Path(folder) / "schema.toml")
    for place, name in enumerate(names):
        X, y = rows(place, n_rows)
        X.assign(outcome=y).to_csv(pathlib.Path(folder) / f"{name}.csv", index=False)


def write_plan(folder=".", **changed):
    """The plan of a small study of all three, beside their schema; None leaves a key out."""
    plan = {"study": "hospitals", "schema": "schema.toml", "holders": NAMES, "epsilon": 2.0}
    plan |= {"n_bins": 4, "out": "tree.json", "testing_seed": 3, **changed}
    lines = [f"{key} = {json.dumps(value)}" for key, value in plan.items() if value is not None]
    path = pathlib.Path(folder) / "plan.toml"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def start_gateway(
    folder, name="north", budget=4.0, seed=0, program=("-m", "steadytree"), options=(), **more
):
    """`steadytree private holder serve` as a process, ready to answer."""
    folder = pathlib.Path(folder)
    command = [
        *(sys.executable, *program, "private", "holder", "serve", "--name", name),
        *("--data", f"{name}.csv", "--schema", "schema.toml", "--ledger", f"{name}.ledger"),
        *("--budget", str(budget), "--socket", f"{name}.sock", "--pace", "0"),
        *("--log", f"{name}.log", *options),
    ]
    if not (folder / f"{name}.ledger").exists():
        command.append("--new-ledger")
    if seed is not None:
        command += ["--testing-seed", str(seed)]
    process = subprocess.Popen(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        **more,
    )
    line = process.stdout.readline()
    while line and not line.startswith("serving"):
        line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"gateway ended with {process.wait()}")
    return process


def stop(process):
    """End a process as a supervisor does; its exit code."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    code = process.wait(timeout=PATIENCE)
    if process.stdout:
        process.stdout.close()
    return code


def send(folder, name, content, seconds=PATIENCE):
    """A letter to a gateway process, by a short relative path of its socket."""
    here = pathlib.Path.cwd()
    os.chdir(folder)
    try:
        return carry(f"{name}.sock", content, seconds)
    finally:
        os.chdir(here)


def wait_until(condition, seconds=PATIENCE):
    """Wait for another process, with an end."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("waited too long")
        time.sleep(0.05)


def with_terms(gateway, **terms):
    return Gateway(gateway.holder, gateway._store, terms=Terms(**terms))


def code_of(reply):
    return read(reply).get("code")
