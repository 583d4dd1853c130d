"""Boxes: the leaves of a tree as axis-aligned boxes."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steadytree.core.tree import LEAF, Tree


@dataclass(frozen=True, eq=False)
class Boxes:
    """One box a leaf: a row is in it when every value is.

    A number x is in when ``low < x <= high``; a category when its flag in `categories` is set;
    a missing value (or unknown category) where `missing` is set. The boxes of a tree are
    disjoint and cover everything. Edges of a single-precision tree are given in float64, so
    that ``low < x <= high`` holds for x exactly when the tree sends its float32 form there.

    Parameters
    ----------
    leaf : int64 array (n_leaves,)
        The leaf's node in the tree.
    label : int64 array (n_leaves,)
        Index of the leaf's class.
    low, high : float64 arrays (n_leaves, n_features)
        -inf and inf where nothing was asked, and for categories.
    missing : bool array (n_leaves, n_features)
    categories : bool array (n_leaves, n_features, n_categories)
        All set for numbers, up to the widest column.
    """

    leaf: NDArray[np.int64]
    label: NDArray[np.int64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    missing: NDArray[np.bool_]
    categories: NDArray[np.bool_]

    @classmethod
    def of(cls, tree: Tree) -> "Boxes":
        """Boxes of all leaves, in order of the nodes; made top-down, children narrowing parents."""
        n, p, width = tree.n_nodes, len(tree.space), tree.subset.shape[1]
        low, high = np.full((n, p), -np.inf), np.full((n, p), np.inf)
        missing, categories = np.ones((n, p), bool), np.ones((n, p, width), bool)
        edge = exact_edges(tree)
        by_value = tree.space.categorical
        for node in np.flatnonzero(tree.left != LEAF):
            j = tree.feature[node]
            for child, is_left in ((tree.left[node], True), (tree.right[node], False)):
                low[child], high[child] = low[node], high[node]
                missing[child], categories[child] = missing[node], categories[node]
                missing[child, j] &= tree.missing_left[node] == is_left
                if by_value[j]:
                    categories[child, j] &= tree.subset[node] == is_left
                elif is_left:
                    high[child, j] = min(high[child, j], edge[node])
                else:
                    low[child, j] = max(low[child, j], edge[node])
        leaves = np.flatnonzero(tree.is_leaf)
        sizes = np.array([len(column.categories) for column in tree.space])
        categories &= (np.arange(width) < sizes[:, None]) | ~by_value[:, None]
        arrays = (low, high, missing, categories)
        return cls(leaves, tree.label[leaves], *(array[leaves] for array in arrays))

    @property
    def is_empty(self) -> NDArray[np.bool_]:
        """Leaves that no row can reach: a question was asked again with an answer already known."""
        number = self.low < self.high
        category = self.categories.any(axis=2) if self.categories.shape[2] else number
        # a column is either numbers (all category flags set) or categories (infinite bounds)
        reachable = (number & category) | self.missing
        return np.any(~reachable, axis=1)

    def contains(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which of the encoded rows (n, p) are in which box: (n, n_leaves)."""
        inside = np.ones((len(values), len(self.leaf)), bool)
        for j in range(self.low.shape[1]):
            x = values[:, j, None]
            within = (self.low[:, j] < x) & (x <= self.high[:, j])
            code = np.nan_to_num(values[:, j], nan=0.0).astype(np.int64)
            width = self.categories.shape[2]
            if width:
                flags = self.categories[:, j][:, np.clip(code, 0, width - 1)].T
                within &= flags
            inside &= np.where(np.isnan(x), self.missing[:, j], within)
        return inside


def exact_edges(tree: Tree) -> NDArray[np.float64]:
    """Thresholds t' with ``x <= t'`` in float64 just where the tree answers yes to x.

    For a single-precision tree that is the largest float64 that rounds to a float32 not above
    the threshold: the midpoint to the next float32 when ties round down to it, else just below.
    """
    if not tree.single_precision:
        return tree.threshold
    edges = tree.threshold.copy()
    finite = np.isfinite(edges)
    with np.errstate(over="ignore"):
        below = edges[finite].astype(np.float32)
    one_less = np.nextafter(below, -np.float32(np.inf))
    below = np.where(below.astype(np.float64) > edges[finite], one_less, below)
    above = np.nextafter(below, np.float32(np.inf))
    middle = (below.astype(np.float64) + above.astype(np.float64)) / 2
    rounds_down = middle.astype(np.float32) == below
    edges[finite] = np.where(rounds_down, middle, np.nextafter(middle, -np.inf))
    return edges
