"""Boosting by majority under noise, and its settings by cross-validation."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from steadytree.metrics.accuracy import roc_area
from steadytree.models.condition import Condition
from steadytree.riskscore._kernels.votes import ALWAYS, DOWN, UP, BoostTable, boost_majority
from steadytree.riskscore.candidates import BinnedFeatures, DerivedFeatures, TrainingRows

STOP = 0.51  # a vote must be correct on this share of the weight
FLOOR = 1e-6  # least weight of a row


@dataclass(frozen=True, eq=False)
class Points:
    """Conditions with points and an offset, and the training rows' totals under the worst noise."""

    conditions: list[Condition]
    points: NDArray[np.int64]  # (n_conditions,)
    offset: int
    worst_totals: NDArray[np.int64]  # (n,), noise turning each condition against the label


@dataclass(frozen=True)
class Boosting:
    """How votes are chosen."""

    rounds: int  # maximum number of votes
    gamma: float  # advantage over one half that every vote is expected to have
    tau: float  # noise, as a share of each column's range
    most: int  # maximum number of different conditions
    forced: tuple[int, ...] = ()  # columns that must be used
    # no constant votes, no tuned offset, a last vote that fails, thresholds midway between values
    as_published: bool = False


@lru_cache(maxsize=64)
def majority_shares(rounds: int, gamma: float, as_published: bool = False) -> NDArray[np.float64]:
    """Weight (T, 2 T + 1) of a row by round and margin: the probability that its vote decides."""
    # with m rounds left and margin s, k = floor((m - s + 1) / 2) further correct votes decide,
    # whose probability is ``C(m, k) (1/2 + gamma)^k (1/2 - gamma)^(m - k)`` when votes are correct
    # with probability 1/2 + gamma (Freund 1995, boost-by-majority)
    margins = np.arange(-rounds, rounds + 1)
    left = np.arange(rounds)[::-1, None]
    shares = 0.5 * stats.binom.pmf((left - margins + 1) // 2, left, 0.5 + gamma)
    if as_published and rounds % 2:
        shares /= 0.5 - gamma  # the published code rounds one exponent down
    shares += FLOOR
    shares.flags.writeable = False  # the cached array is shared
    return shares


def boost(
    rows: TrainingRows, how: Boosting, ready: tuple[BinnedFeatures, BinnedFeatures] | None = None
) -> Points:
    """Fit points to labels -1 and 1; rows are moved against their label by `how.tau`."""
    features, labels, weights = rows.features, rows.labels, rows.weights
    if len(features) == 0:
        offset = int((weights * labels).sum() > 0)
        return Points([], np.zeros(0, np.int64), offset, np.full(len(labels), offset))
    up, down = ready or bin_features(rows, how)
    table = _table(features, up, down, how)
    shares = majority_shares(how.rounds, how.gamma, how.as_published)
    limits = np.array([0.5 + how.gamma if how.as_published else STOP, how.most])
    votes = boost_majority(up.binned, down.binned, table, labels, weights, shares, limits)
    conditional = votes[:, 0] >= 0
    count = np.zeros(len(labels), np.int64)
    for c, threshold, direction in votes[conditional]:
        count += down.binned[c] < threshold if direction == DOWN else up.binned[c] >= threshold
    always = int((votes[:, 2][~conditional] == ALWAYS).sum())
    never = int((~conditional).sum()) - always
    offset = -((int(conditional.sum()) - always + never) // 2)
    if not how.as_published:
        offset = tuned_offset(count, rows, offset)
    conditions, points = _merge(features, votes[conditional], up, down)
    if how.as_published:
        # its first threshold votes yes for missing values too, which no condition does
        plain = Points(conditions, points, offset, count)
        return replace(plain, worst_totals=worst_totals(plain, rows, how.tau))
    return Points(conditions, points, offset, count + offset)


def bin_features(rows: TrainingRows, how: Boosting) -> tuple[BinnedFeatures, BinnedFeatures]:
    """Bins upwards and downwards; made once where noise moves nothing."""
    features, labels = rows.features, rows.labels
    short, slack = not how.as_published, {"slack": 1.0} if how.as_published else {}
    up = BinnedFeatures.of(features.shifted(labels, how.tau, UP, **slack), UP, short)
    still = how.tau == 0 or not features.moved.any()
    if not features.allowed[:, DOWN].any() or (still and not np.isnan(features.matrix).any()):
        return up, up
    return up, BinnedFeatures.of(features.shifted(labels, how.tau, DOWN, **slack), DOWN, short)


def tuned_offset(count: NDArray[np.int64], rows: TrainingRows, usual: int) -> int:
    """The offset with which most weight is correct; on ties the one nearest to `usual`."""
    top, labels, weights = int(count.max()), rows.labels, rows.weights
    positive = np.bincount(count, weights * (labels > 0), minlength=top + 1)
    negative = np.bincount(count, weights * (labels < 0), minlength=top + 1)
    # offset -c makes totals above c positive; -1 stands for all positive
    correct = np.append(positive.sum(), positive.sum() - np.cumsum(positive) + np.cumsum(negative))
    good = np.flatnonzero(correct >= correct.max() - 1e-9 * weights.sum()) - 1
    return -int(good[np.argmin(np.abs(good + usual))])


def smallest_points(found: Points) -> Points:
    """The same predictions with points divided by their greatest common divisor."""
    common = int(np.gcd.reduce(found.points)) if len(found.points) else 1
    if common <= 1:
        return found
    # common * k + offset > 0 where k > -offset / common, so where k > its floor
    offset = -(-found.offset // common)
    worst = (found.worst_totals - found.offset) // common + offset
    return Points(found.conditions, found.points // common, offset, worst)


def _table(
    features: DerivedFeatures, up: BinnedFeatures, down: BinnedFeatures, how: Boosting
) -> BoostTable:
    number = {feature: k for k, feature in enumerate(how.forced)}
    missing = np.isnan(features.matrix).any(axis=0)
    first = 0 if how.as_published else 1
    sizes = np.stack([up.size, down.size], axis=1)
    conditional = (features.allowed & (sizes > np.array([first, 1]))).max(axis=1, initial=False)
    forced = np.array([number.get(derived.feature, -1) for derived in features.listed])
    # a column with one value in a fold has no condition there, and must not end the votes
    forced = np.where(conditional, forced, -1)
    shared = (~features.moved | (how.tau == 0)) & ~missing
    published = how.as_published
    return BoostTable(sizes, features.allowed, shared, forced, first, not published, published)


def _merge(
    features: DerivedFeatures, votes: NDArray[np.int64], up: BinnedFeatures, down: BinnedFeatures
) -> tuple[list[Condition], NDArray[np.int64]]:
    """Votes as conditions, each once, with the number of its votes as points."""
    points: dict[Condition, int] = {}
    for (column, threshold, direction), count in Counter(map(tuple, votes.tolist())).items():
        at = (down if direction == DOWN else up).thresholds[column][threshold]
        condition = features.listed[column].condition(direction, at, features.space)
        points[condition] = points.get(condition, 0) + count
    return list(points), np.array(list(points.values()), np.int64)


def worst_totals(found: Points, rows: TrainingRows, tau: float) -> NDArray[np.int64]:
    """Totals of rows when noise tau turns every condition against the label."""
    features, labels = rows.features, rows.labels
    total = np.full(len(labels), found.offset)
    for condition, points in zip(found.conditions, found.points, strict=True):
        mine = [k for k, q in enumerate(features.listed) if q.feature == condition.feature]
        x = features.matrix[:, mine[0]]
        if condition.sort in ("at_least", "below"):
            sign = labels if condition.sort == "below" else -labels
            total += points * condition.holds(x + tau * features.listed[mine[0]].unit * sign)
        elif condition.sort in ("missing", "present"):
            total += points * (np.isnan(x) == (condition.sort == "missing"))
        else:
            held = {features.listed[k].category: features.matrix[:, k] == 1 for k in mine}
            if 0 not in held:  # the first of two categories has no column of its own
                held[0] = x == 0
            total += points * np.any([held[category] for category in condition.categories], axis=0)
    return total


MOST_ROWS = 10_000  # for the choice of settings; the final fit uses all rows
# few rows are divided into folds several times, since one division compares noise levels poorly
MOST_DIVISIONS, DIVIDED_ROWS = 5, 2_000
ROUNDS = (10, 20, 40)
GAMMAS = (0.02, 0.1, 0.2, 0.3)
PUBLISHED_ROUNDS = (5, 10, 15, 20, 25, 30)
TAUS = (0.0, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2)


def noisy_accuracy(found: Points, rows: TrainingRows, tau: float, ties_wrong=False) -> float:
    """Accuracy under noise tau."""
    total = worst_totals(found, rows, tau)
    correct = (total > 0) == (rows.labels > 0)
    if ties_wrong:  # equal numbers of votes, as the published cross-validation counts them
        correct &= (total != 0) | (found.points.sum() % 2 == 1)
    return float(np.average(correct, weights=rows.weights))


def ranking_auc(found: Points, rows: TrainingRows) -> float:
    """Area under the ROC curve of the totals; one half where all are equal."""
    return roc_area(worst_totals(found, rows, 0.0), rows.labels > 0, rows.weights)


def is_above(shares: NDArray[np.float64], chance: Any, errors: float) -> bool:
    """Whether the mean over folds exceeds chance by a number of standard errors."""
    above = shares - chance
    error = above.std(ddof=1) / np.sqrt(len(above))
    return bool(above.mean() > errors * error + 1e-12)


def divisions_of(n_rows: int, seed: int) -> list[int | None]:
    """Seeds of the divisions into folds that all noise levels share."""
    times = min(MOST_DIVISIONS, max(1, DIVIDED_ROWS // n_rows))
    if times == 1:
        return [None]
    return np.random.default_rng(seed).integers(2**31, size=times).tolist()


def choose(
    rows: Sequence[TrainingRows],
    settings: Sequence[Boosting],
    seed: int,
    divisions: Sequence[int | None] = (None,),
) -> tuple[Boosting, NDArray[np.float64]]:
    """The setting with the best held-out accuracy under its noise; the first on ties."""
    # rows has one entry for each class against the rest, over which accuracies are averaged.
    # Returns the setting and its accuracies without noise, fold by fold.
    published = settings[0].as_published
    samples = rows if published else [one.sample(MOST_ROWS, seed) for one in rows]
    shares, scorecards = [], []
    for fit, judge in (pair for sample in samples for pair in sample.folds(divisions)):
        binned = bin_features(fit, settings[0])
        found = [boost(fit, how, binned) for how in settings]
        shares.append([noisy_accuracy(one, judge, settings[0].tau, published) for one in found])
        scorecards.append((found, judge))
    if not shares:
        return settings[0], np.zeros(1)
    mean = np.mean(shares, axis=0)
    best = int(np.flatnonzero(mean >= mean.max() - 1e-12)[0])
    plain = [noisy_accuracy(found[best], judge, 0.0) for found, judge in scorecards]
    return settings[best], np.array(plain)


def choose_noise(
    rows: Sequence[TrainingRows], taus: Sequence[float], settings: Sequence[Boosting], seed: int
) -> Boosting:
    """The largest noise within one standard error of the best accuracy on held-out rows."""
    if not rows[0].features.moved.any():
        taus = taus[:1]  # noise moves no column, so all levels are equal
    divisions = divisions_of(len(rows[0].labels), seed)
    found = [choose(rows, [replace(s, tau=tau) for s in settings], seed, divisions) for tau in taus]
    return found[last_within_error([plain for _, plain in found])][0]


def last_within_error(shares: Sequence[NDArray[np.float64]]) -> int:
    """The last of rising noise levels whose mean is within one standard error of the best."""
    # shares has one array for each level, with a value for each fold; all levels share the folds,
    # so the error is that of the differences. All levels from the best one to the last must be
    # within it, so that a large level that is good by chance is never taken.
    best = int(np.argmax([folds.mean() for folds in shares]))
    last = best
    for folds in shares[best + 1 :]:
        lost = shares[best] - folds
        error = lost.std(ddof=1) / np.sqrt(len(lost)) if len(lost) > 1 else 0.0
        if lost.mean() > error + 1e-12:
            break
        last += 1
    return last
