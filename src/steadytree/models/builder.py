"""TreeBuilder, from chosen splits and class counts to a Tree; and `grow`, level by level."""

from __future__ import annotations  # those of inner functions would be made anew at each call

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree._base.parallel import in_threads
from steadytree.data._kernels.counts import split_level
from steadytree.data.sources import NODE_RANGES, ClassCounts, LevelSplits, Source
from steadytree.data.splits import Bins, SplitTable
from steadytree.models._kernels import prune_to, uniform_nodes
from steadytree.models.tree import LEAF, Tree

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
MANY_NODES = 16  # open ones: enough to share them out
Choose = Callable[[ClassCounts, NDArray[np.uint64]], tuple[NDArray[np.int64], NDArray[np.int64]]]


@dataclass(frozen=True, eq=False)
class TreeBuilder:
    """Makes every tree that is built from candidate splits."""

    splits: SplitTable
    classes: NDArray[Any]

    def build(
        self,
        split: Integers,
        left: Integers,
        right: Integers,
        totals: Floats,
        threshold: Integers | None = None,
        label: Integers | None = None,
        missing_right: bool = False,
        merge: bool = True,
        bins: Bins | None = None,
        smoothing: float = 0.0,
    ) -> Tree:
        """The tree, with `merge` joining sibling leaves of equal labels, upwards.

        `split` (n_nodes,) indexes the table, -1 at leaves; parents come before children. `totals`
        (n_nodes, n_classes) are class counts; a node without any takes the shares of its parent.
        `threshold` chooses among those that a merged split stands for. A leaf whose `label` is not
        its most frequent class gets that label with certainty. `smoothing` is what each class of a
        leaf that has rows begins with, unless it is the root; labels do not depend on it.

        Missing values follow the split where the column had some in training, else they go where
        most rows went; with `missing_right` they always follow the split.
        """
        value = self._shares(split, left, right, totals, label)
        # merged before the tree is made: making one costs as much as growing a small one
        uniform = uniform_nodes(left, right, value.argmax(axis=1)) & merge
        kept, left, right = prune_to(left, right, uniform)
        value, weight = value[kept], totals.sum(axis=1)[kept]
        if smoothing and len(left) > 1:  # a leaf alone ranks nothing
            smoothed = totals[kept] + smoothing
            begun = ((left == LEAF) & (weight > 0))[:, None]
            value = np.where(begun, smoothed / smoothed.sum(axis=1, keepdims=True), value)
        node = np.flatnonzero(left != LEAF)
        table, chosen = self.splits.table, split[kept[node]]
        index = table.first[chosen] if threshold is None else threshold[kept[node]]
        feature, thresholds = np.full(len(left), LEAF), np.full(len(left), np.nan)
        feature[node] = table.feature[chosen]
        thresholds[node] = self._thresholds(feature[node], index)
        follow = np.array([column.missing or missing_right for column in self.splits.space])
        larger_left = weight[left[node]] >= weight[right[node]]
        missing_left = np.zeros(len(left), bool)
        missing_left[node] = np.where(
            follow[feature[node]], table.missing_left[chosen], larger_left
        )
        subset = self._subsets(len(left), node, chosen, index)
        arrays = (feature, thresholds, left, right, value, weight, missing_left, subset)
        return Tree(self.splits.space, self.classes, *arrays, bins=bins)

    @staticmethod
    def _shares(
        split: Integers, left: Integers, right: Integers, totals: Floats, label: Integers | None
    ) -> Floats:
        weight = totals.sum(axis=1, keepdims=True)
        shares = np.divide(totals, weight, out=np.zeros(totals.shape), where=weight > 0)
        empty = weight[:, 0] <= 0
        if empty.any():
            shares[0] = 1 / totals.shape[1] if empty[0] else shares[0]
            for node in np.flatnonzero(split >= 0):  # parents come first
                for child in (left[node], right[node]):
                    shares[child] = shares[node] if empty[child] else shares[child]
        if label is not None:
            other = np.flatnonzero((split < 0) & (empty | (totals.argmax(axis=1) != label)))
            shares[other] = np.eye(totals.shape[1])[label[other]]
        return shares

    def _thresholds(self, feature: Integers, index: Integers) -> list[float]:
        """Thresholds by index; past a column's last one the split asks if the value is missing."""
        found = []
        for j, k in zip(feature.tolist(), index.tolist(), strict=True):
            column = self.splits.space[j]
            last = np.nan if column.is_categorical else np.inf
            found.append(float(column.thresholds[k]) if k < len(column.thresholds) else last)
        return found

    def _subsets(
        self, n_nodes: int, nodes: Integers, chosen: Integers, index: Integers
    ) -> NDArray[np.bool_]:
        """The categories that go left: one, or all if the split asks for missing values."""
        sizes = self.splits.space.n_categories
        subset = np.zeros((n_nodes, sizes.max()), bool)
        by_category = sizes[self.splits.table.feature[chosen]] > 0
        own = nodes[by_category], chosen[by_category].tolist(), index[by_category].tolist()
        for node, split, k in zip(*own, strict=True):
            left = self.splits.categories_left(split, k)
            subset[node, : len(left)] = left
        return subset


def grow(
    source: Source,
    choose: Choose,
    classes: NDArray[Any],
    max_depth: int,
    merge: bool = True,
    bins: Bins | None = None,
    smoothing: float = 0.0,
) -> Tree:
    """Grow a tree of at most `max_depth` levels of splits, nodes in order of their levels.

    The source gives the counts of all open nodes once a level. ``choose(counts, positions)``
    returns a split (-1 for a leaf) and a threshold for each of them; positions are indices in the
    full binary tree, the root's being 0. `merge` joins sibling leaves of equal labels. `bins` are
    kept in the tree, and `smoothing` is that of its leaves.
    """
    source.start()
    n_nodes = 1
    levels: list[tuple[NDArray[Any], ...]] = []  # nodes, split and threshold of each
    all_totals: list[NDArray[Any]] = []
    nodes, positions = np.zeros(1, np.int64), np.zeros(1, np.uint64)
    for depth in range(max_depth):
        split, threshold, totals, below = _choose_level(source, choose, positions)
        if depth == 0:
            all_totals.append(totals)
        children, left_node, right_node, which, positions = split_level(
            split, below, positions, depth + 1 == max_depth
        )
        levels.append((nodes, split, threshold))
        all_totals.append(children)
        # children are numbered in order of their parents, left before right
        nodes, n_nodes = n_nodes + which, n_nodes + len(children)
        if len(which) == 0:
            break
        source.advance(LevelSplits(split, left_node, right_node))
    node, split, threshold = map(np.concatenate, zip(*levels, strict=True))
    left, of_node = np.full(n_nodes, LEAF), np.full((2, n_nodes), -1)
    left[node[split >= 0]] = np.arange(1, n_nodes, 2)
    right = np.where(left == LEAF, LEAF, left + 1)
    of_node[:, node] = split, threshold
    totals = np.concatenate(all_totals).astype(np.float64)
    builder = TreeBuilder(source.splits, classes)
    arrays = of_node[0], left, right, totals, of_node[1]
    return builder.build(*arrays, merge=merge, bins=bins, smoothing=smoothing)


def _choose_level(
    source: Source, choose: Choose, positions: NDArray[np.uint64]
) -> tuple[NDArray[Any], ...]:
    """Split, threshold, class counts and children's class counts of each open node, by blocks.

    Where there are many nodes, threads take blocks of them; where there are few, `count` uses
    threads itself.
    """
    block = max(1, source.block_counters // (source.splits.n_bins * source.n_classes))

    def choose_some(first: int, last: int) -> list[tuple[NDArray[Any], ...]]:
        parts: list[tuple[NDArray[Any], ...]] = []
        for start in range(first, last, block):
            end = min(start + block, last)
            counts = source.count(start, end)
            split, threshold = choose(counts, positions[start:end])
            totals, children = counts.children(split)
            parts.append((split, threshold, totals, children))
        return parts

    n_values = source.n_values if len(positions) >= MANY_NODES else 0
    ranges = in_threads(choose_some, len(positions), n_values, NODE_RANGES)
    parts = [part for some in ranges for part in some]
    if len(parts) == 1:
        return parts[0]
    splits, thresholds, totals, children = zip(*parts, strict=True)
    joined = (np.concatenate(part) for part in (splits, thresholds, totals))
    return (*joined, np.concatenate(children, axis=1))


def tree_positions(tree: Tree) -> list[int]:
    """Position of each node in the full binary tree: the root 0, children 2k + 1 and 2k + 2."""
    positions = [0] * tree.n_nodes
    for node in np.flatnonzero(~tree.is_leaf):  # parents come first
        positions[tree.left[node]] = 2 * positions[node] + 1
        positions[tree.right[node]] = 2 * positions[node] + 2
    return positions
