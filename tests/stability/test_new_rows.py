"""What splits, leaves and trees are worth on new rows."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steadytree.stability.new_rows import NewRows, changed_splits, nested_of, row_losses, split_of
from tests.models.trees import random_rows, random_tree


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_a_tree_made_again_from_its_splits_decides_alike(seed):
    rng = np.random.default_rng(seed)
    old = random_tree(rng, n_leaves=int(rng.integers(1, 8)), n_classes=3, labels="int")
    values = np.asarray(old.space.encode(random_rows(rng, old, n=50)), float)
    labels, weights = rng.integers(0, 3, 50), rng.choice([0.5, 1.0, 2.0], 50)
    rows = NewRows(old, values, labels, weights, log_loss=False)
    again = rows.tree_of(nested_of(old))
    leaves = old.apply_encoded(values)
    np.testing.assert_array_equal(again.label[again.apply_encoded(values)], old.label[leaves])
    assert changed_splits(old, again) == 0
    assert rows.distance([again])[0] == 0
    wrong = (old.label[leaves] != labels) @ weights
    assert rows.measure(again).tolist() == pytest.approx([wrong, 0, 0, old.n_leaves])
    for node in np.flatnonzero(~old.is_leaf):
        here = rows.everyone[np.array([node in old.path(leaf) for leaf in leaves], bool)]
        below = np.array([old.left[node] in old.path(leaf) for leaf in leaves[here]], bool)
        np.testing.assert_array_equal(rows.goes_left(split_of(old, node), here), below)


def test_log_loss_of_rows():
    rng = np.random.default_rng(2)
    tree = random_tree(rng, n_leaves=4, n_classes=2, labels="int")
    values = np.asarray(tree.space.encode(random_rows(rng, tree, n=20)), float)
    leaves, labels = tree.apply_encoded(values), rng.integers(0, 2, 20)
    for row, loss in enumerate(row_losses(tree, leaves, labels, log_loss=True)):
        weight = tree.weight[leaves[row]]
        share = (tree.value[leaves[row], labels[row]] * weight + 0.5) / (weight + 1)
        assert loss == pytest.approx(-np.log(share))


def test_changed_splits_by_position():
    rng = np.random.default_rng(1)
    tree = random_tree(rng, n_leaves=5, n_classes=2)
    assert changed_splits(tree, tree) == 0
    assert changed_splits(tree, tree.restrict([0])) == tree.n_leaves - 1
    assert changed_splits(tree.restrict([0]), tree) == tree.n_leaves - 1
    split = split_of(tree, 0)
    assert split.same(split)
    assert not split.same(split._replace(missing_left=not split.missing_left))
    number = np.flatnonzero(np.isfinite(tree.threshold))[0]
    moved, other = tree.threshold.copy(), tree.feature.copy()
    moved[number] += 1
    assert changed_splits(tree, replace(tree, threshold=moved)) == 1  # of the same column
    numeric = [j for j, column in enumerate(tree.space) if not column.is_categorical]
    other[number] = next(j for j in numeric if j != tree.feature[number])
    assert changed_splits(tree, replace(tree, feature=other)) == 2  # of another one
