"""Risk scores of conditions that noise may turn: equal votes, or the logistic loss."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from steadytree.models.scorecard import Scorecard
from steadytree.riskscore import boosting, candidates, logistic
from steadytree.riskscore.boosting import Boosting, Points
from steadytree.riskscore.candidates import USUAL, DerivedFeatures, LabelledRows, TrainingRows

MOST_POINTS = {"majority": 10, "logistic": 5}
NO_LIMIT = 10**6


class ConditionScore(NamedTuple):
    """A scorecard, the settings it was fitted with, and its share of rows that no noise changes."""

    scorecard: Scorecard
    certified_accuracy: float
    noise: float
    gamma: float | None = None
    n_rounds: int | None = None


def fit_conditions(estimator: Any, data: LabelledRows, seed: int) -> ConditionScore:
    """Fit by votes or by the logistic loss, as the estimator's objective says."""
    features = DerivedFeatures.of(estimator, data)
    targets = [1] if len(data.classes) == 2 else range(len(data.classes))
    rows = [
        TrainingRows(features, np.where(data.labels == k, 1, -1), data.weights) for k in targets
    ]
    forced = candidates.check_forced(estimator, data)
    if estimator.objective == "logistic":
        noise = _logistic_noise(estimator, rows, forced, seed)
        found = [_logistic(estimator, one, noise, forced) for one in rows]
        return ConditionScore(*_scorecard(found, data), noise)
    found, how = _votes(estimator, rows, forced, seed)
    return ConditionScore(*_scorecard(found, data), how.tau, how.gamma, how.rounds)


def _scorecard(found: list[Points], data: LabelledRows) -> tuple[Scorecard, float]:
    if len(found) == 1:
        scorecard = logistic.binary_scorecard(found[0], data)
        correct = (found[0].worst_totals > 0) == (data.labels == 1)
    else:
        scorecard, worst = logistic.joint_scorecard(found, data)
        correct = worst.argmax(axis=1) == data.labels
    return scorecard, float(np.average(correct, weights=data.weights))


def _votes(
    estimator: Any, rows: list[TrainingRows], forced: tuple[int, ...], seed: int
) -> tuple[list[Points], Boosting]:
    """Points of each class against the rest, all with the same settings."""
    settings = _settings(estimator, forced)
    if estimator.noise == "1se":
        how = boosting.choose_noise(rows, boosting.TAUS, settings, seed)
    else:
        how = settings[0] if len(settings) == 1 else boosting.choose(rows, settings, seed)[0]
    found = [_majority(estimator, one, how) for one in rows]
    # totals of several classes are compared with each other, so their points are not divided
    several = len(found) > 1 or how.as_published
    return found if several else [boosting.smallest_points(found[0])], how


def _settings(estimator: Any, forced: tuple[int, ...]) -> list[Boosting]:
    published = estimator.objective == "published"
    usual = boosting.PUBLISHED_ROUNDS if published else boosting.ROUNDS
    if estimator.n_rounds == "cv":  # each forced column takes a vote
        rounds = [r for r in usual if r >= len(forced)] or [len(forced)]
    else:
        rounds = [estimator.n_rounds]
    gammas = boosting.GAMMAS if estimator.gamma == "cv" else (estimator.gamma,)
    noise = 0.0 if estimator.noise == "1se" else float(estimator.noise)
    fixed = noise, most_conditions(estimator), forced, published
    return [Boosting(int(r), float(g), *fixed) for r in rounds for g in gammas]


def _majority(estimator: Any, rows: TrainingRows, how: Boosting) -> Points:
    found, most = boosting.boost(rows, how), _most_points(estimator, "majority")
    if not (found.points > most).any():
        return found
    points = np.minimum(found.points, most)
    limited = replace(found, points=points, offset=0)
    count = boosting.worst_totals(limited, rows, how.tau * candidates.SLACK)
    offset = boosting.tuned_offset(count, rows, -(int(points.sum()) // 2))
    return Points(found.conditions, points, offset, count + offset)


def _logistic(
    estimator: Any,
    rows: TrainingRows,
    noise: float,
    forced: tuple[int, ...],
    thresholds: Any = None,
) -> Points:
    fit = logistic.fit_logistic(rows, noise, most_conditions(estimator), forced, thresholds)
    most = _most_points(estimator, "logistic")
    return logistic.round_points(fit, rows.labels, rows.weights, most)


def _logistic_noise(
    estimator: Any, rows: list[TrainingRows], forced: tuple[int, ...], seed: int
) -> float:
    """The noise that was asked for, or the largest that costs held-out rows nothing."""
    if estimator.noise != "1se":
        return float(estimator.noise)
    sizes = boosting.TAUS
    divisions = boosting.divisions_of(len(rows[0].labels), seed)
    samples = [one.sample(boosting.MOST_ROWS, seed) for one in rows]
    folds = [pair for one in samples for pair in one.folds(divisions)]
    if len(folds) < 2 or not rows[0].features.moved.any():
        return sizes[0]
    correct, ranked = np.empty((2, len(sizes), len(folds)))
    for k, (fit, held) in enumerate(folds):
        thresholds = logistic.thresholds_of(fit)
        for size, noise in enumerate(sizes):
            found = _logistic(estimator, fit, noise, forced, thresholds)
            correct[size, k] = boosting.noisy_accuracy(found, held, 0.0)
            ranked[size, k] = boosting.ranking_auc(found, held)
    frequent = np.array([held.most_frequent for _, held in folds])
    # where accuracy is no better than the most frequent class, an empty score looks as good
    best = correct[correct.mean(axis=1).argmax()]
    is_informative = boosting.is_above(best, frequent, errors=2)
    return sizes[boosting.last_within_error(list(correct if is_informative else ranked))]


def most_conditions(estimator: Any) -> int:
    limit = estimator.max_conditions
    return NO_LIMIT if limit is None else USUAL if limit == "auto" else int(limit)


def _most_points(estimator: Any, objective: str) -> int:
    return MOST_POINTS[objective] if estimator.max_points is None else int(estimator.max_points)
