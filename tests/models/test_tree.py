import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from steadytree.data.column import Column
from steadytree.data.feature_space import FeatureSpace
from steadytree.models.boxes import Boxes, rebase, with_labels
from steadytree.models.tree import Tree

SPACE = FeatureSpace(
    (
        Column("age", "integer", 0.0, 99.0, missing=True),
        Column("site", "categorical", categories=("north", "south", "west"), missing=True),
    )
)
NAN = np.nan


@pytest.fixture
def tree():
    """age <= 40 (missing left): no; else site in {north, west} (missing right): no / yes."""
    return Tree(
        SPACE,
        ["no", "yes"],
        feature=[0, -1, 1, -1, -1],
        threshold=[40.0, NAN, NAN, NAN, NAN],
        left=[1, -1, 3, -1, -1],
        right=[2, -1, 4, -1, -1],
        value=[[0.6, 0.4], [1, 0], [0.25, 0.75], [0.6, 0.4], [0, 1]],
        weight=[10, 4, 6, 3, 3],
        missing_left=[True, False, False, False, False],
        subset=[[0, 0, 0], [0, 0, 0], [1, 0, 1], [0, 0, 0], [0, 0, 0]],
    )


ROWS = pd.DataFrame(
    {
        "age": [40, 40.5, 41, None, 90, 90],
        "site": ["south", "west", "south", "south", None, "elsewhere"],
    }
)


def test_rows_find_their_leaves(tree):
    np.testing.assert_array_equal(tree.apply(ROWS), [1, 3, 4, 1, 4, 4])
    np.testing.assert_array_equal(tree.predict(ROWS), ["no", "no", "yes", "no", "yes", "yes"])
    np.testing.assert_array_equal(tree.predict_proba(ROWS)[1], [0.6, 0.4])


def test_paths_and_sizes(tree):
    assert (tree.n_nodes, tree.n_leaves, tree.depth) == (5, 3, 2)
    np.testing.assert_array_equal(tree.parent, [-1, 0, 0, 2, 2])
    expected = [[1, 1, 0, 0, 0], [1, 0, 1, 1, 0], [1, 0, 1, 0, 1]]
    np.testing.assert_array_equal(tree.decision_path(ROWS[:3]).toarray(), expected)
    assert tree.decision_path(ROWS[:0]).shape == (0, 5)


def test_paths_are_walked_for_leaves_that_rows_reach(tree, monkeypatch):
    walked, path = [], Tree.path
    monkeypatch.setattr(Tree, "path", lambda own, node: walked.append(node) or path(own, node))
    tree.decision_path(pd.concat([ROWS[:1]] * 9, ignore_index=True))
    assert walked == [1]


def test_restrict_makes_leaves_of_nodes(tree):
    smaller = tree.restrict([2])
    assert (smaller.n_nodes, smaller.depth) == (3, 1)
    np.testing.assert_array_equal(smaller.predict(ROWS), ["no", "yes", "yes", "no", "yes", "yes"])
    assert tree.restrict([0]).n_nodes == 1
    assert tree.restrict([1, 3]) is tree


def test_prune_merges_equal_siblings_upwards(tree):
    value = tree.value.copy()
    value[4] = [0.9, 0.1]
    assert replace(tree, value=value).prune().n_nodes == 1
    assert tree.prune() is tree


def test_equality_does_not_depend_on_the_order_of_nodes(tree):
    order = [0, 2, 1, 4, 3]  # parents still first
    place = np.argsort(order)
    again = Tree(
        SPACE,
        tree.classes,
        tree.feature[order],
        tree.threshold[order],
        np.where(tree.left[order] < 0, -1, place[tree.left[order]]),
        np.where(tree.right[order] < 0, -1, place[tree.right[order]]),
        tree.value[order],
        tree.weight[order],
        tree.missing_left[order],
        tree.subset[order],
    )
    assert again == tree
    assert hash(again) == hash(tree)
    assert replace(tree, threshold=tree.threshold + 1) != tree
    assert tree != "a tree"


def test_a_tree_cannot_be_changed_even_after_pickling(tree):
    copy = pickle.loads(pickle.dumps(tree))
    assert copy == tree
    for one in (tree, copy):
        with pytest.raises(ValueError, match="read-only"):
            one.value[0] = 0


def test_single_precision_compares_as_scikit_learn_does():
    space = FeatureSpace.observe([[0.0], [1.5]])
    parts = (
        [0, -1, -1],
        [0.1, NAN, NAN],
        [1, -1, -1],
        [2, -1, -1],
        np.eye(2)[[0, 0, 1]],
        [2, 1, 1],
    )
    exact, single = Tree(space, [0, 1], *parts), Tree(space, [0, 1], *parts, single_precision=True)
    assert exact.predict([[0.1]]) == [0]
    assert single.predict([[0.1]]) == [1]  # float32(0.1) is above 0.1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"left": [1, -1, 1, -1, -1]}, "exactly one parent"),
        ({"left": [1, -1, -1, -1, -1]}, "two children or none"),
        ({"left": [3, -1, 1, -1, -1]}, "before its children"),
        ({"left": [0, -1, 3, -1, -1]}, "exactly one parent"),
        ({"left": [9, -1, 3, -1, -1]}, "exactly one parent"),
        ({"feature": [5, -1, 1, -1, -1]}, "feature must be in 0..1"),
        ({"feature": [0, 1, 1, -1, -1]}, "a leaf needs feature"),
        ({"threshold": [NAN] * 5}, "needs a threshold"),
        ({"threshold": [4.0, NAN, 4.0, NAN, NAN]}, "needs a threshold"),
        ({"subset": np.zeros((5, 3), bool)}, "not empty"),
        ({"subset": np.ones((5, 3), bool)}, "categories of its node's feature"),
        ({"subset": np.zeros((5, 2), bool)}, "subset must have shape"),
        ({"value": np.full((5, 2), 0.4)}, "sum to 1"),
        ({"value": np.tile([2.0, -1.0], (5, 1))}, "not negative"),
        ({"value": np.ones((5, 1))}, "value must have shape"),
        ({"weight": [1, 1, 1, 1, NAN]}, "weight must be finite"),
        ({"classes": ["no", "no"]}, "labels that differ"),
        ({"feature": []}, "at least one node"),
    ],
)
def test_what_is_no_tree_cannot_be_made(tree, change, message):
    with pytest.raises(ValueError, match=message):
        replace(tree, **change)


def test_a_cycle_is_no_tree():
    with pytest.raises(ValueError, match="Tree"):
        Tree(
            SPACE, [0, 1], [0, 0, 0, -1, -1], [1.0, 1, 1, NAN, NAN],
            [3, 2, 1, -1, -1], [4, 2, 1, -1, -1], np.full((5, 2), 0.5), np.ones(5),
        )  # fmt: skip


def rows_in(boxes, values):
    """Which of the encoded rows (n, p) are in which box: (n, n_leaves)."""
    inside = np.ones((len(values), len(boxes.leaf)), bool)
    for j, x in enumerate(values.T[:, :, None]):
        within = (boxes.low[:, j] < x) & (x <= boxes.high[:, j])
        width = boxes.categories.shape[2]
        if width:
            category = np.nan_to_num(values[:, j], nan=0.0).astype(np.int64)
            within &= boxes.categories[:, j][:, np.clip(category, 0, width - 1)].T
        inside &= np.where(np.isnan(x), boxes.missing[:, j], within)
    return inside


def test_boxes_hold_the_rows_of_their_leaves(tree):
    boxes = Boxes.of(tree)
    inside = rows_in(boxes, SPACE.encode(ROWS))
    assert (inside.sum(axis=1) == 1).all()
    np.testing.assert_array_equal(boxes.leaf[inside.argmax(axis=1)], tree.apply(ROWS))
    np.testing.assert_array_equal(boxes.label, [0, 0, 1])
    assert not boxes.is_empty.any()


def test_a_note_is_text_and_no_part_of_what_a_tree_is(tree):
    noted = tree.with_note("read me")
    assert noted == tree
    assert "read me" in repr(noted)
    assert noted.prune().note == "read me"
    with pytest.raises(TypeError, match="note must be text, got int"):
        tree.with_note(3)


def test_a_box_nobody_can_reach_is_empty():
    space = FeatureSpace.observe([[0.0], [1.5]])
    tree = Tree(
        space, [0, 1], [0, 0, -1, -1, -1], [1.0, 2.0, NAN, NAN, NAN], [1, 3, -1, -1, -1],
        [2, 4, -1, -1, -1], np.full((5, 2), 0.5), np.ones(5),
    )  # fmt: skip
    boxes = Boxes.of(tree)  # x <= 1, then x <= 2: the no-branch is empty, missing goes right
    np.testing.assert_array_equal(boxes.leaf[boxes.is_empty], [4])


def test_edges_of_single_precision_boxes_are_exact():
    rng = np.random.default_rng(0)
    space = FeatureSpace.observe([[0.0], [1.5]])
    for threshold in [0.1, 1.0, -0.3, 1e-40, 0.0, *rng.normal(size=50)]:
        tree = Tree(
            space, [0, 1], [0, -1, -1], [threshold, NAN, NAN], [1, -1, -1], [2, -1, -1],
            np.eye(2)[[0, 0, 1]], [2, 1, 1], single_precision=True,
        )  # fmt: skip
        edge = Boxes.of(tree).high[0, 0]
        near = np.array([edge, np.nextafter(edge, np.inf), np.nextafter(edge, -np.inf), threshold])
        rounded = near.astype(np.float32).astype(np.float64)
        np.testing.assert_array_equal(near <= edge, rounded <= threshold)


def test_a_rebased_tree_has_the_features_of_the_other_space():
    old = FeatureSpace.declare({"age": (18, 90)})
    value = [[0.5, 0.5], [1, 0], [0, 1]]
    split = ([0, -1, -1], [43.5, NAN, NAN], [1, -1, -1], [2, -1, -1], value, [2, 1, 1])
    new = FeatureSpace.declare({"height": (0, 3), "age": (0, 100)})
    assert rebase(Tree(old, ["no", "yes"], *split), new).feature.tolist() == [1, -1, -1]


def test_classes_are_written_as_the_labels_are():
    space = FeatureSpace.declare({"age": (18, 90)})
    leaf = Tree(space, [0, 1], [-1], [NAN], [-1], [-1], [[0.2, 0.8]], [5])
    assert with_labels(leaf, np.array(["1", "unclear"])).classes.tolist() == ["0", "1"]


def test_depths_of_nodes_in_any_order():
    rng = np.random.default_rng(0)
    for _ in range(20):
        left, right, depth = [-1], [-1], [0]
        while len(left) < rng.integers(1, 30):
            node = rng.choice([v for v, child in enumerate(left) if child < 0])
            left[node], right[node] = rng.permutation([len(left), len(left) + 1])
            left, right, depth = left + [-1] * 2, right + [-1] * 2, depth + [depth[node] + 1] * 2
        inner = np.array(left) >= 0
        tree = Tree(
            FeatureSpace.observe([[0.0], [9.0]]),
            [0, 1],
            np.where(inner, 0, -1),
            np.where(inner, 1.0, NAN),
            left,
            right,
            np.eye(2)[np.zeros(len(left), int)],
            np.ones(len(left)),
        )
        assert tree.node_depth.tolist() == depth
