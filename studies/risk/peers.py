"""Peers, each in an environment of its own: they fit a file of rows and return risks of others.

Run as a script it is the worker inside that environment, where steadytree is not installed.
"""

import functools
import json
import pathlib
import pickle
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np
import pandas as pd

PINS = {
    "fasterrisk": ("fasterrisk==0.1.10", "pandas", "scikit-learn"),
    "optbinning": ("optbinning==0.21.0", "pandas"),
    "imodels": ("imodels==3.0.4", "numba", "six"),
    "figs": ("imodels==3.0.4", "numba", "six"),
    "l1": ("scikit-learn", "pandas"),
}


def fit_in_own_environment(name, rows):
    """Risks of the test rows, size of the score and CPU seconds of the fit."""
    train, test, labels, _ = rows
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "rows.pkl"
        path.write_bytes(pickle.dumps((arrays(train), arrays(test), np.asarray(labels))))
        process = worker(name)
        process.stdin.write(f"{path}\n")
        process.stdin.flush()
        for line in process.stdout:
            if line.startswith('{"risk"'):  # peers print lines of their own
                return json.loads(line)
    raise RuntimeError(f"the process of {name} ended with {process.wait()}; see what it wrote.")


def arrays(frame):
    """Columns as arrays that any version of pandas takes: floats, or text with None."""
    found = {}
    for name in frame:
        values, missing = frame[name], frame[name].isna().to_numpy()
        if pd.api.types.is_numeric_dtype(values):
            found[name] = values.to_numpy(float)
        else:
            found[name] = np.array(
                [
                    None if is_missing else str(x)
                    for x, is_missing in zip(values, missing, strict=True)
                ],
                object,
            )
    return found


@functools.cache
def worker(name):
    """A peer's process, which stays open: what peers compile is not always kept on disk."""
    sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "benchmarks"))
    from environment import python_for

    command = [python_for(name, PINS[name]), __file__, name]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    return subprocess.Popen(command, text=True, **pipes)


# ---- inside the environments ----
def indicators(train, test, most=63):
    """0/1 columns: thresholds (at most 63 a column), categories, missing values."""
    parts, others = [], []
    for name in train:
        a, b = train[name].to_numpy(), test[name].to_numpy()
        if a.dtype.kind not in "biuf":
            levels = train[name].value_counts()
            asked = [lambda x, k=k: x == k for k in levels.index[levels >= 10]]
            missing = [pd.isna]
        else:
            values = np.unique(a[~np.isnan(a)])
            at = (values[1:] + values[:-1]) / 2
            if len(at) > most:
                at = np.unique(np.nanquantile(a, np.arange(1, most + 1) / (most + 1)))
            asked = [lambda x, t=t: np.nan_to_num(x, nan=-np.inf) >= t for t in at]
            missing = [np.isnan]
        for function in asked + (missing if pd.isna(a).any() else []):
            parts.append(np.asarray(function(a), float))
            others.append(np.asarray(function(b), float))
    return np.stack(parts, axis=1), np.stack(others, axis=1)


def fit_fasterrisk(train, test, y):
    """FasterRisk with ten conditions and its own calibration."""
    from fasterrisk.fasterrisk import RiskScoreClassifier, RiskScoreOptimizer

    X, others = indicators(train, test)
    start = time.process_time()
    search = RiskScoreOptimizer(X=X, y=np.where(y > 0, 1.0, -1.0), k=10)
    search.optimize()
    multiplier, first, weights = search.get_models(model_index=0)
    seconds = time.process_time() - start
    model = RiskScoreClassifier(multiplier, first, weights)
    return model.predict_prob(others), int((weights != 0).sum()), seconds


def fit_optbinning(train, test, y):
    """Optimal bins, the six variables of most information, logistic regression, rounded points."""
    from optbinning import BinningProcess, Scorecard
    from sklearn.linear_model import LogisticRegression

    text = [name for name in train if train[name].dtype.kind not in "biuf"]
    start = time.process_time()
    process = BinningProcess(list(train), categorical_variables=text, max_n_bins=5)
    process.fit(train, y)
    summary = process.summary()
    good = summary[summary["n_bins"] > 1].sort_values("iv", ascending=False)
    chosen = list(good["name"][:6])
    process = BinningProcess(
        chosen, categorical_variables=[n for n in text if n in chosen], max_n_bins=5
    )
    model = Scorecard(
        binning_process=process,
        estimator=LogisticRegression(),
        scaling_method="min_max",
        scaling_method_params={"min": 0, "max": 100},
        rounding=True,
    )
    model.fit(train[chosen], y)
    seconds = time.process_time() - start
    return model.predict_proba(test[chosen])[:, 1], len(chosen), seconds


def fit_imodels(train, test, y):
    """FastRiskScore with ten conditions, on numbers and one 0/1 column for each category."""
    from imodels import FastRiskScoreClassifier

    both = pd.get_dummies(pd.concat([train, test]), dtype=float).fillna(-1.0).to_numpy()
    X, others = both[: len(y)], both[len(y) :]
    start = time.process_time()
    model = FastRiskScoreClassifier(k=10).fit(X, y)
    seconds = time.process_time() - start
    return model.predict_proba(others)[:, 1], int((model.coef_ != 0).sum()), seconds


def fit_figs(train, test, y):
    """imodels' sum of small trees with ten splits in all, on the same columns."""
    from imodels import FIGSClassifier

    both = pd.get_dummies(pd.concat([train, test]), dtype=float).fillna(-1.0).to_numpy()
    X, others = both[: len(y)], both[len(y) :]
    start = time.process_time()
    model = FIGSClassifier(max_rules=10).fit(X, y)
    seconds = time.process_time() - start
    return model.predict_proba(others)[:, 1], 10, seconds


def fit_l1(train, test, y):
    """L1 logistic regression with at most ten weights, rounded to -5..5, then calibrated."""
    from sklearn.linear_model import LogisticRegression

    X, others = indicators(train, test)
    start, best = time.process_time(), None
    for c in np.geomspace(1e-4, 1, 60):
        settings = {"solver": "liblinear", "intercept_scaling": 50, "random_state": 0}
        model = LogisticRegression(l1_ratio=1.0, C=c, **settings)
        model.fit(X, y)
        n = int((model.coef_[0] != 0).sum())
        if n > 10:
            break
        best = model.coef_[0] if n else best
    if best is None:
        return np.full(len(others), y.mean()), 0, time.process_time() - start
    points = np.round(best * 5 / np.abs(best).max())
    curve = LogisticRegression(C=1e6).fit((X @ points)[:, None], y)
    seconds = time.process_time() - start
    return curve.predict_proba((others @ points)[:, None])[:, 1], int((points != 0).sum()), seconds


def work(name):
    """Fit whatever files are named on standard input; first a small one, to compile."""
    warnings.filterwarnings("ignore")
    fit = {"fasterrisk": fit_fasterrisk, "optbinning": fit_optbinning}
    fit |= {"imodels": fit_imodels, "figs": fit_figs, "l1": fit_l1}
    rng = np.random.default_rng(0)
    small = pd.DataFrame(rng.normal(size=(100, 3)), columns=list("abc"))
    fit[name](small, small, (small["a"] + rng.normal(size=100) > 0).to_numpy().astype(int))
    for line in sys.stdin:
        train, test, y = pickle.loads(pathlib.Path(line.strip()).read_bytes())
        try:
            risk, size, seconds = fit[name](pd.DataFrame(train), pd.DataFrame(test), y)
            found = {"risk": np.asarray(risk).tolist(), "size": size, "seconds": seconds}
        except Exception as error:  # what a peer cannot do is a result of the study too
            found = {"risk": None, "size": 0, "seconds": 0.0, "error": repr(error)[:200]}
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    work(*sys.argv[1:])
