"""Kernels of the exact search equal their twins, or keep what they promise of a twin's answer."""

import itertools

import numpy as np
import pytest

from steadytree.robustness._kernels import cost as robust_cost
from steadytree.robustness._kernels import lists as robust_lists
from steadytree.robustness._kernels import pairs as robust_pairs
from steadytree.robustness._kernels import search as robust_search
from steadytree.robustness.search.bounds import own_rows
from tests.robustness import reference_lists as twins
from tests.robustness import reference_search as cases
from tests.robustness.test_search_kernels import as_set, copies
from tests.test_kernels import Case

SEEDS = range(25)


def alike(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


# ---- bounds ----
def test_stump_bound():
    n_questions = 0
    for seed in SEEDS:
        ours, theirs = (copies(cases.for_bound(Case(seed))) for _ in range(2))
        robust_cost.stump_bound(*ours)
        twins.stump_bound(*theirs)
        alike(ours[-1], theirs[-1])
        n_questions += (theirs[-1] < cases.leaf_loss(*theirs[:2]) - 1e-9).any()
    assert n_questions > 5  # else only leaves were compared


@pytest.mark.parametrize("most", [2, 3])
def test_two_level_bound(most):
    n_lower = 0
    for seed in SEEDS:
        rows, table, intervals, penalty, bound = cases.for_bound(Case(seed))
        expected, stump = np.empty_like(bound), np.empty_like(bound)
        robust_cost.two_level_bound(rows, table, intervals, (penalty, most), bound)
        twins.two_level_bound(rows, table, intervals, (penalty, most), expected)
        twins.stump_bound(rows, table, intervals, penalty, stump)
        alike(bound, expected)
        n_lower += (bound < stump - 1e-9).any()
    assert n_lower > 3


def test_exact_two_levels_lies_above_the_bound_of_two_levels():
    n_lowered = 0
    for seed in range(90):
        path, rows, _, table, intervals, charge, _, _ = cases.for_list(Case(seed))
        if len(rows) == 0 or not 0 < len(table.feature) <= 4:  # few splits: many cases
            continue
        # without a limit none stands in for another that differs in costs beyond it
        intervals = intervals._replace(limit=np.inf) if intervals.shared else intervals
        leaf, own = cases.leaf_loss(rows, table), own_rows(table, rows)
        found, expected = np.full((2, len(intervals.offset)), leaf)
        robust_search.exact_two_levels(path, own, intervals, charge[0], found)
        twins.exact_two_levels(path, own, intervals, charge[0], expected)
        alike(found, expected)
        crude = np.empty_like(found)
        twins.two_level_bound(rows, table, intervals, (charge[0], 3), crude)
        assert (crude <= found + 1e-9).all()
        n_lowered += (found < leaf - 1e-9).any()
    assert n_lowered > 5


def test_exact_two_levels_never_raises_a_bound():
    path, rows, _, table, intervals, charge, _, _ = cases.for_list(Case(0))
    bound = np.zeros(len(intervals.offset))
    robust_search.exact_two_levels(path, own_rows(table, rows), intervals, charge[0], bound)
    assert (bound == 0).all()


# ---- lists ----
def test_add_leaves():
    counts = []
    for seed in range(40):
        path, _, outside, table, intervals, _, target, found = cases.for_list(Case(seed))
        splits, sides = path
        theirs = copies([found])[0]
        asked = (splits, sides, int(sides[-1]), outside, table, intervals, target)
        count = robust_lists.add_leaves(*asked, found)
        assert count == twins.add_leaves(*asked, theirs)
        for one, other in zip(found, theirs, strict=True):
            alike(one[:count], other[:count])
        counts.append((count, table.n_classes))
    assert any(0 < count < n_classes for count, n_classes in counts)


def joined(seed, room):
    """Options of both sides of a first split, every pair of them, and all else."""
    case = Case(seed)
    path, _, outside, table, intervals, charge, target, _ = cases.for_list(case)
    options = (path[0], path[1].copy(), case.rng)
    sides = [stumps(options, side, table, intervals, charge[0]) for side in (0, 1)]
    pairs = np.array(list(itertools.product(*(range(len(side[0])) for side in sides))), np.int64)
    pairs = pairs[case.rng.permutation(len(pairs))[:60]].reshape(-1, 2)
    n, n_intervals = len(table.label), len(intervals.offset)
    found = np.zeros((room, 7), np.int32), np.zeros((room, n)), np.zeros((room, n_intervals))
    found = *found, np.zeros(room, np.int64)
    most = int(case.rng.integers(1, 4))
    return 0, *sides, pairs, outside, table, intervals, (charge[0], most), target, found


def stumps(options, side, table, intervals, penalty):
    """Random leaves and splits of one side, with costs as they are."""
    splits, sides, rng = options
    above = (*twins.path_above((splits, sides)), (0, side))
    encodings, costs, split_counts = [], [], []
    for _ in range(9):
        first, second = rng.permutation(table.n_classes)[[0, -1]].tolist()
        split = int(rng.integers(len(table.feature)))
        tree = first if rng.random() < 0.4 else (split, first, second)
        encodings.append(cases.flat(tree, 1))
        costs.append(twins.tree_threats(cases.leaves_under(tree, above), table))
        split_counts.append(int(isinstance(tree, tuple)))
    losses = np.zeros((9, len(intervals.offset)))  # not looked at
    return np.array(encodings, np.int32), np.array(costs), losses, np.array(split_counts, np.int64)


@pytest.mark.parametrize("room", [3, 80])
def test_join_pairs(room):
    n_full, n_joined, n_tried = 0, 0, 0
    for seed in range(40):
        if len(cases.for_list(Case(seed))[3].feature) == 0:
            continue
        ours, theirs = (joined(seed, room) for _ in range(2))
        begin = seed % 3
        found = robust_lists.join_pairs(*ours, begin)
        assert found == twins.join_pairs(*theirs, begin)
        for one, other in zip(ours[-1], theirs[-1], strict=True):
            alike(one, other)
        n_full += found[1] < len(ours[3])
        n_joined, n_tried = n_joined + found[0] - begin, n_tried + found[1]
    assert 0 < n_joined < n_tried
    assert (n_full > 0) == (room == 3)


def test_two_level_list_is_full_or_part_of_the_twins():
    n_full = 0
    for seed in range(15):
        arguments = cases.for_list(Case(seed))
        theirs = copies(arguments)
        n_ours, n_theirs = robust_lists.two_level_list(*arguments), twins.two_level_list(*theirs)
        assert as_set(arguments[-1], n_ours) <= as_set(theirs[-1], n_theirs)
        assert (n_ours == 0) == (n_theirs == 0)
        n_leaves = int((arguments[-1][3][:n_ours] == 0).sum())
        if n_ours > n_leaves:  # one index too few
            few = tuple(array[: n_ours - 1].copy() for array in arguments[-1])
            assert robust_lists.two_level_list(*arguments[:-1], few) == -1
            assert twins.two_level_list(*theirs[:-1], few) == -1
            n_full += 1
    assert n_full > 2


def test_narrow_pair():
    sizes = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        n_intervals = int(rng.integers(1, 4))
        # quarters add up without rounding
        left, right = (
            rng.integers(0, 17, (int(rng.integers(0, 8)), n_intervals)) / 4 for _ in "lr"
        )
        rest, target = rng.integers(0, 5, n_intervals) / 4, float(rng.integers(4, 24)) / 4
        ours, theirs = (
            (left, np.arange(len(left)), right, np.arange(len(right)), rest, target)
            for _ in range(2)
        )
        count = robust_lists.narrow_pair(*ours)
        assert count == twins.narrow_pair(*theirs)
        for index in (0, 1):
            kept, expected = ours[1 + 2 * index], theirs[1 + 2 * index]
            np.testing.assert_array_equal(kept[: count[index]], expected[: count[index]])
        sizes.append((sum(count), len(left) + len(right)))
    assert sum(0 < kept < integer for kept, integer in sizes) > 20
    assert sum(kept == 0 < integer for kept, integer in sizes) > 20


# ---- pairs ----
def test_region_weights():
    for seed in range(20):
        _, region, weight, _, _ = cases.for_regions(Case(seed))
        for n_regions in (3, 5):
            found = robust_pairs.region_weights(region, weight, n_regions)
            np.testing.assert_array_equal(found, twins.region_weights(region, weight, n_regions))


def random_lists(seed, n_left, n_right):
    """Two lists with costs and losses of their own, and what lies around them."""
    case = Case(seed)
    _, region, weight, intervals, bounds = cases.for_regions(case)
    rng, n, n_intervals = case.rng, len(region), len(intervals.offset)
    lists = []
    for size in (n_left, n_right):
        costs = rng.choice([0.0, 0.25, 1.0, 2.5, np.inf], (size, n))
        lists.append((costs, rng.integers(0, 9, (size, n_intervals)) / 8, rng.integers(0, 3, size)))
    bounds[:] = rng.integers(0, 9, bounds.shape) / 4
    return *lists, (twins.region_weights(region, weight, len(bounds)), bounds), intervals, weight


def test_promising_pairs():
    n_found, n_tried, n_by_own_losses = 0, 0, 0
    for seed in range(7):
        left, right, around, intervals, weight = random_lists(seed, 37, 34)  # two groups each
        room = 0.31 * weight.sum() + float(intervals.offset.min()) + 1.2345
        pairs, expected = np.zeros((2, 37 * 34, 2), np.int64)
        count = robust_pairs.promising_pairs(left[:2], right[:2], around, intervals, room, pairs)
        assert count == twins.promising_pairs(
            left[:2], right[:2], around, intervals, room, expected
        )
        assert {*map(tuple, pairs[:count])} == {*map(tuple, expected[:count])}
        if count:
            few = pairs[: count - 1].copy()
            for kernel in (robust_pairs.promising_pairs, twins.promising_pairs):
                assert kernel(left[:2], right[:2], around, intervals, room, few) == -1
        n_found, n_tried = n_found + count, n_tried + 37 * 34
        alone = [(costs, 0 * losses) for costs, losses, _ in (left, right)]
        n_by_own_losses += (
            robust_pairs.promising_pairs(*alone, around, intervals, room, pairs) > count
        )
    assert 0 < n_found < n_tried
    assert n_by_own_losses > 0


def test_best_pair():
    n_none, n_ties = 0, 0
    for seed in range(40):
        left, right, _, intervals, weight = random_lists(seed, 7, 6)
        pairs = np.array(list(itertools.product(range(7), range(6))))
        pairs = pairs[Case(seed).rng.permutation(len(pairs))]
        for penalty, most, integer in itertools.product((0.0, 0.25), (0, 2, 5), (False, True)):
            asked = (left, right, pairs, weight, penalty, most, (0.7, intervals.shared, integer))
            (index, value), (expected, least) = (
                robust_pairs.best_pair(*asked),
                twins.best_pair(*asked),
            )
            assert index == expected
            assert value == pytest.approx(least, abs=1e-6)
            n_none += index == -1
            n_ties += index > 0
    assert n_none > 0
    assert n_ties > 0


# ---- equal sub-trees and better encodings ----
def test_hash_costs():
    rng = np.random.default_rng(1)
    for n in (1, 4):
        costs = rng.choice([0.0, -0.0, 0.5, 1.0, 2.0, 4.0, np.inf], (500, n)) + 0.0
        for shared in (False, True):
            keys = [tuple(key) for key in robust_pairs.hash_costs(costs, 2.0, shared).tolist()]
            same = twins.hash_costs(costs, 2.0, shared)
            assert [keys.index(key) for key in keys] == same.tolist()
            for half in zip(*keys, strict=True):  # each half of a key tells them apart too
                assert len(set(half)) == len(set(same.tolist()))


@pytest.mark.parametrize("depth", [1, 2])
def test_improve_plan_ends_where_no_single_change_is_better(depth):
    n_better = 0
    for seed in range(25):
        case = Case(seed)
        problem = cases.random_problem_with_questions(case)
        table, spending = problem.table, problem.spending
        encoding = np.array([0, -1, -2] if depth == 1 else [0, 0, -1, -2, 0, -2, -1], np.int32)
        order = case.rng.permutation(2**depth - 1)
        costs = np.empty(len(table.label))
        before = cases.encoding_value(encoding, depth, table, spending, costs)
        one_step = twins.improve_encoding(encoding, depth, table, spending, order)
        value = robust_search.improve_encoding(encoding, depth, table, spending, order)
        assert value == pytest.approx(cases.encoding_value(encoding, depth, table, spending, costs))
        assert value <= before + 1e-9
        assert twins.improve_encoding(encoding, depth, table, spending, order) >= value - 1e-9
        if depth == 1:  # one step reaches every encoding
            assert value == pytest.approx(one_step)
        n_better += value < before - 1e-9
    assert n_better > 5


def test_improve_plan_finds_the_best_question_of_a_single_node():
    """One step reaches everything then: the first split alone, or a lowest with its labels."""
    better = np.zeros(3, int)
    for seed in range(30):
        case = Case(seed)
        problem = cases.random_problem_with_questions(case)
        table, spending = problem.table, problem.spending
        start = np.array([0, 0, -1, -2, 0, -2, -1], np.int32)
        start[[0, 1, 4]] = case.rng.integers(len(table.feature), size=3)
        before = cases.encoding_value(start, 2, table, spending, np.empty(len(table.label)))
        for node in range(3):
            asked = (start.copy(), 2, table, spending, np.array([node]))
            expected = twins.improve_encoding(*asked)
            assert robust_search.improve_encoding(*asked) == pytest.approx(expected)
            better[node] += expected < before - 1e-9
    assert (better > 2).all()
