"""Class curves: the risks of three and more classes from the totals of their points."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from steadytree.models.scorecard import Scorecard

LEAST_PART = 0.05  # of the slope that is kept at least, so that totals go on to tell risks apart

Floats = NDArray[np.float64]


def with_class_curves(
    scorecard: Scorecard,
    labels: NDArray[np.int64],
    totals: NDArray[np.int64],
    weights: Floats,
    ridge: float,
    part: float,
) -> Scorecard:
    """The scorecard with offsets and slope that minimise the log loss of the softmax of totals.

    totals (n_rows, n_classes) are those of the points alone. `ridge` is the price of the squared
    slope, which keeps it finite where totals separate the classes; `part` is what remains of it
    for new rows. Offsets are fitted again to the smaller slope, so that classes keep their shares.
    """
    patterns, counts = _counted(labels, totals, weights, len(scorecard.classes))
    slope, levels = _fitted(patterns, counts, ridge)
    slope *= max(part, LEAST_PART)
    levels = minimize(_loss, levels, (patterns, counts, slope), "L-BFGS-B", jac=True).x
    offset = np.round((levels - levels.min()) / slope).astype(np.int64)
    return replace(scorecard, offset=offset, slope=slope, intercept=0.0)


def _counted(
    labels: NDArray[np.int64], totals: NDArray[np.int64], weights: Floats, n_classes: int
) -> tuple[Floats, Floats]:
    """The different totals (m, n_classes) in order, and the weight of each class that has them."""
    patterns, index = np.unique(totals, axis=0, return_inverse=True)
    key = index.ravel() * n_classes + labels
    counts: Floats = np.bincount(key, weights, len(patterns) * n_classes).astype(np.float64)
    return patterns.astype(np.float64), counts.reshape(-1, n_classes)


def _fitted(patterns: Floats, counts: Floats, ridge: float) -> tuple[float, Floats]:
    """Slope, and log odds of each class that are added; minimised from the classes' shares."""
    spread = max(float(np.ptp(patterns)), 1.0)
    shares = np.log(np.maximum(counts.sum(axis=0), 1e-9))

    def loss(x: Floats) -> tuple[float, Floats]:
        # in units in which all parameters are of about the same size
        slope = float(x[0]) / spread
        value, excess = _loss_and_excess(x[1:], patterns, counts, slope)
        by_slope = float((patterns * excess).sum()) + ridge * slope
        gradient = np.concatenate([[by_slope / spread], excess.sum(axis=0)])
        return value + ridge * slope**2 / 2, gradient

    start = np.concatenate([[1.0], shares - shares.mean()])
    bounds = [(1e-3, None)] + [(None, None)] * len(shares)
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    return float(found[0]) / spread, found[1:]


def _loss(levels: Floats, patterns: Floats, counts: Floats, slope: float) -> tuple[float, Floats]:
    """Summed log loss, and its gradient by the levels of the classes."""
    value, excess = _loss_and_excess(levels, patterns, counts, slope)
    return value, excess.sum(axis=0)


def _loss_and_excess(
    levels: Floats, patterns: Floats, counts: Floats, slope: float
) -> tuple[float, Floats]:
    """Summed log loss, and expected less observed weight (m, n_classes)."""
    logits = slope * patterns + levels
    logits -= logits.max(axis=1, keepdims=True)
    norm = np.log(np.exp(logits).sum(axis=1, keepdims=True))
    value = float((counts * (norm - logits)).sum())
    return value, np.exp(logits - norm) * counts.sum(axis=1, keepdims=True) - counts
