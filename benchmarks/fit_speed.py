"""How long does a fit take, and how much memory, beside scikit-learn's?

Binning is part of the time. Memory is the peak during the fit beyond what held the data,
as a multiple of the data. Run it with `make bench`, or with the name of a case as argument.
"""

import os
import pathlib
import sys

import numpy as np
from side_by_side import Case, Contender, compare

DEPTH = 6


def steadytree_fit():
    """Ours: greedy, no noise."""
    from steadytree import StableTreeClassifier

    return StableTreeClassifier(max_depth=DEPTH, epsilon=0, random_state=0).fit


def sklearn_fit():
    """Scikit-learn's tree of the same depth."""
    from sklearn.tree import DecisionTreeClassifier

    return DecisionTreeClassifier(max_depth=DEPTH, random_state=0).fit


def many_rows():
    """A million rows of 20 correlated floats; the label depends on few of them, with noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1_000_000, 20))
    X[:, 10:15] += X[:, :5]
    signal = X[:, 0] + X[:, 1] * X[:, 2] + np.sin(2 * X[:, 3]) - np.abs(X[:, 4])
    return X, (signal + rng.standard_normal(len(X)) > 0).astype(np.int64)


def few_rows():
    """The Wisconsin breast cancer data where it is at hand, else data of its shape."""
    folder = os.environ.get("STEADYTREE_DATA")
    return _wisconsin(pathlib.Path(folder)) if folder else _like_wisconsin()


def _wisconsin(folder, n_rows=436):
    import pandas as pd

    frame = pd.read_csv(folder / "breast-cancer-wisconsin.csv.gz").dropna()
    frame = frame.sample(n_rows, random_state=0)
    label = frame.pop("target")
    return frame.iloc[:, -9:].to_numpy(np.float64), (label == label.iloc[0]).to_numpy(np.int64)


def _like_wisconsin(n_rows=436):
    rng = np.random.default_rng(0)
    y = (rng.random(n_rows) < 0.35).astype(np.int64)
    centre = np.where(y, 6.5, 2.0)[:, None]
    X = np.rint(centre + rng.standard_normal((n_rows, 9)) * np.where(y, 2.5, 1.0)[:, None])
    return X.clip(1, 10), y


CONTENDERS = [Contender("steadytree", "steadytree_fit"), Contender("scikit-learn", "sklearn_fit")]
CASES = [Case("few", few_rows, repeats=9), Case("many", many_rows, repeats=5)]

if __name__ == "__main__":
    wanted = sys.argv[1:] or [case.name for case in CASES]
    compare(__file__, CONTENDERS, [case for case in CASES if case.name in wanted])
