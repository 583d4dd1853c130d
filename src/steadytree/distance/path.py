"""Path distance: how far apart two trees are when their paths are matched in the best way."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadytree._base.optional import is_a
from steadytree._base.validation import OneOf
from steadytree.data.feature_space import FeatureSpace
from steadytree.distance._kernels import (
    match_paths,
    path_distance_matrix,
    path_vectors,
    path_weights,
)
from steadytree.models.boxes import rebase, shared_space, widen
from steadytree.models.sklearn import as_tree, regression_tree
from steadytree.models.tree import Tree

Leaves = Literal["label", "distribution", "impurity"]
LEAVES = ("label", "distribution", "impurity")
NUMBER = "number"  # leaves of regression trees: predictions, by their scaled difference


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
    leaves: str  # one of LEAVES, or NUMBER
    target_range: float  # difference of predictions that costs the class weight

    @classmethod
    def of(
        cls,
        trees: Sequence[Tree],
        space: FeatureSpace,
        class_weight: float,
        leaves: str,
        target_range: float = 1.0,
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
        about = (float(class_weight), leaves, target_range)
        return cls(space, columns, int(sizes.sum()), classes, *about)

    def paths(self, trees: Sequence[Tree]) -> Paths:
        """Vectors, weights and leaves of all paths of the trees."""
        # a tree has one leaf more than splits
        offsets = np.array([0, *accumulate((tree.n_nodes + 1) // 2 for tree in trees)])
        by_class = self.leaves in ("label", "distribution")
        vectors = np.zeros((offsets[-1], self.width + (len(self.classes) if by_class else 1)))
        leaves = np.empty(offsets[-1], np.int64)
        for tree, start, end in zip(trees, offsets[:-1], offsets[1:], strict=True):
            value, own, factor = self._leaf_entries(tree)
            path_vectors(
                (tree.feature, tree.threshold, tree.left, tree.right, tree.subset, value),
                self.columns,
                (own, factor, self.leaves == "label"),
                vectors[start:end],
                leaves[start:end],
            )
        weights = path_weights(vectors, self.columns[0], self.columns[3])
        return Paths(vectors, weights, offsets, leaves)

    def _leaf_entries(self, tree: Tree) -> tuple[NDArray[np.float64], NDArray[np.int64], float]:
        """What stands for a leaf: values of each node, their entries in a vector, and a factor."""
        last = np.array([self.width])
        if self.leaves == "impurity":  # Gini's
            return 1 - (tree.value**2).sum(axis=1, keepdims=True), last, self.class_weight
        if self.leaves == NUMBER:
            predicted = tree.classes[tree.label].astype(np.float64)
            return predicted[:, None], last, self.class_weight / self.target_range
        own = np.array([self.width + self.classes[label] for label in tree.classes.tolist()])
        return tree.value, own, self.class_weight / 2


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
    leaves: str = "label",
    target_range: float = 1.0,
) -> NDArray[np.float64]:
    """Path distance of every tree of ours to every tree of theirs, or among ours.

    The trees may come from other spaces whose columns `space` holds.
    """
    first = [over_columns(tree, space) for tree in ours]
    second = first if theirs is None else [over_columns(tree, space) for tree in theirs]
    frame = PathFrame.of([*first, *second], space, class_weight, leaves, target_range)
    paths = frame.paths(first)
    others = paths if theirs is None else frame.paths(second)
    found: NDArray[np.float64] = path_distance_matrix(
        tuple(paths[:3]), tuple(others[:3]), surjective, theirs is None
    )
    return found


Matching = Literal["unmatched-cost", "surjective"]
MATCHINGS = ("unmatched-cost", "surjective")
UNMATCHED = -1
MOST_PAIRS = 150_000_000  # of leaves, whose costs take 1.2 GB


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
    target_range: float | None = None,
) -> PathDistance:
    """Distance of two trees by the cheapest matching of their paths; see `tree_distance`."""
    _check_options(class_weight, matching, leaves)
    trees, columns = trees_over_one_space([a, b], space)
    if trees[0].n_leaves * trees[1].n_leaves > MOST_PAIRS:
        raise ValueError(
            f"the trees have {trees[0].n_leaves:,} and {trees[1].n_leaves:,} leaves, and the path "
            f"distance compares at most {MOST_PAIRS:,} pairs of them: prune them, or use another "
            "kind, such as 'node'."
        )
    form, scale = _leaf_form([a, b], trees, leaves, target_range)
    first, second = (over_columns(tree, columns) for tree in trees)
    frame = PathFrame.of([first, second], columns, class_weight, form, scale)
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
    target_range: float | None = None,
) -> NDArray[np.float64]:
    """Path distance of every tree of A to every tree of B, or among those of A.

    Without `space` one is made that holds all trees; ``normalise=True`` takes the largest depth.
    """
    _check_options(class_weight, matching, leaves)
    check_any_trees(A, B)
    models = [*A, *(B or ())]
    trees, columns = trees_over_one_space(models, space)
    form, scale = _leaf_form(models, trees, leaves, target_range)
    distances = distances_between(
        trees[: len(A)],
        None if B is None else trees[len(A) :],
        columns,
        class_weight=float(class_weight),
        surjective=matching == "surjective",
        leaves=form,
        target_range=scale,
    )
    return distances / _divisor(normalise, trees, class_weight)


def check_any_trees(A: Sequence[Any], B: Sequence[Any] | None) -> None:
    """Refuse empty lists of trees, and a single tree in place of the second."""
    if B is not None and not isinstance(B, list | tuple):
        raise TypeError(f"tree_distance: a is a list, so b must be one too, got {B!r}.")
    if len(A) == 0 or (B is not None and len(B) == 0):
        raise ValueError("tree_distance: at least one tree is needed in each list, got none.")


def are_regression_trees(models: Sequence[Any]) -> bool:
    """Whether the models are scikit-learn's regression trees; refuses a mixture of both kinds."""
    flags = [is_a(model, "sklearn.tree", "DecisionTreeRegressor") for model in models]
    if any(flags) and not all(flags):
        raise TypeError(
            f"{sum(flags)} of the {len(flags)} trees are regression trees, whose leaves hold "
            "numbers and not classes: compare trees of one kind."
        )
    return all(flags)


def read_trees(models: Sequence[Any]) -> list[Tree]:
    """The trees inside the models, all of one kind."""
    read = regression_tree if are_regression_trees(models) else as_tree
    return [read(model) for model in models]


def _leaf_form(
    models: Sequence[Any], trees: Sequence[Tree], leaves: str, target_range: float | None
) -> tuple[str, float]:
    """How leaves are compared, and the difference of predictions that costs the class weight."""
    if not are_regression_trees(models):
        if target_range is not None:
            raise ValueError("target_range is for regression trees: leave it out.")
        return leaves, 1.0
    if leaves != "label":
        raise ValueError(
            f"leaves={leaves!r} compares shares of classes, which regression trees do not have: "
            "leave it out."
        )
    if target_range is None:
        predicted = np.concatenate([tree.classes[tree.label[tree.is_leaf]] for tree in trees])
        return NUMBER, float(np.ptp(predicted)) or 1.0
    if not isinstance(target_range, Real) or not 0 < target_range < np.inf:
        raise ValueError(f"target_range must be a finite number above 0, got {target_range!r}.")
    return NUMBER, float(target_range)


def trees_over_one_space(models: Sequence[Any], space: Any) -> tuple[list[Tree], FeatureSpace]:
    """The trees inside the models, and columns with bounds to compare them in."""
    trees = read_trees(models)
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
