"""Batches of data one after another: plain retraining beside retraining that stays close."""

from collections import defaultdict

import numpy as np
from frontier import area
from methods import cross_validated
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier
from tables import show

from steadytree.distance.path import path_distance
from steadytree.models.sklearn import from_sklearn
from steadytree.stability.retrain import RetrainedTreeClassifier
from steadytree.stability.stable_tree import StableTreeClassifier

STABLE = {"max_depth": 4, "epsilon": 0, "criterion": "gini", "min_samples_leaf": 5}
STABLE["merge_leaves"] = True


def plain_cart(X, y, seed, previous, seen):
    return cross_validated(X, y, seed)


def near_cart(X, y, seed, previous, seen):
    """Cross-validated CART at first, then few changed decisions beside CART of that size."""
    if previous is None:
        return cross_validated(X, y, seed)
    size = {"max_leaf_nodes": max(previous.n_leaves, 2), "min_samples_leaf": 5}
    refit = DecisionTreeClassifier(**size, random_state=seed)
    return RetrainedTreeClassifier(previous, refit, random_state=seed).fit(X, y, seen=seen)


def plain_greedy(X, y, seed, previous, seen):
    return StableTreeClassifier(**STABLE, random_state=seed).fit(X, y)


def near_greedy(X, y, seed, previous, seen):
    refit = StableTreeClassifier(**STABLE, random_state=seed)
    learner = RetrainedTreeClassifier(previous, refit, random_state=seed)
    return learner.fit(X, y, seen=None if previous is None else seen)


METHODS = {
    "cross-validated CART": plain_cart,
    "CART, retrained": near_cart,
    "greedy, depth 4": plain_greedy,
    "greedy, retrained": near_greedy,
}


def study(name, X, y, n_splits=3, n_batches=8):
    """Print the distance to the tree before and the AUC on test rows, batch by batch."""
    steps, areas, kept = defaultdict(list), defaultdict(list), defaultdict(list)
    for seed in range(n_splits):
        rows = np.arange(len(X))
        train, test = train_test_split(rows, test_size=0.33, random_state=seed, stratify=y)
        ends = np.linspace(0, len(train), n_batches + 1).astype(int)[1:]
        for method, learn in METHODS.items():
            previous, start = None, 0
            for batch, end in enumerate(ends):
                own, seen = train[:end], np.arange(end) < start
                model = learn(X.iloc[own], y[own], seed, previous, seen)
                start = end
                tree = model.tree_ if hasattr(model.tree_, "space") else from_sklearn(model, X)
                if previous is not None:
                    apart = path_distance(previous, tree, space=X).value
                    same = (previous.predict(X.iloc[test]) == tree.predict(X.iloc[test])).mean()
                    steps[method, batch].append(apart)
                    kept[method].append(same)
                areas[method, batch].append(area(tree, X.iloc[test], y[test]))
                previous = tree
    head = ("", *(f"{k + 1}" for k in range(n_batches)), "mean")
    for title, found in (("distance to the tree before", steps), ("AUC on test rows", areas)):
        rows = []
        for method in METHODS:
            means = [
                np.mean(found[method, k]) if found[method, k] else None for k in range(n_batches)
            ]
            shown = ["-" if value is None else float(value) for value in means]
            rows.append((method, *shown, float(np.mean([v for v in means if v is not None]))))
        show(f"{name}: {title}, batch by batch", head, rows)
    rows = [(method, float(np.mean(kept[method]))) for method in METHODS]
    show(f"{name}: decisions on test rows that stay from batch to batch", ("", "share"), rows)
