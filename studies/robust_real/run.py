"""Robust trees on real-valued columns beside GROOT's greedy ones and CART.

    STEADYTREE_DATA=folder python studies/robust_real/run.py --splits 5 --groot
    STEADYTREE_DATA=folder python studies/robust_real/run.py --bounds     # gaps of whole sets
    python studies/robust_real/run.py --tables                            # of what was measured

Finished cases are kept in robust_real_out/results.jsonl; a stopped run goes on where it was.
"""

import argparse
import itertools
import json
import os
import pathlib
import subprocess
import sys
import time

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier
from tables import write_tables

from steadytree import Perturbation, RobustTreeClassifier, certify

HERE = pathlib.Path(__file__).parent
SETS = ("breast cancer", "diabetes", "ionosphere", "heart", "spambase_sep", "cod-rna_train")
SHARES, DEPTHS = (0.02, 0.05), (2, 3, 4)
SAMPLE = 5_000  # rows of cod-rna
SECONDS = 0.5  # of CPU time, for one fit
GROOT = ("groot-trees==0.0.17", "numpy<2", "scikit-learn==1.3.2", "setuptools<70")


def load(name):
    """Rows scaled to [0, 1] and labels 0 and 1; columns with one value are left out."""
    if name == "breast cancer":
        X, y = load_breast_cancer(return_X_y=True)
    else:
        frame = pd.read_csv(pathlib.Path(os.environ["STEADYTREE_DATA"]) / f"{name}.csv.gz").dropna()
        frame = frame.sample(min(SAMPLE, len(frame)), random_state=0) if "cod" in name else frame
        y, X = np.unique(frame.pop("target"), return_inverse=True)[1], frame.to_numpy(float)
    X = X[:, np.ptp(X, axis=0) > 0]
    return (X - X.min(axis=0)) / np.ptp(X, axis=0), y


def split(y, seed):
    return train_test_split(np.arange(len(y)), test_size=0.3, stratify=y, random_state=seed)


def noise_of(share):
    return Perturbation(radius=share, whole=[])


def fit_ours(X, y, share, depth, regularisation, seconds=SECONDS):
    """The model, and the CPU seconds of its fit."""
    model = RobustTreeClassifier(
        depth, noise_of(share), seconds, regularisation, clock="cpu", random_state=0
    )
    start = time.process_time()
    return model.fit(X, y), time.process_time() - start


def certified(model, X, y, share):
    return certify(model, X, y, noise_of(share)).worst_case_accuracy


def measure(name, share, depth, seed):
    """Certified accuracy on training and test rows of each method, ours with time and gap."""
    X, y = load(name)
    train, test = split(y, seed)
    found = {"set": name, "share": share, "depth": depth, "seed": seed}
    models = {"cart": DecisionTreeClassifier(max_depth=depth, random_state=0)}
    models["cart"].fit(X[train], y[train])
    for method, regularisation in (("ours", 0.0), ("auto", "auto")):
        model, seconds = fit_ours(X[train], y[train], share, depth, regularisation)
        models[method] = model
        found[method] = {"seconds": seconds, "gap": model.optimality_gap_}
        kept = certified(model, X[train], y[train], share) * len(train)
        splits = int((~model.tree_.is_leaf).sum())
        penalty = model.regularisation_ / (1 - model.regularisation_)
        found[method]["agrees"] = bool(abs(kept - splits * penalty - model.objective_) < 1e-6)
    for method, model in models.items():
        found.setdefault(method, {})
        found[method]["train"] = certified(model, X[train], y[train], share)
        found[method]["test"] = certified(model, X[test], y[test], share)
    return found


def measure_groot(cases, python, where):
    """The same of GROOT, in an environment of its own; one process for all cases."""
    jobs = []
    where.mkdir(parents=True, exist_ok=True)
    for name, share, depth, seed in cases:
        X, y = load(name)
        np.savez(where / f"{name}.npz", X=X, y=y)
        train, test = split(y, seed)
        rows = {"train": train.tolist(), "test": test.tolist()}
        file = str(where / f"{name}.npz")
        jobs.append({"file": file, "share": share, "depth": depth, **rows})
    (where / "jobs.json").write_text(json.dumps(jobs), "utf-8")
    command = [python, str(HERE / "groot_worker.py"), str(where / "jobs.json")]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


def groot_python():
    sys.path.insert(0, str(HERE.parents[1] / "benchmarks"))
    from environment import python_for

    return python_for("groot-robust", GROOT)


def measure_bound(name, depth, share, seconds):
    """Objective, bound and gap on a whole set."""
    if name == "covtype":
        folder = pathlib.Path(os.environ["STEADYTREE_DATA"])
        frame = pd.read_csv(folder / "covtype_random10k.csv.gz")
        y, X = frame.pop("target").to_numpy(), frame.to_numpy(float)
        X = X[:, np.ptp(X, axis=0) > 0]
        X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    else:
        X, y = load(name)
    model, used = fit_ours(X, y, share, depth, 0.0, seconds)
    gaps = {
        str(limit): next(
            (
                1 - (len(y) - s.incumbent) / (len(y) - s.bound)
                for s in reversed(model.history_)
                if s.seconds <= limit
            ),
            1.0,
        )
        for limit in (1, 5, 20, 60)
        if limit <= seconds
    }
    found = {"set": name, "depth": depth, "share": share, "n": len(y), "seconds": used}
    kept = {"objective": model.objective_, "bound": model.bound_, "status": model.status_}
    return {**found, **kept, "gap": model.optimality_gap_, "gaps": gaps}


def kept_lines(file):
    return (
        [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.exists() else []
    )


def key(case):
    return case["set"], case["share"], case["depth"], case.get("seed")


def append(file, case):
    with file.open("a", encoding="utf-8") as out:
        out.write(json.dumps(case) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="breast cancer, depth 2, one split")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--groot", action="store_true", help="GROOT alone, in its environment")
    parser.add_argument("--groot-python", help="a Python in which groot is installed")
    parser.add_argument("--bounds", type=float, help="CPU seconds for bounds of whole sets")
    parser.add_argument("--tables", action="store_true", help="of what was measured")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("robust_real_out"))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    cases = list(itertools.product(range(given.splits), given.sets, SHARES, DEPTHS))
    cases = [(*case, seed) for seed, *case in cases]  # split by split
    if given.quick:
        cases = [("breast cancer", share, 2, 0) for share in SHARES]
    if given.groot or given.groot_python:
        run_groot(cases, given)
    elif given.bounds:
        run_bounds(given)
    elif not given.tables:
        run_ours(cases, given)
    files = (given.out / f"{name}.jsonl" for name in ("results", "groot", "bounds"))
    print(write_tables(*map(kept_lines, files)))


def run_ours(cases, given):
    compile_loops()
    done = {key(case) for case in kept_lines(given.out / "results.jsonl")}
    for case in cases:
        if case not in done:
            append(given.out / "results.jsonl", measure(*case))


def run_groot(cases, given):
    done = {key(case) for case in kept_lines(given.out / "groot.jsonl")}
    left = [case for case in cases if case not in done]
    python = given.groot_python or groot_python()
    found = measure_groot(left, python, given.out / "groot") if left else []
    for case, one in zip(left, found, strict=True):
        names = dict(zip(("set", "share", "depth", "seed"), case, strict=True))
        append(given.out / "groot.jsonl", {**names, **one})


def run_bounds(given):
    compile_loops()
    done = {key(case) for case in kept_lines(given.out / "bounds.jsonl")}
    for name, share in itertools.product(given.sets, SHARES):
        if (name, share, 3, None) not in done:
            append(given.out / "bounds.jsonl", measure_bound(name, 3, share, given.bounds))


def compile_loops():
    X = np.random.default_rng(0).random((60, 2))
    for regularisation in (0.0, "auto"):
        fit_ours(X, (X[:, 0] > 0.5).astype(int), 0.05, 3, regularisation)


if __name__ == "__main__":
    main()
