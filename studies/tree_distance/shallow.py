"""Section 2.5 as the paper draws it: trees of at most four questions, in % of the farthest pair."""

from collections import defaultdict

import numpy as np
from methods import cross_validated, pareto, size_matched
from sklearn.model_selection import train_test_split
from tables import show, spread

from steadytree.distance.path import path_distance
from steadytree.models.sklearn import from_sklearn

DEPTH = 4
GRID = {"max_depth": [2, 3, 4], "min_samples_leaf": [3, 5, 10, 30, 50]}
HEAD = ("", "distance, % of the bound at depth 4", "leaves before", "leaves after")


def study(name, X, y, n_splits=10, n_trees=100):
    """Print the distance between the trees from half of the rows and from all of them.

    Returns those of the first split for figure 1: by method the two trees, and their distance.
    """
    apart, before, after = defaultdict(list), defaultdict(list), defaultdict(list)
    first = {}
    for seed in range(n_splits):
        half = train_test_split(np.arange(len(X)), train_size=0.5, random_state=seed, stratify=y)[0]
        old, new = _trees(X, y, half, seed, n_trees), _trees(X, y, slice(None), seed, n_trees)
        for method in old:
            found = path_distance(old[method], new[method], space=X, normalise=DEPTH)
            apart[method].append(100 * found.value)
            before[method].append(old[method].n_leaves)
            after[method].append(new[method].n_leaves)
            first.setdefault(method, (old[method], new[method], apart[method][0]))
    rows = [(m, spread(apart[m]), spread(before[m]), spread(after[m])) for m in apart]
    show(f"{name}: section 2.5 at depth 4, half of the rows, then all", HEAD, rows)
    return first


def _trees(X, y, rows, seed, n_trees):
    A, b = X.iloc[rows], y[rows]
    stable = pareto(A, b, seed, n_trees, grid=GRID).tree_
    plain = {
        "cross-validated CART": cross_validated(A, b, seed, GRID),
        "CART of the knee's size": size_matched(A, b, stable, seed),
    }
    found = {method: from_sklearn(model, X) for method, model in plain.items()}
    return found | {"Pareto, knee": stable}
