"""The logistic loss: points that minimise it on rows moved by noise, and risks that fit totals."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_softmax

from steadytree.models.condition import Condition
from steadytree.models.scorecard import Scorecard
from steadytree.riskscore import candidates
from steadytree.riskscore._kernels.votes import DOWN, UP, best_condition, fit_curve
from steadytree.riskscore.boosting import Points
from steadytree.riskscore.candidates import DerivedFeatures, LabelledRows, TrainingRows

FINE = 1e-3  # slope without conditions: integer offsets then give shares to 0.05 %
MAX_THRESHOLDS = 63  # candidate thresholds per column
RIDGE = 1.0  # a standard normal prior on each weight, for small data sets
LEAST_GAIN = 1e-3
# differences below this are ties, so that weights and repeated rows give the same result
SAME = 1e-7


@dataclass(frozen=True)
class LogisticFit:
    """Chosen conditions with their weights, before rounding."""

    conditions: list[Condition]
    worst: NDArray[np.float64]  # (n, k), which hold under the worst noise
    beta: NDArray[np.float64]  # (k,), weights, not negative
    start: float
    forced: NDArray[np.bool_]  # (k,), which must keep at least one point


class CandidateConditions(NamedTuple):
    """Every derived feature and direction that may be used, with the bins of the moved rows.

    A row's bin is the number of thresholds it has passed: it satisfies threshold c upwards where
    its bin is above c, downwards where it is not. A missing value satisfies none.
    """

    features: DerivedFeatures
    column: NDArray[np.int64]
    direction: NDArray[np.int64]
    thresholds: list[NDArray[np.float64]]
    binned: NDArray[np.uint8]

    def condition(self, one: int, index: int) -> Condition:
        """The condition of a candidate at a threshold."""
        derived, direction = self.features.listed[self.column[one]], int(self.direction[one])
        return derived.condition(direction, self.thresholds[one][index], self.features.space)


def list_conditions(
    rows: TrainingRows, tau: float, thresholds: list[NDArray[np.float64]]
) -> CandidateConditions:
    """Candidates with the given thresholds of each column, for rows moved by noise tau."""
    features = rows.features
    allowed = features.allowed & np.array([[len(t) > 0] for t in thresholds], bool).reshape(-1, 1)
    columns, directions = np.nonzero(allowed)  # UP is the first direction, DOWN the second
    moved = [features.shifted(rows.labels, tau, direction) for direction in (UP, DOWN)]
    binned = np.empty((len(columns), len(rows.labels)), np.uint8)
    for k, (column, direction) in enumerate(zip(columns, directions, strict=True)):
        x = moved[direction][:, column]
        # searchsorted puts nan last, where it passes every threshold
        binned[k] = np.searchsorted(thresholds[column], x, side="right")
        if direction == UP:
            binned[k, np.isnan(x)] = 0
    return CandidateConditions(
        features, columns, directions, [thresholds[k] for k in columns], binned
    )


def thresholds_of(rows: TrainingRows) -> list[NDArray[np.float64]]:
    """Thresholds of each column: between its values, or at quantiles where there are many."""
    found = []
    for x in rows.features.matrix.T:
        known = ~np.isnan(x)
        values, index = candidates.ranks(x[known])
        thresholds = candidates.thresholds_between(values, short=True)
        if len(thresholds) > MAX_THRESHOLDS:
            counts = np.bincount(index, rows.weights[known], minlength=len(values))
            shares = np.cumsum(counts)[:-1] / counts.sum()
            wanted = np.arange(1, MAX_THRESHOLDS + 1) / (MAX_THRESHOLDS + 1)
            chosen = np.searchsorted(shares, wanted - 1e-12).clip(0, len(thresholds) - 1)
            thresholds = thresholds[np.unique(chosen)]
        found.append(thresholds)
    return found


def fit_logistic(
    rows: TrainingRows,
    tau: float,
    most: int,
    forced: tuple[int, ...] = (),
    thresholds: list[NDArray[np.float64]] | None = None,
) -> LogisticFit:
    """Forward selection of conditions by the worst-case loss, refitting after each."""
    # thresholds are those of `thresholds_of`, to be reused for several fits on the same rows.
    weights, target = rows.weights, (rows.labels > 0).astype(float)
    listed = list_conditions(rows, tau, thresholds or thresholds_of(rows))
    base = np.clip((weights * target).sum() / weights.sum(), 1e-9, 1 - 1e-9)
    start = float(np.log(base / (1 - base)))
    fit = LogisticFit([], np.empty((len(target), 0)), np.empty(0), start, np.empty(0, bool))
    origin = np.array([listed.features.listed[k].feature for k in listed.column], np.int64)
    waiting = set(forced) & set(origin.tolist())
    excluded = np.zeros((len(origin), MAX_THRESHOLDS), bool)
    size = np.array([len(thresholds) for thresholds in listed.thresholds])
    limits = np.array([RIDGE, LEAST_GAIN, SAME * weights.sum(), 1e-9 * weights.sum()])
    while len(fit.conditions) < most and len(excluded):
        must = bool(waiting)
        tried = np.isin(origin, list(waiting)) if must else np.ones(len(excluded), bool)
        risk = expit(fit.start + fit.worst @ fit.beta)
        slope, curve = weights * (target - risk), weights * risk * (1 - risk)
        table = listed.binned, listed.direction == DOWN, size, tried, excluded
        one, index = best_condition(*table, slope, curve, limits, must)
        if one < 0:
            break
        condition = listed.condition(one, index)
        excluded[one, index] = True
        if condition.sort == "among":  # the first of two categories is the same as not the second
            for other in np.flatnonzero(origin == condition.feature).tolist():
                for at in range(size[other]):
                    excluded[other, at] |= listed.condition(other, at) == condition
        held = (listed.binned[one] > index) == (listed.direction[one] == UP)
        worst, conditions = np.column_stack([fit.worst, held]), [*fit.conditions, condition]
        beta, kept = np.append(fit.beta, 0.0), np.append(fit.forced, must)
        fit = _refit(LogisticFit(conditions, worst, beta, fit.start, kept), target, weights)
        waiting.discard(condition.feature)
    return fit


def _refit(fit: LogisticFit, target: NDArray[np.float64], weights: NDArray[np.float64]):
    """Projected Newton steps on all weights, which stay non-negative."""
    worst, beta, start = fit.worst, fit.beta, fit.start

    def loss(first, others):
        level = first + worst @ others
        lost = np.logaddexp(0, np.where(target > 0, -level, level))
        return (weights * lost).sum() + 0.5 * RIDGE * (others @ others)

    design = np.column_stack([np.ones(len(worst)), worst])
    ridge = np.append(0.0, np.full(len(beta), RIDGE))
    for _ in range(12):
        risk = expit(start + worst @ beta)
        rest, curve = weights * (risk - target), weights * (risk * (1 - risk) + 1e-9)
        slope = design.T @ rest + ridge * np.append(0.0, beta)
        hessian = design.T @ (design * curve[:, None]) + np.diag(ridge + 1e-8)
        step, size, now = np.linalg.solve(hessian, slope), 1.0, loss(start, beta)
        while True:
            first, others = start - size * step[0], np.maximum(beta - size * step[1:], 0.0)
            if loss(first, others) <= now + 1e-9 or size < 1e-4:
                break
            size /= 2
        change = np.abs(others - beta).max()
        start, beta = first, others
        if change < SAME:
            break
    return replace(fit, beta=beta, start=float(start))


def round_points(
    fit: LogisticFit, labels: NDArray[np.int64], weights: NDArray[np.float64], most_points: int
) -> Points:
    """Small integer points: round at several scales, improve the best by coordinate descent."""
    kept = np.flatnonzero((fit.beta > SAME) | fit.forced)
    if len(kept) == 0:
        offset = int(fit.start > 0)
        return Points([], np.zeros(0, np.int64), offset, np.full(len(labels), offset))
    bits = np.packbits(np.column_stack([fit.worst[:, kept] > 0, labels > 0]), axis=1)
    packed, index = np.unique(bits, axis=0, return_inverse=True)
    patterns = np.unpackbits(packed, axis=1, count=len(kept) + 1)
    held, positive = patterns[:, :-1].astype(np.int64), patterns[:, -1] > 0
    mass = np.asarray(np.bincount(index.ravel(), weights, minlength=len(packed)), np.float64)

    def loss(points):
        slope, _, lost = calibrate(held @ points, positive, mass)
        return lost if slope > 0 else np.inf

    beta, least = fit.beta[kept] / max(fit.beta.max(), SAME), fit.forced[kept].astype(int)
    scales = np.linspace(1, most_points, 3 * (most_points - 1) + 1)
    rounded = [np.floor(beta * scale + 0.5 + SAME).astype(int) for scale in scales]
    tried = np.unique(np.maximum(rounded, least), axis=0)
    losses = np.array([loss(one) for one in tried])
    points = tried[np.flatnonzero(losses <= losses.min() + SAME)[0]]
    points = _polish(points, loss, least, most_points)
    slope, start, _ = calibrate(held @ points, positive, mass)
    # risk is above one half where slope * total + start > 0, so where total > floor(-start/slope)
    level = np.floor(-start / slope + SAME) if slope > 0 else -1 if start > 0 else points.sum()
    # with weak points the curve is almost flat, and the level far from all totals
    far = 10 * int(points.sum())
    offset = -int(np.clip(level, -far, far))
    used = points > 0
    conditions = [fit.conditions[k] for k in kept[used]]
    worst = fit.worst[:, kept].astype(np.int64) @ points + offset
    return Points(conditions, points[used].astype(np.int64), offset, worst)


def _polish(points, loss, least, most_points):
    """Change one condition's points by one at a time while the loss falls."""
    now = loss(points)
    for _ in range(5):
        before = now
        for k in range(len(points)):
            for step in (-1, 1):
                other = points.copy()
                other[k] += step
                if least[k] <= other[k] <= most_points and other.any():
                    found = loss(other)
                    if found < now - 1e-7:
                        points, now = other, found
        if now == before:
            break
    return points


def calibrate(
    totals: NDArray[np.int64], positive: NDArray[np.bool_], weights: NDArray[np.float64]
) -> tuple[float, float, float]:
    """Slope and start of the logistic curve through totals, and its mean loss; slope >= 0."""
    levels, index = np.unique(totals, return_inverse=True)
    mass = np.bincount(index, weights, minlength=len(levels))
    hits = np.bincount(index, weights * positive, minlength=len(levels))
    slope, start, lost = fit_curve(levels.astype(np.float64), mass, hits)
    return float(slope), float(start), float(lost)


def binary_scorecard(found: Points, data: LabelledRows) -> Scorecard:
    """The scorecard of two classes; its risks are fitted to the rows without noise."""
    plain = Scorecard(data.space, data.classes, found.conditions, found.points, found.offset)
    totals = plain.holds_encoded(data.values) @ plain.points[:, 0] + found.offset
    slope, start, _ = calibrate(totals, data.labels == 1, data.weights)
    return replace(plain, slope=slope, intercept=start)


def joint_scorecard(
    found: Sequence[Points], data: LabelledRows
) -> tuple[Scorecard, NDArray[np.int64]]:
    """One scorecard of all classes with offsets tuned jointly, and worst totals (n, n_classes)."""
    plain = joined_scorecard(found, data)
    if not plain.conditions:
        return plain, np.tile(plain.offset, (len(data.labels), 1))
    worst = np.stack([one.worst_totals for one in found], axis=1)
    change = joint_offsets(worst, data.labels, data.weights)
    plain = replace(plain, offset=np.array([one.offset for one in found]) + change)
    totals = plain.holds_encoded(data.values) @ plain.points + plain.offset
    slope = temperature(totals, data.labels, data.weights)
    return replace(plain, slope=slope, intercept=0.0), worst + change


def joined_scorecard(found: Sequence[Points], data: LabelledRows) -> Scorecard:
    """The points of all classes in one scorecard; without any, the shares are the risks."""
    space, classes, _, labels, weights = data
    conditions = list(dict.fromkeys(condition for one in found for condition in one.conditions))
    points = np.zeros((len(conditions), len(classes)), np.int64)
    if not conditions:  # offsets that make the share of each class its risk
        shares = np.bincount(labels, weights, minlength=len(classes))
        offset = np.round(np.log(shares / shares.min()) / FINE).astype(np.int64)
        return Scorecard(space, classes, [], points, offset, FINE, 0.0)
    for k, one in enumerate(found):
        for condition, given in zip(one.conditions, one.points, strict=True):
            points[conditions.index(condition), k] = given
    return Scorecard(space, classes, conditions, points, np.zeros(len(classes), np.int64))


def joint_offsets(
    totals: NDArray[np.int64], labels: NDArray[np.int64], weights: NDArray[np.float64]
) -> NDArray[np.int64]:
    """What to add to the totals of each class so that the largest is correct on most weight."""
    # classes are tuned in turn until none improves; ties keep the current offsets
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
        own = log_softmax(slope * totals, axis=1)[np.arange(len(labels)), labels]
        return float(-np.average(own, weights=weights)) + 1e-5 * slope**2

    return float(minimize_scalar(loss, bounds=(0.0, 20.0), method="bounded").x)
