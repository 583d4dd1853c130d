"""Run us and a peer side by side and print CPU-time ratios.

Each run is a process of its own. The order alternates from repeat to repeat, so that a machine
that slows down or warms up favours nobody. The ratio is taken within a repeat; its median and
its range over the repeats are printed.
"""

import json
import pathlib
import statistics
import subprocess
import tempfile
from dataclasses import dataclass

import numpy as np
from environment import python_for

WORKER = pathlib.Path(__file__).parent / "worker.py"


@dataclass(frozen=True)
class Contender:
    """Something to measure: `function`, in the calling script, returns a task(X, y).

    With requirements it runs in an environment of its own that has these and numpy.
    """

    name: str
    function: str
    requirements: tuple[str, ...] = ()


@dataclass(frozen=True)
class Case:
    """Data to measure on: `make()` returns X and y."""

    name: str
    make: object
    repeats: int = 5


@dataclass(frozen=True)
class Runs:
    """What was measured of one contender on one case, repeat by repeat."""

    contender: Contender
    seconds: list[float]
    bytes: list[int]


def compare(script, contenders, cases):
    """Measure all contenders on all cases and print a table per case.

    The last contender is the one the others are divided by. Returns the runs by case and
    contender name.
    """
    measured = {}
    for case in cases:
        X, y = case.make()
        with tempfile.TemporaryDirectory() as folder:
            np.save(pathlib.Path(folder) / "X.npy", X)
            np.save(pathlib.Path(folder) / "y.npy", y)
            shape, size = X.shape, X.nbytes
            del X, y
            runs = _alternate(script, contenders, folder, case.repeats)
        print(table(f"{case.name}: {shape[0]:,} x {shape[1]}", runs, size), flush=True)
        measured[case.name] = {run.contender.name: run for run in runs}
    return measured


def _alternate(script, contenders, folder, repeats):
    results = {contender: [] for contender in contenders}
    for repeat in range(repeats):
        for contender in contenders[:: 1 if repeat % 2 == 0 else -1]:
            results[contender].append(_run(script, contender, folder))
    return [
        Runs(contender, [run["seconds"] for run in runs], [run["bytes"] for run in runs])
        for contender, runs in results.items()
    ]


def _run(script, contender, folder):
    python = python_for(contender.name, contender.requirements)
    command = [python, str(WORKER), str(script), contender.function, str(folder)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def table(title, runs, input_bytes):
    """Lay out the runs of one case as aligned text."""
    peer = runs[-1]
    lines = [("", "CPU time", "range", f"ratio to {peer.contender.name}", "range", "memory/input")]
    for run in runs:
        ratios = [ours / theirs for ours, theirs in zip(run.seconds, peer.seconds, strict=True)]
        memory = f"{max(run.bytes) / input_bytes:.2f}"
        lines.append((run.contender.name, *_spread(run.seconds, _time), *_spread(ratios), memory))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rows = ["  ".join(map(str.rjust, line, widths)).rstrip() for line in lines]
    return "\n".join([title, *rows, ""])


def _spread(values, show="{:.3f}".format):
    return show(statistics.median(values)), f"{show(min(values))} .. {show(max(values))}"


def _time(seconds):
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.2f} ms"
