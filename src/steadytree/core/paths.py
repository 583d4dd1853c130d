"""Paths: trees as sets of paths, ready to be matched."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadytree.core.rebase import rebase
from steadytree.core.space import FeatureSpace
from steadytree.core.tree import Tree
from steadytree.kernels import path_distance_matrix, path_vectors, path_weights, place_features

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

    Only features that some tree asks about take part; the others add nothing to any distance.

    Parameters
    ----------
    space : FeatureSpace
        Bounds and categories that distances are measured in.
    columns : tuple of arrays (n_features,)
        First entry of each feature in a vector (-1 if unused), bounds, number of categories.
    width : int
        Entries of the features; the classes' follow.
    classes : dict
        Place of each label.
    class_weight : float
    leaves : {"label", "distribution"}
    """

    space: FeatureSpace
    columns: tuple[NDArray[Any], ...]
    width: int
    classes: dict[Any, int]
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
        place, width = place_features(used, space.n_categories)
        columns = (place, *space.bounds, space.n_categories)
        return cls(space, columns, int(width), classes, float(class_weight), leaves)

    def paths(self, trees: Sequence[Tree]) -> Paths:
        """Vectors, weights and leaves of all paths of the trees."""
        # a tree has one leaf more than questions
        offsets = np.array([0, *accumulate((tree.n_nodes + 1) // 2 for tree in trees)])
        vectors = np.zeros((offsets[-1], self.width + len(self.classes)))
        leaves = np.empty(offsets[-1], np.int64)
        half, by_label = self.class_weight / 2, self.leaves == "label"
        for tree, start, end in zip(trees, offsets[:-1], offsets[1:], strict=True):
            place = np.array([self.width + self.classes[label] for label in tree.classes.tolist()])
            path_vectors(
                (tree.feature, tree.threshold, tree.left, tree.right, tree.subset, tree.value),
                self.columns,
                (place, half, by_label),
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
