"""Logistic loss of cards: sums of rows past each cut, and the curve from totals to risks."""

import numpy as np
from numba import njit

RIDGE = 1e-5  # on the slope, so that it stays finite where totals separate the classes


@njit(cache=True, nogil=True)
def sums_past_cuts(codes, first, second, n_cuts):
    """Sums of two columns over rows whose code is above each cut: (n_cuts + 1, 2).

    The last row is the sum over all rows.
    """
    sums = np.zeros((n_cuts + 1, 2))
    for row in range(codes.shape[0]):
        place = codes[row] - 1 if codes[row] > 0 else n_cuts
        sums[place, 0] += first[row]
        sums[place, 1] += second[row]
    for cut in range(n_cuts - 2, -1, -1):
        sums[cut] += sums[cut + 1]
    if n_cuts > 0:
        sums[n_cuts] += sums[0]
    return sums


@njit(cache=True, nogil=True)
def best_condition(codes, downwards, size, tried, shut, slope, curve, limits, must):
    """The condition that promises to lower the loss most: candidate and cut, -1 where none does.

    codes (m, n) tells how many of a candidate's size (m,) cuts a row has passed. A condition holds
    where a row has passed the cut, or has not where the candidate is `downwards`; those that are
    `shut` (m, most cuts) and candidates not `tried` are left out. slope and curve (n,) are a row's
    part in the loss's first and second derivative. limits holds the ridge, the least gain, by how
    much a later candidate must gain more, and the least curve. `must` asks for one at any price.
    """
    ridge, least, enough, flat = limits
    whole = max(curve.sum(), 1e-300)
    best, where, at = -np.inf if must else least, -1, -1
    for one in range(codes.shape[0]):
        if not tried[one]:
            continue
        sums = sums_past_cuts(codes[one], slope, curve, size[one])
        top, cut = -np.inf, -1
        for place in range(size[one]):
            g, h = sums[place]
            if downwards[one]:
                g, h = sums[size[one], 0] - g, sums[size[one], 1] - h
            h = max(h - h**2 / whole, 0.0)  # the start is refitted with it
            gain = g if must else -np.inf
            if g > 0 and h > flat:
                gain = g**2 / (2 * (h + ridge))
            if gain > top and not shut[one, place]:
                top, cut = gain, place
        if top > best + enough:
            best, where, at = top, one, cut
    return where, at


@njit(cache=True, nogil=True)
def softplus(z):
    """log(1 + exp(z)) without overflow."""
    return max(z, 0.0) + np.log1p(np.exp(-abs(z)))


@njit(cache=True, nogil=True)
def curve_loss(levels, mass, hits, slope, start):
    """Mean logistic loss when level t has risk ``1 / (1 + exp(-(slope t + start)))``."""
    total, lost = 0.0, 0.0
    for k in range(levels.shape[0]):
        z = slope * levels[k] + start
        lost += hits[k] * softplus(-z) + (mass[k] - hits[k]) * softplus(z)
        total += mass[k]
    return lost / total


@njit(cache=True, nogil=True)
def newton_step(levels, mass, hits, slope, start):
    """Newton's step of slope and start on the loss, with a pinch of ridge on the slope."""
    total, g0, g1, h00, h01, h11 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(levels.shape[0]):
        z = min(max(slope * levels[k] + start, -700.0), 700.0)
        risk = 1 / (1 + np.exp(-z))
        rest, curve = mass[k] * risk - hits[k], mass[k] * risk * (1 - risk)
        total += mass[k]
        g0 += rest * levels[k]
        g1 += rest
        h00 += curve * levels[k] ** 2
        h01 += curve * levels[k]
        h11 += curve
    g0, g1 = g0 / total + RIDGE * slope, g1 / total
    h00, h01, h11 = h00 / total + RIDGE, h01 / total, h11 / total + 1e-10
    scale = h00 * h11 - h01 * h01
    return (h11 * g0 - h01 * g1) / scale, (h00 * g1 - h01 * g0) / scale


@njit(cache=True, nogil=True)
def fit_curve(levels, mass, hits):
    """Slope, start and mean loss of the logistic curve through levels; the slope is not negative.

    mass (m,) is the weight at each level, hits (m,) that of the second class.
    """
    share = min(max(hits.sum() / mass.sum(), 1e-9), 1 - 1e-9)
    flat = np.log(share / (1 - share))
    slope, start = 0.0, flat
    now = curve_loss(levels, mass, hits, slope, start)
    for _ in range(30):
        down, left = newton_step(levels, mass, hits, slope, start)
        size = 1.0
        while (
            size > 1e-6
            and curve_loss(levels, mass, hits, slope - size * down, start - size * left) > now
        ):
            size /= 2
        if size <= 1e-6:
            break
        slope, start = slope - size * down, start - size * left
        before, now = now, curve_loss(levels, mass, hits, slope, start)
        if before - now < 1e-10:
            break
    if slope < 0:
        return 0.0, flat, curve_loss(levels, mass, hits, 0.0, flat)
    return slope, start, now
