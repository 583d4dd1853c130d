"""Points that minimise the logistic loss of rows moved by noise against their label."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steadytree.models.condition import Condition
from steadytree.riskscore._kernels import DOWN, UP, best_condition, fit_curve
from steadytree.riskscore.boosting import Points
from steadytree.riskscore.candidates import (
    SLACK,
    DerivedFeatures,
    TrainingRows,
    ranks,
    thresholds_between,
)

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


@dataclass(frozen=True, eq=False)
class CandidateConditions:
    """Every derived feature and direction that may be used, with the bins of the moved rows.

    A row's bin is the number of thresholds it has passed: it satisfies threshold c upwards where
    its bin is above c, downwards where it is not. A missing value satisfies none.
    """

    column: NDArray[np.int64]
    direction: NDArray[np.int64]
    thresholds: list[NDArray[np.float64]]
    binned: NDArray[np.uint8]

    @classmethod
    def of(
        cls,
        features: DerivedFeatures,
        labels: NDArray[np.int64],
        tau: float,
        thresholds: list[NDArray[np.float64]],
    ) -> "CandidateConditions":
        """Candidates with the given thresholds of each column, for rows moved by noise tau."""
        used = [
            (column, direction)
            for column, derived in enumerate(features.listed)
            for direction in (UP, DOWN)
            if derived.directions[direction] and len(thresholds[column])
        ]
        binned = np.empty((len(used), len(labels)), np.uint8)
        moved = {
            direction: features.shifted(labels, tau, direction, SLACK) for direction in (UP, DOWN)
        }
        for k, (column, direction) in enumerate(used):
            x = moved[direction][:, column]
            # searchsorted puts nan last, where it passes every threshold
            binned[k] = np.searchsorted(thresholds[column], x, side="right")
            if direction == UP:
                binned[k, np.isnan(x)] = 0
        columns, directions = np.array(used, np.int64).reshape(-1, 2).T.copy()
        return cls(columns, directions, [thresholds[k] for k in columns], binned)

    def holds(self, one: int, index: int) -> NDArray[np.bool_]:
        """Which of the moved rows satisfy a candidate's condition at a threshold."""
        passed = self.binned[one] > index
        return passed if self.direction[one] == UP else ~passed

    def condition(self, one: int, index: int, features: DerivedFeatures) -> Condition:
        """The condition of a candidate at a threshold."""
        derived = features.listed[self.column[one]]
        return derived.condition(
            int(self.direction[one]), self.thresholds[one][index], features.space
        )


def thresholds_of(rows: TrainingRows) -> list[NDArray[np.float64]]:
    """Thresholds of each column: between its values, or at quantiles where there are many."""
    found = []
    for x in rows.features.matrix.T:
        known = ~np.isnan(x)
        values, index = ranks(x[known])
        thresholds = thresholds_between(values, short=True)
        if len(thresholds) > MAX_THRESHOLDS:
            counts = np.bincount(index, rows.weights[known], minlength=len(values))
            shares = np.cumsum(counts)[:-1] / counts.sum()
            wanted = np.arange(1, MAX_THRESHOLDS + 1) / (MAX_THRESHOLDS + 1)
            thresholds = thresholds[
                np.unique(np.searchsorted(shares, wanted - 1e-12).clip(0, len(thresholds) - 1))
            ]
        found.append(thresholds)
    return found


def fit_logistic(
    rows: TrainingRows,
    tau: float,
    most: int,
    forced: tuple[int, ...] = (),
    thresholds: list[NDArray[np.float64]] | None = None,
) -> LogisticFit:
    """Forward selection of conditions by the worst-case loss, refitting after each.

    thresholds are those of `thresholds_of`, to be reused for several fits on the same rows.
    """
    features, labels, weights = rows.features, rows.labels, rows.weights
    listed = CandidateConditions.of(features, labels, tau, thresholds or thresholds_of(rows))
    target, total = (labels > 0).astype(float), weights.sum()
    base = np.clip((weights * target).sum() / total, 1e-9, 1 - 1e-9)
    start = float(np.log(base / (1 - base)))
    fit = LogisticFit([], np.empty((len(labels), 0)), np.empty(0), start, np.empty(0, bool))
    origin = np.array([features.listed[k].feature for k in listed.column], np.int64)
    waiting = set(forced) & set(origin.tolist())
    excluded = np.zeros((len(listed.thresholds), MAX_THRESHOLDS), bool)
    while len(fit.conditions) < most and len(excluded):
        tried = np.isin(origin, list(waiting)) if waiting else np.ones(len(excluded), bool)
        one, index = _best_condition(listed, tried, excluded, fit, target, weights, bool(waiting))
        if one < 0:
            break
        condition = listed.condition(one, index, features)
        _exclude(excluded, listed, features, one, index, condition)
        fit = _refit(
            np.column_stack([fit.worst, listed.holds(one, index)]),
            np.append(fit.beta, 0.0),
            fit.start,
            target,
            weights,
            [*fit.conditions, condition],
            np.append(fit.forced, bool(waiting)),
        )
        waiting.discard(condition.feature)
    return fit


def _best_condition(listed, tried, excluded, fit, target, weights, must):
    """The condition with the largest predicted gain; a negative gain only if it must."""
    level = fit.start + fit.worst @ fit.beta
    risk = 1 / (1 + np.exp(-np.clip(level, -700, 700)))
    slope, curve = weights * (target - risk), weights * risk * (1 - risk)
    size = np.array([len(thresholds) for thresholds in listed.thresholds])
    limits = np.array([RIDGE, LEAST_GAIN, SAME * weights.sum(), 1e-9 * weights.sum()])
    table = (listed.binned, listed.direction == DOWN, size, tried)
    return best_condition(*table, excluded, slope, curve, limits, must)


def _exclude(excluded, listed, features, one, index, condition) -> None:
    """Exclude a chosen condition and all candidates that mean the same."""
    excluded[one, index] = True
    if condition.sort == "among":  # "the first of two categories" and "not the second" are the same
        for other in range(len(excluded)):
            if features.listed[listed.column[other]].feature == condition.feature:
                for index in range(len(listed.thresholds[other])):
                    excluded[other, index] |= listed.condition(other, index, features) == condition


def _refit(worst, beta, start, target, weights, conditions, forced) -> LogisticFit:
    """Projected Newton steps on all weights, which stay non-negative."""

    def loss(first, others):
        level = first + worst @ others
        lost = np.logaddexp(0, np.where(target > 0, -level, level))
        return (weights * lost).sum() + 0.5 * RIDGE * (others @ others)

    for _ in range(12):
        level = start + worst @ beta
        risk = 1 / (1 + np.exp(-np.clip(level, -700, 700)))
        rest, curve = weights * (risk - target), weights * (risk * (1 - risk) + 1e-9)
        design = np.column_stack([np.ones(len(worst)), worst])
        ridge = np.append(0.0, np.full(len(beta), RIDGE))
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
    return LogisticFit(conditions, worst, beta, float(start), forced)


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
