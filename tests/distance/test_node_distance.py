"""Node distances: equal to the published procedures, read literally, on any pair of trees."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.tree import DecisionTreeClassifier

from steadytree.data.column import Column
from steadytree.data.feature_space import FeatureSpace
from steadytree.distance.tree_distance import measure_node_distance
from steadytree.models.sklearn import as_tree
from steadytree.models.tree import Tree
from steadytree.stability.stable_tree import StableTreeClassifier
from tests.models.trees import random_tree, trees


def size_below(tree, node):
    if tree.left[node] < 0:
        return 1
    return 1 + size_below(tree, tree.left[node]) + size_below(tree, tree.right[node])


def question(tree, node, missing):
    column = tree.space[tree.feature[node]]
    asked = [column.name, bool(tree.missing_left[node]) if column.name in missing else None]
    if column.is_categorical:
        return [*asked, {c for k, c in enumerate(column.categories) if tree.subset[node, k]}]
    return [*asked, float(tree.threshold[node])]


def literal_distance(a, b, features_only=False, at=(0, 0)):
    """Alg. 2, or Alg. 5 where only the feature of a rule is compared."""
    one, other = at
    leaves = a.left[one] < 0, b.left[other] < 0
    if all(leaves):
        return 0 if a.classes[a.label[one]] == b.classes[b.label[other]] else 2
    everything = size_below(a, one) + size_below(b, other)
    if any(leaves):
        return everything
    missing = {c.name for tree in (a, b) for c in tree.space if c.missing}
    questions = question(a, one, missing), question(b, other, missing)
    if features_only:
        questions = [asked[0] for asked in questions]
    if questions[0] != questions[1]:
        return everything
    return literal_distance(a, b, features_only, (a.left[one], b.left[other])) + literal_distance(
        a, b, features_only, (a.right[one], b.right[other])
    )


def changed(tree, rng):
    """The tree with a few thresholds, sides and labels changed, and its classes in another order.

    Random trees part at the root; these share their top.
    """
    inner = ~tree.is_leaf
    threshold = np.where(rng.random(tree.n_nodes) < 0.1, tree.threshold + 1, tree.threshold)
    missing_left = np.where(rng.random(tree.n_nodes) < 0.1, ~tree.missing_left, tree.missing_left)
    value = tree.value.copy()
    turned = rng.random(tree.n_nodes) < 0.2
    value[turned] = value[turned][:, ::-1]
    order = rng.permutation(len(tree.classes))
    return Tree(
        tree.space,
        tree.classes[order],
        tree.feature,
        threshold,
        tree.left,
        tree.right,
        value[:, order],
        tree.weight,
        missing_left & inner,
        tree.subset,
    )


@given(trees(empty_leaves=False), st.integers(0, 2**32 - 1), st.booleans())
def test_equals_the_published_procedure(tree, seed, features_only):
    other = changed(tree, np.random.default_rng(seed))
    for a, b in ((tree, other), (other, tree), (tree, tree)):
        found = measure_node_distance(a, b, features_only)
        assert found == literal_distance(a, b, features_only)
    assert measure_node_distance(tree, tree, features_only) == 0


@pytest.mark.parametrize("seed", range(40))
def test_unrelated_trees_over_the_same_columns(seed):
    rng = np.random.default_rng(seed)
    a = random_tree(rng, n_leaves=4, n_numeric=1, n_categorical=0, n_classes=2)
    b = random_tree(rng, n_leaves=6, n_numeric=1, n_categorical=0, n_classes=2)
    for features_only in (False, True):
        found = measure_node_distance(a, b, features_only)
        assert found == literal_distance(a, b, features_only)
    assert measure_node_distance(a, b, True) <= measure_node_distance(a, b)


@pytest.mark.parametrize("seed", range(10))
def test_triangle_inequality(seed):
    rng = np.random.default_rng(seed)
    first = random_tree(rng, n_leaves=12, empty_leaves=False)
    second, third = changed(first, rng), changed(first, rng)
    for features_only in (False, True):
        sides = [
            measure_node_distance(a, b, features_only)
            for a, b in ((first, third), (first, second), (second, third))
        ]
        assert sides[0] <= sides[1] + sides[2]


@pytest.mark.parametrize("seed", range(6))
def test_scikit_learn_trees_too(seed):
    X, y = load_iris(return_X_y=True)
    kept = np.random.default_rng(seed).random(len(y)) < 0.9
    a = DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, y)
    b = DecisionTreeClassifier(max_depth=4, random_state=0).fit(X[kept], y[kept])
    for features_only in (False, True):
        expected = literal_distance(as_tree(a), as_tree(b), features_only)
        assert measure_node_distance(a, b, features_only) == expected
    ours = StableTreeClassifier(max_depth=3, epsilon=0, random_state=0).fit(X, y)
    assert measure_node_distance(ours, a) == literal_distance(as_tree(ours), as_tree(a))


def test_sides_of_missing_values_that_scikit_learn_never_saw():
    values = np.repeat([[0.0], [1.0], [np.nan]], 10, axis=0)
    labels = np.repeat([0, 1, 1], 10)

    def fit(n_low, n_high, n_missing=0):
        rows = [*range(n_low), *range(10, 10 + n_high), *range(20, 20 + n_missing)]
        return DecisionTreeClassifier(random_state=0).fit(values[rows], labels[rows])

    more_left, more_right = fit(9, 4), fit(4, 9)
    assert as_tree(more_left).missing_left[0] != as_tree(more_right).missing_left[0]
    assert measure_node_distance(more_left, more_right) == 0
    seen = fit(9, 4, 2)  # sent to the smaller side, since they are of its class
    assert not as_tree(seen).missing_left[0]
    assert measure_node_distance(more_left, seen) == 6


def test_pairs_are_where_the_trees_part():
    tree = random_tree(np.random.default_rng(3), n_leaves=12, empty_leaves=False)
    other = changed(tree, np.random.default_rng(0))
    found = measure_node_distance(tree, other)
    assert found.parted
    parts = [literal_distance(tree, other, at=pair) for pair in found.parted]
    assert sum(parts) == found
    assert all(part > 0 for part in parts)


def stump(column, threshold=np.nan, subset=(), missing_left=False, names="ab"):
    shares = np.array([[0.5, 0.5], [1, 0], [0, 1]])
    subsets = np.zeros((3, len(column.categories)), bool)
    subsets[0, [column.categories.index(name) for name in subset]] = True
    return Tree(
        FeatureSpace((column,)),
        list(names),
        [0, -1, -1],
        [threshold, np.nan, np.nan],
        [1, -1, -1],
        [2, -1, -1],
        shares,
        [2.0, 1, 1],
        [missing_left, False, False],
        subsets,
    )


def test_categories_are_compared_by_name():
    a = stump(Column("c", "categorical", categories=("u", "v", "w")), subset=("u", "w"))
    b = stump(Column("c", "categorical", categories=("w", "v", "u", "z")), subset=("w", "u"))
    c = stump(Column("c", "categorical", categories=("u", "v", "w")), subset=("u", "v"))
    assert measure_node_distance(a, b) == 0
    assert measure_node_distance(a, c) == 6
    assert measure_node_distance(a, c, features_only=True) == 0


@pytest.mark.parametrize(("missing", "expected"), [(False, 0), (True, 6)])
def test_the_side_of_missing_values_counts_only_where_there_were_some(missing, expected):
    plain, seen = Column("x", "numeric", 0, 1), Column("x", "numeric", 0, 1, missing=missing)
    a, b = stump(plain, 0.5, missing_left=True), stump(seen, 0.5, missing_left=False)
    assert measure_node_distance(a, b) == expected


def test_a_leaf_with_another_label_costs_two():
    column = Column("x", "numeric", 0, 1)
    assert measure_node_distance(stump(column, 0.5), stump(column, 0.5, names="ac")) == 2
    assert measure_node_distance(stump(column, 0.5), stump(column, 0.5, names="ba")) == 4


def test_normalised_by_the_largest_distance_of_a_depth():
    a, b = stump(Column("x", "numeric", 0, 1), 0.5), stump(Column("x", "numeric", 0, 1), 0.6)
    assert measure_node_distance(a, b, normalise=True) == 6 / 6
    assert measure_node_distance(a, b, normalise=3) == 6 / 30
    with pytest.raises(ValueError, match="a depth of at least 1, got 0"):
        measure_node_distance(a, b, normalise=0)


def test_different_features_are_refused_by_name():
    a, b = stump(Column("x", "numeric", 0, 1), 0.5), stump(Column("z", "numeric", 0, 1), 0.5)
    with pytest.raises(ValueError, match=r"only the first has 'x', only the other has 'z'"):
        measure_node_distance(a, b)
