"""Splits on categories as one-hot columns, for libraries that know only thresholds."""

from dataclasses import replace
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

from steadytree.data.column import Column
from steadytree.data.feature_space import FeatureSpace
from steadytree.models.tree import LEAF, Tree


def make_additive(tree: Tree) -> Tree:
    """The tree with positive weights that add up, and shares that are the children's mean.

    Other libraries rely on both. A tree that has them is returned as it is; else leaves keep
    their shares and weights (a weight of zero becomes a millionth of the least positive one), and
    inner nodes are summed from them.
    """
    inner = np.flatnonzero(~tree.is_leaf)
    left, right = tree.left[inner], tree.right[inner]
    weight, mass = tree.weight.copy(), tree.weight[:, None] * tree.value
    beside = np.abs(mass[inner] - mass[left] - mass[right])  # shares sum to 1: weights are in it
    if (weight > 0).all() and (beside <= 1e-9 * weight[inner, None]).all():
        return tree
    positive = weight[tree.is_leaf & (weight > 0)]
    least = positive.min() * 1e-6 if len(positive) else 1.0
    weight = np.maximum(weight, least)
    mass = weight[:, None] * tree.value
    for node, low, high in zip(inner[::-1], left[::-1], right[::-1], strict=True):
        weight[node] = weight[low] + weight[high]
        mass[node] = mass[low] + mass[high]
    value = np.where(tree.is_leaf[:, None], tree.value, mass / weight[:, None])
    return replace(tree, weight=weight, value=value)


MAX_NODES = 50_000
NUMBER = -1  # instead of a category: the column itself

# What can still arrive at a node, by categorical feature: its categories, and missing values.
Open = dict[int, tuple[frozenset[int], bool]]
Branch = tuple[int, Open]
# A node of the expanded tree: its source, feature and category, threshold, missing_left.
Node = tuple[int, tuple[int, int], float, bool]
# Feature and category, threshold, whether missing goes left, and what follows left and right.
Split = tuple[tuple[int, int], float, bool, Branch, Branch]


def one_hot(tree: Tree, X: Any) -> Any:
    """X with the columns of the exported tree: numbers, and 0 or 1 per category.

    A missing value, or a category the tree does not know, is nan in all columns of its feature.
    Columns are named ``feature=category``, in order of the features; a frame gives a frame of the
    same library. `tree` is the tree that is exported, not the exported one.
    """
    values = tree.space.encode(X)
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    expanded, columns = _expand(tree)
    matrix = values
    if columns != [(j, NUMBER) for j in range(len(tree.space))]:
        matrix = np.stack([_column(values[:, j], category) for j, category in columns], axis=1)
    if not isinstance(frame, nw.DataFrame):
        return matrix
    named = dict(zip(expanded.space.names, matrix.T, strict=True))
    return nw.to_native(nw.from_dict(named, backend=nw.get_native_namespace(frame)))


def one_hot_tree(tree: Tree) -> Tree:
    """The same decisions by thresholds alone, on the columns that `one_hot` makes.

    A set of one category, or of all but one, is one split; a larger one becomes a chain of
    splits, one for each category of the set or of its complement, with copies of what follows.
    Only categories that can still arrive get a split. The weight of a leaf is shared equally
    by its copies. A tree without categorical columns is returned as it is.
    """
    return _expand(tree)[0]


def _column(values: NDArray[Any], category: int) -> NDArray[Any]:
    if category == NUMBER:
        return values
    return np.where(np.isnan(values), np.nan, values == category)


def _expand(tree: Tree) -> tuple[Tree, list[tuple[int, int]]]:
    """The expanded tree, and for each of its columns the feature and category it stands for."""
    if not tree.space.categorical.any():
        return tree, [(j, NUMBER) for j in range(len(tree.space))]
    sizes = np.ones(tree.n_nodes, np.int64)  # of the sub-trees
    for node in np.flatnonzero(~tree.is_leaf)[::-1]:
        sizes[node] += sizes[tree.left[node]] + sizes[tree.right[node]]
    nodes: list[Node] = []  # parents first
    children: list[list[int]] = []
    waiting: list[tuple[Branch, int, int]] = [((0, {}), LEAF, 0)]
    while waiting:
        (node, still_open), parent, side = waiting.pop()
        if len(nodes) == MAX_NODES:
            raise ValueError(
                f"the tree's sets of categories need more than {MAX_NODES:,} nodes when each "
                "category gets a split of its own: use a smaller tree, or group the categories."
            )
        if parent != LEAF:
            children[parent][side] = len(nodes)
        node = _skip_decided(tree, node, still_open)
        if tree.left[node] == LEAF:
            nodes.append((node, (LEAF, NUMBER), np.nan, False))
        else:
            column, threshold, missing, left, right = _next_split(tree, node, still_open, sizes)
            waiting += [(right, len(nodes), 1), (left, len(nodes), 0)]
            nodes.append((node, column, threshold, missing))
        children.append([LEAF, LEAF])
    used = {split for _, split, _, _ in nodes if split[1] != NUMBER}
    used |= {(j, NUMBER) for j in np.flatnonzero(~tree.space.categorical).tolist()}
    columns = sorted(used) or [(0, 0)]  # a table needs a column
    return _assemble(tree, nodes, np.array(children), columns), columns


def _arriving(tree: Tree, node: int, still_open: Open) -> tuple[list[set[int]], bool]:
    """Categories that the node sends left and right, and whether missing values arrive."""
    feature = int(tree.feature[node])
    everything = frozenset(range(len(tree.space[feature].categories)))
    categories, missing = still_open.get(feature, (everything, True))
    left = {category for category in categories if tree.subset[node, category]}
    return [left, set(categories) - left], missing


def _skip_decided(tree: Tree, node: int, still_open: Open) -> int:
    """The first node from here whose split is not decided yet, or a leaf."""
    while tree.left[node] != LEAF and tree.space[tree.feature[node]].is_categorical:
        (left, right), missing = _arriving(tree, node, still_open)
        to_left = bool(left) or (missing and bool(tree.missing_left[node]))
        to_right = bool(right) or (missing and not tree.missing_left[node])
        if to_left and to_right:
            break
        node = int(tree.left[node] if to_left else tree.right[node])
    return node


def _next_split(tree: Tree, node: int, still_open: Open, sizes: NDArray[np.int64]) -> Split:
    """The next split by a threshold on the way through the node."""
    feature = int(tree.feature[node])
    children = int(tree.left[node]), int(tree.right[node])
    if not tree.space[feature].is_categorical:
        left, right = ((child, still_open) for child in children)
        threshold, missing_left = float(tree.threshold[node]), bool(tree.missing_left[node])
        return (feature, NUMBER), threshold, missing_left, left, right

    def branch(at: int, categories: set[int], missing: bool) -> Branch:
        return at, {**still_open, feature: (frozenset(categories), missing)}

    sides, missing = _arriving(tree, node, still_open)
    if not all(sides):  # what is there goes one way, and what is missing the other
        here = 0 if sides[0] else 1
        observed = branch(children[here], sides[here], False)
        absent = branch(children[1 - here], set(), True)
        return (feature, min(sides[here])), np.inf, False, observed, absent
    # each category but one of the chosen side adds a split and a copy of that side
    costs = [(len(sides[k]) - 1) * (1 + int(sizes[children[k]])) for k in (0, 1)]
    chosen = int(costs[1] < costs[0])
    category = min(sides[chosen])
    missing_is_yes = missing and bool(tree.missing_left[node]) == (chosen == 0)
    more = sides[chosen] - {category}
    yes = branch(children[chosen], {category}, missing_is_yes)
    after = node if more else children[1 - chosen]
    no = branch(after, more | sides[1 - chosen], missing and not missing_is_yes)
    return (feature, category), 0.5, not missing_is_yes, no, yes


def _assemble(
    tree: Tree, nodes: list[Node], children: NDArray[np.int64], columns: list[tuple[int, int]]
) -> Tree:
    position = {split: j for j, split in enumerate(columns)} | {(LEAF, NUMBER): LEAF}
    feature, threshold = np.array([(position[split], at) for _, split, at, _ in nodes]).T
    source, missing_left = np.array([(each[0], each[3]) for each in nodes]).T
    is_leaf = children[:, 0] == LEAF
    copies = np.bincount(source[is_leaf], minlength=tree.n_nodes)
    weight = np.where(is_leaf, tree.weight[source] / np.maximum(copies[source], 1), 0.0)
    space = FeatureSpace(tuple(_one_column(tree.space[j], category) for j, category in columns))
    arrays = (feature, threshold, children[:, 0], children[:, 1], tree.value[source], weight)
    form = {"missing_left": missing_left, "single_precision": tree.single_precision}
    return make_additive(Tree(space, tree.classes, *arrays, **form))


def _one_column(column: Column, category: int) -> Column:
    if category == NUMBER:
        return column
    name = f"{column.name}={column.categories[category]}"
    return Column(name, "binary", 0.0, 1.0, missing=column.missing)
