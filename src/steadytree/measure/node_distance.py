"""Distance between two trees node by node, from the root down."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from steadytree.core.table import quote
from steadytree.core.tree import Tree
from steadytree.interop.sklearn_tree import as_tree
from steadytree.kernels import FlatTree, flatten, node_distance


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
