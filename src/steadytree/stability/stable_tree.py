"""StableTreeClassifier: splits that stay when rows go."""

from collections.abc import Callable, Sequence
from numbers import Integral
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from steadytree._base.paths import Place, check_apart
from steadytree._base.validation import check_number, check_whole_number
from steadytree.data.binning import GRIDS
from steadytree.data.blocks import DataFiles, FileParts, Paths
from steadytree.data.dask import DaskParts
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.out_of_core import OutOfCore, make_ready
from steadytree.data.sources import Rows, Source
from steadytree.data.splits import SplitTable
from steadytree.data.table import is_dask
from steadytree.models.base import TreeClassifierMixin, read_rows
from steadytree.models.grower import grow, tree_positions
from steadytree.models.tree import Tree
from steadytree.stability._kernels.choose import COUNT, GINI, GUMBEL, REJECTION, Draw
from steadytree.stability.near_previous import stay_close
from steadytree.stability.split_sampling import (
    PreparedFit,
    SplitProbability,
    SplitSampler,
    split_probabilities,
)

CRITERIA = {"count": COUNT, "gini": GINI}
COUPLINGS = {"gumbel": GUMBEL, "rejection": REJECTION}
MOST_TRIALS = 20_000_000_000  # cells a look-ahead may read: about a minute
DEEPEST = 30


class StableTreeClassifier(TreeClassifierMixin, ClassifierMixin, BaseEstimator):
    """A tree whose splits are drawn so that few rows more or less leave it as it is.

    At each node a rule is drawn with probability proportional to
    ``exp(2 log(n_splits) / epsilon * score / best score)``; the noise of the draw is tied to the
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
    coupling : {"gumbel", "rejection"}, default="gumbel"
        How trees of neighbouring data share their noise: hashed Gumbel noise a threshold, or
        the published rejection sampling, which gives the same trees as often and changes them
        more. No matter for ``epsilon=0``.
    lookahead : int, default=1
        Judge a split by the best tree of this depth below it, found by trying all of them; 1
        judges by the split alone. Above 1 for small data only, and with the criterion "count".
    min_samples_leaf : int, default=1
        Least rows (or summed weights, from 2 up) on each side of a split.
    random_state : int, RandomState or None, default=None
        Seed of the noise.
    previous : Tree, fitted learner or fitted scikit-learn tree, default=None
        The tree in use, to stay close to: as much of it is kept as the accuracy allows. The new
        tree has its classes and those of ``y``.
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
    score_bound_ : float or None
        Share of training rows that trees of this fit get right at least, on average over seeds;
        None for the criterion "gini".
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
        coupling="gumbel",
        lookahead=1,
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
        self.coupling = coupling
        self.lookahead = lookahead
        self.min_samples_leaf = min_samples_leaf
        self.random_state = random_state
        self.previous = previous
        self.max_score_loss = max_score_loss

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, seen: Any = None, client: Any = None
    ) -> "StableTreeClassifier":
        """Fit the tree.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Numbers, text, categories; missing values welcome. A dask array or dataframe is read,
            binned and counted where its partitions lie, and gives the same tree.
        y : array-like of shape (n_samples,)
            Class labels; a Dask collection where X is one.
        sample_weight : array-like of shape (n_samples,), optional
            A row of weight w counts as w equal rows; rows of weight 0 are left out. Not for Dask
            collections.
        seen : bool array-like of shape (n_samples,), optional
            Rows that `previous` was learned from. They do not judge it, since on them it would
            look better than it is.
        client : distributed.Client, optional
            The cluster that a Dask collection is computed on; by default the active client, and
            without one Dask's own scheduler.

        Returns
        -------
        self : StableTreeClassifier
        """
        if seen is not None and self.previous is None:
            raise ValueError("seen tells which rows previous was learned from: give previous too.")
        if is_dask(X) or is_dask(y):
            parts = DaskParts(X, y, client)
            self._check_elsewhere(sample_weight)
            validate_data(self, parts.sample, skip_check_array=True)
            return self._fit_elsewhere(parts)
        if client is not None:
            raise ValueError("client goes with Dask collections, but X is in memory: leave it out.")
        recipe = self.recipe(X, y, sample_weight)
        rows = Rows(recipe.codes, recipe.labels, recipe.rules, recipe.n_classes, recipe.weights)
        self._fit_from(recipe, rows)
        if self.previous is not None:
            self._stay_close(X, recipe, seen)
        return self

    def fit_files(
        self,
        paths: Paths,
        target: str,
        columns: Sequence[str] | None = None,
        cache: str | PathLike[str] | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> "StableTreeClassifier":
        """Fit the tree on Parquet or Arrow files with more rows than memory holds.

        The files are read twice: for ranges, categories and labels, then to write the bins of
        all rows, one or two bytes a value, to a folder. The tree is the one that ``fit`` grows
        on the same rows in memory.

        Parameters
        ----------
        paths : path of a file or of a folder of files, or a list of them
            All with the same columns.
        target : str
            The column of labels.
        columns : list of str, optional
            The columns to learn from; by default all others.
        cache : path, optional
            Folder for the binned rows. It is kept, and a later fit on the same files, columns and
            grid begins there. By default a temporary folder is used and removed.
        progress : callable, optional
            Told in words, a few times a second, what is being done; ``print`` will do.

        Returns
        -------
        self : StableTreeClassifier
        """
        self._check_elsewhere()
        files = DataFiles(paths, target, columns)
        if cache is not None:
            read = [Place(path, "read", "paths") for path in files.paths]
            check_apart([*read, Place(cache, "fill", "cache")])
        with FileParts(files, cache, progress) as parts:
            self._fit_elsewhere(parts)
        self.n_features_in_ = len(files.names)
        self.feature_names_in_ = np.array(files.names, dtype=object)
        return self

    def _fit_from(self, recipe: PreparedFit, source: Source) -> None:
        self.classes_, self.space_, self.seed_ = recipe.classes, recipe.space, recipe.draw.seed
        self.tree_, chooser = self._grow(recipe, source)
        self._rules, self._draw_, self._levels = recipe.rules, recipe.draw, chooser.levels
        best = chooser.levels[0][1].max(initial=-1.0) if chooser.levels else -1.0
        self.score_bound_ = self._score_bound(max(best, self._majority()))

    def _fit_elsewhere(self, parts: OutOfCore) -> "StableTreeClassifier":
        space, classes, source = make_ready(parts, self.grid, self.n_thresholds)
        self._fit_from(self._recipe_without_rows(space, classes, source.splits), source)
        return self

    def _recipe_without_rows(
        self, space: FeatureSpace, classes: NDArray[Any], rules: SplitTable
    ) -> PreparedFit:
        codes, labels = np.empty((len(space), 0), np.uint8), np.empty(0, np.int32)
        return PreparedFit(space, codes, labels, classes, rules, self._draw(rules), self.max_depth)

    def _check_elsewhere(self, sample_weight: Any = None) -> None:
        """Refuse what needs all rows in memory."""
        self._check_parameters()
        for name, given in (
            ("sample_weight", sample_weight is not None),
            ("previous", self.previous is not None),
            ("lookahead above 1", self.lookahead > 1),
        ):
            if given:
                raise ValueError(f"{name} needs the rows in memory: leave it out, or load them.")

    def _stay_close(self, X: Any, recipe: PreparedFit, seen: Any) -> None:
        """Put a tree near `previous` in place of the one learned wholly anew."""
        if recipe.weights is not None:
            raise ValueError("sample_weight does not go with previous: leave one of them out.")
        self.tree_ = stay_close(self, X, recipe.classes[recipe.labels], self.seed_, seen)
        self.classes_ = self.tree_.classes
        self.score_bound_, self._levels = None, []  # both are about the other tree

    def recipe(self, X: Any, y: Any, sample_weight: Any = None) -> PreparedFit:
        """Everything `fit` needs, made ready: also what repeats the fit on some of the rows."""
        self._check_parameters()
        data = read_rows(self, X, y, sample_weight)
        weights = data.weights
        classes, labels = np.unique(data.labels, return_inverse=True)
        space = FeatureSpace.observe(data)
        values = space.encode(data)
        space = space.with_thresholds(values, self.grid, self.n_thresholds, weights)
        codes = space.binned(values)
        rules = SplitTable.of(space, space.occupied(codes))
        codes, lookahead = rules.merge_bins(codes), min(self.lookahead, self.max_depth)
        _check_trials(rules.n_splits, codes.size, lookahead, weights)
        return PreparedFit(
            space,
            codes,
            labels.astype(np.int32),
            classes,
            rules,
            self._draw(rules),
            self.max_depth,
            lookahead,
            weights,
        )

    def grow(self, recipe: PreparedFit) -> Tree:
        """Grow the tree of a recipe: what `fit` does with it."""
        if self.previous is not None:
            raise ValueError("a fit that stays close to previous cannot be repeated: leave it out.")
        rows = Rows(recipe.codes, recipe.labels, recipe.rules, recipe.n_classes, recipe.weights)
        return self._grow(recipe, rows)[0]

    def _grow(self, recipe: PreparedFit, source: Source) -> tuple[Tree, SplitSampler]:
        chooser = SplitSampler(recipe, source if isinstance(source, Rows) else None)
        tree = grow(source, chooser, recipe.classes, recipe.max_depth)
        return tree, chooser

    def split_probabilities(self, node: int = 0) -> list[SplitProbability]:
        """How likely each question was at a node of ``tree_``, given the questions above it.

        Parameters
        ----------
        node : int, default=0
            An inner node; the root by default.

        Returns
        -------
        list of SplitProbability
            The likeliest first; probabilities sum to 1.
        """
        check_is_fitted(self)
        check_whole_number(node, "node", 0, self.tree_.n_nodes - 1)
        if self.tree_.is_leaf[node]:
            raise ValueError(f"node {node} is a leaf: nothing is asked there.")
        position = tree_positions(self.tree_)[node]
        for positions, scores in self._levels:
            here = np.flatnonzero(positions == position)
            if len(here):
                return split_probabilities(self.space_, self._rules, self._draw_, scores[here[0]])
        raise ValueError(f"node {node} is too deep: scores are kept for the upper levels only.")

    def _majority(self) -> float:
        return float(self.tree_.value[0].max() * self.tree_.weight[0])

    def _score_bound(self, best: float) -> float | None:
        """Share of training rows that the tree gets right at least, on average over seeds."""
        if self.criterion != "count":
            return None
        steps = 1 if self.lookahead == 1 else self.max_depth
        return float(max(1 - self.epsilon, 0.0) ** steps * best / self.tree_.weight[0])

    def _draw(self, rules: SplitTable) -> Draw:
        n_candidates = max(rules.n_candidates, 2)
        sharpness = 2 * np.log(n_candidates) / self.epsilon if self.epsilon else 0.0
        return Draw(
            CRITERIA[self.criterion],
            float(self.min_samples_leaf),
            float(sharpness),
            COUPLINGS[self.coupling],
            _seed(self.random_state),
        )

    def _check_parameters(self) -> None:
        check_whole_number(self.max_depth, "max_depth", 1, DEEPEST)
        check_number(self.epsilon, "epsilon", 0)
        check_whole_number(self.n_thresholds, "n_thresholds", 1, 65_000)
        check_whole_number(self.min_samples_leaf, "min_samples_leaf", 1)
        check_number(self.max_score_loss, "max_score_loss", 0)
        if not np.isfinite(self.epsilon):
            raise ValueError(f"epsilon must be a finite number of at least 0, got {self.epsilon}.")
        if self.grid not in GRIDS:
            raise ValueError(f"grid must be one of {GRIDS}, got {self.grid!r}.")
        if self.coupling not in COUPLINGS:
            raise ValueError(f"coupling must be one of {tuple(COUPLINGS)}, got {self.coupling!r}.")
        check_whole_number(self.lookahead, "lookahead", 1, DEEPEST)
        if self.lookahead > 1 and self.criterion != "count":
            raise ValueError(
                f"lookahead={self.lookahead} counts rows that are right: use criterion='count'."
            )
        if self.criterion not in CRITERIA:
            raise ValueError(f"criterion must be one of {tuple(CRITERIA)}, got {self.criterion!r}.")


def _seed(random_state: Any) -> int:
    """A seed for hashed noise; a plain number is one already."""
    if isinstance(random_state, Integral) and 0 <= int(random_state) <= np.iinfo(np.int64).max:
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def _check_trials(n_splits: int, n_cells: int, lookahead: int, weights: Any) -> None:
    """Refuse a look-ahead that would not end."""
    if lookahead == 1:
        return
    if weights is not None:
        raise ValueError("sample_weight works with lookahead=1 only: leave one of them out.")
    trials = float(n_splits) ** (lookahead - 1) * n_cells
    if trials > MOST_TRIALS:
        raise ValueError(
            f"lookahead={lookahead} would read about {trials:.0e} cells, more than "
            f"{MOST_TRIALS:.0e}: use a smaller lookahead, or fewer thresholds or rows."
        )
