"""Three hospitals on this machine: real gateways, SuperNodes and a SuperLink, with TLS and keys.

    python studies/three_hospitals/run.py                # seeded noise: compared with one process
    python studies/three_hospitals/run.py --private      # real noise: what a study is like
    python studies/three_hospitals/run.py --gateway      # CPU of one answer, without Flower
    python studies/three_hospitals/run.py --quick        # 500 patients a hospital

Makes up patients, writes them to three files, makes keys, starts each hospital's two processes,
coordinates the study, and prints rounds, seconds, bytes, epsilon and accuracy. Needs the extra
`federated`.
"""

import argparse
import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

import numpy as np

from steadytree.data.schema import Schema
from steadytree.federated.answer_store import AnswerStore
from steadytree.federated.coordinator import Coordinator
from steadytree.federated.gateway import Gateway
from steadytree.federated.holder import Holder, schema_digest
from steadytree.federated.messages import Request, request_message
from steadytree.models.files import load
from steadytree.privacy.ledger import Ledger
from steadytree.reporting.plot import plot

HOSPITALS = ("north", "south", "east")
SCHEMA = Schema(
    {"age": (0, 100), "pressure": (60, 220), "sodium": (110, 170)},
    {"ward": ["general", "heart", "lung"]},
    ["home", "stays"],
    kinds={"age": "integer"},
)
COMMAND = (sys.executable, "-m", "steadytree", "private")
SEED, BUDGET = 11, 10.0


def patients(n_rows, seed):
    """Made-up patients: one in ten goes home or stays whatever the rule says."""
    rng = np.random.default_rng(seed)
    age, pressure = rng.integers(18, 96, n_rows), rng.normal(135, 20, n_rows).round(1)
    sodium, ward = (
        rng.normal(139, 5, n_rows).round(1),
        rng.choice(SCHEMA.categories["ward"], n_rows),
    )
    stays = np.where(ward == "heart", pressure > 140, (age > 70) | (sodium < 131))
    stays ^= rng.random(n_rows) < 0.1
    columns = (age, pressure, sodium, ward)
    X = np.column_stack([np.asarray(column, object) for column in columns])
    return X, np.where(stays, "stays", "home")


def write_patients(path, X, y):
    lines = [",".join([*SCHEMA.names, "outcome"])]
    lines += [",".join(map(str, (*row, label))) for row, label in zip(X, y, strict=True)]
    path.write_text("\n".join(lines) + "\n")


def write_plan(arguments, address):
    lines = ['study = "three-hospitals"', 'schema = "schema.toml"', 'out = "tree.json"']
    lines += [f"holders = {json.dumps(HOSPITALS)}", f"epsilon = {arguments.epsilon}"]
    lines += [f'superlink = "{address}"', "join = 300", "deadline = 300", "attempt = 60"]
    if not arguments.private:
        lines.append(f"testing_seed = {SEED}")
    pathlib.Path("plan.toml").write_text("\n".join(lines) + "\n")


def start(stack, *command):
    """Start a command; it is ended with the `with` block."""
    process = subprocess.Popen(
        [*COMMAND, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )

    def end():
        process.terminate()
        process.wait(60)

    stack.callback(end)


def start_hospital(stack, place, name, address, private):
    seed = () if private else ("--testing-seed", str(SEED + place))
    rows = ("--data", f"{name}.csv", "--target", "outcome", "--schema", "schema.toml")
    account = ("--ledger", f"{name}.ledger", "--budget", str(BUDGET), "--new-ledger")
    account += ("--coordinator-key", f"keys/{name}/coordinator.sign.pub")
    start(
        stack, "holder", "serve", "--name", name, *rows, *account, "--socket", f"{name}.sock", *seed
    )
    keys = ("--keys", f"keys/{name}/relay", "--superlink", address, "--socket", f"{name}.sock")
    start(stack, "holder", "join", *keys, "--same-user")  # all on one machine, for one user


def run_over_flower(arguments, address):
    """The study with nine processes; wall-clock seconds of it all."""
    began = time.monotonic()
    subprocess.run([*COMMAND, "keys", "plan.toml"], check=True, stdout=subprocess.DEVNULL)
    with contextlib.ExitStack() as stack:
        for place, name in enumerate(HOSPITALS):
            start_hospital(stack, place, name, address, arguments.private)
        subprocess.run([*COMMAND, "coordinate", "plan.toml", "--logs", "logs"], check=True)
    return time.monotonic() - began


def run_in_process(data, epsilon):
    with tempfile.TemporaryDirectory() as folder:
        holders = [
            Holder(
                name,
                SCHEMA,
                *data[name],
                Ledger(f"{folder}/{name}", BUDGET),
                testing_seed=SEED + place,
            )
            for place, name in enumerate(HOSPITALS)
        ]
        return Coordinator(holders, SCHEMA, epsilon, testing_seed=SEED).fit().tree_


def time_gateway(n_rows, repeats=9):
    """CPU milliseconds of an answer, stored and paid for on the disk: the median by kind."""
    digest = schema_digest(SCHEMA)
    asked = {
        "rows": {},
        "last block": {"depth": 2, "trees": ((0, -1, -1),)},
        "leaf counts": {"trees": ((0, 1, -1, -1, 2, -1, -1),)},
    }
    with tempfile.TemporaryDirectory() as folder:
        holder = Holder("north", SCHEMA, *patients(n_rows, 0), Ledger(f"{folder}/ledger", 1e5))
        store = AnswerStore(pathlib.Path(folder) / "answers", "north", digest)
        gateway = Gateway(holder, store)
        for kind, more in asked.items():
            taken = []
            for number in range(repeats):
                request = Request(kind.replace(" ", "-"), number, kind, 0.5, digest, 64, **more)
                letter = request_message(request)
                began = time.process_time()
                gateway.reply(letter)
                taken.append(1000 * (time.process_time() - began))
            print(f"{kind}: {np.median(taken):.1f} ms of CPU")
        store.close()


def free_address():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="500 patients of each hospital")
    parser.add_argument("--rows", type=int, help="patients of each hospital; 3000")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--private", action="store_true", help="real noise, no comparison")
    parser.add_argument("--gateway", action="store_true", help="time one answer, no study")
    parser.add_argument("--folder", type=pathlib.Path, help="keep all files here")
    parser.add_argument("--out", type=pathlib.Path, help="a folder for the picture of the tree")
    arguments = parser.parse_args()
    arguments.rows = arguments.rows or (500 if arguments.quick else 3_000)
    if arguments.out is not None:
        arguments.out = arguments.out.resolve()
    if arguments.gateway:
        time_gateway(arguments.rows)
        return
    data = {name: patients(arguments.rows, place) for place, name in enumerate(HOSPITALS)}
    X_test, y_test = patients(20_000, 99)
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.folder or pathlib.Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        os.chdir(folder)
        SCHEMA.save("schema.toml")
        for name, (X, y) in data.items():
            write_patients(pathlib.Path(f"{name}.csv"), X, y)
        address = free_address()
        write_plan(arguments, address)
        seconds = run_over_flower(arguments, address)
        tree = load("tree.json")
        facts = json.loads(pathlib.Path("tree.json.study.json").read_text())
        spent = {name: Ledger(f"{name}.ledger", BUDGET).spent for name in HOSPITALS}
        os.chdir("/")
    print(f"rounds {facts['rounds']}, seconds of each {facts['seconds']}, in all {seconds:.0f}")
    print(f"bytes to hospitals {facts['bytes_out']}, from hospitals {facts['bytes_in']}")
    print("epsilon in each ledger", {name: round(amount, 6) for name, amount in spent.items()})
    accuracy = (tree.predict(X_test) == y_test).mean()
    print(f"leaves {tree.n_leaves}, accuracy over Flower {accuracy:.4f}")
    if arguments.out is not None:
        arguments.out.mkdir(parents=True, exist_ok=True)
        plot(tree).write(arguments.out / "tree.svg")
    if not arguments.private:
        twin = run_in_process(data, arguments.epsilon)
        print(f"accuracy in one process {(twin.predict(X_test) == y_test).mean():.4f}")
        print("same tree:", twin == tree)
        sys.exit(0 if twin == tree else 1)


if __name__ == "__main__":
    main()
