"""Do robust trees under noise by row keep to a short limit of time?

``python benchmarks/robust_time_limit.py [--seconds 0.5] [--names heart,covtype]``; the data folder
is named by STEADYTREE_DATA. CPU seconds of fits of whole sets (``studies/robust_real``; covtype is
a sample of 10,000 rows), with noise of 2 and 5 % of the range and depths 2 to 4, after a first fit
that compiles.
"""

import argparse
import os
import pathlib
import sys
import time

import numpy as np
import pandas as pd

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "studies/robust_real"))

import run as real

NAMES = ("heart", "ionosphere", "spambase_sep", "cod-rna_train", "covtype")


def load(name):
    """Rows scaled to [0, 1], and labels."""
    if name != "covtype":
        return real.load(name)
    folder = pathlib.Path(os.environ["STEADYTREE_DATA"])
    frame = pd.read_csv(folder / "covtype_random10k.csv.gz")
    y, X = frame.pop("target").to_numpy(), frame.to_numpy(float)
    X = X[:, np.ptp(X, axis=0) > 0]
    return (X - X.min(axis=0)) / np.ptp(X, axis=0), y


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--names", default=",".join(NAMES))
    parser.add_argument("--seconds", type=float, default=0.5)
    given = parser.parse_args()
    real.compile_loops()
    print("set, depth, noise, R, CPU seconds, share of the limit")
    shares = []
    for name in given.names.split(","):
        X, y = load(name)
        for depth in real.DEPTHS:
            for noise in real.SHARES:
                for regularisation in (0.0, "auto"):
                    asked = depth, regularisation, given.seconds
                    start = time.process_time()
                    model, _ = real.fit_ours(X, y, noise, *asked)
                    spent = time.process_time() - start
                    shares.append(spent / given.seconds)
                    line = f"{name[:10]:<10} {depth} {noise} {regularisation!s:<4} {spent:.3f} s"
                    print(f"{line} {shares[-1]:.3f} {model.status_}", flush=True)
    print(f"at most {max(shares):.3f} of the limit in {len(shares)} fits")


if __name__ == "__main__":
    main()
