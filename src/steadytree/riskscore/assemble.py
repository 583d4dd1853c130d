"""From the points of one class or several to one scorecard with risks."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from steadytree.data.feature_space import FeatureSpace
from steadytree.models.condition import Condition
from steadytree.models.scorecard import Scorecard
from steadytree.riskscore.boosting import Points
from steadytree.riskscore.logistic import calibrate

FINE = 1e-3  # slope without conditions: integer offsets then give shares to 0.05 %


def binary_scorecard(
    space: FeatureSpace,
    classes: NDArray[Any],
    found: Points,
    values: NDArray[np.float64],
    labels: NDArray[np.int64],
    weights: NDArray[np.float64],
) -> Scorecard:
    """The scorecard of two classes; its risks are fitted to the rows without noise."""
    plain = Scorecard(space, classes, found.conditions, found.points, found.offset)
    totals = plain.holds_encoded(values) @ plain.points[:, 0] + found.offset
    slope, start, _ = calibrate(totals, labels == 1, weights)
    return Scorecard(space, classes, plain.conditions, plain.points, plain.offset, slope, start)


def joint_scorecard(
    space: FeatureSpace,
    classes: NDArray[Any],
    found: Sequence[Points],
    values: NDArray[np.float64],
    labels: NDArray[np.int64],
    weights: NDArray[np.float64],
) -> tuple[Scorecard, NDArray[np.int64]]:
    """One scorecard of all classes with offsets tuned jointly, and worst totals (n, n_classes)."""
    indices: dict[Condition, int] = {}
    for one in found:
        for condition in one.conditions:
            indices.setdefault(condition, len(indices))
    points = np.zeros((len(indices), len(classes)), np.int64)
    for k, one in enumerate(found):
        for condition, given in zip(one.conditions, one.points, strict=True):
            points[indices[condition], k] = given
    worst = np.stack([one.worst_totals for one in found], axis=1)
    if not indices:
        return _empty_scorecard(space, classes, labels, weights)
    change = joint_offsets(worst, labels, weights)
    offset = np.array([one.offset for one in found]) + change
    plain = Scorecard(space, classes, list(indices), points, offset)
    totals = plain.holds_encoded(values) @ plain.points + plain.offset
    slope = temperature(totals, labels, weights)
    scorecard = Scorecard(space, classes, plain.conditions, points, offset, slope, 0.0)
    return scorecard, worst + change


def _empty_scorecard(
    space: FeatureSpace,
    classes: NDArray[Any],
    labels: NDArray[np.int64],
    weights: NDArray[np.float64],
) -> tuple[Scorecard, NDArray[np.int64]]:
    """Without conditions: offsets that make the share of each class its risk."""
    shares = np.bincount(labels, weights, minlength=len(classes))
    offset = np.round(np.log(shares / shares.min()) / FINE).astype(np.int64)
    scorecard = Scorecard(
        space, classes, [], np.empty((0, len(classes)), np.int64), offset, FINE, 0.0
    )
    return scorecard, np.tile(offset, (len(labels), 1))


def joint_offsets(
    totals: NDArray[np.int64], labels: NDArray[np.int64], weights: NDArray[np.float64]
) -> NDArray[np.int64]:
    """What to add to the totals of each class so that the largest is correct on most weight.

    Classes are tuned in turn until none improves; ties keep the current offsets.
    """
    change = np.zeros(totals.shape[1], np.int64)
    reach = int(totals.max() - totals.min()) + 1
    tried = np.array(sorted(range(-reach, reach + 1), key=abs))

    def correct(change: NDArray[np.int64]) -> float:
        return float(weights[(totals + change).argmax(axis=1) == labels].sum())

    best = correct(change)
    for _ in range(5):
        before = best
        for k in range(totals.shape[1]):
            for step in tried:
                other = change.copy()
                other[k] = step
                found = correct(other)
                if found > best + 1e-9 * weights.sum():
                    change, best = other, found
        if best == before:
            break
    return change


def temperature(
    totals: NDArray[np.int64], labels: NDArray[np.int64], weights: NDArray[np.float64]
) -> float:
    """Slope of the softmax of totals that minimises the log loss."""

    def loss(slope: float) -> float:
        levels = slope * totals
        levels = levels - levels.max(axis=1, keepdims=True)
        log = levels - np.log(np.exp(levels).sum(axis=1, keepdims=True))
        own = log[np.arange(len(labels)), labels]
        return float(-np.average(own, weights=weights)) + 1e-5 * slope**2

    return float(minimize_scalar(loss, bounds=(0.0, 20.0), method="bounded").x)
