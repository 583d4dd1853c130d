"""DP-TopDown: its queue, its budget, and what it makes of noisy counts."""

import heapq
import itertools

import numpy as np
import pytest

from steadytree.data.schema import Schema
from steadytree.data.splits import SplitTable
from steadytree.privacy.evaluation import audit_privacy
from steadytree.privacy.growers import build_tree, plausible_counts
from steadytree.privacy.mechanisms import SeededNoise, release_counts
from steadytree.privacy.private_tree import PrivateTreeClassifier
from steadytree.privacy.sampled_tree import OPEN, SampledTree, leaves_of, n_open
from steadytree.privacy.topdown import (
    LEAST_GAIN,
    CountedSplits,
    Estimate,
    ReportNoisyMax,
    TopDown,
    _judge,
    _Leaf,
    count_variance,
    grow_top_down,
)
from steadytree.privacy.tree_mechanism import BlockRows, bin_counts, open_rows, side_counts
from tests.privacy.test_private_tree import SCHEMA, frame

EXACT = 1e-12  # variance of counts that are as good as exact


def block_of(n_rows, n_bins=8):
    X, y = frame(n_rows)
    candidates = SplitTable.declared(SCHEMA.space, n_bins)
    binned = candidates.space.binned(SCHEMA.encode(X))
    return BlockRows(binned, SCHEMA.encode_labels(y), 3, np.arange(n_rows)), candidates


def depth_of(tree):
    deepest, waiting = 0, [(tree, 0)]
    while waiting:
        part, depth = waiting.pop()
        deepest = max(deepest, depth)
        if not part.is_leaf:
            waiting += [(part.yes, depth + 1), (part.no, depth + 1)]
    return deepest


def open_paths(tree):
    """Path of every open leaf: splits and sides."""
    waiting, found = [(tree, ())], []
    while waiting:
        part, path = waiting.pop()
        if part.split == OPEN.split:
            found.append(path)
        elif not part.is_leaf:
            waiting += [(part.no, (*path, 0)), (part.yes, (*path, 1))]
    return found


class Oracle:
    """Answers that depend on the path of a leaf and on nothing else, so on no order."""

    def __init__(self, seed):
        self.seed, self.rounds, self.asked = seed, 0, []

    def leaf(self, path):
        rng = np.random.default_rng([self.seed, len(path), *path])
        size = 1_000 * 0.7 ** len(path)
        counts = rng.uniform(0, size, (3, 2, 2)) * rng.integers(0, 2, (3, 2, 2))
        return CountedSplits((4, 5, 6), counts, EXACT)

    def __call__(self, tree, epsilon):
        self.rounds += 1
        paths = open_paths(tree)
        self.asked += paths
        return [self.leaf(path) for path in paths]


def algorithm_1(oracle, limits, n_depths):
    """The published loop, leaf by leaf: two requests whenever a leaf is split."""
    split, queue, pushed = {}, [], 0

    def consider(path, estimate, least):
        nonlocal pushed
        leaf = _Leaf(estimate)
        _judge(leaf, oracle.leaf(path), limits.criterion, least)
        if leaf.worthwhile:
            heapq.heappush(queue, (-leaf.gain, pushed, path, leaf))
            pushed += 1
        return leaf

    root = consider((), Estimate(np.zeros(2), 0.0), 0.0)
    least = limits.error / limits.max_splits * root.estimate.counts.sum()
    while queue and len(split) < limits.max_splits:
        _, _, path, leaf = heapq.heappop(queue)
        split[path] = leaf.split
        if len(path) + 1 < n_depths:
            for side, estimate in zip((1, 0), leaf.sides, strict=True):
                consider((*path, side), estimate, least)

    def build(path):
        if path not in split:
            return OPEN
        return SampledTree(split[path], build((*path, 1)), build((*path, 0)))

    return build(())


@pytest.mark.parametrize("max_splits", [1, 2, 3, 5, 8, 13, 40])
@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_the_tree_is_that_of_the_published_loop(max_splits, criterion):
    """Level by level or leaf by leaf: the same tree, in as many rounds as it has depths."""
    limits = TopDown(max_splits, criterion=criterion)
    deepest = 0
    for seed in range(25):
        oracle = Oracle(seed)
        epsilons = [0.1] * 9
        grown = grow_top_down(oracle, epsilons, 2, limits)
        assert grown.tree == algorithm_1(Oracle(seed), limits, len(epsilons))
        assert len(grown.leaves) == len(leaves_of(grown.tree)) <= max_splits + 1
        assert len(set(oracle.asked)) == len(oracle.asked)  # no leaf is asked about twice
        assert grown.epsilon == pytest.approx(0.1 * oracle.rounds)
        deepest = max(deepest, depth_of(grown.tree))
    assert deepest > 1 or max_splits == 1


def test_an_answer_that_holds_few_leaves_is_asked_about_the_largest():
    class Narrow(Oracle):
        def __call__(self, tree, epsilon):
            assert n_open(tree) <= 2
            return super().__call__(tree, epsilon)

    for seed in range(10):
        grown = grow_top_down(Narrow(seed), [0.1] * 6, 2, TopDown(30), most_leaves=2)
        assert len(grown.leaves) == len(leaves_of(grown.tree))


@pytest.mark.parametrize("larger", [0, 1])
def test_of_two_leaves_the_larger_is_asked_about(larger):
    asked = []

    def split(tree, epsilon):
        paths = open_paths(tree)
        asked.extend(paths)
        found = []
        for path in paths:
            rows = 100.0 if path and path[0] != larger else 900.0
            yes, no = (900.0, 100.0) if larger else (100.0, 900.0)
            sides = [[yes, 0.0], [0.0, no]] if not path else [[rows / 2, 0.0], [0.0, rows / 2]]
            found.append(CountedSplits((0,), np.array([sides]), EXACT))
        return found

    grow_top_down(split, [0.1] * 2, 2, TopDown(8), most_leaves=1)
    assert asked == [(), (larger,)]


def test_depth_is_limited_by_the_number_of_splits_alone():
    """A tree that peels off one small part at each of 150 depths."""

    def peel(tree, epsilon):
        # a pure part on one side, a mixture on the other, which is split again
        mixed = [[0.0, 30.0, 0.0], [500.0, 0.0, 500.0]]
        pure = [[30.0, 0.0, 0.0], [30.0, 0.0, 0.0]]
        sides = [mixed if path == (0,) * len(path) else pure for path in open_paths(tree)]
        return [CountedSplits((0,), np.array([each]), EXACT) for each in sides]

    limits = TopDown(150, budget="uniform")
    grown = grow_top_down(peel, limits.epsilons(1.0, 1e-9), 3, limits)
    assert depth_of(grown.tree) == 150
    counts = plausible_counts(np.array([leaf.counts for leaf in grown.leaves]))
    built = build_tree(grown.tree, SplitTable.declared(SCHEMA.space, 8), SCHEMA, counts)
    assert built.depth > 64  # which used to be the most; a last pair of equal leaves is merged


# ---- the budget ----
@pytest.mark.parametrize("budget", ["decay", "uniform"])
@pytest.mark.parametrize("max_splits", [1, 2, 7, 64, 512, 10_000])
@pytest.mark.parametrize("max_depth", [None, 1, 5])
def test_parts_of_depths_never_exceed_the_budget(budget, max_splits, max_depth):
    for share in (0.0, 0.1, 0.5, 0.99):
        limits = TopDown(max_splits, budget=budget, leaf_share=share, max_depth=max_depth)
        parts = limits.epsilons(2.0, 1e-8)
        assert sum(parts) <= 2.0 * (1 - share) * (1 + 1e-12)
        assert min(parts) >= 1e-8
    if budget == "uniform" and max_depth is None:
        assert len(parts) == max_splits
        assert set(parts) == {2.0 * (1 - 0.99) / max_splits}


class Recorder(SeededNoise):
    """Notes the scale of every draw."""

    def __init__(self, seed=0):
        super().__init__(seed)
        self.highest_scales, self.laplace_scales = [], []

    def highest(self, scores, scale):
        self.highest_scales.append(scale)
        return super().highest(scores, scale)

    def laplace(self, values, scale):
        self.laplace_scales.append(scale)
        return super().laplace(values, scale)


def test_each_leaf_costs_half_in_selecting_and_half_in_counting():
    block, candidates = block_of(2_000)
    noise, limits = Recorder(), TopDown(50, leaf_share=0.0)
    epsilons = limits.epsilons(2.0, 1e-8)[:4]
    grown = grow_top_down(ReportNoisyMax(block, candidates, "gini", noise), epsilons, 3, limits)
    assert 1 <= depth_of(grown.tree) <= 4
    assert len(noise.highest_scales) == len(noise.laplace_scales)
    for select, count in zip(noise.highest_scales, noise.laplace_scales, strict=True):
        cost = 2 / select + 1 / count  # Gini scores have sensitivity 2, counts 1
        assert cost == pytest.approx(epsilons[round(np.log2(1 / cost))], rel=1e-4)


def test_the_leaf_with_the_largest_gain_is_split_first():
    block, candidates = block_of(3_000)
    find = ReportNoisyMax(block, candidates, "gini", SeededNoise(0))
    tree = grow_top_down(find, [1e4] * 4, 3, TopDown(2)).tree
    assert SCHEMA.names[candidates.table.feature[tree.split]] == "a"
    assert sum(not side.is_leaf for side in (tree.yes, tree.no)) == 1


def test_what_splits_do_not_need_is_spent_on_the_leaves():
    for share, splits in (("auto", 64), (0.0, 1), (0.3, 5)):
        fitted = PrivateTreeClassifier(
            2.0, SCHEMA, "topdown", leaf_share=share, max_splits=splits, testing_seed=0
        ).fit(*frame(2_000))
        spent = fitted.privacy_.spent
        assert sum(spent.values()) == pytest.approx(2.0)
        assert spent["leaf counts"] >= (0.1 if share == "auto" else share) * 2.0 * 0.98 - 1e-12


def test_no_share_for_leaves_still_labels_them():
    """All of it for the splits: their counts say which class is most frequent."""
    fitted = PrivateTreeClassifier(
        *(4.0, SCHEMA, "topdown"), leaf_share=0, budget="uniform", max_splits=1, testing_seed=0
    ).fit(*frame(3_000))
    assert "leaf counts" not in fitted.privacy_.spent
    assert sum(fitted.privacy_.spent.values()) == pytest.approx(4.0)
    assert fitted.score(*frame(500, 1)) > 0.6


# ---- noisy counts ----
def test_pooled_estimates_have_the_variance_that_is_stated():
    """Means within 5 standard errors, variances within 15 %: fails once in a million by chance."""
    rng, exact = np.random.default_rng(0), np.array([[400.0, 100.0], [50.0, 300.0]])
    above, runs = 9.0, 6_000  # variance of what the parent says
    found, stated = [], []
    for n_splits in (1, 4):
        for _ in range(runs):
            noise = rng.laplace(0, 5.0, (n_splits, 2, 2))
            prior = Estimate(exact.sum(axis=0) + rng.normal(0, 3.0, 2), 1 / above)
            leaf = _Leaf(prior)
            _judge(leaf, CountedSplits(range(n_splits), exact + noise, 50.0), "gini", 0.0)
            chosen = leaf.sides if n_splits == 1 else (leaf.estimate,)
            found.append([part.counts for part in chosen])
            stated = [1 / part.precision for part in chosen]
        values, truth = np.array(found), exact if n_splits == 1 else exact.sum(axis=0)[None]
        spread = values.var(axis=0)
        np.testing.assert_allclose(spread, np.broadcast_to(stated, (2, len(stated))).T, rtol=0.15)
        error = np.abs(values.mean(axis=0) - truth)
        assert (error < 5 * np.sqrt(spread / runs)).all()
        found = []


@pytest.mark.parametrize("n_splits", [1, 25])
def test_more_splits_say_more_of_a_leaf(n_splits):
    """Without a parent: variances within 15 % of those seen in 1,500 runs, 4 standard errors."""
    rng, found = np.random.default_rng(n_splits), []
    for _ in range(1_500):
        leaf = _Leaf(Estimate(np.zeros(2), 0.0))
        noisy = 1_000 + rng.laplace(0, 5.0, (n_splits, 2, 2))
        _judge(leaf, CountedSplits(range(n_splits), noisy, 50.0), "gini", 0.0)
        found.append(leaf.estimate.counts)
    assert np.var(found) == pytest.approx(1 / leaf.estimate.precision, rel=0.15)


def test_the_variance_of_counts_is_that_of_their_noise():
    noise = SeededNoise(5)
    for epsilon, times, holders in ((0.1, 1, 1), (0.5, 9, 1), (0.2, 3, 4)):
        zeros = np.zeros(40_000, np.int64)
        found = sum(release_counts(zeros, epsilon, noise, times) for _ in range(holders))
        assert found.var() == pytest.approx(count_variance(epsilon, times, holders), rel=0.05)


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_noise_alone_grows_no_tree(criterion):
    """Twenty classes that no column predicts: noise must not look like rare classes.

    Counts that were only made positive gave the largest tree allowed, 65 leaves, at each epsilon.
    """
    rng = np.random.default_rng(0)
    schema = Schema({"u": (0, 1), "v": (0, 1)}, {}, list(range(20)))
    X, y = rng.uniform(0, 1, (4_000, 2)), rng.integers(0, 20, 4_000)
    for epsilon in (0.1, 1.0, 8.0):
        leaves = []
        for seed in range(10):
            model = PrivateTreeClassifier(
                epsilon, schema, "topdown", criterion=criterion, testing_seed=seed
            )
            model.fit(X, y)
            leaves.append(model.tree_.n_leaves)
        assert np.mean(leaves) < 20


def test_a_leaf_that_gains_nothing_stays_a_leaf():
    leaf = _Leaf(Estimate(np.zeros(2), 0.0))
    even = np.array([[[500.0, 500.0], [500.0, 500.0]]])
    _judge(leaf, CountedSplits((0,), even, EXACT), "gini", 0.0)
    assert not leaf.worthwhile
    better = even + np.array([[[60.0, -60.0], [-60.0, 60.0]]])
    for criterion, least in LEAST_GAIN.items():
        _judge(leaf, CountedSplits((0,), better, EXACT), criterion, 0.0)
        assert leaf.gain > least * 2_000
        assert leaf.worthwhile
        _judge(leaf, CountedSplits((0,), better, EXACT), criterion, 2_001.0)
        assert not leaf.worthwhile


# ---- audits ----
AUDITED = Schema(bounds={"u": (0, 8)}, classes=[0, 1])
SPLITS = SplitTable.declared(AUDITED.space, 8)
SMALL = [(k, k // 4) for k in range(8)]
LARGER = [*SMALL, (0, 1)]


def rows_of(listed):
    binned, labels = (np.array(part) for part in zip(*listed, strict=True))
    return BlockRows(
        binned[None].astype(np.uint8), labels.astype(np.int32), 2, np.arange(len(labels))
    )


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_report_noisy_max_keeps_its_claim(criterion):
    noise = SeededNoise(1)
    blocks = {len(listed): rows_of(listed) for listed in (SMALL, LARGER)}

    def mechanism(listed):
        find = ReportNoisyMax(blocks[len(listed)], SPLITS, criterion, noise)
        (((split,), counts, _),) = find(OPEN, 1.0)
        return split, int(counts[0, 0, 1].clip(-2, 3))

    audit = audit_privacy(mechanism, SMALL, LARGER, 1.0, runs=4_000)
    assert not audit.refuted


def test_a_score_released_with_the_noise_that_selected_it_is_caught():
    """Report noisy max as published: the highest noisy score leaves with its index.

    One row lowers every score by the sensitivity. That all of 20 noisy scores are low then becomes
    likelier by far more than a factor of e.
    """
    rng = np.random.default_rng(2)

    def mechanism(scores):
        noisy = np.array(scores) + rng.laplace(0, 2.0, len(scores))  # 2 sensitivities / epsilon
        return int(noisy.max().clip(-6, 20))

    audit = audit_privacy(mechanism, [0.0] * 20, [-1.0] * 20, 1.0, runs=20_000)
    assert audit.refuted, audit


def test_counts_of_sides_change_by_one_in_one_count():
    """Sensitivity 1 of the counts of one split, at any leaf of any tree of one level."""
    cells = list(itertools.product(range(8), range(2)))
    rng = np.random.default_rng(3)
    trees = [OPEN, *(SampledTree(k, OPEN, OPEN) for k in range(len(SPLITS)))]
    for n_rows in (1, 4):
        listed = [cells[k] for k in rng.integers(0, len(cells), n_rows)]
        for tree, extra in itertools.product(trees, cells):
            moved = 0
            pairs = [open_rows(tree, rows_of(each), SPLITS) for each in (listed, [*listed, extra])]
            for one, other in zip(*pairs, strict=True):
                counts = [side_counts(bin_counts(b, SPLITS), SPLITS, [2]) for b in (one, other)]
                moved += np.abs(counts[1] - counts[0]).sum()
            assert moved == 1


# ---- parameters ----
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"max_splits": 0}, "max_splits must be a whole number from 1 to 10000, got 0"),
        ({"leaf_share": 1}, "leaf_share must be less than 1: with 1 nothing is left"),
        ({"leaf_share": 1.0}, "leaf_share must be less than 1"),
        ({"leaf_share": -0.1}, "leaf_share must be 'auto' or a number from 0 to 1"),
        ({"error": 2}, "error must be a number from 0 to 1"),
        ({"budget": "even"}, "budget must be one of"),
        ({"criterion": "root gini"}, "criterion must be one of"),
    ],
)
def test_parameters_that_make_no_tree_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        TopDown(**wrong)
    with pytest.raises(ValueError, match=message):
        PrivateTreeClassifier(1.0, SCHEMA, "topdown", **wrong).fit(*frame(50))


def test_depths_and_bins_can_be_chosen():
    """Up to 16 levels for other methods, any number for DP-TopDown; bins are the schema's grid."""
    fitted = PrivateTreeClassifier(
        1e5, SCHEMA, "topdown", max_depth=30, n_bins=2, max_splits=20, testing_seed=0
    ).fit(*frame(2_000))
    thresholds = fitted.tree_.threshold[~fitted.tree_.is_leaf]
    assert set(thresholds[np.isfinite(thresholds)]) <= {5.0}
    with pytest.raises(ValueError, match="max_depth"):
        PrivateTreeClassifier(1.0, SCHEMA, "greedy", max_depth=30).fit(*frame(50))


def test_a_side_is_as_precise_as_its_count_and_no_more():
    """One split and nothing known before: the side's estimate is the count itself, variance v.

    Of m splits the sum has variance 2 v / m, so a side v / 2 + v / (2 m).
    """
    v = 7.0
    for m in (1, 3):
        leaf = _Leaf(Estimate(np.zeros(2), 0.0))
        counts = np.tile([[40, 2], [3, 50]], (m, 1, 1))
        _judge(leaf, CountedSplits(range(m), counts, v), "gini", 0.0)
        for side, exact in zip(leaf.sides, counts[0], strict=True):
            np.testing.assert_allclose(side.counts, exact)
            assert 1 / side.precision == pytest.approx(v / 2 + v / (2 * m))
