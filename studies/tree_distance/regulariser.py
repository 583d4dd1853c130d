"""Section 5: the distance as a regulariser while a tree grows.

A tree grows leaf by leaf. Each step takes the split that lowers

    log loss on the training rows + mu * path distance to a given tree

most, among the best splits of each leaf by Gini's index and the splits of the given tree, and ends
where none lowers it. With mu = 0 it is greedy growth by log loss.
"""

import numpy as np
from frontier import area
from methods import cross_validated
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier
from tables import show, spread

from steadytree import FeatureSpace, Tree
from steadytree.distance.path import path_distance
from steadytree.models.sklearn import from_sklearn

WEIGHTS = (0.0, 0.003, 0.01, 0.03, 0.1)
MOST_LEAVES = 8


def study(name, X, y, n_splits=10):
    """Print distance to the tree of half of the rows and AUC on test rows, by mu."""
    found = {mu: [] for mu in WEIGHTS}
    for seed in range(n_splits):
        rows = np.arange(len(X))
        train, test = train_test_split(rows, test_size=0.33, random_state=seed, stratify=y)
        half = train_test_split(train, train_size=0.5, random_state=seed, stratify=y[train])[0]
        grid = {"max_depth": [2, 3], "min_samples_leaf": [5, 10]}
        before = from_sklearn(cross_validated(X.iloc[half], y[half], seed, grid), X)
        for mu in WEIGHTS:
            tree = grow_near(X.iloc[train], y[train], before, mu)
            far = path_distance(tree, before, space=X).value
            found[mu].append((far, area(tree, X.iloc[test], y[test]), tree.n_leaves))
    rows = [
        (f"mu {mu:g}", *(spread([r[k] for r in found[mu]]) for k in range(3))) for mu in WEIGHTS
    ]
    show(f"{name}: section 5, grown near a tree", ("", "distance", "AUC", "leaves"), rows)


def grow_near(X, y, before, mu, max_leaves=MOST_LEAVES):
    """The tree that grows towards low loss and a small distance; labels are 0 and 1."""
    space, values = FeatureSpace.observe(X), X.to_numpy(float)
    nodes = [Node(np.arange(len(y)))]
    tree = as_tree(nodes, y, space)
    least = cost(tree, nodes, y, before, mu, X)
    while sum(node.split is None for node in nodes) < max_leaves:
        best = None
        for k, node in enumerate(nodes):
            for split in candidates(node, values, y, before):
                grown = with_split(nodes, k, split, values)
                made = as_tree(grown, y, space)
                value = cost(made, grown, y, before, mu, X)
                if value < least - 1e-12:
                    least, best = value, (grown, made)
        if best is None:
            break
        nodes, tree = best
    return tree


class Node:
    """Rows that reach a node, its split (column, threshold) and its children, if any."""

    def __init__(self, rows, split=None, children=(-1, -1)):
        self.rows, self.split, self.children = rows, split, children


def candidates(node, values, y, before):
    """The best split of a leaf's rows, and those of the given tree that divide them."""
    own, labels = values[node.rows], y[node.rows]
    if node.split is not None or len(np.unique(labels)) < 2:
        return []
    stump = DecisionTreeClassifier(max_depth=1, min_samples_leaf=3, random_state=0).fit(own, labels)
    inside = stump.tree_
    found = [(int(inside.feature[0]), float(inside.threshold[0]))] if inside.node_count > 1 else []
    for k in np.flatnonzero(~before.is_leaf):
        found.append((int(before.feature[k]), float(before.threshold[k])))
    return [(j, t) for j, t in found if 3 <= (own[:, j] <= t).sum() <= len(own) - 3]


def with_split(nodes, k, split, values):
    """The nodes with a leaf divided; its children come last."""
    rows = nodes[k].rows
    left = values[rows, split[0]] <= split[1]
    n = len(nodes)
    grown = list(nodes)
    grown[k] = Node(rows, split, (n, n + 1))
    return [*grown, Node(rows[left]), Node(rows[~left])]


def as_tree(nodes, y, space):
    """The nodes as a Tree; shares of the classes with one row more of each."""
    ones = np.array([y[node.rows].sum() for node in nodes])
    sizes = np.array([len(node.rows) for node in nodes])
    share = (ones + 1) / (sizes + 2)
    return Tree(
        space,
        [0, 1],
        [-1 if node.split is None else node.split[0] for node in nodes],
        [np.nan if node.split is None else node.split[1] for node in nodes],
        [node.children[0] for node in nodes],
        [node.children[1] for node in nodes],
        np.stack([1 - share, share], axis=1),
        sizes,
    )


def cost(tree, nodes, y, before, mu, X):
    """Log loss on the training rows, and mu times the distance."""
    loss = 0.0
    for node, value in zip(nodes, tree.value, strict=True):
        if node.split is None:
            loss -= np.log(value[y[node.rows]]).sum()
    near = path_distance(tree, before, space=X).value if mu else 0.0
    return loss / len(y) + mu * near
