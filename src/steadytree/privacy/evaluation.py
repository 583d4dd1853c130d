"""private_accuracy: a tree's accuracy on private rows, with noise and a ledger."""

import logging
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree._base.intervals import wilson_interval
from steadytree.data.cell_reader import canonical
from steadytree.data.schema import NO_CLASS, Schema, check_schema
from steadytree.metrics.measurement import Measurement
from steadytree.models.sklearn import as_tree
from steadytree.models.tree import Tree
from steadytree.privacy.budget import PrivacyStatement, logged_refusal
from steadytree.privacy.ledger import Ledger, charge
from steadytree.privacy.mechanisms import check_epsilon, ledger_mark, make_noise, release_counts

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class PrivateAccuracy:
    """Noised counts of rows that a tree classifies correctly and incorrectly."""

    labels: tuple[Any, ...]  # the declared classes
    counts: NDArray[np.int64]  # (n_classes, 2): correct, incorrect; each with noise
    privacy: PrivacyStatement
    level: float = 0.95  # confidence level of the interval

    @property
    def accuracy(self) -> float:
        """Noisy share of rows that are classified correctly."""
        correct, wrong = self._totals()
        return correct / (correct + wrong) if correct + wrong > 0 else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """Confidence interval of the accuracy on rows like these, noise and sampling included.

        Each of the two totals is off by more than `reach` with a probability of at most a quarter
        of 1 - level; the Wilson interval of the worst totals takes the other half.
        """
        (correct, wrong), left = self._totals(), 1 - self.level
        reach = self._reach(left / 4)
        ends = []
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

    def _reach(self, chance: float) -> float:
        """A bound that the noise of one total exceeds with at most the given probability.

        A total has one noise term a class; all stay below their share of the bound if each does.
        """
        scale, n_terms = 1 / self.privacy.epsilon, len(self.counts)
        return n_terms * math.ceil(scale * math.log(2 * n_terms / chance))


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
) -> PrivateAccuracy:
    """Accuracy of a tree on private rows, with noise, charged to their ledger.

    ``score`` on private rows gives an exact number about them, which no epsilon covers. This
    releases the correctly and incorrectly classified rows of each class with discrete Laplace
    noise instead.

    Guarantee: epsilon-differential privacy for adding or removing one row. A row is counted once
    in a public table (class, correct or not), so the sensitivity is 1. The model counts as public:
    it must have been fitted on other rows, or privately.

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
    with logged_refusal(_LOG, "a private evaluation"):
        declared, epsilon = check_schema(schema), check_epsilon(epsilon)
        if not 0 < level < 1:
            raise ValueError(f"level must lie between 0 and 1, got {level}.")
        if ledger is not None and not isinstance(ledger, Ledger):
            raise TypeError(f"ledger must be a Ledger, got {type(ledger).__name__}.")
        tree = as_tree(model)
        _check_fits(tree, declared)
        if ledger is not None:  # before the rows are read, so that timing reveals nothing
            ledger.check(epsilon, "accuracy")
        values, labels = declared.encode(X), declared.encode_labels(y)
        if len(values) != len(labels):
            raise ValueError("X and y have different numbers of rows: pass one label a row.")
    noise = make_noise(testing_seed)
    charge(ledger, {"accuracy": epsilon}, ledger_mark(noise, "discrete Laplace"))
    exact = _exact_counts(tree, declared, values, labels)
    noisy = release_counts(exact, epsilon, noise)
    spent = {"right and wrong rows": epsilon}
    statement = PrivacyStatement(epsilon, 0.0, spent, "accuracy", noise.private)
    return PrivateAccuracy(tuple(declared.classes), noisy, statement, level)


def _check_fits(tree: Tree, schema: Schema) -> None:
    if tree.space.names != tuple(schema.names):
        raise ValueError("model was fitted on other columns than the schema declares.")
    for own, declared in zip(tree.space, schema.space, strict=True):
        if own.categories != declared.categories:
            raise ValueError(
                f"model knows other categories of {own.name!r} than the schema declares."
            )


def _exact_counts(
    tree: Tree, schema: Schema, values: NDArray[np.float64], labels: NDArray[np.int32]
) -> NDArray[np.int64]:
    """Correct and incorrect rows by class (n_classes, 2): to be noised before they are released."""
    texts = [canonical(label) for label in schema.classes]
    own = [texts.index(t) if t in texts else NO_CLASS for t in map(canonical, tree.classes)]
    predicted = np.array(own)[tree.label[tree.apply_encoded(values)]]
    kept = labels != NO_CLASS
    counters = 2 * labels[kept] + (predicted != labels)[kept]
    return np.bincount(counters, minlength=2 * len(texts)).reshape(-1, 2).astype(np.int64)
