"""A Flower SuperLink for one study, behind a proxy that admits calls of SuperNodes only."""

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from steadytree._base.clock import CLOCK, Limit
from steadytree._base.optional import require
from steadytree.federated.flower.proxy import Proxy
from steadytree.federated.study import StudyConfig

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
            self._proxy.enter_context(Proxy(address, inner, self._keys, self._config.holders))
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
