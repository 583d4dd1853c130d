"""StableTreeClassifier: splits that stay the same when few rows are removed."""

import math
from collections.abc import Callable, Sequence
from numbers import Integral
from os import PathLike
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from steadytree._base.files import UsedPath, check_apart
from steadytree._base.parallel import allow_threads
from steadytree._base.validation import (
    Boolean,
    Integer,
    OneOf,
    Parameters,
    Real,
    Replaced,
    validate,
)
from steadytree.data.binning import GRIDS
from steadytree.data.blocks import DataFiles, FileParts, Paths
from steadytree.data.dask import DaskParts
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.labels import class_indices
from steadytree.data.out_of_core import OutOfCore, make_ready
from steadytree.data.sources import Rows, Source
from steadytree.data.splits import Bins, SplitTable
from steadytree.data.table import is_dask
from steadytree.models.base import TreeClassifierMixin, read_rows, with_class_weight
from steadytree.models.builder import grow, tree_positions
from steadytree.models.sklearn import as_tree
from steadytree.models.tree import Tree
from steadytree.stability._kernels.choose import COUNT, GINI, GUMBEL, REJECTION, SplitSampling
from steadytree.stability.split_sampling import (
    Levels,
    PreparedFit,
    SplitProbability,
    SplitSampler,
    check_lookahead,
    grow_few,
    split_probabilities,
)

CRITERIA = {"gini": GINI, "count": COUNT}
COUPLINGS = {"gumbel": GUMBEL, "rejection": REJECTION}
DEEPEST = 30
PARAMETERS: Parameters = {
    "max_depth": Integer(1, DEEPEST),
    "epsilon": Real(0, below=math.inf),
    "n_thresholds": Integer(1, 65_000),
    "min_samples_leaf": Integer(1),
    "previous": Replaced("RetrainedTreeClassifier(previous=..., estimator=this learner)"),
    "grid": OneOf(*GRIDS),
    "coupling": OneOf(*COUPLINGS),
    "lookahead": Integer(1, DEEPEST),
    "criterion": OneOf(*CRITERIA),
    "merge_leaves": Boolean(),
    "n_jobs": Integer(-1_000, also=(None,)),  # joblib counts backwards from all cores below 0
}


class StableTreeClassifier(TreeClassifierMixin, ClassifierMixin, BaseEstimator):
    """A tree whose splits are sampled so that adding or removing few rows rarely changes it.

    At each node a split is sampled with probability proportional to
    ``exp(2 log(n_splits) / epsilon * score / best score)``. The noise depends on the position in
    the tree, the feature and the threshold only, so that similar data sets share it.
    With ``epsilon=0`` the best split is taken and ties are broken by the same noise.
    Data of one class, or without any valid split, give a single leaf.

    Parameters
    ----------
    max_depth : int, default=5
        Maximum depth, 1 to 30.
    epsilon : float, default=0.1
        How much of a split's score may be given up, on average, for stability; 0 is greedy.
    n_thresholds : int, default=500
        Candidate thresholds per numeric feature for the grids "equidistant" and "quantile".
    grid : {"equidistant", "quantile", "midpoint"}, default="equidistant"
        Where candidate thresholds lie: evenly between a column's bounds, at equal shares of rows,
        or between all distinct values.
    criterion : {"gini", "count"}, default="gini"
        Rows times one minus Gini impurity, or rows in the majority class of their side: the
        published score, which stalls where no single split raises the accuracy.
    coupling : {"gumbel", "rejection"}, default="gumbel"
        How fits on similar data share their noise: hashed Gumbel noise for each threshold, or
        the published rejection sampling, which has the same distribution of trees but changes
        them more often. Not used with ``epsilon=0``.
    lookahead : int, default=1
        Score a split by the best tree of this depth that starts with it, found by exhaustive
        search; 1 scores the split alone. Above 1 for small data and the criterion "count" only.
    min_samples_leaf : int, default=1
        Minimum number of rows (or sum of weights, from 2 up) on each side of a split.
    random_state : int, RandomState or None, default=None
        Seed of the noise.
    previous : None
        Gone: `RetrainedTreeClassifier` learns near a tree in use.
    merge_leaves : bool, default=False
        Merge sibling leaves with equal labels, as published: a smaller tree with the same
        predictions, but coarser probabilities. Leaves that are not merged count one row more of
        each class (Laplace), so that small ones rank less far out; merged ones are plain shares.
    class_weight : dict, "balanced" or None, default=None
        Weights of classes, multiplied with those of the rows.
    bins : Tree, fitted StableTreeClassifier or None, default=None
        Use the candidate splits of that tree again, and without `random_state` its seed, so that
        only the rows can make the new tree differ. New columns, categories and values get bins too.
    n_jobs : int, optional
        Threads for binning, counting, choosing splits and predicting many rows; the tree does not
        depend on it. None is one, or what ``joblib.parallel_config`` says; -1 is all cores.

    Attributes
    ----------
    tree_ : Tree
        The fitted tree.
    classes_ : ndarray of shape (n_classes,)
        Labels seen in ``fit``; columns of ``predict_proba`` follow their order.
    space_ : FeatureSpace
        The columns with their candidate thresholds.
    score_bound_ : float or None
        Lower bound on the training accuracy, on average over seeds; None for "gini".
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
        criterion="gini",
        coupling="gumbel",
        lookahead=1,
        min_samples_leaf=1,
        random_state=None,
        previous=None,
        merge_leaves=False,
        class_weight=None,
        bins=None,
        n_jobs=None,
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
        self.merge_leaves = merge_leaves
        self.class_weight = class_weight
        self.bins = bins
        self.n_jobs = n_jobs

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, client: Any = None
    ) -> "StableTreeClassifier":
        """Fit the tree.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Numbers, text, categories; may have missing values. A dask array or dataframe is
            read, binned and counted where its partitions lie, and gives the same tree.
        y : array-like of shape (n_samples,)
            Class labels; a Dask collection where X is one.
        sample_weight : array-like of shape (n_samples,), optional
            A row of weight w counts as w equal rows; rows of weight 0 are left out. Not for Dask
            collections.
        client : distributed.Client, optional
            The cluster that a Dask collection is computed on; by default the active client, and
            without one Dask's own scheduler.

        Returns
        -------
        self : StableTreeClassifier
        """
        if is_dask(X) or is_dask(y):
            parts = DaskParts(X, y, client)
            self._check_out_of_core(sample_weight)
            validate_data(self, parts.sample, skip_check_array=True)
            return self._fit_out_of_core(parts)
        if client is not None:
            raise ValueError("client goes with Dask collections, but X is in memory: leave it out.")
        with allow_threads(self.n_jobs):
            prepared = self.prepare(X, y, sample_weight)
            self._fit_from(prepared, prepared.source())
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
            grid reuses it. By default a temporary folder is used and removed.
        progress : callable, optional
            Called with a line of text a few times a second, for example ``print``.

        Returns
        -------
        self : StableTreeClassifier
        """
        self._check_out_of_core()
        files = DataFiles(paths, target, columns)
        if cache is not None:
            read = [UsedPath(path, "read", "paths") for path in files.paths]
            check_apart([*read, UsedPath(cache, "fill", "cache")])
        with FileParts(files, cache, progress) as parts:
            self._fit_out_of_core(parts)
        self.n_features_in_ = len(files.names)
        self.feature_names_in_ = np.array(files.names, dtype=object)
        return self

    def _fit_from(self, prepared: PreparedFit, source: Source) -> None:
        self.classes_, self.space_ = prepared.classes, prepared.space
        self.seed_ = prepared.sampling.seed
        bins = Bins(prepared.space, prepared.splits.order, self.seed_)
        self.tree_, levels = self._grow(prepared, source, bins)
        self._splits, self._sampling_of_fit = prepared.splits, prepared.sampling
        self._levels = levels
        best = levels[0][1].max(initial=-1.0) if levels else -1.0
        majority = float(self.tree_.value[0].max() * self.tree_.weight[0])
        self.score_bound_ = self._score_bound(max(best, majority))

    def _fit_out_of_core(self, parts: OutOfCore) -> "StableTreeClassifier":
        space, classes, source = make_ready(parts, self.grid, self.n_thresholds)
        no_rows = np.empty((len(space), 0), np.uint8), np.empty(0, np.int32)
        splits = source.splits
        how = self._sampling(splits), self.max_depth
        self._fit_from(PreparedFit(space, *no_rows, classes, splits, *how), source)
        return self

    def _check_out_of_core(self, sample_weight: Any = None) -> None:
        """Refuse what needs all rows in memory."""
        self._validate()
        for name, given in (
            ("sample_weight", sample_weight is not None),
            ("class_weight", self.class_weight is not None),
            ("bins", self.bins is not None),
            ("lookahead above 1", self.lookahead > 1),
        ):
            if given:
                raise ValueError(f"{name} needs the rows in memory: leave it out, or load them.")

    def prepare(self, X: Any, y: Any, sample_weight: Any = None) -> PreparedFit:
        """Everything that `fit` needs; it can be repeated on some of the rows by `grow`."""
        self._validate()
        data = with_class_weight(read_rows(self, X, y, sample_weight), self.class_weight)
        weights = data.weights
        classes, labels = class_indices(data.labels)
        space, kept = FeatureSpace.observe(data), self._kept_bins()
        if kept is not None:
            space = kept.over(space)
        values = space.encode(data)
        fresh = space.with_thresholds(values, self.grid, self.n_thresholds, weights)
        known = () if kept is None else kept.space.names
        pairs = zip(space, fresh, strict=True)
        space = FeatureSpace(tuple(old if old.name in known else new for old, new in pairs))
        binned = space.binned(values)
        splits = SplitTable.of_rows(space, binned, labels, len(classes), weights, kept)
        binned = splits.merge_bins(binned, reuse=True)
        lookahead = min(self.lookahead, self.max_depth)
        check_lookahead(splits.n_splits, binned.size, lookahead, weights)
        return PreparedFit(
            space,
            binned,
            labels,
            classes,
            splits.once_merged(),
            self._sampling(splits),
            self.max_depth,
            lookahead,
            weights,
        )

    def grow(self, prepared: PreparedFit) -> Tree:
        """Grow the tree of a prepared fit, as `fit` does."""
        return self._grow(prepared, prepared.source())[0]

    def _grow(
        self, prepared: PreparedFit, source: Source, bins: Bins | None = None
    ) -> tuple[Tree, Levels]:
        merge, smoothing = prepared.sampling.merge, 0.0
        if not merge:  # one row of each class, or less where weights are small
            smoothing = 1.0 if prepared.weights is None else min(1.0, prepared.weights.mean())
        if isinstance(source, Rows) and prepared.is_small:
            return grow_few(prepared, merge, bins, float(smoothing))
        sampler = SplitSampler(prepared, source if isinstance(source, Rows) else None)
        how = prepared.max_depth, merge, bins, float(smoothing)
        return grow(source, sampler, prepared.classes, *how), sampler.levels

    def split_probabilities(self, node: int = 0) -> list[SplitProbability]:
        """Probability of each split at a node of ``tree_``, given the splits above it.

        Parameters
        ----------
        node : int, default=0
            An inner node; the root by default.

        Returns
        -------
        list of SplitProbability
            The most probable first; probabilities sum to 1.
        """
        check_is_fitted(self)
        Integer(0, self.tree_.n_nodes - 1).check(node, "node")
        if self.tree_.is_leaf[node]:
            raise ValueError(f"node {node} is a leaf: it has no split.")
        position = tree_positions(self.tree_)[node]
        for positions, scores in self._levels:
            here = np.flatnonzero(positions == position)
            if len(here):
                return split_probabilities(
                    self.space_, self._splits, self._sampling_of_fit, scores[here[0]]
                )
        raise ValueError(f"node {node} is too deep: scores are kept for the upper levels only.")

    def _score_bound(self, best: float) -> float | None:
        """Lower bound on the training accuracy, on average over seeds."""
        if self.criterion != "count":
            return None
        steps = 1 if self.lookahead == 1 else self.max_depth
        return float(max(1 - self.epsilon, 0.0) ** steps * best / self.tree_.weight[0])

    def _sampling(self, splits: SplitTable) -> SplitSampling:
        n_candidates = max(splits.n_candidates, 2)
        sharpness = 2 * np.log(n_candidates) / self.epsilon if self.epsilon else 0.0
        return SplitSampling(
            CRITERIA[self.criterion],
            float(self.min_samples_leaf),
            float(sharpness),
            COUPLINGS[self.coupling],
            self._seed(),
            bool(self.merge_leaves),
        )

    def _kept_bins(self) -> Bins | None:
        if self.bins is None:
            return None
        kept = as_tree(self.bins).bins
        if kept is None:
            raise ValueError(
                "bins must be a tree that StableTreeClassifier learned: this one keeps none."
            )
        return kept

    def _seed(self) -> int:
        """Seed of the hashed noise; a plain number is used as it is."""
        given, kept = self.random_state, self._kept_bins()
        if given is None and kept is not None:
            return kept.seed
        if isinstance(given, Integral) and 0 <= int(given) <= np.iinfo(np.int64).max:
            return int(given)
        return int(check_random_state(given).randint(np.iinfo(np.int32).max))

    def _validate(self) -> None:
        validate(self, PARAMETERS)
        if self.lookahead > 1 and self.criterion != "count":
            raise ValueError(
                f"lookahead={self.lookahead} counts correct rows: use criterion='count'."
            )
