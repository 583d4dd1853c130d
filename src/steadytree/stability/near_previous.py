"""Retraining near a previous tree: keep most of it and grow the rest again."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from steadytree.data.feature_space import FeatureSpace
from steadytree.data.labels import place_labels, unite_classes
from steadytree.data.table import Table, quote
from steadytree.distance.path import distances_between
from steadytree.models._kernels import find_leaves
from steadytree.models.boxes import (
    in_double,
    rebase,
    rename,
    shared_space,
    with_classes,
    with_labels,
)
from steadytree.models.sklearn import as_tree
from steadytree.models.tree import LEAF, Tree

Regrown = frozenset[int] | None  # nodes that are grown again; None keeps leaf values too
UNCHANGED: Regrown = None
FROM_ROOT: Regrown = frozenset([0])
VALIDATION = 0.25  # share of the rows that decides what is kept
ARRAYS = ("feature", "threshold", "left", "right", "value", "weight", "missing_left", "subset")
Grow = Callable[[NDArray[np.int64], int], Tree]


def read_previous(
    model: Any,
    space: FeatureSpace,
    classes: NDArray[Any],
    names: Mapping[str, str] | None = None,
) -> tuple[Tree, FeatureSpace]:
    """The previous tree over the columns of new data, and these columns with its categories too.

    space and classes are those of the new data; names maps old to new names of columns. The tree
    gets all classes, its own and those of the new data, and predicts as before.
    """
    tree = with_labels(as_tree(model), classes)
    tree = with_classes(tree, unite_classes(tree.classes, classes))
    if names:
        tree = rename(tree, names)
    used = {tree.space[j].name for j in np.unique(tree.feature[tree.feature != LEAF])}
    absent = sorted(used - set(space.names))
    if absent:
        raise ValueError(
            f"previous uses {quote(absent)}, which the new data lack; they have "
            f"{quote(space.names)}. Add these columns, or give renamed ones their old names "
            "(in Python, previous_names={old: new} does)."
        )
    own = {column.name: column for column in tree.space if column.name in used}
    if not isinstance(model, Tree) and not isinstance(getattr(model, "tree_", None), Tree):
        own = {}  # scikit-learn's trees do not keep the bounds of their columns
    columns = [
        shared_space([FeatureSpace((column,)), FeatureSpace((own.get(column.name, column),))])[0]
        for column in space.bare()
    ]
    wide = FeatureSpace(tuple(columns))
    return rebase(tree, wide), wide


def node_sets(tree: Tree) -> list[Regrown]:
    """Sets of nodes to grow again, each keeping the rest of the tree.

    UNCHANGED; no node (only the leaf values are estimated again); all leaves (all splits stay and
    more may follow); each inner node; each level of inner nodes; the root (nothing stays).
    """
    inner = np.flatnonzero(~tree.is_leaf)
    leaves = np.flatnonzero(tree.is_leaf)
    found: list[Regrown] = [UNCHANGED, frozenset(), frozenset(leaves.tolist())]
    found += [frozenset([int(node)]) for node in inner[::-1]]
    for depth in range(tree.depth - 1, 0, -1):
        level = (tree.node_depth == depth) & ~tree.is_leaf
        found.append(frozenset(np.flatnonzero(level).tolist()))
    found.append(FROM_ROOT)
    return list(dict.fromkeys(found))


@dataclass(eq=False)
class Regrower:
    """Makes neighbours of a tree from new rows; sub-trees are grown once and shared."""

    tree: Tree  # the previous one, over the space of the rows
    reached: NDArray[np.int64]  # leaf of each new row in it
    labels: NDArray[np.int64]  # class of each new row, an index of `classes`
    classes: NDArray[Any]
    grow: Grow  # grow(rows, depth): a tree over the same space from some of the rows
    max_depth: int
    grown: dict[int, Tree] = field(default_factory=dict)

    def make(self, nodes: Regrown) -> Tree:
        """The tree with the given nodes grown again and all leaf values estimated again."""
        kept = with_classes(self.tree, self.classes)
        if nodes is None:
            return kept
        fresh = {node: self._fresh(node) for node in nodes if len(self._rows(node))}
        single = all(tree.single_precision for tree in (kept, *fresh.values()))
        if not single:
            kept = in_double(kept)
            fresh = {node: in_double(tree) for node, tree in fresh.items()}
        parts: list[tuple[Any, ...]] = []
        self._add(kept, 0, fresh, parts)
        arrays = dict(zip(ARRAYS, map(np.array, zip(*parts, strict=True)), strict=True))
        arrays["subset"] = arrays["subset"].reshape(len(parts), kept.subset.shape[1])
        fields: dict[str, Any] = {**arrays, "single_precision": single, "note": kept.note}
        return Tree(kept.space, kept.classes, **fields)

    def _add(self, kept: Tree, node: int, fresh: dict[int, Tree], parts: list[Any]) -> int:
        """Add a node and all below it; returns its index."""
        index = len(parts)
        if node in fresh:
            parts.extend(_moved(fresh[node], index))
            return index
        rows = self._rows(node)
        value, weight = kept.value[node], 0.0
        if len(rows):
            counts = np.bincount(self.labels[rows], minlength=len(kept.classes))
            value, weight = counts / len(rows), float(len(rows))
        split = (kept.feature[node], kept.threshold[node])
        rest = (value, weight, kept.missing_left[node], kept.subset[node])
        parts.append((*split, LEAF, LEAF, *rest))
        if not kept.is_leaf[node]:
            left = self._add(kept, int(kept.left[node]), fresh, parts)
            right = self._add(kept, int(kept.right[node]), fresh, parts)
            parts[index] = (*split, left, right, *rest)
        return index

    def _fresh(self, node: int) -> Tree:
        """The sub-tree grown from the rows that reach a node."""
        if node not in self.grown:
            rows, depth = self._rows(node), int(self.max_depth - self.tree.node_depth[node])
            kept = with_classes(self.tree, self.classes)
            grown = self.grow(rows, depth) if depth > 0 else self._leaf(kept, rows)
            self.grown[node] = with_classes(grown, kept.classes)
        return self.grown[node]

    def _leaf(self, kept: Tree, rows: NDArray[np.int64]) -> Tree:
        shares = np.bincount(self.labels[rows], minlength=len(kept.classes)) / len(rows)
        none, size = np.array([LEAF]), np.array([float(len(rows))])
        nodes = none, np.array([np.nan]), none, none, shares[None], size
        leaf = Tree(kept.space, kept.classes, *nodes)
        return replace(leaf, single_precision=kept.single_precision)

    def _rows(self, node: int) -> NDArray[np.int64]:
        return np.flatnonzero(self._below[node][self.reached])

    @cached_property
    def _below(self) -> NDArray[np.bool_]:
        """Which leaf lies below which node."""
        below = np.eye(self.tree.n_nodes, dtype=bool)
        for node in np.flatnonzero(~self.tree.is_leaf)[::-1]:
            below[node] |= below[self.tree.left[node]] | below[self.tree.right[node]]
        return below


def _moved(tree: Tree, start: int) -> Iterator[tuple[Any, ...]]:
    """The nodes of a tree when its root becomes node `start` of another."""
    shift = np.where(tree.is_leaf, 0, start)
    arrays = (tree.feature, tree.threshold, tree.left + shift, tree.right + shift)
    rest = (tree.value, tree.weight, tree.missing_left, tree.subset)
    return zip(*arrays, *rest, strict=True)


def closest(
    trees: Sequence[Tree],
    scores: NDArray[np.float64],
    previous: Tree,
    space: FeatureSpace,
    least: float,
) -> tuple[int, NDArray[np.float64]]:
    """Among trees that score at least `least`, the one nearest to `previous`.

    Ties go to the higher score. Returns its index and the distances of all.
    """
    distances = distances_between(trees, [previous], space)[:, 0]
    allowed = np.flatnonzero(scores >= least - 1e-12)
    order = np.lexsort((-scores[allowed], distances[allowed]))
    return int(allowed[order[0]]), distances


def stratified_flags(
    labels: NDArray[np.int64], share: float, seed: int | np.random.Generator
) -> NDArray[np.bool_]:
    """Flag a share of the rows of every class, at least one and never all where it has two."""
    rng = np.random.default_rng(seed)
    flags = np.zeros(len(labels), bool)
    for label in np.unique(labels):
        rows = rng.permutation(np.flatnonzero(labels == label))
        wanted = min(max(round(share * len(rows)), 1), len(rows) - 1)
        flags[rows[:wanted]] = True
    return flags


def hold_out(
    labels: NDArray[np.int64], share: float, seen: Any, seed: int | np.random.Generator
) -> NDArray[np.bool_]:
    """Flag a share of all rows for validation, none of which `previous` was learned from."""
    if seen is None:
        return stratified_flags(labels, share, seed)
    flags = np.asarray(seen)
    if flags.shape != labels.shape or flags.dtype != bool:
        raise ValueError(
            f"seen must hold True or False for each row, {len(labels)} in all, "
            f"got shape {flags.shape} of {flags.dtype}."
        )
    unseen = np.flatnonzero(~flags)
    if len(unseen) < 2:
        raise ValueError("seen leaves too few rows for validation: at least 2 must be new.")
    wanted = min(share * len(labels) / len(unseen), 0.75)
    held = np.zeros(len(labels), bool)
    held[unseen[stratified_flags(labels[unseen], wanted, seed)]] = True
    return held


def leaves_of(tree: Tree, values: NDArray[Any]) -> NDArray[np.int64]:
    """Leaves of rows that are encoded by the tree's space."""
    return find_leaves(
        values,
        tree.feature,
        tree.threshold,
        tree.left,
        tree.right,
        tree.missing_left,
        tree.space.categorical,
        tree.subset,
        tree.single_precision,
    )


def pick_rows(X: Any, values: NDArray[Any], rows: NDArray[np.int64]) -> Any:
    """Some rows of X in the form the user passed; values (n, p) are all rows, encoded.

    Learners refuse a column without any observed value. Such a column gets a constant here, on
    which no tree splits.
    """
    picked = Table.pick(X, rows)
    empty = np.flatnonzero(np.isnan(values[rows]).all(axis=0))
    if len(empty) == 0:
        return picked
    if isinstance(picked, Table):
        constant = np.zeros(len(rows))
        columns = [constant if j in empty else c for j, c in enumerate(picked.columns)]
        return replace(picked, columns=columns, matrix=None)
    frame = nw.from_native(picked, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        constants = [nw.lit(0.0).alias(frame.columns[j]) for j in empty]
        return nw.to_native(frame.with_columns(*constants))
    if isinstance(picked, list):
        return [[0.0 if j in empty else v for j, v in enumerate(row)] for row in picked]
    picked[:, empty] = 0.0  # a copy already, since rows are picked by number
    return picked


def neighbours(regrower: Regrower) -> Iterator[tuple[Regrown, Tree]]:
    """All neighbours of a tree, with the nodes that were grown again in each."""
    for nodes in node_sets(regrower.tree):
        yield nodes, regrower.make(nodes)


def stay_close(estimator: Any, X: Any, y: NDArray[Any], seed: int, seen: Any) -> Tree:
    """The nearest neighbour of ``estimator.previous`` that is about as accurate as a new tree.

    What to keep is chosen on a quarter of the rows, none of them seen before: of all neighbours
    fitted to the others, the nearest one whose accuracy is at most ``max_score_loss`` below that
    of the tree grown from the root. The chosen nodes are then grown again on all rows.
    """
    plain = clone(estimator).set_params(previous=None, random_state=seed)
    previous, space = read_previous(estimator.previous, estimator.space_.bare(), np.unique(y))
    classes = previous.classes
    labels = np.array(place_labels(y.tolist(), classes.tolist()))
    X = Table.read(X)
    values = space.encode(X)
    reached = leaves_of(previous, values)

    def regrower(rows: NDArray[np.int64]) -> Regrower:
        def grow(own: NDArray[np.int64], depth: int) -> Tree:
            learner = clone(plain).set_params(max_depth=depth)
            part = pick_rows(X, values, rows[own])
            return rebase(learner.fit(part, y[rows[own]]).tree_, space)

        deepest = max(int(estimator.max_depth), previous.depth)
        return Regrower(previous, reached[rows], labels[rows], classes, grow, deepest)

    held = hold_out(labels, VALIDATION, seen, seed)
    made = dict(neighbours(regrower(np.flatnonzero(~held))))
    found = [
        (tree.label[leaves_of(tree, values[held])] == labels[held]).mean() for tree in made.values()
    ]
    scores = np.array(found)
    least = scores[list(made).index(FROM_ROOT)] - estimator.max_score_loss
    index, _ = closest(list(made.values()), scores, previous, space, least)
    return regrower(np.arange(len(labels))).make(list(made)[index])
