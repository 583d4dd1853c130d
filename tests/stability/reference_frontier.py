"""Plain twins of the kernels of frontiers."""

import numpy as np


def sum_pairs(left, right, added, most):
    points, pairs = [], []
    for i, one in enumerate(left):
        for j, other in enumerate(right):
            point = one + other + added
            if (point <= most).all():
                points.append(point)
                pairs.append((i, j))
    return np.array(points).reshape(-1, 4), np.array(pairs, np.int64).reshape(-1, 2)


def undominated_points(points, order):
    """Points in order that no other dominates, and of equal ones the first."""
    kept = []
    for place, k in enumerate(order):
        no_worse = [j for j in order if (points[j] <= points[k]).all()]
        better = [j for j in no_worse if (points[j] < points[k]).any()]
        equal_before = [j for j in order[:place] if (points[j] == points[k]).all()]
        if not better and not equal_before:
            kept.append(k)
    return np.array(kept, np.int64)


def frontier_case(case):
    """Few values, so that points often equal and dominate one another."""
    size = int(case.rng.integers(0, 12))
    whole = case.rng.integers(0, 4, (size, 4)).astype(float)
    return whole / np.array([2.0, 2.0, 1.0, 1.0])


def ordered_case(case):
    points = frontier_case(case)
    return points, np.lexsort(points[:, ::-1].T)


def pairs_case(case):
    most = np.where(case.rng.random(4) < 0.5, np.inf, case.rng.integers(0, 8, 4))
    return frontier_case(case), frontier_case(case), case.rng.integers(0, 3, 4).astype(float), most


CASES = {"sum_pairs": pairs_case, "undominated_points": ordered_case}
