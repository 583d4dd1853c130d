"""Distributional sensitivity: distance between the tree distributions of two data sets."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone
from sklearn.utils import check_random_state

from steadytree._base.validation import Integer
from steadytree.distance._kernels import node_distance
from steadytree.metrics.measurement import Measurement
from steadytree.models._kernels import FlatTree
from steadytree.stability._kernels.grow import grow_rows
from steadytree.stability.removal import is_repeatable
from steadytree.stability.sensitivity import mean_interval
from steadytree.stability.split_sampling import PreparedFit


@dataclass(frozen=True, eq=False)
class DistributionalSensitivity:
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
                mean_interval(self.transported) if several else None,
            ),
            Measurement(
                "coupled sensitivity",
                float(self.coupled.mean()),
                "the same when trees of equal seeds are paired",
                mean_interval(self.coupled) if several else None,
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
