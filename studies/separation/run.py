"""Separation, risk scores and their robustness on the paper's data: paper, published way, ours.

    python studies/separation/run.py            quick: scikit-learn's data, under two minutes
    STEADYTREE_DATA=folder python studies/separation/run.py --full [names]

Splits are train_test_split(test_size=0.33, random_state=seed), columns scaled to [0, 1] on the
training part. ER is the mean exact distance to another answer of the test rows that are right;
for the published way a column of ones, its intercept, may be moved too, as in the paper.
"""

import argparse
import os
import pathlib

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from steadytree import Perturbation, RiskScoreClassifier, certify, separation

FILES = {
    "adult": "adult_sep",
    "bank": "bank_sep_rebuilt",
    "bank2": "bank2_sep_rebuilt",
    "breastcancer": "breastcancer_sep",
    "careval": "careval_sep",
    "compasbin": "compas_sep",
    "diabetes": "diabetes_sep",
    "ficobin": "fico_sep",
    "heart": "heart_sep",
    "ionosphere": "ionosphere_sep",
    "mammo": "mammo_sep",
    "mushroom": "mushroom_sep",
    "spambase": "spambase_sep",
}
# IC, accuracy and ER of BBM-RS as printed in Table 3; separateness and 2 r of Table 2
PAPER = {
    "adult": (6.0, 0.81, 0.50, 0.88, 1.0),
    "bank": (8.0, 0.90, 0.50, 0.97, 1.0),
    "bank2": (4.5, 0.90, 0.50, 1.00, 0.0004),
    "breastcancer": (11.0, 0.96, 0.27, 1.00, 0.11),
    "careval": (8.7, 0.77, 0.50, 1.00, 1.0),
    "compasbin": (7.6, 0.66, 0.33, 0.68, 1.0),
    "diabetes": (2.1, 0.65, 0.15, 1.00, 0.11),
    "ficobin": (11.8, 0.72, 0.50, 0.79, 1.0),
    "heart": (9.5, 0.82, 0.32, 1.00, 0.13),
    "ionosphere": (6.8, 0.86, 0.28, 1.00, 0.80),
    "mammo": (1.9, 0.77, 0.50, 0.83, 0.33),
    "mushroom": (9.9, 0.97, 0.50, 1.00, 1.0),
    "spambase": (5.6, 0.79, 0.05, 1.00, 0.000063),
}


def load(name):
    """Columns and labels of one set, from the folder named by STEADYTREE_DATA."""
    import pandas as pd

    path = pathlib.Path(os.environ["STEADYTREE_DATA"]) / f"{FILES[name]}.csv.gz"
    frame = pd.read_csv(path)
    y = frame.pop("target" if "target" in frame else frame.columns[-1])
    return frame.to_numpy(float), (y == 1).to_numpy().astype(int)


def split(X, y, seed):
    """Training and test part, scaled to [0, 1] on the training part."""
    a, b, c, d = train_test_split(X, y, test_size=0.33, random_state=seed)
    low, wide = a.min(axis=0), np.ptp(a, axis=0)
    wide = np.where(wide > 0, wide, 1.0)
    return (a - low) / wide, (b - low) / wide, c, d


def judge(model, X, y, bounds):
    """IC, accuracy, ER, and astuteness at 0.05 and 0.1 on test rows."""
    found = certify(model, X, y, Perturbation(radius=1.0, whole=[], bounds=bounds))
    reached = found.distance[found.right & np.isfinite(found.distance)]
    er = reached.mean() if len(reached) else np.inf
    astute = found.certified_accuracy(0.05), found.certified_accuracy(0.1)
    return model.card_.n_conditions, found.accuracy, er, *astute


def box(a, b):
    """The data's box: attacks do not leave it."""
    low, high = np.minimum(a.min(axis=0), b.min(axis=0)), np.maximum(a.max(axis=0), b.max(axis=0))
    return {f"x{j}": (float(low[j]), float(high[j])) for j in range(a.shape[1])}


def published(a, b, c, d, seed):
    """The published algorithm; its intercept may be attacked, and nothing is bounded."""
    a, b = (np.column_stack([part, np.ones(len(part))]) for part in (a, b))
    free = {f"x{j}": (-np.inf, np.inf) for j in range(a.shape[1])}
    return judge(RiskScoreClassifier.published().fit(a, c), b, d, free)


def ours(**settings):
    """Ours with given settings."""

    def run(a, b, c, d, seed):
        model = RiskScoreClassifier(random_state=seed, **settings).fit(a, c)
        return judge(model, b, d, box(a, b))

    return run


METHODS = {
    "published": published,
    "majority, tau 0.05": ours(tau=0.05),
    "majority, tau 0": ours(tau=0.0),
    "majority, tau 1se": ours(tau="1se"),
    "logistic, tau 0.05": ours(loss="logistic", tau=0.05),
}


def study(sets, n_splits):
    """Print one line a set and method: the mean over splits."""
    print(f"{'set':14}{'method':22}{'IC':>7}{'accuracy':>10}{'ER':>8}{'at .05':>8}{'at .1':>8}")
    means = {name: [] for name in METHODS}
    for name, (X, y) in sets:
        apart = separation(X, y, r=1e-5, linear=False)
        print(f"{name:14}separateness {apart.separateness:.4f}, 2 r {apart.two_r:.6g}")
        if name in PAPER:
            ic, accuracy, er, share, two_r = PAPER[name]
            print(f"{'':14}paper: separateness {share:.2f}, 2 r {two_r:g}")
            print(f"{'':14}{'paper':22}{ic:7.2f}{accuracy:10.4f}{er:8.3f}")
        for method, run in METHODS.items():
            found = np.mean([run(*split(X, y, seed), seed) for seed in range(n_splits)], axis=0)
            means[method].append(found)
            ic, accuracy, er, five, ten = found
            print(
                f"{'':14}{method:22}{ic:7.2f}{accuracy:10.4f}{er:8.3f}{five:8.3f}{ten:8.3f}",
                flush=True,
            )
    for method, rows in means.items():
        ic, accuracy, er, five, ten = np.mean(rows, axis=0)
        print(f"{'mean':14}{method:22}{ic:7.2f}{accuracy:10.4f}{er:8.3f}{five:8.3f}{ten:8.3f}")


def main():
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="the paper's sets, 10 splits")
    parser.add_argument("--splits", type=int, default=None)
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    if not given.full:
        study([("breast (WDBC)", load_breast_cancer(return_X_y=True))], given.splits or 2)
        return
    folder = pathlib.Path(os.environ["STEADYTREE_DATA"])
    there = [name for name in FILES if (folder / f"{FILES[name]}.csv.gz").is_file()]
    study(((n, load(n)) for n in there if not given.names or n in given.names), given.splits or 10)


if __name__ == "__main__":
    main()
