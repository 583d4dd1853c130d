"""Rebase: the same decisions, told over another list of columns."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.data.column import Column
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.labels import UNKNOWN, place_labels
from steadytree.data.table import quote
from steadytree.models.tree import LEAF, Tree


@dataclass(frozen=True, eq=False)
class Boxes:
    """One box a leaf: a row is in it when every value is.

    A number x is in when ``low < x <= high``; a category when its flag in `categories` is set;
    a missing value (or unknown category) where `missing` is set. The boxes of a tree are
    disjoint and cover everything. Edges of a single-precision tree are given in float64, so
    that ``low < x <= high`` holds for x exactly when the tree sends its float32 form there.

    Parameters
    ----------
    leaf : int64 array (n_leaves,)
        The leaf's node in the tree.
    label : int64 array (n_leaves,)
        Index of the leaf's class.
    low, high : float64 arrays (n_leaves, n_features)
        -inf and inf where nothing was asked, and for categories.
    missing : bool array (n_leaves, n_features)
    categories : bool array (n_leaves, n_features, n_categories)
        All set for numbers, up to the widest column.
    """

    leaf: NDArray[np.int64]
    label: NDArray[np.int64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    missing: NDArray[np.bool_]
    categories: NDArray[np.bool_]

    @classmethod
    def of(cls, tree: Tree) -> "Boxes":
        """Boxes of all leaves, in order of the nodes; made top-down, children narrowing parents."""
        n, p, width = tree.n_nodes, len(tree.space), tree.subset.shape[1]
        low, high = np.full((n, p), -np.inf), np.full((n, p), np.inf)
        missing, categories = np.ones((n, p), bool), np.ones((n, p, width), bool)
        edge = exact_edges(tree)
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
                    high[child, j] = min(high[child, j], edge[node])
                else:
                    low[child, j] = max(low[child, j], edge[node])
        leaves = np.flatnonzero(tree.is_leaf)
        sizes = np.array([len(column.categories) for column in tree.space])
        categories &= (np.arange(width) < sizes[:, None]) | ~by_value[:, None]
        arrays = (low, high, missing, categories)
        return cls(leaves, tree.label[leaves], *(array[leaves] for array in arrays))

    @property
    def is_empty(self) -> NDArray[np.bool_]:
        """Leaves that no row can reach: a question was asked again with an answer already known."""
        number = self.low < self.high
        category = self.categories.any(axis=2) if self.categories.shape[2] else number
        # a column is either numbers (all category flags set) or categories (infinite bounds)
        reachable = (number & category) | self.missing
        return np.any(~reachable, axis=1)

    def contains(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which of the encoded rows (n, p) are in which box: (n, n_leaves)."""
        inside = np.ones((len(values), len(self.leaf)), bool)
        for j in range(self.low.shape[1]):
            x = values[:, j, None]
            within = (self.low[:, j] < x) & (x <= self.high[:, j])
            code = np.nan_to_num(values[:, j], nan=0.0).astype(np.int64)
            width = self.categories.shape[2]
            if width:
                flags = self.categories[:, j][:, np.clip(code, 0, width - 1)].T
                within &= flags
            inside &= np.where(np.isnan(x), self.missing[:, j], within)
        return inside


def exact_edges(tree: Tree) -> NDArray[np.float64]:
    """Thresholds t' with ``x <= t'`` in float64 just where the tree answers yes to x.

    For a single-precision tree that is the largest float64 that rounds to a float32 not above
    the threshold: the midpoint to the next float32 when ties round down to it, else just below.
    """
    if not tree.single_precision:
        return tree.threshold
    edges = tree.threshold.copy()
    finite = np.isfinite(edges)
    with np.errstate(over="ignore"):
        below = edges[finite].astype(np.float32)
    one_less = np.nextafter(below, -np.float32(np.inf))
    below = np.where(below.astype(np.float64) > edges[finite], one_less, below)
    above = np.nextafter(below, np.float32(np.inf))
    middle = (below.astype(np.float64) + above.astype(np.float64)) / 2
    rounds_down = middle.astype(np.float32) == below
    edges[finite] = np.where(rounds_down, middle, np.nextafter(middle, -np.inf))
    return edges


def rebase(tree: Tree, space: FeatureSpace) -> Tree:
    """The tree over another space that holds at least the columns it asks about.

    It decides as before on every row. A category that the tree did not know went where missing
    values go, so it goes there by name now.

    Examples
    --------
    >>> old = FeatureSpace.declare({"age": (18, 90)})
    >>> tree = Tree(old, ["no", "yes"], [0, -1, -1], [43.5, np.nan, np.nan], [1, -1, -1],
    ...             [2, -1, -1], [[0.5, 0.5], [1, 0], [0, 1]], [2, 1, 1])
    >>> new = FeatureSpace.declare({"height": (0, 3), "age": (0, 100)})
    >>> rebase(tree, new).feature.tolist()
    [1, -1, -1]
    """
    if tree.space is space or tree.space == space:
        return tree
    asked = np.unique(tree.feature[tree.feature != LEAF])
    place = np.full(len(tree.space) + 1, LEAF)  # the last entry maps LEAF to itself
    names = {name: j for j, name in enumerate(space.names)}
    absent = [tree.space[j].name for j in asked if tree.space[j].name not in names]
    if absent:
        raise ValueError(
            f"the tree asks about {quote(absent)}, but the columns are {quote(names)}."
        )
    width = max(len(column.categories) for column in space)
    subset = np.zeros((tree.n_nodes, width), bool)
    for j in asked:
        old, new = tree.space[j], space[names[tree.space[j].name]]
        _check_kinds(old, new)
        place[j] = names[old.name]
        if old.is_categorical:
            nodes = np.flatnonzero(tree.feature == j)
            code = {category: k for k, category in enumerate(old.categories)}
            for k, category in enumerate(new.categories):
                known = category in code
                subset[nodes, k] = (
                    tree.subset[nodes, code[category]] if known else tree.missing_left[nodes]
                )
    return replace(tree, space=space, feature=place[tree.feature], subset=subset)


def rename(tree: Tree, names: Mapping[str, str]) -> Tree:
    """The tree with some columns under other names, given as old name to new name."""
    unknown = [name for name in names if name not in tree.space.names]
    if unknown:
        raise ValueError(
            f"the mapping names {quote(unknown)}, but the tree has {quote(tree.space.names)}."
        )
    columns = tuple(
        replace(column, name=str(names.get(column.name, column.name))) for column in tree.space
    )
    return replace(tree, space=FeatureSpace(columns))


def shared_space(spaces: Sequence[FeatureSpace]) -> FeatureSpace:
    """One space for trees over the same columns: widest bounds, all categories.

    Raises
    ------
    ValueError
        If names differ, or one name stands for numbers here and for categories there.
    """
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


def widen(space: FeatureSpace, trees: Iterable[Tree]) -> FeatureSpace:
    """The space with bounds that hold every finite threshold of the trees."""
    bounds = {column.name: [column.low, column.high] for column in space}
    for tree in trees:
        for node in np.flatnonzero(np.isfinite(tree.threshold)):
            low_high = bounds[tree.space[tree.feature[node]].name]
            low_high[0] = min(low_high[0], float(tree.threshold[node]))
            low_high[1] = max(low_high[1], float(tree.threshold[node]))
    columns = (
        column
        if column.is_categorical
        else replace(column, low=bounds[column.name][0], high=bounds[column.name][1])
        for column in space
    )
    return FeatureSpace(tuple(columns))


def _widest(one: Column, other: Column) -> Column:
    if one == other:
        return one
    _check_kinds(one, other)
    missing = one.missing or other.missing
    if one.is_categorical:
        categories = tuple(dict.fromkeys(one.categories + other.categories))
        return replace(one, categories=categories, missing=missing)
    kind = one.kind if one.kind == other.kind else "numeric"
    low, high = min(one.low, other.low), max(one.high, other.high)
    return Column(one.name, kind, low, high, missing=missing)


def _check_kinds(one: Column, other: Column) -> None:
    if one.is_categorical != other.is_categorical:
        kinds = ["categories" if column.is_categorical else "numbers" for column in (one, other)]
        raise ValueError(
            f"column {one.name!r} holds {kinds[0]} for one tree and {kinds[1]} for the other: "
            "bring the data to one form first."
        )


def with_classes(tree: Tree, classes: NDArray[Any]) -> Tree:
    """The tree with all the given classes; those it did not know have no share anywhere.

    Classes of the tree that are not among the given ones are kept behind them.
    """
    known = {label: k for k, label in enumerate(np.asarray(classes).tolist())}
    if list(known) == tree.classes.tolist():
        return tree
    place = [known.setdefault(label, len(known)) for label in tree.classes.tolist()]
    value = np.zeros((tree.n_nodes, len(known)))
    value[:, place] = tree.value
    return replace(tree, classes=np.array(list(known)), value=value)


def with_labels(tree: Tree, labels: NDArray[Any]) -> Tree:
    """The tree with its classes told as in `labels`, where only text and numbers differ.

    Examples
    --------
    >>> space = FeatureSpace.declare({"age": (18, 90)})
    >>> leaf = Tree(space, [0, 1], [-1], [np.nan], [-1], [-1], [[0.2, 0.8]], [5])
    >>> with_labels(leaf, np.array(["1", "unclear"])).classes.tolist()
    ['0', '1']
    """
    known, own = labels.tolist(), tree.classes.tolist()
    places = place_labels(own, known)
    told = [
        label if place == UNKNOWN else known[place]
        for label, place in zip(own, places, strict=True)
    ]
    if told == own:
        return tree
    return replace(tree, classes=np.array(told))


def in_double(tree: Tree) -> Tree:
    """The tree with thresholds that decide in float64 just as it decides in float32."""
    if not tree.single_precision:
        return tree
    return replace(tree, threshold=exact_edges(tree), single_precision=False)
