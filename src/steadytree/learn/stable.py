"""StableTreeClassifier: splits that stay when rows go."""

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state, check_scalar
from sklearn.utils.validation import validate_data

from steadytree.core.counts import ClassCounts
from steadytree.core.grid import GRIDS
from steadytree.core.rules import Rules
from steadytree.core.space import FeatureSpace
from steadytree.core.table import Table
from steadytree.kernels import choose_rules
from steadytree.kernels.scores import COUNT, GINI
from steadytree.learn._classifier import TreeClassifierMixin, check_labels, check_weights
from steadytree.learn._closest import stay_close
from steadytree.learn._grow import Choose, grow
from steadytree.sources.rows import Rows

CRITERIA = {"count": COUNT, "gini": GINI}
DEEPEST = 30


class StableTreeClassifier(TreeClassifierMixin, ClassifierMixin, BaseEstimator):
    """A tree whose splits are drawn so that few rows more or less leave it as it is.

    At each node a rule is drawn with probability proportional to
    ``exp(2 log(n_rules) / epsilon * score / best score)``; the noise of the draw is tied to the
    place in the tree, the feature and the threshold, so data sets that differ little share it.
    With ``epsilon=0`` the best rule is taken and ties are broken by the same noise.
    Sibling leaves with equal labels are merged. Data of one class, or without any valid split,
    give a single leaf.

    Parameters
    ----------
    max_depth : int, default=5
        Most questions from root to leaf, 1 to 30.
    epsilon : float, default=0.1
        How much of a split's score may be given up, on average, for stability; 0 is greedy.
    n_thresholds : int, default=500
        Candidate thresholds per numeric feature for the grids "equidistant" and "quantile".
    grid : {"equidistant", "quantile", "midpoint"}, default="equidistant"
        Where candidate thresholds lie: evenly between a column's bounds, at equal shares of rows,
        or between all distinct values.
    criterion : {"count", "gini"}, default="count"
        Rows in the majority class of their side, or rows times one minus Gini impurity.
    min_samples_leaf : int, default=1
        Least rows (or summed weights, from 2 up) on each side of a split.
    random_state : int, RandomState or None, default=None
        Seed of the noise.
    previous : Tree, fitted learner or fitted scikit-learn tree, default=None
        The tree in use, to stay close to: as much of it is kept as the accuracy allows.
    max_score_loss : float, default=0.01
        Accuracy on held-out rows that may be given up to stay close to `previous`.

    Attributes
    ----------
    tree_ : Tree
        The fitted tree.
    classes_ : ndarray of shape (n_classes,)
        Labels seen in ``fit``; columns of ``predict_proba`` follow their order.
    space_ : FeatureSpace
        The columns with their candidate cuts.
    n_features_in_ : int
    feature_names_in_ : ndarray of str, where X had column names

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> model = StableTreeClassifier(max_depth=3, epsilon=0, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    def __init__(
        self,
        max_depth=5,
        epsilon=0.1,
        n_thresholds=500,
        grid="equidistant",
        criterion="count",
        min_samples_leaf=1,
        random_state=None,
        previous=None,
        max_score_loss=0.01,
    ):
        self.max_depth = max_depth
        self.epsilon = epsilon
        self.n_thresholds = n_thresholds
        self.grid = grid
        self.criterion = criterion
        self.min_samples_leaf = min_samples_leaf
        self.random_state = random_state
        self.previous = previous
        self.max_score_loss = max_score_loss

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "StableTreeClassifier":
        """Fit the tree.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Numbers, text, categories; missing values welcome.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), optional
            A row of weight w counts as w equal rows; rows of weight 0 are left out.

        Returns
        -------
        self : StableTreeClassifier
        """
        self._check_parameters()
        X, y = validate_data(self, X, y, skip_check_array=True)
        table = Table.read(X)
        table.check_not_empty()
        weights = check_weights(sample_weight, table.n_rows)
        y = check_labels(y, table.n_rows)
        if weights is not None and not weights.all():
            kept = weights > 0
            table, y, weights = table.take(kept), y[kept], weights[kept]
        classes, labels = np.unique(y, return_inverse=True)
        space = FeatureSpace.observe(table)
        values = space.encode(table)
        self.classes_ = classes
        self.space_ = space.with_cuts(values, self.grid, self.n_thresholds, weights)
        codes = self.space_.codes(values)
        rules = self.space_.rules(codes)
        source = Rows(rules.recode(codes), labels.astype(np.int32), rules, len(classes), weights)
        self.seed_ = _seed(self.random_state)
        grown = grow(source, self._chooser(rules), self.space_, classes, self.max_depth)
        self.tree_ = grown.prune()
        if self.previous is not None:
            if weights is not None:
                raise ValueError("sample_weight does not go with previous: leave one of them out.")
            self.tree_ = stay_close(self, X, y, self.seed_)
            self.classes_ = self.tree_.classes
        return self

    def _chooser(self, rules: Rules) -> Choose:
        sharpness = 2 * np.log(max(rules.n_candidates, 2)) / self.epsilon if self.epsilon else 0.0
        score, min_leaf, seed = CRITERIA[self.criterion], float(self.min_samples_leaf), self.seed_

        def choose(
            counts: ClassCounts, positions: NDArray[np.uint64]
        ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
            return choose_rules(
                counts.values, positions, rules.table, score, min_leaf, float(sharpness), seed
            )

        return choose

    def _check_parameters(self) -> None:
        check_scalar(self.max_depth, "max_depth", Integral, min_val=1, max_val=DEEPEST)
        check_scalar(self.epsilon, "epsilon", Real, min_val=0)
        check_scalar(self.n_thresholds, "n_thresholds", Integral, min_val=1, max_val=65_000)
        check_scalar(self.min_samples_leaf, "min_samples_leaf", Integral, min_val=1)
        check_scalar(self.max_score_loss, "max_score_loss", Real, min_val=0)
        if not np.isfinite(self.epsilon):
            raise ValueError(f"epsilon must be a finite number of at least 0, got {self.epsilon}.")
        if self.grid not in GRIDS:
            raise ValueError(f"grid must be one of {GRIDS}, got {self.grid!r}.")
        if self.criterion not in CRITERIA:
            raise ValueError(f"criterion must be one of {tuple(CRITERIA)}, got {self.criterion!r}.")


def _seed(random_state: Any) -> int:
    """A seed for hashed noise; a plain number is one already."""
    if isinstance(random_state, Integral) and 0 <= random_state <= np.iinfo(np.int64).max:
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
