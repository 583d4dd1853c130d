"""ParetoTreeClassifier: the tree chosen on the frontier of accuracy and stability."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from steadytree._base.optional import require, to_frame
from steadytree._base.parallel import fan_out
from steadytree._base.validation import Boolean, Integer, Parameters, Real, Replaced, validate
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.labels import check_labels
from steadytree.data.table import Table, is_read
from steadytree.distance.path import distances_between
from steadytree.models.base import TreeClassifierMixin, check_weights, warn_of_columns
from steadytree.models.tree import Tree
from steadytree.stability.bootstrap import (
    LOG_LOSS,
    PAPER_GRID,
    Sample,
    Settings,
    bootstrap_trees,
    check_enough_rows,
    check_grid,
    check_select,
    choose,
    list_candidates,
    score_trees,
    spread_settings,
    stratified_flags,
)
from steadytree.stability.refits import (
    GRID,
    Procedure,
    changed_answers,
    fit_procedures,
    mean_distance,
    usual_procedures,
)
from steadytree.stability.stable_tree import StableTreeClassifier

PARAMETERS: Parameters = {
    "n_trees": Integer(2),
    "refit": Boolean(),
    "previous": Replaced("RetrainedTreeClassifier(previous=..., estimator=...)"),
    "max_score_loss": Real(0),
    "validation_fraction": Real(above=0, below=1),  # rows to learn from and rows to judge by
}


class FrontierMixin:
    """Candidates, those of them on the frontier, and the one that was chosen."""

    select: Any
    max_score_loss: float
    first_trees_: list[Any]

    def _list(
        self,
        trees: list[Tree],
        columns: dict[str, NDArray[np.float64]],
        scores: NDArray[np.float64],
        names: list[str],
        settings: list[Settings],
        complexity: bool = False,
    ) -> int:
        """Set the table of candidates and the frontier; returns the chosen one."""
        self.candidates_, self.frontier_ = list_candidates(
            trees, columns, scores, names, settings, complexity
        )
        self.chosen_ = choose(self.candidates_, self.frontier_, self.select, self.max_score_loss)
        return self.chosen_

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
        ax.set_xlabel(f"path distance {self.distance_to} (less is more stable)")
        ax.set_ylabel("score on validation rows")
        ax.legend(frameon=False)
        return ax

    @property
    def distance_to(self) -> str:
        """What the distance of a candidate is measured to."""
        return "to the first collection" if self.first_trees_ else "between refits"


class ParetoTreeClassifier(FrontierMixin, TreeClassifierMixin, ClassifierMixin, BaseEstimator):
    """One learner out of many, chosen on the Pareto frontier of accuracy and stability.

    Part of the rows is held out for validation. On the others every candidate (steady trees of 4,
    8 and 12 leaves, greedy ones, a robust one) is fitted to the same bootstrap samples. One is
    chosen that no other dominates in validation score, in the share of rows that its trees decide
    differently, and in the path distance between them. It is fitted again to all rows.

    With ``refit=False`` a single tree is chosen, as published: two collections of trees are fitted
    to bootstrap samples, the first of half of the rows only, and a tree of the second is stable if
    its mean path distance to the first is small.

    The choice uses only the data given to ``fit``, so a separate test set stays unseen. A smaller
    distance partly means a smaller tree; compare with a plain tree of the same size.

    Parameters
    ----------
    estimator : tree learner, default=None
        Any learner of a single tree, the only one then. By default the greedy tree of
        `StableTreeClassifier` beside steady and robust trees; as published, scikit-learn's CART
        where no column holds text.
    n_trees : int, default=100
        Trees fitted in all, at least two a candidate; as published, in each collection.
    grid : mapping of lists, default=None
        Settings of the learner. By default depths 2 to 6 and 5 and 20 rows per leaf; as published,
        depths 3 to 12 and 3, 5, 10, 30 and 50 rows per leaf.
    previous : None
        Gone: `RetrainedTreeClassifier` learns near a tree in use.
    max_score_loss : float, default=0.01
        Score that may be given up for steadiness with ``select="tolerance"``, the share of it with
        "relative-tolerance".
    select : {"tolerance", "knee", "relative-tolerance", "mean"}, float, or callable, \
            default="tolerance"
        The steadiest within `max_score_loss` of the best score; the knee of the frontier; the two
        choices of the paper's eq. 4: the nearest within a share of the best score, and the largest
        mean of score and closeness, the distance as a share of its bound; a weight of steadiness
        between 0 and 1; or a function of the candidates, a dict of arrays, that returns a value for
        each, of which the largest on the frontier wins.
    complexity : bool, default=False
        Use the number of leaves as a third objective of the frontier.
    scoring : str, callable or None, default=None
        Score on the validation rows, as in scikit-learn; None is the negative log loss, and with
        ``refit=False`` the area under the ROC curve.
    validation_fraction : float, default=0.25
        Share of the rows held out for scores.
    n_jobs : int, default=None
        Processes, as in joblib; ``joblib.parallel_config("dask")`` sends them to a cluster.
    verbose : int, default=0
        Progress, as in joblib.
    random_state : int, RandomState or None, default=None
    refit : bool, default=True
        Choose a learner by its decisions and fit it to all rows. Not used with `previous`.

    Attributes
    ----------
    tree_ : Tree
        The chosen tree.
    agreement_ : float or None
        Share of validation rows that two trees of the chosen learner, from other samples of the
        rows, decide alike; None with ``refit=False``.
    candidates_ : dict of arrays
        Changed answers (with `refit`), distance, score, leaves, depth and settings of every
        candidate, and whether it is on the frontier; ``candidates_frame()`` gives a frame.
    trees_ : list of Tree
        The candidates; with `refit` one tree of each, from a bootstrap sample.
    first_trees_ : list of Tree
        The first collection; empty with `refit`.
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
        select="tolerance",
        complexity=False,
        scoring=None,
        validation_fraction=0.25,
        n_jobs=None,
        verbose=0,
        random_state=None,
        refit=True,
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
        self.refit = refit

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "ParetoTreeClassifier":
        """Fit the candidates and choose one.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), optional
            For the fits and the score.

        Returns
        -------
        self : ParetoTreeClassifier
        """
        validate(self, PARAMETERS)
        check_select(self.select)
        table = Table.read(X)
        if not is_read(X):
            X, y = validate_data(self, X, y, skip_check_array=True)
            warn_of_columns(table)
        table.check_not_empty()
        y, weights = check_labels(y, table.n_rows), check_weights(sample_weight, table.n_rows)
        space = FeatureSpace.observe(table).bare()
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        estimator = self._learner(space)
        if estimator.get_params().get("random_state", 0) is None:  # ties are broken by it too
            estimator = clone(estimator).set_params(random_state=seed)
        sample = Sample.of(X, estimator, y, space, table, np.unique(y), weights)
        check_enough_rows(sample.labels)
        rng = np.random.default_rng(seed)
        held = stratified_flags(sample.labels, self.validation_fraction, rng)
        usual = GRID if self.refit else PAPER_GRID
        settings = check_grid(estimator, usual if self.grid is None else self.grid)
        rows = np.flatnonzero(held)
        self.agreement_: float | None = None
        if self.refit:
            procedures = [Procedure(estimator, one) for one in settings]
            if self.estimator is None:
                procedures = usual_procedures(estimator, settings, space)
            return self._decide(procedures, sample, ~held, X, rng)
        chosen = spread_settings(settings, self.n_trees, rng)
        self._learn(sample, estimator, chosen, ~held, rng)
        scores = score_trees(self.trees_, sample, rows, X, self.scoring)
        distance = distances_between(self.trees_, self.first_trees_, space).mean(axis=1)
        names, columns = ["bootstrap"] * len(chosen), {"distance": distance}
        best = self._list(self.trees_, columns, scores, names, chosen, self.complexity)
        self.tree_ = self.trees_[best]
        self.classes_ = self.tree_.classes
        return self

    def _decide(
        self,
        procedures: list[Procedure],
        sample: Sample,
        train: NDArray[np.bool_],
        X: Any,
        rng: np.random.Generator,
    ) -> "ParetoTreeClassifier":
        """Measure procedures, choose one, and fit it to all rows."""
        many = partial(fan_out, n_jobs=self.n_jobs, verbose=self.verbose)
        fitted = fit_procedures(procedures, sample, np.flatnonzero(train), self.n_trees, rng, many)
        procedures, groups = fitted
        held = np.flatnonzero(~train)
        scoring = LOG_LOSS if self.scoring is None else self.scoring
        scores = [score_trees(trees, sample, held, X, scoring).mean() for trees in groups]
        changed = [changed_answers(trees, sample.values[held]) for trees in groups]
        distance = [mean_distance(trees, sample.space) for trees in groups]
        self.trees_: list[Tree] = [trees[0] for trees in groups]
        self.first_trees_: list[Tree] = []
        columns = {"changed": np.array(changed), "distance": np.array(distance)}
        settings, names = [p.settings for p in procedures], [p.name for p in procedures]
        chosen = self._list(
            self.trees_, columns, np.array(scores), names, settings, self.complexity
        )
        self.agreement_ = 1 - changed[chosen]
        best = procedures[chosen]
        self.tree_ = sample.fit(best.estimator, best.settings, np.arange(len(sample.labels)))
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
        """Set the collections of trees."""
        many = partial(fan_out, n_jobs=self.n_jobs, verbose=self.verbose)
        rows = np.flatnonzero(train)
        half = rows[stratified_flags(sample.labels[rows], 0.5, rng)]
        again = spread_settings(settings, len(settings), rng)
        self.first_trees_ = bootstrap_trees(sample, estimator, again, half, rng, many)
        self.trees_ = bootstrap_trees(sample, estimator, settings, rows, rng, many)

    def _learner(self, space: FeatureSpace) -> Any:
        if self.estimator is not None:
            return self.estimator
        if space.categorical.any() or self.refit:
            return StableTreeClassifier(epsilon=0, criterion="gini", grid="quantile")
        from sklearn.tree import DecisionTreeClassifier

        return DecisionTreeClassifier()
