"""Risk scores against peers: log loss, AUC, accuracy, size and CPU time on test rows.

    python studies/risk/run.py --quick          breast cancer and made-up sites, ours alone
    STEADYTREE_DATA=folder python studies/risk/run.py --peers l1 optbinning imodels fasterrisk

Splits are train_test_split(test_size=0.33, stratify=y, random_state=seed). Finished cells are kept
in the output folder, so a stopped run goes on where it was.
"""

import argparse
import csv
import pathlib
import time
import warnings

import numpy as np
import peers
import tables
from sklearn.metrics import log_loss, roc_auc_score

import data
from steadytree import RiskScoreClassifier
from steadytree.reporting.study import Results

PEERS = ("l1", "optbinning", "imodels", "figs", "fasterrisk")
OURS = {
    "banded": {},
    "6 variables": {"max_variables": 6},
}


def fit_ours(settings, rows):
    """Risks of the test rows by RiskScoreClassifier."""
    train, test, labels, _ = rows
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = RiskScoreClassifier(**settings).fit(train, labels)
    seconds = time.process_time() - start
    risk = model.predict_proba(test)[:, 1]
    return {"risk": risk, "size": len(model.card_.variables), "seconds": seconds}


def fit_plain_l1(rows):
    """L1 logistic regression of all columns, not rounded: what a rare outcome allows."""
    import pandas as pd
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    train, test, labels, _ = rows
    both = pd.get_dummies(pd.concat([train, test]), dtype=float)
    both = both.fillna(both.median()).to_numpy()
    scaler = StandardScaler().fit(both[: len(labels)])
    X = scaler.transform(both)
    start = time.process_time()
    model = LogisticRegression(l1_ratio=1.0, C=0.1, solver="liblinear", random_state=0)
    model.fit(X[: len(labels)], labels)
    seconds = time.process_time() - start
    risk = model.predict_proba(X[len(labels) :])[:, 1]
    return {"risk": risk, "size": int((model.coef_ != 0).sum()), "seconds": seconds}


def measure(name, method, seed, frame, y):
    """One line of results."""
    rows = data.split(frame, y, seed)
    if method in OURS:
        found = fit_ours(OURS[method], rows)
    elif method == "L1, not a score":
        found = fit_plain_l1(rows)
    else:
        found = peers.fit_in_own_environment(method, rows)
    line = {"set": name, "method": method, "seed": seed}
    if found["risk"] is None:
        return {**line, "error": found["error"]}
    risk = np.clip(np.array(found["risk"], float), 1e-6, 1 - 1e-6)
    return {
        **line,
        "log_loss": log_loss(rows[3], risk),
        "auc": roc_auc_score(rows[3], risk),
        "accuracy": float(((risk > 0.5) == rows[3]).mean()),
        "size": found["size"],
        "seconds": found["seconds"],
    }


def main(arguments=None):
    """Measure what is not yet measured, then print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="no data folder, two splits")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("risk_out"))
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--peers", nargs="*", default=(), choices=PEERS)
    parser.add_argument("--peer-splits", type=int, default=10)
    parser.add_argument("--sets", nargs="*")
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    results = Results(given.out / "results.jsonl")
    sets = given.sets or (data.QUICK if given.quick else data.names())
    for name in sets:
        frame = y = None
        for seed in range(2 if given.quick else given.splits):
            methods = [*OURS, "L1, not a score"]
            methods += given.peers if seed < given.peer_splits else ()
            for method in methods:
                if results.find(set=name, method=method, seed=seed):
                    continue
                if frame is None:
                    frame, y = data.load(name)
                results.add(measure(name, method, seed, frame, y))
    print(tables.all_tables(results.cells + stored_peers(results.cells)))


def stored_peers(lines):
    """Peers' lines of an earlier run on the same splits, where lines have none."""
    rows = csv.DictReader(pathlib.Path(__file__).with_name("peers.csv").open(encoding="utf-8"))
    sets = {line["set"] for line in lines}
    measured = {(line["set"], line["method"], line["seed"]) for line in lines}
    return [
        {key: row[key] if key in ("set", "method") else float(row[key]) for key in row}
        | {"seed": int(row["seed"])}
        for row in rows
        if row["set"] in sets and (row["set"], row["method"], int(row["seed"])) not in measured
    ]


if __name__ == "__main__":
    main()
