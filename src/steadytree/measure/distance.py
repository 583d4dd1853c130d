"""tree_distance: how far two trees are apart."""

from collections.abc import Callable
from typing import Any

from steadytree.core.tree import Tree
from steadytree.measure.node_distance import measure_node_distance

KINDS = ("node", "node-features")
Distance = str | Callable[[Tree, Tree], float]


class TreeDistance(float):
    """A distance that is a number and knows where the trees part.

    Attributes
    ----------
    kind : str
    parted : tuple of pairs of int
        Nodes (of the first tree, of the second) at which the trees part.
    """

    kind: str
    parted: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, value: float, kind: str, parted: tuple[tuple[int, int], ...]) -> "TreeDistance":
        """A distance with its details."""
        distance = cls(value)
        distance.kind, distance.parted = kind, parted
        return distance


def tree_distance(
    a: Any, b: Any, kind: str = "node", normalise: bool | int = False
) -> TreeDistance:
    """Distance between two trees.

    Parameters
    ----------
    a, b : Tree, fitted learner or fitted scikit-learn tree
        Over columns of the same names.
    kind : {"node", "node-features"}, default="node"
        "node" counts the nodes that are left when the common top of both trees is taken away;
        two questions are the same when feature, threshold (or categories) and, where there were
        missing values, their side agree. "node-features" takes two questions about the same
        feature for the same, whatever the thresholds.
    normalise : bool or int, default=False
        Divide by the largest distance of trees of a depth B, 2^(B + 2) - 2; True takes the depth
        of the deeper tree, a number is B itself.

    Returns
    -------
    TreeDistance
        A float; ``parted`` lists the nodes at which the trees part.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = [[0.0], [1.0], [2.0]], ["a", "b", "a"]
    >>> small = DecisionTreeClassifier(max_depth=1, random_state=0).fit(X, y)
    >>> large = DecisionTreeClassifier(random_state=0).fit(X, y)
    >>> distance = tree_distance(small, large)
    >>> float(distance), distance.parted
    (4.0, ((2, 2),))
    """
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {KINDS}, got {kind!r}.")
    found = measure_node_distance(a, b, kind == "node-features", normalise)
    return TreeDistance.of(found.value, kind, found.parted)


def measure_distance(a: Tree, b: Tree, distance: Distance) -> float:
    """A distance by name, or by the caller's own function."""
    return float(distance(a, b)) if callable(distance) else float(tree_distance(a, b, distance))
