"""Refits: a learner fitted again on parts of its rows, and how alike its models decide."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadytree._base.exceptions import UnsuitableDataError
from steadytree._base.notebook import Shown
from steadytree._base.parallel import fan_out
from steadytree._base.progress import following
from steadytree._base.validation import Integer
from steadytree.data.dataset import Dataset
from steadytree.data.feature_space import FeatureSpace
from steadytree.distance.path import distances_between
from steadytree.distance.tree_distance import CollectionFacts, collection_facts, tree_distance
from steadytree.metrics.measurement import Measurement
from steadytree.models.scorecard import Scorecard
from steadytree.models.tree import Tree
from steadytree.robustness.perturbation import NOISE_SHARE, Perturbation
from steadytree.stability.bootstrap import Sample, Settings
from steadytree.stability.removal import fit_model
from steadytree.stability.sensitivity import mean_interval
from steadytree.stability.steady_tree import SteadyTreeClassifier


@dataclass(frozen=True, eq=False, repr=False)
class ScorecardRefits(Shown):
    """A scorecard and those fitted again on parts of the rows."""

    whole: Scorecard  # from all rows
    scorecards: tuple[Scorecard, ...]
    agreement: NDArray[np.float64]  # share of all rows with the same prediction as `whole`

    def columns(self) -> dict[str, float]:
        """Share of the refits that use each column; columns of `whole` come first."""
        own = columns_used(self.whole)
        used = Counter(name for one in self.scorecards for name in columns_used(one))
        names = sorted(own | set(used), key=lambda name: (name not in own, -used[name], name))
        return {name: used[name] / len(self.scorecards) for name in names}

    def thresholds(self, name: str) -> NDArray[np.float64]:
        """Thresholds of a column in the refits."""
        found = [thresholds(one, name) for one in self.scorecards]
        return np.sort(np.concatenate(found)) if found else np.empty(0)

    def measurements(self) -> tuple[Measurement, ...]:
        """The values with their meanings."""
        own = columns_used(self.whole)
        kept = [len(own & columns_used(one)) / len(own) for one in self.scorecards] if own else [1]
        return (
            _percentage(
                "same answers",
                self.agreement.mean(),
                "share of rows that get the same answer from a card fitted again",
            ),
            _percentage(
                "least same answers",
                self.agreement.min(),
                "the same for the card that differs most",
            ),
            _percentage(
                "same columns",
                np.mean(kept),
                "share of its columns that a refitted risk score uses too",
            ),
        )


def _percentage(
    name: str, share: Any, meaning: str, within: tuple[float, float] | None = None
) -> Measurement:
    return Measurement(name, 100 * float(share), meaning, within, "%")


def columns_used(scorecard: Scorecard) -> set[str]:
    """Names of the columns a scorecard gives points for."""
    return {scorecard.space.names[condition.feature] for condition in scorecard.conditions}


def thresholds(scorecard: Scorecard, name: str) -> NDArray[np.float64]:
    """A scorecard's thresholds of a numeric column, in ascending order."""
    feature = scorecard.space.names.index(name)
    found = [c.threshold for c in scorecard.conditions if c.feature == feature]
    return np.sort([value for value in found if np.isfinite(value)])


KEPT = 0.9  # share of the rows that each refit gets


@dataclass(frozen=True, eq=False, repr=False)
class Refits(Shown):
    """A tree and those fitted again on parts of the rows."""

    whole: Tree  # from all rows
    trees: tuple[Tree, ...]
    distances: NDArray[np.float64]  # path distance of each tree to `whole`
    agreement: NDArray[np.float64]  # share of all rows with the same prediction as `whole`

    @property
    def value(self) -> float:
        """Mean distance."""
        return float(self.distances.mean())

    @cached_property
    def facts(self) -> CollectionFacts:
        """What all the trees have in common, `whole` included."""
        return collection_facts([self.whole, *self.trees])

    def measurements(self) -> tuple[Measurement, ...]:
        """The values with their meanings."""
        within = same = None
        if len(self.trees) > 1:
            within = mean_interval(self.distances, 0.0)
            same = mean_interval(100 * self.agreement, 0.0, 100.0)
        return (
            Measurement(
                "retraining distance",
                self.value,
                "mean path distance to trees refitted to part of the rows",
                within,
            ),
            _percentage(
                "same answers",
                self.agreement.mean(),
                "share of rows with the same prediction by a refitted tree",
                same,
            ),
            _percentage(
                "same tree",
                (self.distances == 0).mean(),
                "share of refits that give the same tree",
            ),
        )


def refits(
    estimator: Any,
    X: Any,
    y: Any,
    repeats: int = 20,
    kept: float = KEPT,
    n_jobs: int | None = None,
    random_state: int = 0,
    progress: bool | Callable[[str], None] = False,
    whole: Tree | None = None,
) -> Refits | ScorecardRefits:
    """Fit a learner again on parts of its rows, and measure how much the trees differ.

    For a learner of risk scores: how many predictions and columns stay the same.

    Every refit uses the learner with its own ``random_state``, on rows sampled without
    replacement: it shows the effect of other rows, not of other seeds.

    Parameters
    ----------
    estimator : learner of a tree or risk score, or a scikit-learn tree classifier
        Fitted or not; it is not changed.
    X, y : training data
    repeats : int, default=20
    kept : float, default=0.9
        Share of the rows that each refit gets.
    n_jobs : int or None, default=None
        Processes, as in joblib.
    random_state : int, default=0
        Which rows.
    progress : bool or callable, default=False
        True shows a bar with the time left; a function is called with each step.
    whole : Tree, optional
        The tree that the learner fits to all rows, where it is known: saves one fit.

    Returns
    -------
    refits : Refits, or ScorecardRefits for a learner of risk scores

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from steadytree import StableTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> found = refits(StableTreeClassifier(max_depth=2, random_state=0), X, y, repeats=3)
    >>> len(found.trees), bool(found.value >= 0)
    (3, True)
    """
    Integer(1).check(repeats, "repeats")
    if not (isinstance(kept, Real) and 0 < kept < 1):
        raise ValueError(f"kept must be a share between 0 and 1, got {kept!r}.")
    if not isinstance(whole, Tree | None):
        kind = type(whole).__name__
        raise ValueError(f"whole must be the Tree fitted to all rows, got {kind}: leave it out.")
    data = Dataset.of(X, y)
    n_rows = data.n_rows
    size = int(kept * n_rows)
    rng = np.random.default_rng(random_state)
    sets = [np.sort(rng.choice(n_rows, size, replace=False)) for _ in range(repeats)]
    model = whole or fit_model(np.arange(n_rows), estimator, data)
    with following(progress) as on_progress:
        heard = None if progress is False else on_progress
        jobs = fan_out(fit_model, sets, estimator, data, n_jobs=n_jobs, on_progress=heard)
        found = tuple(jobs)
    own = model.predict(data)
    agreement = np.array([float(np.mean(one.predict(data) == own)) for one in found])
    if isinstance(model, Scorecard):
        return ScorecardRefits(model, found, agreement)
    # a pipeline may take numbers as categories: then its own columns are the space
    kinds = [column.dtype == object for column in data.table.select(model.space.names).columns]
    space = data if kinds == model.space.categorical.tolist() else None
    return Refits(model, found, tree_distance([model], found, space=space)[0], agreement)


GRID = {"max_depth": [2, 3, 4, 5, 6], "min_samples_leaf": [5, 20]}
STEADY_LEAVES = (8, 4, 12)
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
    n_splits = sum(5 if c in numbers else max(len(c.categories), 1) for c in space)
    if numbers and n_splits <= MOST_SPLITS:
        from steadytree.robustness.robust_tree import RobustTreeClassifier  # and its search

        noise = Perturbation(radius=f"{100 * NOISE_SHARE:g} %")  # of the rows of each fit
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
