"""private_accuracy: a tree's accuracy on private rows; audit_privacy: a test of an epsilon."""

import logging
import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from steadytree._base.intervals import wilson_interval
from steadytree._base.validation import Integer
from steadytree.data.cell_reader import canonical
from steadytree.data.schema import NO_CLASS, Schema, check_schema
from steadytree.metrics.measurement import Measurement
from steadytree.models.sklearn import as_tree
from steadytree.models.tree import Tree
from steadytree.privacy import mechanisms
from steadytree.privacy.budget import PrivacyStatement, logged_refusal, relation
from steadytree.privacy.growers import bound_rows, encode_rows
from steadytree.privacy.ledger import Ledger, charge
from steadytree.privacy.mechanisms import Floats, Integers, release_counts

_LOG = logging.getLogger(__name__)
SMOOTHING = 5  # added to pilot counts, so that rare answers do not seem decisive


@dataclass(frozen=True, eq=False)
class PrivateAccuracy:
    """Noised counts of rows that a tree classifies correctly and incorrectly."""

    labels: tuple[Any, ...]  # the declared classes
    counts: Integers  # (n_classes, 2): correct, incorrect; each with noise
    privacy: PrivacyStatement
    level: float = 0.95  # confidence level of the interval
    rows_per_person: int = 1  # times the noise that one row needs

    @property
    def accuracy(self) -> float:
        """Noisy share of rows that are classified correctly."""
        correct, wrong = self._totals()
        return correct / (correct + wrong) if correct + wrong > 0 else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """Confidence interval of the accuracy on rows like these, noise and sampling included.

        Each of the two totals is off by more than `reach` with a probability of at most a quarter
        of 1 - level; the Wilson interval of the worst totals takes the other half. A total has one
        noise term a class; all stay below their share of `reach` if each does.
        """
        (correct, wrong), left = self._totals(), 1 - self.level
        n_terms, ends = len(self.counts), []
        scale = self.rows_per_person / self.privacy.epsilon
        reach = n_terms * math.ceil(scale * math.log(8 * n_terms / left))
        for sign, end in ((-1, 0), (1, 1)):
            n_correct, n_wrong = max(correct + sign * reach, 0.0), max(wrong - sign * reach, 0.0)
            if n_correct + n_wrong < 1:
                ends.append(float(end))
            else:
                ends.append(wilson_interval(n_correct, n_correct + n_wrong, 1 - left / 2)[end])
        return ends[0], ends[1]

    def measurement(self) -> Measurement:
        """The accuracy as a measurement for a report."""
        epsilon = self.privacy.epsilon
        meaning = f"share of private rows classified correctly (epsilon {epsilon:g})"
        return Measurement("accuracy", self.accuracy, meaning, self.interval, level=self.level)

    def _totals(self) -> tuple[float, float]:
        correct, wrong = np.maximum(self.counts.sum(axis=0), 0)
        return float(correct), float(wrong)


def private_accuracy(
    model: Any,
    X: Any,
    y: Any,
    epsilon: float,
    schema: Any,
    ledger: Ledger | None = None,
    *,
    level: float = 0.95,
    testing_seed: int | None = None,
    persons: Any = None,
    rows_per_person: int | None = None,
) -> PrivateAccuracy:
    """Accuracy of a tree on private rows, with noise, charged to their ledger.

    ``score`` on private rows gives an exact number about them, which no epsilon covers. This
    releases the correctly and incorrectly classified rows of each class with discrete Laplace
    noise instead.

    Guarantee: epsilon-differential privacy for adding or removing one row. A row is counted once
    in a public table (class, correct or not), so the sensitivity is 1, k for a person
    with k rows. The model counts as public: it must have been fitted on other rows, or privately.

    Parameters
    ----------
    model : Tree, fitted learner, or fitted scikit-learn tree
        Its columns and categories must be the schema's.
    X, y : the private rows
        Read through the schema, as in a private fit: no value is refused.
    epsilon : float
    schema : Schema, or path of a schema file
    ledger : Ledger, optional
        Of these rows; charged before anything is counted.
    level : float, default=0.95
        Confidence level of the interval.
    testing_seed : int, optional
        FOR TESTS ONLY: seeded noise, which is not private.
    persons, rows_per_person : array-like of shape (n_samples,) and int, optional
        Protect persons instead of rows, as in ``PrivateTreeClassifier``.

    Examples
    --------
    >>> from steadytree.privacy.private_tree import PrivateTreeClassifier
    >>> schema = Schema(bounds={"age": (0, 100)}, classes=["no", "yes"])
    >>> X, y = [[20], [70]] * 200, ["no", "yes"] * 200
    >>> model = PrivateTreeClassifier(1.0, schema, testing_seed=0).fit(X, y)
    >>> found = private_accuracy(model, X, y, 0.5, schema, testing_seed=1)
    >>> found.accuracy > 0.95, found.privacy.private
    (True, False)
    """
    with logged_refusal(_LOG, "refused a private evaluation"):
        declared, epsilon = check_schema(schema), mechanisms.check_epsilon(epsilon)
        if not 0 < level < 1:
            raise ValueError(f"level must lie between 0 and 1, got {level}.")
        if ledger is not None and not isinstance(ledger, Ledger):
            raise TypeError(f"ledger must be a Ledger, got {type(ledger).__name__}.")
        tree = as_tree(model)
        if tree.space.names != tuple(declared.names):
            raise ValueError(
                f"model was fitted on other columns, {list(tree.space.names)}, than the schema "
                f"declares, {list(declared.names)}: pass the schema of its fit."
            )
        for own, column in zip(tree.space, declared.space, strict=True):
            if own.categories != column.categories:
                message = f"other categories of {own.name!r} than the schema declares."
                raise ValueError(f"model knows {message}")
        if ledger is not None:  # before the rows are read, so that timing reveals nothing
            ledger.check(epsilon, "accuracy")
        X, y = bound_rows(X, y, persons, rows_per_person)
        values, labels, _ = encode_rows(X, y, declared)
    noise = mechanisms.make_noise(testing_seed)
    most, whom = rows_per_person or 1, relation(rows_per_person)
    name = "discrete Laplace" if rows_per_person is None else f"discrete Laplace, {whom}"
    charge(ledger, {"accuracy": epsilon}, mechanisms.ledger_mark(noise, name))
    noisy = release_counts(_exact_counts(tree, declared, values, labels), epsilon, noise, most)
    spent = {"right and wrong rows": epsilon}
    statement = PrivacyStatement(epsilon, 0.0, spent, "accuracy", noise.private, whom)
    return PrivateAccuracy(tuple(declared.classes), noisy, statement, level, most)


def _exact_counts(
    tree: Tree, schema: Schema, values: Floats, labels: NDArray[np.int32]
) -> Integers:
    """Correct and incorrect rows by class (n_classes, 2): to be noised before they are released."""
    texts = [canonical(label) for label in schema.classes]
    own = [texts.index(t) if t in texts else NO_CLASS for t in map(canonical, tree.classes)]
    predicted = np.array(own)[tree.label[tree.apply_encoded(values)]]
    counters = 2 * labels + (predicted != labels)
    return np.bincount(counters, minlength=2 * len(texts)).reshape(-1, 2).astype(np.int64)


# ---- audits ----
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
    low = 0.0 if hits == 0 else float(stats.beta.ppf(each, hits, runs - hits + 1))
    high = 1.0 if others == runs else float(stats.beta.ppf(1 - each, others + 1, runs - others))
    return math.log((low - delta) / high) if low > delta else -math.inf
