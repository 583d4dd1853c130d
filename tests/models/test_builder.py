"""TreeBuilder: every row goes where the chosen splits send it; labels, shares and merging."""

import numpy as np
import pytest

from steadytree.data._kernels.counts import split_goes_left
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.splits import SplitTable
from steadytree.models.builder import TreeBuilder

CLASSES = np.array(["a", "b", "c"])


def random_rows(rng: np.random.Generator, missing: bool) -> tuple[list[list], FeatureSpace]:
    rows = [
        [float(rng.integers(0, 6)) / 2, rng.choice(["u", "v", "w"]), rng.choice(["m", "n"])]
        for _ in range(60)
    ]
    if missing:
        for row in rows:
            row[int(rng.integers(3))] = None
    rows += [[0.0, "u", "m"], [2.5, "v", "n"], [1.0, "w", "n"]]
    space = FeatureSpace.observe(rows)
    return rows, space.with_thresholds(space.encode(rows), "midpoint")


def random_tree(rng: np.random.Generator, n_splits: int, depth: int = 3) -> np.ndarray:
    """Split, left and right of each node, parents first."""
    nodes: list[list[int]] = []

    def add(height: int) -> int:
        here = len(nodes)
        nodes.append([-1, -1, -1])
        if height and rng.random() < 0.8:
            nodes[here] = [int(rng.integers(n_splits)), add(height - 1), add(height - 1)]
        return here

    add(depth)
    return np.array(nodes).T.copy()


def send(row: np.ndarray, splits: SplitTable, nodes: np.ndarray) -> list[int]:
    """Nodes that a row of bins passes."""
    path = [0]
    while nodes[0, path[-1]] >= 0:
        split = nodes[0, path[-1]]
        left = split_goes_left(row[splits.table.feature[split]], splits.table, split)
        path.append(int(nodes[1 if left else 2, path[-1]]))
    return path


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("kind", ["observed", "observed with missing", "declared"])
def test_rows_get_the_label_of_the_leaf_the_splits_send_them_to(seed, kind):
    rng = np.random.default_rng(seed)
    rows, space = random_rows(rng, missing=kind != "observed")
    splits = SplitTable.declared(space, 4) if kind == "declared" else SplitTable.of(space)
    nodes = random_tree(rng, len(splits))
    values = space.encode(rows)
    paths = [send(row, splits, nodes) for row in splits.space.binned(values).T]
    totals = np.zeros((nodes.shape[1], 3))
    for path, label in zip(paths, rng.integers(0, 3, len(rows)), strict=True):
        totals[path, label] += 1
    builder = TreeBuilder(splits, CLASSES)
    tree = builder.build(*nodes, totals, missing_right=kind == "declared")
    answers = [totals[path[-1]].argmax() for path in paths]
    assert tree.label[tree.apply_encoded(values)].tolist() == answers
    assert tree == tree.prune()
    assert tree.weight[0] == len(rows)
    np.testing.assert_allclose(tree.value[0], totals[0] / len(rows))


@pytest.mark.parametrize("heavy_left", [True, False])
def test_missing_values_not_seen_in_training_go_where_most_rows_went(heavy_left):
    space = FeatureSpace.observe([[0.0], [1.0]])
    splits = SplitTable.of(space.with_thresholds(np.array([[0.0], [1.0]]), "midpoint"))
    nodes = np.array([[0, -1, -1], [1, -1, -1], [2, -1, -1]])
    totals = np.array([[3.0, 1.0], [3.0, 0.0], [0.0, 1.0]])
    if not heavy_left:
        totals[1:] = [[1.0, 0.0], [0.0, 3.0]]
    tree = TreeBuilder(splits, CLASSES[:2]).build(*nodes, totals)
    assert bool(tree.missing_left[0]) is heavy_left
    private = TreeBuilder(splits, CLASSES[:2]).build(*nodes, totals, missing_right=True)
    assert not private.missing_left[0]


def test_a_node_without_rows_takes_the_shares_of_its_parent():
    space = FeatureSpace.observe([[0.0], [1.0], [2.0]])
    splits = SplitTable.of(space.with_thresholds(space.encode([[0.0], [1.0], [2.0]]), "midpoint"))
    nodes = np.array([[0, 1, -1, -1, -1], [1, 2, -1, -1, -1], [4, 3, -1, -1, -1]])
    totals = np.array([[4.0, 2.0], [3.0, 2.0], [0.0, 0.0], [0.0, 2.0], [0.0, 1.0]])
    tree = TreeBuilder(splits, CLASSES[:2]).build(*nodes, totals)
    np.testing.assert_array_equal(tree.value[2], [0.6, 0.4])
    empty = TreeBuilder(splits, CLASSES[:2]).build(*nodes, np.zeros((5, 2)))
    assert empty.n_nodes == 1
    np.testing.assert_array_equal(empty.value[0], [0.5, 0.5])


def test_smoothing_begins_leaves_that_have_rows_with_some_of_each_class():
    space = FeatureSpace.observe([[0.0], [1.0], [2.0]])
    splits = SplitTable.of(space.with_thresholds(space.encode([[0.0], [1.0], [2.0]]), "midpoint"))
    nodes = np.array([[0, 1, -1, -1, -1], [1, 2, -1, -1, -1], [4, 3, -1, -1, -1]])
    totals = np.array([[4.0, 2.0], [3.0, 0.0], [0.0, 0.0], [3.0, 0.0], [1.0, 2.0]])
    build = TreeBuilder(splits, CLASSES[:2]).build
    whole = build(*nodes, totals, merge=False, smoothing=0.5)
    expected = [[4 / 6, 2 / 6], [1, 0], [1, 0], [3.5 / 4, 0.5 / 4], [1.5 / 4, 2.5 / 4]]
    np.testing.assert_allclose(whole.value, expected)
    merged = build(*nodes, totals, smoothing=0.5)  # the leaf that two become is smoothed
    np.testing.assert_allclose(merged.value, [[4 / 6, 2 / 6], [3.5 / 4, 0.5 / 4], expected[-1]])
    alone = build(*nodes[:, -1:], totals[-1:], smoothing=0.5)
    np.testing.assert_allclose(alone.value, [[1 / 3, 2 / 3]])


def test_a_leaf_whose_label_was_chosen_answers_with_it():
    space = FeatureSpace.observe([[0.0], [1.0]])
    splits = SplitTable.of(space.with_thresholds(np.array([[0.0], [1.0]]), "midpoint"))
    nodes = np.array([[0, -1, -1], [1, -1, -1], [2, -1, -1]])
    totals = np.array([[5.0, 1.0], [3.0, 1.0], [2.0, 0.0]])
    label = np.array([-1, 0, 1])
    tree = TreeBuilder(splits, CLASSES[:2]).build(*nodes, totals, label=label)
    assert tree.label.tolist() == [0, 0, 1]
    assert tree.value[1:].tolist() == [[0.75, 0.25], [0.0, 1.0]]


def test_a_merged_split_takes_the_threshold_that_was_chosen():
    space = FeatureSpace.observe([[0.0], [8.0]])
    space = space.with_thresholds(np.array([[0.0], [8.0]]), n_thresholds=9)
    codes = space.binned(np.array([[0.0], [8.0]]))
    splits = SplitTable.of(space, space.count_bins(codes, np.zeros(2, np.int32), 1))
    assert len(splits) == 1
    nodes = np.array([[0, -1, -1], [1, -1, -1], [2, -1, -1]])
    totals = np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    found = [
        TreeBuilder(splits, CLASSES[:2])
        .build(*nodes, totals, threshold=np.array([k, -1, -1]))
        .threshold[0]
        for k in range(splits.table.first[0], splits.table.last[0] + 1)
    ]
    assert found == space[0].thresholds[splits.table.first[0] : splits.table.last[0] + 1].tolist()
