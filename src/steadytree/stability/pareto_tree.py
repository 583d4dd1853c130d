"""ParetoTreeClassifier: the tree chosen on the frontier of accuracy and stability."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from steadytree._base.exceptions import UnsuitableDataError
from steadytree._base.optional import require, to_frame
from steadytree._base.parallel import fan_out
from steadytree._base.validation import Integer, Parameters, Real, Replaced, validate
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.labels import check_labels
from steadytree.data.table import Table
from steadytree.distance.path import distances_between
from steadytree.models.base import TreeClassifierMixin
from steadytree.stability.bootstrap import (
    PAPER_GRID,
    Sample,
    Settings,
    bootstrap_trees,
    check_grid,
    check_select,
    choose,
    on_frontier,
    score_trees,
    spread_settings,
    stratified_flags,
)
from steadytree.stability.stable_tree import StableTreeClassifier

PARAMETERS: Parameters = {
    "n_trees": Integer(2),
    "previous": Replaced("RetrainedTreeClassifier(previous=..., estimator=...)"),
    "max_score_loss": Real(0),
    "validation_fraction": Real(above=0, below=1),  # rows to learn from and rows to judge by
}


class ParetoTreeClassifier(TreeClassifierMixin, ClassifierMixin, BaseEstimator):
    """One tree out of many, chosen on the Pareto frontier of accuracy and stability.

    Part of the rows is held out for validation. On the others two collections of trees are
    fitted to bootstrap samples, the first of half of the rows only. A tree of the second
    collection is stable if its mean path distance to the first is small: retraining on other data
    gives similar trees. One of the trees that no other dominates in both distance and validation
    score is chosen.

    The choice uses only the data given to ``fit``, so a separate test set stays unseen. A smaller
    distance partly means a smaller tree; compare with a plain tree of the same size.

    Parameters
    ----------
    estimator : tree learner, default=None
        Any learner of a single tree. By default scikit-learn's CART, or the greedy tree of
        `StableTreeClassifier` where columns hold text.
    n_trees : int, default=100
        Trees in each collection, each from its own bootstrap sample.
    grid : mapping of lists, default=None
        Settings of the learner; all combinations are used about equally often. By default depths 3
        to 12 and 3, 5, 10, 30 and 50 rows per leaf.
    previous : None
        Gone: `RetrainedTreeClassifier` learns near a tree in use.
    max_score_loss : float, default=0.01
        Score that may be given up for closeness with ``select="tolerance"``.
    select : {"knee", "tolerance"}, float, or callable, default="knee"
        The knee of the frontier; the nearest tree within `max_score_loss`;
        a weight of closeness between 0 and 1; or a function of the candidates, a dict of arrays,
        that returns a value for each, of which the largest on the frontier wins.
    complexity : bool, default=False
        Use the number of leaves as a third objective of the frontier.
    scoring : str, callable or None, default=None
        Score on the validation rows, as in scikit-learn; None is the area under the ROC curve.
    validation_fraction : float, default=0.25
        Share of the rows held out for scores.
    n_jobs : int, default=None
        Processes, as in joblib; ``joblib.parallel_config("dask")`` sends them to a cluster.
    verbose : int, default=0
        Progress, as in joblib.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    tree_ : Tree
        The chosen tree.
    candidates_ : dict of arrays
        Distance, score, leaves, depth and settings of every candidate, and whether it is on the
        frontier; ``candidates_frame()`` returns them as a frame.
    trees_ : list of Tree
        The candidates.
    first_trees_ : list of Tree
        The first collection.
    frontier_ : int64 array
        Candidates on the frontier, nearest first.
    chosen_ : int
        Index of the chosen candidate.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray of str, where X had column names

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> model = ParetoTreeClassifier(n_trees=10, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9), model.chosen_ in model.frontier_
    (True, True)
    """

    def __init__(
        self,
        estimator=None,
        n_trees=100,
        grid=None,
        previous=None,
        max_score_loss=0.01,
        select="knee",
        complexity=False,
        scoring=None,
        validation_fraction=0.25,
        n_jobs=None,
        verbose=0,
        random_state=None,
    ):
        self.estimator = estimator
        self.n_trees = n_trees
        self.grid = grid
        self.previous = previous
        self.max_score_loss = max_score_loss
        self.select = select
        self.complexity = complexity
        self.scoring = scoring
        self.validation_fraction = validation_fraction
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> "ParetoTreeClassifier":
        """Fit the candidates and choose one.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Class labels.

        Returns
        -------
        self : ParetoTreeClassifier
        """
        validate(self, PARAMETERS)
        check_select(self.select)
        X, y = validate_data(self, X, y, skip_check_array=True)
        table = Table.read(X)
        table.check_not_empty()
        y = check_labels(y, table.n_rows)
        space = FeatureSpace.observe(table).bare()
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        estimator = self._learner(space)
        if estimator.get_params().get("random_state", 0) is None:  # ties are broken by it too
            estimator = clone(estimator).set_params(random_state=seed)
        sample = Sample.of(X, estimator, y, space, table, np.unique(y))
        _check_enough_rows(sample.labels)
        rng = np.random.default_rng(seed)
        held = stratified_flags(sample.labels, self.validation_fraction, rng)
        settings = check_grid(estimator, PAPER_GRID if self.grid is None else self.grid)
        chosen = spread_settings(settings, self.n_trees, rng)
        self._learn(sample, estimator, chosen, ~held, rng)
        rows = np.flatnonzero(held)
        scores = score_trees(self.trees_, sample, rows, X, self.scoring)
        self._choose(scores, space)
        self.classes_ = self.tree_.classes
        return self

    def _learn(
        self,
        sample: Sample,
        estimator: Any,
        settings: list[Settings],
        train: NDArray[np.bool_],
        rng: np.random.Generator,
    ) -> None:
        """Set the collections of trees and, for each candidate, its settings and origin."""
        many = partial(fan_out, n_jobs=self.n_jobs, verbose=self.verbose)
        rows = np.flatnonzero(train)
        half = rows[stratified_flags(sample.labels[rows], 0.5, rng)]
        again = spread_settings(settings, len(settings), rng)
        self.first_trees_ = bootstrap_trees(sample, estimator, again, half, rng, many)
        self.trees_ = bootstrap_trees(sample, estimator, settings, rows, rng, many)
        self._settings, self._origin = list(settings), ["bootstrap"] * len(settings)

    def _choose(self, scores: NDArray[np.float64], space: FeatureSpace) -> None:
        distance = distances_between(self.trees_, self.first_trees_, space).mean(axis=1)
        leaves = np.array([tree.n_leaves for tree in self.trees_])
        costs = [distance, -scores, leaves][: 3 if self.complexity else 2]
        flags = on_frontier(np.stack(costs, axis=1).astype(np.float64))
        frontier = np.flatnonzero(flags)
        self.frontier_ = frontier[np.lexsort((-scores[frontier], distance[frontier]))]
        self.candidates_ = {
            "distance": distance,
            "score": scores,
            "n_leaves": leaves,
            "depth": np.array([tree.depth for tree in self.trees_]),
            "origin": np.array(self._origin),
            "on_frontier": flags,
            **_columns_of(self._settings),
        }
        self.chosen_ = choose(self.candidates_, self.frontier_, self.select, self.max_score_loss)
        self.tree_ = self.trees_[self.chosen_]
        del self._settings, self._origin

    def candidates_frame(self) -> Any:
        """``candidates_`` as a pandas frame, or a polars frame where only that is installed."""
        check_is_fitted(self)
        return to_frame(self.candidates_)

    def plot_frontier(self, ax: Any = None) -> Any:
        """Plot score against distance of all candidates, the frontier and the chosen tree.

        Parameters
        ----------
        ax : matplotlib axes, optional

        Returns
        -------
        ax : matplotlib axes
        """
        check_is_fitted(self)
        if ax is None:
            plots = require("matplotlib.pyplot", extra="plot", purpose="plotting the frontier")
            ax = plots.subplots(figsize=(6.4, 4.4))[1]
        distance, score = self.candidates_["distance"], self.candidates_["score"]
        others = ~self.candidates_["on_frontier"]
        ax.scatter(distance[others], score[others], s=14, c="#8b95a1", label="dominated")
        own = self.frontier_
        ax.plot(distance[own], score[own], "o-", c="#0072B2", ms=5, lw=1, label="frontier")
        ax.scatter(
            distance[self.chosen_],
            score[self.chosen_],
            s=150,
            facecolors="none",
            edgecolors="#D55E00",
            linewidths=2,
            label="chosen",
        )
        ax.set_xlabel("path distance to the first collection (less is more stable)")
        ax.set_ylabel("score on validation rows")
        ax.legend(frameon=False)
        return ax

    def _learner(self, space: FeatureSpace) -> Any:
        if self.estimator is not None:
            return self.estimator
        if space.categorical.any():
            return StableTreeClassifier(epsilon=0, criterion="gini", grid="quantile")
        return DecisionTreeClassifier()


def _columns_of(settings: list[Settings]) -> dict[str, NDArray[Any]]:
    """Settings as columns; None where a candidate has no such setting."""
    names = sorted({name for one in settings for name in one})
    return {
        f"param_{name}": np.array([one.get(name) for one in settings], dtype=object)
        for name in names
    }


def _check_enough_rows(labels: NDArray[np.int64]) -> None:
    """At least two rows of some class: one for training and one for validation."""
    if len(labels) < 4 or np.bincount(labels).max() < 2:
        raise UnsuitableDataError(
            f"n_samples={len(labels)} rows are too few for training and validation: "
            "at least 4 are needed, 2 of them of one class."
        )
