"""Kernels over boxes that promise a best tree or a bound, against every tree."""

import numpy as np
import pytest

from steadytree.robustness._kernels import box_bounds, box_roots, box_splits, boxes
from tests.robustness import reference_boxes as twins

SEEDS = range(40)


def state(seed):
    return np.array([2 * seed + 1], np.uint64) * np.uint64(0x9E3779B97F4A7C15)


def marks(nodes, table):
    return tuple(np.zeros((2, len(nodes), len(table.label)), bool))


@pytest.mark.parametrize("n_groups", [2, 3, 5])
def test_no_split_is_better(n_groups):
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        table = twins.random_boxes(rng, n_classes=n_groups)
        rows = np.flatnonzero(rng.random(len(table.label)) < 0.8)
        weight, least = rng.integers(0, 4, len(table.label)) / 2, float(rng.integers(0, 3))
        given = table, rows, table.label, weight, n_groups, least, int(rng.integers(9))
        value, *split, left, right = box_splits.best_box_split(*given)
        assert value == twins.best_box_split(*given)
        assert (split[0] < 0) == (value == least)
        if split[0] >= 0:
            assert twins.split_value(*given[:4], split, (left, right)) == value


def test_no_tree_of_one_split_is_better():
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        table = twins.random_boxes(rng)
        weight = rng.integers(0, 4, len(table.label)) / 2
        value, *stump = box_splits.one_level(table, weight, 0)
        assert value == pytest.approx(twins.one_level(table, weight, 0))
        own = table._replace(weight=weight)
        assert value == pytest.approx(twins.value_of(own, twins.stump_nodes(stump)))


def flags_alone(table):
    """Columns of one threshold each."""
    sides = {name: np.minimum(getattr(table, name), 1) for name in ("left_from", "right_below")}
    return table._replace(**sides, n_thresholds=np.ones_like(table.n_thresholds))


@pytest.mark.parametrize("flags", [False, True])
def test_stumps_of_two_parts_are_those_of_each(flags):
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        table = twins.random_boxes(rng, n_classes=int(rng.integers(3, 6)) if flags else None)
        table = flags_alone(table) if flags else table
        weight = rng.integers(0, 4, len(table.label)) / 2
        share = rng.integers(0, 3, len(weight)) / 2
        own = np.array([weight * share, weight * (1 - share)])
        whole = box_splits.all_sums(table, weight)
        for part, (value, *stump) in zip(
            own, box_splits.two_stumps(table, own, whole, seed), strict=True
        ):
            assert value == pytest.approx(twins.one_level(table, part, 0))
            nodes = twins.stump_nodes(stump)
            assert value == pytest.approx(twins.value_of(table._replace(weight=part), nodes))


def test_a_column_is_left_out_only_where_it_matters_to_neither_part():
    for seed in (51, 56, 183):  # where one part has found its best, the other not yet
        rng = np.random.default_rng(seed)
        table = flags_alone(twins.random_boxes(rng, n_classes=int(rng.integers(3, 6))))
        weight = rng.integers(0, 4, len(table.label)) / 2
        share = rng.choice([0, 1.0], len(weight))
        own = np.array([weight * share, weight * (1 - share)])
        found = box_splits.two_stumps(table, own, box_splits.all_sums(table, weight), seed)
        for part, stump in zip(own, found, strict=True):
            assert stump[0] == pytest.approx(twins.one_level(table, part, 0))


def test_greedy_trees():
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        table = twins.random_boxes(rng, n_classes=2)
        first, second = (np.full((16, 3), -1) for _ in range(2))
        for nodes in (first, second):
            nodes[:, 2] = 0
        tilt = float(rng.choice([0.0, 0.5, 1.0]))
        boxes.grow(table, first, 1, tilt, *marks(first, table))
        twins.grow(table, second, 1, tilt, None, None)
        used = [v for v in range(1, 16) if twins.used(second, v)]
        assert (first[used, 0] == second[used, 0]).all()
        assert twins.value_of(table, first) == twins.value_of(table, second)


@pytest.mark.parametrize("slack", [0.0, 0.5])
def test_local_search_ends_where_no_one_change_helps(slack):
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        table = twins.random_boxes(rng)
        nodes = twins.random_nodes(rng, table, 3)
        before = twins.value_of(table, nodes)
        value, work, _ = boxes.local_search(
            table, nodes, *marks(nodes, table), slack, state(seed), 10**9
        )
        assert value == pytest.approx(twins.value_of(table, nodes))
        assert value >= before - 1e-9 or slack
        assert value >= twins.local_search(table, nodes, None, None, 0, None, 0) - 1e-9
        assert work > 0


@pytest.mark.parametrize("portion", [1, 10**9])  # of work, after which a tree is left under way
def test_the_search_finds_the_best_of_few_trees_and_never_loses_one(portion):
    reached = n_left = 0
    for seed in SEEDS:
        table = twins.random_boxes(np.random.default_rng(seed))
        trees = np.full((3, 8, 3), -1)
        trees[:, :, 2] = 0
        start = twins.value_of(table, trees[0])
        values = np.array([start, start, 0.0])
        given = table, trees, values, marks(trees[0], table), 0.5, state(seed)
        found, left = [values[1]], 40_000
        while left > 0:
            left -= max(boxes.search_trees(*given, (min(left, 20_000), portion, -1.0)), 1)
            found.append(values[1])
            n_left += int(values[2])
            assert twins.value_of(table, trees[1]) == pytest.approx(values[1])
            assert twins.value_of(table, trees[0]) == pytest.approx(values[0])
        assert found == sorted(found)
        most = twins.search_trees(*given, None)
        assert found[-1] <= most + 1e-9
        reached += found[-1] > most - 1e-9
    assert reached >= 38  # of 40
    assert (n_left > 0) == (portion == 1)


def test_local_search_in_portions_ends_there_too():
    n_portions = 0
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        table = twins.random_boxes(rng)
        nodes, slack, more = twins.random_nodes(rng, table, 3), 0.5, True
        random = state(seed)
        while more:
            value, _, more = boxes.local_search(
                table, nodes, *marks(nodes, table), slack, random, 1
            )
            n_portions, slack = n_portions + 1, 0.0
        assert value == pytest.approx(twins.value_of(table, nodes))
        assert value >= twins.local_search(table, nodes, None, None, 0, None, 0) - 1e-9
    assert n_portions > 2 * len(SEEDS)


@pytest.mark.parametrize("rounds", [1, 4, box_bounds.EXACT_ROUNDS])
def test_bounds_of_two_levels(rounds):
    n_resumed = 0
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        table = twins.random_boxes(rng)
        weight = rng.integers(0, 4, len(table.label)) / 2
        near = np.full(int(table.n_thresholds.sum()), float(weight.sum()))
        levels, tree = np.array([-1e9, -np.inf]), np.full((8, 3), -1)
        shares = np.array([twins.some_shares(rng, table)] * 2)
        sides = box_roots.side_weights(table, weight, shares[0])
        given = table, weight, near, sides, shares, levels, 0.0, rounds, 0.0
        resume = np.zeros(2, np.int64)
        while box_bounds.two_levels(*given, 50, resume, tree) >= 50:  # resumed where it ended
            n_resumed += resume[0] > 0
        true = np.array(list(twins.two_levels(table, weight).values()))
        assert (near >= true - 1e-6).all()
        if rounds == box_bounds.EXACT_ROUNDS:
            assert max(levels) == pytest.approx(true.max())
            own = table._replace(weight=weight)
            assert twins.value_of(own, tree) == pytest.approx(true.max())
    assert (n_resumed > 2) == (rounds == box_bounds.EXACT_ROUNDS)  # within the pairs of a root


def test_a_pair_that_the_shares_leave_open_is_settled_by_enumeration():
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        table = twins.random_boxes(rng)
        roots = twins.two_levels(table, table.weight)
        for (column, index), most in roots.items():
            share = rng.random(len(table.label))  # of any kind
            given = table, table.weight, column, index
            value, stumps, _, rest = box_bounds.close_pair(*given, -1e9, share, 0, 10**9)
            assert rest == 0
            parts, at = [], 0
            while not parts or at > 0:  # the same in portions
                *part, at = box_bounds.close_pair(*given, -1e9, share, at, 2)
                parts.append(part[0])
                assert part[2] <= 2 + table.n_classes**2
            assert max(parts) == pytest.approx(most)
            assert value == pytest.approx(most)
            pair = [stump[1:] for stump in stumps]
            assert twins.value_of(table, twins.pair_nodes(column, index, pair)) == pytest.approx(
                most
            )
            around = *given[:2], box_splits.all_sums(*given[:2]), *given[2:]
            tried = rng.random(len(share))
            bound, low, _, _, first = box_bounds.pair_bound(*around, -1e9, 12, share, tried)
            assert bound <= sum(first) - table.penalty + 1e-9
            assert 0.0 <= min(tried.min(), share.min()) <= max(tried.max(), share.max()) <= 1.0
            assert low - 1e-9 <= most <= bound + 1e-6


def test_trees_of_two_splits():
    for seed in SEEDS:
        table = twins.random_boxes(np.random.default_rng(seed), penalty=0.0)
        roots = twins.two_levels(table, table.weight)
        goal, tree, first, found = max(roots.values()), np.full((8, 3), -1), 0, False
        while first < table.n_thresholds.sum() and not found:
            first, found, _ = box_bounds.two_splits(table, goal, first, 30, tree)
        assert found == twins.two_splits(table, goal, 0, 0, None)
        assert not found or twins.value_of(table, tree) >= goal
        assert not found or twins.splits_under(tree, 1) <= 2


def test_pairs_that_no_split_separates():
    for seed in SEEDS:
        table = twins.random_boxes(np.random.default_rng(seed), n=12)
        for sweep in range(len(table.n_thresholds)):
            order, pairs = np.argsort(table.right_below[sweep]), np.empty((99, 2), np.int64)
            count = box_bounds.conflicting_pairs(table, sweep, order, 99, 10**9, pairs)
            found = {tuple(sorted(pair)) for pair in pairs[:count].tolist()}
            assert len(found) == count
            assert found == twins.conflicting_pairs(table, sweep, order, 0, 0, pairs)
        few = np.empty((2, 2), np.int64)
        assert box_bounds.conflicting_pairs(table, sweep, order, 99, 10**9, few) <= 2
        count = box_bounds.conflicting_pairs(table, sweep, order, 1, 10**9, pairs)
        assert len(set(pairs[:count, 0])) == count  # each row with one after it


@pytest.mark.parametrize("portion", [1, 10**9])
def test_a_tree_that_is_given_is_grown_and_improved_like_any(portion):
    for seed in SEEDS:
        table = twins.random_boxes(np.random.default_rng(seed))
        alone = np.full((8, 3), -1)
        alone[:, 2] = 0
        trees, values = np.array([alone] * 3), np.array([0.0, 0.0, boxes.NONE])
        given = table, trees, values, marks(alone, table), 0.5, state(seed)
        work = boxes.grow(table, alone, 1, 0.5, *marks(alone, table))
        assert boxes.search_trees(*given, (0, 0, 0.5)) == work
        assert (trees[2] == alone).all()
        values[2] = boxes.GIVEN
        while values[2] != boxes.NONE:
            boxes.search_trees(*given, (0, portion, -1.0))
        assert values[:2].tolist() == [0.0, 0.0]
        value = twins.value_of(table, trees[2])
        assert value >= twins.local_search(table, trees[2], None, None, 0, None, 0) - 1e-9
        if portion > 1:
            same = boxes.local_search(table, alone, *marks(alone, table), 0.5, state(seed), portion)
            assert same[0] == pytest.approx(value)
            assert (alone == trees[2]).all()
