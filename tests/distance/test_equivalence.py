"""Whether two trees decide alike, against all inputs that can differ."""

import sys
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest

from steadytree.data.column import Column
from steadytree.data.feature_space import FeatureSpace
from steadytree.distance.diff import MOST_STEPS, Values, _one_of, compare_decisions
from steadytree.models.boxes import exact_thresholds, rebase, shared_space
from steadytree.models.tree import Tree
from steadytree.reporting.diff import diff
from tests.distance.edits import as_tree
from tests.distance.test_diff import NO, YES, tree_of
from tests.models.trees import random_tree


def all_inputs(*trees):
    """Rows of which one is in every box that the trees' splits make, in encoded form."""
    choices = []
    for j, column in enumerate(trees[0].space):
        if column.is_categorical:
            values = [*range(len(column.categories)), np.nan]
        else:
            own = [exact_thresholds(tree)[tree.feature == j] for tree in trees]
            at = np.unique(np.concatenate(own))
            at = at[np.isfinite(at)]
            # each threshold is the last value to its left; one value lies beyond the last
            values = [*at, (at[-1] if len(at) else 0.0) + 1, np.nan]
        choices.append(values)
    return np.array(list(product(*choices)), dtype=float)


def decisions(tree, rows):
    return tree.classes[tree.label[tree.apply_encoded(rows)]]


def random_pair(rng):
    """Two trees over one space that decide alike about as often as not."""
    shape = {"n_numeric": int(rng.integers(0, 3)), "n_categorical": int(rng.integers(0, 3))}
    shape["n_numeric"] += not sum(shape.values())
    single = [bool(rng.integers(2)) for _ in range(2)]
    old = random_tree(
        rng, int(rng.integers(1, 6)), **shape, n_classes=2, single_precision=single[0]
    )
    if rng.random() < 0.5:
        other = random_tree(rng, int(rng.integers(1, 6)), **shape)
        names = dict(zip(other.space.names, old.space.names, strict=True))
        kinds = [c.is_categorical for c in old.space] == [c.is_categorical for c in other.space]
        if kinds and names:
            columns = zip(other.space, old.space, strict=True)
            space = FeatureSpace(tuple(replace(c, name=own.name) for c, own in columns))
            new = replace(other, space=space, single_precision=single[1])
            space = shared_space([old.space, new.space])
            return rebase(old, space), rebase(new, space)
    shares = np.where(rng.random((old.n_nodes, 1)) < 0.15, old.value[:, ::-1], old.value)
    threshold = np.where(rng.random(old.n_nodes) < 0.1, old.threshold + 0.1, old.threshold)
    missing = old.missing_left ^ (rng.random(old.n_nodes) < 0.1)
    return old, replace(old, value=shares, threshold=threshold, missing_left=missing & ~old.is_leaf)


def test_the_answer_is_that_of_all_inputs():
    answers = []
    for seed in range(1000):
        old, new = random_pair(np.random.default_rng(seed))
        rows = all_inputs(old, new)
        expected = bool((decisions(old, rows) == decisions(new, rows)).all())
        found = compare_decisions(old, new)
        assert found.alike == expected, seed
        answers.append(expected)
        if not expected:
            row = pd.DataFrame(
                {
                    c.name: [
                        found.example.get(c.name, c.categories[0] if c.is_categorical else 0.0)
                    ]
                    for c in old.space
                }
            )
            row = row.astype({c.name: object if c.is_categorical else float for c in old.space})
            assert old.predict(row) != new.predict(row), seed
    assert 200 < sum(answers) < 800  # both answers are tried


def test_only_what_is_out_of_reach_may_differ():
    plain = tree_of(("age", 40, NO, YES))
    nested = tree_of(("age", 40, ("age", 60, NO, YES), YES))  # no age is up to 40 and above 60
    assert compare_decisions(plain, nested).alike
    above = tree_of(("age", 40, ("age", 30, NO, YES), YES))
    found = compare_decisions(plain, above)
    assert found.alike is False
    assert 30 < found.example["age"] <= 40
    sides = tree_of(("age", 40, NO, YES), missing_left=True)
    assert compare_decisions(plain, sides).example == {"age": None}
    towns = [tree_of(("town", group, NO, YES)) for group in ({"Ulm"}, {"Ulm", "Kiel"})]
    assert compare_decisions(*towns).example == {"town": "Kiel"}


@pytest.mark.parametrize(
    ("kind", "low", "high", "value"),
    [("integer", 40.2, 47.0, 41.0), ("numeric", 1.234, 1.256, 1.25), ("binary", 0.5, 1.5, 1.0)],
)
def test_the_example_is_a_plain_value(kind, low, high, value):
    space = FeatureSpace((Column("x", kind, 0.0, 1.0 if kind == "binary" else 100.0),))
    nodes = ([0, -1, -1], [low, np.nan, np.nan], [1, -1, -1], [2, -1, -1])
    old = Tree(space, ["no", "yes"], *nodes, [[0.5, 0.5], [1, 0], [0, 1]], [2, 1, 1])
    new = replace(old, threshold=np.array([high, np.nan, np.nan]))
    assert compare_decisions(old, new).example == {"x": value}


def chain(n_levels, label=lambda level: level % 2):
    """A tree with one split a level, each on a higher threshold."""
    n_nodes = 2 * n_levels + 1
    left, right = np.full(n_nodes, -1), np.full(n_nodes, -1)
    inner = np.arange(0, n_nodes - 1, 2)
    left[inner], right[inner] = inner + 1, inner + 2
    feature = np.where(left < 0, -1, 0)
    threshold = np.full(n_nodes, np.nan)
    threshold[inner] = np.arange(n_levels)
    value = np.eye(2)[[label(node // 2) for node in range(n_nodes)]]
    space = FeatureSpace.declare({"x": (0, n_levels)})
    return Tree(space, ["no", "yes"], feature, threshold, left, right, value, np.ones(n_nodes))


def test_work_is_limited_and_then_nothing_is_claimed():
    old, new = chain(50), chain(50, lambda level: (level + (level == 49)) % 2)
    assert compare_decisions(old, old, most_steps=60).alike is None
    assert compare_decisions(old, old).alike
    assert compare_decisions(old, new, most_steps=60).alike is None
    assert compare_decisions(old, new).alike is False


def test_moves_that_keep_decisions_are_alike():
    old, new = (0, (2, 0, 1), (2, 1, 0)), (2, (0, 0, 1), (0, 1, 0))
    found = diff(as_tree(old), as_tree(new))
    assert found.alike
    assert found.counts["moved"] == 1


def test_two_leaves_differ_everywhere():
    assert "Predictions differ for every input." in str(diff(as_tree(0), as_tree(1)))
    assert diff(as_tree(0), as_tree((0, 0, 0))).alike


def slow_example(column, low, high):
    """A plain number in ``(low, high]``, by trying rounder and rounder ones."""
    inside = [max(low, np.nextafter(column.low, -np.inf)), min(high, column.high)]
    if inside[0] < inside[1]:
        low, high = inside
    open_low, open_high = low == -np.inf, high == sys.float_info.max
    if open_low and open_high:
        return 0.0
    if column.kind != "numeric":
        whole = np.floor(high) if open_low else np.floor(low) + 1
        if low < whole <= high:
            return whole
    middle = high - 1 if open_low else low + 1 if open_high else low / 2 + high / 2
    for digits in range(1, 18):
        tried = float(f"{middle:.{digits}g}")
        if low < tried <= high:
            return tried
    return high


@pytest.mark.parametrize("kind", ["numeric", "integer"])
def test_an_example_is_within_the_bounds_if_it_can_be_and_has_few_digits(kind):
    rng, largest = np.random.default_rng(0), sys.float_info.max
    grid = [-7.0, -2.5, -1.0, 0.0, 0.25, 1.0, 1.1, 3.0, 3.04, 3.041, 9.0, 1e6 + 0.3]
    for _ in range(1_500):
        ends = np.sort(rng.choice(grid, 2, replace=False)).tolist()
        low, high = ends if rng.random() < 0.7 else (ends[0], np.nextafter(ends[0], np.inf))
        low, high = low if rng.random() < 0.8 else -np.inf, high if rng.random() < 0.8 else largest
        bounds = np.sort(rng.choice(grid, 2)).tolist()
        if rng.random() < 0.3:  # bounds that end where the values do
            bounds = [bounds[0], low] if bounds[0] < low else [high, max(high, bounds[1])]
        column = Column("x", kind, *bounds)
        found = _one_of(column, Values(low, high, 0, bool(rng.integers(2))))
        assert low < found <= high
        assert found == slow_example(column, low, high), (column, low, high)
    nothing = Values(1.0, 1.0, 0, True)
    assert _one_of(Column("x", kind, 0.0, 2.0), nothing) is None
    named = Column("x", "categorical", categories=("u", "v", "w", "z"))
    for bits in range(1, 16):
        first = next(text for k, text in enumerate(named.categories) if bits >> k & 1)
        assert _one_of(named, Values(0.0, 0.0, bits, bool(bits % 2))) == first


def slow_steps(old, new):
    """Whether two trees decide alike, and splits looked at on the way, by sets of inputs."""
    rows = all_inputs(old, new)
    steps = 0

    def follow(tree, node, own):
        """Down to the first split that parts the inputs, or to a leaf."""
        nonlocal steps
        while tree.left[node] >= 0:
            steps += 1
            goes = np.array([k in left_of[id(tree), node] for k in own])
            if goes.any() and not goes.all():
                return node, [own[goes], own[~goes]]
            node = tree.left[node] if goes.all() else tree.right[node]
        return node, None

    def visit(one, other, own):
        one, parts = follow(old, one, own)
        other, more = follow(new, other, own)
        if parts is None and more is None:
            return bool(labels[0][one] == labels[1][other])
        tree, node = (old, one) if parts is not None else (new, other)
        for child, part in zip((tree.left[node], tree.right[node]), parts or more, strict=True):
            if not visit(*((child, other) if tree is old else (one, child)), part):
                return False
        return True

    labels = [tree.classes[tree.label] for tree in (old, new)]
    left_of = {}
    for tree in (old, new):
        for node in np.flatnonzero(~tree.is_leaf):
            stump = root_split(tree, node)
            left_of[id(tree), node] = set(np.flatnonzero(stump.apply_encoded(rows) == 1).tolist())
    return visit(0, 0, np.arange(len(rows))), steps


def root_split(tree, node):
    """One split of a tree, alone."""
    own = np.array([node, node, node])
    feature, threshold = tree.feature[own], tree.threshold[own]
    feature[1:], threshold[1:] = -1, np.nan
    missing = tree.missing_left[own] & [True, False, False]
    return replace(
        tree, feature=feature, threshold=threshold, left=np.array([1, -1, -1]),
        right=np.array([2, -1, -1]), value=tree.value[own], weight=np.ones(3),
        missing_left=missing, subset=tree.subset[own] & np.array([[True], [False], [False]]),
    )  # fmt: skip


def test_work_is_counted_split_by_split():
    tried = 0
    for seed in range(120):
        old, new = random_pair(np.random.default_rng(seed))
        alike, steps = slow_steps(old, new)
        assert compare_decisions(old, new, most_steps=steps).alike == alike
        if steps:
            assert compare_decisions(old, new, most_steps=steps - 1).alike is None
            tried += 1
    assert tried > 60
    assert MOST_STEPS == 200_000  # about a second
