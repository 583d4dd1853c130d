"""Logistic: a card fitted to the logistic loss of rows that noise has moved against their label."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steadytree.core.condition import Condition
from steadytree.kernels.logistic import fit_curve, sums_past_cuts
from steadytree.learn._majority import Points
from steadytree.learn._questions import DOWN, SLACK, UP, Questions, edges_between, ranks

MOST_CUTS = 63  # candidate thresholds a column
RIDGE = 1.0  # of a standard normal prior on each weight, which few rows need
LEAST_GAIN = 1e-3
# what sums in another order may differ by: less is a tie, so that weights and repeated rows agree
SAME = 1e-7


@dataclass(frozen=True)
class Fit:
    """Chosen conditions with their weights, before rounding.

    `worst` (n, k) tells which hold under noise, `beta` (k,) the weights, none negative, and
    `forced` (k,) which must keep at least one point.
    """

    conditions: list[Condition]
    worst: NDArray[np.float64]
    beta: NDArray[np.float64]
    start: float
    forced: NDArray[np.bool_]


@dataclass(frozen=True)
class Candidates:
    """One column asked one way: cuts, and how many of them each row's moved answer has passed."""

    column: int
    way: int
    cuts: NDArray[np.float64]
    codes: NDArray[np.int64]
    known: NDArray[np.bool_]

    def holds(self, cut: int) -> NDArray[np.bool_]:
        """Which rows satisfy the condition at a cut, once moved."""
        passed = self.codes > cut
        return (passed if self.way == UP else ~passed) & self.known

    def sums(
        self, first: NDArray[np.float64], second: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Sums of two columns over the rows that satisfy each cut."""
        sums = sums_past_cuts(self.codes, self.known, first, second, len(self.cuts))
        kept = sums[:-1] if self.way == UP else sums[-1] - sums[:-1]
        return kept[:, 0], kept[:, 1]


def candidates(
    questions: Questions, labels: NDArray[np.int64], weights: NDArray[np.float64], tau: float
) -> list[Candidates]:
    """Every column and way, with quantile cuts of the answers as they are."""
    found = []
    moved = {way: questions.shifted(labels, tau, way, SLACK) for way in (UP, DOWN)}
    for column, question in enumerate(questions.listed):
        x = questions.answers[:, column]
        known = ~np.isnan(x)
        values, place = ranks(x[known])
        counts = np.bincount(place, weights[known], minlength=len(values))
        cuts = edges_between(values, short=True)
        if len(cuts) > MOST_CUTS:
            shares = np.cumsum(counts)[:-1] / counts.sum()
            wanted = np.arange(1, MOST_CUTS + 1) / (MOST_CUTS + 1)
            cuts = cuts[np.unique(np.searchsorted(shares, wanted - 1e-12).clip(0, len(cuts) - 1))]
        if len(cuts) == 0:
            continue
        for way in (UP, DOWN):
            if question.ways[way]:
                z = np.where(known, moved[way][:, column], -np.inf)
                codes = np.searchsorted(cuts, z, side="right")
                found.append(Candidates(column, way, cuts, codes, known))
    return found


def fit_logistic(
    questions: Questions,
    labels: NDArray[np.int64],
    weights: NDArray[np.float64],
    tau: float,
    most: int,
    forced: tuple[int, ...] = (),
) -> Fit:
    """Add one condition after the other, whichever lowers the worst-case loss most, and refit."""
    listed = candidates(questions, labels, weights, tau)
    target, total = (labels > 0).astype(float), weights.sum()
    base = np.clip((weights * target).sum() / total, 1e-9, 1 - 1e-9)
    start = float(np.log(base / (1 - base)))
    fit = Fit([], np.empty((len(labels), 0)), np.empty(0), start, np.empty(0, bool))
    features = [questions.listed[one.column].feature for one in listed]
    waiting = set(forced) & set(features)
    while len(fit.conditions) < most:
        tried = [o for o, f in zip(listed, features, strict=True) if not waiting or f in waiting]
        found = _best_condition(tried, questions, fit, target, weights, bool(waiting))
        if found is None:
            break
        one, cut, condition = found
        fit = _refit(
            np.column_stack([fit.worst, one.holds(cut)]),
            np.append(fit.beta, 0.0),
            fit.start,
            target,
            weights,
            [*fit.conditions, condition],
            np.append(fit.forced, bool(waiting)),
        )
        waiting.discard(condition.feature)
    return fit


def _best_condition(listed, questions, fit, target, weights, must):
    """The condition that promises to lower the loss most; one that raises it only if it must."""
    total = weights.sum()
    level = fit.start + fit.worst @ fit.beta
    risk = 1 / (1 + np.exp(-np.clip(level, -700, 700)))
    slope, curve = weights * (target - risk), weights * risk * (1 - risk)
    best, at = (-np.inf if must else LEAST_GAIN), None
    for one in listed:
        g, h = one.sums(slope, curve)
        h = np.maximum(h - h**2 / max(curve.sum(), 1e-300), 0.0)  # the start is refitted with it
        useful = (g > 0) & (h > 1e-9 * total)
        gain = np.where(useful, g**2 / (2 * (h + RIDGE)), g if must else -np.inf)
        for cut in np.argsort(-gain, kind="stable")[: len(fit.conditions) + 1]:
            if not gain[cut] > best + SAME * total:
                break  # nor are those that follow
            question = questions.listed[one.column]
            condition = question.condition(one.way, one.cuts[cut], questions.space)
            if condition not in fit.conditions:
                best, at = gain[cut], (one, int(cut), condition)
                break
    return at


def _refit(worst, beta, start, target, weights, conditions, forced) -> Fit:
    """Newton steps on all weights, kept from falling below zero."""

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
    return Fit(conditions, worst, beta, float(start), forced)


def round_points(
    fit: Fit, labels: NDArray[np.int64], weights: NDArray[np.float64], most_points: int
) -> Points:
    """Small whole points: several scales are rounded, and the best is polished point by point."""
    kept = np.flatnonzero((fit.beta > SAME) | fit.forced)
    if len(kept) == 0:
        offset = int(fit.start > 0)
        return Points([], np.zeros(0, np.int64), offset, np.full(len(labels), offset))
    bits = np.packbits(np.column_stack([fit.worst[:, kept] > 0, labels > 0]), axis=1)
    packed, place = np.unique(bits, axis=0, return_inverse=True)
    patterns = np.unpackbits(packed, axis=1, count=len(kept) + 1)
    held, positive = patterns[:, :-1].astype(np.int64), patterns[:, -1] > 0
    mass = np.asarray(np.bincount(place.ravel(), weights, minlength=len(packed)), np.float64)

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
    offset = -int(level)
    asked = points > 0
    conditions = [fit.conditions[k] for k in kept[asked]]
    worst = fit.worst[:, kept].astype(np.int64) @ points + offset
    return Points(conditions, points[asked].astype(np.int64), offset, worst)


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
    levels, place = np.unique(totals, return_inverse=True)
    mass = np.bincount(place, weights, minlength=len(levels))
    hits = np.bincount(place, weights * positive, minlength=len(levels))
    slope, start, lost = fit_curve(levels.astype(np.float64), mass, hits)
    return float(slope), float(start), float(lost)
