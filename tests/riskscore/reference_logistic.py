"""Twins of the kernels in `kernels/logistic.py`, and cases for them."""

import math

import numpy as np
from scipy.special import expit, log_expit

RIDGE = 1e-5


def sums_past_thresholds(binned, first, second, n_thresholds):
    above = [binned > threshold for threshold in range(n_thresholds)] + [binned >= 0]
    return np.array([[first[held].sum(), second[held].sum()] for held in above])


def best_condition(binned, downwards, size, tried, excluded, slope, curve, limits, must):
    ridge, least, enough, flat = limits
    best, found = -np.inf if must else least, (-1, -1)
    for one in np.flatnonzero(tried):
        gains = {}
        for threshold in np.flatnonzero(~excluded[one, : size[one]]):
            held = binned[one] <= threshold if downwards[one] else binned[one] > threshold
            g, h = slope[held].sum(), curve[held].sum()
            h = max(h - h**2 / max(curve.sum(), 1e-300), 0.0)
            useful = g > 0 and h > flat
            gains[threshold] = g**2 / (2 * (h + ridge)) if useful else g if must else -np.inf
        threshold = max(gains, key=gains.get, default=-1)
        if threshold >= 0 and gains[threshold] > best + enough:
            best, found = gains[threshold], (int(one), int(threshold))
    return found


def softplus(z):
    return float(np.logaddexp(0, z))


def curve_loss(levels, mass, hits, slope, start):
    z = slope * levels + start
    return float(-(hits * log_expit(z) + (mass - hits) * log_expit(-z)).sum() / mass.sum())


def newton_step(levels, mass, hits, slope, start):
    design = np.stack([levels, np.ones(len(levels))], axis=1)
    risk = expit(design @ [slope, start])
    gradient = design.T @ (mass * risk - hits) / mass.sum() + [RIDGE * slope, 0]
    curve = design.T @ (design * (mass * risk * (1 - risk))[:, None]) / mass.sum()
    return tuple(np.linalg.solve(curve + np.diag([RIDGE, 1e-10]), gradient).tolist())


def fit_curve(levels, mass, hits):
    share = np.clip(hits.sum() / mass.sum(), 1e-9, 1 - 1e-9)
    flat = math.log(share / (1 - share))
    at, now = np.array([0.0, flat]), curve_loss(levels, mass, hits, 0.0, flat)
    for _ in range(30):
        step = np.array(newton_step(levels, mass, hits, *at))
        sizes = (0.5**k for k in range(20))
        better = (s for s in sizes if curve_loss(levels, mass, hits, *(at - s * step)) <= now)
        size = next(better, None)
        if size is None:
            break
        at, before = at - size * step, now
        now = curve_loss(levels, mass, hits, *at)
        if before - now < 1e-10:
            break
    if at[0] < 0:
        return 0.0, flat, curve_loss(levels, mass, hits, 0.0, flat)
    return float(at[0]), float(at[1]), now


# ---- cases ----
def rows_case(case):
    rng = case.rng
    n, n_thresholds = int(rng.integers(0, 40)), int(rng.integers(1, 6))
    binned = rng.integers(0, n_thresholds + 1, n)
    # eighths, so that sums in another order are equal
    first, second = rng.integers(-8, 9, (2, n)) / 8
    return binned, first, second, n_thresholds


def candidates_case(case):
    rng = case.rng
    n, m = int(rng.integers(1, 40)), int(rng.integers(0, 5))
    size = rng.integers(1, 6, m)
    binned = np.array([rng.integers(0, k + 1, n) for k in size], np.uint8).reshape(m, n)
    slope, curve = rng.integers(-8, 9, n) / 8, rng.integers(0, 9, n) / 8
    limits = np.array([1.0, 1e-3, 1e-6, 1e-8])
    flags = (rng.random(m) < 0.5, size, rng.random(m) < 0.8, rng.random((m, 6)) < 0.3)
    return binned, *flags, slope, curve, limits, bool(rng.integers(2))


def levels_case(case):
    rng = case.rng
    levels = np.unique(rng.integers(-6, 7, int(rng.integers(1, 8)))).astype(np.float64)
    mass = rng.integers(1, 20, len(levels)).astype(np.float64)
    hits = np.round(mass * np.clip(expit(levels * rng.normal()) + rng.normal() / 10, 0, 1))
    return levels, mass, hits


def curve_case(case):
    return (*levels_case(case), float(case.rng.normal()), float(case.rng.normal()))


def near(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def same_curve(found, expected):
    """Where classes are far apart slope and start are loosely held, but the loss is not."""
    np.testing.assert_allclose(found[:2], expected[:2], rtol=1e-4, atol=1e-4)
    assert math.isclose(found[2], expected[2], rel_tol=1e-9, abs_tol=1e-9)


CASES = {
    "sums_past_thresholds": rows_case,
    "best_condition": candidates_case,
    "softplus": lambda case: (float(case.rng.normal() * 300),),
    "curve_loss": curve_case,
    "newton_step": curve_case,
    "fit_curve": levels_case,
}
COMPARE = {"softplus": near, "curve_loss": near, "newton_step": near, "fit_curve": same_curve}
