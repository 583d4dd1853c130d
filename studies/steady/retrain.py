"""Retraining against a plain refit: changed decisions, changed splits, distance and accuracy.

``python studies/steady/retrain.py [--develop] [--steady] [--repeats N] [set ...]``; the data
folder is named by STEADYTREE_DATA. Each set is divided at random into three samples of at most
3,000 rows: the tree in use is learned from the first, both learners from the second, and the third
judges. The source of the second and third stays, or drifts: most labels of a region are changed, a
column is shifted, or a region gets a new class. `--steady` has the library's default learner and
raw columns instead of CART on coded ones. Settings were chosen with `--develop` (other sets and
other divisions); `retrain.txt` holds what the sets below printed.
"""

import argparse
import os
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.tree import DecisionTreeClassifier

import steadytree as st
from steadytree.stability.new_rows import changed_splits

SETS = (
    "adult",
    "bank",
    "spambase_sep",
    "fico_sep",
    "covtype_random10k",
    "cod-rna_train",
    "car",
    "diabetes",
)
DEVELOP = ("higgs_sample", "skin", "kr-vs-kp", "tic-tac-toe", "breast-cancer-wisconsin")
DRIFTS = ("same", "labels", "shift", "new class")
MOST_ROWS = 3_000
MEASURES = ("accuracy", "flips", "splits", "distance", "flips of the new rows")


def read(folder, name, coded):
    """Rows and labels of a set; text as numbers for CART."""
    frame = pd.read_csv(Path(folder) / f"{name}.csv.gz")
    X, y = frame.drop(columns="target"), frame["target"].astype(str).to_numpy()
    if coded:
        text = [column for column in X if X[column].dtype.kind not in "bif"]
        X = X.assign(**{column: pd.factorize(X[column])[0] for column in text})
        X = X.fillna(-1).astype(np.float32).astype(float)
    return X, y


def drift(kind, X, y, rng):
    """The rows after a drift, the same for all rows of one division."""
    if kind == "same":
        return X, y
    numeric = [column for column in X if X[column].dtype.kind in "bif"]
    varied = [column for column in numeric if X[column].nunique() > 1]
    column = rng.choice(varied or list(X))
    if kind == "shift" and column in varied:
        return X.assign(**{column: X[column] + X[column].std() / 2}), y
    values = X[column] if column in varied else pd.Series(pd.factorize(X[column])[0], X.index)
    edge = values.quantile(0.85)
    region = (values >= edge if (values >= edge).mean() < 0.5 else values > edge).to_numpy()
    region = region & (rng.random(len(y)) < 0.8)
    if kind == "new class":
        return X, np.where(region, "~new", y)
    classes = np.unique(y)
    other = dict(zip(classes, np.roll(classes, 1), strict=True))
    return X, np.where(region, [other[label] for label in y], y)


def measure(tree, old, learned, test):
    """What MEASURES name, of a tree against the one in use over the same columns."""
    X, y = test
    return (
        np.mean(tree.predict(X) == y),
        np.mean(tree.predict(X) != old.predict(X)),
        changed_splits(old, tree),
        st.tree_distance(old, tree, kind="path", space=old.space),
        np.mean(tree.predict(learned) != old.predict(learned)),
    )


def one(X, y, kind, seed, steady, limit=0.01):
    """Measures of the retrained tree, the plain refit and the tree in use, for one division."""
    rng = np.random.default_rng(seed)
    n = min(len(y) // 3, MOST_ROWS)
    rows = rng.permutation(len(y))[: 3 * n]
    X, y = X.iloc[rows].reset_index(drop=True), y[rows]
    first, second, third = np.split(np.arange(3 * n), 3)
    learner = st.SteadyTreeClassifier()
    if not steady:
        least = max(3, n // 200)
        learner = DecisionTreeClassifier(max_leaf_nodes=10, min_samples_leaf=least, random_state=0)
    old = st.as_tree(learner.fit(X.iloc[first], y[first]))
    X, y = drift(kind, X, y, rng)
    model = st.RetrainedTreeClassifier(old, learner, limit, random_state=seed)
    model.fit(X.iloc[second], y[second])
    learned, test = X.iloc[second], (X.iloc[third], y[third])
    old = model.previous_tree_
    return [measure(tree, old, learned, test) for tree in (model.tree_, model.refit_, old)]


def ratio(ours, theirs):
    """Geometric mean of ratios; half a thousandth is added to both."""
    return np.exp(np.mean(np.log((ours + 5e-4) / (theirs + 5e-4))))


def main(arguments=None):
    """Print one line for each set and drift, then what holds over all sets."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*")
    parser.add_argument("--develop", action="store_true")
    parser.add_argument("--steady", action="store_true")
    parser.add_argument("--repeats", type=int, default=10)
    asked = parser.parse_args(arguments)
    names = asked.sets or (DEVELOP if asked.develop else SETS)
    first = 1000 if asked.develop else 0
    found = {}
    print("set, drift: means of retrained | refit | kept; " + ", ".join(MEASURES[:-1]))
    for name in names:
        X, y = read(os.environ["STEADYTREE_DATA"], name, coded=not asked.steady)
        for kind in DRIFTS:
            seeds = range(first, first + asked.repeats)
            found[name, kind] = np.array([one(X, y, kind, seed, asked.steady) for seed in seeds])
            shown = [
                f"{m[0]:.3f} {m[1]:.4f} {m[2]:5.1f} {m[3]:6.2f}"
                for m in found[name, kind].mean(axis=0)
            ]
            print(f"{name:22} {kind:10} " + " | ".join(shown), flush=True)
    summary(found, names)


def summary(found, names):
    """Ratios against the refit over all sets, with and without drift."""
    print(
        "\nagainst the refit: flips as a geometric mean of cases, of means of sets, as a ratio of "
        "sums; changed splits (sums); distance (cases); accuracy, and that of the tree in use"
    )
    for title, kinds in (("same source", DRIFTS[:1]), ("drift", DRIFTS[1:])):
        parts = np.array([found[name, kind] for name in names for kind in kinds])
        cases, means = parts.reshape(-1, 3, len(MEASURES)), parts.mean(axis=1)
        ours, refit, kept = cases.transpose(1, 0, 2)
        print(
            f"{title:12} flips x {ratio(ours[:, 1], refit[:, 1]):.3f}"
            f" {ratio(means[:, 0, 1], means[:, 1, 1]):.3f}"
            f" {ours[:, 1].sum() / refit[:, 1].sum():.3f},"
            f" splits x {ours[:, 2].sum() / refit[:, 2].sum():.3f},"
            f" distance x {ratio(ours[:, 3], refit[:, 3]):.3f},"
            f" accuracy {(ours[:, 0] - refit[:, 0]).mean():+.4f},"
            f" {(kept[:, 0] - refit[:, 0]).mean():+.4f} where the tree is kept"
        )
    every = np.concatenate(list(found.values()))
    ours, refit = every[:, 0], every[:, 1]
    print(
        f"of {len(every)} cases: more flips of the new rows than the refit "
        f"{(ours[:, 4] > refit[:, 4] + 1e-9).sum()}, more flips of other rows "
        f"{(ours[:, 1] > refit[:, 1] + 1e-9).sum()}, farther "
        f"{(ours[:, 3] > refit[:, 3] + 1e-9).sum()}, accuracy more than .02 below "
        f"{(ours[:, 0] < refit[:, 0] - 0.02).sum()}"
    )


if __name__ == "__main__":
    main()
