"""Learners by name, set up alike so that they can be compared."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import get_tags

from steadytree._base.exceptions import UnsuitableDataError
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.labels import label_array, stratified_folds
from steadytree.data.schema import Schema
from steadytree.data.table import Table, quote
from steadytree.metrics.accuracy import label_indices
from steadytree.models.base import TreeClassifierMixin
from steadytree.models.tree import Tree
from steadytree.riskscore.risk_score import RiskScoreClassifier
from steadytree.robustness.perturbation import NOISE_SHARE, Perturbation, usual_perturbation
from steadytree.stability.pareto_tree import ParetoTreeClassifier
from steadytree.stability.stable_tree import StableTreeClassifier
from steadytree.stability.steady_tree import SteadyTreeClassifier


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


NAMES = ("steady", "cart", "cart-cv", "stable", "pareto", "robust", "score", "private", "boosted")
DESCRIPTIONS = {
    "steady": "small tree taught by an ensemble, that changes little when learned again",
    "cart": "greedy tree by Gini impurity, as CART grows it",
    "cart-cv": "CART of at most as many leaves as steady, its size chosen by cross-validation",
    "stable": "splits drawn so that few rows more or less change nothing",
    "pareto": "chosen out of many for accuracy and closeness to the others",
    "robust": "best against the worst perturbation, by exact search",
    "score": "card of small whole points",
    "private": "differentially private tree",
    "boosted": "gradient boosting of many trees, not readable: what a small model gives up",
}
MOST_MIDPOINTS = 2_000  # rows up to which every threshold is tried
CONDITIONS = 6


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
    max_leaf_nodes: int = 8  # of the steady tree and of CART whose size is cross-validated


class CrossValidatedCart(TreeClassifierMixin, ClassifierMixin, BaseEstimator):
    """CART whose leaves, how many and how large, are chosen by accuracy in cross-validation."""

    def __init__(self, max_leaf_nodes=8, random_state=0):
        self.max_leaf_nodes = max_leaf_nodes
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> "CrossValidatedCart":
        """Fit the setting that is most accurate on held-out rows; of equals, the smallest tree."""
        table, labels = Table.read(X), label_array(y)
        self.classes_, counts = np.unique(labels, return_counts=True)
        self.n_features_in_ = table.n_columns
        sizes, leasts = range(2, self.max_leaf_nodes + 1), (20, 5)
        size, least = self.max_leaf_nodes, 5
        if (n_folds := min(5, int(counts.min()))) > 1:
            correct = np.zeros((len(sizes), len(leasts)))
            for train, held in stratified_folds(labels, n_folds, self.random_state):
                rows, truth, kept = table.take(train), labels[train], table.take(held)
                for turn, one in enumerate(leasts):
                    trees = self._trees(rows, truth, one)
                    correct[:, turn] += [np.sum(t.predict(kept) == labels[held]) for t in trees]
            chosen = divmod(int(correct.argmax()), len(leasts))
            size, least = sizes[chosen[0]], leasts[chosen[1]]
        self.tree_ = self._trees(table, labels, least)[size - 2]
        return self

    def _trees(self, table: Table, labels: NDArray[Any], least: int) -> list[Tree]:
        """CART of at most 2, 3, and so on to `max_leaf_nodes` leaves, best splits first.

        Which splits nodes have does not depend on the order in which they are made, so one tree
        that is deep enough holds them all.
        """
        deep = _greedy(min(self.max_leaf_nodes - 1, 30), table, self.random_state, least)
        tree: Tree = deep.fit(table, labels).tree_
        totals = _class_counts(tree, table, label_indices(tree.classes, labels))
        weight, inner = totals.sum(axis=1), ~tree.is_leaf
        impurity = weight - (totals**2).sum(axis=1) / weight
        gain = np.zeros(tree.n_nodes)
        gain[inner] = impurity[inner]
        gain[inner] -= impurity[tree.left[inner]] + impurity[tree.right[inner]]
        if tree.n_nodes > 1:  # as StableTreeClassifier does: one row more of each class
            smoothed = (totals + 1) / (weight + totals.shape[1])[:, None]
            tree = replace(tree, value=smoothed)
        ends, found = [0], list[Tree]()
        while len(found) < self.max_leaf_nodes - 1:
            open_ends = [node for node in ends if inner[node]]
            if open_ends:
                node = max(open_ends, key=lambda end: gain[end])
                ends.remove(node)
                ends += [int(tree.left[node]), int(tree.right[node])]
            found.append(tree.restrict(ends))
        return found


class BoostedTrees(ClassifierMixin, BaseEstimator):
    """scikit-learn's gradient boosting, for frames with text and missing values."""

    def __init__(self, random_state=0):
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> "BoostedTrees":
        """Fit; columns of more than 255 categories are used as ordered codes."""
        from sklearn.ensemble import HistGradientBoostingClassifier

        self.space_ = FeatureSpace.observe(X)
        few = self.space_.categorical & (self.space_.n_categories <= 255)
        self.model_ = HistGradientBoostingClassifier(
            categorical_features=few, random_state=self.random_state
        ).fit(self.space_.encode(X), label_array(y))
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probability of each class."""
        shares: NDArray[np.float64] = self.model_.predict_proba(self.space_.encode(X))
        return shares

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def _class_counts(tree: Tree, rows: Table, labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """Rows of each class that pass each node."""
    totals = np.zeros((tree.n_nodes, len(tree.classes)))
    np.add.at(totals, (tree.apply(rows), labels), 1.0)
    for node in np.flatnonzero(~tree.is_leaf)[::-1]:  # children come later
        totals[node] = totals[tree.left[node]] + totals[tree.right[node]]
    return totals


def _greedy(depth: int, X: Any, seed: int, least: int = 1) -> StableTreeClassifier:
    grid = "midpoint" if Table.read(X).n_rows <= MOST_MIDPOINTS else "quantile"
    return StableTreeClassifier(
        depth, 0, grid=grid, criterion="gini", min_samples_leaf=least, random_state=seed
    )


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
    if name == "steady":
        return SteadyTreeClassifier(settings.max_leaf_nodes, random_state=seed)
    if name == "cart":
        return _greedy(depth, X, seed)
    if name == "cart-cv":
        return CrossValidatedCart(settings.max_leaf_nodes, seed)
    if name == "boosted":
        return BoostedTrees(seed)
    if name == "stable":
        return StableTreeClassifier(depth, 0.1, random_state=seed)
    if name == "pareto":
        depths = list(range(2, depth + 1)) or [1]
        settings_tried = {"max_depth": depths, "min_samples_leaf": [3, 10, 30]}
        return ParetoTreeClassifier(n_trees=12, grid=settings_tried, random_state=seed)
    if name == "robust":
        from steadytree.robustness.robust_tree import RobustTreeClassifier  # and its search

        stated = settings.perturbation
        noise = usual_perturbation(X) if stated is None else stated.scaled_to(X)
        return RobustTreeClassifier(min(depth, 2), noise, settings.time_limit, random_state=seed)
    if name == "score":
        return RiskScoreClassifier(noise=NOISE_SHARE, max_conditions=CONDITIONS, random_state=seed)
    schema = settings.schema or observed_schema(X, y)
    from steadytree.privacy.private_tree import PrivateTreeClassifier

    return PrivateTreeClassifier(settings.epsilon, schema, testing_seed=seed)


def observed_schema(X: Any, y: Any) -> Schema:
    """A schema read off the data, which reveals their bounds: for comparisons only."""
    space = FeatureSpace.observe(X)
    numbers = [column for column in space if not column.is_categorical]
    return Schema(
        bounds={c.name: (c.low, c.high if c.high > c.low else c.low + 1.0) for c in numbers},
        categories={c.name: list(c.categories) for c in space if c.is_categorical},
        classes=np.unique(label_array(y)).tolist(),
        kinds={column.name: column.kind for column in numbers},
        missing=[column.name for column in space if column.missing],
        names=list(space.names),
    )
