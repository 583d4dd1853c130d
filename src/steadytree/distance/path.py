"""Path distance: how far apart two trees are when their paths are matched in the best way."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadytree._base.validation import OneOf
from steadytree.data.feature_space import FeatureSpace
from steadytree.distance._kernels import (
    match_paths,
    path_distance_matrix,
    path_vectors,
    path_weights,
)
from steadytree.models.boxes import rebase, shared_space, widen
from steadytree.models.sklearn import as_tree
from steadytree.models.tree import Tree

Leaves = Literal["label", "distribution"]
LEAVES = ("label", "distribution")


class Paths(NamedTuple):
    """Paths of one tree after another; the paths of tree k are offsets[k] up to offsets[k + 1]."""

    vectors: NDArray[np.float64]
    weights: NDArray[np.float64]
    offsets: NDArray[np.int64]
    leaves: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PathFrame:
    """How paths of several trees become vectors whose city-block distance is the paths'.

    Only features on which some tree splits take part; the others add nothing to any distance.
    """

    space: FeatureSpace  # bounds and categories that distances are measured in
    # each (p,): first entry of a feature in a vector (-1 if unused), bounds, number of categories
    columns: tuple[NDArray[Any], ...]
    width: int  # entries of the features; those of the classes follow
    classes: dict[Any, int]  # index of each label
    class_weight: float
    leaves: Leaves

    @classmethod
    def of(
        cls, trees: Sequence[Tree], space: FeatureSpace, class_weight: float, leaves: Leaves
    ) -> "PathFrame":
        """A frame that holds all the given trees, which must be over `space`."""
        used = np.zeros(len(space) + 1, bool)
        classes: dict[Any, int] = {}
        for tree in trees:
            used[tree.feature] = True  # LEAF marks the last entry, which stands for nothing
            for label in tree.classes.tolist():
                classes.setdefault(label, len(classes))
        sizes = np.where(used[:-1], np.maximum(space.n_categories, 2), 0)
        start = np.where(used[:-1], np.cumsum(sizes) - sizes, -1)
        columns = (start, *space.bounds, space.n_categories)
        return cls(space, columns, int(sizes.sum()), classes, float(class_weight), leaves)

    def paths(self, trees: Sequence[Tree]) -> Paths:
        """Vectors, weights and leaves of all paths of the trees."""
        # a tree has one leaf more than splits
        offsets = np.array([0, *accumulate((tree.n_nodes + 1) // 2 for tree in trees)])
        vectors = np.zeros((offsets[-1], self.width + len(self.classes)))
        leaves = np.empty(offsets[-1], np.int64)
        half, by_label = self.class_weight / 2, self.leaves == "label"
        for tree, start, end in zip(trees, offsets[:-1], offsets[1:], strict=True):
            own = np.array([self.width + self.classes[label] for label in tree.classes.tolist()])
            path_vectors(
                (tree.feature, tree.threshold, tree.left, tree.right, tree.subset, tree.value),
                self.columns,
                (own, half, by_label),
                vectors[start:end],
                leaves[start:end],
            )
        weights = path_weights(vectors, self.columns[0], self.columns[3])
        return Paths(vectors, weights, offsets, leaves)


def over_columns(tree: Tree, space: FeatureSpace) -> Tree:
    """The tree with the features and categories of `space`, as it is where they are its own.

    Bounds are taken from the frame and not from the tree, so they may differ.
    """
    own = tree.space
    if own is space or (own.names == space.names and own.categories == space.categories):
        return tree
    return rebase(tree, space)


def distances_between(
    ours: Sequence[Tree],
    theirs: Sequence[Tree] | None,
    space: FeatureSpace,
    *,
    class_weight: float = 1.0,
    surjective: bool = False,
    leaves: Leaves = "label",
) -> NDArray[np.float64]:
    """Path distance of every tree of ours to every tree of theirs, or among ours.

    The trees may come from other spaces whose columns `space` holds.
    """
    first = [over_columns(tree, space) for tree in ours]
    second = first if theirs is None else [over_columns(tree, space) for tree in theirs]
    frame = PathFrame.of([*first, *second], space, class_weight, leaves)
    paths = frame.paths(first)
    others = paths if theirs is None else frame.paths(second)
    found: NDArray[np.float64] = path_distance_matrix(
        tuple(paths[:3]), tuple(others[:3]), surjective, theirs is None
    )
    return found


Matching = Literal["unmatched-cost", "surjective"]
MATCHINGS = ("unmatched-cost", "surjective")
UNMATCHED = -1


@dataclass(frozen=True, eq=False)
class PathDistance:
    """The distance of two trees, and which of their paths were matched."""

    value: float
    matching: NDArray[np.int64]  # (n_pairs, 2), leaves of both trees by node; -1 is unmatched
    costs: NDArray[np.float64]  # (n_pairs,), what each pair adds before normalising


def path_distance(
    a: Any,
    b: Any,
    *,
    class_weight: float = 1.0,
    matching: Matching = "unmatched-cost",
    leaves: Leaves = "label",
    normalise: bool | int = False,
    space: Any = None,
) -> PathDistance:
    """Distance of two trees by the cheapest matching of their paths; see `tree_distance`."""
    _check_options(class_weight, matching, leaves)
    trees, columns = trees_over_one_space([a, b], space)
    first, second = (over_columns(tree, columns) for tree in trees)
    frame = PathFrame.of([first, second], columns, class_weight, leaves)
    vectors, weights, offsets, ends = frame.paths([first, second])
    sides = [slice(0, offsets[1]), slice(offsets[1], None)]
    swap = first.n_nodes < second.n_nodes
    many, few = sides[::-1] if swap else sides
    partner, costs = match_paths(
        vectors[many], weights[many], vectors[few], matching == "surjective"
    )
    pairs = np.empty((len(partner), 2), np.int64)
    pairs[:, int(swap)] = ends[many]
    pairs[:, int(not swap)] = np.where(partner < 0, UNMATCHED, ends[few][partner])
    value = float(costs.sum()) / _divisor(normalise, trees, class_weight)
    return PathDistance(value, pairs, costs)


def path_distances(
    A: Sequence[Any],
    B: Sequence[Any] | None = None,
    *,
    class_weight: float = 1.0,
    matching: Matching = "unmatched-cost",
    leaves: Leaves = "label",
    normalise: bool | int = False,
    space: Any = None,
) -> NDArray[np.float64]:
    """Path distance of every tree of A to every tree of B, or among those of A.

    Without `space` one is made that holds all trees; ``normalise=True`` takes the largest depth.
    """
    _check_options(class_weight, matching, leaves)
    check_any_trees(A, B)
    trees, columns = trees_over_one_space([*A, *(B or ())], space)
    distances = distances_between(
        trees[: len(A)],
        None if B is None else trees[len(A) :],
        columns,
        class_weight=float(class_weight),
        surjective=matching == "surjective",
        leaves=leaves,
    )
    return distances / _divisor(normalise, trees, class_weight)


def check_any_trees(A: Sequence[Any], B: Sequence[Any] | None) -> None:
    """Refuse empty lists of trees, and a single tree in place of the second."""
    if B is not None and not isinstance(B, list | tuple):
        raise TypeError(f"tree_distance: a is a list, so b must be one too, got {B!r}.")
    if len(A) == 0 or (B is not None and len(B) == 0):
        raise ValueError("tree_distance: at least one tree is needed in each list, got none.")


def trees_over_one_space(models: Sequence[Any], space: Any) -> tuple[list[Tree], FeatureSpace]:
    """The trees inside the models, and columns with bounds to compare them in."""
    trees = [as_tree(model) for model in models]
    if space is not None:
        columns = space if isinstance(space, FeatureSpace) else FeatureSpace.observe(space)
        return trees, columns.bare()
    known = [
        tree.space
        for model, tree in zip(models, trees, strict=True)
        if tree is model or isinstance(getattr(model, "tree_", None), Tree)
    ]
    if not known:
        raise ValueError(
            "scikit-learn's trees keep no bounds of their features, which the path distance is "
            "measured in: pass space=X, the data they were learned from."
        )
    columns = shared_space(known)
    if len(known) < len(trees):
        shared_space([columns, *(tree.space for tree in trees)])  # names and kinds must agree
        columns = widen(columns, trees)
    return trees, columns


def _check_options(class_weight: float, matching: str, leaves: str) -> None:
    if not isinstance(class_weight, Real) or not 0 <= class_weight < np.inf:
        raise ValueError(
            f"class_weight must be a finite number of at least 0, got {class_weight!r}."
        )
    OneOf(*MATCHINGS).check(matching, "matching")
    OneOf(*LEAVES).check(leaves, "leaves")


def largest_depth(normalise: bool | int, trees: Sequence[Tree]) -> int:
    """The depth to normalise by: that of the deepest tree, or one that is given and no less."""
    deepest = max(tree.depth for tree in trees)
    if isinstance(normalise, bool):
        return deepest
    if not isinstance(normalise, Integral) or normalise < deepest:
        raise ValueError(
            f"normalise must be True, False or a depth of at least {deepest}, got {normalise!r}: "
            "give the largest depth of the study."
        )
    return int(normalise)


def _divisor(normalise: bool | int, trees: Sequence[Tree], class_weight: float) -> float:
    """The largest distance that trees of one depth can have."""
    depth = max(largest_depth(normalise, trees), 1)
    return 1.0 if normalise is False else float(2**depth * (2 * depth + class_weight))
