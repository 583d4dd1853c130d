"""ParetoTreeRegressor: the regression tree chosen on the frontier of score and stability."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import get_scorer
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from steadytree._base.exceptions import UnsuitableDataError
from steadytree._base.parallel import fan_out
from steadytree._base.validation import Integer, Parameters, Real, validate
from steadytree.data.feature_space import FeatureSpace
from steadytree.distance.path import NUMBER, distances_between
from steadytree.models.base import check_weights
from steadytree.models.sklearn import regression_tree
from steadytree.stability.bootstrap import (
    Settings,
    check_grid,
    check_select,
    spread_settings,
)
from steadytree.stability.pareto_tree import FrontierMixin

GRID = {"max_depth": list(range(3, 9)), "min_samples_leaf": [3, 5, 10, 30, 50]}
LEAST_ROWS = 8  # to learn from, half of them, and to judge by
PARAMETERS: Parameters = {
    "n_trees": Integer(2),
    "max_score_loss": Real(0),
    "validation_fraction": Real(above=0, below=1),
}


class ParetoTreeRegressor(FrontierMixin, RegressorMixin, BaseEstimator):
    """One regression tree out of many, chosen on the Pareto frontier of score and stability.

    Part of the rows is held out for validation. Two collections of scikit-learn's trees are fitted
    to bootstrap samples, the first of half of the other rows only. A tree of the second is stable
    if its mean path distance to the first is small; leaves differ by the difference of their
    predictions over the range of the target. A tree is chosen that no other beats in both.

    Parameters
    ----------
    n_trees : int, default=100
        Trees in each collection.
    grid : mapping of lists, default=None
        Settings of ``DecisionTreeRegressor``. By default depths 3 to 8 and 3, 5, 10, 30 and 50 rows
        per leaf.
    max_score_loss : float, default=0.01
        As in `ParetoTreeClassifier`.
    select : str, float or callable, default="tolerance"
        As in `ParetoTreeClassifier`.
    scoring : str or callable, default="r2"
        Score on the validation rows, as in scikit-learn.
    validation_fraction : float, default=0.25
        Share of the rows held out for scores.
    n_jobs : int, default=None
        Processes, as in joblib.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    estimator_ : DecisionTreeRegressor
        The chosen tree.
    trees_, first_trees_ : list of DecisionTreeRegressor
        The candidates, and the first collection.
    candidates_ : dict of arrays
        Distance, score, leaves, depth and settings of every candidate, and whether it is on the
        frontier; ``candidates_frame()`` gives a frame, ``plot_frontier()`` a picture.
    frontier_ : int64 array
        Candidates on the frontier, nearest first.
    chosen_ : int
        Index of the chosen candidate.
    n_features_in_ : int
    feature_names_in_ : ndarray of str, where X had column names

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = ParetoTreeRegressor(n_trees=10, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.3), model.chosen_ in model.frontier_
    (True, True)
    """

    def __init__(
        self,
        n_trees=100,
        grid=None,
        max_score_loss=0.01,
        select="tolerance",
        scoring="r2",
        validation_fraction=0.25,
        n_jobs=None,
        random_state=None,
    ):
        self.n_trees = n_trees
        self.grid = grid
        self.max_score_loss = max_score_loss
        self.select = select
        self.scoring = scoring
        self.validation_fraction = validation_fraction
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "ParetoTreeRegressor":
        """Fit the candidates and choose one.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features), numbers
        y : array-like of shape (n_samples,), numbers
        sample_weight : array-like of shape (n_samples,), optional
            For the fits and the score.

        Returns
        -------
        self : ParetoTreeRegressor
        """
        validate(self, PARAMETERS)
        check_select(self.select)
        if isinstance(next(iter(np.ravel(np.asarray(y, object))), None), str):
            raise ValueError("y holds texts and no numbers: use ParetoTreeClassifier for classes.")
        X, y = validate_data(self, X, y, y_numeric=True, dtype=np.float64)
        if len(y) < LEAST_ROWS:
            raise UnsuitableDataError(
                f"n_samples={len(y)} rows are too few for training and validation: at least "
                f"{LEAST_ROWS} are needed."
            )
        weights = check_weights(sample_weight, len(y))
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        settings = check_grid(DecisionTreeRegressor(), GRID if self.grid is None else self.grid)
        order = rng.permutation(len(y))
        n_held = min(max(round(self.validation_fraction * len(y)), 2), len(y) - 4)
        held, train = order[:n_held], order[n_held:]
        chosen = spread_settings(settings, self.n_trees, rng)
        again = spread_settings(chosen, len(chosen), rng)
        data = X, y, weights
        self.first_trees_ = self._grow(data, again, train[: len(train) // 2], rng)
        self.trees_ = self._grow(data, chosen, train, rng)
        own = {} if weights is None else {"sample_weight": weights[held]}
        scorer = get_scorer(self.scoring) if isinstance(self.scoring, str) else self.scoring
        scores = np.array([float(scorer(one, X[held], y[held], **own)) for one in self.trees_])
        self._choose(scores, FeatureSpace.observe(X), float(np.ptp(y)) or 1.0, chosen)
        return self

    def _grow(
        self, data: Any, settings: list[Settings], rows: NDArray[np.int64], rng: np.random.Generator
    ) -> list[DecisionTreeRegressor]:
        """One tree for each of the settings, each from its own bootstrap sample."""
        jobs = []
        for one in settings:
            seed = {"random_state": int(rng.integers(2**31 - 1))}
            jobs.append((one | seed, rng.choice(rows, len(rows))))
        many = partial(fan_out, n_jobs=self.n_jobs)
        grown: list[DecisionTreeRegressor] = many(_fit_one, jobs, data)
        return grown

    def _choose(
        self, scores: NDArray[np.float64], space: FeatureSpace, spread: float, settings: Any
    ) -> None:
        own, first = ([*map(regression_tree, one)] for one in (self.trees_, self.first_trees_))
        distance = distances_between(own, first, space, leaves=NUMBER, target_range=spread)
        columns, origin = {"distance": distance.mean(axis=1)}, ["bootstrap"] * len(own)
        self.estimator_ = self.trees_[self._list(own, columns, scores, origin, settings)]

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Mean of the leaf each row falls in.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)

        Returns
        -------
        y : ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        predicted: NDArray[np.float64] = self.estimator_.predict(
            validate_data(self, X, reset=False, dtype=np.float64)
        )
        return predicted


def _fit_one(job: tuple[Settings, NDArray[np.int64]], data: Any) -> DecisionTreeRegressor:
    settings, rows = job
    X, y, weights = data
    own = None if weights is None else weights[rows]
    return DecisionTreeRegressor(**settings).fit(X[rows], y[rows], sample_weight=own)
