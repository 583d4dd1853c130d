"""The whole-tree draw: equal to enumeration, sensitivities by brute force, rounding bounded."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from steadytree.data.schema import Schema
from steadytree.data.splits import SplitTable
from steadytree.privacy._kernels import (
    CORRECT,
    PURE,
    leaf_weight,
    order_by_class,
    pack_sides,
    root_terms,
)
from steadytree.privacy.mechanisms import SecureNoise, SeededNoise
from steadytree.privacy.sampled_tree import SampledTree, from_numbers, to_numbers
from steadytree.privacy.tree_mechanism import (
    MOST_ROWS,
    STOP,
    BlockRows,
    rows_by_leaf,
    sample_tree,
    sampler_slack,
    stop_chance,
    whole_tree_measurement,
)
from tests.federated import hospitals
from tests.privacy import reference

SCHEMA = Schema(bounds={"u": (0, 3)}, categories={"v": ["p", "q"]}, classes=[0, 1, 2])
CANDIDATES = SplitTable.declared(SCHEMA.space, 3)  # two thresholds and one category


def random_block(rng, n_rows, n_classes):
    codes = np.array([rng.integers(0, 3, n_rows), rng.integers(0, 2, n_rows)], np.uint8)
    labels = np.where(rng.random(n_rows) < 0.6, codes[0] % n_classes, codes[1])
    return BlockRows(codes, labels.astype(np.int32), n_classes, np.arange(n_rows))


def every_tree(block, depth, epsilon, utility, weights=(1.0, 1.0, 1.0), cost=0.0):
    """All trees with their log-weights, straight from the definition."""
    within, stop = block.class_counts(), stop_chance(epsilon, cost)
    rates = epsilon * np.array(weights[: block.n_classes])
    labels = range(block.n_classes) if utility == "correct" else [-1]
    for label in labels:
        weight = 0.0 if depth == 0 else np.log(stop)
        if utility == "correct":
            weight += rates[label] * within[label] - np.log(block.n_classes)
        else:
            weight += reference.leaf_log_weight(within, rates, PURE)
        yield SampledTree(-1, label=label), weight
    if depth == 0:
        return
    how = (epsilon, utility, weights, cost)
    for k in range(len(CANDIDATES)):
        yes = CANDIDATES.goes_left(block.binned, k)[block.rows]
        parts = [block._replace(rows=block.rows[side]) for side in (yes, ~yes)]
        sides = [list(every_tree(part, depth - 1, *how)) for part in parts]
        base = np.log(1 - stop) + CANDIDATES.log_prior[k]
        for (one, a), (other, b) in itertools.product(*sides):
            yield SampledTree(k, one, other), base + a + b


def summary(tree):
    """Trees of depth 3 are too many to count one by one: two levels and the leaves' labels."""

    def cut(part, levels):
        if part.is_leaf:
            return ("leaf", part.label)
        return (part.split, *(cut(s, levels - 1) for s in (part.yes, part.no))) if levels else "*"

    return cut(tree, 2)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_draws_follow_the_enumerated_chances(depth, n_classes):
    block = random_block(np.random.default_rng(depth), 25, n_classes)
    epsilon, n_draws, chances = 0.3, 8_000, {}
    utility = "correct" if depth < 3 else "pure"  # labels would make half a billion trees
    weights = [1.0, 0.3, 0.7] if depth == 2 else [1.0, 1.0, 1.0]
    cost = 2.0 if depth == 1 else 0.0
    for tree, weight in every_tree(block, depth, epsilon, utility, weights, cost):
        key = summary(tree)
        chances[key] = chances.get(key, 0.0) + np.exp(weight)
    noise, counts = SeededNoise(depth), dict.fromkeys(chances, 0)
    how = (CANDIDATES, epsilon, depth, utility, noise, weights[:n_classes], cost)
    for _ in range(n_draws):
        counts[summary(sample_tree(block, *how))] += 1
    keys = list(chances)
    expected = np.array([chances[key] for key in keys])
    expected *= n_draws / expected.sum()
    found = np.array([counts[key] for key in keys])
    common = expected >= 8  # rarer ones together
    expected = np.append(expected[common], expected[~common].sum() + 1e-9)
    found = np.append(found[common], found[~common].sum())
    # one false alarm in ten thousand
    assert stats.chisquare(found, expected * found.sum() / expected.sum()).pvalue > 1e-4


def test_secure_draws_follow_the_enumerated_chances_too():
    pytest.importorskip("opendp")
    block = random_block(np.random.default_rng(1), 12, 2)
    weights = dict(every_tree(block, 1, 0.5, "correct"))
    noise, counts = SecureNoise(), dict.fromkeys(weights, 0)
    for _ in range(3_000):
        counts[sample_tree(block, CANDIDATES, 0.5, 1, "correct", noise)] += 1
    expected = np.exp(np.array(list(weights.values())))
    expected *= 3_000 / expected.sum()
    kept = expected > 5
    found = np.array(list(counts.values()))
    expected, found = expected[kept], found[kept]
    # secure noise cannot be seeded: one false alarm in a hundred million
    assert stats.chisquare(found, expected * found.sum() / expected.sum()).pvalue > 1e-8


# ---- privacy ----
def neighbours(counts):
    for place in itertools.product(*(range(size) for size in counts.shape)):
        more = counts.copy()
        more[place] += 1
        yield more


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(("utility", "most"), [(CORRECT, 1.0), (PURE, 2.0)])
def test_a_row_moves_every_leaf_the_same_way_by_at_most_the_sensitivity(utility, most, n_classes):
    for counts in itertools.product(range(7), repeat=n_classes):
        counts = np.array(counts)
        for more in neighbours(counts):
            if utility == CORRECT:
                moves = more - counts  # the utility of each label
            else:
                moves = -np.array([_count_gini(more) - _count_gini(counts)])
            sign = 1 if utility == CORRECT else -1
            assert (sign * moves >= -1e-12).all()
            assert (sign * moves <= most + 1e-12).all()


def _count_gini(counts):
    size = int(counts.sum())
    squares = sum(int(c) ** 2 for c in counts)
    return float(size - Fraction(squares, size)) if size else 0.0


@pytest.mark.parametrize("weights", [(1.0, 1.0), (1.0, 0.25)])
@pytest.mark.parametrize("utility", ["correct", "pure"])
@pytest.mark.parametrize("depth", [1, 2])
def test_no_tree_is_more_than_e_to_the_epsilon_likelier_on_any_neighbour(utility, depth, weights):
    """All data sets of up to 3 rows over 2 x 2 cells and 2 classes, and all neighbours."""
    cells, epsilon = list(itertools.product(range(2), range(2), range(2))), 0.8

    def chances(rows):
        table = np.array(rows, np.int64).reshape(-1, 3).T
        block = BlockRows(
            table[:2].astype(np.uint8), table[2].astype(np.int32), 2, np.arange(table.shape[1])
        )
        found = np.array([w for _, w in every_tree(block, depth, epsilon, utility, weights)])
        return found - np.logaddexp.reduce(found)

    worst = 0.0
    for n_rows in range(3 if depth == 2 else 4):
        for rows in itertools.combinations_with_replacement(cells, n_rows):
            before = chances(rows)
            for extra in cells:
                worst = max(worst, np.abs(chances([*rows, extra]) - before).max())
    assert (0.3 if min(weights) == 1 else 0.15) < worst <= epsilon + 1e-9


# ---- rounding ----
def test_log_weights_are_within_the_bound_that_is_charged():
    """Against 60-digit arithmetic."""
    mpmath = pytest.importorskip("mpmath")
    mpmath.mp.dps = 60
    epsilon, prior = 0.37, CANDIDATES.log_prior
    rates = np.full(2, epsilon)
    rng = np.random.default_rng(0)
    block = random_block(rng, 200, 2)
    ordered, offsets = order_by_class(block.labels, block.rows, 2)
    bits = pack_sides(block.binned, ordered, *CANDIDATES.arrays)
    for utility in (CORRECT, PURE):
        for depth in (1, 2):
            terms = root_terms(
                bits, offsets, block.class_counts(), prior, STOP, rates, utility, depth
            )
            exact = _exact_terms(mpmath, block, epsilon, utility, depth)
            slack = sampler_slack(epsilon, depth, len(CANDIDATES), 2)
            eta = slack / (4 * (2 ** (depth + 1) - 1))
            assert max(abs(a - b) for a, b in zip(terms.tolist(), exact, strict=True)) <= eta


@pytest.mark.parametrize("utility", [CORRECT, PURE])
def test_leaf_weights_of_as_many_rows_as_allowed_are_within_the_bound(utility):
    mpmath = pytest.importorskip("mpmath")
    mpmath.mp.dps = 60
    rng = np.random.default_rng(1)
    for _ in range(200):
        counts = rng.integers(0, MOST_ROWS // 3, 3)
        epsilon = float(rng.choice([0.013, 0.7, 9.1]))
        eta = sampler_slack(epsilon, 1, 3, 3) / 12
        found = leaf_weight(counts, counts, False, np.full(3, epsilon), utility)
        assert abs(found - _exact_leaf(mpmath, counts, epsilon, utility)) <= eta


def _exact_leaf(mp, counts, epsilon, utility):
    counts = [mp.mpf(int(c)) for c in counts]
    if utility == CORRECT:
        return mp.log(sum(mp.exp(mp.mpf(epsilon) * c) for c in counts) / len(counts))
    size = sum(counts)
    if not size:
        return mp.mpf(0)
    return -mp.mpf(epsilon) / 2 * (size - sum(c * c for c in counts) / size)


def _exact_terms(mp, block, epsilon, utility, depth):
    def leaf(rows):
        return _exact_leaf(mp, rows.class_counts(), epsilon, utility)

    def terms(rows, levels):
        found = []
        for k in range(len(CANDIDATES)):
            yes = CANDIDATES.goes_left(rows.binned, k)[rows.rows]
            parts = [rows._replace(rows=rows.rows[side]) for side in (yes, ~yes)]
            below = [total(part, levels - 1) for part in parts]
            prior = mp.log(1 - mp.mpf(STOP)) + mp.mpf(float(CANDIDATES.log_prior[k]))
            found.append(prior + below[0] + below[1])
        return [*found, mp.log(mp.mpf(STOP)) + leaf(rows)]

    def total(rows, levels):
        if levels == 0:
            return leaf(rows)
        return mp.log(sum(mp.exp(t) for t in terms(rows, levels)))

    return terms(block, depth)


@pytest.mark.parametrize("epsilon", [1e-4, 0.1, 1.0, 100.0])
def test_slack_is_a_small_share_of_epsilon(epsilon):
    assert 0 < sampler_slack(epsilon, 3, 1_000, 50) < 2e-4 * epsilon
    assert MOST_ROWS >= 10**8


def test_a_split_costs_two_rows_and_the_prior_stays_a_probability():
    for rate in (0.0, 1e-6, 0.5, 3.0, 1e6):
        stop = stop_chance(rate, 2.0)
        assert 0 < stop < 1
        # the log-odds of a split, from which two rows' worth of utility is taken
        expected = np.log(4.0) - min(2 * rate, 30.0)
        assert np.log1p(-stop) - np.log(stop) == pytest.approx(expected, abs=1e-2)


@pytest.mark.parametrize("cost", [-0.1, 2.1, float("nan")])
def test_costs_beyond_the_bound_on_rounding_are_refused(cost):
    block = random_block(np.random.default_rng(0), 5, 2)
    with pytest.raises(ValueError, match="cost must lie between 0 and 2"):
        sample_tree(block, CANDIDATES, 1.0, 1, "correct", SeededNoise(0), (), cost)


@pytest.mark.parametrize("weights", [[1.0], [1.0, 1.1], [1.0, -0.1], [1.0, float("nan")]])
def test_weights_above_one_are_refused(weights):
    """A row that counts more than 1 would cost more than epsilon."""
    block = random_block(np.random.default_rng(0), 5, 2)
    with pytest.raises(ValueError, match="weights must be 2 numbers from 0 to 1"):
        sample_tree(block, CANDIDATES, 1.0, 1, "correct", SeededNoise(0), weights)


# ---- shape ----
def test_empty_data_give_a_tree_all_the_same():
    block = BlockRows(np.empty((2, 0), np.uint8), np.empty(0, np.int32), 2, np.arange(0))
    for depth in (1, 2, 3):
        for utility in ("correct", "pure"):
            sample_tree(block, CANDIDATES, 1.0, depth, utility, SeededNoise(0))


def test_a_measurement_counts_for_opendp():
    pytest.importorskip("opendp")
    measurement = whole_tree_measurement(CANDIDATES, 2, 0.5, 2, SecureNoise())
    assert measurement.map(3) == 1.5
    assert isinstance(measurement([[0, 1, 1], [2, 0, 0]]), SampledTree)


def test_trees_as_numbers_come_back():
    tree = SampledTree(2, SampledTree(0, SampledTree(-1), SampledTree(-1)), SampledTree(-1))
    assert from_numbers(to_numbers(tree), 3) == tree


@pytest.mark.parametrize(
    "numbers", [(), (0,), (3, -1, -1), (-1, -1), (-2,), (0, -1), (True, -1, -1)]
)
def test_numbers_that_are_no_tree_are_refused(numbers):
    with pytest.raises(ValueError, match="make up one tree"):
        from_numbers(numbers, 3)


@pytest.mark.parametrize(("depth", "epsilon"), [(0, 1.0), (4, 1.0), (2, 0.0), (2, float("inf"))])
def test_draw_refuses_depth_and_epsilon_out_of_range(depth, epsilon):
    with pytest.raises(ValueError, match=r"depth must be|epsilon must be"):
        sample_tree(
            random_block(np.random.default_rng(0), 5, 2),
            CANDIDATES,
            epsilon,
            depth,
            "correct",
            SeededNoise(0),
        )


def test_a_node_costs_the_work_of_its_own_rows():
    seen = []

    class Watched(np.ndarray):
        def __le__(self, other):
            seen.append(len(self))
            return np.asarray(self) <= other

        __eq__ = __le__

    candidates = SplitTable.declared(hospitals.SCHEMA.space, 4)
    X, y = hospitals.rows(0, 100)
    codes = candidates.space.binned(hospitals.SCHEMA.encode(X)).view(Watched)
    block = BlockRows(codes, hospitals.SCHEMA.encode_labels(y), 2, np.arange(100))
    tree = from_numbers((0, 1, -1, -1, 1, -1, -1), len(candidates))
    list(rows_by_leaf(tree, block, candidates))
    assert sum(seen) == 2 * 100  # two levels, each of all rows once
