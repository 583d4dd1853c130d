"""Paths: trees as sets of paths, ready to be matched."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadytree.core.rebase import rebase
from steadytree.core.space import FeatureSpace
from steadytree.core.tree import LEAF, Tree
from steadytree.kernels import path_distance_matrix, path_vectors, path_weights

Leaves = Literal["label", "distribution"]
LEAVES = ("label", "distribution")


class Paths(NamedTuple):
    """Paths of one tree after another; the paths of tree k are offsets[k] up to offsets[k + 1]."""

    vectors: NDArray[np.float64]
    weights: NDArray[np.float64]
    offsets: NDArray[np.int64]


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
        n_categories = np.fromiter(map(len, space.categories), np.int64, len(space))
        used = np.zeros(len(space) + 1, bool)
        for tree in trees:
            used[tree.feature] = True  # LEAF marks the last entry, which stands for nothing
        sizes = np.where(used[:-1], np.maximum(n_categories, 2), 0)
        ends = sizes.cumsum()
        place = np.where(used[:-1], ends - sizes, -1)
        classes: dict[Any, int] = {}
        for tree in trees:
            for label in tree.classes.tolist():
                classes.setdefault(label, len(classes))
        columns = (place, *space.bounds, n_categories)
        return cls(space, columns, int(ends[-1]), classes, float(class_weight), leaves)

    def paths(self, trees: Sequence[Tree]) -> Paths:
        """Vectors and weights of all paths of the trees."""
        leaves = [np.flatnonzero(tree.left == LEAF) for tree in trees]
        offsets = np.cumsum([0, *(len(own) for own in leaves)])
        vectors = np.zeros((offsets[-1], self.width + len(self.classes)))
        for k, tree in enumerate(trees):
            own = vectors[offsets[k] : offsets[k + 1]]
            path_vectors(
                tree.feature, tree.threshold, tree.left, tree.right, tree.subset, self.columns, own
            )
            self._add_classes(own, tree, leaves[k])
        return Paths(vectors, path_weights(vectors, self.columns[0], self.columns[3]), offsets)

    def _add_classes(
        self, vectors: NDArray[np.float64], tree: Tree, leaves: NDArray[np.int64]
    ) -> None:
        """Half the class weight for each class: different labels are then one weight apart."""
        place = np.array([self.width + self.classes[label] for label in tree.classes.tolist()])
        shares = tree.value[leaves]
        if self.leaves == "label":
            vectors[np.arange(len(leaves)), place[shares.argmax(axis=1)]] = self.class_weight / 2
        else:
            vectors[:, place] = shares * (self.class_weight / 2)


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
        tuple(paths), tuple(others), surjective, theirs is None
    )
    return found
