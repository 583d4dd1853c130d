"""How long does a fit take, and how much memory, beside other libraries' single trees?

Everybody has its default settings, one thread and the same depth; boosting libraries learn one tree
and leave the number of leaves to the depth. Binning is part of the time. Memory is the peak during
the fit beyond what held the data, as a multiple of the data. Run it with `make bench`, or with
names of cases and depths as arguments: `python benchmarks/fit_speed.py 100k 12`. With `predict` as
an argument the fitted trees' predictions are measured instead.
"""

import os
import pathlib
import sys
from functools import partial

import numpy as np
from side_by_side import Case, Contender, compare

DEPTH = int(os.environ.get("STEADYTREE_BENCH_DEPTH", "6"))
PREDICTS = "STEADYTREE_BENCH_PREDICT" in os.environ


def _task(model):
    """Fit; or, after a first call that fits on half of the rows, predict the others."""
    if not PREDICTS:
        return model.fit

    def predict(X, y):
        if not hasattr(model, "fitted_on_") or model.fitted_on_ != len(X):
            model.fit(X[::2], y[::2])
            model.fitted_on_ = len(X)
        model.predict(X)

    return predict


def steadytree_fit():
    """Ours, with its default settings."""
    from steadytree import StableTreeClassifier

    return _task(StableTreeClassifier(max_depth=DEPTH, random_state=0))


def sklearn_fit():
    """Scikit-learn's tree of the same depth."""
    from sklearn.tree import DecisionTreeClassifier

    return _task(DecisionTreeClassifier(max_depth=DEPTH, random_state=0))


def histogram_fit():
    """Scikit-learn's histogram boosting, one tree."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    return _task(
        HistGradientBoostingClassifier(
            max_iter=1, max_depth=DEPTH, max_leaf_nodes=2**DEPTH, early_stopping=False
        )
    )


def lightgbm_fit():
    """LightGBM, one tree."""
    from lightgbm import LGBMClassifier

    sizes = {"max_depth": DEPTH, "num_leaves": 2**DEPTH}
    return _task(LGBMClassifier(n_estimators=1, n_jobs=1, verbose=-1, **sizes))


def xgboost_fit():
    """XGBoost, one tree."""
    from xgboost import XGBClassifier

    return _task(XGBClassifier(n_estimators=1, max_depth=DEPTH, n_jobs=1))


def rows_of(n_rows, n_columns=20):
    """Correlated floats; the label depends on few of them, with noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_columns))
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


CONTENDERS = [
    Contender("steadytree", "steadytree_fit"),
    Contender("histograms", "histogram_fit"),
    Contender("lightgbm", "lightgbm_fit", ("lightgbm", "scikit-learn")),
    Contender("xgboost", "xgboost_fit", ("xgboost", "scikit-learn")),
    Contender("scikit-learn", "sklearn_fit"),
]
CASES = [
    Case("few", few_rows, repeats=9),
    Case("10k", partial(rows_of, 10_000), repeats=7),
    Case("100k", partial(rows_of, 100_000)),
    Case("many", partial(rows_of, 1_000_000), repeats=3),
    Case("wide", partial(rows_of, 1_000_000, 200), repeats=1),
]

if __name__ == "__main__":
    given = set(sys.argv[1:])
    if "predict" in given:
        os.environ["STEADYTREE_BENCH_PREDICT"] = "yes"
    names = given & {case.name for case in CASES} or {"few", "many"}
    for depth in [word for word in sys.argv[1:] if word.isdigit()] or ["6"]:
        os.environ["STEADYTREE_BENCH_DEPTH"] = depth  # workers read it
        print(f"depth {depth}", flush=True)
        compare(__file__, CONTENDERS, [case for case in CASES if case.name in names])
