"""SteadyTreeClassifier beside CART of equally many leaves: accuracy, AUC, changes, distance, time.

``python benchmarks/steady_tree.py [--leaves 8] [--repeats 2] [--seed 7] [--most 1500]``; the data
folder is named by STEADYTREE_DATA. Five folds, repeated; `changed` is the share of rows whose
prediction differs between the trees of two folds, `distance` the path distance of these trees. The
recipe was chosen on the development sets and looked at once on the held-out ones; folds here have
seeds of their own. CART gets categories as 0/1 columns and missing values below all others.
"""

import argparse
import itertools
import os
import pathlib
import time

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.tree import DecisionTreeClassifier

import steadytree as st

DEVELOPMENT = (
    *("heart", "tic-tac-toe", "spambase_sep", "adult", "ionosphere", "breast-cancer-ljubljana"),
    *("cod-rna_train", "kr-vs-kp", "monks-1", "car"),
)
HELD_OUT = (
    *("diabetes", "bank-additional", "breast-cancer-wisconsin", "fico_sep", "higgs_sample", "skin"),
    *("mushroom", "monks-3", "balance-scale", "hayes-roth"),
)
HEAD = ("set", "rows", "accuracy", "AUC", "changed", "distance", "CPU s a fit")


def read(name, most):
    """Features as they are and as numbers, and labels; at most so many rows."""
    path = pathlib.Path(os.environ["STEADYTREE_DATA"], f"{name}.csv.gz")
    frame = pd.read_csv(path)
    frame = frame.sample(min(len(frame), most), random_state=0).reset_index(drop=True)
    X, y = frame.drop(columns="target"), pd.factorize(frame["target"], sort=True)[0]
    numbers = pd.get_dummies(X, dtype=float)
    return X, numbers.fillna(numbers.min() - 1), y


def area(y, shares):
    if shares.shape[1] == 2:
        return roc_auc_score(y, shares[:, 1])
    return roc_auc_score(y, shares, multi_class="ovr", labels=range(shares.shape[1]))


def measure(make, X, y, repeats, seed):
    """Means over folds of accuracy, AUC, changed predictions, distance and CPU seconds."""
    accuracy, auc, changed, distance, seconds = ([] for _ in range(5))
    for repeat in range(repeats):
        folds = StratifiedKFold(5, shuffle=True, random_state=seed + repeat)
        models = []
        for train, test in folds.split(X, y):
            start = time.process_time()
            model = make().fit(X.iloc[train], y[train])
            seconds.append(time.process_time() - start)
            accuracy.append(model.score(X.iloc[test], y[test]))
            auc.append(area(y[test], model.predict_proba(X.iloc[test])))
            models.append(model)
        answers = [model.predict(X) for model in models]
        changed += [np.mean(a != b) for a, b in itertools.combinations(answers, 2)]
        apart = st.tree_distance(models, space=X)
        distance += apart[np.triu_indices(5, 1)].tolist()
    return [float(np.mean(each)) for each in (accuracy, auc, changed, distance, seconds)]


def geometric(ratios):
    return float(np.exp(np.mean(np.log(ratios))))


def show(title, names, options):
    """A line for each set, and the means against CART."""
    print(f"\n{title}\n" + "  ".join(f"{name:>17}" for name in HEAD))
    rows = []
    for name in names:
        X, numbers, y = read(name, options.most)
        leaves = options.leaves
        cart = measure(
            lambda n=leaves: DecisionTreeClassifier(max_leaf_nodes=n, random_state=0),
            *(numbers, y, options.repeats, options.seed),
        )
        steady = measure(
            lambda n=leaves: st.SteadyTreeClassifier(max_leaf_nodes=n),
            *(X, y, options.repeats, options.seed),
        )
        rows.append((cart, steady))
        cells = [f"{a:.3f} -> {b:.3f}" for a, b in zip(cart, steady, strict=True)]
        print("  ".join(f"{cell:>17}" for cell in (name[:17], len(y), *cells)), flush=True)
    cart, steady = np.array(rows).transpose(1, 0, 2)
    better, floor = steady - cart, 1 / 400  # of changes: fewer than one row in 400 count as that
    ratios = np.maximum(steady[:, 2], floor) / np.maximum(cart[:, 2], floor)
    print(
        f"mean: accuracy {100 * better[:, 0].mean():+.2f} points, AUC {better[:, 1].mean():+.4f}, "
        f"changed x {geometric(ratios):.2f}, "
        f"distance x {geometric(np.maximum(steady[:, 3], 0.01) / np.maximum(cart[:, 3], 0.01)):.2f}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, usual in (("leaves", 8), ("repeats", 2), ("seed", 7), ("most", 1500)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    options = parser.parse_args()
    st.SteadyTreeClassifier().fit([[0.0], [1.0]] * 20, [0, 1] * 20)  # compiles
    print(f"CART -> steady tree, {options.leaves} leaves, seeds from {options.seed}")
    show("sets that the recipe was chosen on", DEVELOPMENT, options)
    show("sets that were held out", HELD_OUT, options)


if __name__ == "__main__":
    main()
