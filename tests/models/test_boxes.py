"""Columns of two trees together: widest bounds, all categories, each column once."""

from dataclasses import replace

import numpy as np
import pytest

from steadytree.data.column import Column
from steadytree.data.feature_space import FeatureSpace
from steadytree.models.boxes import (
    Boxes,
    double_thresholds,
    exact_thresholds,
    in_double,
    shared_space,
    space_of_both,
    widen,
    with_classes,
    with_labels,
)
from steadytree.models.tree import Tree
from tests.models.trees import deep_tree, random_rows, random_tree

COLUMNS = ("a", "b", "c", "d")


def asking(known, asked):
    """A tree over some columns that asks about one of them."""
    space = FeatureSpace.declare(dict.fromkeys(known, (0, 4)))
    place = known.index(asked)
    shape = [place, -1, -1], [2.0, np.nan, np.nan], [1, -1, -1], [2, -1, -1]
    return Tree(space, ["no", "yes"], *shape, [[0.5, 0.5], [1, 0], [0, 1]], [2, 1, 1])


def test_a_tree_and_its_successor_over_other_columns():
    """Every pair of up to four columns: what only the old tree knows stays where it asks for it."""
    lists = [COLUMNS[:k] for k in (1, 2, 3)] + [COLUMNS[k:] for k in (1, 2)] + [("b", "a")]
    refused = 0
    for old_names in lists:
        for new_names in lists:
            for old_asks in old_names:
                for new_asks in new_names:
                    old, new = asking(old_names, old_asks), asking(new_names, new_asks)
                    only_old, only_new = old_asks not in new_names, new_asks not in old_names
                    other = set(old_names) != set(new_names)
                    renamed = only_old and only_new
                    if other and (renamed or not set(old_names) & set(new_names)):
                        refused += 1
                        with pytest.raises(ValueError, match="different features"):
                            space_of_both(old, new)
                        continue
                    found = space_of_both(old, new).names
                    if other:
                        assert found == (*new_names, *([old_asks] if only_old else []))
                    else:
                        assert sorted(found) == sorted(old_names)
    assert refused > 10


@pytest.mark.parametrize("seed", range(20))
def test_a_shared_column_holds_both(seed):
    rng = np.random.default_rng(seed)
    trees = []
    for _ in range(2):
        low, wide = rng.integers(-3, 3), rng.integers(1, 5)
        kind = str(rng.choice(["numeric", "integer"]))
        texts = tuple(f"c{k}" for k in rng.permutation(5)[: rng.integers(1, 5)])
        number = Column("n", kind, float(low), float(low + wide), missing=bool(rng.integers(2)))
        group = Column("g", "categorical", categories=texts, missing=bool(rng.integers(2)))
        trees.append(FeatureSpace((number, group)))
    (n, g), (other, more) = trees
    number, group = shared_space(trees)
    assert (number.low, number.high) == (min(n.low, other.low), max(n.high, other.high))
    assert number.kind == (n.kind if n.kind == other.kind else "numeric")
    assert number.missing == (n.missing or other.missing)
    assert group.missing == (g.missing or more.missing)
    added = [text for text in more.categories if text not in g.categories]
    assert list(group.categories) == [*g.categories, *added]


@pytest.mark.parametrize("seed", range(20))
def test_widened_bounds_hold_every_threshold(seed):
    rng = np.random.default_rng(seed)
    trees = [random_tree(rng, n_numeric=1, n_categorical=0), deep_tree(3, lambda k: k - 2.0)]
    for tree in trees:
        (column,) = tree.space
        narrow = FeatureSpace((replace(column, low=-0.1, high=0.1),))
        (found,) = widen(narrow, [tree])
        at = [x for x in tree.threshold.tolist() if np.isfinite(x)]
        assert (found.low, found.high) == (min([-0.1, *at]), max([0.1, *at]))


def tried_values(tree, j):
    """Values of which one is in every box's part of a column that holds any."""
    column = tree.space[j]
    if column.is_categorical:
        return [*range(len(column.categories)), np.nan]
    at = exact_thresholds(tree)[tree.feature == j]
    at = at[np.isfinite(at)]
    return [*at, *np.nextafter(at, np.inf), *np.nextafter(at, -np.inf), -1e300, 1e300, np.nan]


def is_inside(boxes, leaf, j, x, column):
    if np.isnan(x):
        return bool(boxes.missing[leaf, j])
    if column.is_categorical:
        return bool(boxes.categories[leaf, j, int(x)])
    return bool(boxes.low[leaf, j] < x <= boxes.high[leaf, j])


@pytest.mark.parametrize("seed", range(30))
def test_a_row_is_in_the_box_of_its_leaf_and_in_no_other(seed):
    rng = np.random.default_rng(seed)
    shape = {"n_numeric": int(rng.integers(0, 3)), "n_categorical": int(rng.integers(0, 3))}
    shape["n_numeric"] += not sum(shape.values())
    tree = random_tree(rng, int(rng.integers(1, 10)), single_precision=bool(seed % 2), **shape)
    boxes, columns = Boxes.of(tree), list(tree.space)
    assert boxes.leaf.tolist() == [k for k in range(tree.n_nodes) if tree.left[k] < 0]
    assert boxes.label.tolist() == [tree.value[k].argmax() for k in boxes.leaf]
    tried = [tried_values(tree, j) for j in range(len(columns))]
    rows = np.array([[rng.choice(values) for values in tried] for _ in range(120)])
    leaves = tree.apply_encoded(rows)
    for row, leaf in zip(rows, leaves, strict=True):
        inside = [
            all(is_inside(boxes, k, j, x, columns[j]) for j, x in enumerate(row))
            for k in range(len(boxes.leaf))
        ]
        assert [boxes.leaf[k] for k in np.flatnonzero(inside)] == [leaf]
    for k, empty in enumerate(boxes.is_empty):
        room = [
            any(is_inside(boxes, k, j, x, columns[j]) for x in values)
            for j, values in enumerate(tried)
        ]
        assert empty == (not all(room))
    for j, column in enumerate(columns):
        if column.is_categorical:
            assert not boxes.categories[:, j, len(column.categories) :].any()
            assert np.isinf(boxes.low[:, j]).all()
        else:
            assert boxes.categories[:, j].all()


def test_thresholds_in_double_are_the_last_that_go_left():
    rng = np.random.default_rng(0)
    given = rng.normal(size=400) * 10.0 ** rng.integers(-45, 38, 400)
    given[::2] = given[::2].astype(np.float32)  # ties to even go down from every other one
    edges = [0.0, -0.0, 1e-46, -1e-46, 3.4028234663852886e38, -3.4028234663852886e38, 1e300, -1e300]
    given = np.concatenate([given, edges, [np.inf, np.nan]])
    found = double_thresholds(given)
    for at, last in zip(given[:-2], found[:-2], strict=True):
        with np.errstate(over="ignore"):
            assert np.float64(np.float32(last)) <= at
            assert np.float64(np.float32(np.nextafter(last, np.inf))) > at
    assert found[-2] == np.inf
    assert np.isnan(found[-1])


@pytest.mark.parametrize("seed", range(10))
def test_other_classes_and_precision_change_no_decision(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 6, single_precision=bool(seed % 2), n_classes=3)
    rows = random_rows(rng, tree)
    own = tree.classes.tolist()
    more = np.array([own[2], "new", own[0]])
    found = with_classes(tree, more)
    assert found.classes.tolist() == [own[2], "new", own[0], own[1]]
    assert (found.value[:, 1] == 0).all()
    for k, label in enumerate(own):
        place = found.classes.tolist().index(label)
        np.testing.assert_array_equal(found.value[:, place], tree.value[:, k])
    assert with_classes(tree, tree.classes) is tree
    assert with_labels(tree, more) is tree
    double = in_double(tree)
    assert not double.single_precision
    np.testing.assert_array_equal(double.apply(rows), tree.apply(rows))
    assert in_double(double) is double
    numbers = replace(tree, classes=np.array(["1", "2", "x"]))
    assert with_labels(numbers, np.array([1, 2])).classes.tolist() == ["1", "2", "x"]
    whole = replace(tree, classes=np.array([1, 2, 3]))
    assert with_labels(whole, np.array(["2", "1", "3", "9"])).classes.tolist() == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        ("abc", "abcd", "abcd"),
        ("abcd", "abc", "abcd"),
        ("abc", "cba", "cba"),
        ("abc", "bd", None),
    ],
)
def test_a_shared_column_is_in_order_where_one_of_both_says_how(one, other, both):
    spaces = [
        FeatureSpace((Column("g", "categorical", categories=tuple(names), ordered=True),))
        for names in (one, other)
    ]
    (group,) = shared_space(spaces)
    assert group.ordered == (both is not None)
    assert set(group.categories) == {*one, *other}
    if both:
        assert group.categories == tuple(both)
