"""GatewayServer: a socket for its owner only, and the command that serves it."""

import pathlib
import socket
import stat
import threading

import pytest

from steadytree.federated import framing, transport
from steadytree.federated.framing import carry, read
from steadytree.federated.transport import GatewayServer
from steadytree.privacy.ledger import Ledger
from tests.federated import hospitals
from tests.federated.hospitals import code_of, gateway_of, message, unix_only

COMMAND = ("private", "holder")


@unix_only
def test_a_socket_that_cannot_be_probed_is_left_alone(gateway, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
        other.bind("g.sock")

        class Busy(socket.socket):
            def connect(self, _):
                raise TimeoutError

        monkeypatch.setattr(transport.socket, "socket", Busy)
        with pytest.raises(ValueError, match="in use or not yours"):
            GatewayServer(gateway, "g.sock")
    assert pathlib.Path("g.sock").exists()


@unix_only
def test_the_socket_is_for_its_owner_only_and_disappears(gateway, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    server = GatewayServer(gateway, "g.sock")
    assert stat.S_IMODE(pathlib.Path("g.sock").stat().st_mode) == 0o600
    thread = threading.Thread(target=server.serve)
    thread.start()
    try:
        assert read(carry("g.sock", hospitals.STATUS, hospitals.PATIENCE))["spent"] == 0
        assert code_of(carry("g.sock", b"hm", hospitals.PATIENCE)) == "MALFORMED"
        with pytest.raises(ValueError, match="serves at"):
            GatewayServer(gateway, "g.sock")
    finally:
        server.stop()
        thread.join(hospitals.PATIENCE)
    assert not pathlib.Path("g.sock").exists()


@unix_only
def test_a_socket_path_is_checked(gateway, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pathlib.Path("file").touch()
    for path, reason in [
        ("file", "not a socket"),
        ("x" * 120, "at most"),
        ("no/a", "folder first"),
    ]:
        with pytest.raises((ValueError, OSError), match=reason):
            GatewayServer(gateway, path)
    with pytest.raises(ValueError, match="no group"):
        GatewayServer(gateway, "g.sock", group="no-such-group")


@pytest.fixture
def run(run, tmp_path):
    """Commands of a holder, in a folder with its rows and schema."""
    hospitals.write_files(tmp_path, ["north"])
    return run


def serve(run, **changed):
    values = {"data": "north.csv", "schema": "schema.toml", "ledger": "l", "budget": 1.0, **changed}
    listed = [part for name, value in values.items() for part in (f"--{name}", value)]
    new = [] if pathlib.Path(values["ledger"]).exists() else ["--new-ledger"]
    return run("serve", *listed, *new)


@unix_only
def test_status_shows_what_is_left(run, tmp_path):
    process = hospitals.start_gateway(tmp_path)
    try:
        hospitals.send(tmp_path, "north", message(epsilon=1.0))
        code, out, _ = run("status", "--socket", "north.sock")
    finally:
        hospitals.stop(process)
    assert code == 0
    assert "spent 1, left 3 of 4" in out
    assert "answered 1 requests" in out
    code, _, err = run("status", "--socket", "north.sock")
    assert code == 2
    assert "no gateway serves" in err


@unix_only
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"target": "nothing"}, "not a column"),
        ({"data": "none.csv"}, "no file"),
        ({"schema": "north.csv"}, "cannot be read as a schema"),
        ({"name": "a b"}, "name must be"),
        ({"budget": -1}, "budget must be"),
        ({"socket": "no/such.sock"}, "folder first"),
    ],
)
def test_wrong_use_is_one_line_and_exit_2(run, tmp_path, changed, message):
    code, _, err = serve(run, **changed)
    assert code == 2
    assert message in err
    assert len(err.strip().splitlines()) == 1


@unix_only
def test_a_ledger_of_another_holder_or_budget_is_refused(run, tmp_path):
    with gateway_of(tmp_path, "north"):
        pass
    code, _, err = serve(run, ledger="north.ledger", budget=4, name="south")
    assert code == 2
    assert "another holder" in err
    code, _, err = serve(run, ledger="north.ledger", budget=5, name="north")
    assert code == 2
    assert "cannot be changed" in err
    with gateway_of(tmp_path, "north"):
        code, _, err = serve(run, ledger="north.ledger", budget=4, name="north")
    assert code == 2
    assert "another gateway" in err
    assert Ledger(tmp_path / "north.ledger", 4.0).spent == 0


@unix_only
def test_a_server_stops_though_a_request_is_being_computed(gateway, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(transport, "GRACE", 0.01)
    begun, done = threading.Event(), threading.Event()

    def hang(*_):
        begun.set()
        done.wait(hospitals.PATIENCE)
        return b"late"

    monkeypatch.setattr(gateway, "reply", hang)
    server = transport.GatewayServer(gateway, "g.sock")
    serving = threading.Thread(target=server.serve)
    serving.start()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        caller.connect("g.sock")
        framing.send_frame(caller, b"{}")
        begun.wait(hospitals.PATIENCE)
        server.stop()
        serving.join(hospitals.PATIENCE)
        assert not serving.is_alive()
        done.set()
