"""SteadyTreeClassifier beside CART of equally many leaves: accuracy, AUC, changes, distance, time.

``python benchmarks/steady_tree.py [--leaves 4 6 8 12] [--repeats 2] [--seed 7] [--most 1500]``; the
data folder is named by STEADYTREE_DATA. Five folds, repeated; `changed` is the share of rows whose
prediction differs between the trees of two folds, `distance` the path distance of these trees. The
recipe was chosen on the development sets; the fresh ones were not looked at before it was final.
CART gets categories as 0/1 columns and missing values below all others; its trees are compared over
the columns that those came from. At 8 leaves the steady tree is also put beside CART whose size, 2
to 12 leaves, is chosen by cross-validation in each fold.
"""

import argparse
import itertools
import os
import pathlib
import time

import numpy as np
import pandas as pd
from sklearn import datasets
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.tree import DecisionTreeClassifier

import steadytree as st
from steadytree.data.feature_space import FeatureSpace
from steadytree.models.tree import Tree

DEVELOPMENT = (
    *("heart", "tic-tac-toe", "spambase_sep", "adult", "ionosphere", "breast-cancer-ljubljana"),
    *("cod-rna_train", "kr-vs-kp", "monks-1", "car"),
)
FRESH = (
    *("adult_test", "cod-rna_test", "bank", "kddcup99_10pct", "monks-2", "soybean-small", "wine"),
    *("iris", "digits", "mnist-blocks_test", "friedman", "hastie"),
)
HEAD = ("set", "rows", "accuracy", "AUC", "changed", "distance", "CPU s a fit")
OF_ANY_SIZE = "2 to 12"


def read_frame(name):
    if name in ("wine", "iris", "digits"):
        return getattr(datasets, f"load_{name}")(as_frame=True).frame
    rng = np.random.default_rng(0)
    if name == "friedman":
        X = rng.random((1000, 10))
        z = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
        z += 10 * X[:, 3] + 5 * X[:, 4] + 2 * rng.normal(size=1000)
        return pd.DataFrame(X).rename(columns=str).assign(target=z > 14.5)
    if name == "hastie":
        X = rng.normal(size=(1000, 10))
        return pd.DataFrame(X).rename(columns=str).assign(target=(X[:, :5] ** 2).sum(axis=1) > 4.35)
    frame = pd.read_csv(pathlib.Path(os.environ["STEADYTREE_DATA"], f"{name}.csv.gz"))
    if name == "kddcup99_10pct":  # most rows are repeated; normal or not
        frame = frame.drop_duplicates().assign(target=lambda rows: rows["target"] == "normal.")
    return frame


def read(name, most):
    """Features and labels; at most so many rows."""
    frame = read_frame(name)
    frame = frame.sample(min(len(frame), most), random_state=0).reset_index(drop=True)
    return frame.drop(columns="target"), pd.factorize(frame["target"], sort=True)[0]


class Cart:
    """CART on 0/1 columns, told as a tree over the columns they came from."""

    def __init__(self, space, n_leaves):
        self.space, self.n_leaves = space, n_leaves

    def fit(self, X, y):
        model = DecisionTreeClassifier(max_leaf_nodes=self.n_leaves, random_state=0)
        if self.n_leaves == OF_ANY_SIZE:
            model = DecisionTreeClassifier(random_state=0)
            model = GridSearchCV(model, {"max_leaf_nodes": list(range(2, 13))})
        model = model.fit(self._numbers(X), y)
        self.tree_ = self._told(getattr(model, "best_estimator_", model))
        return self

    def _numbers(self, X):
        values, parts = self.space.encode(X), []
        for column, x in zip(self.space, values.T, strict=True):
            if column.is_categorical:
                parts += [x == k for k in range(len(column.categories))]
            else:
                parts.append(np.where(np.isnan(x), column.low - 1, x))
        return np.column_stack(parts).astype(float)

    def _told(self, model):
        source = [
            (j, k)
            for j, column in enumerate(self.space)
            for k in range(len(column.categories) or 1)
        ]
        t = model.tree_
        width = max(len(column.categories) for column in self.space)
        feature, threshold = np.full(t.node_count, -1), np.full(t.node_count, np.nan)
        subset, inner = np.zeros((t.node_count, width), bool), t.children_left >= 0
        for node in np.flatnonzero(inner):
            feature[node], k = source[t.feature[node]]
            column = self.space[int(feature[node])]
            if column.is_categorical:  # x <= 0.5: any other category
                subset[node, : len(column.categories)] = True
                subset[node, k] = False
            else:
                threshold[node] = t.threshold[node]
        value = t.value[:, 0] / t.value[:, 0].sum(axis=1, keepdims=True)
        nodes = feature, threshold, t.children_left, t.children_right, value
        weight = t.weighted_n_node_samples
        return Tree(self.space, model.classes_, *nodes, weight, inner, subset)


def area(y, shares):
    if shares.shape[1] == 2:
        return roc_auc_score(y, shares[:, 1])
    present = [k for k in range(shares.shape[1]) if (y == k).any()]
    return np.mean([roc_auc_score(y == k, shares[:, k]) for k in present])


def measure(make, X, y, options):
    """Means over folds of accuracy, AUC, changed predictions, distance and CPU seconds."""
    accuracy, auc, changed, distance, seconds = ([] for _ in range(5))
    for repeat in range(options.repeats):
        folds = StratifiedKFold(5, shuffle=True, random_state=options.seed + repeat)
        trees = []
        for train, test in folds.split(X, y):
            start = time.process_time()
            tree = make().fit(X.iloc[train], y[train]).tree_
            seconds.append(time.process_time() - start)
            accuracy.append(np.mean(tree.predict(X.iloc[test]) == y[test]))
            auc.append(area(y[test], tree.predict_proba(X.iloc[test])))
            trees.append(tree)
        answers = [tree.predict(X) for tree in trees]
        changed += [np.mean(a != b) for a, b in itertools.combinations(answers, 2)]
        apart = st.tree_distance(trees, space=X)
        distance += apart[np.triu_indices(5, 1)].tolist()
    return [float(np.mean(each)) for each in (accuracy, auc, changed, distance, seconds)]


def geometric(ours, theirs, floor):
    ratios = np.maximum(ours, floor) / np.maximum(theirs, floor)
    return float(np.exp(np.mean(np.log(ratios)))), float(ratios.max())


def summarise(label, rows):
    cart, steady = np.array(rows).transpose(1, 0, 2)
    better = steady - cart
    # fewer changes than one row in 400 count as that
    changed, most = geometric(steady[:, 2], cart[:, 2], 1 / 400)
    distance, _ = geometric(steady[:, 3], cart[:, 3], 0.01)
    print(
        f"{label}: accuracy {100 * better[:, 0].mean():+.2f} points (least "
        f"{100 * better[:, 0].min():+.1f}), AUC {better[:, 1].mean():+.4f} (least "
        f"{better[:, 1].min():+.3f}), changed x {changed:.2f} (most x {most:.2f}), "
        f"distance x {distance:.2f}",
        flush=True,
    )


def show(title, names, options):
    """A line for each set and size, and the means against CART."""
    print(f"\n{title}\n" + "  ".join(f"{name:>17}" for name in HEAD))
    rows = {}
    for name in names:
        X, y = read(name, options.most)
        space = FeatureSpace.observe(X)
        for leaves in options.leaves:
            steady = measure(lambda n=leaves: st.SteadyTreeClassifier(n), X, y, options)
            for size in (leaves, OF_ANY_SIZE) if leaves == 8 else (leaves,):
                cart = measure(lambda n=size, s=space: Cart(s, n), X, y, options)
                rows.setdefault((leaves, size), []).append((cart, steady))
                cells = [f"{a:.3f} -> {b:.3f}" for a, b in zip(cart, steady, strict=True)]
                label = f"{name[:10]} {size}/{leaves}"
                print("  ".join(f"{cell:>17}" for cell in (label, len(y), *cells)), flush=True)
    for (leaves, size), found in rows.items():
        summarise(f"{leaves} leaves against CART of {size}", found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--leaves", type=int, nargs="+", default=[4, 6, 8, 12])
    for name, usual in (("repeats", 2), ("seed", 7), ("most", 1500)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    options = parser.parse_args()
    st.SteadyTreeClassifier().fit([[0.0], [1.0]] * 20, [0, 1] * 20)  # compiles
    print(f"CART -> steady tree; set with leaves of CART / of the tree; folds from {options.seed}")
    show("sets that the recipe was chosen on", DEVELOPMENT, options)
    show("sets that were not looked at before", FRESH, options)


if __name__ == "__main__":
    main()
