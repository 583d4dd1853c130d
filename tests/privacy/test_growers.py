"""Growers of private trees: what they spend, and the trees that they build."""

import numpy as np

from steadytree.data.splits import SplitTable
from steadytree.privacy.growers import (
    build_tree,
    grow_greedy,
    plausible_counts,
    read_rows,
)
from steadytree.privacy.sampled_tree import SampledTree
from tests.privacy.test_private_tree import SCHEMA, frame
from tests.privacy.test_topdown import Recorder


def test_greedy_selects_one_split_a_node_at_the_level_s_budget():
    X, y = frame(200)
    candidates, noise = SplitTable.declared(SCHEMA.space, 8), Recorder()
    source = read_rows(SCHEMA, X, y).source(candidates)
    grow_greedy(source, candidates, [0.5, 0.25], "gini", noise)
    np.testing.assert_allclose(noise.highest_scales, [4.0, 8.0, 8.0], rtol=1e-5)


def test_a_sampled_label_outranks_a_noisy_count():
    counts = plausible_counts(np.array([[5, 9], [-3, -1], [4, 4]]), np.array([0, 1, 1]))
    assert counts.argmax(axis=1).tolist() == [0, 1, 1]
    assert (counts >= 0).all()


def test_a_leaf_without_counts_takes_its_parent_s_shares():
    candidates = SplitTable.declared(SCHEMA.space, 4)
    sampled = SampledTree(0, SampledTree(-1), SampledTree(-1))
    tree = build_tree(sampled, candidates, SCHEMA, np.array([[0.0, 0, 0], [1.0, 3, 0]]))
    assert tree.label[0] == 1  # both leaves say the same, so they were merged
