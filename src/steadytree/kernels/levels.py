"""From the rules chosen at one level of a growing tree to the open nodes of the next."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def split_level(rule, counts, positions, last_level):
    """Class counts of all children in order, and which of them stay open.

    rule (n_open,) is -1 for a leaf; counts (2, n_open, n_classes) are of the left and the right
    child; positions (n_open,) uint64. A child stays open unless this is the last level or its
    rows are of one class.

    Returns children (2 * n_split, n_classes), left first; left_slot and right_slot (n_open,),
    -1 where closed; which (n_next,) child each next slot is; and its positions (n_next,).
    """
    _, n_open, n_classes = counts.shape
    n_split = 0
    for node in range(n_open):
        n_split += rule[node] >= 0
    children = np.empty((2 * n_split, n_classes), dtype=counts.dtype)
    slots = np.full((2, n_open), -1, dtype=np.int64)
    which = np.empty(2 * n_split, dtype=np.int64)
    below = np.empty(2 * n_split, dtype=np.uint64)
    child, n_next = 0, 0
    for node in range(n_open):
        if rule[node] < 0:
            continue
        for side in range(2):
            n_present = 0
            for class_ in range(n_classes):
                children[child, class_] = counts[side, node, class_]
                n_present += counts[side, node, class_] > 0
            if n_present > 1 and not last_level:
                slots[side, node] = n_next
                which[n_next] = child
                below[n_next] = np.uint64(2) * positions[node] + np.uint64(1 + side)
                n_next += 1
            child += 1
    return children, slots[0], slots[1], which[:n_next], below[:n_next]
