"""Encodings of trees as arrays, as the search uses them, and back."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.data.feature_space import FeatureSpace
from steadytree.data.splits import SplitTable
from steadytree.models.builder import TreeBuilder
from steadytree.models.tree import LEAF, Tree
from steadytree.robustness.search.problem import Problem, Split

Encoding = NDArray[np.int32]


class Stop(Exception):
    """The search ends here, for the reason given."""


class TooExpensive(Exception):
    """Lists grew beyond what they may for now."""


@dataclass(frozen=True)
class Progress:
    """State of a search: robust loss (with penalties) of the best tree, and a lower bound."""

    seconds: float
    incumbent: float
    bound: float


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a search found."""

    encoding: Encoding  # the best tree, in preorder at full size: a split, or -1 - label
    value: float  # its robust loss, with penalties
    bound: float  # no tree has a smaller value
    proven: bool
    reason: str  # "proven", "time limit", "node limit", "interrupted" or "too many candidates"
    # whether it is proven that no tree of the same value has fewer splits
    shortest: bool = False


def tree_of(
    encoding: NDArray[np.int32],
    problem: Problem,
    space: FeatureSpace,
    classes: NDArray[Any],
    training: tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]],
) -> Tree:
    """The encoded tree, with the class shares of training rows (values, labels, weights).

    A leaf whose label is not its most frequent class, which can be more robust, gets that label
    with certainty, so that the tree predicts as encoded.
    """
    values, labels, weights = training
    nodes: list[tuple[int, int, int, int]] = []  # split, left, right, label
    totals: list[NDArray[np.float64]] = []
    depth = int(np.log2(len(encoding) + 1)) - 1

    def grow(index: int, height: int, rows: NDArray[np.int64]) -> int:
        own, chosen = len(nodes), int(encoding[index])
        counts = np.bincount(labels[rows], weights[rows], len(classes))
        totals.append(counts.astype(np.float64))
        nodes.append((-1, LEAF, LEAF, -1 - chosen))
        if chosen >= 0:
            on_left = goes_left(problem.splits[chosen], space, values[rows])
            left = grow(index + 1, height - 1, rows[on_left])
            right = grow(index + 1 + 2**height - 1, height - 1, rows[~on_left])
            nodes[own] = (chosen, left, right, -1)
        return own

    grow(0, depth, np.arange(len(values)))
    split, left, right, label = np.array(nodes).T.copy()
    builder = TreeBuilder(SplitTable.of(space), classes)
    return builder.build(split, left, right, np.array(totals), label=label)


def goes_left(split: Split, space: FeatureSpace, values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which encoded rows go left."""
    x = values[:, split.column]
    left = x == split.category if np.isnan(split.threshold) else x <= split.threshold
    if space[split.column].is_categorical and np.isinf(split.threshold):
        left = ~np.isnan(x)
    return np.where(np.isnan(x), split.missing_left, left)


def encoding_of(
    tree: Tree, problem: Problem, space: FeatureSpace, classes: NDArray[Any], depth: int
) -> NDArray[np.int32]:
    """The encoding of a tree over the problem's splits; refuses a tree with others."""
    if tree.space.names != space.names:
        raise ValueError(
            f"warm_start is a tree for other columns, {tree.space.names[:5]}: X has "
            f"{space.names[:5]}."
        )
    if tree.depth > depth:
        raise ValueError(
            f"warm_start has depth {tree.depth}, more than max_depth={depth}: give a smaller tree."
        )
    indices = {_key(split): index for index, split in enumerate(problem.splits)}
    known = {label: index for index, label in enumerate(classes.tolist())}
    labels = tree.classes.tolist()
    encoding = np.zeros(2 ** (depth + 1) - 1, np.int32)

    def fill(node: int, index: int, height: int) -> None:
        if tree.is_leaf[node]:
            encoding[index] = -1 - known.get(labels[tree.label[node]], 0)
            return
        encoding[index] = _place_of(tree, node, indices, space)
        fill(int(tree.left[node]), index + 1, height - 1)
        fill(int(tree.right[node]), index + 1 + 2**height - 1, height - 1)

    fill(0, 0, depth)
    return encoding


def _place_of(
    tree: Tree, node: int, indices: dict[tuple[Any, ...], int], space: FeatureSpace
) -> int:
    j = int(tree.feature[node])
    category = -1
    if space[j].is_categorical and tree.subset[node].sum() == 1:
        category = int(tree.subset[node].argmax())
    cut = float(tree.threshold[node])
    for missing_left in (bool(tree.missing_left[node]), not tree.missing_left[node]):
        key = j, "category" if np.isnan(cut) else cut, category, missing_left
        if key in indices:
            return indices[key]
    raise ValueError(
        f"warm_start splits on {space[j].name!r} in a way that is not among the candidate "
        "splits: pass its thresholds in cuts, or leave it out."
    )


def _key(split: Split) -> tuple[Any, ...]:
    cut = "category" if np.isnan(split.threshold) else split.threshold
    return split.column, cut, split.category, split.missing_left
