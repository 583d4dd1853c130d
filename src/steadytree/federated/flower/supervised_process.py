"""Run a command until the process that started it ends (``python -m`` this module).

Its standard input is a pipe from the parent. When the parent ends, however it ends, the pipe
closes, and the command and its children are terminated too.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time

GRACE = 10.0  # seconds between SIGTERM and SIGKILL
KILL = getattr(signal, "SIGKILL", signal.SIGTERM)  # Windows has no other


def supervise(command: list[str]) -> int:
    """Run a command until it ends or standard input closes; its exit code."""
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: _signal(child, signal.SIGTERM))
    threading.Thread(target=_watch, args=(child,), daemon=True).start()
    status = child.wait()
    _signal(child, KILL)  # children that outlive it
    return status if status >= 0 else 128 - status


def _watch(child: "subprocess.Popen[bytes]") -> None:
    while os.read(sys.stdin.fileno(), 1):
        pass
    _signal(child, signal.SIGTERM)
    time.sleep(GRACE)
    _signal(child, KILL)


def _signal(child: "subprocess.Popen[bytes]", number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(child.pid, number)
        else:
            child.terminate()


if __name__ == "__main__":
    sys.exit(supervise(sys.argv[1:]))
