"""Logistic: a card fitted to the logistic loss of rows that noise has moved against their label."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steadytree.models.scorecard import Condition
from steadytree.riskscore._kernels import best_condition, fit_curve
from steadytree.riskscore.boosting import Points
from steadytree.riskscore.candidates import DOWN, SLACK, UP, Questions, edges_between, ranks

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


@dataclass(frozen=True, eq=False)
class Candidates:
    """Every column and way that may be asked, with cuts and what rows moved by noise answer.

    Candidate k asks column ``column[k]`` the way ``way[k]``. A row's code is how many cuts of
    ``cuts[k]`` it has passed: it satisfies cut c upwards where its code is above c, downwards where
    it is not. A missing value satisfies none.
    """

    column: NDArray[np.int64]
    way: NDArray[np.int64]
    cuts: list[NDArray[np.float64]]
    codes: NDArray[np.uint8]

    @classmethod
    def of(
        cls,
        questions: Questions,
        labels: NDArray[np.int64],
        tau: float,
        cuts: list[NDArray[np.float64]],
    ) -> "Candidates":
        """Candidates of columns with the given cuts, for rows moved by noise tau."""
        asked = [
            (column, way)
            for column, question in enumerate(questions.listed)
            for way in (UP, DOWN)
            if question.ways[way] and len(cuts[column])
        ]
        codes = np.empty((len(asked), len(labels)), np.uint8)
        moved = {way: questions.shifted(labels, tau, way, SLACK) for way in (UP, DOWN)}
        for k, (column, way) in enumerate(asked):
            x = moved[way][:, column]
            # searchsorted puts nan last, where it passes every cut
            codes[k] = np.searchsorted(cuts[column], x, side="right")
            if way == UP:
                codes[k, np.isnan(x)] = 0
        columns, ways = np.array(asked, np.int64).reshape(-1, 2).T.copy()
        return cls(columns, ways, [cuts[k] for k in columns], codes)

    def holds(self, one: int, cut: int) -> NDArray[np.bool_]:
        """Which rows satisfy a candidate's condition at a cut, once moved."""
        passed = self.codes[one] > cut
        return passed if self.way[one] == UP else ~passed

    def condition(self, one: int, cut: int, questions: Questions) -> Condition:
        """The condition that a candidate's cut stands for."""
        question = questions.listed[self.column[one]]
        return question.condition(int(self.way[one]), self.cuts[one][cut], questions.space)


def cuts_of(questions: Questions, weights: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """Thresholds of each column: between its values, or at quantiles where there are many."""
    found = []
    for x in questions.answers.T:
        known = ~np.isnan(x)
        values, place = ranks(x[known])
        cuts = edges_between(values, short=True)
        if len(cuts) > MOST_CUTS:
            counts = np.bincount(place, weights[known], minlength=len(values))
            shares = np.cumsum(counts)[:-1] / counts.sum()
            wanted = np.arange(1, MOST_CUTS + 1) / (MOST_CUTS + 1)
            cuts = cuts[np.unique(np.searchsorted(shares, wanted - 1e-12).clip(0, len(cuts) - 1))]
        found.append(cuts)
    return found


def fit_logistic(
    questions: Questions,
    labels: NDArray[np.int64],
    weights: NDArray[np.float64],
    tau: float,
    most: int,
    forced: tuple[int, ...] = (),
    cuts: list[NDArray[np.float64]] | None = None,
) -> Fit:
    """Add one condition after the other, whichever lowers the worst-case loss most, and refit.

    cuts are those of `cuts_of`, for whoever fits the same rows several times.
    """
    listed = Candidates.of(questions, labels, tau, cuts or cuts_of(questions, weights))
    target, total = (labels > 0).astype(float), weights.sum()
    base = np.clip((weights * target).sum() / total, 1e-9, 1 - 1e-9)
    start = float(np.log(base / (1 - base)))
    fit = Fit([], np.empty((len(labels), 0)), np.empty(0), start, np.empty(0, bool))
    features = np.array([questions.listed[k].feature for k in listed.column], np.int64)
    waiting = set(forced) & set(features.tolist())
    shut = np.zeros((len(listed.cuts), MOST_CUTS), bool)
    while len(fit.conditions) < most and len(shut):
        tried = np.isin(features, list(waiting)) if waiting else np.ones(len(shut), bool)
        one, cut = _best_condition(listed, tried, shut, fit, target, weights, bool(waiting))
        if one < 0:
            break
        condition = listed.condition(one, cut, questions)
        _shut(shut, listed, questions, one, cut, condition)
        fit = _refit(
            np.column_stack([fit.worst, listed.holds(one, cut)]),
            np.append(fit.beta, 0.0),
            fit.start,
            target,
            weights,
            [*fit.conditions, condition],
            np.append(fit.forced, bool(waiting)),
        )
        waiting.discard(condition.feature)
    return fit


def _best_condition(listed, tried, shut, fit, target, weights, must):
    """The condition that promises to lower the loss most; one that raises it only if it must."""
    level = fit.start + fit.worst @ fit.beta
    risk = 1 / (1 + np.exp(-np.clip(level, -700, 700)))
    slope, curve = weights * (target - risk), weights * risk * (1 - risk)
    size = np.array([len(cuts) for cuts in listed.cuts])
    limits = np.array([RIDGE, LEAST_GAIN, SAME * weights.sum(), 1e-9 * weights.sum()])
    table = (listed.codes, listed.way == DOWN, size, tried)
    return best_condition(*table, shut, slope, curve, limits, must)


def _shut(shut, listed, questions, one, cut, condition) -> None:
    """Mark a chosen condition, and whatever else asks the same, as asked."""
    shut[one, cut] = True
    if condition.sort == "among":  # the first of two categories and all but the second are the same
        for other in range(len(shut)):
            if questions.listed[listed.column[other]].feature == condition.feature:
                for place in range(len(listed.cuts[other])):
                    shut[other, place] |= listed.condition(other, place, questions) == condition


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
    # where points hardly tell anything the curve is almost flat, and the level far from all totals
    far = 10 * int(points.sum())
    offset = -int(np.clip(level, -far, far))
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
