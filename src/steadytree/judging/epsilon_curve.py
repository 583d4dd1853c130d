"""Epsilon curve: how accurate a private tree is for what it may cost."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from steadytree.core.labels import label_array
from steadytree.core.table import Table
from steadytree.learn.private import PrivateTreeClassifier
from steadytree.measure.accuracy import accuracy
from steadytree.measure.holdout import hold_out

EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
SEEDS = 3


@dataclass(frozen=True)
class EpsilonPoint:
    """Accuracy on held-out rows at one epsilon: the mean over seeds, the least, the greatest."""

    epsilon: float
    accuracy: float
    least: float
    greatest: float


def epsilon_curve(
    schema: Any,
    X: Any,
    y: Any,
    method: str = "gibbs",
    seed: int = 0,
    epsilons: Sequence[float] = EPSILONS,
) -> list[EpsilonPoint]:
    """Fit private trees at several epsilons on 70 % of the rows, judge them on the others.

    The fits use testing seeds and are charged to no ledger: the curve itself is not private.

    Examples
    --------
    >>> from steadytree import Schema
    >>> schema = Schema(bounds={"age": (0, 100)}, classes=["no", "yes"])
    >>> X, y = [[20], [70]] * 200, ["no", "yes"] * 200
    >>> [point.accuracy for point in epsilon_curve(schema, X, y, epsilons=[1.0])]
    [1.0]
    """
    labels = label_array(y)
    held = hold_out(labels, 0.3, seed)
    fit, judged = np.flatnonzero(~held), np.flatnonzero(held)
    rows, truth = Table.pick(X, judged), labels[judged]
    points = []
    for epsilon in epsilons:
        found = []
        for place in range(SEEDS):
            model = PrivateTreeClassifier(epsilon, schema, method, testing_seed=seed + place)
            model.fit(Table.pick(X, fit), labels[fit])
            found.append(accuracy(model, rows, truth).accuracy)
        points.append(EpsilonPoint(epsilon, float(np.mean(found)), min(found), max(found)))
    return points
