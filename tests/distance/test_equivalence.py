"""Whether two trees decide alike, against all inputs that can differ."""

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest

from steadytree.data.column import Column
from steadytree.data.feature_space import FeatureSpace
from steadytree.distance.diff import compare_decisions
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
