"""SmallTree: few leaves on rows of bins, grown from several first splits and chosen anew."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadytree.models.tree import LEAF
from steadytree.stability._kernels.refine import refine_small
from steadytree.stability._kernels.small_tree import find_small_leaves, grow_small

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
NEAR = 0.05  # share of the best gain that may be given up for an earlier column
COARSE, COARSE_LATER = 0.15, 0.05  # and for a rounder threshold, when grown and when chosen anew
N_ROOTS, CLEARLY = 4, 1.05  # first splits tried; how much more another must explain


class TaughtRows(NamedTuple):
    """Rows as bins, the probabilities to learn, and what is known of the columns."""

    binned: NDArray[np.uint8]
    targets: Floats
    weights: Floats
    n_bins: Integers
    kinds: Integers
    directions: Integers
    roundness: Floats


class SmallTree(NamedTuple):
    """Nodes, parents first: column, bins that go left as bits, left child (the right one follows).

    `greedy_root` is the column that the greedy tree asks first, and `better` the factor by which
    this tree explains more than that one; 1 where it is that one.
    """

    feature: Integers
    bins: NDArray[np.uint64]
    left: Integers
    greedy_root: int = LEAF
    better: float = 1.0

    @classmethod
    def learn(cls, rows: TaughtRows, n_leaves: int, least: float, deepest: int = 64) -> "SmallTree":
        """The greedy tree, chosen anew; or one with another first split if clearly better.

        A greedy first split may leave its few successors nothing good to split on. The columns of
        largest gain are each tried as the first; a tree other than the greedy one must explain
        CLEARLY more of the squared error, so that near-ties do not change the tree.
        """
        best, splits = cls.grow(rows, n_leaves, least, LEAF, deepest)
        gains = splits[0]
        greedy_root, explained = int(best.feature[0]), best.explained(rows)
        base = explained
        for root in np.argsort(-gains, kind="stable")[:N_ROOTS]:
            if root == greedy_root or gains[root] <= 0 or greedy_root == LEAF:
                continue
            other, _ = cls.grow(rows, n_leaves, least, int(root), deepest, splits)
            found = other.explained(rows)
            if found > CLEARLY * explained:
                best, explained = other, found
        return best._replace(greedy_root=greedy_root, better=explained / base if base > 0 else 1.0)

    @classmethod
    def grow(
        cls,
        rows: TaughtRows,
        n_leaves: int,
        least: float,
        root: int,
        deepest: int = 64,
        splits: Any = None,
    ) -> tuple["SmallTree", Any]:
        """Best first from a column, LEAF for the best one, then each split chosen anew.

        With it come the gain and the bins of each column as the first split.
        """
        how = n_leaves, least, NEAR, COARSE, root, deepest, splits
        feature, bins, left, splits = grow_small(*rows, *how)
        feature, bins = refine_small(*rows, feature, bins, left, least, COARSE_LATER)
        return cls(feature, bins, left), splits

    def leaves(self, binned: NDArray[np.uint8]) -> Integers:
        """Leaf of each row."""
        return find_small_leaves(binned, self.feature, self.bins, self.left, 0)

    def explained(self, rows: TaughtRows) -> float:
        """Fall of the squared error from one leaf to this tree."""
        weight, sums = self.node_sums(self.leaves(rows.binned), rows.weights, rows.targets)
        squares = (sums**2).sum(axis=1) / np.where(weight > 0, weight, 1.0)
        return float(squares[self.left == LEAF].sum() - squares[0])

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
