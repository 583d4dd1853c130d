import itertools

import numpy as np
import pytest

from steadytree.stability._kernels.refine import refine_small
from steadytree.stability._kernels.small_tree import grow_small
from steadytree.stability._kernels.steady import GROUPED, ORDERED, WITH_MISSING
from steadytree.stability.small_tree import LEAF, SmallTree, TaughtRows
from tests.stability.reference_steady import squared_error


def taught(binned, p, kinds=None, roundness=None):
    n, d = binned.shape
    n_bins = binned.max(axis=0).astype(np.int64) + 1
    kinds = np.full(d, ORDERED) if kinds is None else np.array(kinds)
    flat = np.zeros((d, 64)) if roundness is None else roundness
    return TaughtRows(binned, p, np.ones(n), n_bins, kinds, np.zeros(d, np.int64), flat)


def random_rows(seed, kinds=None):
    rng = np.random.default_rng(seed)
    binned = rng.integers(0, 6, (200, 4)).astype(np.uint8)
    p = 1 / (1 + np.exp(-((binned[:, 0] > 2) * (binned[:, 1] - 2.5) + 0.5 * rng.normal(size=200))))
    return taught(binned, p[:, None], kinds, rng.random((4, 64)))


def error(tree, rows):
    leaves = tree.leaves(rows.binned)
    groups = [list(np.flatnonzero(leaves == leaf)) for leaf in np.unique(leaves)]
    return sum(squared_error(rows.targets, rows.weights, group) for group in groups)


def pair():
    """The first column alone tells most, but two of the others tell all."""
    rng = np.random.default_rng(0)
    binned = rng.integers(0, 2, (4000, 3)).astype(np.uint8)
    y = np.where(binned[:, 1], binned[:, 2], 1 - binned[:, 2])
    binned[:, 0] = np.where(rng.random(4000) < 0.8, y, 1 - y)
    binned = np.repeat(binned, 2, axis=0)
    p = np.repeat(y, 2) * 1.0
    p[::2] = 0.98 * p[::2] + 0.02 * binned[::2, 1]  # a trace that the pair is worth looking at
    return taught(binned, p[:, None])


def test_explains_what_the_squared_error_falls_by():
    rows = random_rows(0)
    tree = SmallTree.learn(rows, 5, 5.0)
    whole = squared_error(rows.targets, rows.weights, list(range(200)))
    assert tree.explained(rows) == pytest.approx(whole - error(tree, rows))


@pytest.mark.parametrize("kinds", [[ORDERED] * 4, [GROUPED] * 4, [WITH_MISSING, GROUPED] * 2])
def test_asking_anew_never_errs_more_and_keeps_leaves_large(kinds):
    n_better = 0
    for seed in range(20):
        rows = random_rows(seed, kinds)
        feature, bins, left, _ = grow_small(*rows, 5, 8.0, 0.3, 0.5, LEAF, 5)
        moved = bins.copy()
        moved[0] ^= np.uint64(1 << seed % 6)  # a bin on the wrong side
        leaves = SmallTree(feature, moved, left).leaves(rows.binned)
        if np.bincount(leaves, minlength=len(left))[left == LEAF].min() >= 8:
            bins = moved
        before = SmallTree(feature, bins, left)
        after = SmallTree(*refine_small(*rows, feature, bins, left, 8.0, 0.1), left)
        assert error(after, rows) <= error(before, rows) + 1e-9
        sizes = after.node_sums(after.leaves(rows.binned), rows.weights, rows.targets)[0]
        assert sizes[left == LEAF].min() >= 8
        n_better += error(after, rows) < error(before, rows) - 1e-6
    assert n_better >= 5


def test_two_cuts_of_one_column_end_where_no_single_move_helps():
    rng = np.random.default_rng(1)
    binned = rng.integers(0, 12, (600, 1)).astype(np.uint8)
    p = np.choose(binned[:, 0] // 4, [0.1, 0.8, 0.3])[:, None] + 0.02 * rng.normal(size=(600, 1))
    rows = taught(binned, p)
    tree = SmallTree.learn(rows, 3, 5.0)
    best = np.inf
    for thresholds in itertools.combinations(range(1, 12), 2):
        part = np.digitize(binned[:, 0], thresholds)
        groups = [list(np.flatnonzero(part == k)) for k in range(3)]
        best = min(best, sum(squared_error(p, rows.weights, group) for group in groups))
    assert error(tree, rows) == pytest.approx(best)


def test_another_first_question_is_asked_only_if_clearly_better():
    rows = pair()
    tree = SmallTree.learn(rows, 4, 5.0)
    assert tree.greedy_root == 0
    assert tree.feature[0] in (1, 2)
    assert tree.better > 1.05
    assert tree.explained(rows) == pytest.approx(
        tree.better * SmallTree.grow(rows, 4, 5.0, LEAF)[0].explained(rows)
    )
    for seed in range(10):
        found = SmallTree.learn(random_rows(seed), 6, 5.0)
        assert found.better == 1.0 or found.better > 1.05


def test_the_roundest_of_nearly_equal_cuts_is_taken():
    binned = np.repeat(np.arange(10), 30)[:, None].astype(np.uint8)
    p = np.clip((binned - 2.0) / 5, 0, 1)
    roundness = np.zeros((1, 64))
    chosen = []
    for round_bin in (3, 4, 5, 0):
        roundness[:] = 0
        roundness[0, round_bin] = 1
        rows = taught(binned, p, roundness=roundness)
        bins = int(SmallTree.learn(rows, 2, 5.0).bins[0])
        chosen.append(bins.bit_count() - 1)
    assert chosen == [3, 4, 5, 4]  # the cut above bin 0 would give up more than may be


def test_rows_alike_give_one_leaf():
    rows = taught(np.zeros((20, 2), np.uint8), np.full((20, 1), 0.3))
    tree = SmallTree.learn(rows, 8, 5.0)
    assert len(tree.left) == 1
    assert (tree.greedy_root, tree.better) == (LEAF, 1.0)
