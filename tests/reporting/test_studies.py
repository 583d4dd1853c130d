"""The studies of papers: a run that was killed goes on where it was, and comes to the same end."""

import contextlib
import csv
import importlib
import json
import os
import signal
import subprocess
import sys

import pytest

from steadytree.cli import reproduce
from steadytree.reporting.study import Results

# few and small cells of each study, which need no data folder; the file that holds them; what draws
SMALL = {
    "average_sensitivity": (
        "--quick --parts figures --samples 1 --seeds 1 --repeats 2 --removed 1",
        "results.jsonl",
        "show",
    ),
    "robust_optimal": (
        "--quick proofs --depths 2 --confidences 0.85 0.95",
        "cells.jsonl",
        "figures",
    ),
    "separation": ("--parts methods --methods RobDT --splits 1", "results.jsonl", "show"),
    "tree_distance": ("--quick shallow regulariser", "results.jsonl", "four_trees"),
    "private_distributed": (
        "--quick --figures 2 --methods topdown cart",
        "runs.csv",
        "draw_all",
    ),
}


class Killed(BaseException):
    """Stands for the end of the process."""


@contextlib.contextmanager
def loaded(name):
    """The run.py of a study, whose modules import each other by plain names."""
    folder = reproduce._studies()[name].parent
    names = ["shared", *(path.stem for path in folder.glob("*.py"))]
    before, paths = {own: sys.modules.pop(own, None) for own in names}, list(sys.path)
    sys.path.insert(0, str(folder))
    try:
        yield importlib.import_module("run")
    finally:
        sys.path[:] = paths
        for own, module in before.items():
            sys.modules.pop(own, None)
            if module is not None:
                sys.modules[own] = module


def cells(path):
    """Finished cells without their seconds."""
    if path.suffix == ".csv":
        found = list(csv.DictReader(path.read_text("utf-8").splitlines()))
    else:
        found = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    for cell in found:
        cell.pop("seconds", None)
        if "text" in cell:  # ends in a line with seconds
            cell["text"] = cell["text"].splitlines()[:-1]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_a_study_that_was_killed_goes_on_and_comes_to_the_same_end(name, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.delenv("STEADYTREE_DATA", raising=False)
    options, file, picture = SMALL[name]
    with loaded(name) as run:
        monkeypatch.setattr(run, picture, lambda *_: None)
        if name == "tree_distance":
            monkeypatch.setitem(run.QUICK, "shallow", {"n_splits": 1, "n_trees": 4})
            monkeypatch.setitem(run.shallow.GRID, "min_samples_leaf", [5])
        kept = run.Runs if file == "runs.csv" else Results
        add = kept.add

        def main(folder, most=None):
            added = []

            def counted(self, *cell):
                add(self, *cell)
                added.append(cell)
                if len(added) == most:
                    raise Killed

            monkeypatch.setattr(kept, "add", counted)
            with contextlib.suppress(Killed):
                run.main([*options.split(), "--out", str(folder)])
            return len(added)

        n_whole = main(tmp_path / "whole")
        assert main(tmp_path / "killed", 1) == 1
        first = (tmp_path / "killed" / file).read_text("utf-8")
        assert main(tmp_path / "killed") == n_whole - 1 > 0
        assert (tmp_path / "killed" / file).read_text("utf-8").startswith(first)
        assert main(tmp_path / "killed") == 0
    whole, resumed = (cells(tmp_path / part / file) for part in ("whole", "killed"))
    assert resumed == whole


@pytest.mark.slow
def test_a_line_that_a_killed_run_left_unfinished_is_measured_again(tmp_path, monkeypatch):
    """A true kill while fits are written line by line, and the worst that it could leave."""
    monkeypatch.delenv("STEADYTREE_DATA", raising=False)
    file = tmp_path / "runs.csv"
    options = ["--quick", "--figures", "2", "--methods", "topdown", "--out", str(tmp_path)]
    command = [sys.executable, str(reproduce._studies()["private_distributed"]), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        running.stderr.readline()  # told after the first fit was written
        os.kill(running.pid, signal.SIGKILL)
    before = file.read_text("utf-8").splitlines()
    assert len(before) >= 2
    file.write_text("\n".join(before) + "\n2,breast-cancer,topdown,8.0,1,1.0,0,9", "utf-8")
    with loaded("private_distributed") as run:
        monkeypatch.setattr(run, "draw_all", lambda *_: None)
        run.main(options)
    lines = file.read_text("utf-8").splitlines()
    assert lines[: len(before)] == before
    assert len(lines) == 1 + 6
    assert {len(line.split(",")) for line in lines} == {12}
