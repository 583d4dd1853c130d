"""One measured run: load the data, warm up, then measure CPU time and peak memory of a task.

Runs in a process of its own, in the environment of the contender, so it needs numpy only.
"""

import importlib.util
import json
import pathlib
import resource
import sys
import time

import numpy as np

WARM_UP_ROWS = 200
ENOUGH_SECONDS = 0.3  # shorter tasks are repeated until they have taken this long


def cpu_seconds():
    """User and system time of this process, its threads and its finished children."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


class PeakMemory:
    """Bytes of memory in use at most within a `with` block, beyond those in use before it."""

    def __enter__(self):
        pathlib.Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
        self._before = _status("VmRSS")
        return self

    def __exit__(self, *error):
        self.bytes = max(0, _status("VmHWM") - self._before)


def _status(field):
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"the system does not say {field}: memory is measured on Linux only")


def seconds_of_calls(task, X, y, at_least):
    """CPU seconds of one call, the mean over calls that together take `at_least` seconds."""
    calls, start = 0, cpu_seconds()
    while calls == 0 or cpu_seconds() - start < at_least:
        task(X, y)
        calls += 1
    return (cpu_seconds() - start) / calls


def load_function(script, name):
    """Fetch a function by name from a script given by its path."""
    spec = importlib.util.spec_from_file_location("bench", script)
    bench = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bench)
    return getattr(bench, name)


def measure(script, name, folder):
    """Run one task on the data in a folder; return seconds and bytes."""
    X, y = (np.load(pathlib.Path(folder) / f"{part}.npy") for part in "Xy")
    task = load_function(script, name)()
    task(X[:WARM_UP_ROWS], y[:WARM_UP_ROWS])  # imports and compiles whatever it needs
    with PeakMemory() as peak:
        seconds = seconds_of_calls(task, X, y, at_least=0)
    if seconds < ENOUGH_SECONDS:
        seconds = seconds_of_calls(task, X, y, at_least=ENOUGH_SECONDS)
    return {"seconds": seconds, "bytes": peak.bytes}


if __name__ == "__main__":
    json.dump(measure(*sys.argv[1:]), sys.stdout)
