"""Facts about many trees for one problem: which features they share, and at which thresholds."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree._base.optional import to_frame
from steadytree.data.feature_space import FeatureSpace
from steadytree.models.boxes import rebase, shared_space
from steadytree.models.sklearn import as_tree
from steadytree.models.tree import Tree

TOP = 3
PLACES = ("root", "left", "right")


@dataclass(frozen=True, eq=False)
class CollectionFacts:
    """What the trees of a collection have in common."""

    space: FeatureSpace
    # (n_trees, n_features): Gini importance of each feature in each tree; a row sums to 1, or
    # to 0 for a lone leaf
    importances: NDArray[np.float64]
    # (3, n_features + 1): trees by the feature of the root, its left and its right
    # child; the last column counts trees that have a leaf there, or nothing
    first_splits: NDArray[np.int64]
    # all thresholds of each numeric feature, by name, in rising order
    thresholds: dict[str, NDArray[np.float64]]

    @property
    def n_trees(self) -> int:
        return len(self.importances)

    @property
    def deviation(self) -> float:
        """Standard deviation of a feature's importance over the trees, the mean over features."""
        return float(self.importances.std(axis=0).mean())

    @cached_property
    def top_counts(self) -> NDArray[np.int64]:
        """In how many trees each feature is one of the three most important."""
        counts = np.zeros(len(self.space), np.int64)
        for row in self.importances:
            ranked = np.argsort(-row, kind="stable")[:TOP]
            counts[ranked[row[ranked] > 0]] += 1
        return counts

    @property
    def n_top_features(self) -> int:
        """How many different features are one of the three most important in some tree."""
        return int((self.top_counts > 0).sum())

    def most_chosen(self, n: int = 2) -> list[tuple[str, str, float]]:
        """Node, feature and share of trees, for the features chosen most often at each node."""
        names = [*self.space.names, "(leaf)"]
        return [
            (node, names[j], float(counts[j] / self.n_trees))
            for node, counts in zip(PLACES, self.first_splits, strict=True)
            for j in np.argsort(-counts, kind="stable")[:n]
            if counts[j]
        ]

    def columns(self) -> dict[str, NDArray[Any]]:
        """One row a feature, most important first."""
        order = np.argsort(-self.importances.mean(axis=0), kind="stable")
        names = np.array(self.space.names)
        own = [self.thresholds.get(name, np.empty(0)) for name in names]
        quarters = [0.25, 0.5, 0.75]
        quartiles = np.array([np.quantile(t, quarters) if len(t) else [np.nan] * 3 for t in own])
        shares = self.first_splits[:, :-1] / self.n_trees
        found = {
            "feature": names,
            "importance": self.importances.mean(axis=0),
            "deviation": self.importances.std(axis=0),
            "in_top_3": self.top_counts / self.n_trees,
            **dict(zip(PLACES, shares, strict=True)),
            "n_cuts": np.array([len(t) for t in own]),
            "cut_25": quartiles[:, 0],
            "cut_50": quartiles[:, 1],
            "cut_75": quartiles[:, 2],
        }
        return {name: column[order] for name, column in found.items()}

    def frame(self) -> Any:
        """`columns` as a frame: pandas', or polars' where that is what is installed."""
        return to_frame(self.columns())


def collection_facts(models: Sequence[Any]) -> CollectionFacts:
    """Look at many trees for one problem together.

    Parameters
    ----------
    models : list of Tree, fitted learners, or fitted scikit-learn tree classifiers
        Over the same features, such as the ``trees_`` of a `ParetoTreeClassifier`, or the
        ``estimators_`` of a random forest.

    Returns
    -------
    facts : CollectionFacts

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> forest = RandomForestClassifier(20, random_state=0).fit(*load_iris(return_X_y=True))
    >>> facts = collection_facts(forest.estimators_)
    >>> facts.importances.shape, facts.n_top_features
    ((20, 4), 4)
    """
    if len(models) == 0:
        raise ValueError("collection_facts: at least one tree is needed, got none.")
    trees = [as_tree(model) for model in models]
    space = shared_space([tree.space for tree in trees])
    trees = [rebase(tree, space) for tree in trees]
    splits = np.zeros((len(PLACES), len(space) + 1), np.int64)
    for tree in trees:
        for k, node in enumerate((0, tree.left[0], tree.right[0])):  # -1 where there is none
            splits[k, -1 if node < 0 else tree.feature[node]] += 1  # a leaf's feature is -1
    feature = np.concatenate([tree.feature for tree in trees])
    threshold = np.concatenate([tree.threshold for tree in trees])
    feature, threshold = feature[np.isfinite(threshold)], threshold[np.isfinite(threshold)]
    thresholds = {
        column.name: np.sort(threshold[feature == j])
        for j, column in enumerate(space)
        if not column.is_categorical
    }
    importances = np.stack([gini_importance(tree) for tree in trees])
    return CollectionFacts(space, importances, splits, thresholds)


def gini_importance(tree: Tree) -> NDArray[np.float64]:
    """Share of the whole drop in Gini impurity that each feature's splits bring."""
    inner = np.flatnonzero(~tree.is_leaf)
    impurity = tree.weight * (1 - (tree.value**2).sum(axis=1))
    drop = impurity[inner] - impurity[tree.left[inner]] - impurity[tree.right[inner]]
    total = np.bincount(tree.feature[inner], drop, len(tree.space))
    return total / total.sum() if total.sum() > 0 else np.zeros(len(tree.space))
