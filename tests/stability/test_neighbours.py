"""The frontier of a tree's neighbours against full enumeration of all combinations of options."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from steadytree.data.feature_space import FeatureSpace
from steadytree.models.tree import LEAF, Tree
from steadytree.stability import neighbours
from steadytree.stability.neighbours import Neighbours, Sketch
from steadytree.stability.new_rows import Leaf, NewRows, Split, changed_splits, split_of
from tests.models.trees import random_rows, random_tree


def all_trees(found, node, rows, used, fresh):
    """Every tree that the options allow below a node of the old tree, with its changed splits."""
    old, share = found.old, found.old.value[node]
    inner = int(found.n_splits[node])
    made = [(leaf, inner) for leaf in leaves_for(found, rows, share)]
    may = not used and found.rows.weights[rows].sum() >= 2 * found.least
    if fresh is None and may:
        fresh = found._grow(rows, neighbours.FRESH_LEAVES)
    if fresh is not None and fresh.left[0] != LEAF:
        made += [(tree, n + inner) for tree, n in prunings(found, fresh, 0, rows, share) if n]
    if inner == 0:
        return made
    for split, changes in found._splits(node, rows, fresh):
        if changes and not may:
            continue
        goes, now = found.rows.goes_left(split, rows), used or changes > 0
        left = all_trees(found, old.left[node], rows[goes], now, None)
        right = all_trees(found, old.right[node], rows[~goes], now, None)
        for (a, n), (b, m) in product(left, right):
            made.append(((split, a, b), n + m + changes))
    return made


def prunings(found, fresh, node, rows, share):
    made = [(leaf, 0) for leaf in leaves_for(found, rows, share)]
    if fresh.left[node] != LEAF:
        goes = found.rows.goes_left(fresh.splits[node], rows)
        left = prunings(found, fresh, fresh.left[node], rows[goes], share)
        right = prunings(found, fresh, fresh.right[node], rows[~goes], share)
        made += [((fresh.splits[node], a, b), n + m + 1) for (a, n), (b, m) in product(left, right)]
    return made


def leaves_for(found, rows, share):
    labels = np.unique([found.rows.labels[rows], found.rows.decided[rows]])
    return [Leaf(int(k), share) for k in (labels if len(rows) else [share.argmax()])]


def points_of(found, trees):
    """Loss, flips, changed splits and leaves, read off the trees themselves."""
    for nested, changes in trees:
        tree = found.rows.tree_of(nested)
        leaves = tree.apply_encoded(found.rows.values)
        wrong = tree.label[leaves] != found.rows.labels
        if found.rows.log_loss:
            loss = -np.log(tree.value[leaves, found.rows.labels]) @ found.rows.weights
        else:
            loss = wrong @ found.rows.weights
        flips = (tree.label[leaves] != found.rows.decided) @ found.rows.weights
        yield loss, flips, changes, tree.n_leaves


def frontier_of(points, most):
    points = np.array([point for point in points if (np.array(point) <= most + 1e-9).all()])
    kept = []
    for point in np.unique(points.round(8), axis=0):
        rest = (points <= point + 1e-8).all(axis=1) & (points < point - 1e-8).any(axis=1)
        if not rest.any():
            kept.append(point)
    return np.array(kept)


@given(st.integers(0, 2**32 - 1))
@example(521124739)  # losses that differ in the sixth decimal
@example(102736753)  # and in the eleventh
@settings(max_examples=40, deadline=None)
def test_the_frontier_is_that_of_all_combinations_of_options(seed):
    rng = np.random.default_rng(seed)
    old = random_tree(rng, n_leaves=int(rng.integers(1, 4)), n_classes=2, labels="int")
    values = np.asarray(old.space.encode(random_rows(rng, old, n=24)), float)
    labels, weights = rng.integers(0, 2, 24), rng.choice([1.0, 2.0], 24)
    rows = NewRows(old, values, labels, weights, log_loss=bool(rng.integers(2)))
    refit = random_refit(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(neighbours, "FRESH_LEAVES", 3)
        found = Neighbours(rows, refit)
        trees = all_trees(found, 0, rows.everyone, False, Sketch.of(refit))
    expected = [*points_of(found, trees), tuple(rows.measure(refit))]
    np.testing.assert_allclose(
        frontier_of(found.frontier.points, found.most),  # without near-ties of sums
        frontier_of(expected, found.most),
        atol=1e-7,
    )
    assert found.exact
    for k, point in enumerate(found.frontier.points):
        tree = found.build(k)
        measured = rows.measure(tree)
        assert measured[[1, 3]].tolist() == pytest.approx(point[[1, 3]].tolist())
        assert measured[2] <= point[2]  # a fresh sub-tree may hold a split that was there before


def random_refit(rows):
    """A small tree grown from the rows."""
    grower = object.__new__(Neighbours)
    hot = np.eye(rows.n_classes)[rows.labels][:, 1:]
    grower.rows, grower.targets, grower.least = rows, hot, 3.0
    grower.bins = neighbours.fine_bins(rows.old.space, rows.values, hot, rows.weights)
    grower.binned = grower.bins.binned(rows.values)
    sketch = grower._grow(rows.everyone, 3)

    def nested(node):
        if sketch.left[node] == LEAF:
            return Leaf(int(node) % 2, np.array([0.5, 0.5]))
        return sketch.splits[node], nested(sketch.left[node]), nested(sketch.right[node])

    return rows.tree_of(nested(0))


def rows_with_missing(decide):
    """Rows of two numbers, x often missing, and a tree in use that asks x <= 0.35."""
    rng = np.random.default_rng(0)
    values = rng.random((80, 2)).round(2)
    values[rng.random(80) < 0.4, 0] = np.nan
    space = FeatureSpace.observe(values)
    nodes = np.array([0, LEAF, LEAF]), np.array([0.35, np.nan, np.nan])
    children = np.array([1, LEAF, LEAF]), np.array([2, LEAF, LEAF])
    value, missing_left = np.array([[0.5, 0.5], [1, 0], [0, 1]]), np.array([True, False, False])
    old = Tree(space, np.array([0, 1]), *nodes, *children, value, np.ones(3), missing_left)
    return NewRows(old, values, decide(values).astype(int), np.ones(80), log_loss=False)


def test_options_of_a_split():
    rows = rows_with_missing(lambda values: ~(values[:, 0] <= 0.6))
    found = Neighbours(rows, rows.old)
    own = split_of(rows.old, 0)
    new = Split(1, 0.5, own.subset, False)
    listed = found._splits(0, rows.everyone, Sketch([new, None, None], [1, -1, -1], [2, -1, -1]))
    assert [changes for _, changes in listed] == [0, 1, 1, 2]
    assert listed[0][0].same(own)
    moved = listed[1][0]
    assert (rows.goes_left(moved, rows.everyone) == (rows.labels == 0)).all()
    assert listed[2][0].same(own._replace(missing_left=False))
    assert listed[3][0] is new
    none_gone = rows.everyone[~np.isnan(rows.values[:, 0])]
    assert [changes for _, changes in found._splits(0, none_gone, None)] == [0, 1]


@pytest.mark.parametrize("sign", [1, -1])
def test_a_fresh_tree_sends_rows_where_it_was_grown_from_them(sign):
    """Where the category is missing, z decides: no leaf errs if each is asked on its own side."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"c": rng.choice(["a", "b"], 80), "z": rng.random(80).round(2)})
    frame.loc[rng.random(80) < 0.5, "c"] = None
    space = FeatureSpace.observe(frame)
    gone = frame["c"].isna().to_numpy()
    labels = (~gone | (frame["z"] > 0.7).to_numpy()).astype(int)
    labels = labels if sign > 0 else 1 - labels
    leaf, none = np.array([LEAF]), np.array([np.nan])
    old = Tree(space, np.array([0, 1]), leaf, none, leaf, leaf, np.array([[0.4, 0.6]]), np.ones(1))
    rows = NewRows(old, np.asarray(space.encode(frame), float), labels, np.ones(80), False)
    sketch = Neighbours(rows, old)._grow(rows.everyone, 3)

    def errors(node, own):
        if sketch.left[node] == LEAF:
            return len(own) - np.bincount(labels[own]).max(initial=0)
        goes = rows.goes_left(sketch.splits[node], own)
        below = (sketch.left[node], own[goes]), (sketch.right[node], own[~goes])
        return sum(errors(child, part) for child, part in below)

    assert len(sketch.left) == 5
    assert errors(0, rows.everyone) == 0


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None)
def test_ends_of_the_frontier(seed):
    rng = np.random.default_rng(seed)
    old = random_tree(rng, n_leaves=int(rng.integers(1, 7)), n_classes=2, labels="int")
    values = np.asarray(old.space.encode(random_rows(rng, old, n=60)), float)
    rows = NewRows(old, values, rng.integers(0, 2, 60), np.ones(60), log_loss=False)
    refit = random_refit(rows)
    found = Neighbours(rows, refit)
    kept = found.build(int(found.ranking(found.frontier.points, np.inf)[0]))
    assert changed_splits(old, kept) == 0
    np.testing.assert_array_equal(kept.label[kept.is_leaf], old.label[old.preorder][kept.is_leaf])
    points = found.frontier.points
    assert (points <= rows.measure(refit) + 1e-9).all(axis=1).any()  # the refit, or better
    assert (points[:, 1] <= rows.measure(refit)[1]).all()


def test_too_many_points_are_thinned_and_said_to_be(monkeypatch):
    rng = np.random.default_rng(0)
    old = random_tree(rng, n_leaves=7, n_classes=2, labels="int")
    values = np.asarray(old.space.encode(random_rows(rng, old, n=200)), float)
    rows = NewRows(old, values, rng.integers(0, 2, 200), np.ones(200), log_loss=True)
    refit = random_refit(rows)
    whole = Neighbours(rows, refit)
    monkeypatch.setattr(neighbours, "MOST_POINTS", 5)
    found = Neighbours(rows, refit)
    assert whole.exact
    assert not found.exact
    assert len(found.frontier.points) < len(whole.frontier.points)
    kept = found.build(int(found.ranking(found.frontier.points, np.inf)[0]))
    assert changed_splits(old, kept) == 0
