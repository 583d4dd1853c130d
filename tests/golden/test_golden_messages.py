"""What travels between a coordinator and data holders, byte by byte, with seeded noise."""

import json
import pathlib
import re
import signal
import socket
import subprocess
import sys

import pytest

import steadytree as st
from tests.golden.golden_models import lines, tree_line
from tests.golden.golden_study import NAMES, SCHEMA, answer, fix_keys, rows, write_study

pytest.importorskip("opendp")
pytest.importorskip("cryptography")
METHODS = ("delegate", "duel", "vote", "local_rnm", "noisy_counts")
LENGTH = 4  # bytes before each letter on a socket


def shown(path):
    """A signed file but for when it was made, which its signature depends on."""
    content = json.loads(path.read_text("utf-8"))
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", content.pop("made"))
    assert len(content.pop("signature")) == 88
    # a ledger has an id of its own, and so have its heads and what is signed of them
    for name in ("ledger", "receipt"):
        if name in content["letter"]:
            content["letter"][name] = f"line {content['letter'][name]['number']}"
    if "receipt" in content["letter"]:
        content["seals"] = {name: len(seal) for name, seal in content["seals"].items()}
    return f"{path.name}\n{json.dumps(content, ensure_ascii=False)}"


@pytest.mark.parametrize("method", METHODS)
def test_questions_and_answers_in_files(command, golden, method):
    write_study(method)
    assert command("private", "keys", "plan.toml")[0] == 0
    fix_keys()
    found = []
    for number in range(20):
        code, out, err = command("private", "ask", "plan.toml")
        assert code == 0, err
        if "nothing is left" in out:
            break
        questions = sorted(pathlib.Path("questions").glob(f"*.{number:04d}.*.question.json"))
        for path in questions:
            assert answer(command, path, path.name.split(".")[2])[0] == 0
        answers = [
            pathlib.Path(str(path).replace("question.json", "answer.json")) for path in questions
        ]
        found += [shown(path) for path in questions + answers]
        code, _, err = command("private", "merge", "plan.toml", *answers)
        assert code == 0, err
    for name in NAMES:  # a ledger has an id of its own, and every line a hash that hangs on it
        ledger = pathlib.Path(f"{name}.ledger").read_text("utf-8")
        ledger = re.sub(r"\b[0-9a-f]{64}\b", "HASH", re.sub(r"id [0-9a-f]{32}", "id ID", ledger))
        found.append(f"{name}.ledger\n{ledger}")
    found.append(f"tree.json: {tree_line(st.load('tree.json'))}")
    golden(f"messages-{method}.txt", "\n".join(found))


def test_trees_of_several_holders_in_memory(golden, tmp_path):
    found = {}
    for method in (*METHODS, "secure_sum"):
        holders = [
            st.Holder(
                name,
                SCHEMA,
                *rows(name),
                st.Ledger(tmp_path / f"{name}.{method}.ledger", 9.0),
                testing_seed=NAMES.index(name),
            )
            for name in NAMES
        ]
        coordinator = st.Coordinator(holders, SCHEMA, 4.0, method, n_bins=4, testing_seed=3)
        found[method] = tree_line(coordinator.fit().tree_)
    golden("messages-memory.txt", lines(found))


# ---- on a socket ----
@pytest.fixture
def gateway(command, tmp_path):
    """A holder that serves at a socket, until the test ends."""
    write_study()
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "steadytree", "private", "holder", "serve"),
            *("--name", "north", "--data", "north.csv", "--schema", "schema.toml"),
            *("--ledger", "north.ledger", "--budget", "4", "--new-ledger", "--pace", "0"),
            *("--socket", "north.sock", "--log", "north.log", "--testing-seed", "0"),
        ],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout.readline().startswith("serving north")
        yield carry
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)
        process.stdout.close()


def carry(letter):
    """Send one letter to the holder; the letter that comes back."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(60)
        connection.connect("north.sock")
        connection.sendall(len(letter).to_bytes(LENGTH, "big") + letter)
        with connection.makefile("rb") as reply:
            return reply.read(int.from_bytes(reply.read(LENGTH), "big"))


def letters(digest):
    """One of each kind, as version 2 writes them; the order is that of a study."""
    common = {"session": "golden", "schema": digest, "n_bins": 4, "depth": 0, "questions": []}
    common["trees"] = [[-1]]
    asked = [
        {"kind": "rows"},
        {"kind": "block", "depth": 2},
        {"kind": "last block", "depth": 1},
        {"kind": "choice"},
        {"kind": "leaf counts"},
        {"kind": "side counts", "questions": [[0, 1]]},
        {"kind": "rows", "epsilon": 99.0},  # more than is left
    ]
    yield {"version": 2, "type": "status"}
    yield {"version": 2, "type": "hello", "study": "golden", "epsilon": 2.0}
    for number, changes in enumerate(asked):
        request = {**common, "round": number, "epsilon": 0.25, **changes}
        yield {"version": 2, "type": "question", "request": request}
    again = {**common, "round": 0, "epsilon": 0.25, "kind": "rows"}
    yield {"version": 2, "type": "question", "request": again}  # not paid for again
    yield {"version": 2, "type": "question", "request": {**again, "schema": "another", "round": 9}}
    yield {"version": 2, "type": "question", "request": {**again, "n_bins": 5}}
    yield {"version": 1, "type": "status"}  # of an older steadytree
    yield {"version": 2, "type": "status"}


def test_letters_on_a_socket(gateway, golden, command):
    # the digest of a schema is only told in questions: ask for one as a coordinator
    assert command("private", "keys", "plan.toml")[0] == 0
    assert command("private", "ask", "plan.toml")[0] == 0
    [question] = pathlib.Path("questions").glob("*.0000.north.question.json")
    digest = json.loads(question.read_text("utf-8"))["letter"]["request"]["schema"]
    found = []
    for content in letters(digest):
        letter = json.dumps(content, sort_keys=True, separators=(",", ":"))
        reply = re.sub(r'"time":[0-9.]+', '"time":0', gateway(letter.encode()).decode())
        reply = re.sub(
            r'"head":"[0-9a-f]{64}","ledger":"[0-9a-f]{32}"', '"head":"H","ledger":"L"', reply
        )
        found += [f"> {letter}", f"< {reply}"]
    golden("messages-socket.txt", "\n".join(found))
