"""A SuperNode of Flower kept running: Flower's own ends where it is refused, or is killed."""

import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

from steadytree._base.clock import CLOCK, Limit
from steadytree._base.optional import require
from steadytree.federated.flower.superlink import (
    QUIET,
    end_process,
    free_port,
    script,
    start_on_leash,
)
from steadytree.federated.framing import (
    VERSION,
    MessageError,
    Refusal,
    carry,
    read,
    refusal_code,
    write,
)

PAUSE = 5.0  # seconds before starting anew
LOOK = 0.2
WAITING = 120.0
ASKING = 70.0  # seconds for the gateway's own reply, which its pace may hold back
_LOG = logging.getLogger(__name__)


class SuperNode:
    """Runs `flower-supernode` again and again until stopped.

    A SuperNode whose key is not registered yet is refused and ends; one that was killed is not
    let in again for about a minute. Both are a matter of trying again.

    Parameters
    ----------
    keys : Path
        The holder's folder of keys: ``ca.crt`` and ``node.key``.
    superlink : str
        The coordinator's address, host:port.
    gateway : Path
        Socket of the holder's gateway.
    port : int
        A free port of this machine, for Flower's own use; 0 takes any.
    """

    def __init__(self, keys: Path, superlink: str, gateway: Path, port: int = 0) -> None:
        require("flwr", extra="federated", purpose="joining a study")
        for name in ("ca.crt", "node.key"):
            if not (keys / name).is_file():
                raise FileNotFoundError(
                    f"the key {str(keys / name)!r} is missing: ca.crt comes from the "
                    "coordinator, `steadytree private keys --holder` makes node.key."
                )
        self._port = port or free_port()
        check_port(self._port)
        self._command = [
            *(script("flower-supernode"), "--superlink", superlink),
            *("--root-certificates", str(keys / "ca.crt")),
            *("--auth-supernode-private-key", str(keys / "node.key")),
            *("--host", "127.0.0.1", "--port", str(self._port)),
            *("--node-config", f"gateway={json.dumps(str(gateway.resolve()))}"),
        ]
        home = keys.resolve() / "flwr"
        path = str(Path(sys.executable).parent) + os.pathsep + os.environ.get("PATH", "")
        self._environment = {**plain_environment(), **QUIET, "FLWR_HOME": str(home), "PATH": path}
        self._stopping = threading.Event()

    def run(self) -> None:
        """Keep the node running; returns after `stop`."""
        while not self._stopping.is_set():
            process = start_on_leash(self._command, subprocess.DEVNULL, self._environment)
            _LOG.info("node started")
            try:
                while process.poll() is None and not self._stopping.is_set():
                    self._stopping.wait(LOOK)
            finally:
                end_process(process)
            if not self._stopping.is_set():
                _LOG.info("node ended, will be started again")
                self._stopping.wait(PAUSE)

    def stop(self, *_: object) -> None:
        """Make `run` return."""
        self._stopping.set()

    def stop_on_signals(self) -> None:
        """SIGTERM and Ctrl-C end the node cleanly."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self.stop)


def plain_environment() -> dict[str, str]:
    """What a process that runs shipped code may know of this one's environment."""
    kept = {"HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "PYTHONPATH"}
    return {k: v for k, v in os.environ.items() if k in kept or k.startswith("FLWR_")}


def check_gateway(gateway: Path, same_user: bool = False, seconds: float = WAITING) -> None:
    """Refuse to open a gateway to Flower that shipped code could get round, or that trusts it.

    Parameters
    ----------
    gateway : Path
        The socket.
    same_user : bool, default=False
        For trials: let code that Flower ships run as the user who has the rows.
    seconds : float
        How long to wait for a gateway that is being started.
    """
    known = _ask_unsigned(gateway, seconds)
    if gateway.stat().st_uid == os.getuid() and not same_user:
        raise ValueError(
            "join must run as another user than the gateway, since Flower lets the coordinator "
            "ship code; for a trial without real rows add --same-user."
        )
    if refusal_code(known) != Refusal.UNSIGNED:
        raise ValueError(
            "the gateway answers letters that nobody signed: start it with --coordinator-key "
            "coordinator.sign.pub before it is opened to Flower."
        )


def _ask_unsigned(gateway: Path, seconds: float) -> dict[str, object]:
    """What the gateway says to a letter that nobody signed."""
    hello = write({"version": VERSION, "type": "hello", "study": "join", "epsilon": 0})
    limit = Limit(seconds)
    while True:
        try:
            return read(carry(str(gateway), hello, ASKING))
        except (OSError, MessageError):
            if limit.left == 0:
                break
            CLOCK.sleep(LOOK)
    raise ValueError(f"no gateway serves at {str(gateway)!r}: start it first.")


def check_port(port: int) -> None:
    """Refuse a port that another program uses."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            raise ValueError(f"port {port} is in use: name another with --port.") from None
