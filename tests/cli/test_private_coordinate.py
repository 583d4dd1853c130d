"""`steadytree private coordinate` and `holder join`, up to where Flower begins."""

import pathlib
import socket
import sys

import pytest

from tests.federated import hospitals

COMMAND = ("private",)
KEYS = ["ca.crt", "server.pem", "server.key", "sign.key"]
KEYS += ["north.node.pub", "south.node.pub", "east.node.pub"]


@pytest.fixture(autouse=True)
def schema(run):
    hospitals.SCHEMA.save("schema.toml")


@pytest.fixture
def ready(run, monkeypatch):
    """A plan with all its keys, as far as their names go, and a Flower that is never started."""
    for module in ("superlink", "supernode"):
        monkeypatch.setattr(f"steadytree.federated.flower.{module}.require", lambda *_, **__: None)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    write_plan(port)
    pathlib.Path("keys/coordinator").mkdir(parents=True)
    for name in KEYS:
        pathlib.Path("keys/coordinator", name).touch()
    return run


def write_plan(port):
    hospitals.write_plan(superlink=f"127.0.0.1:{port}", testing_seed=None)


def change_plan(old, new):
    path = pathlib.Path("plan.toml")
    path.write_text(path.read_text("utf-8").replace(old, new), "utf-8")


def check_refused(result, message):
    code, _, err = result
    assert code == 2
    assert message in err
    assert len(err.strip().splitlines()) == 1


def test_without_the_extra_a_plan_says_what_to_install(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "flwr", None)
    write_plan(1)
    what = "needs flwr: pip install 'steadytree[federated]'"
    check_refused(run("coordinate", "plan.toml"), what)
    join = ("holder", "join", "--keys", "k", "--superlink", "a:1", "--socket", "s")
    check_refused(run(*join), what)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    for name in [name for name in sys.modules if name.startswith("cryptography.")]:
        monkeypatch.setitem(sys.modules, name, None)
    check_refused(run("keys", "plan.toml"), "needs cryptography: pip install 'steadytree[private]'")
    assert not pathlib.Path("keys").exists()


@pytest.mark.parametrize("name", KEYS)
def test_a_missing_key_is_named(ready, name):
    pathlib.Path("keys/coordinator", name).unlink()
    check_refused(ready("coordinate", "plan.toml"), f"{name}' is missing")


def test_a_port_in_use_is_told(ready):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        write_plan(other.getsockname()[1])
        check_refused(ready("coordinate", "plan.toml"), "another program uses the port")


def test_an_address_of_another_machine_is_told(ready):
    change_plan("127.0.0.1", "192.0.2.1")
    check_refused(ready("coordinate", "plan.toml"), "not of this machine")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("epsilon", "minimum = 4\nepsilon", "only 3 holders"),
        ('"tree.json"', '"no/tree.json"', "make its folder first"),
        ("study", "checkpoint = 'schema.toml'\nstudy", "which the plan's schema reads"),
        ("study", "checkpoint = 'other.toml'\nstudy", "is not a checkpoint"),
    ],
)
def test_a_wrong_plan_is_told_before_anything_starts(ready, old, new, message):
    pathlib.Path("other.toml").write_text("other = 1\n", "utf-8")
    change_plan(old, new)
    check_refused(ready("coordinate", "plan.toml"), message)


def test_a_checkpoint_of_another_study_is_told(ready):
    text = '{"steadytree checkpoint": 1, "plan": "of another", "rounds": {}}'
    pathlib.Path("hospitals.checkpoint.json").write_text(text, "utf-8")
    check_refused(ready("coordinate", "plan.toml"), "is of another study")


def test_joining_needs_keys_and_a_free_port(ready):
    join = ("holder", "join", "--superlink", "127.0.0.1:1", "--socket", "s", "--keys", "north")
    check_refused(ready(*join), "ca.crt' is missing")
    pathlib.Path("north").mkdir()
    for name in ("ca.crt", "node.key"):
        pathlib.Path("north", name).touch()
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        check_refused(ready(*join, "--port", port), f"port {port} is in use")
