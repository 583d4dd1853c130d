"""From the rules chosen at one level of a growing tree to the open nodes of the next."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def split_level(rule, left, totals, positions, last_level):
    """Class totals of all children, and which of them stay open.

    rule (n_open,) is -1 for a leaf; left and totals (n_open, n_classes) are class counts of the
    left child and the whole node; positions (n_open,) uint64. A child stays open unless this is
    the last level or its rows are of one class.

    Returns children (2 * n_split, n_classes), left first; left_slot and right_slot (n_open,),
    -1 where closed; which (n_next,) child each next slot is; and its positions (n_next,).
    """
    n_open, n_classes = totals.shape
    n_split = 0
    for node in range(n_open):
        n_split += rule[node] >= 0
    children = np.empty((2 * n_split, n_classes), dtype=totals.dtype)
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
                count = left[node, class_]
                if side == 1:
                    count = totals[node, class_] - count
                children[child, class_] = count
                n_present += count > 0
            if n_present > 1 and not last_level:
                slots[side, node] = n_next
                which[n_next] = child
                below[n_next] = np.uint64(2) * positions[node] + np.uint64(1 + side)
                n_next += 1
            child += 1
    return children, slots[0], slots[1], which[:n_next], below[:n_next]
