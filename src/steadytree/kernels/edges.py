"""Edges: thresholds between neighbouring values, in the middle or at a short number near it."""

import numpy as np
from numba import njit

MOST_DIGITS = 15


@njit(cache=True, nogil=True)
def short_between(low, high):
    """The number with fewest decimals in the middle half between two values.

    Where no float lies between them it is the upper one, which ``x >= edge`` tells from the lower.
    """
    middle = low + (high - low) / 2
    if middle <= low:
        middle = high
    scale = 1.0
    for _ in range(MOST_DIGITS + 1):
        rounded = np.rint(middle * scale) / scale
        if abs(rounded - middle) <= (high - low) / 4 and low < rounded <= high:
            return rounded
        scale *= 10
    return middle


@njit(cache=True, nogil=True)
def short_edges(values):
    """Short numbers between neighbours of rising values (n,): (n - 1,), none for fewer than two."""
    edges = np.empty(max(values.shape[0] - 1, 0))
    for k in range(edges.shape[0]):
        edges[k] = short_between(values[k], values[k + 1])
    return edges
