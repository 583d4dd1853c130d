"""Twins of the kernels in `kernels/edges.py`, and cases for them."""

import itertools

import numpy as np


def short_between(low, high):
    middle = low + (high - low) / 2
    middle = high if middle <= low else middle
    tried = [np.round(middle, digits) for digits in range(16)]
    near = (x for x in tried if abs(x - middle) <= (high - low) / 4 and low < x <= high)
    return float(next(near, middle))


def short_thresholds(values):
    return np.array([short_between(*pair) for pair in itertools.pairwise(values)])


# ---- cases ----
def values_case(case):
    """Rising values of many sizes, neighbouring floats among them."""
    rng = case.rng
    values = rng.normal(size=int(rng.integers(0, 9))) * 10.0 ** rng.integers(-12, 13)
    if len(values) and rng.integers(2):
        values = np.append(values, np.nextafter(values[0], np.inf))
    return (np.unique(np.round(values, int(rng.integers(0, 16)))),)


def pair_case(case):
    low = float(case.rng.normal() * 10.0 ** case.rng.integers(-6, 7))
    return low, max(low + float(case.rng.choice([0.0, 1e-9, 0.3, 50.0])), np.nextafter(low, np.inf))


CASES = {"short_between": pair_case, "short_thresholds": values_case}
