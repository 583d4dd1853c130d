"""Removal: refit a tree without some of its rows."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from steadytree._base.parallel import fan_out
from steadytree.data.dataset import Dataset
from steadytree.distance._kernels import node_distance
from steadytree.distance.tree_distance import Distance, TreeNumbers, measure_distance
from steadytree.models._kernels import FlatTree
from steadytree.models.scorecard import Scorecard, as_card
from steadytree.models.sklearn import from_sklearn
from steadytree.models.tree import Tree
from steadytree.stability._kernels.choose import GUMBEL
from steadytree.stability._kernels.grow import FEATURE_BITS, grow_rows, regrow_without
from steadytree.stability._kernels.leave_out import leave_out
from steadytree.stability.split_sampling import PreparedFit


@dataclass(frozen=True, eq=False)
class Alternative:
    """A tree that results when rows are removed."""

    share: float  # of the removals that lead to it
    distance: float  # from the tree on all rows
    grow: Callable[[], Tree]  # called when `tree` is first read, since it costs a fit

    @cached_property
    def tree(self) -> Tree:
        """The tree itself."""
        return self.grow()


@dataclass(frozen=True, eq=False)
class Removal:
    """Trees without each of several sets of rows, for one seed."""

    removed: NDArray[np.int64]  # (n_sets, n_removed)
    distances: NDArray[np.float64]  # (n_sets,)
    alternatives: tuple[Alternative, ...]  # the distinct trees, the most frequent first
    depth: int  # that distances may be normalised by


def is_repeatable(estimator: Any) -> bool:
    """Whether an estimator can prepare its fit once and repeat it on some of its rows."""
    return all(callable(getattr(estimator, name, None)) for name in ("prepare", "grow"))


def remove_from_prepared(
    estimator: Any,
    prepared: PreparedFit,
    removed: NDArray[np.int64],
    distance: Distance,
    n_alternatives: int,
) -> Removal:
    """Repeat a fit without each set of rows; bins, splits and noise are those of all rows."""
    if prepared.lookahead > 1:
        regrown = [_grow_without(estimator, prepared, rows) for rows in removed]
        whole = estimator.grow(prepared)
        return _compare(whole, regrown, removed, distance, n_alternatives, prepared.max_depth)
    distances, tags = _distances_and_tags(prepared, removed)
    _, first, inverse, counts = np.unique(
        tags, return_index=True, return_inverse=True, return_counts=True
    )
    if distance == "node-features":
        distances = _feature_distances(prepared, removed[first])[inverse.ravel()]
    elif distance != "node":
        whole = estimator.grow(prepared)
        trees = (_grow_without(estimator, prepared, removed[k]) for k in first)
        known = np.array([measure_distance(whole, tree, distance) for tree in trees])
        distances = known[inverse.ravel()]
    alternatives = tuple(
        Alternative(
            float(counts[k] / len(removed)),
            float(distances[first[k]]),
            partial(_grow_without, estimator, prepared, removed[first[k]]),
        )
        for k in np.argsort(-counts, kind="stable")[:n_alternatives]
    )
    return Removal(removed, distances, alternatives, prepared.max_depth)


def refit_without(
    estimator: Any,
    data: Dataset,
    removed: NDArray[np.int64],
    distance: Distance,
    n_alternatives: int,
    n_jobs: int | None,
) -> Removal:
    """Clone and refit any estimator of a tree; bins are then those of the remaining rows."""
    whole = _refit(np.empty(0, np.int64), estimator, data)
    trees = fan_out(_refit, list(removed), estimator, data, n_jobs=n_jobs)
    depth = max(tree.depth for tree in (whole, *trees))
    return _compare(whole, trees, removed, distance, n_alternatives, depth)


def _refit(without: NDArray[np.int64], estimator: Any, data: Dataset) -> Tree:
    return fit_tree(np.setdiff1d(np.arange(data.n_rows), without), estimator, data)


def fit_tree(rows: NDArray[np.int64], estimator: Any, data: Dataset) -> Tree:
    """The tree that a fresh copy of an estimator learns from some of the rows."""
    return _tree_of(_fit(rows, estimator, data), data)


def fit_model(rows: NDArray[np.int64], estimator: Any, data: Dataset) -> Tree | Scorecard:
    """The tree or scorecard that a fresh copy of an estimator learns from some of the rows."""
    fitted = _fit(rows, estimator, data)
    card = as_card(fitted)
    return _tree_of(fitted, data) if card is None else card


def _fit(rows: NDArray[np.int64], estimator: Any, data: Dataset) -> Any:
    part = data.take(rows)
    return clone(estimator).fit(part.form_for(estimator), part.labels)


def _tree_of(fitted: Any, data: Dataset) -> Tree:
    # scikit-learn's trees do not keep whether there were missing values: the rows show it
    is_ours = isinstance(getattr(fitted, "tree_", None), Tree)
    return fitted.tree_ if is_ours else from_sklearn(fitted, data)


def _grow_without(estimator: Any, prepared: PreparedFit, rows: NDArray[np.int64]) -> Tree:
    kept = np.ones(prepared.n_rows, bool)
    kept[rows] = False
    return estimator.grow(prepared.take(kept))


def _distances_and_tags(
    prepared: PreparedFit, removed: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.uint64]]:
    """Node distances and tags: single rows all at once, larger sets by growing each tree."""
    sampling, n = prepared.sampling, prepared.n_rows
    if removed.shape[1] > 1 or (sampling.coupling != GUMBEL and sampling.sharpness > 0):
        _, distances, tags = regrow_without(*prepared.arrays, removed, prepared.max_depth)
        return distances.astype(np.float64), tags
    label, size, distance = np.zeros((3, n), np.int64)
    tag = np.zeros(n, np.uint64)
    single = np.unique(removed[:, 0])
    out = label, size, tag, distance
    leave_out(*prepared.arrays, np.arange(n), single, np.uint64(0), prepared.max_depth, out)
    return distance[removed[:, 0]].astype(np.float64), tag[removed[:, 0]]


def _feature_distances(prepared: PreparedFit, removed: NDArray[np.int64]) -> NDArray[np.float64]:
    """Node distances where two splits are equal if their features are."""
    every = np.arange(prepared.n_rows)

    def features_of(rows: NDArray[np.int64]) -> FlatTree:
        tree = grow_rows(*prepared.arrays, rows, prepared.max_depth)
        return tree._replace(key=tree.key >> FEATURE_BITS)

    whole = features_of(every)
    others = (features_of(np.delete(every, rows)) for rows in removed)
    return np.array([float(node_distance(whole, other)[0]) for other in others])


def _compare(
    whole: Tree,
    trees: list[Tree],
    removed: NDArray[np.int64],
    distance: Distance,
    n_alternatives: int,
    depth: int,
) -> Removal:
    """Distances and frequencies of trees that are all known."""
    numbers = TreeNumbers([whole, *trees])
    tags = np.array([numbers.flat(tree).tag[0] for tree in trees])
    _, first, inverse, counts = np.unique(
        tags, return_index=True, return_inverse=True, return_counts=True
    )
    known = np.array([measure_distance(whole, trees[k], distance) for k in first])
    order = np.argsort(-counts, kind="stable")[:n_alternatives]
    alternatives = tuple(
        Alternative(
            float(counts[k] / len(trees)), float(known[k]), partial(_known, trees[first[k]])
        )
        for k in order
    )
    return Removal(removed, known[inverse.ravel()], alternatives, depth)


def _known(tree: Tree) -> Tree:  # a lambda could not be pickled
    return tree
