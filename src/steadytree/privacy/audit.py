"""audit_privacy: test empirically whether a mechanism's answers refute its epsilon."""

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from scipy.stats import beta

from steadytree._base.validation import Integer
from steadytree.metrics.measurement import Measurement

SMOOTHING = 5  # added to pilot counts, so that rare answers do not seem decisive


@dataclass(frozen=True)
class Audit:
    """Result of an audit."""

    lower_bound: float  # the true epsilon is at least this, with the stated confidence
    claimed: float
    confidence: float
    runs: int  # answers sampled for each data set
    event_counts: tuple[int, int]  # fresh answers in the chosen event, for either data set

    @property
    def refuted(self) -> bool:
        """Whether the claim is wrong, at the stated confidence. False proves nothing."""
        return self.lower_bound > self.claimed

    def measurement(self) -> Measurement:
        """The bound as a measurement for a report."""
        meaning = "privacy loss shown by attack; an audit can refute a claim and never prove it"
        return Measurement("epsilon at least", self.lower_bound, meaning)

    def __str__(self) -> str:
        verdict = "REFUTED" if self.refuted else "not refuted"
        return (
            f"epsilon at least {self.lower_bound:.3f} at {100 * self.confidence:g} % confidence, "
            f"claimed {self.claimed:g}: {verdict}"
        )


def audit_privacy(
    mechanism: Callable[[Any], Hashable],
    data: Any,
    neighbour: Any,
    epsilon: float,
    *,
    runs: int = 20_000,
    delta: float = 0.0,
    confidence: float = 0.99,
) -> Audit:
    """Lower confidence bound on a mechanism's epsilon, from its answers alone.

    The mechanism is run on two neighbouring data sets. A first half of the answers, the pilot,
    chooses the set of answers that distinguishes the two best; the second, fresh half counts how
    often each data set gives such an answer. Clopper-Pearson bounds on both probabilities give
    ``log((p - delta) / q)``. The bound is conservative: both directions are tried, and the error
    is divided among the four intervals.

    An audit can refute a claim and never prove it: a mechanism may leak by answers, or on data,
    that were not tried.

    Parameters
    ----------
    mechanism : callable
        ``mechanism(data)`` returns a hashable answer, sampled anew at each call.
        Coarse answers (a prediction, a clipped count) make stronger audits.
    data, neighbour : any
        Two data sets of which one has one row more.
    epsilon : float
        The claim.
    runs : int, default=20000
        Answers sampled for each data set.
    delta : float, default=0.0
        The claimed delta.
    confidence : float, default=0.99

    Examples
    --------
    >>> import random
    >>> coin = random.Random(0)
    >>> def leaky(data):  # truthful with probability 0.8: epsilon is log 4 = 1.386
    ...     return sum(data) if coin.random() < 0.8 else 1 - sum(data)
    >>> audit_privacy(leaky, [0], [0, 1], epsilon=1.0, runs=4000).refuted
    True
    """
    Integer(100).check(runs, "runs")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence}.")
    answers = [mechanism(data) for _ in range(runs)], [mechanism(neighbour) for _ in range(runs)]
    half, each = runs // 2, (1 - confidence) / 4
    best, counts = 0.0, (0, 0)
    for one, other in (answers, answers[::-1]):
        event = _choose_event(one[:half], other[:half], each, delta)
        hits = sum(answer in event for answer in one[half:])
        others = sum(answer in event for answer in other[half:])
        bound = _log_ratio(hits, others, runs - half, each, delta)
        if bound > best:
            best, counts = bound, (hits, others)
    return Audit(best, float(epsilon), confidence, runs, counts)


def _choose_event(
    one: Sequence[Hashable], other: Sequence[Hashable], each: float, delta: float
) -> set[Hashable]:
    """Answers that are likelier under `one`, as many as give the pilot's highest bound."""
    mine, theirs = Counter(one), Counter(other)
    ratio = {a: (mine[a] + SMOOTHING) / (theirs[a] + SMOOTHING) for a in mine | theirs}
    event: set[Hashable] = set()
    best, chosen, hits, others = -math.inf, set(), 0, 0
    for answer in sorted(ratio, key=lambda a: -ratio[a]):
        if ratio[answer] <= 1:
            break
        event.add(answer)
        hits, others = hits + mine[answer], others + theirs[answer]
        bound = _log_ratio(hits, others, len(one), each, delta)
        if bound > best:
            best, chosen = bound, set(event)
    return chosen


def _log_ratio(hits: int, others: int, runs: int, each: float, delta: float) -> float:
    """Lower bound on log((p - delta) / q) by Clopper-Pearson."""
    low = 0.0 if hits == 0 else float(beta.ppf(each, hits, runs - hits + 1))
    high = 1.0 if others == runs else float(beta.ppf(1 - each, others + 1, runs - others))
    return math.log((low - delta) / high) if low > delta else -math.inf
