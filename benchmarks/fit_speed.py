"""How long do a fit and a prediction take beside other libraries' single trees?

One table: CPU time of ours, and of each peer as a multiple of it, by data, depth and task. All have
their default settings and one thread; boosting libraries learn one tree and leave the number of
leaves to the depth. Binning is part of a fit. Each contender has a process of its own for each
data set; a first call, which imports and compiles, is not counted. The order alternates between the
two repeats, of which the lesser time counts. Below it: what a second thread saves, and how far
binning and growing are from reading the data once.

    python benchmarks/fit_speed.py --peers PYTHON --out fit_speed.json   # about eight minutes
    python benchmarks/fit_speed.py --cases few 10k                       # seconds

PYTHON is the interpreter of an environment with lightgbm, xgboost and scikit-learn; without it
those peers run in environments that are made on first use. Scikit-learn's tree is left out of the
widest data, where one fit takes minutes.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
from environment import python_for

DEPTHS = (6, 12)
ENOUGH_SECONDS = 0.25  # shorter tasks are repeated until they have taken this long
N_TEST = 50_000
CASES = {"few": (436, 9), "10k": (10_000, 20), "100k": (100_000, 20), "1M": (1_000_000, 20)}
CASES |= {"wide": (1_000_000, 200)}
PEERS = {"scikit-learn": (), "histograms": ()}
PEERS |= {"lightgbm": ("lightgbm", "scikit-learn"), "xgboost": ("xgboost", "scikit-learn")}


def learner(name, depth):
    """A contender with its default settings."""
    if name == "steadytree":
        from steadytree import StableTreeClassifier

        return StableTreeClassifier(max_depth=depth, random_state=0)
    if name == "scikit-learn":
        from sklearn.tree import DecisionTreeClassifier

        return DecisionTreeClassifier(max_depth=depth, random_state=0)
    if name == "histograms":
        from sklearn.ensemble import HistGradientBoostingClassifier

        sizes = {"max_depth": depth, "max_leaf_nodes": 2**depth}
        return HistGradientBoostingClassifier(max_iter=1, early_stopping=False, **sizes)
    if name == "lightgbm":
        from lightgbm import LGBMClassifier

        sizes = {"max_depth": depth, "num_leaves": 2**depth}
        return LGBMClassifier(n_estimators=1, n_jobs=1, verbose=-1, **sizes)
    from xgboost import XGBClassifier

    return XGBClassifier(n_estimators=1, max_depth=depth, n_jobs=1)


# ---- data ----
def rows_of(n_rows, n_columns=20, seed=0):
    """Correlated floats; the label depends on few of them, with noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_columns))
    X[:, 10:15] += X[:, :5]
    signal = X[:, 0] + X[:, 1] * X[:, 2] + np.sin(2 * X[:, 3]) - np.abs(X[:, 4])
    return X, (signal + rng.standard_normal(len(X)) > 0).astype(np.int64)


def few_rows(n_rows=436):
    """The Wisconsin breast cancer data where it is at hand, else data of its shape."""
    folder = os.environ.get("STEADYTREE_DATA")
    if folder:
        import pandas as pd

        frame = pd.read_csv(pathlib.Path(folder) / "breast-cancer-wisconsin.csv.gz").dropna()
        frame = frame.sample(n_rows, random_state=0)
        label = frame.pop("target")
        return frame.iloc[:, -9:].to_numpy(np.float64), (label == label.iloc[0]).to_numpy(np.int64)
    rng = np.random.default_rng(0)
    y = (rng.random(n_rows) < 0.35).astype(np.int64)
    centre = np.where(y, 6.5, 2.0)[:, None]
    X = np.rint(centre + rng.standard_normal((n_rows, 9)) * np.where(y, 2.5, 1.0)[:, None])
    return X.clip(1, 10), y


def write_case(name, folder):
    """Training and test rows as files that workers map; of few rows the same for both."""
    n_rows, n_columns = CASES[name]
    X, y = few_rows() if name == "few" else rows_of(n_rows, n_columns)
    test = (X, y) if name == "few" else rows_of(N_TEST, n_columns, 1)
    for part, values in zip(("X", "y", "X_test", "y_test"), (X, y, *test), strict=True):
        np.save(folder / f"{part}.npy", values)


# ---- one contender on one data set, in a process of its own ----
def measure(name, folder):
    """Seconds of fits and predictions by depth, and the accuracy on test rows."""
    X, y, X_test, y_test = (
        np.load(pathlib.Path(folder) / f"{part}.npy") for part in ("X", "y", "X_test", "y_test")
    )
    found = {}
    for depth in DEPTHS:
        model = learner(name, depth).fit(X[:300], y[:300])
        model.predict(X_test[:300])
        fit = cpu_seconds(lambda model=model: model.fit(X, y))
        predict = cpu_seconds(lambda model=model: model.predict(X))
        right = float((model.predict(X_test) == y_test).mean())
        found[depth] = {"fit": fit, "predict": predict, "accuracy": right}
    return found


def cpu_seconds(task, clock=time.process_time):
    """Seconds of one call, the mean over calls that together take long enough."""
    calls, start = 0, clock()
    while calls == 0 or clock() - start < ENOUGH_SECONDS:
        task()
        calls += 1
    return (clock() - start) / calls


def parts_of_a_fit(folder):
    """Two threads, binning and growing on the rows of a folder; seconds."""
    from joblib import parallel_config

    X, y = (np.load(pathlib.Path(folder) / f"{part}.npy") for part in "Xy")
    found = {}
    for depth in DEPTHS:
        model = learner("steadytree", depth).fit(X[:300], y[:300])
        prepared = model.prepare(X, y)
        wall = time.perf_counter
        one = min(cpu_seconds(lambda model=model: model.fit(X, y), wall) for _ in range(3))
        with parallel_config(backend="threading", n_jobs=2):
            model.fit(X, y)
            two = min(cpu_seconds(lambda model=model: model.fit(X, y), wall) for _ in range(3))
        values = prepared.space.encode(X)
        bins = min(cpu_seconds(lambda p=prepared, v=values: p.space.binned(v)) for _ in range(3))
        grown = cpu_seconds(lambda model=model, p=prepared: model.grow(p))
        once = cpu_seconds(lambda p=prepared: p.binned.sum(dtype=np.int64))
        found[depth] = {
            "wall, one thread": one,
            "wall, two threads": two,
            "gain": one / two,
            "binning": bins,
            "growing": grown,
            "one pass over the bins": once,
            "growing / passes": grown / (depth * once),
        }
    return found


# ---- all of them ----
def run(python, *arguments):
    """What this script prints as JSON in another process."""
    here = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [python, __file__, "--worker", *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, env=here)
    return json.loads(done.stdout.splitlines()[-1])


def interpreters(peers):
    """The interpreter of each contender."""
    own = {
        name: peers if peers and needs else python_for(name, needs) for name, needs in PEERS.items()
    }
    return {"steadytree": sys.executable, **own}


def least(one, other):
    """The lesser of each time; accuracies are the same."""
    return {
        depth: {task: min(value, other[depth][task]) for task, value in tasks.items()}
        for depth, tasks in one.items()
    }


def line(*cells):
    return " ".join(f"{cell:>14}" for cell in cells).rstrip()


def print_case(name, found):
    """A line for each depth and task: our time, and that of the others as multiples."""
    peers = list(PEERS)
    for depth in map(str, DEPTHS):
        for task in ("fit", "predict"):
            ours = found["steadytree"][depth][task]
            ratios = [
                f"{found[peer][depth][task] / ours:.2f} x" if peer in found else ""
                for peer in peers
            ]
            print(line(name, depth, task, f"{1e3 * ours:.2f} ms", *ratios), flush=True)
        shown = [
            f"{found[one][depth]['accuracy']:.3f}" if one in found else ""
            for one in ("steadytree", *peers)
        ]
        print(line(name, depth, "accuracy", *shown), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--peers", help="interpreter with lightgbm, xgboost and scikit-learn")
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=CASES)
    parser.add_argument("--omit", nargs="+", default=[], choices=PEERS, help="peers to leave out")
    parser.add_argument("--out", help="where to write all figures as JSON")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        task, folder = given.worker
        print(json.dumps(parts_of_a_fit(folder) if task == "parts" else measure(task, folder)))
        return
    pythons, every = interpreters(given.peers), {}
    print(line("data", "depth", "task", "steadytree", *PEERS))
    for name in given.cases:
        with tempfile.TemporaryDirectory() as folder:
            write_case(name, pathlib.Path(folder))
            present = [one for one in pythons if (name, one) != ("wide", "scikit-learn")]
            present = [one for one in present if one not in given.omit]
            found = {one: run(pythons[one], one, folder) for one in present}
            if name in ("few", "10k", "100k"):
                for one in reversed(present):
                    found[one] = least(found[one], run(pythons[one], one, folder))
            print_case(name, found)
            every[name] = found
            if name == "1M":
                every["parts"] = run(sys.executable, "parts", folder)
    for depth, parts in every.get("parts", {}).items():
        print(f"1,000,000 x 20, depth {depth}:")
        for what, value in parts.items():
            unit = f"{value:.2f} x" if "gain" in what or "/" in what else f"{1e3 * value:.1f} ms"
            print(f"  {what}: {unit}")
    if given.out:
        pathlib.Path(given.out).write_text(json.dumps(every, indent=1) + "\n")


if __name__ == "__main__":
    main()
