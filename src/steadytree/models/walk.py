"""Walk: the splits of a tree in the form in which rows are sent through it."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadytree.models._kernels import BY_VALUE, LEFT_BITS, MISSING_BITS


class Walk(NamedTuple):
    """Nodes level by level, the right child behind the left one; a leaf sends all rows to itself.

    `split` holds the feature in its lowest bits, whether missing values go right above
    MISSING_BITS, BY_VALUE where it is about categories, and the left child above LEFT_BITS: all
    that a row needs to know of a node beside the threshold.
    """

    threshold: NDArray[np.float64]  # (n_nodes,), infinity at leaves
    split: NDArray[np.uint64]  # (n_nodes,)
    number: NDArray[np.int64]  # (n_nodes,) of each node in the tree
    subset: NDArray[np.bool_]  # (n_nodes, n_categories) that go left

    @classmethod
    def of(cls, tree: Any, categorical: NDArray[np.bool_]) -> "Walk":
        """The walk of a tree; `categorical` (p,) tells how a feature is split."""
        levels = [np.zeros(1, np.int64)]
        while len(inner := levels[-1][tree.left[levels[-1]] >= 0]):
            levels.append(np.stack([tree.left[inner], tree.right[inner]], axis=1).ravel())
        number = np.concatenate(levels)
        position = np.empty(len(number), np.int64)
        position[number] = np.arange(len(number))
        leaf = tree.left[number] < 0
        feature = np.where(leaf, 0, tree.feature[number])
        left = np.where(leaf, position[number], position[tree.left[number]])
        split = left.astype(np.uint64) << LEFT_BITS | feature.astype(np.uint64)
        split[~leaf & ~tree.missing_left[number]] |= np.uint64(1) << MISSING_BITS
        split[~leaf & categorical[feature]] |= BY_VALUE
        threshold = np.where(leaf, np.inf, tree.threshold[number])
        return cls(threshold, split, number, tree.subset[number])
