"""From points of one class or several to one card with risks."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from steadytree.data.feature_space import FeatureSpace
from steadytree.models.scorecard import Condition, Scorecard
from steadytree.riskscore.boosting import Points
from steadytree.riskscore.logistic import calibrate

FINE = 1e-3  # slope of a card without conditions: whole offsets then give shares to 0.05 %


def binary_card(
    space: FeatureSpace,
    classes: NDArray[Any],
    found: Points,
    values: NDArray[np.float64],
    labels: NDArray[np.int64],
    weights: NDArray[np.float64],
) -> Scorecard:
    """The card of two classes; its risks are fitted to the rows as they are."""
    plain = Scorecard(space, classes, found.conditions, found.points, found.offset)
    totals = plain.holds_encoded(values) @ plain.points[:, 0] + found.offset
    slope, start, _ = calibrate(totals, labels == 1, weights)
    return Scorecard(space, classes, plain.conditions, plain.points, plain.offset, slope, start)


def joint_card(
    space: FeatureSpace,
    classes: NDArray[Any],
    found: Sequence[Points],
    values: NDArray[np.float64],
    labels: NDArray[np.int64],
    weights: NDArray[np.float64],
) -> tuple[Scorecard, NDArray[np.int64]]:
    """One card of all classes, its offsets tuned together; with worst totals (n, n_classes)."""
    places: dict[Condition, int] = {}
    for one in found:
        for condition in one.conditions:
            places.setdefault(condition, len(places))
    points = np.zeros((len(places), len(classes)), np.int64)
    for k, one in enumerate(found):
        for condition, given in zip(one.conditions, one.points, strict=True):
            points[places[condition], k] = given
    worst = np.stack([one.worst_totals for one in found], axis=1)
    if not places:
        return _empty_card(space, classes, labels, weights)
    change = joint_offsets(worst, labels, weights)
    offset = np.array([one.offset for one in found]) + change
    plain = Scorecard(space, classes, list(places), points, offset)
    totals = plain.holds_encoded(values) @ plain.points + plain.offset
    slope = temperature(totals, labels, weights)
    card = Scorecard(space, classes, plain.conditions, points, offset, slope, 0.0)
    return card, worst + change


def _empty_card(
    space: FeatureSpace,
    classes: NDArray[Any],
    labels: NDArray[np.int64],
    weights: NDArray[np.float64],
) -> tuple[Scorecard, NDArray[np.int64]]:
    """No conditions: offsets alone, which make each class's share its risk."""
    shares = np.bincount(labels, weights, minlength=len(classes))
    offset = np.round(np.log(shares / shares.min()) / FINE).astype(np.int64)
    card = Scorecard(space, classes, [], np.empty((0, len(classes)), np.int64), offset, FINE, 0.0)
    return card, np.tile(offset, (len(labels), 1))


def joint_offsets(
    totals: NDArray[np.int64], labels: NDArray[np.int64], weights: NDArray[np.float64]
) -> NDArray[np.int64]:
    """What to add to each class's totals so that the greatest is right for most weight.

    Classes are tuned in turn until none helps; what stays as it is wins ties.
    """
    change = np.zeros(totals.shape[1], np.int64)
    reach = int(totals.max() - totals.min()) + 1
    tried = np.array(sorted(range(-reach, reach + 1), key=abs))

    def right(change: NDArray[np.int64]) -> float:
        return float(weights[(totals + change).argmax(axis=1) == labels].sum())

    best = right(change)
    for _ in range(5):
        before = best
        for k in range(totals.shape[1]):
            for step in tried:
                other = change.copy()
                other[k] = step
                found = right(other)
                if found > best + 1e-9 * weights.sum():
                    change, best = other, found
        if best == before:
            break
    return change


def temperature(
    totals: NDArray[np.int64], labels: NDArray[np.int64], weights: NDArray[np.float64]
) -> float:
    """Slope with which shares that go with exp(slope * total) fit the labels best."""

    def loss(slope: float) -> float:
        levels = slope * totals
        levels = levels - levels.max(axis=1, keepdims=True)
        log = levels - np.log(np.exp(levels).sum(axis=1, keepdims=True))
        own = log[np.arange(len(labels)), labels]
        return float(-np.average(own, weights=weights)) + 1e-5 * slope**2

    return float(minimize_scalar(loss, bounds=(0.0, 20.0), method="bounded").x)
