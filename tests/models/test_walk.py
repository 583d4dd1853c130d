"""Rows end in the leaf that a literal recursion over the tree's own arrays finds."""

import math

import numpy as np
import pytest

from steadytree.data.column import Column
from steadytree.data.feature_space import FeatureSpace
from steadytree.models.tree import Tree
from steadytree.models.walk import Walk

SPACE = FeatureSpace(
    (
        Column("a", "numeric", -3.0, 3.0),
        Column("b", "categorical", categories=("u", "v", "w")),
        Column("c", "numeric", -3.0, 3.0),
    )
)


def random_tree(seed, in_order, single_precision=False):
    """A tree of any shape; children follow each other only where `in_order`."""
    rng = np.random.default_rng(seed)
    left, right = [-1], [-1]
    for _ in range(rng.integers(0, 30)):
        node = int(rng.choice([k for k, child in enumerate(left) if child < 0]))
        left[node], right[node] = len(left), len(left) + 1
        if not in_order and rng.integers(2):
            left[node], right[node] = right[node], left[node]
        left, right = [*left, -1, -1], [*right, -1, -1]
    n, inner = len(left), np.array(left) >= 0
    feature = np.where(inner, rng.integers(0, 3, n), -1)
    threshold = np.where(inner, rng.choice([0.1, -1.0, 0.7, np.inf], n), np.nan)
    threshold[feature == 1] = np.nan
    subset = np.zeros((n, 3), bool)
    subset[feature == 1] = rng.integers(0, 2, ((feature == 1).sum(), 3))
    subset[feature == 1, rng.integers(3)] = True
    value = np.full((n, 2), 0.5)
    sides = rng.integers(0, 2, n).astype(bool) & inner, subset
    arrays = (feature, threshold, left, right, value, np.ones(n), *sides)
    return Tree(SPACE, [0, 1], *arrays, single_precision)


def rows_of(seed, n, dtype):
    rng = np.random.default_rng(seed)
    numbers = rng.choice([-1.0, 0.1, np.float32(0.1), 0.7, 2.0, 1e300, np.nan], (n, 3))
    numbers[:, 1] = rng.choice([0, 1, 2, 3, -1, np.nan], n)
    with np.errstate(over="ignore"):
        return numbers.astype(dtype)


def leaf_of(tree, row, node=0):
    if tree.left[node] < 0:
        return node
    x = float(row[tree.feature[node]])
    if tree.feature[node] == 1:
        known = not math.isnan(x) and 0 <= x < 3
        left = tree.subset[node, int(x)] if known else tree.missing_left[node]
    elif math.isnan(x):
        left = tree.missing_left[node]
    else:
        with np.errstate(over="ignore"):
            left = (float(np.float32(x)) if tree.single_precision else x) <= tree.threshold[node]
    return leaf_of(tree, row, tree.left[node] if left else tree.right[node])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("single_precision", [False, True])
@pytest.mark.parametrize("in_order", [False, True])
def test_leaves_are_those_of_a_recursion(dtype, single_precision, in_order):
    for seed in range(25):
        tree = random_tree(seed, in_order, single_precision)
        rows = rows_of(seed, seed + 3, dtype)
        for given in (rows, np.asfortranarray(rows)):
            found = tree.apply_encoded(given)
            assert found.tolist() == [leaf_of(tree, row) for row in given]


def test_no_row_has_no_leaf():
    assert random_tree(3, True).apply_encoded(np.empty((0, 3))).tolist() == []


def test_right_children_follow_left_ones():
    tree = random_tree(8, False)
    walk = Walk.of(tree, SPACE.categorical)
    assert sorted(walk.number) == list(range(tree.n_nodes))
    left = (walk.split >> np.uint64(32)).astype(int)
    inner = np.flatnonzero(left != np.arange(tree.n_nodes))
    np.testing.assert_array_equal(walk.number[left[inner]], tree.left[walk.number[inner]])
    np.testing.assert_array_equal(walk.number[left[inner] + 1], tree.right[walk.number[inner]])
