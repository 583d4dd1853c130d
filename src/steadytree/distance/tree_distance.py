"""tree_distance: how far two trees, or those of a collection, are apart."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree._base.notebook import Shown
from steadytree._base.optional import to_frame
from steadytree._base.validation import OneOf
from steadytree.data.feature_space import FeatureSpace
from steadytree.distance._kernels import node_distance
from steadytree.distance.path import (
    Leaves,
    Matching,
    are_regression_trees,
    check_any_trees,
    largest_depth,
    path_distance,
    path_distances,
    read_trees,
)
from steadytree.models._kernels import FlatTree, flatten
from steadytree.models.boxes import rebase, shared_space
from steadytree.models.tree import Tree


class TreeNumbers:
    """Numbers for splits and labels, shared by several trees.

    The side of missing values is part of a split where a tree's column has missing values. Trees
    read from scikit-learn without rows do not know that: among them the side counts only where it
    is not the side with more rows, to which missing values that were never seen go.
    """

    def __init__(self, trees: Sequence[Tree], features_only: bool = False) -> None:
        self._with_missing = {c.name for tree in trees for c in tree.space if c.missing}
        self._features_only = features_only
        self._by_size = all(tree.single_precision for tree in trees)
        self._keys: dict[Hashable, int] = {}
        self._labels: dict[Hashable, int] = {}

    def flat(self, tree: Tree) -> FlatTree:
        """The tree as arrays that can be compared with those of the other trees."""
        key = np.full(tree.n_nodes, -1)
        for node in np.flatnonzero(~tree.is_leaf):
            key[node] = self._keys.setdefault(self._split(tree, int(node)), len(self._keys))
        labels = tree.classes.tolist()
        numbers = [self._labels.setdefault(label, len(self._labels)) for label in labels]
        label = np.array(numbers, dtype=np.int64)[tree.label]
        return flatten(key, tree.left, tree.right, label, False)

    def _split(self, tree: Tree, node: int) -> Hashable:
        column = tree.space[int(tree.feature[node])]
        if self._features_only:
            return column.name
        # without missing values in training, their side is not part of the split
        side = bool(tree.missing_left[node]) if column.name in self._with_missing else None
        if self._by_size and side == (tree.weight[tree.left[node]] > tree.weight[tree.right[node]]):
            side = None
        if column.is_categorical:
            flags = tree.subset[node][: len(column.categories)]
            chosen = frozenset(np.array(column.categories)[flags].tolist())
            return column.name, chosen, side
        return column.name, float(tree.threshold[node]), side


KINDS = ("path", "node", "node-features")
Distance = str | Callable[[Tree, Tree], float]


class TreeDistance(float):
    """A distance that is a number and knows where it comes from.

    Attributes
    ----------
    kind : str
    parted : tuple of pairs of int
        For node distances: nodes (of the first tree, of the second) at which the trees part.
    matching : int64 array of shape (n_pairs, 2)
        For the path distance: matched leaves, by node, -1 where a path is left over.
    costs : float64 array of shape (n_pairs,)
        For the path distance: what each pair adds before the distance is normalised.
    """

    kind: str
    parted: tuple[tuple[int, int], ...] = ()
    matching: NDArray[np.int64] | None = None
    costs: NDArray[np.float64] | None = None


def tree_distance(
    a: Any,
    b: Any = None,
    kind: str = "path",
    normalise: bool | int = False,
    *,
    class_weight: float = 1.0,
    matching: Matching = "unmatched-cost",
    leaves: Leaves = "label",
    space: Any = None,
    target_range: float | None = None,
) -> Any:
    """Distance between two trees, or between all trees of one or two lists.

    The path distance (Bertsimas and Digalakis) is that of the cheapest matching of the trees'
    paths. Two paths differ by how far their bounds lie apart, in units of each feature's range, by
    the share of categories on which they disagree, and by `class_weight` where their labels differ.
    Where one tree has more paths, those left over cost what they leave open of the features that
    they constrain. The order of splits does not matter: trees with the same paths are at distance
    0. Among trees with equally many paths this is a metric; otherwise the triangle inequality can
    fail. Where missing values go is not compared.

    Parameters
    ----------
    a : Tree, fitted learner or fitted scikit-learn tree, or a list of these
        scikit-learn's regression trees are compared with regression trees: two paths then differ by
        ``class_weight * |difference of predictions| / target_range``; "node" takes two leaves for
        the same where their predictions are equal.
    b : the same, over columns of the same names
        May be left out where `a` is a list, whose trees are then compared with each other.
    kind : {"path", "node", "node-features"}, default="path"
        "node" counts the nodes that are left when the common top of both trees is taken away; two
        splits are the same when feature, threshold (or categories) and, where there were missing
        values, their side agree. "node-features" takes two splits on the same feature for the
        same, whatever the thresholds.
    normalise : bool or int, default=False
        Divide by the largest distance of trees of a depth D: ``2 ** D * (2 * D + class_weight)``
        for paths, ``2 ** (D + 2) - 2`` for nodes. True takes the depth of the deepest tree, a
        number is the depth itself; give one for a whole study.
    class_weight : float, default=1.0
        Path distance: cost of a different label; 1 is as much as one feature's bounds moved across
        its range. A class that one tree does not know differs from all of its classes.
    matching : {"unmatched-cost", "surjective"}, default="unmatched-cost"
        Path distance: paths left over cost their weight, or each is matched with the nearest path
        of the smaller tree, as the package dt-distance does.
    leaves : {"label", "distribution", "impurity"}, default="label"
        Path distance: compare labels, or class shares, where the class weight counts by half the
        summed differences of the shares, or the Gini impurities of the leaves, by their difference.
    space : FeatureSpace, array or frame, optional
        Path distance: columns to measure in, or data to read them off. By default the widest bounds
        of all trees. scikit-learn's trees keep no bounds, so these need it.
    target_range : float, optional
        Path distance of regression trees: difference of predictions that costs the class weight;
        by default the range of all predictions. Give the range of the target for a whole study.

    Returns
    -------
    TreeDistance or float64 array of shape (len(a), len(b))
        A float whose ``parted`` or ``matching`` explain it; the matrix of distances for lists.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = [[0.0], [1.0], [2.0]], ["a", "b", "a"]
    >>> small = DecisionTreeClassifier(max_depth=1, random_state=0).fit(X, y)
    >>> large = DecisionTreeClassifier(random_state=0).fit(X, y)
    >>> distance = tree_distance(small, large, kind="node")
    >>> float(distance), distance.parted
    (4.0, ((2, 2),))
    >>> float(tree_distance(small, large, space=X))
    0.75
    >>> tree_distance([small, large], kind="node")
    array([[0., 4.],
           [4., 0.]])
    """
    OneOf(*KINDS).check(kind, "kind")
    options: dict[str, Any] = {"class_weight": class_weight, "matching": matching, "leaves": leaves}
    options |= {"normalise": normalise, "space": space, "target_range": target_range}
    if isinstance(a, list | tuple):
        return path_distances(a, b, **options) if kind == "path" else _matrix(a, b, kind, normalise)
    if b is None:
        raise TypeError("tree_distance: b is missing: pass a second tree, or a list of trees.")
    if kind == "path":
        matched = path_distance(a, b, **options)
        distance = TreeDistance(matched.value)
        distance.matching, distance.costs = matched.matching, matched.costs
        distance.kind = kind
        return distance
    return measure_node_distance(a, b, kind == "node-features", normalise)


def measure_node_distance(
    a: Any, b: Any, features_only: bool = False, normalise: bool | int = False
) -> TreeDistance:
    """Compare two trees from the root down for as long as their splits are equal.

    With `features_only` two splits are equal where they are on the same feature.
    """
    first, second = read_trees([a, b])
    shared_space([first.space, second.space])  # refuses other features
    numbers = TreeNumbers([first, second], features_only)
    distance, pairs = node_distance(numbers.flat(first), numbers.flat(second))
    depth = largest_depth(normalise, [first, second])
    found = TreeDistance(distance / (1 if normalise is False else 2 ** (depth + 2) - 2))
    found.kind = "node-features" if features_only else "node"
    found.parted = tuple((int(one), int(other)) for one, other in pairs)
    return found


def _matrix(
    A: Sequence[Any], B: Sequence[Any] | None, kind: str, normalise: bool | int
) -> NDArray[np.float64]:
    """Node distances of every tree of A to every tree of B, or among those of A."""
    check_any_trees(A, B)
    trees = read_trees([*A, *(B or ())])
    first, second = trees[: len(A)], trees[len(A) :] if B else trees
    if normalise is True:
        normalise = max(tree.depth for tree in (*first, *second))
    relaxed = kind == "node-features"
    rows = [[measure_node_distance(a, b, relaxed, normalise) for b in second] for a in first]
    return np.array(rows, dtype=np.float64)


def measure_distance(a: Tree, b: Tree, distance: Distance) -> float:
    """A distance by name, or by the caller's own function."""
    return float(distance(a, b)) if callable(distance) else float(tree_distance(a, b, distance))


TOP = 3
POSITIONS = ("root", "left", "right")


@dataclass(frozen=True, eq=False, repr=False)
class CollectionFacts(Shown):
    """What the trees of a collection have in common."""

    space: FeatureSpace
    # (n_trees, n_features): importance of each feature in each tree; a row sums to 1, or
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
            for node, counts in zip(POSITIONS, self.first_splits, strict=True)
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
            **dict(zip(POSITIONS, shares, strict=True)),
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
    """Summarise many trees fitted to one problem.

    Parameters
    ----------
    models : list of Tree, fitted learners, or fitted scikit-learn trees
        All classifiers or all regression trees, over the same features, such as the ``trees_`` of a
        `ParetoTreeClassifier`, or the ``estimators_`` of a random forest.

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
    own = read_trees(models)
    space = shared_space([tree.space for tree in own])
    trees = [rebase(tree, space) for tree in own]
    splits = np.zeros((len(POSITIONS), len(space) + 1), np.int64)
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
    if are_regression_trees(models):  # by the criterion of each tree, in the order of its columns
        orders = [[tree.space.names.index(name) for name in space.names] for tree in own]
        pairs = zip(models, orders, strict=True)
        importances = np.stack([model.feature_importances_[order] for model, order in pairs])
    else:
        importances = np.stack([gini_importance(tree) for tree in trees])
    return CollectionFacts(space, importances, splits, thresholds)


def gini_importance(tree: Tree) -> NDArray[np.float64]:
    """Share of the whole drop in Gini impurity that each feature's splits bring."""
    inner = np.flatnonzero(~tree.is_leaf)
    impurity = tree.weight * (1 - (tree.value**2).sum(axis=1))
    drop = impurity[inner] - impurity[tree.left[inner]] - impurity[tree.right[inner]]
    total = np.bincount(tree.feature[inner], drop, len(tree.space))
    return total / total.sum() if total.sum() > 0 else np.zeros(len(tree.space))
