"""tree_distance: how far two trees are apart."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree._base.validation import OneOf
from steadytree.data.table import quote
from steadytree.distance._kernels import node_distance
from steadytree.distance.path import Leaves, Matching, path_distance, path_distances
from steadytree.models._kernels import FlatTree, flatten
from steadytree.models.sklearn import as_tree
from steadytree.models.tree import Tree


@dataclass(frozen=True)
class NodeDistance:
    """Nodes left over when the common top of two trees is taken away.

    Parameters
    ----------
    value : float
        The distance, normalised if that was asked for.
    parted : tuple of pairs of int
        Nodes (of the first tree, of the second) at which the trees part.
    """

    value: float
    parted: tuple[tuple[int, int], ...]


def measure_node_distance(
    a: Any, b: Any, features_only: bool = False, normalise: bool | int = False
) -> NodeDistance:
    """Compare two trees from the root down as long as they ask the same.

    Parameters
    ----------
    a, b : Tree, fitted learner or fitted scikit-learn tree
        Over columns of the same names.
    features_only : bool, default=False
        Call two questions equal when they ask about the same feature.
    normalise : bool or int, default=False
        Divide by the largest distance of trees of a depth B, 2^(B + 2) - 2; True takes the
        depth of the deeper tree.

    Returns
    -------
    NodeDistance
    """
    first, second = as_tree(a), as_tree(b)
    check_same_features(first, second)
    numbers = TreeNumbers([first, second], features_only)
    distance, pairs = node_distance(numbers.flat(first), numbers.flat(second))
    value = float(distance) / largest_distance(normalise, first, second)
    return NodeDistance(value, tuple((int(one), int(other)) for one, other in pairs))


class TreeNumbers:
    """Numbers for questions and labels, the same for all of several trees.

    Parameters
    ----------
    trees : sequence of Tree
        Their columns tell whether the side of missing values is part of a question. Columns of
        trees read from scikit-learn without rows cannot tell: among such trees only a side that
        is not the one with more rows, where missing values go unseen, is part of it.
    features_only : bool, default=False
    """

    def __init__(self, trees: Sequence[Tree], features_only: bool = False) -> None:
        self._with_missing = {c.name for tree in trees for c in tree.space if c.missing}
        self._features_only = features_only
        self._has_habit = all(tree.single_precision for tree in trees)
        self._keys: dict[Hashable, int] = {}
        self._labels: dict[Hashable, int] = {}

    def flat(self, tree: Tree) -> FlatTree:
        """The tree as arrays that can be compared with those of the other trees."""
        key = np.full(tree.n_nodes, -1)
        for node in np.flatnonzero(~tree.is_leaf):
            key[node] = self._keys.setdefault(self._question(tree, int(node)), len(self._keys))
        labels = tree.classes.tolist()
        numbers = [self._labels.setdefault(label, len(self._labels)) for label in labels]
        label = np.array(numbers, dtype=np.int64)[tree.label]
        return flatten(key, tree.left, tree.right, label, False)

    def _question(self, tree: Tree, node: int) -> Hashable:
        column = tree.space[int(tree.feature[node])]
        if self._features_only:
            return column.name
        # without missing values in training their side is a habit of later rows, not of the rule
        side = bool(tree.missing_left[node]) if column.name in self._with_missing else None
        if self._has_habit and side == (
            tree.weight[tree.left[node]] > tree.weight[tree.right[node]]
        ):
            side = None
        if column.is_categorical:
            flags = tree.subset[node][: len(column.categories)]
            chosen = frozenset(np.array(column.categories)[flags].tolist())
            return column.name, chosen, side
        return column.name, float(tree.threshold[node]), side


def largest_distance(normalise: bool | int, *trees: Tree) -> float:
    """The largest node distance of trees of a depth, or 1 where nothing is normalised."""
    if normalise is False:
        return 1.0
    depth = max(tree.depth for tree in trees) if normalise is True else int(normalise)
    if depth < max(tree.depth for tree in trees):
        raise ValueError(
            f"normalise={normalise} is a depth that a tree exceeds: give at least "
            f"{max(tree.depth for tree in trees)}."
        )
    return float(2 ** (depth + 2) - 2)


def check_same_features(a: Tree, b: Tree) -> None:
    """Refuse trees over different columns, and say which."""
    only_a, only_b = (
        set(a.space.names) - set(b.space.names),
        set(b.space.names) - set(a.space.names),
    )
    if only_a or only_b:
        parts = [
            f"only the {which} has {quote(sorted(names))}"
            for which, names in (("first", only_a), ("second", only_b))
            if names
        ]
        raise ValueError(f"the trees are over different features: {'; '.join(parts)}.")


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
    """

    kind: str
    parted: tuple[tuple[int, int], ...] = ()
    matching: NDArray[np.int64] | None = None


def tree_distance(
    a: Any,
    b: Any,
    kind: str = "path",
    normalise: bool | int = False,
    *,
    class_weight: float = 1.0,
    matching: Matching = "unmatched-cost",
    leaves: Leaves = "label",
    space: Any = None,
) -> TreeDistance:
    """Distance between two trees.

    Parameters
    ----------
    a, b : Tree, fitted learner or fitted scikit-learn tree
        Over columns of the same names.
    kind : {"path", "node", "node-features"}, default="path"
        "path" matches the paths of both trees in the cheapest way, see `path_distance`. "node"
        counts the nodes that are left when the common top of both trees is taken away; two
        questions are the same when feature, threshold (or categories) and, where there were
        missing values, their side agree. "node-features" takes two questions about the same
        feature for the same, whatever the thresholds.
    normalise : bool or int, default=False
        Divide by the largest distance of trees of a depth: True takes the depth of the deeper
        tree, a number is the depth itself. For node distances that is 2^(B + 2) - 2.
    class_weight, matching, leaves, space
        For the path distance alone, see `path_distance`.

    Returns
    -------
    TreeDistance
        A float; ``parted`` or ``matching`` say where it comes from.

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
    """
    OneOf(*KINDS).check(kind, "kind")
    if kind == "path":
        matched = path_distance(
            a,
            b,
            class_weight=class_weight,
            matching=matching,
            leaves=leaves,
            normalise=normalise,
            space=space,
        )
        distance = TreeDistance(matched.value)
        distance.matching = matched.matching
    else:
        found = measure_node_distance(a, b, kind == "node-features", normalise)
        distance = TreeDistance(found.value)
        distance.parted = found.parted
    distance.kind = kind
    return distance


def tree_distances(
    A: Sequence[Any],
    B: Sequence[Any] | None = None,
    kind: str = "path",
    normalise: bool | int = False,
    *,
    class_weight: float = 1.0,
    matching: Matching = "unmatched-cost",
    leaves: Leaves = "label",
    space: Any = None,
) -> NDArray[np.float64]:
    """Distance of every tree of A to every tree of B, or among those of A.

    Options are those of `tree_distance`; ``normalise=True`` takes the largest depth of all.

    Returns
    -------
    distances : float64 array of shape (len(A), len(B))

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X = [[0.0], [1.0], [2.0], [4.0]]
    >>> trees = [DecisionTreeClassifier().fit(X, y) for y in ([0, 0, 1, 1], [0, 1, 1, 1])]
    >>> tree_distances(trees, kind="node")
    array([[0., 6.],
           [6., 0.]])
    """
    OneOf(*KINDS).check(kind, "kind")
    if kind == "path":
        return path_distances(
            A,
            B,
            class_weight=class_weight,
            matching=matching,
            leaves=leaves,
            normalise=normalise,
            space=space,
        )
    if len(A) == 0 or (B is not None and len(B) == 0):
        raise ValueError("tree_distances: at least one tree is needed on each side, got none.")
    first = [as_tree(model) for model in A]
    second = first if B is None else [as_tree(model) for model in B]
    if normalise is True:
        normalise = max(tree.depth for tree in (*first, *second))
    relaxed = kind == "node-features"
    rows = [[measure_node_distance(a, b, relaxed, normalise).value for b in second] for a in first]
    return np.array(rows)


def measure_distance(a: Tree, b: Tree, distance: Distance) -> float:
    """A distance by name, or by the caller's own function."""
    return float(distance(a, b)) if callable(distance) else float(tree_distance(a, b, distance))
