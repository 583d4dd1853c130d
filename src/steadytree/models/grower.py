"""Grow a tree level by level from class counts, wherever the rows live."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.data._kernels import child_counts, split_level
from steadytree.data.sources import ClassCounts, LevelSplits, Source
from steadytree.models.builder import TreeBuilder
from steadytree.models.tree import LEAF, Tree

BLOCK_COUNTERS = 16_000_000  # counters held at once: 128 MB
Choose = Callable[[ClassCounts, NDArray[np.uint64]], tuple[NDArray[np.int64], NDArray[np.int64]]]


def grow(
    source: Source, choose: Choose, classes: NDArray[Any], max_depth: int, merge: bool = True
) -> Tree:
    """Grow a tree of at most `max_depth` levels of splits, nodes in order of their levels.

    The source gives the counts of all open nodes once a level. ``choose(counts, positions)``
    returns a split (-1 for a leaf) and a threshold for each of them; positions are indices in the
    full binary tree, the root's being 0. `merge` joins sibling leaves of equal labels.
    """
    source.start()
    growth = _Growth()
    nodes, positions = np.zeros(1, np.int64), np.zeros(1, np.uint64)
    for depth in range(max_depth):
        split, threshold, totals, below = _choose_level(source, choose, positions)
        if depth == 0:
            growth.totals.append(totals)
        children, left_node, right_node, which, positions = split_level(
            split, below, positions, depth + 1 == max_depth
        )
        first_child = growth.add(nodes, split, threshold, children)
        if len(which) == 0:
            break
        source.advance(LevelSplits(split, left_node, right_node))
        nodes = first_child + which
    return growth.to_tree(TreeBuilder(source.splits, classes), merge)


@dataclass
class _Growth:
    """What was decided so far; nodes are numbered as they come."""

    n_nodes: int = 1
    node: list[NDArray[np.int64]] = field(default_factory=list)
    split: list[NDArray[np.int64]] = field(default_factory=list)
    threshold: list[NDArray[np.int64]] = field(default_factory=list)
    totals: list[NDArray[Any]] = field(default_factory=list)

    def add(
        self,
        nodes: NDArray[np.int64],
        split: NDArray[np.int64],
        threshold: NDArray[np.int64],
        children: NDArray[Any],
    ) -> int:
        """Split the nodes that have a split; return the number of their first child.

        Children are numbered in order of their parents, left before right.
        """
        first_child = self.n_nodes
        self.n_nodes += len(children)
        self.node.append(nodes)
        self.split.append(split)
        self.threshold.append(threshold)
        self.totals.append(children)
        return first_child

    def to_tree(self, builder: TreeBuilder, merge: bool) -> Tree:
        left = np.full(self.n_nodes, LEAF)
        split, threshold, node = (
            np.concatenate(part) for part in (self.split, self.threshold, self.node)
        )
        left[node[split >= 0]] = np.arange(1, self.n_nodes, 2)
        right = np.where(left == LEAF, LEAF, left + 1)
        of_node = np.full((2, self.n_nodes), -1)
        of_node[:, node] = split, threshold
        totals = np.concatenate(self.totals).astype(np.float64)
        return builder.build(of_node[0], left, right, totals, of_node[1], merge=merge)


def _choose_level(
    source: Source, choose: Choose, positions: NDArray[np.uint64]
) -> tuple[NDArray[Any], ...]:
    """Split, threshold, class counts and children's class counts of each open node, by blocks."""
    block = max(1, BLOCK_COUNTERS // (source.splits.n_bins * source.n_classes))
    parts = []
    for first in range(0, len(positions), block):
        last = min(first + block, len(positions))
        counts = source.count(first, last)
        split, threshold = choose(counts, positions[first:last])
        totals, children = child_counts(counts.values, source.splits.table, split)
        parts.append((split, threshold, totals, children))
    if len(parts) == 1:
        return parts[0]
    splits, thresholds, totals, children = zip(*parts, strict=True)
    whole = (np.concatenate(part) for part in (splits, thresholds, totals))
    return (*whole, np.concatenate(children, axis=1))


def tree_positions(tree: Tree) -> list[int]:
    """Position of each node in the full binary tree: the root 0, children 2k + 1 and 2k + 2."""
    positions = [0] * tree.n_nodes
    for node in np.flatnonzero(~tree.is_leaf):  # parents come first
        positions[tree.left[node]] = 2 * positions[node] + 1
        positions[tree.right[node]] = 2 * positions[node] + 2
    return positions
