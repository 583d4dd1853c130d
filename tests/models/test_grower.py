"""One grower: the same tree wherever the rows live, and what a literal recursion grows."""

import threading

import numpy as np
import pytest

from steadytree._base import parallel
from steadytree.data import sources
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.sources import ClassCounts, Parted, Rows, Summed, pass_over
from steadytree.data.splits import SplitTable
from steadytree.models import builder
from steadytree.models.builder import grow
from steadytree.stability._kernels.choose import GUMBEL, REJECTION, SplitSampling, choose_splits
from tests.data import reference
from tests.stability import reference as reference_stability


def make_data(seed, n=300, n_classes=3, weights=False):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=n), rng.integers(0, 5, n), rng.choice([0.0, 1, 2], n)])
    X[rng.random(n) < 0.1, 0] = np.nan
    noisy = np.nan_to_num(X[:, 0]) + X[:, 1] + rng.normal(size=n)
    y = np.digitize(noisy, [1, 3])[:n] % n_classes
    space = FeatureSpace.observe(X, categories={"x2": [0, 1, 2]})
    values = space.encode(X)
    return space.with_thresholds(values, n_thresholds=30), values, y.astype(np.int32)


def chooser(rules, score=0, sharpness=0.0, coupling=GUMBEL):
    draw = SplitSampling(score, 1.0, sharpness, coupling, 5, True)

    def choose(counts, positions):
        return choose_splits(counts.values, positions, rules.table, draw)[:2]

    return choose


@pytest.mark.parametrize(("sharpness", "coupling"), [(0.0, 0), (30.0, GUMBEL), (30.0, REJECTION)])
@pytest.mark.parametrize("score", [0, 1])
def test_trees_are_identical_for_any_number_of_sources(score, sharpness, coupling):
    space, values, y = make_data(score)
    splits = SplitTable.of(space)
    binned = space.binned(values)
    trees = []
    for k in (1, 2, 5, 50):
        parts = [Rows(np.ascontiguousarray(binned[:, i::k]), y[i::k], splits, 3) for i in range(k)]
        choose = chooser(splits, score, sharpness, coupling)
        trees.append(grow(Summed(parts), choose, np.arange(3), 4))
    merged = SplitTable.of(space, space.count_bins(binned, y, 3))
    rows = Rows(merged.merge_bins(binned), y, merged, 3)
    trees.append(grow(rows, chooser(merged, score, sharpness, coupling), np.arange(3), 4))
    assert len(set(trees)) == 1
    assert trees[0].n_leaves > 5


def grow_literally(space, values, y, splits, depth, seed):
    """Recursion on rows, choosing by the reference; (feature, threshold, left, right) or counts."""
    table, binned = splits.table, space.binned(values)

    def node(kept, position, level):
        counts = reference.count_classes(
            binned[:, kept], y[kept], np.zeros(kept.sum(), int), 1, table.bin_offsets, 3
        )
        split, threshold, _ = reference_stability.choose_splits(
            counts, np.array([position]), table, SplitSampling(0, 1.0, 0.0, GUMBEL, seed, True)
        )
        label = np.bincount(y[kept], minlength=3)
        if level == depth or split[0] < 0:
            return tuple(label)
        left = np.array(
            [reference.split_goes_left(c, table, split[0]) for c in binned[table.feature[split[0]]]]
        )
        below = (
            node(kept & left, 2 * position + 1, level + 1),
            node(kept & ~left, 2 * position + 2, level + 1),
        )
        if all(len(child) == 3 for child in below) and np.argmax(below[0]) == np.argmax(below[1]):
            return tuple(label)  # leaves with one label merge
        return (int(table.feature[split[0]]), int(threshold[0]), *below)

    return node(np.ones(len(y), bool), 0, 0)


def as_tuples(tree, space, node=0):
    if tree.left[node] < 0:
        return tuple(np.rint(tree.value[node] * tree.weight[node]).astype(int))
    j = tree.feature[node]
    if space[j].is_categorical:
        subset = np.flatnonzero(tree.subset[node])
        place = int(subset[0]) if len(subset) == 1 else len(space[j].categories)
    else:
        place = int(np.searchsorted(space[j].thresholds, tree.threshold[node]))
    children = (as_tuples(tree, space, tree.left[node]), as_tuples(tree, space, tree.right[node]))
    return (int(j), place, *children)


@pytest.mark.parametrize("seed", range(4))
def test_grown_tree_equals_a_literal_recursion(seed):
    space, values, y = make_data(seed, n=60)
    splits = SplitTable.of(space)
    tree = grow(Rows(space.binned(values), y, splits, 3), chooser(splits), np.arange(3), 3)
    assert as_tuples(tree, space) == grow_literally(space, values, y, splits, 3, seed=5)


def test_every_training_row_ends_in_the_leaf_that_counted_it():
    space, values, y = make_data(3)
    splits = SplitTable.of(space)
    tree = grow(Rows(space.binned(values), y, splits, 3), chooser(splits), np.arange(3), 5)
    leaves = tree.apply(values)
    for leaf in np.flatnonzero(tree.is_leaf):
        counted = np.bincount(y[leaves == leaf], minlength=3)
        np.testing.assert_allclose(tree.value[leaf] * tree.weight[leaf], counted, atol=1e-9)


class InParts(Parted):
    """Rows in two parts, passed over for every level."""

    def __init__(self, binned, labels, splits, n_classes):
        super().__init__(splits, n_classes)
        self._rows = [(np.ascontiguousarray(binned[:, k::2]), labels[k::2]) for k in range(2)]

    def restart(self):
        self._nodes = [np.zeros(len(labels), np.int32) for _, labels in self._rows]

    def sum_over(self, todo):
        parts = zip(self._rows, self._nodes, strict=True)
        return sum(pass_over(*rows, nodes, self.splits.table, todo) for rows, nodes in parts)


def test_order_of_rows_blocks_and_subtraction_change_nothing(monkeypatch):
    space, values, y = make_data(4)
    splits = SplitTable.of(space)

    def tree(source):
        return grow(source(space.binned(values), y, splits, 3), chooser(splits, 1), np.arange(3), 6)

    plain, by_subtraction = tree(Rows), tree(InParts)
    for kind in (Rows, InParts):
        monkeypatch.setattr(kind, "block_counters", 3 * splits.n_bins * 3)
    assert plain == by_subtraction == tree(Rows) == tree(InParts)
    assert plain.n_leaves > 8


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_jobs", [2, 3])
def test_threads_change_nothing(monkeypatch, n_jobs, weighted):
    monkeypatch.setattr(parallel, "LEAST_WORK", 1)
    monkeypatch.setattr(builder, "MANY_NODES", 4)
    monkeypatch.setattr(sources, "TURNED", 7)
    monkeypatch.setattr(sources, "LEAST_WORK", 1)
    space, values, y = make_data(5, n=400)
    splits = SplitTable.of(space)
    weights = np.random.default_rng(1).random(400) if weighted else None
    asked = []

    def tree():
        rows = Rows(space.binned(values), y, splits, 3, weights, in_order=False)
        choose = chooser(splits, 1)

        def noting(counts, positions):
            asked.append((threading.get_ident(), len(positions)))
            return choose(counts, positions)

        return grow(rows, noting, np.arange(3), 7)

    plain = tree()
    n_before, asked[:] = len(asked), []
    with parallel.allow_threads(n_jobs):
        assert tree() == plain
    assert plain.n_leaves > 30
    assert len({ident for ident, _ in asked}) > 1  # nodes were shared out
    assert n_before < len(asked)


def test_nodes_are_asked_for_in_order_unless_it_is_said_that_they_need_not(monkeypatch):
    monkeypatch.setattr(parallel, "LEAST_WORK", 1)
    monkeypatch.setattr(builder, "MANY_NODES", 2)
    space, values, y = make_data(5, n=400)
    splits, threads = SplitTable.of(space), set()
    choose = chooser(splits, 1)

    def noting(counts, positions):
        threads.add(threading.get_ident())
        return choose(counts, positions)

    with parallel.allow_threads(3):  # noise that is drawn must not depend on threads
        grow(Rows(space.binned(values), y, splits, 3), noting, np.arange(3), 6)
    assert threads == {threading.get_ident()}


def test_sources_over_other_spaces_are_refused():
    space, values, y = make_data(0)
    other = space.with_thresholds(values, n_thresholds=10)
    sources = [Rows(s.binned(values), y, SplitTable.of(s), 3) for s in (space, other)]
    with pytest.raises(ValueError, match="sources differ"):
        Summed(sources)
    with pytest.raises(ValueError, match="at least one source"):
        Summed([])
    with pytest.raises(ValueError, match="values must have shape"):
        ClassCounts(np.zeros((1, 2, 3), np.int64), SplitTable.of(space))
