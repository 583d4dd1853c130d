"""Frontiers of points (loss, flips, changed splits, leaves), all of which add over children."""

import numpy as np

from steadytree._base.jit import kernel


@kernel
def sum_pairs(left, right, added, most):
    """Sums of a point of each frontier (m, 4) and `added`, where none exceeds `most`, and pairs."""
    n_pairs = left.shape[0] * right.shape[0]
    points, pairs, n = np.empty((n_pairs, 4)), np.empty((n_pairs, 2), np.int64), 0
    for i in range(left.shape[0]):
        for j in range(right.shape[0]):
            within = True
            for k in range(4):
                points[n, k] = left[i, k] + right[j, k] + added[k]
                within = within and points[n, k] <= most[k]
            if within:
                pairs[n, 0], pairs[n, 1] = i, j
                n += 1
    return points[:n], pairs[:n]


@kernel
def undominated_points(points, order):
    """Points that no other equals or beats everywhere, the first of equal ones.

    `order` sorts the points by loss, then flips, changed splits and leaves, so that a point can
    only be dominated by an earlier one: `least` holds the fewest flips of those so far with at
    most as many changed splits and leaves.
    """
    n_changes, n_leaves = 1, 1
    for point in order:
        n_changes = max(n_changes, int(points[point, 2]) + 1)
        n_leaves = max(n_leaves, int(points[point, 3]) + 1)
    least = np.full((n_changes, n_leaves), np.inf)
    kept, n = np.empty(order.shape[0], np.int64), 0
    for point in order:
        flips, first, leaves = points[point, 1], int(points[point, 2]), int(points[point, 3])
        if least[first, leaves] <= flips:
            continue
        kept[n] = point
        n += 1
        for changes in range(first, n_changes):
            if least[changes, leaves] <= flips:
                break  # and so it is for more changed splits or leaves
            for size in range(leaves, n_leaves):
                if least[changes, size] <= flips:
                    break
                least[changes, size] = flips
    return kept[:n]
