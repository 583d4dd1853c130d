"""tree_distance: how far two trees are apart."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.core.paths import Leaves
from steadytree.core.tree import Tree
from steadytree.interop.sklearn_tree import as_tree
from steadytree.measure.node_distance import measure_node_distance
from steadytree.measure.path_distance import Matching, path_distance, path_distances

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
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {KINDS}, got {kind!r}.")
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
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {KINDS}, got {kind!r}.")
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
