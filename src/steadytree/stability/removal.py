"""Removal: refit a tree without some of its rows, or after another change of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from steadytree._base.exceptions import NotATreeError
from steadytree._base.parallel import fan_out
from steadytree._base.progress import OnProgress
from steadytree.data.dataset import Dataset
from steadytree.distance._kernels import node_distance
from steadytree.distance.tree_distance import Distance, TreeNumbers, measure_distance
from steadytree.models._kernels import FlatTree
from steadytree.models.boxes import shared_space
from steadytree.models.scorecard import Scorecard, as_scorecard
from steadytree.models.sklearn import as_tree, from_sklearn
from steadytree.models.tree import Tree
from steadytree.stability._kernels.choose import GUMBEL
from steadytree.stability._kernels.grow import FEATURE_BITS, grow_rows, regrow_without
from steadytree.stability._kernels.leave_out import leave_out
from steadytree.stability.split_sampling import PreparedFit

Integers = NDArray[np.int64]


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


ROUNDING = 2.0**-22  # of a number, by single precision, in both of two trees
FITTED_ROWS, FEWEST_REFITS = 20_000, 5  # rows that slow refits are fitted to, taken together


@dataclass(frozen=True, eq=False)
class Removal:
    """Trees without each of several sets of rows, or after other changes, for one seed."""

    removed: Integers  # (n_sets, n_removed): the rows removed, changed or drawn
    distances: NDArray[np.float64]  # (n_sets,)
    alternatives: tuple[Alternative, ...]  # the distinct trees, the most frequent first
    depth: int  # that distances may be normalised by


def is_repeatable(estimator: Any) -> bool:
    """Whether an estimator can prepare its fit once and repeat it on some of its rows."""
    return all(callable(getattr(estimator, name, None)) for name in ("prepare", "grow"))


def affordable(estimator: Any, n_rows: int, most: int) -> int:
    """Refits that are worth their time: fewer of a learner that is slow to repeat on many rows."""
    if is_repeatable(estimator):
        return most
    return min(most, max(FEWEST_REFITS, FITTED_ROWS // max(n_rows, 1)))


def fresh(estimator: Any) -> Any:
    """An unfitted copy; a fitted tree that it begins from stays fitted."""
    copy = clone(estimator)
    for name in ("previous", "bins"):
        value = getattr(estimator, name, None)
        if hasattr(value, "tree_") and not hasattr(getattr(copy, name), "tree_"):
            copy.set_params(**{name: as_tree(value)})
    return copy


class Variant(NamedTuple):
    """A data set made from the rows of another."""

    rows: Integers  # its rows, by number; some may be there more than once
    labels: Integers  # the row that each has its label from
    values: Integers | None = None  # (n, p): the row that each value is from; None is its own


def sample_variant(
    change: str, affected: Integers, labels: NDArray[Any], n_columns: int, random: Any
) -> Variant:
    """The data set after a change of some rows: see `average_sensitivity`."""
    every = np.arange(len(labels))
    if change == "remove":
        kept = np.delete(every, affected)
        return Variant(kept, kept)
    if change == "bootstrap":
        return Variant(affected, affected)
    if change == "labels":
        donors = every.copy()
        for row in affected:  # that of another class
            others = np.flatnonzero(labels != labels[row])
            donors[row] = random.choice(others) if len(others) else row
        return Variant(every, donors)
    values = np.repeat(every[:, None], n_columns, axis=1)
    values[affected, random.integers(n_columns, size=len(affected))] = random.integers(
        len(every), size=len(affected)
    )
    return Variant(every, every, values)


def repeat_fit(
    estimator: Any,
    prepared: PreparedFit,
    variants: Sequence[Variant],
    affected: Integers,
    distance: Distance,
    n_alternatives: int,
) -> Removal:
    """Repeat a fit on other rows; bins, splits and noise are those of the prepared one."""
    trees = [estimator.grow(prepared.take(*variant)) for variant in variants]
    whole = estimator.grow(prepared)
    return _compare(whole, trees, affected, distance, n_alternatives, prepared.max_depth)


def remove_from_prepared(
    estimator: Any,
    prepared: PreparedFit,
    removed: Integers,
    distance: Distance,
    n_alternatives: int,
) -> Removal:
    """As `repeat_fit` without each set of rows, without growing every tree."""
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


def refit(
    estimator: Any,
    data: Dataset,
    variants: Sequence[Variant],
    affected: Integers,
    distance: Distance,
    n_alternatives: int,
    n_jobs: int | None,
    on_progress: OnProgress | None = None,
) -> Removal:
    """Clone and refit any procedure that learns a tree; bins are then those of the new rows."""
    every = np.arange(data.n_rows)
    whole = _fit_variant(Variant(every, every), estimator, data)
    shared = (estimator, data)
    trees = fan_out(_fit_variant, list(variants), *shared, n_jobs=n_jobs, on_progress=on_progress)
    whole, *trees = settle_thresholds([whole, *trees], data)
    depth = max(tree.depth for tree in (whole, *trees))
    return _compare(whole, trees, affected, distance, n_alternatives, depth)


def settle_thresholds(trees: Sequence[Tree], data: Dataset) -> list[Tree]:
    """The trees with one number for thresholds of a column that differ by rounding only.

    A scaler moves with each row, and behind it a threshold is found again up to the rounding of
    its distance from what the scaler takes off to single precision.
    """
    space = shared_space([tree.space for tree in trees])
    names, n_columns = data.table.names, len(data.table.columns)
    known = len(space) == n_columns if names is None else set(space.names) <= set(names)
    if not known:  # over what a step made of the columns
        return list(trees)
    thresholds, values = [tree.threshold.copy() for tree in trees], space.encode(data.table)
    for j, column in enumerate(space):
        nodes = [tree.feature == tree.space.names.index(column.name) for tree in trees]
        chosen = np.concatenate([t[at] for t, at in zip(thresholds, nodes, strict=True)])
        if column.is_categorical or len(chosen) == 0:
            continue
        found, inverse = np.unique(chosen, return_inverse=True)
        seen = values[~np.isnan(values[:, j]), j]
        taken_off = np.array([column.low, *([seen.mean(), np.median(seen)] if len(seen) else [])])
        reach = np.abs(found[:, None] - taken_off).max(axis=1)
        starts = np.concatenate([[True], np.diff(found) > ROUNDING * reach[1:]])
        settled = found[np.flatnonzero(starts)][np.cumsum(starts) - 1][inverse]
        ends = np.cumsum([at.sum() for at in nodes])[:-1]
        for own, at, part in zip(thresholds, nodes, np.split(settled, ends), strict=True):
            own[at] = part
    return [replace(t, threshold=own) for t, own in zip(trees, thresholds, strict=True)]


def _fit_variant(variant: Variant, estimator: Any, data: Dataset) -> Tree:
    part = data.take(variant.rows)
    X = part.form_for(estimator)
    if variant.values is not None:
        X = mix_values(data.native, variant.values)
    return _tree_of(fit_again(estimator, X, data.labels[variant.labels], part.weights), data)


def mix_values(X: Any, rows: Integers) -> Any:
    """X with each value taken from the given row of its column."""
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return np.take_along_axis(np.asarray(X), rows, axis=0)
    columns = [frame[name][rows[:, j].tolist()] for j, name in enumerate(frame.columns)]
    return nw.to_native(frame.with_columns(*columns))


def fit_model(rows: Integers, estimator: Any, data: Dataset) -> Tree | Scorecard:
    """The tree or scorecard that a fresh copy of an estimator learns from some of the rows."""
    part = data.take(rows)
    fitted = fit_again(estimator, part.form_for(estimator), part.labels, part.weights)
    scorecard = as_scorecard(fitted)
    return _tree_of(fitted, data) if scorecard is None else scorecard


def fit_again(estimator: Any, X: Any, y: Any, weights: Any) -> Any:
    """A fresh copy, fitted; a pipeline hands weights to its last step."""
    given = {} if weights is None else {_weights_name(estimator): weights}
    return fresh(estimator).fit(X, y, **given)


def _weights_name(estimator: Any) -> str:
    """What a procedure calls the weights of rows; a search hands them to what it searches."""
    if hasattr(estimator, "steps"):
        name, last = estimator.steps[-1]
        return f"{name}__{_weights_name(last)}"
    inner = getattr(estimator, "estimator", None)
    return _weights_name(inner) if hasattr(inner, "steps") else "sample_weight"


def _tree_of(fitted: Any, data: Dataset) -> Tree:
    """The tree inside a fitted procedure, over the columns of the data where they are followed.

    Behind a step that mixes columns, it is over the columns that it sees.
    """
    if hasattr(fitted, "best_estimator_"):
        return _tree_of(fitted.best_estimator_, data)
    if hasattr(fitted, "steps"):
        try:
            return as_tree(fitted, data)
        except NotATreeError:
            return as_tree(fitted.steps[-1][1])
    # scikit-learn's trees do not keep whether there were missing values: the rows show it
    is_ours = isinstance(getattr(fitted, "tree_", None), Tree)
    return fitted.tree_ if is_ours else from_sklearn(fitted, data)


def _grow_without(estimator: Any, prepared: PreparedFit, rows: Integers) -> Tree:
    return estimator.grow(prepared.take(np.delete(np.arange(prepared.n_rows), rows)))


def _distances_and_tags(
    prepared: PreparedFit, removed: Integers
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


def _feature_distances(prepared: PreparedFit, removed: Integers) -> NDArray[np.float64]:
    """Node distances where two splits are equal if their features are."""
    every = np.arange(prepared.n_rows)

    def features_of(rows: Integers) -> FlatTree:
        tree = grow_rows(*prepared.arrays, rows, prepared.max_depth)
        return tree._replace(key=tree.key >> FEATURE_BITS)

    whole = features_of(every)
    others = (features_of(np.delete(every, rows)) for rows in removed)
    return np.array([float(node_distance(whole, other)[0]) for other in others])


def _compare(
    whole: Tree,
    trees: list[Tree],
    removed: Integers,
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
