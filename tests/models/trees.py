"""Random trees and rows to try them on, for tests of everything that reads a tree."""

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from steadytree.data.column import Column
from steadytree.data.feature_space import FeatureSpace
from steadytree.models.tree import LEAF, Tree

LABELS = {
    "int": [3, 1, 2, 0, 7],
    "float": [0.0, 1.0, 2.5, -1.0, 10.0],
    "bool": [False, True],
    "str": ["no", "yes", "größe", "a, b", ""],
}


def random_tree(
    rng,
    n_leaves=8,
    n_numeric=3,
    n_categorical=2,
    n_classes=3,
    labels="str",
    single_precision=False,
    empty_leaves=True,
):
    """A tree with weights that add up; thresholds are decimals, float32 numbers and infinity.

    `empty_leaves` lets some leaves have no weight. Nodes are stored in random order, parents first.
    """
    space = _random_space(rng, n_numeric, n_categorical)
    classes = LABELS[labels][:n_classes]
    left, right = _random_shape(rng, n_leaves)
    is_leaf = left == LEAF
    n_nodes, width = len(left), max(len(column.categories) for column in space)
    feature = np.where(is_leaf, LEAF, rng.integers(0, len(space), n_nodes))
    threshold, subset = np.full(n_nodes, np.nan), np.zeros((n_nodes, width), bool)
    for node in np.flatnonzero(~is_leaf):
        column = space[feature[node]]
        if column.is_categorical:
            size = len(column.categories)
            chosen = rng.choice(size, rng.integers(1, size + 1), replace=False)
            subset[node, chosen] = True
        else:
            threshold[node] = _random_threshold(rng)
    weight, value = _random_counts(rng, left, right, len(classes), empty_leaves)
    missing_left = (rng.random(n_nodes) < 0.5) & ~is_leaf
    arrays = (feature, threshold, left, right, value, weight, missing_left, subset)
    return Tree(space, classes, *arrays, single_precision=single_precision)


def deep_tree(depth, threshold=lambda level: float(level)):
    """A chain of splits on one column: each sends what is above its threshold to a leaf."""
    n_nodes = 2 * depth + 1
    inner = np.arange(0, 2 * depth, 2)
    feature, left, right = (np.full(n_nodes, LEAF) for _ in range(3))
    at = np.full(n_nodes, np.nan)
    feature[inner], left[inner], right[inner] = 0, inner + 2, inner + 1
    at[inner] = [threshold(depth - level) for level in range(depth)]
    value = np.where((np.arange(n_nodes) % 4 < 2)[:, None], [[1.0, 0.0]], [[0.25, 0.75]])
    space = FeatureSpace((Column("a", "numeric", 0.0, float(depth), missing=True),))
    return Tree(space, ["no", "yes"], feature, at, left, right, value, np.ones(n_nodes))


def random_rows(rng, tree, n=200):
    """Rows on, beside and far from the thresholds, with missing values and unknown categories."""
    columns = {}
    for j, column in enumerate(tree.space):
        if column.is_categorical:
            columns[column.name] = random_texts(rng, column, n)
        else:
            at = tree.threshold[(tree.feature == j) & np.isfinite(tree.threshold)]
            near = np.concatenate([at, np.nextafter(at, np.inf), np.nextafter(at, -np.inf)])
            near = np.concatenate([near, near.astype(np.float32), [np.nan], rng.normal(size=4)])
            columns[column.name] = rng.choice(near, n)
    return pd.DataFrame(columns)


def typed_rows(space, rows):
    """The rows with columns of the type that the space's kinds say, as nullable ones."""
    types = {"integer": "Int64", "binary": "boolean"}
    return rows.astype({c.name: types[c.kind] for c in space if c.kind in types})


def random_texts(rng, column, n):
    """Categories of a column, missing values, and one that it does not know."""
    choices = [*column.categories, "never seen", None]
    picked = rng.integers(0, len(choices), n)
    return pd.Series([choices[k] for k in picked], dtype=object)


def to_float32(frame):
    """The rows as a float32 reader sees them."""
    numbers = frame.select_dtypes("number").columns
    return frame.astype(dict.fromkeys(numbers, np.float32))


@st.composite
def trees(draw, max_numeric=3, max_categorical=2, **fixed):
    """Hypothesis strategy of random trees; shrinks towards few leaves, columns and classes.

    Arguments of `random_tree` given here are fixed, the others are drawn.
    """
    categorical = draw(st.integers(0, max_categorical))
    numeric = draw(st.integers(0 if categorical else 1, max_numeric))
    labels = draw(st.sampled_from(sorted(LABELS)))
    drawn = {
        "n_leaves": draw(st.integers(1, 12)),
        "n_numeric": numeric,
        "n_categorical": categorical,
        "n_classes": draw(st.integers(1, len(LABELS[labels]))),
        "labels": labels,
        "single_precision": draw(st.booleans()),
        "empty_leaves": draw(st.booleans()),
    }
    return random_tree(np.random.default_rng(draw(st.integers(0, 2**32 - 1))), **drawn | fixed)


def _random_space(rng, n_numeric, n_categorical):
    kinds = rng.choice(["numeric", "integer", "binary"], n_numeric)
    columns = [
        Column(f"number {j}", kind, 0.0 if kind == "binary" else -1.5, 1.0, missing=bool(j % 2))
        for j, kind in enumerate(kinds.tolist())
    ]
    for j in range(n_categorical):
        categories = tuple(f"c{k}" for k in range(rng.integers(1, 7)))
        columns.append(Column(f"group {j}", "categorical", categories=categories, missing=True))
    return FeatureSpace(tuple(columns[j] for j in rng.permutation(len(columns))))


def _random_shape(rng, n_leaves):
    """Children of a tree that grew by splitting a random leaf at a time."""
    left, right = [LEAF], [LEAF]
    for _ in range(n_leaves - 1):
        node = rng.choice([k for k, child in enumerate(left) if child == LEAF])
        places = rng.permutation([len(left), len(left) + 1])
        left[node], right[node] = places.tolist()
        left += [LEAF, LEAF]
        right += [LEAF, LEAF]
    return np.array(left), np.array(right)


def _random_threshold(rng):
    decimal = rng.integers(-15, 11) / 10
    return rng.choice([decimal, np.float32(decimal), rng.normal(), np.inf, 1 / 3])


def _random_counts(rng, left, right, n_classes, empty_leaves):
    """Weight of each node, and class shares; an empty leaf takes after no one."""
    counts = rng.integers(0 if empty_leaves else 1, 4, (len(left), n_classes)).astype(float)
    counts[rng.random(len(left)) < 0.2 * empty_leaves] = 0
    for node in np.flatnonzero(left != LEAF)[::-1]:
        counts[node] = counts[left[node]] + counts[right[node]]
    weight = counts.sum(axis=1)
    shares = np.where(weight[:, None] > 0, counts, 1.0)
    return weight, shares / shares.sum(axis=1, keepdims=True)
