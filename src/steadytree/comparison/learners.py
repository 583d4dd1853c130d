"""Learners by name, set up alike so that they can be compared."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import get_tags

from steadytree._base.exceptions import UnsuitableDataError
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.labels import label_array
from steadytree.data.schema import Schema
from steadytree.data.table import Table, quote
from steadytree.riskscore.risk_score import RiskScoreClassifier
from steadytree.robustness.perturbation import Perturbation
from steadytree.stability.pareto_tree import ParetoTreeClassifier
from steadytree.stability.stable_tree import StableTreeClassifier


def fit_or_refuse(learner: Any, X: Any, labels: NDArray[Any]) -> Any:
    """Fit; an error is a refusal where the learner's tags exclude such rows."""
    try:
        return learner.fit(X, labels)
    except ValueError as error:
        if not _takes(learner, X, labels):
            raise UnsuitableDataError(str(error)) from error
        raise


def _takes(learner: Any, X: Any, labels: NDArray[Any]) -> bool:
    """Whether a learner's tags allow for the text, missing values and classes that there are."""
    if not hasattr(learner, "__sklearn_tags__"):
        return True
    tags, space = get_tags(learner), FeatureSpace.observe(X)
    if space.categorical.any() and not (tags.input_tags.string or tags.input_tags.categorical):
        return False
    if any(column.missing for column in space) and not tags.input_tags.allow_nan:
        return False
    about_classes = tags.classifier_tags
    return about_classes is None or about_classes.multi_class or len(np.unique(labels)) <= 2


NAMES = ("cart", "stable", "pareto", "robust", "score", "private")
DESCRIPTIONS = {
    "cart": "greedy tree by Gini impurity, as CART grows it",
    "stable": "splits drawn so that few rows more or less change nothing",
    "pareto": "chosen out of many for accuracy and closeness to the others",
    "robust": "best against the worst perturbation, by exact search",
    "score": "card of small whole points",
    "private": "differentially private tree",
}
MOST_MIDPOINTS = 2_000  # rows up to which every threshold is tried
CONDITIONS = 6
ROBUST_THRESHOLDS = 6
NOISE_SHARE = 0.02  # of a column's range, where no perturbation is stated


@dataclass(frozen=True)
class Settings:
    """What the learners have in common."""

    max_depth: int = 4
    # what the robust learner hardens against; 2 % of each column's range by default
    perturbation: Perturbation | None = None
    epsilon: float = 1.0  # privacy budget of the private learner
    # declared for the private learner; without it bounds are read off the data, which is not
    # private and good for a comparison only
    schema: Schema | None = None
    time_limit: float = 2.0  # seconds for each search of the robust learner
    seed: int = 0


def usual_perturbation(X: Any, share: float = NOISE_SHARE) -> Perturbation:
    """Every number may move by a share of its column's range; text and 0/1 columns stay."""
    space = FeatureSpace.observe(X)
    radius = {
        column.name: share * (column.high - column.low)
        for column in space
        if not column.is_categorical and column.kind != "binary"
    }
    return Perturbation(radius=radius)


def make_learners(
    models: Sequence[str] | Mapping[str, Any], X: Any, y: Any, settings: Settings
) -> dict[str, Any]:
    """Unfitted learners by name; a mapping is taken as it is."""
    if isinstance(models, Mapping):
        if not models:
            raise ValueError("models names no learner: give at least one.")
        for name, model in models.items():
            if not hasattr(model, "fit"):
                raise TypeError(f"models[{name!r}] must be a learner with fit, got {model!r}.")
        return dict(models)
    named = [models] if isinstance(models, str) else list(models)
    unknown = [name for name in named if name not in NAMES]
    if unknown or not named:
        got = quote(unknown) or "none"
        raise ValueError(f"learners must be some of {', '.join(NAMES)}, got {got}.")
    return {name: make_learner(name, X, y, settings) for name in dict.fromkeys(named)}


def make_learner(name: str, X: Any, y: Any, settings: Settings) -> Any:
    """An unfitted learner by its name."""
    depth, seed = settings.max_depth, settings.seed
    if name == "cart":
        grid = "midpoint" if Table.read(X).n_rows <= MOST_MIDPOINTS else "quantile"
        return StableTreeClassifier(depth, 0, grid=grid, criterion="gini", random_state=seed)
    if name == "stable":
        return StableTreeClassifier(depth, 0.1, random_state=seed)
    if name == "pareto":
        depths = list(range(2, depth + 1)) or [1]
        settings_tried = {"max_depth": depths, "min_samples_leaf": [3, 10, 30]}
        return ParetoTreeClassifier(n_trees=12, grid=settings_tried, random_state=seed)
    if name == "robust":
        from steadytree.robustness.robust_tree import RobustTreeClassifier  # and its search

        noise = settings.perturbation or usual_perturbation(X)
        return RobustTreeClassifier(
            min(depth, 2),
            noise,
            settings.time_limit,
            n_thresholds=ROBUST_THRESHOLDS,
            random_state=seed,
        )
    if name == "score":
        return RiskScoreClassifier(tau=NOISE_SHARE, max_conditions=CONDITIONS, random_state=seed)
    schema = settings.schema or observed_schema(X, y)
    from steadytree.privacy.private_tree import PrivateTreeClassifier

    return PrivateTreeClassifier(settings.epsilon, schema, testing_seed=seed)


def observed_schema(X: Any, y: Any) -> Schema:
    """A schema read off the data, which reveals their bounds: for comparisons only."""
    space = FeatureSpace.observe(X)
    numbers = [column for column in space if not column.is_categorical]
    return Schema(
        bounds={column.name: (column.low, _above(column.low, column.high)) for column in numbers},
        categories={c.name: list(c.categories) for c in space if c.is_categorical},
        classes=np.unique(label_array(y)).tolist(),
        kinds={column.name: column.kind for column in numbers},
        missing=[column.name for column in space if column.missing],
        names=list(space.names),
    )


def _above(low: float, high: float) -> float:
    return high if high > low else low + 1.0
