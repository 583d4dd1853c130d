"""A Flower SuperNode that is restarted when Flower refuses it or it is killed."""

import json
import logging
import os
import signal
import subprocess
import threading
from pathlib import Path

from steadytree._base.clock import CLOCK, Limit
from steadytree._base.exceptions import MessageError
from steadytree._base.optional import require
from steadytree.federated.flower import superlink as flower
from steadytree.federated.framing import VERSION, Refusal, carry, read, refusal_in, write

PAUSE = 5.0  # seconds before a restart
POLL = 0.2  # seconds between checks
WAITING = 120.0  # seconds for a gateway to start
ASKING = 70.0  # seconds for the gateway's reply, which its pace may delay
_LOG = logging.getLogger(__name__)


class SuperNode:
    """Runs `flower-supernode`, and restarts it until stopped.

    A SuperNode whose key is not registered yet is refused and ends; one that was killed is not
    admitted again for about a minute. `keys` is the holder's folder with ``ca.crt`` and
    ``node.key``, `superlink` the coordinator's address (host:port), `gateway` the socket of the
    holder's gateway, `port` a free port of this machine for Flower; 0 takes any.
    """

    def __init__(self, keys: Path, superlink: str, gateway: Path, port: int = 0) -> None:
        require("flwr", extra="federated", purpose="joining a study")
        if (keys / "sign.key").exists():
            raise ValueError(
                f"{str(keys)!r} holds the key that signs answers, and the relay runs code that "
                f"Flower ships: move ca.crt and node.key to a folder of its own, such as "
                f"{str(keys / 'relay')!r}, and name that."
            )
        for name in ("ca.crt", "node.key"):
            if not (keys / name).is_file():
                raise FileNotFoundError(
                    f"the key {str(keys / name)!r} is missing: ca.crt comes from the "
                    "coordinator, `steadytree private keys --holder` makes node.key."
                )
        port = port or flower.free_port()
        in_use = f"port {port} is in use: name another with --port."
        flower.check_address((flower.LOCAL, port), in_use)
        self._command = [
            *(flower.script("flower-supernode"), "--superlink", superlink),
            *("--root-certificates", str(keys / "ca.crt")),
            *("--auth-supernode-private-key", str(keys / "node.key")),
            *("--host", flower.LOCAL, "--port", str(port)),
            *("--node-config", f"gateway={json.dumps(str(gateway.resolve()))}"),
        ]
        self._environment = flower.environment(plain_environment(), keys.resolve() / "flwr")
        self._stopping = threading.Event()

    def run(self) -> None:
        """Keep the node running until `stop` is called."""
        while not self._stopping.is_set():
            how = (subprocess.DEVNULL, self._environment)
            process = flower.start_supervised(self._command, *how)
            _LOG.info("node started")
            try:
                while process.poll() is None and not self._stopping.is_set():
                    self._stopping.wait(POLL)
            finally:
                flower.end_process(process)
            if not self._stopping.is_set():
                _LOG.info("node ended, will be started again")
                self._stopping.wait(PAUSE)

    def stop(self, *_: object) -> None:
        self._stopping.set()

    def stop_on_signals(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self.stop)


def plain_environment() -> dict[str, str]:
    """The part of this environment that a process with shipped code may see."""
    kept = {"HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "PYTHONPATH"}
    return {k: v for k, v in os.environ.items() if k in kept or k.startswith("FLWR_")}


def check_gateway(gateway: Path, same_user: bool = False, seconds: float = WAITING) -> None:
    """Refuse a gateway that code shipped by Flower could bypass, or that answers unsigned messages.

    With `same_user`, for trials, such code may run as the user who owns the rows. `seconds` is
    the time to wait for a gateway that is being started.
    """
    hello = write({"version": VERSION, "type": "hello", "study": "join", "epsilon": 0})
    limit, reply = Limit(seconds), None
    while reply is None:
        try:
            reply = read(carry(str(gateway), hello, ASKING))
        except (OSError, MessageError):
            if limit.left == 0:
                message = f"no gateway serves at {str(gateway)!r}: start it first."
                raise ValueError(message) from None
            CLOCK.sleep(POLL)
    if gateway.stat().st_uid == os.getuid() and not same_user:
        raise ValueError(
            "join must run as another user than the gateway, since Flower lets the coordinator "
            "ship code; for a trial without real rows add --same-user."
        )
    if refusal_in(reply) != Refusal.UNSIGNED:
        raise ValueError(
            "the gateway answers unsigned messages: start it with --coordinator-key "
            "coordinator.sign.pub before it is opened to Flower."
        )
