"""CPU time of a full report on a frame with text, of this version and of an older one.

Both versions run in processes of their own, in turn, each with one thread; the least time of
each counts. ``python benchmarks/report_reading.py --old path/to/older/checkout``
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
MEASURE = """
import time
import numpy as np, pandas as pd
import steadytree as st

def frame(seed, n={rows}):
    rng = np.random.default_rng(seed)
    words = np.array(["red", "green", "blue", "grey", "amber", "white"], dtype=object)
    columns = {{f"n{{j}}": rng.normal(size=n) for j in range(4)}}
    columns |= {{f"t{{j}}": words[rng.integers(0, 6, n)] for j in range(8)}}
    X = pd.DataFrame(columns)
    y = ((X.n0 > 0) ^ (X.t0 == "red")).to_numpy() ^ (rng.random(n) < 0.1)
    return X, y.astype(int)

train, test = frame(0), frame(1)
model = st.StableTreeClassifier(max_depth=4, random_state=0).fit(*train)
st.report(model, *test, train=train)  # loads and compiles
start = time.process_time()
st.report(model, *test, train=train)
print(time.process_time() - start)
"""


def measure(checkout: Path, rows: int) -> float:
    """CPU seconds of one report of the version in a checkout."""
    environment = os.environ | ONE_THREAD | {"PYTHONPATH": str(checkout / "src")}
    command = [sys.executable, "-c", MEASURE.format(rows=rows)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return float(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--old", type=Path, required=True, help="checkout of the older version")
    parser.add_argument("--rows", type=int, default=5_000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    times = {options.old: [], HERE: []}
    for _ in range(options.repeats):
        for checkout, found in times.items():
            found.append(measure(checkout, options.rows))
    old, new = (min(found) for found in times.values())
    print(f"old {old:.2f} s, new {new:.2f} s, ratio {new / old:.2f}")


if __name__ == "__main__":
    main()
