"""The audit of work, small; `studies/three_hospitals/work.py` runs it at full size."""

import importlib.util
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from steadytree.federated import holder
from steadytree.privacy import padding

pytest.importorskip("cryptography")
SCRIPT = pathlib.Path(__file__).parents[2] / "studies" / "three_hospitals" / "work.py"


@pytest.fixture(scope="module")
def work():
    spec = importlib.util.spec_from_file_location("work", SCRIPT)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_neighbours_are_answered_by_the_same_work(work):
    numbers, faults = work.run_audit(50, seed=3)
    assert faults == []
    assert numbers["answered secure sum"] >= 4
    assert sum(n for name, n in numbers.items() if name.startswith("answered")) > 30


def test_loops_run_the_same_lines_for_neighbours():
    how = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, str(SCRIPT), "--requests", "15", "--seed", "1"]
    done = subprocess.run(command, env=how, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "differences: 0" in done.stdout


def empty_costs_less(self, inside, whole=padding.Padding.class_counts):
    """A shortcut for parts without a row."""
    return whole(self, inside) if inside.any() else np.zeros(self.price.n_classes, np.int64)


def counts_of_rows(self, inside, whole=padding.Padding.bin_counts):
    """A loop over the rows of a part instead of over all."""
    taken = np.flatnonzero(inside)
    nodes = np.zeros(len(taken), np.int32)
    shape = (1, self._candidates.space.bin_offsets, self.price.n_classes)
    return padding.count_classes(self._binned[:, taken], self._labels[taken], nodes, *shape)[0]


@pytest.mark.parametrize(
    ("place", "name", "fault", "expected"),
    [
        (padding.Padding, "class_counts", empty_costs_less, "work counted differ"),
        (padding.Padding, "bin_counts", counts_of_rows, "compiled loops got other sizes"),
    ],
)
def test_a_shortcut_is_found(work, monkeypatch, place, name, fault, expected):
    monkeypatch.setattr(place, name, fault)
    faults = work.run_audit(25, seed=3)[1]
    assert expected in {what for _, _, what in faults}


def test_noise_that_depends_on_rows_is_found(work, monkeypatch):
    def skips_empty(counts, epsilon, noise, sensitivity=1, whole=holder.release_counts):
        counts = np.asarray(counts)
        counts[counts > 0] = whole(counts[counts > 0], epsilon, noise, sensitivity)
        return counts

    monkeypatch.setattr(holder, "release_counts", skips_empty)
    faults = work.run_audit(25, seed=3)[1]
    assert {"noise differ", "replies differ"} <= {what for _, _, what in faults}
