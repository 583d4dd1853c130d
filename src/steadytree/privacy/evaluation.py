"""private_accuracy: how often a tree is right on rows that nobody may see, paid for in a ledger."""

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
from steadytree.privacy.mechanisms import check_epsilon, release_counts
from steadytree.privacy.noise import ledger_mark, make_noise

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class PrivateAccuracy:
    """Noised counts of rows that a tree gets right and wrong.

    Parameters
    ----------
    labels : tuple
        The declared classes.
    counts : int64 array (n_classes, 2)
        Rows of each class, right and wrong, with noise in every cell.
    privacy : PrivacyStatement
    level : float
        Confidence level of the interval.
    """

    labels: tuple[Any, ...]
    counts: NDArray[np.int64]
    privacy: PrivacyStatement
    level: float = 0.95

    @property
    def accuracy(self) -> float:
        """Share of rows that are right, as far as noise lets it be told."""
        right, wrong = self._totals()
        return right / (right + wrong) if right + wrong > 0 else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """Where the accuracy on rows like these lies, noise and chance both counted.

        Each of the two totals is off by more than `reach` with a chance of at most a quarter of
        what `level` leaves; the Wilson interval of the worst totals takes the other half.
        """
        (right, wrong), left = self._totals(), 1 - self.level
        reach = self._reach(left / 4)
        ends = []
        for sign, place in ((-1, 0), (1, 1)):
            n_right, n_wrong = max(right + sign * reach, 0.0), max(wrong - sign * reach, 0.0)
            if n_right + n_wrong < 1:
                ends.append(float(place))
            else:
                ends.append(wilson_interval(n_right, n_right + n_wrong, 1 - left / 2)[place])
        return ends[0], ends[1]

    def reading(self) -> Measurement:
        """The accuracy for a report."""
        meaning = f"share of private rows the tree gets right (epsilon {self.privacy.epsilon:g})"
        return Measurement("accuracy", self.accuracy, meaning, self.interval, level=self.level)

    def _totals(self) -> tuple[float, float]:
        right, wrong = np.maximum(self.counts.sum(axis=0), 0)
        return float(right), float(wrong)

    def _reach(self, chance: float) -> float:
        """What the noise of one total exceeds with at most the given chance.

        A total has one draw a class, and all stay below the bound where each does.
        """
        scale, n_draws = 1 / self.privacy.epsilon, len(self.counts)
        return n_draws * math.ceil(scale * math.log(2 * n_draws / chance))


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
    """How often a tree is right on private rows, with noise, charged to their ledger.

    ``score`` on private rows gives an exact number about them, which no epsilon covers. This
    releases right and wrong rows of each class with discrete Laplace noise instead.

    Guarantee: epsilon-differential privacy for adding or removing one row. A row is counted in
    one cell of a public table (class, right or wrong), so the sensitivity is 1. The model counts
    as public: it must have been fitted on other rows, or privately.

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
        if ledger is not None:  # before the rows are read, so that time tells nothing of them
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
    """Rows right and wrong by class (n_classes, 2): to be noised before they go anywhere."""
    texts = [canonical(label) for label in schema.classes]
    places = [texts.index(t) if t in texts else NO_CLASS for t in map(canonical, tree.classes)]
    answers = np.array(places)[tree.label[tree.apply_encoded(values)]]
    kept = labels != NO_CLASS
    cells = 2 * labels[kept] + (answers != labels)[kept]
    return np.bincount(cells, minlength=2 * len(texts)).reshape(-1, 2).astype(np.int64)
