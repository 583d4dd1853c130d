"""A Flower SuperLink for one study, behind a proxy that admits calls of SuperNodes only.

Flower serves the calls of SuperNodes, which it authenticates, and calls that start runs and
register nodes, which it does not, at one address. So Flower listens at a local address, and the
proxy at the public one.
"""

import contextlib
import http.client
import json
import logging
import os
import re
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from steadytree._base.clock import CLOCK, Limit
from steadytree._base.optional import require
from steadytree.federated.study import StudyConfig

ALLOWED = re.compile(r"/v1/fleet/[a-z-]+")
LARGEST = 80 * 2**20  # bytes of a call
SMALL = 2**16
PATIENCE = 120.0  # seconds
DROPPED = frozenset(["connection", "host", "keep-alive", "transfer-encoding", "content-length"])
_LOG = logging.getLogger(__name__)


class Proxy(ThreadingHTTPServer):
    """Listens with TLS at `address` and passes calls of SuperNodes to Flower at `inner`.

    A context manager; `keys` is the coordinator's folder with server.pem, server.key and ca.crt.
    """

    def __init__(self, address: tuple[str, int], inner: tuple[str, int], keys: Path) -> None:
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.load_cert_chain(keys / "server.pem", keys / "server.key")
        self.inner = (*inner, ssl.create_default_context(cafile=str(keys / "ca.crt")))
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, _Caller)

    def __enter__(self) -> "Proxy":
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    def finish_request(self, request: Any, client_address: Any) -> None:
        """The TLS handshake in the caller's own thread, so that a slow one delays nobody."""
        request.settimeout(PATIENCE)
        with self._tls.wrap_socket(request, server_side=True) as wrapped:
            super().finish_request(wrapped, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        _LOG.info("a call was broken off")


class _Caller(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = PATIENCE
    server: Proxy

    def do_POST(self) -> None:
        text = self.headers.get("content-length", "")
        size = int(text) if text.isdecimal() and len(text) < 12 else LARGEST + 1
        if not ALLOWED.fullmatch(self.path):
            self._refuse(403, size)
        elif size > LARGEST or "transfer-encoding" in self.headers:
            self._refuse(413, size)
        else:
            self._pass_on(self.rfile.read(size))

    def _refuse(self, status: int, size: int) -> None:
        self.close_connection = True
        if size <= SMALL:  # otherwise the caller sees a broken connection, and retries
            self.rfile.read(size)
        self.send_error(status)

    def _pass_on(self, body: bytes) -> None:
        host, port, tls = self.server.inner
        headers = {k: v for k, v in self.headers.items() if k.lower() not in DROPPED}
        inner = http.client.HTTPSConnection(host, port, timeout=PATIENCE, context=tls)
        try:
            inner.request("POST", self.path, body, headers)
            reply = inner.getresponse()
            content = reply.read()
        except OSError:
            self.close_connection = True
            self.send_error(502)
            return
        finally:
            inner.close()
        self.send_response(reply.status)
        for name, value in reply.getheaders():
            if name.lower() not in DROPPED | {"date", "server"}:
                self.send_header(name, value)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: Any) -> None:
        _LOG.debug(format, *arguments)


LOCAL = "127.0.0.1"
STARTING, STOPPING, CALLING = 90.0, 20.0, 60.0  # seconds
QUIET = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
}
# Flower ships this to holders: two lines that call what each holder has installed itself.
APP = {
    "pyproject.toml": """[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "steadytree-study"
version = "1.0.0"
description = "Relays messages of a study to the holder's own gateway."
license = "BSD-3-Clause"
dependencies = []

[tool.flwr.app]
publisher = "steadytree"

[tool.flwr.app.components]
serverapp = "steadytree_study.server_app:app"
clientapp = "steadytree_study.client_app:app"

[tool.flwr.app.config]
plan = ""
nodes = ""
""",
    "steadytree_study/__init__.py": "",
    **{
        f"steadytree_study/{side}_app.py": (
            f"from steadytree.federated.flower.transport import make_{side}_app\n\n"
            f"app = make_{side}_app()\n"
        )
        for side in ("server", "client")
    },
}


def check_ready(config: StudyConfig) -> None:
    """Refuse a study whose keys are missing or whose port is in use, before anything is started."""
    require("flwr", extra="federated", purpose="coordinating a study")
    keys = config.keys / "coordinator"
    wanted = [keys / name for name in ("ca.crt", "server.pem", "server.key", "sign.key")]
    wanted += [keys / f"{name}.node.pub" for name in config.holders]
    for path in wanted:
        if not path.is_file():
            message = f"the key {str(path)!r} is missing: make it with `steadytree private keys`."
            raise FileNotFoundError(message)
    host, _, port = config.superlink.rpartition(":")
    check_address(
        (host.strip("[]"), int(port)),
        f"cannot listen at {config.superlink}: another program uses the port, or the address is "
        "not of this machine. Stop that program or change `superlink`.",
    )


def check_address(address: tuple[str, int], message: str) -> None:
    """Refuse an address that another program uses, or that is not of this machine."""
    with socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(address)
        except OSError:
            raise ValueError(message) from None


class SuperLink:
    """Flower's SuperLink as a process (a context manager); its files and logs are in `folder`."""

    def __init__(self, config: StudyConfig, plan_path: Path, folder: Path) -> None:
        self._config, self._plan_path, self._folder = config, plan_path.resolve(), folder
        self._keys = config.keys / "coordinator"
        self._environment = environment(os.environ, folder / "flwr")
        self.log = folder / "superlink.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._inner, self._proxy = 0, contextlib.ExitStack()

    def __enter__(self) -> "SuperLink":
        # Flower lets anybody who reaches it start runs: the proxy passes calls of SuperNodes only
        self._inner = free_port()
        self._write_files()
        command = [
            *(script("flower-superlink"), "--host", LOCAL, "--port", str(self._inner)),
            *("--ssl-ca-certfile", str(self._keys / "ca.crt")),
            *("--ssl-certfile", str(self._keys / "server.pem")),
            *("--ssl-keyfile", str(self._keys / "server.key")),
            *("--enable-supernode-auth", "--disable-runtime-dependency-installation"),
        ]
        with self.log.open("ab") as log:
            self._process = start_supervised(command, log, self._environment, self._folder)
        try:
            self._wait()
            host, _, port = self._config.superlink.rpartition(":")
            address, inner = (host.strip("[]"), int(port)), (LOCAL, self._inner)
            self._proxy.enter_context(Proxy(address, inner, self._keys))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._proxy.close()
        if self._process is not None:
            end_process(self._process)
            self._process = None

    def register(self) -> dict[str, int]:
        """Register the holders' keys; node ids by holder."""
        found = {}
        for name in self._config.holders:
            key = self._keys / f"{name}.node.pub"
            known = self._call("supernode", "register", str(key), "study", "--name", name)
            found[name] = int(known["node-id"])
        return found

    def run(self, nodes: dict[str, int]) -> str:
        """Start the study; returns Flower's id of the run."""
        config = self._folder / "run.toml"
        values = {"plan": str(self._plan_path), "nodes": json.dumps(nodes)}
        lines = "".join(f"{k} = {json.dumps(v)}\n" for k, v in values.items())
        config.write_text(lines, encoding="utf-8")
        app = str(self._folder / "app")
        return str(self._call("run", app, "study", "--run-config", str(config))["run-id"])

    def status(self, run: str) -> str:
        """Flower's status of a run: 'running', 'finished:completed', ..."""
        runs = self._call("list", "study", "--run-id", run).get("runs") or [{}]
        return str(runs[0].get("status", ""))

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def _write_files(self) -> None:
        for name, content in APP.items():
            path = self._folder / "app" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
        home = self._folder / "flwr"
        home.mkdir(exist_ok=True)
        certificate = json.dumps(str(self._keys / "ca.crt"))
        (home / "config.toml").write_text(
            f"[superlink]\ndefault = 'study'\n\n[superlink.study]\n"
            f'address = "{LOCAL}:{self._inner}"\nroot-certificates = {certificate}\n',
            encoding="utf-8",
        )

    def _wait(self) -> None:
        limit = Limit(STARTING)
        while limit.left > 0:
            if not self.is_alive:
                raise OSError(f"the SuperLink did not start: see {str(self.log)!r}.")
            address = (LOCAL, self._inner)
            with contextlib.suppress(OSError), socket.create_connection(address, timeout=1):
                return
            CLOCK.sleep(0.1)
        raise OSError(f"the SuperLink did not start in {STARTING:g} s: see {str(self.log)!r}.")

    def _call(self, *arguments: str) -> dict[str, Any]:
        command = [script("flwr"), *arguments, "--format", "json"]
        how: dict[str, Any] = {"env": self._environment, "cwd": self._folder, "timeout": CALLING}
        done = subprocess.run(command, capture_output=True, text=True, **how)
        text = done.stdout
        with contextlib.suppress(ValueError):
            found = json.loads(text[text.index("{") : text.rindex("}") + 1])
            if found.get("success") is not False:
                return dict(found)
        with self.log.open("a", encoding="utf-8") as log:
            log.write(f"{' '.join(command)}\n{text}\n{done.stderr}\n")
        raise OSError(f"Flower refused `flwr {arguments[0]}`: see {str(self.log)!r}.")


def environment(base: Mapping[str, str], home: Path) -> dict[str, str]:
    """What Flower's commands see; they start each other by name."""
    path = str(Path(sys.executable).parent) + os.pathsep + os.environ.get("PATH", "")
    return {**base, **QUIET, "FLWR_HOME": str(home), "PATH": path}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOCAL, 0))
        return int(probe.getsockname()[1])


def script(name: str) -> str:
    beside = Path(sys.executable).with_name(name)
    return str(beside) if beside.exists() else name


def start_supervised(
    command: list[str], log: Any, environment: dict[str, str], folder: Path | None = None
) -> "subprocess.Popen[bytes]":
    """Start a command that ends when this process does, even by kill -9."""
    command = [sys.executable, "-m", "steadytree.federated.flower.supervised_process", *command]
    streams: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": log, "stderr": subprocess.STDOUT}
    # in its own session: Ctrl-C reaches this process, which then ends the command
    how: dict[str, Any] = {"env": environment, "cwd": folder, "start_new_session": True}
    return subprocess.Popen(command, **streams, **how)


def end_process(process: "subprocess.Popen[bytes]") -> None:
    """End a command that `start_supervised` started; kill it if it does not stop."""
    if process.stdin is not None:
        process.stdin.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(STOPPING)
        return
    process.kill()
    process.wait()
