"""Trees laid over each other: moves, few edits, and edits that make the new tree of the old."""

import random
from dataclasses import replace

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

import steadytree
from steadytree.distance.alignment import MOST_PAIRS, align, n_edits
from steadytree.models.boxes import rebase
from steadytree.reporting.diff import diff
from tests.distance.edits import (
    as_plan,
    as_tree,
    distances,
    known_neighbours,
    replay,
    trees,
)
from tests.distance.test_equivalence import chain
from tests.models.trees import random_rows, random_tree

SPLITS, LABELS = (0, 1, 2), (0, 1)
SMALL = [tree for n in range(3) for tree in trees(n, SPLITS, LABELS)]


def edits_between(old, new):
    return n_edits(align(as_tree(old), as_tree(new)))


@pytest.mark.parametrize(
    ("old", "new", "move"),
    [
        ((0, (2, 0, 1), (2, 1, 0)), (2, (0, 0, 1), (0, 1, 0)), "up"),
        ((0, (2, 0, 1), 1), (2, (0, 0, 1), 1), "up"),
        ((0, (2, 0, 1), 2), (2, (0, 0, 2), (0, 1, 2)), "up"),
        ((2, (0, 0, 2), (0, 1, 2)), (0, (2, 0, 1), 2), "up"),
        ((3, (0, (2, 0, 1), 1), 0), (3, (2, (0, 0, 1), 1), 0), "up"),
        ((0, (2, 0, 1), 0), (2, (0, 0, 1), 0), "swap"),
        ((0, (2, 0, 1), 0), (0, 1, (2, 0, 1)), "subtree"),
        ((0, (2, (3, 1, 0), 1), 0), (0, 1, (2, (3, 1, 0), 1)), "subtree"),
    ],
)
def test_two_splits_in_another_order_and_subtrees_elsewhere_are_one_move(old, new, move):
    found = diff(as_tree(old), as_tree(new))
    assert found.n_edits == found.counts["moved"] == 1
    assert found.counts["replaced"] == found.counts["grown"] == found.counts["cut"] == 0
    assert [node.move for node in found.nodes if node.status == "moved"] == [move]
    assert found.alike or move != "up"
    assert "1 moved" in found.formatted["headline"]
    assert "> " in str(found)
    assert 'class="box moved"' in found.svg


def test_the_ends_of_a_move_know_each_other():
    nodes = diff(as_tree((0, (2, 0, 1), 0)), as_tree((0, 1, (2, 0, 1)))).nodes
    assert [node.status for node in nodes] == ["same", "moved away", "moved", "same", "same"]
    assert (nodes[1].went_to, nodes[2].came_from) == (2, 1)
    assert [node.old for node in nodes] == [0, -1, 1, 2, 3]


def test_a_subtree_moves_out_of_one_that_is_cut():
    found = diff(as_tree((0, (3, (2, 0, 1), 1), 0)), as_tree((0, 1, (2, 0, 1))))
    assert [node.status for node in found.nodes[:4]] == ["same", "cut", "moved away", "cut"]
    assert "moved from “r ≤ 0.5”: yes" in str(found)
    assert "q ≤ 0.5 moved to “p ≤ 0.25”: no" in found.svg
    assert replay(found) == as_plan(found.new)


def test_subtrees_that_changed_sides_are_two_moves():
    one, other = (2, (3, 0, 1), 0), (3, 1, (2, 1, 0))
    assert edits_between((0, one, other), (0, other, one)) == 2


@pytest.mark.parametrize(
    ("old", "new", "n_cut"),
    [
        ((0, (0, (0, 1, 0), 0), (0, 0, (1, 0, 1))), (0, (0, (0, 0, (1, 0, 1)), 0), 0), 1),
        (
            (1, (3, (3, 0, 0), 0), (0, 0, (2, (0, 0, (2, 1, 0)), 0))),
            (1, (3, (3, 0, 0), (0, 0, (2, 1, 0))), 1),
            2,
        ),
    ],
)
def test_a_subtree_moves_while_splits_around_it_are_cut(old, new, n_cut):
    assert edits_between(old, new) == 1 + n_cut


def test_a_split_above_or_below_is_one_edit():
    tree = (2, (3, 0, 1), (1, 0, 1))
    assert edits_between(tree, (0, tree, 1)) == edits_between((0, 1, tree), tree) == 1


def test_every_single_edit_is_found_as_one():
    generator = random.Random(0)
    for tree in [*SMALL[:14], *generator.sample(SMALL[14:], 12)]:
        for other in known_neighbours(tree, SPLITS, LABELS):
            assert edits_between(tree, other) == 1, (tree, other)


def test_edits_are_nearly_as_few_as_a_search_through_all_trees_finds():
    generator = random.Random(1)
    found = []
    for start in generator.sample(SMALL, 8):
        fewest = distances(start, SPLITS, LABELS, most_splits=3)
        for other in generator.sample(SMALL, 20):
            found.append((edits_between(start, other), fewest[other]))
    # alignments are made from the top down, so a few ways through other trees are shorter
    assert sum(edits <= fewest for edits, fewest in found) >= 0.98 * len(found)
    assert all(edits <= fewest + 1 for edits, fewest in found)


def test_edits_done_in_turn_make_the_new_tree():
    generator = random.Random(2)
    plans = [
        *(tuple(generator.sample(SMALL, 2)) for _ in range(300)),
        *(tuple(generator.sample(trees(4, SPLITS, LABELS), 2)) for _ in range(100)),
    ]
    for old, new in plans:
        found = diff(as_tree(old), as_tree(new))
        assert replay(found) == as_plan(found.new), (old, new)


def test_edits_of_random_trees_with_categories_and_missing_values():
    n_moved = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        old = random_tree(rng, n_leaves=int(rng.integers(1, 12)))
        new = shuffled(rng, old)
        found = diff(old, new, random_rows(rng, old, 30))
        assert replay(found) == as_plan(found.new), seed
        assert found.n_edits <= old.n_leaves + new.n_leaves
        n_moved += found.counts["moved"]
    assert n_moved > 50


def shuffled(rng, tree):
    """The tree with some of its splits and labels in other places."""
    order = np.arange(tree.n_nodes)
    for nodes in (np.flatnonzero(~tree.is_leaf), np.flatnonzero(tree.is_leaf)):
        chosen = nodes[rng.random(len(nodes)) < 0.5]
        order[chosen] = rng.permutation(chosen)
    arrays = {name: getattr(tree, name)[order] for name in ("feature", "threshold", "value")}
    more = {name: getattr(tree, name)[order] for name in ("missing_left", "subset")}
    return replace(tree, **arrays, **more)


def test_float32_and_float64_forms_of_a_threshold_are_the_same():
    rng = np.random.default_rng(3)
    old = random_tree(rng, n_leaves=8, n_categorical=0)
    rounded = old.threshold.astype(np.float32).astype(float)
    assert n_edits(align(old, replace(old, threshold=rounded))) == 0
    assert n_edits(align(old, rebase(old, old.space))) == 0


def test_ten_thousand_levels():
    old, new = chain(10_000), chain(10_000, lambda level: (level + (level == 9_998)) % 2)
    assert old.n_leaves**2 > MOST_PAIRS
    found = diff(old, new, [[0.5], [9_997.5]])
    assert found.n_edits == found.counts["relabelled"] == 1
    assert found.alike is False
    assert found.rows.flipped.tolist() == [1]
    assert len(str(found)) < 100_000
    assert len(found.svg) < 500_000
    same = diff(old, old)
    assert same.is_same
    assert same.alike


def test_a_level_put_on_top_of_a_deep_tree_is_one_edit():
    tree = chain(3_000)
    n_nodes = tree.n_nodes + 2
    left, right = np.full(n_nodes, -1), np.full(n_nodes, -1)
    left[0], right[0] = 1, n_nodes - 1
    for side, own in ((left, tree.left), (right, tree.right)):
        side[1:-1] = np.where(own < 0, -1, own + 1)
    feature, threshold = np.where(left < 0, -1, 0), np.r_[2_999.5, tree.threshold, np.nan]
    value = np.concatenate([[[0.5, 0.5]], tree.value, [[1.0, 0.0]]])
    more = replace(
        tree,
        feature=feature,
        threshold=threshold,
        left=left,
        right=right,
        value=value,
        weight=np.ones(n_nodes),
        missing_left=np.zeros(n_nodes, bool),
        subset=np.zeros((n_nodes, 0), bool),
    )
    assert n_edits(align(tree, more)) == n_edits(align(more, tree)) == 1


def test_a_wide_tree_shows_the_levels_it_has_room_for(monkeypatch):
    X = np.random.default_rng(0).random((900, 3))
    tree = steadytree.as_tree(DecisionTreeClassifier(random_state=0).fit(X, X[:, 0] % 0.1 > 0.05))
    whole = str(diff(tree, tree))
    assert "the upper" not in whole
    monkeypatch.setattr("steadytree.reporting.diff.MOST_POSITIONS", 20)
    found = diff(tree, tree)
    depths = np.bincount(tree.node_depth)
    levels = max(k for k in range(len(depths)) if depths[: k + 1].sum() <= 20)
    assert f"(the upper {levels} levels of {tree.n_nodes:,} positions)" in str(found)
    assert len(found.formatted["nodes"]) == depths[: levels + 1].sum()


def test_a_long_chain_is_explained_in_little_memory_and_pairs_of_leaves_are_limited(monkeypatch):
    tree = chain(3_000)
    inside = steadytree.explain(tree, [[10.25]]).inside
    assert inside == pytest.approx(0.25 / 3_000)  # of the range, to the next leaf
    monkeypatch.setattr("steadytree.distance.path.MOST_PAIRS", 100)
    small = chain(9)
    assert steadytree.tree_distance(small, small) == 0
    with pytest.raises(ValueError, match="3,001 and 10 leaves, and the path distance compares at"):
        steadytree.tree_distance(tree, small)
