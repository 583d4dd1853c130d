"""Rounds, edge and noise of a boosted card, chosen by cross-validation."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold

from steadytree.models.scorecard import Condition
from steadytree.riskscore._kernels import ALWAYS, DOWN, UP, BoostTable, boost_majority
from steadytree.riskscore.candidates import Codes, Questions

STOP = 0.51  # a vote must be right on this share of the weight
FLOOR = 1e-6  # weight that no row falls below


@dataclass(frozen=True, eq=False)
class Points:
    """Conditions with points and an offset, and how many training rows stay right under noise.

    Parameters
    ----------
    conditions : list of Condition
    points : int64 array (n_conditions,)
    offset : int
    worst_totals : int64 array (n,)
        Training rows' totals when each condition is answered as badly as noise can make it.
    """

    conditions: list[Condition]
    points: NDArray[np.int64]
    offset: int
    worst_totals: NDArray[np.int64]


@dataclass(frozen=True)
class Boosting:
    """How votes are chosen.

    Parameters
    ----------
    rounds : int
        Most votes.
    gamma : float
        Edge over one half that every vote is expected to have.
    tau : float
        Noise, as a share of each column's range.
    most : int
        Most different conditions.
    forced : tuple of int
        Columns that must be asked about.
    as_published : bool
        No constant votes and no tuned offset, a last vote that fails, thresholds in the middle.
    """

    rounds: int
    gamma: float
    tau: float
    most: int
    forced: tuple[int, ...] = ()
    as_published: bool = False


@lru_cache(maxsize=64)
def majority_shares(rounds: int, gamma: float, as_published: bool = False) -> NDArray[np.float64]:
    """Weight (T, 2 T + 1) of a row by round and margin: how likely its vote decides the majority.

    With m rounds to go and margin s, k = floor((m - s + 1) / 2) further right votes decide, whose
    probability is ``C(m, k) (1/2 + gamma)^k (1/2 - gamma)^(m - k)`` when votes are right with
    probability 1/2 + gamma.
    """
    margins = np.arange(-rounds, rounds + 1)
    shares = np.zeros((rounds, len(margins)))
    for turn in range(rounds):
        left = rounds - turn - 1
        needed = np.floor((left - margins + 1) / 2).astype(np.int64)
        open_ = (needed >= 0) & (needed <= left)
        k = needed[open_]
        log = gammaln(left + 1) - gammaln(k + 1) - gammaln(left - k + 1)
        log += k * np.log(0.5 + gamma) + (left - k) * np.log(0.5 - gamma)
        shares[turn, open_] = 0.5 * np.exp(log)
    if as_published and rounds % 2:
        shares /= 0.5 - gamma  # the published code rounds one exponent down
    shares += FLOOR
    shares.flags.writeable = False  # shared by everyone who asks for it
    return shares


def boost(
    questions: Questions,
    labels: NDArray[np.int64],
    weights: NDArray[np.float64],
    how: Boosting,
    ready: tuple[Codes, Codes] | None = None,
) -> Points:
    """Fit a card to labels -1 and 1; rows are moved against their label by `how.tau`."""
    if len(questions) == 0:
        return Points([], np.zeros(0, np.int64), *_constant(labels, weights))
    up, down = ready or both_codes(questions, labels, how)
    table = _table(questions, up, down, how)
    shares = majority_shares(how.rounds, how.gamma, how.as_published)
    limits = np.array([0.5 + how.gamma if how.as_published else STOP, how.most])
    votes = boost_majority(up.codes, down.codes, table, labels, weights, shares, limits)
    asks = votes[:, 0] >= 0
    yes = [
        down.codes[c] < cut if way == DOWN else up.codes[c] >= cut for c, cut, way in votes[asks]
    ]
    count = np.zeros(len(labels), np.int64)
    for held in yes:
        count += held
    always = int((votes[:, 2][~asks] == ALWAYS).sum())
    never = int((~asks).sum()) - always
    offset = -((int(asks.sum()) - always + never) // 2)
    if not how.as_published:
        offset = tuned_offset(count, labels, weights, offset)
    conditions, points = _merge(questions, votes[asks], up, down)
    if how.as_published:
        # its first cut says yes to missing values too, which no condition does
        plain = Points(conditions, points, offset, count)
        return replace(plain, worst_totals=worst_totals(plain, questions, labels, how.tau))
    return Points(conditions, points, offset, count + offset)


def both_codes(
    questions: Questions, labels: NDArray[np.int64], how: Boosting
) -> tuple[Codes, Codes]:
    """Codes upwards and downwards; made once where noise moves nothing."""
    short, slack = not how.as_published, {"slack": 1.0} if how.as_published else {}
    up = Codes.of(questions.shifted(labels, how.tau, UP, **slack), UP, short)
    still = how.tau == 0 or not questions.moved.any()
    if not questions.open[:, DOWN].any() or (still and not np.isnan(questions.answers).any()):
        return up, up
    return up, Codes.of(questions.shifted(labels, how.tau, DOWN, **slack), DOWN, short)


def tuned_offset(
    count: NDArray[np.int64],
    labels: NDArray[np.int64],
    weights: NDArray[np.float64],
    usual: int,
) -> int:
    """The offset with which most weight is right; the one nearest to the usual on ties."""
    top = int(count.max())
    positive = np.bincount(count, weights * (labels > 0), minlength=top + 1)
    negative = np.bincount(count, weights * (labels < 0), minlength=top + 1)
    # offset -c makes totals above c positive; -1 stands for all positive
    right = np.append(positive.sum(), positive.sum() - np.cumsum(positive) + np.cumsum(negative))
    good = np.flatnonzero(right >= right.max() - 1e-9 * weights.sum()) - 1
    return -int(good[np.argmin(np.abs(good + usual))])


def smallest_points(found: Points) -> Points:
    """The same answers with points divided by what divides them all."""
    common = int(np.gcd.reduce(found.points)) if len(found.points) else 1
    if common <= 1:
        return found
    # common * k + offset > 0 where k > -offset / common, so where k > its floor
    offset = -(-found.offset // common)
    worst = (found.worst_totals - found.offset) // common + offset
    return Points(found.conditions, found.points // common, offset, worst)


def _constant(labels: NDArray[np.int64], weights: NDArray[np.float64]) -> Any:
    offset = int((weights * labels).sum() > 0)
    return offset, np.full(len(labels), offset)


def _table(questions: Questions, up: Codes, down: Codes, how: Boosting) -> BoostTable:
    number = {feature: k for k, feature in enumerate(how.forced)}
    missing = np.isnan(questions.answers).any(axis=0)
    first = 0 if how.as_published else 1
    sizes = np.stack([up.size, down.size], axis=1)
    asks = (questions.open & (sizes > np.array([first, 1]))).max(axis=1, initial=False).tolist()
    return BoostTable(
        sizes,
        questions.open,
        (~questions.moved | (how.tau == 0)) & ~missing,
        # what has one value in a fold cannot be asked there, and must not end the votes
        np.array(
            [
                number.get(question.feature, -1) if asks_any else -1
                for question, asks_any in zip(questions.listed, asks, strict=True)
            ]
        ),
        first,
        not how.as_published,
        how.as_published,
    )


def _merge(
    questions: Questions, votes: NDArray[np.int64], up: Codes, down: Codes
) -> tuple[list[Condition], NDArray[np.int64]]:
    """Votes as conditions, each once, with the number of its votes as points."""
    points: dict[Condition, int] = {}
    for (column, cut, way), count in Counter(map(tuple, votes.tolist())).items():
        edges = (down if way == DOWN else up).edges[column]
        condition = questions.listed[column].condition(way, edges[cut], questions.space)
        points[condition] = points.get(condition, 0) + count
    return list(points), np.array(list(points.values()), np.int64)


def worst_totals(
    found: Points, questions: Questions, labels: NDArray[np.int64], tau: float
) -> NDArray[np.int64]:
    """Totals of rows when noise tau answers every condition as badly as it can."""
    place = {(q.feature, q.sort): k for k, q in enumerate(questions.listed)}
    total = np.full(len(labels), found.offset)
    for condition, points in zip(found.conditions, found.points, strict=True):
        if condition.sort in ("at_least", "below"):
            column = place[condition.feature, "number"]
            sign = labels if condition.sort == "below" else -labels
            x = questions.answers[:, column] + tau * questions.listed[column].unit * sign
            total += points * condition.holds(x)
        else:
            total += points * _holds_unmoved(condition, questions)
    return total


def _holds_unmoved(condition: Condition, questions: Questions) -> NDArray[np.bool_]:
    """Whether a condition on categories or missing values holds."""
    mine = [k for k, q in enumerate(questions.listed) if q.feature == condition.feature]
    gone = np.isnan(questions.answers[:, mine[0]])
    if condition.sort in ("missing", "present"):
        return gone == (condition.sort == "missing")
    known = {questions.listed[k].code: questions.answers[:, k] for k in mine}
    if 0 not in known:  # the first of two categories has no column of its own
        known[0] = np.where(gone, np.nan, 1 - known[1])
    return np.any([known[code] == 1 for code in condition.categories], axis=0)


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
