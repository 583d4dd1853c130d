"""Growers of private trees: what they spend, and the trees that they build."""

import numpy as np

from steadytree.data.splits import SplitTable
from steadytree.privacy.growers import (
    build_tree,
    grow_greedy,
    grow_top_down,
    plausible_counts,
    read_rows,
    split_shares,
)
from steadytree.privacy.mechanisms import SeededNoise
from steadytree.privacy.tree_mechanism import BlockRows, SampledTree
from tests.privacy.test_private_tree import SCHEMA, frame


def test_shares_of_depths_never_exceed_the_budget():
    for budget in ("decay", "uniform"):
        for depth in range(1, 17):
            assert split_shares(budget, depth).sum() <= 1 + 1e-12


class Recorder(SeededNoise):
    """Notes the scale of every draw."""

    def __init__(self):
        super().__init__(0)
        self.highest_scales, self.laplace_scales = [], []

    def highest(self, scores, scale):
        self.highest_scales.append(scale)
        return super().highest(scores, scale)

    def laplace(self, values, scale):
        self.laplace_scales.append(scale)
        return super().laplace(values, scale)


def block_of(n_rows):
    X, y = frame(n_rows)
    candidates = SplitTable.declared(SCHEMA.space, 8)
    codes = candidates.space.binned(SCHEMA.encode(X))
    return BlockRows(codes, SCHEMA.encode_labels(y), 3, np.arange(n_rows)), candidates


def test_greedy_selects_one_split_a_node_at_the_level_s_budget():
    X, y = frame(200)
    candidates, noise = SplitTable.declared(SCHEMA.space, 8), Recorder()
    source = read_rows(SCHEMA, X, y).source(candidates)
    grow_greedy(source, candidates, [0.5, 0.25], "gini", noise)
    np.testing.assert_allclose(noise.highest_scales, [4.0, 8.0, 8.0], rtol=1e-5)


def test_topdown_spends_no_more_than_its_share_on_any_path():
    block, candidates = block_of(2_000)
    noise, shares = Recorder(), split_shares("decay", 4)
    tree = grow_top_down(block, candidates, 2.0 * shares, "gini", noise, 50, 0.1)
    # each visited leaf costs half in choosing, half in counting, at its depth's share
    costs = [1 / scale for scale in noise.laplace_scales]
    assert set(np.round(costs, 9)) <= set(np.round(2.0 * shares / 2, 9))
    assert len(noise.highest_scales) == len(noise.laplace_scales)

    def depth(part):
        return 0 if part.is_leaf else 1 + max(depth(part.yes), depth(part.no))

    assert 1 <= depth(tree) <= 4


def test_topdown_splits_the_leaf_with_the_largest_gain_first():
    block, candidates = block_of(3_000)
    epsilons = 1e4 * split_shares("uniform", 4)
    tree = grow_top_down(block, candidates, epsilons, "gini", SeededNoise(0), 2, 0.1)
    asked = [SCHEMA.names[candidates.table.feature[q]] for q in (tree.split,)]
    assert asked == ["a"]
    assert sum(not side.is_leaf for side in (tree.yes, tree.no)) == 1


def test_a_sampled_label_outranks_a_noisy_count():
    counts = plausible_counts(np.array([[5, 9], [-3, -1], [4, 4]]), np.array([0, 1, 1]))
    assert counts.argmax(axis=1).tolist() == [0, 1, 1]
    assert (counts >= 0).all()


def test_a_leaf_without_counts_takes_its_parent_s_shares():
    candidates = SplitTable.declared(SCHEMA.space, 4)
    sampled = SampledTree(0, SampledTree(-1), SampledTree(-1))
    tree = build_tree(sampled, candidates, SCHEMA, np.array([[0.0, 0, 0], [1.0, 3, 0]]))
    assert tree.label[0] == 1  # both leaves say the same, so they were merged
