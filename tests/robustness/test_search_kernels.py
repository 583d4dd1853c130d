"""Kernels of the robust search whose results are sets or bounds, compared as such."""

import itertools

import numpy as np
import pytest

from steadytree.robustness._kernels import cost as robust_cost
from steadytree.robustness._kernels import lists as robust_lists
from steadytree.robustness._kernels import pairs as robust_pairs
from steadytree.robustness._kernels import search as robust_search
from steadytree.robustness.search.bounds import own_rows
from tests.robustness import reference_search as twins
from tests.test_kernels import Case


def copies(arguments):
    """Arguments with arrays copied, in tuples too; tables of the search are not changed."""
    return [
        tuple(part.copy() if isinstance(part, np.ndarray) else part for part in item)
        if type(item) is tuple
        else item.copy()
        if isinstance(item, np.ndarray)
        else item
        for item in arguments
    ]


def at_most(most):
    """The bound of two levels with so many splits, called as the others are."""

    def bounded(rows, table, intervals, penalty, bound):
        robust_cost.two_level_bound(rows, table, intervals, (penalty, most), bound)

    return bounded


@pytest.mark.parametrize(
    ("kernel", "twin"),
    [
        (robust_cost.stump_bound, twins.every_stump_bound),
        (at_most(2), twins.every_two_question_bound),
        (at_most(3), twins.every_two_level_bound),
    ],
    ids=["one split", "two splits", "two levels"],
)
def test_bounds_equal_their_twins(kernel, twin):
    for seed in range(30):
        ours, theirs = (copies(twins.for_bound(Case(seed))) for _ in range(2))
        kernel(*ours)
        twin(*theirs)
        np.testing.assert_allclose(ours[-1], theirs[-1], atol=1e-9)


def test_exact_bounds_are_the_least_over_every_tree_of_two_levels():
    n_sharper = 0
    for seed in range(12):
        path, rows, _, table, intervals, charge, _, _ = twins.for_list(Case(seed))
        if len(rows) == 0:
            continue
        # without a limit none stands in for another that differs in costs beyond it
        intervals = intervals._replace(limit=np.inf) if intervals.shared else intervals
        bound = np.full(len(intervals.offset), twins.leaf_loss(rows, table))
        own = own_rows(table, rows)
        robust_search.exact_two_levels(path, own, intervals, charge[0], bound)
        expected = least_of_every_tree(path, rows, table, intervals, charge[0])
        np.testing.assert_allclose(bound, expected, atol=1e-9)
        crude = np.empty_like(bound)
        robust_cost.two_level_bound(rows, table, intervals, (charge[0], 3), crude)
        assert (crude <= bound + 1e-9).all()
        n_sharper += (crude < bound - 1e-9).any()
    assert n_sharper > 2


def least_of_every_tree(path, rows, table, intervals, penalty):
    splits, sides = path
    above = tuple(zip(splits[: sides[-1]].tolist(), sides[: sides[-1]].tolist(), strict=True))
    region = np.ones(len(table.label), np.int64)
    region[rows] = 0
    least, loss = np.full(len(intervals.offset), np.inf), np.empty((2, len(intervals.offset)))
    for tree in twins.two_level_trees(above, table):
        leaves = twins.leaves_under(tree, above)
        cost = np.full(len(table.label), np.inf)
        for leaf, label in leaves:
            reach = twins.costs_of_path(leaf, table)
            cost = np.where(table.label != label, np.minimum(cost, reach), cost)
        twins.region_losses(cost, region, table.weight, intervals, loss)
        least = np.minimum(least, loss[0] + penalty * (len(leaves) - 1))
    return least


def test_lists_hold_every_promising_tree_or_one_that_stands_in():
    sizes = []
    for seed in range(25):
        ours, theirs = (copies(twins.for_list(Case(seed))) for _ in range(2))
        n_ours = robust_lists.two_level_list(*ours)
        n_theirs = twins.every_two_level_list(*theirs)
        found, expected = as_set(ours[-1], n_ours), as_set(theirs[-1], n_theirs)
        assert found <= expected
        assert len(found) == n_ours
        limit, shared = ours[4].limit, ours[4].shared
        for encoding, costs, _, split_counts in expected - found:  # another one can stand in for it
            plain = [twins.plain_cost(cost, limit, shared) for cost in costs]
            assert any(
                split <= split_counts
                and all(
                    twins.plain_cost(c, limit, shared) >= p - 1e-6
                    for c, p in zip(other, plain, strict=True)
                )
                for _, other, _, split in found
            ), encoding
        sizes.append(n_ours)
    assert max(sizes) > 5


def test_equal_costs_have_equal_hashes_and_others_not():
    rng = np.random.default_rng(0)
    costs = rng.choice([0.0, 0.5, 1.0, 4.0, np.inf], (3000, 6))
    for shared in (False, True):
        plain = [tuple(twins.plain_cost(c, 2.0, shared) for c in row) for row in costs]
        keys = [tuple(key) for key in robust_pairs.hash_costs(costs, 2.0, shared).tolist()]
        assert len(set(plain)) == len(set(keys)) == len(set(zip(plain, keys, strict=True)))


def as_set(found, count):
    """Rows of a list, rounded, as a set."""
    encodings, costs, losses, split_counts = (array[:count] for array in found)
    return {
        (tuple(encoding), tuple(np.round(cost, 6)), tuple(np.round(loss, 6)), int(split))
        for encoding, cost, loss, split in zip(
            encodings.tolist(), costs, losses, split_counts, strict=True
        )
    }


def two_lists(seed):
    """Two lists of sub-trees whose own losses are not told, so that nothing is skipped for them."""
    path, rows, outside, table, intervals, _, _, found = twins.for_list(Case(seed))
    count = robust_lists.two_level_list(path, rows, outside, table, intervals, (0.0, 2), 1e9, found)
    encodings, costs, losses, split_counts = (array[:count] for array in found)
    order = np.lexsort(encodings.T[::-1])
    half = min(count // 2, 70)
    parts = order[:half], order[half : half + 70]
    lists = [(costs[part], 0 * losses[part], split_counts[part]) for part in parts]
    return *lists, table, intervals, outside


def test_promising_pairs_are_those_of_every_pair():
    n_found, n_tried = 0, 0
    for seed in range(12):
        left, right, table, intervals, (region, bounds) = two_lists(seed)
        around = robust_pairs.region_weights(region, table.weight, len(bounds)), bounds
        room = float(table.weight.sum()) * 0.6
        expected = set()
        for a, b in itertools.product(range(len(left[0])), range(len(right[0]))):
            loss = np.empty_like(bounds)
            twins.region_losses(
                np.minimum(left[0][a], right[0][b]), region, table.weight, intervals, loss
            )
            total = intervals.offset + loss[0] + np.maximum(loss[1:], bounds[1:]).sum(axis=0)
            if (total < room).any():
                expected.add((a, b))
        pairs = np.empty((len(left[0]) * len(right[0]) + 1, 2), np.int64)
        count = robust_pairs.promising_pairs(left[:2], right[:2], around, intervals, room, pairs)
        assert {tuple(pair) for pair in pairs[:count].tolist()} == expected
        few = np.empty((max(count - 1, 0), 2), np.int64)
        if count:
            assert (
                robust_pairs.promising_pairs(left[:2], right[:2], around, intervals, room, few)
                == -1
            )
        n_found, n_tried = n_found + count, n_tried + len(left[0]) * len(right[0])
    assert 0 < n_found < n_tried


def test_the_best_pair_is_the_best_of_all():
    for seed in range(12):
        left, right, table, intervals, _ = two_lists(seed)
        spending = 0.7, intervals.shared, True
        pairs = np.array(list(itertools.product(range(len(left[0])), range(len(right[0])))))
        if len(pairs) == 0:
            continue
        best, value = robust_pairs.best_pair(left, right, pairs, table.weight, 0.25, 3, spending)
        scored = [
            (
                twins.robust_loss(np.minimum(left[0][a], right[0][b]), table.weight, *spending)
                + 0.25 * (left[2][a] + right[2][b] + 1),
                left[2][a] + right[2][b] + 1,
            )
            for a, b in pairs
        ]
        allowed = [score for score in scored if score[1] <= 3]
        assert (value, scored[best][1]) == pytest.approx(min(allowed))


def test_pricing_the_budget_gives_the_lost_weight():
    """The least over prices of budget * price + losses is what can be lost, in parts of rows."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        n = int(rng.integers(1, 9))
        costs, weight = rng.choice([0.0, 0.3, 1.1, 2.0], n), rng.integers(1, 4, n).astype(float)
        limit = float(rng.uniform(0.1, 6))
        prices = np.concatenate([[0.0], 1 / costs[costs > 0]])
        dual = min(limit * t + (weight * np.maximum(0, 1 - t * costs)).sum() for t in prices)
        lost = robust_cost.robust_loss(costs, weight, limit, True, False)
        assert lost == pytest.approx(dual)


def test_descent_never_gets_worse():
    for seed in range(20):
        case = Case(seed)
        problem = twins.random_problem_with_questions(case)
        costs = np.empty(len(problem.table.label))
        encoding = np.array([0, 0, -1, -2, 0, -2, -1], np.int32)
        before = robust_search.encoding_value(encoding, 2, problem.table, problem.spending, costs)
        value = robust_search.improve_encoding(
            encoding, 2, problem.table, problem.spending, np.array([2, 0, 1])
        )
        after = robust_search.encoding_value(encoding, 2, problem.table, problem.spending, costs)
        assert after == pytest.approx(value)
        assert after <= before + 1e-9
