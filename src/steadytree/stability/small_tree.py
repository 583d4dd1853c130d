"""SmallTree: few leaves on rows of bins, grown best first and its splits chosen anew."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadytree.models.tree import LEAF
from steadytree.stability._kernels.small_tree import find_small_leaves, grow_small, refine_small

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
NEAR = 0.05  # share of the best gain that may be given up for an earlier column
COARSE, COARSE_LATER = 0.15, 0.05  # and for a rounder threshold, when grown and when chosen anew
LEAF_PRIOR = 5.0  # rows that a leaf's made-up rows count as in its probability


class TaughtRows(NamedTuple):
    """Rows as bins, the real ones first, the probabilities to learn, and what columns are like."""

    binned: NDArray[np.uint8]
    targets: Floats
    weights: Floats
    n_bins: Integers
    kinds: Integers
    directions: Integers
    roundness: Floats


class SmallTree(NamedTuple):
    """Nodes, parents first: column, bins that go left as bits, left child (right one follows)."""

    feature: Integers
    bins: NDArray[np.uint64]
    left: Integers

    @classmethod
    def grow(
        cls, rows: TaughtRows, n_leaves: int, least: float, root: int, deepest: int = 64
    ) -> "SmallTree":
        """Best first from a column, LEAF for the best one, then each split chosen anew."""
        feature, bins, left = grow_small(*rows, n_leaves, least, NEAR, COARSE, root, deepest)
        feature, bins = refine_small(*rows, feature, bins, left, least, COARSE_LATER)
        return cls(feature, bins, left)

    def leaves(self, binned: NDArray[np.uint8]) -> Integers:
        """Leaf of each row."""
        return find_small_leaves(binned, self.feature, self.bins, self.left)

    def explained(self, rows: TaughtRows) -> float:
        """Fall of the squared error from one leaf to this tree."""
        weight, sums = self.node_sums(self.leaves(rows.binned), rows.weights, rows.targets)
        squares = (sums**2).sum(axis=1) / np.where(weight > 0, weight, 1.0)
        return float(squares[self.left == LEAF].sum() - squares[0])

    def values(self, rows: TaughtRows, n_real: int) -> Floats:
        """Mean targets of all nodes: of the real rows, and of made-up ones as LEAF_PRIOR rows."""
        leaves = self.leaves(rows.binned)
        real, made = (
            self.node_sums(leaves[part], rows.weights[part], rows.targets[part])
            for part in (slice(0, n_real), slice(n_real, None))
        )
        prior = np.where(made[0] > 0, LEAF_PRIOR, 0.0)
        means = made[1] / np.where(made[0] > 0, made[0], 1.0)[:, None]
        found: Floats = (real[1] + prior[:, None] * means) / (real[0] + prior)[:, None]
        return found

    def node_sums(
        self, leaves: Integers, weights: Floats, targets: Floats
    ) -> tuple[Floats, Floats]:
        """Weight and weighted targets of the rows that pass each node."""
        n = len(self.left)
        weight: Floats = np.bincount(leaves, weights, n).astype(np.float64)
        parts = [np.bincount(leaves, weights * y, n) for y in targets.T]
        sums: Floats = np.column_stack(parts).astype(np.float64)
        for node in np.flatnonzero(self.left != LEAF)[::-1]:  # children come later
            pair = slice(self.left[node], self.left[node] + 2)
            weight[node], sums[node] = weight[pair].sum(), sums[pair].sum(axis=0)
        return weight, sums
