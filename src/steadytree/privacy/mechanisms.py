"""Noise, and mechanisms that use it: noised counts and selection by score, each with its proof.

Noise is sampled by OpenDP, or by a seeded generator, for tests, which is not private. Throughout,
neighbours are data sets of which one has one row more (add or remove one row), and epsilon bounds
the log-ratio of the probabilities of every answer on neighbours.
"""

import logging
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from steadytree._base.optional import require
from steadytree.privacy.accounting import largest_rho, share_scale

_LOG = logging.getLogger(__name__)
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
NOT_PRIVATE = "NOT PRIVATE (testing seed)"
LARGEST_EPSILON = 1e6
SMALLEST_EPSILON = 1e-6
SMALLEST_PART = 1e-8  # of a divided budget: the bounds on rounding errors hold down to it


class Noise(Protocol):
    """A source of noise; `private` is False for seeded noise, which protects nobody."""

    private: bool

    def laplace(self, values: Integers, scale: float) -> Integers:
        """Integers plus discrete Laplace noise: P(z) proportional to exp(-|z| / scale)."""

    def gaussian(self, values: Integers, scale: float) -> Integers:
        """Integers plus discrete Gaussian noise: P(z) proportional to exp(-z^2 / (2 scale^2))."""

    def highest(self, scores: Floats, scale: float) -> int:
        """Index of the highest score plus exponential noise (permute-and-flip)."""

    def sample_index(self, log_weights: Floats) -> int:
        """An index, sampled with probability proportional to exp(log_weights)."""


class SecureNoise:
    """OpenDP's samplers: exact arithmetic on bits of the operating system's generator.

    `sample_index` adds Gumbel noise, sampled to as many bits as the comparison needs: the sample
    follows the given floating-point numbers exactly, also far out in the tails.
    """

    private = True

    def __init__(self) -> None:
        _library()

    def laplace(self, values: Integers, scale: float) -> Integers:
        return _noised("laplace", values, scale)

    def gaussian(self, values: Integers, scale: float) -> Integers:
        return _noised("gaussian", values, scale)

    def highest(self, scores: Floats, scale: float) -> int:
        return int(_measurement("exponential", float(scale))(np.asarray(scores, float).tolist()))

    def sample_index(self, log_weights: Floats) -> int:
        return int(_measurement("gumbel", 1.0)(np.asarray(log_weights, float).tolist()))


class SeededNoise:
    """The same distributions from a seeded generator: repeatable, for tests, and not private."""

    private = False

    def __init__(self, seed: int | Sequence[int]) -> None:
        self._generator = np.random.default_rng(seed)

    def laplace(self, values: Integers, scale: float) -> Integers:
        chance = -np.expm1(-1.0 / scale)
        geometric = self._generator.geometric
        return values + geometric(chance, values.shape) - geometric(chance, values.shape)

    def gaussian(self, values: Integers, scale: float) -> Integers:
        reach = int(np.ceil(12 * scale)) + 1
        support = np.arange(-reach, reach + 1)
        weights = np.exp(-0.5 * (support / scale) ** 2)
        return values + self._generator.choice(support, values.shape, p=weights / weights.sum())

    def highest(self, scores: Floats, scale: float) -> int:
        noise = self._generator.exponential(scale, len(scores))
        return int(np.argmax(np.asarray(scores) + noise))

    def sample_index(self, log_weights: Floats) -> int:
        noise = self._generator.gumbel(size=len(log_weights))
        return int(np.argmax(np.asarray(log_weights) + noise))


def make_noise(testing_seed: int | None = None) -> Noise:
    """Secure noise; seeded noise, which is not private, if a test gives a seed."""
    return SecureNoise() if testing_seed is None else SeededNoise(testing_seed)


def ledger_mark(noise: Noise, mechanism: str) -> str:
    """The mechanism's name in a ledger, which shows seeded noise as not private."""
    return mechanism if noise.private else NOT_PRIVATE


@lru_cache(maxsize=1)
def _library() -> Any:
    library = require("opendp.prelude", extra="private", purpose="private learning")
    library.enable_features("contrib", "honest-but-curious")
    return library


@lru_cache(maxsize=512)
def _measurement(kind: str, scale: float) -> Any:
    """OpenDP's measurement that adds noise to integers, or selects the index of a score."""
    dp = _library()
    integers = dp.vector_domain(dp.atom_domain(T=dp.i64))
    if kind == "laplace":
        return (integers, dp.l1_distance(T=dp.i64)) >> dp.m.then_laplace(scale=scale)
    if kind == "gaussian":
        return (integers, dp.l2_distance(T=float)) >> dp.m.then_gaussian(scale=scale)
    scores = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.linf_distance(T=float)
    exponential = kind == "exponential"  # otherwise Gumbel
    divergence = dp.max_divergence() if exponential else dp.zero_concentrated_divergence()
    return scores >> dp.m.then_noisy_max(divergence, scale=scale)


def _noised(kind: str, values: Integers, scale: float) -> Integers:
    flat = np.asarray(values, np.int64)
    noisy = _measurement(kind, float(scale))(flat.ravel().tolist()) if flat.size else []
    return np.array(noisy, np.int64).reshape(flat.shape)


# ---- mechanisms ----
def check_epsilon(epsilon: Any) -> float:
    """Check that a budget is a number from 1e-6 to 1e6."""
    if isinstance(epsilon, bool) or not isinstance(epsilon, int | float | np.number):
        _LOG.warning("refused: epsilon of type %s", type(epsilon).__name__)
        raise TypeError(f"epsilon must be a number, got {type(epsilon).__name__}.")
    if not SMALLEST_EPSILON <= epsilon <= LARGEST_EPSILON:
        _LOG.warning("refused: epsilon %s", epsilon)
        raise ValueError(
            f"epsilon must be a finite number from {SMALLEST_EPSILON:g} to {LARGEST_EPSILON:g}, "
            f"got {epsilon}; common choices lie between 0.1 and 10."
        )
    return float(epsilon)


def check_part(epsilon: float) -> float:
    """Check that a part of a budget is large enough for the bounds on rounding errors."""
    if not SMALLEST_PART <= epsilon <= LARGEST_EPSILON:
        raise ValueError(f"a part of epsilon must be at least {SMALLEST_PART:g}, got {epsilon}.")
    return float(epsilon)


def release_counts(
    counts: Integers, epsilon: float, noise: Noise, sensitivity: int = 1
) -> Integers:
    """Counts plus discrete Laplace noise of scale sensitivity / epsilon, empty counters included.

    Relation: add or remove one row. Sensitivity: the most that one row changes the sum of all
    counts; 1 if a row is counted once, as by leaf and class, p if it is counted once for each of
    p features.

    Proof. P(z) is proportional to exp(-|z| / scale), so moving the counts by a vector v changes
    the log-probability of any answer by at most ``sum(|v|) / scale``, at most
    sensitivity / scale = epsilon. Every counter of a public table gets noise, so that none shows
    by its exactness that it is empty.
    """
    epsilon = check_part(epsilon)
    # a quotient rounded down would cost more than epsilon, by one part in 2**53
    scale = sensitivity / epsilon * (1 + 2.0**-50)
    return noise.laplace(np.asarray(counts, np.int64), scale)


def release_counts_zcdp(
    counts: Integers, rho: float, noise: Noise, rows_counted: int = 1
) -> Integers:
    """Counts plus discrete Gaussian noise: rho-zCDP for adding or removing one row.

    `rows_counted` is the number of counters that one row adds 1 to; the l2 sensitivity is its root.

    Proof. The discrete Gaussian of variance s^2 on a statistic of l2 sensitivity D satisfies
    D^2 / (2 s^2)-zCDP; s^2 = rows_counted / (2 rho).
    """
    if not 0 < rho < math.inf:
        raise ValueError(f"rho must be finite and more than 0, got {rho}.")
    return noise.gaussian(np.asarray(counts, np.int64), math.sqrt(rows_counted / (2 * rho)))


def release_share(
    counts: Integers, rho: float, noise: Noise, rows_counted: int, n_honest: int
) -> Integers:
    """One holder's counts for a sum over holders, with its share of the sum's noise.

    NOT private alone: only the sum may be seen. If at least `n_honest` of the summed vectors come
    from holders that add their share, and keep it to themselves, the sum is rho-zCDP for adding or
    removing one row of one holder (`accounting.sum_rho`).
    """
    counts = np.asarray(counts, np.int64)
    return noise.gaussian(counts, share_scale(rho, n_honest, rows_counted, counts.size))


def rho_of(epsilon: float, delta: float) -> float:
    """The largest rho whose zCDP implies (epsilon, delta), by `accounting.epsilon_of`.

    >>> rho = rho_of(1.0, 1e-6)
    >>> round(rho, 5)
    0.02434
    """
    epsilon = check_epsilon(epsilon)
    if not 0 < delta < 1:
        raise ValueError(f"delta must lie between 0 and 1, got {delta}.")
    return largest_rho(epsilon, delta)


def select(
    scores: Floats,
    epsilon: float,
    sensitivity: float,
    noise: Noise,
    log_prior: Floats | None = None,
    n_terms: int = 1,
) -> int:
    """Index of a high score, by permute-and-flip, for scores that all move the same way.

    Relation: add or remove one row. Sensitivity: the most that one row changes any score. The
    scores must be monotone: when a row is added, none rises, or none falls, as with minus rows
    times Gini impurity (sensitivity 2, `impurity_scores`).

    Proof. Let exponential noise of rate epsilon / sensitivity be added to each score and the
    index of the highest be returned, which is permute-and-flip. Fix the noise of all others: the
    chosen score must exceed a bound b, which happens with probability at most 1 times
    exp(-rate * (b - score)). Between neighbours, score and b both move the same way by at most
    the sensitivity, so that b - score moves by at most the sensitivity and the probability by a
    factor of at most exp(epsilon). Log-prior weights, public, are added to the scores in units of
    the noise. Scores are floating-point numbers, each a sum of `n_terms` rounded terms (classes);
    the cost of rounding is covered by `score_slack`.
    """
    epsilon = check_part(epsilon)
    scores = np.asarray(scores, np.float64)
    if scores.ndim != 1 or len(scores) == 0 or not np.isfinite(scores).all():
        raise ValueError("scores must be a list of finite numbers, at least one.")
    scale = sensitivity / (epsilon * (1.0 - score_slack(n_terms)))
    if log_prior is not None:
        scores = scores + scale * log_prior
    return noise.highest(scores, scale)


def score_slack(n_terms: int) -> float:
    """Upper bound on the cost of rounding scores, as a share of epsilon, from public numbers.

    A score adds up n_terms terms a side. With fewer than n_terms + 16 roundings, each of at most
    one part in 2**53 of 2**27 rows (times 27 for entropy, whose sensitivity is as many times
    larger), it is off by at most (n_terms + 16) * 2**-26 sensitivities. Four scores count: the
    chosen one and its rival, on each of two neighbours. Twice that is charged, which also covers
    the rounding of log-priors, at most 12 in size and divided by an epsilon of at least 1e-8.
    """
    slack = 8 * (n_terms + 16) * 2.0**-26
    if slack >= 0.5:
        raise ValueError("scores have too many classes for their rounding errors to be covered.")
    return slack
