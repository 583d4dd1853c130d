"""SteadyTreeClassifier: one small tree, taught by an ensemble, that stays when rows change."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state

from steadytree._base.validation import Integer, Parameters, validate
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.parts import Parts, is_parted
from steadytree.metrics.recount import recount_tree
from steadytree.models.base import TreeClassifierMixin, fit_sample, read_rows, warn_of_few_leaves
from steadytree.models.tree import LEAF, Tree
from steadytree.stability._kernels.steady import hash_rows, swap_values
from steadytree.stability.grouped_bins import GroupedBins
from steadytree.stability.small_tree import SmallTree, TaughtRows
from steadytree.stability.teacher import BinnedRows, Teacher

Floats = NDArray[np.float64]
N_MADE = 20_000  # made-up rows at least
MADE_WEIGHT = 50.0  # times the weight of the real rows
SWAP_RATE = 0.25
LEAF_PRIOR = 5.0  # rows that a leaf's made-up rows count as in its probability
N_QUANTILES = 1024
DIGITS = 10  # of leaf probabilities
PARAMETERS: Parameters = {
    "max_leaf_nodes": Integer(2, 32),
    "min_samples_leaf": Integer(1),
    "max_depth": Integer(1, also=(None,)),
}


class Choice(NamedTuple):
    """Whether a teacher was used, why, and how well the tree follows it.

    Log losses are those of probabilities for rows that the teacher had not seen; `agreement` is
    the share of rows that tree and teacher decide alike, nan without a teacher.
    """

    teacher: bool
    reason: str
    teacher_loss: float
    share_loss: float
    agreement: float


class SteadyTreeClassifier(TreeClassifierMixin, ClassifierMixin, BaseEstimator):
    """A small tree that keeps its splits and its decisions when it is learned again.

    An ensemble (100 bagged trees and a logistic regression, stacked) gives each row the
    probability it has where the row was not learned from, and labels made-up rows, copies of the
    rows with some values swapped for those of others. One tree of few leaves is grown on both, best
    first; of columns and thresholds that are nearly as good as the best, the first column and
    the roundest threshold are chosen. Then each split is chosen anew beside the others, and a
    tree with another first split is taken if it is clearly better. Where the ensemble predicts
    unseen rows no better than the class shares, the labels themselves are learned from. Every
    draw is a hash of the row's content, so the same rows give the same tree in whichever order
    they come.

    Parameters
    ----------
    max_leaf_nodes : int, default=8
        Most leaves, 2 to 32. Chosen by the user: a size chosen anew in each fit changes the tree.
    max_depth : int, optional
        Most splits on the way to a leaf; None, the default, sets no limit of its own.
    min_samples_leaf : int, default=5
        Least rows (or summed weights) in a leaf, as a share of real and made-up rows together.
    class_weight : dict, "balanced" or None, default=None
        Weights of classes, multiplied with those of the rows.
    monotonic_cst : dict or array-like of {-1, 0, 1}, default=None
        By column name, or one a column: 1 where the probability of the second class must not fall
        as the column rises, -1 where it must not rise. For numbers and two classes only.
    random_state : int, RandomState or None, default=0
        Seed of the draws; a number gives the same tree for the same rows.

    Attributes
    ----------
    tree_ : Tree
        The fitted tree; its values are probabilities, smoothed by the teacher.
    choice_ : Choice
        Whether a teacher was used and why, and why the first split is not the greedy one.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray of str, where X had column names

    Notes
    -----
    A row of weight w counts as w equal rows. Weights that sum to less than the number of
    different rows are scaled up to it, so that their unit does not matter.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> model = SteadyTreeClassifier().fit(X, y)
    >>> model.tree_.n_leaves, bool(model.score(X, y) > 0.93), model.choice_.teacher
    (8, True, True)
    """

    def __init__(
        self,
        max_leaf_nodes=8,
        min_samples_leaf=5,
        max_depth=None,
        class_weight=None,
        monotonic_cst=None,
        random_state=0,
    ):
        self.max_leaf_nodes = max_leaf_nodes
        self.min_samples_leaf = min_samples_leaf
        self.max_depth = max_depth
        self.class_weight = class_weight
        self.monotonic_cst = monotonic_cst
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "SteadyTreeClassifier":
        """Fit the tree.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Numbers, text, categories; missing values welcome.
        y : array-like of shape (n_samples,)
            Class labels. X may be a Parquet or Arrow file or a folder of such, y then being the
            name of the target, or both may be Dask collections: of more than 100,000 rows the
            splits are learned from so many, drawn by chance, and the leaves count all rows.
        sample_weight : array-like of shape (n_samples,), optional
            A row of weight w counts as w equal rows; rows of weight 0 are left out.

        Returns
        -------
        self : SteadyTreeClassifier
        """
        validate(self, PARAMETERS)
        if is_parted(X):
            return self._fit_parts(Parts.of(X, y), sample_weight)
        data = read_rows(self, X, y, sample_weight)
        self.classes_, labels = np.unique(data.labels, return_inverse=True)
        warn_of_few_leaves(X, len(self.classes_), self.max_leaf_nodes)
        space = FeatureSpace.observe(data)
        directions = _directions(self.monotonic_cst, space, len(self.classes_))
        values = np.array(space.encode(data), dtype=np.float64, order="C") + 0.0  # no minus zero
        weights = np.ones(data.n_rows) if data.weights is None else data.weights
        weights = (
            weights * _class_weights(self.class_weight, self.classes_, labels, weights)[labels]
        )
        values, labels, weights, hashes = _merge_equal(values, labels, weights)
        hot = np.eye(len(self.classes_))[labels]
        targets = hot[:, 1:] if hot.shape[1] == 2 else hot
        scale = max(1.0, len(weights) / weights.sum())
        bins = GroupedBins.of(space, values, targets, weights * scale)
        rows = BinnedRows(
            bins.binned(values), targets, weights * scale, hashes, bins.n_bins, bins.kinds
        )
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        grown, self.choice_ = self._learn(rows, bins, directions, seed)
        self.tree_ = _make_tree(bins, self.classes_, rows, grown, directions, 1 / scale)
        return self

    def _fit_parts(self, parts: Parts, sample_weight: Any) -> "SteadyTreeClassifier":
        """Learn the splits from a sample of the rows, and count all of them at the leaves."""
        rows = fit_sample(self, parts, sample_weight, ("class_weight", "monotonic_cst"))
        if rows.note:
            note = f"Its splits were learned from {rows.note}; its leaves count all rows."
            self.tree_ = replace(recount_tree(self.tree_, parts, LEAF_PRIOR), note=note)
        return self

    def _learn(
        self, rows: BinnedRows, bins: GroupedBins, directions: NDArray[np.int64], seed: int
    ) -> tuple["_Grown", Choice]:
        """The small tree, from a teacher if one learns anything."""
        nan = float("nan")
        if len(self.classes_) == 1 or (rows.n_bins < 2).all():
            one = "there is one class only" if len(self.classes_) == 1 else "no column varies"
            return _leaf_alone(rows), Choice(False, f"{one}: a single leaf.", nan, nan, nan)
        teacher = Teacher(rows, seed)
        losses = f"log loss {teacher.loss:.3f}, {teacher.share_loss:.3f} by the class shares"
        taught = teacher.loss < teacher.share_loss
        grown = self._grow(rows, bins.roundness, directions, teacher if taught else None, seed)
        start = _why_root(grown.tree, bins.space)
        if not taught:
            reason = (
                f"fitted to the labels: an ensemble predicts held-out rows no better ({losses})."
            )
            return grown, Choice(False, reason + start, teacher.loss, teacher.share_loss, nan)
        same = _answers(grown.value[grown.leaves]) == _answers(teacher.unseen)
        agreement = float(rows.weights @ same / rows.weights.sum())
        reason = f"fitted to an ensemble that predicts held-out rows ({losses}).{start}"
        return grown, Choice(True, reason, teacher.loss, teacher.share_loss, agreement)

    def _grow(
        self,
        rows: BinnedRows,
        roundness: Floats,
        directions: NDArray[np.int64],
        teacher: Teacher | None,
        seed: int,
    ) -> "_Grown":
        binned, targets, weights = rows.binned, rows.targets, rows.weights
        least = float(self.min_samples_leaf)
        made = np.empty((0, binned.shape[1]), np.uint8)
        made_targets, made_weights = np.empty((0, targets.shape[1])), np.empty(0)
        if teacher is not None:
            n_copies = -(-N_MADE // len(binned))
            made = swap_values(
                binned, rows.hashes, n_copies, SWAP_RATE, _quantiles(rows), np.uint64(seed)
            )
            targets, made_targets = teacher.unseen, teacher.predict(made)
            made_weights = np.repeat(weights * (MADE_WEIGHT / n_copies), n_copies)
            least *= 1 + MADE_WEIGHT
        taught = TaughtRows(
            np.vstack([binned, made]),
            np.vstack([targets, made_targets]),
            np.concatenate([weights, made_weights]),
            rows.n_bins,
            rows.kinds,
            directions,
            roundness,
        )
        tree = SmallTree.learn(
            taught, self.max_leaf_nodes, least, self.max_depth or self.max_leaf_nodes
        )
        leaves = tree.leaves(binned)
        weight, sums = tree.node_sums(leaves, weights, targets)
        if teacher is None:
            return _Grown(tree, sums / weight[:, None], leaves)
        made_weight, made_sums = tree.node_sums(tree.leaves(made), made_weights, made_targets)
        prior = np.where(made_weight > 0, LEAF_PRIOR, 0.0)
        means = made_sums / np.where(made_weight > 0, made_weight, 1.0)[:, None]
        return _Grown(tree, (sums + prior[:, None] * means) / (weight + prior)[:, None], leaves)


class _Grown(NamedTuple):
    """The small tree, the probabilities of its nodes, and the leaf of each row."""

    tree: SmallTree
    value: Floats
    leaves: NDArray[np.int64]


def _leaf_alone(rows: BinnedRows) -> _Grown:
    none, zero = np.array([LEAF]), np.zeros(len(rows.binned), np.int64)
    return _Grown(SmallTree(none, np.zeros(1, np.uint64), none), rows.shares[None], zero)


def _why_root(tree: SmallTree, space: FeatureSpace) -> str:
    """A sentence where the first split is not the greedy one."""
    if tree.better == 1.0:
        return ""
    chosen, greedy = space[int(tree.feature[0])].name, space[tree.greedy_root].name
    more = round(100 * (tree.better - 1))
    return (
        f" A first split on {chosen!r} explains {more} % more than on {greedy!r}, the greedy one."
    )


def _quantiles(rows: BinnedRows) -> NDArray[np.uint8]:
    """Bins at equal steps of each column's distribution (d, N_QUANTILES)."""
    levels = (np.arange(N_QUANTILES) + 0.5) / N_QUANTILES
    found = [
        np.searchsorted(np.cumsum(np.bincount(column, rows.weights)) / rows.weights.sum(), levels)
        for column in rows.binned.T
    ]
    return np.minimum(np.array(found), rows.n_bins[:, None] - 1).astype(np.uint8)


def _answers(value: Floats) -> NDArray[np.int64]:
    return (value[:, 0] > 0.5).astype(np.int64) if value.shape[1] == 1 else value.argmax(axis=1)


def _make_tree(
    bins: GroupedBins,
    classes: NDArray[Any],
    rows: BinnedRows,
    grown: _Grown,
    directions: NDArray[np.int64],
    scale: float,
) -> Tree:
    small, n_nodes = grown.tree, len(grown.tree.left)
    weight = small.node_sums(grown.leaves, rows.weights, rows.targets)[0]
    threshold, missing_left = np.full(n_nodes, np.nan), np.zeros(n_nodes, bool)
    subset = np.zeros((n_nodes, int(bins.space.n_categories.max())), bool)
    left, right = small.left.copy(), np.where(small.left == LEAF, LEAF, small.left + 1)
    for node in np.flatnonzero(left != LEAF):
        larger_left = bool(weight[left[node]] >= weight[right[node]])
        chosen = bins.split_at(int(small.feature[node]), int(small.bins[node]), larger_left)
        threshold[node], subset[node], missing_left[node] = chosen[:3]
        if chosen.swapped:
            left[node], right[node] = right[node], left[node]
    # sums of matrix products depend on the number of threads in their last bits
    value = np.round(grown.value, DIGITS)
    if directions.any():
        ways = np.where(np.isinf(threshold) | (left == LEAF), 0, directions[small.feature])
        value = _monotone(value[:, 0], left, right, ways)[:, None]
    if len(classes) == 2:
        value = np.column_stack([1 - value, value])
    value = value / value.sum(axis=1, keepdims=True)
    return Tree(
        bins.space,
        classes,
        small.feature,
        threshold,
        left,
        right,
        value,
        weight * scale,
        missing_left,
        subset,
    )


def _monotone(
    value: Floats, left: NDArray[np.int64], right: NDArray[np.int64], ways: NDArray[np.int64]
) -> Floats:
    """Values kept apart at each node with a direction by the middle of its children's.

    Two rows that differ in one column part at a node that asks it, so this is all it takes.
    """
    value, low, high = value.copy(), np.zeros(len(value)), np.ones(len(value))
    for node in range(len(value)):  # parents come first
        value[node] = np.clip(value[node], low[node], high[node])
        if left[node] == LEAF:
            continue
        children = np.array([left[node], right[node]])
        low[children], high[children] = low[node], high[node]
        if ways[node]:
            below, above = children[:: ways[node]]
            middle = np.clip(value[children], low[node], high[node]).mean()
            high[below], low[above] = middle, middle
    return value


def _merge_equal(
    values: Floats, labels: NDArray[np.int64], weights: Floats
) -> tuple[Floats, NDArray[np.int64], Floats, NDArray[np.uint64]]:
    """Rows that differ, in order of their hashes, with the summed weights of equal ones."""
    values[np.isnan(values)] = np.nan  # one bit pattern for all that are missing
    words = np.ascontiguousarray(np.column_stack([values, labels.astype(np.float64)]))
    found = hash_rows(words.view(np.uint64))
    hashes, first, position = np.unique(found, return_index=True, return_inverse=True)
    summed: Floats = np.bincount(position, weights).astype(np.float64)
    return values[first], labels[first], summed, hashes


def _class_weights(
    class_weight: Any, classes: NDArray[Any], labels: NDArray[np.int64], weights: Floats
) -> Floats:
    """The factor of each class."""
    factors = np.ones(len(classes))
    if class_weight is None:
        return factors
    if class_weight == "balanced":
        counts = np.bincount(labels, weights, len(classes))
        return weights.sum() / (len(classes) * counts)
    if not isinstance(class_weight, Mapping):
        raise ValueError(
            f"class_weight must be None, 'balanced' or a dict of weights, got {class_weight!r}."
        )
    listed = classes.tolist()
    for label, factor in class_weight.items():
        if not isinstance(factor, int | float | np.number) or not 0 < factor < np.inf:
            raise ValueError(
                f"class_weight must be above 0 and finite, got {factor!r} for {label!r}: "
                "drop the rows of a class that must not count."
            )
        if label in listed:  # other labels may be in other folds
            factors[listed.index(label)] = factor
    return factors


def _directions(constraints: Any, space: FeatureSpace, n_classes: int) -> NDArray[np.int64]:
    """-1, 0 or 1 for each column."""
    directions = np.zeros(len(space), np.int64)
    if constraints is None:
        return directions
    if isinstance(constraints, Mapping):
        unknown = [name for name in constraints if name not in space.names]
        if unknown:
            raise ValueError(f"monotonic_cst names {unknown[0]!r}, which X does not have.")
        listed = [constraints.get(name, 0) for name in space.names]
    else:
        listed = list(np.asarray(constraints).ravel().tolist())
    if len(listed) != len(space) or any(way not in (-1, 0, 1) for way in listed):
        raise ValueError(
            f"monotonic_cst must hold -1, 0 or 1 for each of {len(space)} columns, got {listed}."
        )
    directions[:] = listed
    if directions.any() and n_classes > 2:
        raise ValueError(f"monotonic_cst needs two classes, got {n_classes}: leave it out.")
    for column, way in zip(space, directions, strict=True):
        if way and column.is_categorical and not column.ordered:
            text = "holds categories, which do not rise: make it an ordered Categorical."
            raise ValueError(f"monotonic_cst: column {column.name!r} {text}")
    return directions
