"""Rounds, edge and noise of a boosted card, chosen by cross-validation."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold

from steadytree.learn._majority import Boosting, Points, boost, both_codes, worst_totals
from steadytree.learn._questions import Questions

FOLDS = 5
MOST_ROWS = 10_000  # of which settings are chosen; the card is then fitted to all
# few rows are divided into folds several times, as one division tells sizes of noise apart poorly
MOST_DIVISIONS, DIVIDED_ROWS = 5, 2_000
ROUNDS = (10, 20, 40)
GAMMAS = (0.02, 0.1, 0.2, 0.3)
PUBLISHED_ROUNDS = (5, 10, 15, 20, 25, 30)
TAUS = (0.0, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2)


@dataclass(frozen=True, eq=False)
class Rows:
    """What a card is fitted to."""

    questions: Questions
    labels: NDArray[np.int64]
    weights: NDArray[np.float64]

    @property
    def most_frequent(self) -> float:
        """Share of the weight of the more frequent class."""
        share = float(np.average(self.labels > 0, weights=self.weights))
        return max(share, 1 - share)

    def take(self, rows: NDArray[Any]) -> "Rows":
        """Some of the rows."""
        return Rows(self.questions.take(rows), self.labels[rows], self.weights[rows])

    def sample(self, most: int, seed: int) -> "Rows":
        """At most so many rows, drawn at random, in their order."""
        n = len(self.labels)
        if n <= most:
            return self
        drawn = np.random.default_rng(seed).choice(n, most, replace=False)
        return self.take(np.sort(drawn))

    def folds(self, divisions: Sequence[int | None] = (None,)) -> Iterator[tuple["Rows", "Rows"]]:
        """Rows to fit to and rows to judge on; as many folds as the rarer class allows.

        Each division is a seed that rows are shuffled by, or None for rows in their order.
        """
        rarer = int(min((self.labels > 0).sum(), (self.labels < 0).sum()))
        if rarer < 2:
            return
        for seed in divisions:
            folds = StratifiedKFold(min(FOLDS, rarer), shuffle=seed is not None, random_state=seed)
            for fit, judge in folds.split(np.zeros(len(self.labels)), self.labels):
                yield self.take(fit), self.take(judge)


def right_share(found: Points, rows: Rows, tau: float, ties_wrong: bool = False) -> float:
    """Share of weight that is right under noise tau."""
    total = worst_totals(found, rows.questions, rows.labels, tau)
    right = (total > 0) == (rows.labels > 0)
    if ties_wrong:  # votes that are equally many, as the published cross-validation counts them
        right &= ~((total == 0) & (found.points.sum() % 2 == 0))
    return float(np.average(right, weights=rows.weights))


def ranked_share(found: Points, rows: Rows) -> float:
    """Area under the ROC curve of the totals; one half where all are equal."""
    total = worst_totals(found, rows.questions, rows.labels, 0.0)
    return float(roc_auc_score(rows.labels, total, sample_weight=rows.weights))


def chance_error(rows: Rows) -> float:
    """Standard error of the area under the ROC curve of totals that say nothing (Mann-Whitney)."""
    there = int((rows.labels > 0).sum())
    rest = len(rows.labels) - there
    return float(np.sqrt((there + rest + 1) / (12 * there * rest)))


def beats_most_frequent(
    answer: NDArray[np.int64], labels: NDArray[np.int64], weights: NDArray[np.float64]
) -> bool:
    """Whether answers are right more often than the most frequent class, by two standard errors."""
    share = float(np.bincount(labels, weights).max() / weights.sum())
    error = np.sqrt(share * (1 - share) / weights.sum())
    return bool(np.average(answer == labels, weights=weights) > share + 2 * error)


def is_above(shares: NDArray[np.float64], chance: Any, errors: float) -> bool:
    """Whether shares of folds lie above what chance gives by so many standard errors."""
    above = shares - chance
    error = above.std(ddof=1) / np.sqrt(len(above))
    return bool(above.mean() > errors * error + 1e-12)


def divisions_of(n_rows: int, seed: int) -> list[int | None]:
    """How rows are divided into folds where sizes of noise are compared: the same way for all."""
    times = min(MOST_DIVISIONS, max(1, DIVIDED_ROWS // n_rows))
    if times == 1:
        return [None]
    return np.random.default_rng(seed).integers(2**31, size=times).tolist()


def choose(
    rows: Sequence[Rows],
    settings: Sequence[Boosting],
    seed: int,
    divisions: Sequence[int | None] = (None,),
) -> tuple[Boosting, NDArray[np.float64]]:
    """The setting that is right most often on held-out rows under its noise; the first on ties.

    rows has one entry a class against the rest, whose shares are averaged. Returns the setting
    with the shares right without noise, fold by fold, which tell what noise costs.
    """
    published = settings[0].as_published
    samples = rows if published else [one.sample(MOST_ROWS, seed) for one in rows]
    shares, cards = [], []
    for fit, judge in (pair for sample in samples for pair in sample.folds(divisions)):
        codes = both_codes(fit.questions, fit.labels, settings[0])
        found = [boost(fit.questions, fit.labels, fit.weights, how, codes) for how in settings]
        shares.append([right_share(one, judge, settings[0].tau, published) for one in found])
        cards.append((found, judge))
    if not shares:
        return settings[0], np.zeros(1)
    mean = np.mean(shares, axis=0)
    best = int(np.flatnonzero(mean >= mean.max() - 1e-12)[0])
    plain = [right_share(found[best], judge, 0.0) for found, judge in cards]
    return settings[best], np.array(plain)


def choose_noise(
    rows: Sequence[Rows], taus: Sequence[float], settings: Sequence[Boosting], seed: int
) -> Boosting:
    """The largest noise that costs no accuracy that held-out rows can tell."""
    if not rows[0].questions.moved.any():
        taus = taus[:1]  # noise moves no column, so all sizes are the same
    divisions = divisions_of(len(rows[0].labels), seed)
    found = [choose(rows, [replace(s, tau=tau) for s in settings], seed, divisions) for tau in taus]
    return found[last_within_error([plain for _, plain in found])][0]


def last_within_error(shares: Sequence[NDArray[np.float64]]) -> int:
    """The last of rising sizes whose mean share is within one standard error of the best.

    shares has one entry a size, with a share for each fold; folds are the same for all sizes, so
    the error is that of their differences. All sizes from the best one to the last must be within
    it, so that a size that is good by luck, far beyond sizes that are not, is never taken.
    """
    best = int(np.argmax([folds.mean() for folds in shares]))
    last = best
    for folds in shares[best + 1 :]:
        lost = shares[best] - folds
        error = lost.std(ddof=1) / np.sqrt(len(lost)) if len(lost) > 1 else 0.0
        if lost.mean() > error + 1e-12:
            break
        last += 1
    return last
