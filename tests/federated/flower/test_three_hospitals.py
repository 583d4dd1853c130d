"""Three hospitals over Flower: real SuperLink and SuperNodes, TLS, keys, and processes that die."""

import contextlib
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import ssl
import subprocess
import sys

import numpy as np
import pytest

from steadytree.federated.coordinator import Coordinator
from steadytree.federated.flower.superlink import QUIET, SuperLink, script, start_supervised
from steadytree.federated.study import StudyConfig
from steadytree.models.files import load
from steadytree.privacy.ledger import Ledger
from tests.federated import hospitals
from tests.federated.hospitals import NAMES, SCHEMA

pytestmark = pytest.mark.federated
pytest.importorskip("flwr")
STEADYTREE = (sys.executable, "-m", "steadytree", "private")
PATIENCE = {"join": 900, "deadline": 600, "attempt": 120}  # machines that test are slow


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def site(tmp_path, monkeypatch):
    """Files, plan and keys of three hospitals; the processes started here are ended here."""
    monkeypatch.chdir(tmp_path)
    hospitals.write_files(tmp_path)
    port = free_port()
    hospitals.write_plan(superlink=f"127.0.0.1:{port}", **PATIENCE)
    subprocess.run([*STEADYTREE, "keys", "plan.toml"], check=True, capture_output=True)
    with contextlib.ExitStack() as stack:
        yield Site(tmp_path, port, stack)


class Site:
    def __init__(self, folder, port, stack):
        self.folder, self.address, self._stack = folder, f"127.0.0.1:{port}", stack

    def serve(self, name, program=("-m", "steadytree")):
        key = ("--coordinator-key", f"keys/{name}/coordinator.sign.pub")
        process = hospitals.start_gateway(
            self.folder, name, seed=NAMES.index(name), program=program, options=key
        )
        self._stack.callback(hospitals.stop, process)
        return process

    def join(self, name):
        command = [*STEADYTREE, "holder", "join", "--keys", f"keys/{name}/relay"]
        command += ["--superlink", self.address, "--socket", f"{name}.sock", "--same-user"]
        with pathlib.Path(f"{name}.join.log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
        self._stack.callback(hospitals.stop, process)

    def coordinate(self):
        command = [*STEADYTREE, "coordinate", "plan.toml", "--logs", "logs"]
        with pathlib.Path("coordinate.log").open("ab") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
        self._stack.callback(end, process)
        return process

    def spent(self):
        return [Ledger(f"{name}.ledger", 4.0).spent for name in NAMES]


def end(process):
    if process.poll() is None:
        process.kill()
    process.wait(hospitals.PATIENCE)


def in_process():
    """The same study with nothing in between: the tree, and what each holder spent."""
    pathlib.Path("twin").mkdir()
    holders = [hospitals.make_holder("twin", n, seed=p) for p, n in enumerate(NAMES)]
    fitted = Coordinator(holders, SCHEMA, 2.0, n_bins=4, testing_seed=3).fit()
    return fitted.tree_, [holder.ledger.spent for holder in holders]


def check_no_row_in_any_log_or_message(folder):
    """No cell of a row in anything that was written down outside the holder's own data."""
    cells = set()
    for name in NAMES:
        for line in (folder / f"{name}.csv").read_text("utf-8").split()[1:]:
            cells |= {cell for cell in line.split(",")[:2] if len(cell) > 4}
    written = [*folder.glob("*.log"), *folder.glob("logs/*.log"), *folder.glob("*.json")]
    written += folder.glob("*.answers/*.answer")
    assert len(written) > 8
    for path in written:
        text = path.read_text(errors="replace", encoding="utf-8")
        if path.name.endswith(".study.json"):  # seconds have three decimals too
            text = json.dumps({**json.loads(text), "seconds": []})
        words = set(text.replace(",", " ").split())
        assert not words & cells, path


def test_three_hospitals_over_flower_grow_the_tree_of_one_process(site):
    for name in NAMES:
        site.serve(name)
        site.join(name)
    process = site.coordinate()
    hospitals.wait_until(
        lambda: "waiting for" in pathlib.Path("coordinate.log").read_text("utf-8"), 600
    )
    try_unregistered_key(site)
    assert process.wait(1200) == 0, pathlib.Path("coordinate.log").read_text("utf-8")
    joined = re.findall(
        r"Activated node_id=(\d+)", pathlib.Path("logs/superlink.log").read_text("utf-8")
    )
    assert len(set(joined)) == len(NAMES)  # the proxy let no call of the stranger through
    assert (load("tree.json"), site.spent()) == in_process()
    facts = json.loads(pathlib.Path("tree.json.study.json").read_text("utf-8"))
    assert facts["rounds"] == len(facts["seconds"]) == 4
    assert 1_000 < facts["bytes_out"] < 10_000
    assert facts["gone"] == []
    check_no_row_in_any_log_or_message(site.folder)


def try_unregistered_key(site):
    """A SuperNode with a key that nobody registered."""
    subprocess.run([*STEADYTREE, "keys", "--holder", "stranger"], check=True, capture_output=True)
    command = [
        *(script("flower-supernode"), "--superlink", site.address, "--host", "127.0.0.1"),
        *("--port", str(free_port()), "--root-certificates", "keys/north/relay/ca.crt"),
        *("--auth-supernode-private-key", "stranger/relay/node.key", "--max-retries", "1"),
    ]
    path = str(pathlib.Path(sys.executable).parent) + os.pathsep + os.environ["PATH"]
    environment = {**os.environ, **QUIET, "FLWR_HOME": str(site.folder / "home"), "PATH": path}
    with pathlib.Path("stranger.log").open("wb") as log:
        process = start_supervised(command, log, environment)
    with process:
        process.wait(600)


KILLED_AFTER_PAYING = """
import os, signal
from steadytree.cli import app as cli
from steadytree.federated.gateway import Gateway
release = Gateway._release
def killed(self, request, letter):
    found = release(self, request, letter)
    if request.round == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return found
Gateway._release = killed
cli.main()
"""


def test_a_holder_and_the_coordinator_are_killed_and_nothing_is_lost(site):
    drawer = NAMES[int(np.random.default_rng(3).permutation(3)[0])]  # who is asked in round 1
    doomed = site.serve(drawer, ("-c", KILLED_AFTER_PAYING))
    for name in NAMES:
        if name != drawer:
            site.serve(name)
        site.join(name)
    first = site.coordinate()
    checkpoint = pathlib.Path("hospitals.checkpoint.json")
    hospitals.wait_until(lambda: checkpoint.exists() or first.poll() is not None, 1200)
    assert first.poll() is None, pathlib.Path("coordinate.log").read_text("utf-8")
    os.kill(first.pid, signal.SIGKILL)
    first.wait(hospitals.PATIENCE)
    second = site.coordinate()
    assert doomed.wait(1200) == -signal.SIGKILL  # in the middle of round 1, after it had paid
    site.serve(drawer)
    assert second.wait(1200) == 0, pathlib.Path("coordinate.log").read_text("utf-8")
    assert (load("tree.json"), site.spent()) == in_process()
    facts = json.loads(pathlib.Path("tree.json.study.json").read_text("utf-8"))
    assert facts["resumed"] == 1
    check_no_row_in_any_log_or_message(site.folder)


SLOW = """
import pathlib, threading
from steadytree.cli import app as cli
from steadytree.federated.gateway import Gateway
release = Gateway._release
def slow(self, request, letter):
    while not pathlib.Path("go").exists():
        threading.Event().wait(0.2)
    return release(self, request, letter)
Gateway._release = slow
cli.main()
"""


@pytest.mark.heavy  # waits for a deadline that must leave room for quick holders
def test_a_holder_past_the_deadline_is_left_behind_and_pays_once(site):
    plan = pathlib.Path("plan.toml")
    plan.write_text(
        plan.read_text("utf-8").replace("deadline = 600", "deadline = 300\nminimum = 2"), "utf-8"
    )
    site.serve("north")
    site.serve("south")
    site.serve("east", ("-c", SLOW))
    for name in NAMES:
        site.join(name)
    assert site.coordinate().wait(1200) == 0, pathlib.Path("coordinate.log").read_text("utf-8")
    facts = json.loads(pathlib.Path("tree.json.study.json").read_text("utf-8"))
    assert facts["gone"] == ["east"]
    *quick, before = site.spent()
    assert quick == pytest.approx([2.0, 2.0])
    assert before == 0.0
    pathlib.Path("go").touch()  # what it drew in the end nobody waits for; it is paid all the same
    hospitals.wait_until(lambda: site.spent()[2] > 0)
    assert site.spent()[2] < 2.0
    check_no_row_in_any_log_or_message(site.folder)


def test_from_outside_nobody_registers_nodes_or_starts_runs(site):
    plan = StudyConfig.load("plan.toml")
    pathlib.Path("logs").mkdir()
    tls = ssl.create_default_context(cafile="keys/north/relay/ca.crt")
    host, _, port = site.address.partition(":")
    with SuperLink(plan, pathlib.Path("plan.toml"), (site.folder / "logs").resolve()) as link:
        for call in ("control/register-node", "control/start-run", "control/list-runs"):
            connection = http.client.HTTPSConnection(
                host, int(port), context=tls, timeout=hospitals.PATIENCE
            )
            connection.request("POST", f"/v1/{call}", b"", {"content-type": "application/protobuf"})
            assert connection.getresponse().status == 403
            connection.close()
        assert set(link.register()) == set(NAMES)  # from inside
    log = pathlib.Path("logs/superlink.log").read_text("utf-8")
    assert log.count("/v1/control/") == log.count("/v1/control/register-node")
