"""Stability curve over epsilon, and distances between the tree distributions of two data sets."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import check_random_state

from steadytree._base.notebook import Shown
from steadytree._base.validation import Integer, Real
from steadytree.data.labels import label_array
from steadytree.data.table import Table, check_in_memory
from steadytree.distance._kernels import node_distance
from steadytree.metrics.measurement import Measurement
from steadytree.models._kernels import FlatTree
from steadytree.stability._kernels.grow import grow_rows
from steadytree.stability.removal import is_repeatable
from steadytree.stability.sensitivity import average_sensitivity, mean_interval
from steadytree.stability.split_sampling import PreparedFit

EPSILONS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0)


@dataclass(frozen=True)
class CurvePoint:
    """One value of epsilon: means over folds and seeds, with 95 % intervals over folds."""

    epsilon: float
    sensitivity: float
    sensitivity_interval: tuple[float, float]
    train_accuracy: float
    test_accuracy: float
    test_accuracy_interval: tuple[float, float]


@dataclass(frozen=True, repr=False)
class StabilityCurve(Shown):
    """Points by rising epsilon; epsilon 0 is the greedy tree."""

    points: tuple[CurvePoint, ...]
    removed: float  # rows removed at a time, a number or a share

    def epsilon_for(self, max_accuracy_loss: float) -> CurvePoint:
        """The most stable point within a loss (0.01 is one point) of the best held-out accuracy."""
        Real(0, 1).check(max_accuracy_loss, "max_accuracy_loss")
        best = max(point.test_accuracy for point in self.points)
        allowed = [p for p in self.points if p.test_accuracy >= best - max_accuracy_loss - 1e-12]
        return min(allowed, key=lambda point: (point.sensitivity, -point.test_accuracy))

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """Sensitivity and held-out accuracy of each point."""
        measurements = []
        for point in self.points:
            name = "greedy" if point.epsilon == 0 else f"epsilon {point.epsilon:g}"
            sensitivity = Measurement(
                f"sensitivity, {name}",
                point.sensitivity,
                "mean distance to the tree that is learned without some rows",
                point.sensitivity_interval,
            )
            accuracy = Measurement(
                f"held-out accuracy, {name}",
                point.test_accuracy,
                "accuracy on rows that the tree was not learned from",
                point.test_accuracy_interval,
            )
            measurements += [sensitivity, accuracy]
        return tuple(measurements)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


def stability_curve(
    estimator: Any,
    X: Any,
    y: Any,
    epsilons: Sequence[float] = EPSILONS,
    removed: float = 1,
    repeats: int | str | None = None,
    n_folds: int = 5,
    n_seeds: int = 5,
    random_state: Any = 0,
) -> StabilityCurve:
    """Measure the accuracy lost for stability: both for several values of epsilon.

    Parameters
    ----------
    estimator : StableTreeClassifier
        Its epsilon is replaced.
    X, y : data
        Split into folds; trees are fitted on all but one, and scored on the one left out.
    epsilons : sequence of float
        0 is the greedy tree.
    removed, repeats : as in `average_sensitivity`
    n_folds : int, default=5
    n_seeds : int, default=5
        Seeds of the learner averaged over.
    random_state : int, RandomState or None, default=0
        For the folds and for sampled sets.

    Returns
    -------
    StabilityCurve

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from steadytree import StableTreeClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> curve = stability_curve(
    ...     StableTreeClassifier(max_depth=2), X, y, epsilons=(0, 0.5), n_folds=3, n_seeds=2)
    >>> [point.epsilon for point in curve.points]
    [0.0, 0.5]
    """
    if "epsilon" not in getattr(estimator, "get_params", dict)():
        raise TypeError(
            f"stability_curve needs a learner with epsilon, got {type(estimator).__name__}: "
            "pass a StableTreeClassifier."
        )
    if len(epsilons) == 0:
        raise ValueError("epsilons must name at least one value.")
    Integer(2).check(n_folds, "n_folds")
    Integer(1).check(n_seeds, "n_seeds")
    check_in_memory(X)
    labels = label_array(y)
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=random_state)
    splits = list(folds.split(np.zeros((len(labels), 1)), labels))
    points = []
    for epsilon in sorted(float(value) for value in epsilons):
        learner = clone(estimator).set_params(epsilon=epsilon)
        rows = [
            _measure_fold(learner, X, labels, split, removed, repeats, n_seeds, random_state)
            for split in splits
        ]
        points.append(_point(epsilon, np.array(rows)))
    return StabilityCurve(tuple(points), removed)


def _measure_fold(
    learner: Any,
    X: Any,
    labels: np.ndarray,
    split: tuple[np.ndarray, np.ndarray],
    removed: float,
    repeats: int | str | None,
    n_seeds: int,
    random_state: Any,
) -> tuple[float, float, float]:
    """Sensitivity, training and held-out accuracy of one fold, means over seeds."""
    train, test = split
    X_train, X_test = Table.pick(X, train), Table.pick(X, test)
    found = average_sensitivity(
        learner, X_train, labels[train], removed, repeats, n_seeds, random_state=random_state
    )
    scores = []
    for seed in range(n_seeds):
        fitted = clone(learner).set_params(random_state=seed).fit(X_train, labels[train])
        scores.append((fitted.score(X_train, labels[train]), fitted.score(X_test, labels[test])))
    train_score, test_score = np.mean(scores, axis=0)
    return found.value, float(train_score), float(test_score)


def _point(epsilon: float, rows: np.ndarray) -> CurvePoint:
    sensitivity, train, test = rows.T
    return CurvePoint(
        epsilon,
        float(sensitivity.mean()),
        mean_interval(sensitivity, 0.0),
        float(train.mean()),
        float(test.mean()),
        mean_interval(test, 0.0, 1.0),
    )


@dataclass(frozen=True, eq=False, repr=False)
class DistributionalSensitivity(Shown):
    """Earth mover's distance between the trees with and without a row, over many seeds.

    `transported` is the mean distance under the best pairing of trees with and trees without the
    row, `coupled` that of pairing by seed, which is never less.
    """

    rows: NDArray[np.int64]  # (n_rows,), removed one at a time
    transported: NDArray[np.float64]  # (n_rows,)
    coupled: NDArray[np.float64]  # (n_rows,)

    @property
    def value(self) -> float:
        """Mean earth mover's distance."""
        return float(self.transported.mean())

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """The values with their meanings; intervals are over the sampled rows."""
        several = len(self.rows) > 1
        return (
            Measurement(
                "distributional sensitivity",
                self.value,
                "mean distance between tree distributions with and without a row, from above",
                mean_interval(self.transported, 0.0) if several else None,
            ),
            Measurement(
                "coupled sensitivity",
                float(self.coupled.mean()),
                "the same when trees of equal seeds are paired",
                mean_interval(self.coupled, 0.0) if several else None,
            ),
        )


def distributional_sensitivity(
    estimator: Any,
    X: Any,
    y: Any,
    n_rows: int | None = 30,
    n_trees: int = 50,
    normalise: bool = True,
    random_state: Any = 0,
) -> DistributionalSensitivity:
    """Average sensitivity of a randomised learner, as a distance between distributions of trees.

    Trees are sampled by seeds 0, 1, ..., with and without each of some rows, and the transport
    between the two samples is solved exactly. A sample overstates the distance between the
    distributions, on average; using the same seeds on both sides keeps that small.

    Parameters
    ----------
    estimator : StableTreeClassifier
        Or another learner that can repeat its fit on some of its rows.
    X, y : training data
    n_rows : int or None, default=30
        Rows to remove, sampled; None removes each in turn.
    n_trees : int, default=50
        Trees (seeds) a distribution.
    normalise : bool, default=True
        Divide by 2^(B + 2) - 2.
    random_state : int, RandomState or None, default=0
        For the sampled rows.

    Returns
    -------
    DistributionalSensitivity

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from steadytree import StableTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> learner = StableTreeClassifier(max_depth=2, epsilon=0.3)
    >>> found = distributional_sensitivity(learner, X, y, n_rows=5, n_trees=10)
    >>> bool((found.transported <= found.coupled + 1e-12).all())
    True
    """
    if not is_repeatable(estimator):
        raise TypeError(
            f"distributional_sensitivity needs a StableTreeClassifier, got "
            f"{type(estimator).__name__}: its fit must be repeatable on fewer rows."
        )
    Integer(2).check(n_trees, "n_trees")
    prepared = clone(estimator).prepare(X, y)
    if prepared.lookahead > 1:
        raise ValueError("distributional_sensitivity works with lookahead=1 only.")
    rows = np.arange(prepared.n_rows)
    if n_rows is not None:
        Integer(1, prepared.n_rows).check(n_rows, "n_rows")
        rows = np.sort(check_random_state(random_state).choice(rows, n_rows, replace=False))
    whole = _sample(prepared, np.arange(prepared.n_rows), n_trees)
    pairs = [
        _transport(whole, _sample(prepared, np.delete(np.arange(prepared.n_rows), row), n_trees))
        for row in rows
    ]
    scale = 2.0 ** (prepared.max_depth + 2) - 2 if normalise else 1.0
    transported, coupled = np.array(pairs).T / scale
    return DistributionalSensitivity(rows, transported, coupled)


def _sample(prepared: PreparedFit, rows: NDArray[np.int64], n_trees: int) -> list[FlatTree]:
    """Trees of the seeds 0, 1, ..., grown on some of the rows."""
    seeded = [prepared.with_seed(seed).arrays for seed in range(n_trees)]
    return [grow_rows(*arrays, rows, prepared.max_depth) for arrays in seeded]


def _transport(ours: list[FlatTree], theirs: list[FlatTree]) -> tuple[float, float]:
    """Mean distance under the cheapest pairing, and under the pairing by seed."""
    cost = np.zeros((len(ours), len(theirs)))
    known: dict[tuple[int, int], int] = {}
    for i, one in enumerate(ours):
        for j, other in enumerate(theirs):
            tags = int(one.tag[0]), int(other.tag[0])
            if tags not in known:
                known[tags] = node_distance(one, other)[0]
            cost[i, j] = known[tags]
    chosen = linear_sum_assignment(cost)
    return float(cost[chosen].mean()), float(np.diag(cost).mean())
