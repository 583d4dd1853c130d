"""How much memory does a fit take at most, beyond the rows that it is given?

Of 2,000 rows of 20,000 columns beside scikit-learn's tree, both of depth 5; and of risk scores, as
multiples of the rows. A first fit of the same kind, which loads and compiles, is not counted.

    python benchmarks/memory.py        # a minute
"""

import json
import subprocess
import sys
import time

import numpy as np
from worker import PeakMemory

RUNS = ("scikit-learn", "steadytree", "risk score", "risk score of votes")


def rows_of(n_rows, n_columns):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_columns))
    signal = X[:, 0] + X[:, 1] * X[:, 2] + rng.standard_normal(n_rows)
    return X, (signal > 0).astype(np.int64)


def learner(name):
    """A contender, and rows and columns of the first fit and of the one that is measured."""
    if name == "scikit-learn":
        from sklearn.tree import DecisionTreeClassifier

        return DecisionTreeClassifier(max_depth=5, random_state=0), (300, 5_000), (2_000, 20_000)
    if name == "steadytree":
        from steadytree import StableTreeClassifier

        return StableTreeClassifier(max_depth=5, random_state=0), (300, 5_000), (2_000, 20_000)
    from steadytree import RiskScoreClassifier

    objective = "majority" if "votes" in name else "log_loss"
    return RiskScoreClassifier(objective=objective, random_state=0), (3_000, 20), (200_000, 20)


def measure(name):
    model, small, large = learner(name)
    model.fit(*rows_of(*small))
    X, y = rows_of(*large)
    with PeakMemory() as peak:
        start = time.process_time()
        model.fit(X, y)
        seconds = time.process_time() - start
    return {"bytes": peak.bytes, "rows": X.nbytes, "shape": large, "seconds": seconds}


def main():
    found = {}
    for name in RUNS:
        ran = subprocess.run(
            [sys.executable, __file__, name], stdout=subprocess.PIPE, check=True, text=True
        )
        here = found[name] = json.loads(ran.stdout.splitlines()[-1])
        peer = found["scikit-learn"]
        beside = f", {here['bytes'] / peer['bytes']:.2f} x scikit-learn's"
        print(
            f"{name}, {here['shape'][0]:,} x {here['shape'][1]:,}: {here['bytes'] / 1e6:.0f} MB, "
            f"{here['bytes'] / here['rows']:.2f} x the rows"
            f"{beside if name == 'steadytree' else ''}; {here['seconds']:.2f} s of CPU",
            flush=True,
        )


if __name__ == "__main__":
    if sys.argv[1:]:
        print(json.dumps(measure(sys.argv[1])))
    else:
        main()
