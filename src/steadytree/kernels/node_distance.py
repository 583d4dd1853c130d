"""Compare two trees node by node, from the root down."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def node_distance(a, b):
    """Nodes that are left when the common top of two FlatTrees is taken away; and where they part.

    Two leaves with other labels count 2; a leaf against a split, or two other splits, count both
    sub-trees. Returns the distance and the pairs (n_pairs, 2) of nodes at which the trees part.
    """
    most = min(a.key.shape[0], b.key.shape[0])
    pairs = np.empty((most, 2), dtype=np.int64)
    stack = np.zeros((most + 2, 2), dtype=np.int64)
    height, n_pairs, distance = 1, 0, 0
    while height > 0:
        height -= 1
        one, other = stack[height, 0], stack[height, 1]
        label, other_label = a.label[one], b.label[other]
        if label >= 0 and label == other_label:
            continue
        if label < 0 and other_label < 0 and a.key[one] == b.key[other]:
            stack[height, 0], stack[height, 1] = a.right[one], b.right[other]
            stack[height + 1, 0], stack[height + 1, 1] = a.left[one], b.left[other]
            height += 2
            continue
        distance += a.size[one] + b.size[other]
        pairs[n_pairs, 0], pairs[n_pairs, 1] = one, other
        n_pairs += 1
    return distance, pairs[:n_pairs]
