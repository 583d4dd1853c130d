"""Boxes of a tree's leaves, and the same tree over other columns or classes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.data.column import Column
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.labels import UNKNOWN, match_labels
from steadytree.data.table import quote
from steadytree.models.tree import LEAF, Tree

BEYOND = 2.0**128  # the float32 that would follow the largest one


@dataclass(frozen=True, eq=False)
class Boxes:
    """One box a leaf: a row is in it when every value is.

    A number x is in when ``low < x <= high``; a category when its flag in `categories` is set;
    a missing value (or unknown category) where `missing` is set. The boxes of a tree are
    disjoint and cover everything. Bounds of a single-precision tree are given in float64, so
    that ``low < x <= high`` holds for x exactly when the tree sends its float32 form there.
    """

    leaf: NDArray[np.int64]  # (n_leaves,), the leaf's node in the tree
    label: NDArray[np.int64]  # (n_leaves,), index of the leaf's class
    low: NDArray[np.float64]  # (n_leaves, n_features), -inf if unbounded, and for categories
    high: NDArray[np.float64]
    missing: NDArray[np.bool_]  # (n_leaves, n_features)
    categories: NDArray[np.bool_]  # (n_leaves, n_features, n_categories), all set for numbers

    @classmethod
    def of(cls, tree: Tree) -> "Boxes":
        """Boxes of all leaves, in order of the nodes; made top-down, children narrowing parents."""
        n, p, width = tree.n_nodes, len(tree.space), tree.subset.shape[1]
        low, high = np.full((n, p), -np.inf), np.full((n, p), np.inf)
        missing, categories = np.ones((n, p), bool), np.ones((n, p, width), bool)
        threshold = exact_thresholds(tree)
        by_value = tree.space.categorical
        for node in np.flatnonzero(tree.left != LEAF):
            j = tree.feature[node]
            for child, is_left in ((tree.left[node], True), (tree.right[node], False)):
                low[child], high[child] = low[node], high[node]
                missing[child], categories[child] = missing[node], categories[node]
                missing[child, j] &= tree.missing_left[node] == is_left
                if by_value[j]:
                    categories[child, j] &= tree.subset[node] == is_left
                elif is_left:
                    high[child, j] = min(high[child, j], threshold[node])
                else:
                    low[child, j] = max(low[child, j], threshold[node])
        leaves = np.flatnonzero(tree.is_leaf)
        sizes = tree.space.n_categories[:, None]
        categories &= (np.arange(width) < sizes) | ~by_value[:, None]
        arrays = (low, high, missing, categories)
        return cls(leaves, tree.label[leaves], *(array[leaves] for array in arrays))

    @property
    def is_empty(self) -> NDArray[np.bool_]:
        """Leaves that no row can reach, since splits above contradict each other."""
        number = self.low < self.high
        category = self.categories.any(axis=2) if self.categories.shape[2] else number
        # a column is either numbers (all category flags set) or categories (infinite bounds)
        reachable = (number & category) | self.missing
        return np.any(~reachable, axis=1)


def exact_thresholds(tree: Tree) -> NDArray[np.float64]:
    """Thresholds t' with ``x <= t'`` in float64 exactly where the tree sends x left.

    For a single-precision tree `double_thresholds` gives them.
    """
    return double_thresholds(tree.threshold) if tree.single_precision else tree.threshold


def double_thresholds(given: NDArray[np.float64]) -> NDArray[np.float64]:
    """The largest float64 that rounds to a float32 not above each threshold.

    That is the midpoint to the next float32 when ties round down to it, else just below.
    """
    thresholds = given.copy()
    finite = np.isfinite(thresholds)
    with np.errstate(over="ignore"):
        below = thresholds[finite].astype(np.float32)
        one_less = np.nextafter(below, -np.float32(np.inf))
        below = np.where(below.astype(np.float64) > thresholds[finite], one_less, below)
        above = np.nextafter(below, np.float32(np.inf))
        # the step beyond the largest float32 is as wide as the one before it
        low, high = (np.clip(each.astype(np.float64), -BEYOND, BEYOND) for each in (below, above))
        middle = (low + high) / 2
        rounds_down = middle.astype(np.float32) == below
    thresholds[finite] = np.where(rounds_down, middle, np.nextafter(middle, -np.inf))
    return thresholds


def rebase(tree: Tree, space: FeatureSpace) -> Tree:
    """The tree over another space that holds at least the columns of its splits.

    It decides as before on every row. A category that the tree did not know went where missing
    values go, so it goes there by name now.
    """
    if tree.space is space or tree.space == space:
        return tree
    used = np.unique(tree.feature[tree.feature != LEAF])
    position = np.full(len(tree.space) + 1, LEAF)  # the last entry maps LEAF to itself
    names = {name: j for j, name in enumerate(space.names)}
    absent = [tree.space[j].name for j in used if tree.space[j].name not in names]
    if absent:
        listed = f"{quote(absent)}, but the columns are {quote(names)}"
        raise ValueError(f"the tree splits on {listed}.")
    width = max(len(column.categories) for column in space)
    subset = np.zeros((tree.n_nodes, width), bool)
    for j in used:
        position[j] = names[tree.space[j].name]
        old, new = tree.space[j], space[position[j]]
        _check_kinds(old, new)
        nodes = np.flatnonzero(tree.feature == j)
        for k, category in enumerate(new.categories):
            known = old.index_of.get(category)
            sides = tree.missing_left if known is None else tree.subset[:, known]
            subset[nodes, k] = sides[nodes]
    return replace(tree, space=space, feature=position[tree.feature], subset=subset)


def rename(tree: Tree, names: Mapping[str, str]) -> Tree:
    """The tree with some columns under other names, given as old name to new name."""
    unknown = [name for name in names if name not in tree.space.names]
    if unknown:
        raise ValueError(
            f"the mapping names {quote(unknown)}, but the tree has {quote(tree.space.names)}."
        )
    columns = (replace(c, name=str(names.get(c.name, c.name))) for c in tree.space)
    return replace(tree, space=FeatureSpace(tuple(columns)))


def shared_space(spaces: Sequence[FeatureSpace]) -> FeatureSpace:
    """One space for trees over the same columns: widest bounds, all categories."""
    first = spaces[0]
    if all(space is first or space == first for space in spaces[1:]):
        return first
    for space in spaces[1:]:
        only_here = sorted(set(first.names) - set(space.names))
        only_there = sorted(set(space.names) - set(first.names))
        if only_here or only_there:
            lists = [quote(names) or "none" for names in (only_here, only_there)]
            raise ValueError(
                "the trees are over different features: "
                f"only the first has {lists[0]}, only the other has {lists[1]}. "
                "Rename columns, leave some out, or pass a space (or data) that holds all of them."
            )
    by_name = [{column.name: column for column in space} for space in spaces]
    return FeatureSpace(
        tuple(reduce(_widest, (columns[name] for columns in by_name)) for name in first.names)
    )


def space_of_both(old: Tree, new: Tree) -> FeatureSpace:
    """One space for a tree and its successor, which may know more columns or fewer.

    Columns that only the old tree knows are left out unless it asks about them. Where each asks
    about columns that the other does not know, they are refused: some were probably renamed.
    """
    names = [set(tree.space.names) for tree in (old, new)]
    used_columns = [tree.feature[tree.feature != LEAF] for tree in (old, new)]
    only_old, only_new = (
        [column for j, column in enumerate(tree.space) if j in used and column.name not in known]
        for tree, used, known in zip((old, new), used_columns, names[::-1], strict=True)
    )
    if names[0] == names[1] or (only_old and only_new) or names[0].isdisjoint(names[1]):
        return shared_space([old.space, new.space])
    by_name = {column.name: column for column in old.space}
    both = [_widest(by_name.get(column.name, column), column) for column in new.space]
    return FeatureSpace((*both, *only_old))


def widen(space: FeatureSpace, trees: Iterable[Tree]) -> FeatureSpace:
    """The space with bounds that hold every finite threshold of the trees."""
    columns = {column.name: column for column in space}
    for tree in trees:
        for node in np.flatnonzero(np.isfinite(tree.threshold)):
            column, at = columns[tree.space[tree.feature[node]].name], float(tree.threshold[node])
            if not column.low <= at <= column.high:
                low, high = min(column.low, at), max(column.high, at)
                columns[column.name] = replace(column, low=low, high=high)
    return FeatureSpace(tuple(columns.values()))


def _widest(one: Column, other: Column) -> Column:
    if one == other:
        return one
    _check_kinds(one, other)
    missing = one.missing or other.missing
    if one.is_categorical:
        categories = tuple(dict.fromkeys(one.categories + other.categories))
        if one.ordered and set(categories) == set(other.categories):
            categories = other.categories if other.ordered else categories
        ordered = one.ordered and categories in (one.categories, other.categories)
        return replace(one, categories=categories, ordered=ordered, missing=missing)
    kind = one.kind if one.kind == other.kind else "numeric"
    low, high = min(one.low, other.low), max(one.high, other.high)
    return Column(one.name, kind, low, high, missing=missing)


def _check_kinds(one: Column, other: Column) -> None:
    if one.is_categorical != other.is_categorical:
        kinds = ["categories" if column.is_categorical else "numbers" for column in (one, other)]
        raise ValueError(
            f"column {one.name!r} holds {kinds[0]} for one tree and {kinds[1]} for the other: "
            "convert them to one type first."
        )


def with_classes(tree: Tree, classes: NDArray[Any]) -> Tree:
    """The tree with all the given classes; those it did not know have no share anywhere.

    Classes of the tree that are not among the given ones are kept behind them.
    """
    known = {label: k for k, label in enumerate(np.asarray(classes).tolist())}
    if list(known) == tree.classes.tolist():
        return tree
    index = [known.setdefault(label, len(known)) for label in tree.classes.tolist()]
    value = np.zeros((tree.n_nodes, len(known)))
    value[:, index] = tree.value
    return replace(tree, classes=np.array(list(known)), value=value)


def with_labels(tree: Tree, labels: NDArray[Any]) -> Tree:
    """The tree with its classes written as in `labels`, where only text and numbers differ."""
    known, own = labels.tolist(), tree.classes.tolist()
    pairs = zip(own, match_labels(own, known), strict=True)
    classes = [label if index == UNKNOWN else known[index] for label, index in pairs]
    return tree if classes == own else replace(tree, classes=np.array(classes))


def in_double(tree: Tree) -> Tree:
    """The tree with thresholds that decide in float64 just as it decides in float32."""
    if not tree.single_precision:
        return tree
    return replace(tree, threshold=exact_thresholds(tree), single_precision=False)
