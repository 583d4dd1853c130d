"""Risk scores against peers: log loss, AUC, accuracy, size and CPU time on test rows.

``python studies/risk/run.py --out results.jsonl`` fits what the file does not hold yet, split by
split, and prints the tables. STEADYTREE_DATA names the data folder.
"""

import argparse
import json
import pathlib
import time
import warnings

import numpy as np
import peers
import tables
from sklearn.metrics import log_loss, roc_auc_score

import data

PEERS = ("l1", "optbinning", "imodels", "fasterrisk")
OURS = {"banded": {}, "banded, 6 variables": {"max_variables": 6, "max_conditions": 16}}


def fit_ours(settings, rows):
    """Risks of the test rows by RiskScoreClassifier."""
    from steadytree import RiskScoreClassifier

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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("results.jsonl"))
    parser.add_argument("--seeds", type=int, nargs="*", default=range(10))
    parser.add_argument("--methods", nargs="*", default=[*OURS, "L1, not a score", *PEERS])
    parser.add_argument("--sets", nargs="*", default=data.names())
    given = parser.parse_args()
    lines = [json.loads(line) for line in given.out.open()] if given.out.exists() else []
    known = {(line["set"], line["method"], line["seed"]) for line in lines}
    for seed in given.seeds:
        for name in given.sets:
            wanted = [m for m in given.methods if (name, m, seed) not in known]
            frame, y = data.load(name) if wanted else (None, None)
            for method in wanted:
                line = measure(name, method, seed, frame, y)
                lines.append(line)
                with given.out.open("a") as file:
                    file.write(json.dumps(line) + "\n")
    print(tables.all_tables(lines))


if __name__ == "__main__":
    main()
