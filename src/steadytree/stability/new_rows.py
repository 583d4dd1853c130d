"""NewRows: what splits, leaves and trees are worth on new rows, beside the tree in use."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadytree.data.feature_space import FeatureSpace
from steadytree.data.labels import unite_classes
from steadytree.data.table import quote
from steadytree.distance.path import distances_between
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

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
LOSS, FLIPS, CHANGES, LEAVES = range(4)  # entries of a point
PRIOR = 2.0  # rows of the old shares in a leaf's probabilities
TINY = 1e-6
DEEPEST = 200  # levels of a tree in use
NODE = ("feature", "threshold", "subset", "missing_left", "left", "right", "value", "weight")


class Split(NamedTuple):
    """What a node asks, as in a Tree."""

    feature: int
    threshold: float
    subset: NDArray[np.bool_]
    missing_left: bool

    def same(self, other: "Split") -> bool:
        """Whether both send every value to the same side."""
        return (
            self.feature == other.feature
            and (self.threshold == other.threshold or np.isnan(self.threshold))
            and bool((self.subset == other.subset).all())
            and self.missing_left == other.missing_left
        )


class Leaf(NamedTuple):
    """A leaf's label, and the class shares that its probabilities begin with."""

    label: int
    share: Floats


Nested = Leaf | tuple[Split, Any, Any]  # a split with its left and right side


def split_of(tree: Tree, node: int) -> Split | None:
    """The split of a node; None at a leaf, and beyond one."""
    if node == LEAF or tree.is_leaf[node]:
        return None
    threshold, missing_left = float(tree.threshold[node]), bool(tree.missing_left[node])
    return Split(int(tree.feature[node]), threshold, tree.subset[node], missing_left)


def nested_of(tree: Tree, node: int = 0) -> Nested:
    """A tree as nested splits and leaves."""
    split = split_of(tree, node)
    if split is None:
        return Leaf(int(tree.label[node]), tree.value[node])
    left, right = int(tree.left[node]), int(tree.right[node])
    return split, nested_of(tree, left), nested_of(tree, right)


def changed_splits(old: Tree, new: Tree) -> int:
    """Changed splits by position: 1 if moved, dropped or added, 2 if of another column.

    Both trees must be over one space.
    """
    pairs, changed = [(0, 0)], 0
    while pairs:
        a, b = pairs.pop()
        before, after = split_of(old, a), split_of(new, b)
        if before is None and after is None:
            continue
        if before is None or after is None:
            changed += 1
        elif not before.same(after):
            changed += 1 if before.feature == after.feature else 2
        for side in ("left", "right"):
            below = [
                LEAF if split is None else int(getattr(tree, side)[node])
                for tree, node, split in ((old, a, before), (new, b, after))
            ]
            pairs.append((below[0], below[1]))
    return changed


def row_losses(tree: Tree, leaves: Integers, labels: Integers, log_loss: bool) -> Floats:
    """Loss of each row: whether the decision is wrong, or the log loss of its probability.

    A row spread evenly over the classes is added to each leaf, so that no loss is infinite.
    """
    if not log_loss:
        return (tree.label[leaves] != labels).astype(np.float64)
    weight = tree.weight[leaves]
    share = (tree.value[leaves, labels] * weight + 1 / len(tree.classes)) / (weight + 1)
    return -np.log(share)


def read_previous(
    model: Any,
    space: FeatureSpace,
    classes: NDArray[Any],
    names: Mapping[str, str] | None = None,
) -> tuple[Tree, FeatureSpace]:
    """The tree in use over the columns of new data, and these columns with its categories too.

    space and classes are those of the new data; names maps old to new names of columns. The tree
    gets all classes, its own and those of the new data, and predicts as before.
    """
    tree = in_double(with_labels(as_tree(model), classes))
    if tree.depth > DEEPEST:
        raise ValueError(
            f"previous is {tree.depth:,} levels deep, more than {DEEPEST}: learn a smaller tree."
        )
    united = unite_classes(tree.classes, classes)
    if len(united) == len(tree.classes) + len(classes):
        raise ValueError(
            f"previous predicts {quote(tree.classes.tolist())}, and y has none of these but "
            f"{quote(classes.tolist())}: use one form for all labels, or pass another tree."
        )
    tree = with_classes(tree, united)
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


class NewRows:
    """Rows with labels and weights, and the tree in use, over one space in double precision."""

    def __init__(
        self, old: Tree, values: Floats, labels: Integers, weights: Floats, log_loss: bool
    ) -> None:
        self.old, self.values, self.labels, self.weights = old, values, labels, weights
        self.log_loss, self.n_classes = log_loss, len(old.classes)
        leaves = old.apply_encoded(values)
        self.decided, self.old_shares = old.label[leaves], old.value[leaves]

    @property
    def everyone(self) -> Integers:
        return np.arange(len(self.labels))

    def goes_left(self, split: Split, rows: Integers) -> NDArray[np.bool_]:
        """Which rows a split sends left."""
        found = self.values[rows, split.feature]
        missing = np.isnan(found)
        if np.isnan(split.threshold):
            goes = split.subset[np.where(missing, 0, found).astype(np.int64)]
        else:
            goes = found <= split.threshold
        return np.where(missing, split.missing_left, goes)

    def counts(self, rows: Integers) -> tuple[Floats, Floats]:
        """Weight of the rows of each class, and of those that the tree in use decides so."""
        weights = self.weights[rows]
        by_label: Any = np.bincount(self.labels[rows], weights, self.n_classes)
        by_decision: Any = np.bincount(self.decided[rows], weights, self.n_classes)
        return by_label, by_decision

    def leaf_value(self, counts: Floats, leaf: Leaf) -> Floats:
        """Probabilities of a leaf; a label that is not the likeliest class wins as a tie."""
        value = np.maximum((counts + PRIOR * leaf.share) / (counts.sum() + PRIOR), TINY)
        if value.argmax() != leaf.label:
            value[leaf.label] = value.max() + 4 * TINY
        found: Floats = value / value.sum()
        return found

    def leaf_point(self, counts: Floats, decided: Floats, leaf: Leaf) -> tuple[float, float]:
        """Loss and flips of a leaf."""
        loss = counts.sum() - counts[leaf.label]
        if self.log_loss:
            loss = -counts @ np.log(self.leaf_value(counts, leaf))
        return float(loss), float(decided.sum() - decided[leaf.label])

    def measure(self, tree: Tree) -> Floats:
        """Loss, flips, changed splits and leaves of any tree."""
        leaves = tree.apply_encoded(self.values)
        loss = row_losses(tree, leaves, self.labels, self.log_loss) @ self.weights
        flips = (tree.label[leaves] != self.decided) @ self.weights
        return np.array([loss, flips, changed_splits(self.old, tree), tree.n_leaves])

    def distance(self, trees: list[Tree]) -> Floats:
        """Path distance of each tree to the one in use."""
        return distances_between(trees, [self.old], self.old.space)[:, 0]

    def tree_of(self, nested: Nested) -> Tree:
        """The tree of nested splits, with the probabilities of these rows."""
        nodes: list[Any] = []
        self._add_nodes(nested, self.everyone, self.old.value[0], nodes)
        arrays: dict[str, Any] = dict(
            zip(NODE, map(np.array, zip(*nodes, strict=True)), strict=True)
        )
        return replace(self.old, **arrays, note="")

    def _add_nodes(self, nested: Nested, rows: Integers, share: Floats, nodes: list[Any]) -> int:
        """Add a node and all below it; returns its index."""
        counts, index = self.counts(rows)[0], len(nodes)
        if isinstance(nested, Leaf):
            no_split = LEAF, np.nan, np.zeros(self.old.subset.shape[1], bool), False, LEAF, LEAF
            nodes.append((*no_split, self.leaf_value(counts, nested), counts.sum()))
            return index
        split, *sides = nested
        goes, below = self.goes_left(split, rows), []
        share = counts / counts.sum() if counts.any() else share
        nodes.append(())
        for side, own in zip(sides, (rows[goes], rows[~goes]), strict=True):
            below.append(self._add_nodes(side, own, share, nodes))
        nodes[index] = (*split, *below, share, counts.sum())
        return index
