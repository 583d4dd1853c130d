"""Send rows down a flat tree."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def goes_left(x, threshold, missing_left, categorical, subset, single_precision):
    """Answer one node's question for one value; nan and unknown categories count as missing.

    Categories arrive as their index; an index outside the subset's width is unknown.
    """
    if np.isnan(x):
        return missing_left
    if categorical:
        category = np.int64(x)
        if category < 0 or category >= subset.shape[0]:
            return missing_left
        return subset[category]
    if single_precision:
        return np.float64(np.float32(x)) <= threshold
    return x <= threshold


@njit(cache=True, nogil=True)
def find_leaves(
    X, feature, threshold, left, right, missing_left, categorical, subset, single_precision
):
    """Return the leaf index of each row of X (n, p) float; `left < 0` marks a leaf.

    `categorical` (p,) bool tells how a feature is asked; `subset` (n_nodes, width) bool holds
    the categories that go left. `single_precision` rounds X to float32 first, as scikit-learn does.
    """
    leaves = np.empty(X.shape[0], dtype=np.int64)
    for row in range(X.shape[0]):
        node = 0
        while left[node] >= 0:
            asked = feature[node]
            if goes_left(
                X[row, asked],
                threshold[node],
                missing_left[node],
                categorical[asked],
                subset[node],
                single_precision,
            ):
                node = left[node]
            else:
                node = right[node]
        leaves[row] = node
    return leaves
