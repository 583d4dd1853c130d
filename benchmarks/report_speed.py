"""CPU time of the command `steadytree report` on 5,000 rows of 23 columns, when all is compiled.

Each run is a process of its own with one thread; the least of the runs counts.
``python benchmarks/report_speed.py``
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parents[1]
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
COMMANDS = {"full": (), "quick": ("--quick",)}


def write_rows(path: Path, n_rows: int, n_columns: int) -> None:
    """Amounts, counts and a few kinds of text, as lenders have them."""
    random = np.random.default_rng(0)
    numbers = np.exp(random.normal(size=(n_rows, n_columns - 3))).round(3)
    texts = random.choice(["own", "rent", "other"], (n_rows, 3))
    chance = 1 / (1 + np.exp(3 - numbers[:, 0] - numbers[:, 1] + (texts[:, 0] == "own")))
    target = np.where(random.random(n_rows) < chance, "bad", "good")
    names = [*(f"amount{k}" for k in range(n_columns - 3)), "home", "job", "region", "outcome"]
    lines = [names, *(map(str, row) for row in np.column_stack([numbers, texts, target]))]
    path.write_text("\n".join(",".join(line) for line in lines) + "\n")


def cpu_seconds(command: list[str], folder: str) -> float:
    """CPU time of a process, that of its children included."""
    environment = os.environ | ONE_THREAD | {"PYTHONPATH": str(HERE / "src")}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, cwd=folder, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000)
    parser.add_argument("--columns", type=int, default=23)
    parser.add_argument("--repeats", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write_rows(Path(folder) / "rows.csv", options.rows, options.columns)
        for name, more in COMMANDS.items():
            command = [sys.executable, "-m", "steadytree", "report", "rows.csv"]
            command += ["--target", "outcome", *more]
            cpu_seconds(command, folder)  # compiles what is not yet compiled
            least = min(cpu_seconds(command, folder) for _ in range(options.repeats))
            print(f"{name}: {least:.1f} CPU s", flush=True)


if __name__ == "__main__":
    main()
