"""Procedures: learners with settings, and how well and how alike they decide when fitted again."""

import math
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadytree._base.exceptions import UnsuitableDataError
from steadytree.data.feature_space import FeatureSpace
from steadytree.distance.path import distances_between
from steadytree.models.tree import Tree
from steadytree.robustness.perturbation import Perturbation
from steadytree.stability.bootstrap import Sample, Settings
from steadytree.stability.steady_tree import SteadyTreeClassifier

GRID = {"max_depth": [2, 3, 4, 5, 6], "min_samples_leaf": [5, 20]}
STEADY_LEAVES = (8, 4, 12)
NOISE_SHARE = 0.02  # of a column's range that the robust tree is made for
ROBUST_NODES = 20  # a bound on its search that does not depend on the machine
MOST_SPLITS = 150  # candidate splits of the robust tree
SLOW, FEW = ("SteadyTreeClassifier", "RobustTreeClassifier"), 2  # fits of these


class Procedure(NamedTuple):
    """A learner with settings of it."""

    estimator: Any
    settings: Settings

    @property
    def name(self) -> str:
        return type(self.estimator).__name__


def usual_procedures(greedy: Any, settings: list[Settings], space: FeatureSpace) -> list[Procedure]:
    """Steady trees, greedy ones and a robust one, the usual choice first."""
    steady = [Procedure(SteadyTreeClassifier(), {"max_leaf_nodes": n}) for n in STEADY_LEAVES]
    found = [steady[0], *(Procedure(greedy, one) for one in settings), *steady[1:]]
    numbers = [c for c in space if not c.is_categorical and c.kind != "binary"]
    radius = {column.name: NOISE_SHARE * (column.high - column.low) for column in numbers}
    n_splits = sum(5 if c in numbers else max(len(c.categories), 1) for c in space)
    if radius and n_splits <= MOST_SPLITS:
        from steadytree.robustness.robust_tree import RobustTreeClassifier  # and its search

        noise = Perturbation(radius=radius)
        robust = RobustTreeClassifier(2, noise, math.inf, n_thresholds=5, max_nodes=ROBUST_NODES)
        found.append(Procedure(robust, {}))
    return found


def fit_procedure(job: tuple[Procedure, NDArray[np.int64]], sample: Sample) -> Tree | None:
    """The tree of a procedure; None where it cannot take such rows."""
    procedure, rows = job
    try:
        return sample.fit(procedure.estimator, procedure.settings, rows)
    except UnsuitableDataError:
        return None


def fit_procedures(
    procedures: Sequence[Procedure],
    sample: Sample,
    train: NDArray[np.int64],
    n_trees: int,
    rng: np.random.Generator,
    many: Callable[..., list[Any]],
) -> tuple[list[Procedure], list[list[Tree]]]:
    """Procedures with their trees, each fitted to the first of the same bootstrap samples.

    At least two trees each: where `n_trees` is less than that, the last ones are left out.
    """
    procedures = procedures[: max(n_trees // 2, 1)]
    n_samples = max(n_trees // len(procedures), 2)
    samples = [rng.choice(train, len(train)) for _ in range(n_samples)]
    few = [p.name in SLOW for p in procedures]
    counts = [min(n_samples, FEW) if slow else n_samples for slow in few]
    jobs = [(p, rows) for p, n in zip(procedures, counts, strict=True) for rows in samples[:n]]
    trees = iter(many(fit_procedure, jobs, sample))
    grouped = [[next(trees) for _ in range(n)] for n in counts]
    able = [k for k, group in enumerate(grouped) if all(tree is not None for tree in group)]
    return [procedures[k] for k in able], [grouped[k] for k in able]


def changed_answers(trees: Sequence[Tree], values: NDArray[Any]) -> float:
    """Share of rows that two of the trees decide differently, a mean over all pairs."""
    answers = [tree.label[tree.apply_encoded(values)] for tree in trees]
    return float(np.mean([(one != other).mean() for one, other in combinations(answers, 2)]))


def mean_distance(trees: Sequence[Tree], space: FeatureSpace) -> float:
    """Mean path distance of two of the trees."""
    between = distances_between(trees, trees, space)
    return float(between[np.triu_indices(len(trees), 1)].mean())
