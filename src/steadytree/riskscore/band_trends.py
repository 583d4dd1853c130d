"""Trends along numbers: bands of about equal weight whose log odds follow one coefficient."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steadytree.riskscore.band_bins import ColumnBins

MOST_BANDS, LEAST_BANDS = 8, 5  # fewer bands are found by splits as well
LEAST_ROWS = 10.0  # weight for each band
NEAR = 0.25  # part of a band's weight by which a threshold may move to be rounder

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Trends:
    """Bands of each variable for a trend, and their levels on two scales: values, and ranks."""

    band: NDArray[np.int64]  # (p, b): band of each bin; that of missing values, if any, is the last
    known: NDArray[np.bool_]  # (p, b): bins of numbers
    # (2, p, b): level of each bin, of mean 0 and variance 1 over the rows; 0 for missing values
    level: Floats
    possible: NDArray[np.bool_]  # (p,): numbers with enough bands

    @classmethod
    def of(
        cls, bins: Sequence[ColumnBins], categorical: NDArray[np.bool_], weight_of_bins: Floats
    ) -> "Trends":
        band, known = np.zeros(weight_of_bins.shape, np.int64), np.zeros(weight_of_bins.shape, bool)
        level, possible = np.zeros((2, *band.shape)), np.zeros(len(bins), bool)
        for v, own in enumerate(bins):
            weight = weight_of_bins[v, : own.size]
            if categorical[v] or np.count_nonzero(weight) < 3:
                continue
            starts = _thresholds(own.thresholds, weight)
            found = np.searchsorted(starts, np.arange(own.size), side="right")
            mass = np.bincount(found, weight)
            possible[v] = len(mass) >= LEAST_BANDS
            if not possible[v]:
                continue
            band[v, : own.size], known[v, : own.size] = found, True
            band[v, own.size] = len(mass) if weight_of_bins[v, own.size] > 0 else 0
            ranks = np.cumsum(weight) - weight / 2
            for scale, each in enumerate((_middles(own.thresholds), ranks)):
                # by a power of two, which changes no digit: squares of great values overflow
                each = np.ldexp(each, -np.frexp(np.abs(each).max())[1])
                means = np.bincount(found, weight * each) / mass
                means -= mass @ means / mass.sum()
                means /= np.sqrt(mass @ means**2 / mass.sum())
                level[scale, v, : own.size] = means[found]
        return cls(band, known, level, possible)

    def best(
        self, first: Floats, second: Floats, allowed: NDArray[np.bool_],
        sign: NDArray[np.int64], ridge: float,
    ) -> tuple[float, int, int]:  # fmt: skip
        """The largest gain, in twice the penalised log likelihood, its variable and scale.

        first, second (p, b) are gradient and Hessian by bin. Minus infinity where there is none.
        """
        curve = np.where(self.known, second, 0.0)
        middle = (self.level * curve).sum(axis=2) / np.maximum(curve.sum(axis=1), 1e-300)
        level = np.where(self.known, self.level - middle[:, :, None], 0.0)
        g, h = (first * level).sum(axis=2), (second * level**2).sum(axis=2)
        gain = np.where(allowed & self.possible & (sign * g <= 0), g * g / (h + ridge), -np.inf)
        scale, v = np.unravel_index(int(np.argmax(gain)), gain.shape)
        return float(gain[scale, v]), int(v), int(scale)

    def basis(self, v: int, scale: int) -> Floats:
        """Levels of a variable's bands, (1, k); with a row for missing values, where there are."""
        levels = np.zeros(int(self.band[v].max()) + 1)
        known = self.known[v]
        levels[self.band[v, known]] = self.level[scale, v, known]
        missing = np.arange(len(levels)) > self.band[v, known].max()
        return np.stack([levels, missing] if missing.any() else [levels]).astype(np.float64)


def _thresholds(thresholds: Floats, weight: Floats) -> NDArray[np.int64]:
    """First bins of the bands but the lowest: the roundest threshold near even shares."""
    below = np.cumsum(weight)[:-1] / weight.sum()
    digits = np.array([len(f"{abs(each):.12e}"[:14].rstrip("0")) for each in thresholds])
    # bins without weight make no bands
    open_ = np.flatnonzero((weight[:-1] > 0) & (below < 1 - 1e-12))
    found, most = set[int](), int(min(MOST_BANDS, weight.sum() / LEAST_ROWS + 1e-9))
    for k in range(1, most):
        away = np.abs(below[open_] - k / most).round(9)
        near = away <= max(NEAR / most, away.min())
        order = np.lexsort([away[near], digits[open_][near]])
        found.add(int(open_[near][order[0]]) + 1)
    return np.array(sorted(found), np.int64)


def _middles(thresholds: Floats) -> Floats:
    """The middle of each bin; those at the ends are as wide as their neighbours."""
    gaps = np.diff(thresholds)
    ends = thresholds[0] - gaps[0] / 2, thresholds[-1] + gaps[-1] / 2
    return np.concatenate([ends[:1], thresholds[:-1] + gaps / 2, ends[1:]])
