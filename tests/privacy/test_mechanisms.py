import itertools
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from steadytree.data.schema import Schema
from steadytree.data.splits import SplitTable
from steadytree.privacy.accounting import epsilon_of
from steadytree.privacy.mechanisms import (
    SMALLEST_PART,
    SecureNoise,
    SeededNoise,
    check_epsilon,
    release_counts,
    release_counts_zcdp,
    rho_of,
    score_slack,
    select,
)
from steadytree.privacy.tree_mechanism import SCORE_SENSITIVITY as SENSITIVITY
from steadytree.privacy.tree_mechanism import (
    BlockRows,
    bin_counts,
    sampler_slack,
    score_splits,
    side_counts,
    sides_from_bins,
)

SCHEMA = Schema(bounds={"u": (0, 2)}, categories={"v": ["p", "q", "r"]}, classes=[0, 1, 2])


@pytest.fixture(params=["seeded", "secure"])
def noise(request):
    if request.param == "seeded":
        return SeededNoise(7)
    pytest.importorskip("opendp")
    return SecureNoise()


def test_discrete_laplace_has_its_distribution(noise):
    values = noise.laplace(np.zeros(6_000, np.int64), 2.0)
    support = np.arange(-8, 9)
    chance = np.tanh(0.25) * np.exp(-np.abs(support) / 2.0)
    found = np.array([(values == z).sum() for z in support])
    rest = len(values) - found.sum()
    expected = np.append(chance, 1 - chance.sum()) * len(values)
    # secure noise cannot be seeded: one false alarm in a hundred million
    assert stats.chisquare(np.append(found, rest), expected).pvalue > 1e-8


def test_discrete_gaussian_has_its_distribution(noise):
    values = noise.gaussian(np.zeros(6_000, np.int64), 1.5)
    support = np.arange(-4, 5)
    weights = np.exp(-0.5 * (np.arange(-40, 41) / 1.5) ** 2)
    chance = np.exp(-0.5 * (support / 1.5) ** 2) / weights.sum()
    found = np.array([(values == z).sum() for z in support])
    expected = np.append(chance, 1 - chance.sum()) * len(values)
    assert stats.chisquare(np.append(found, len(values) - found.sum()), expected).pvalue > 1e-8


def test_an_index_is_sampled_by_its_log_weight(noise):
    chance = np.array([0.55, 0.3, 0.1, 0.05])
    shifted = np.log(chance) - 1e6  # far from zero, as sums of many rows are
    found = np.bincount([noise.sample_index(shifted) for _ in range(2_500)], minlength=4)
    assert stats.chisquare(found, chance * 2_500).pvalue > 1e-8


def permute_and_flip(scores, scale):
    """Chances of each place, summed over all orders in which places may be tried."""
    accept = np.exp((scores - scores.max()) / scale)
    chances, orders = np.zeros(len(scores)), list(itertools.permutations(range(len(scores))))
    for order in orders:
        left = 1.0
        for place in order:
            chances[place] += left * accept[place] / len(orders)
            left *= 1 - accept[place]
    return chances


def test_selection_is_permute_and_flip(noise):
    scores = np.array([0.0, -1.0, -3.0, -0.5])
    found = np.bincount([select(scores, 1.0, 2.0, noise) for _ in range(2_500)], minlength=4)
    assert stats.chisquare(found, permute_and_flip(scores, 2.0) * 2_500).pvalue > 1e-8


def test_permute_and_flip_keeps_epsilon_on_monotone_neighbours():
    epsilon, sensitivity = 0.9, 2.0
    worst = 0.0
    for scores in itertools.product([0.0, -1.0, -2.5], repeat=3):
        for fall in itertools.product([0.0, -1.0, -2.0], repeat=3):
            before, after = np.array(scores), np.array(scores) + fall
            chances = [permute_and_flip(s, sensitivity / epsilon) for s in (before, after)]
            worst = max(worst, np.abs(np.log(chances[0]) - np.log(chances[1])).max())
    assert 0.5 < worst <= epsilon + 1e-9


def test_a_prior_shifts_the_choice():
    noise = SeededNoise(1)
    prior = np.log([0.9, 0.1])
    picked = [select(np.zeros(2), 1.0, 2.0, noise, prior) for _ in range(2_000)]
    assert np.mean(picked) < 0.2


# ---- sensitivities, by adding every possible row to every small data set ----
def small_data_sets(n_rows):
    cells = list(itertools.product(range(3), range(4), range(2)))  # bins, missing too; classes
    rng = np.random.default_rng(n_rows)
    for _ in range(25):
        rows = [cells[k] for k in rng.integers(0, len(cells), n_rows)]
        yield rows, [[*rows, extra] for extra in cells]


def as_block(rows):
    table = np.array(rows, np.int64).reshape(-1, 3).T
    return BlockRows(
        table[:2].astype(np.uint8), table[2].astype(np.int32), 2, np.arange(table.shape[1])
    )


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_scores_fall_together_and_by_at_most_their_sensitivity(criterion):
    schema = Schema({"u": (0, 2)}, {"v": ["p", "q", "r"]}, [0, 1], missing=["u", "v"])
    candidates = SplitTable.declared(schema.space, 2)

    def scores(rows):
        block = as_block(rows)
        return score_splits(bin_counts(block, candidates)[None], candidates, criterion)[0]

    for n_rows in (0, 1, 2, 5, 9):
        for rows, more in small_data_sets(n_rows):
            before = scores(rows)
            for larger in more:
                change = before - scores(larger)
                assert (change >= -1e-9).all()
                assert (change <= SENSITIVITY[criterion]).all()
                if criterion == "entropy":
                    assert (change <= np.log2(n_rows + 1) + np.log2(np.e)).all()


def sides_by_rows(block, candidates, split):
    """The slow twin of `side_counts`: rows are sent to either side and counted there."""
    return np.array([side.class_counts() for side in block.sides(candidates, split)])


def test_sides_from_bins_are_those_of_the_rows():
    candidates = SplitTable.declared(SCHEMA.space, 2)
    every = range(len(candidates))
    for n_rows in (0, 1, 9):
        for rows, _ in small_data_sets(n_rows):
            block = as_block(rows)
            found = side_counts(bin_counts(block, candidates), candidates, every)
            assert found.tolist() == [sides_by_rows(block, candidates, k).tolist() for k in every]


def test_a_row_is_counted_once_a_question_and_once_a_feature():
    candidates = SplitTable.declared(SCHEMA.space, 2)
    for rows, more in small_data_sets(4):
        for larger in more:
            one, other = as_block(rows), as_block(larger)
            moved = [
                np.abs(
                    sides_by_rows(other, candidates, k) - sides_by_rows(one, candidates, k)
                ).sum()
                for k in range(len(candidates))
            ]
            assert moved == [1] * len(candidates)
            bins = bin_counts(other, candidates) - bin_counts(one, candidates)
            assert np.abs(bins).sum() == len(SCHEMA.names)


def test_sides_of_exact_bins_are_exact():
    candidates = SplitTable.declared(SCHEMA.space, 2)
    for rows, _ in small_data_sets(9):
        block = as_block(rows)
        sides = sides_from_bins(bin_counts(block, candidates).astype(float), candidates)
        for k, side in enumerate(sides):
            np.testing.assert_allclose(side, sides_by_rows(block, candidates, k))


def test_noise_scale_follows_the_sensitivity():
    noise = SeededNoise(3)
    for times in (1, 9):
        values = release_counts(np.zeros(20_000, np.int64), 0.5, noise, times)
        scale = times / 0.5
        assert np.abs(values).mean() == pytest.approx(scale, rel=0.05)
    values = release_counts_zcdp(np.zeros(20_000, np.int64), 0.02, noise, 4)
    assert values.std() == pytest.approx(math.sqrt(4 / 0.04), rel=0.05)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_rho_gives_back_its_epsilon(epsilon):
    rho = rho_of(epsilon, 1e-6)
    assert float(epsilon_of(Decimal(rho), Decimal("1e-6"))) == pytest.approx(epsilon, rel=1e-9)
    assert rho + 2 * math.sqrt(rho * math.log(1e6)) > epsilon  # the older formula costs more


@pytest.mark.parametrize("epsilon", [0, -1.0, float("inf"), float("nan"), 1e-9])
def test_epsilon_out_of_range_is_refused(epsilon):
    with pytest.raises(ValueError, match="epsilon must be a finite number from 1e-06"):
        check_epsilon(epsilon)


@pytest.mark.parametrize("epsilon", ["1", None, True])
def test_epsilon_must_be_a_number(epsilon):
    with pytest.raises(TypeError, match="epsilon must be a number"):
        check_epsilon(epsilon)


@pytest.mark.parametrize("scores", [[], [np.nan, 1.0], [np.inf], [[1.0]]])
def test_scores_must_be_finite_numbers(scores):
    with pytest.raises(ValueError, match="scores must be"):
        select(np.array(scores), 1.0, 2.0, SeededNoise(0))


def test_slack_grows_with_the_classes():
    assert sampler_slack(1.0, 2, 100, 1_000) > 10 * sampler_slack(1.0, 2, 100, 2)
    assert score_slack(2) < score_slack(100) < 2e-5
    with pytest.raises(ValueError, match="too many classes"):
        score_slack(10**7)


def test_a_choice_is_made_with_the_slack_of_its_classes():
    class Recorder(SeededNoise):
        def highest(self, scores, scale):
            self.scale = scale
            return 0

    noise = Recorder(0)
    select(np.zeros(2), 1.0, 2.0, noise, n_terms=1_000)
    assert noise.scale == pytest.approx(2.0 / (1 - score_slack(1_000)), rel=1e-12)


def test_parts_below_the_bound_on_rounding_are_refused():
    for draw in (
        lambda: release_counts(np.array([1]), SMALLEST_PART / 2, SeededNoise(0)),
        lambda: select(np.zeros(2), SMALLEST_PART / 2, 2.0, SeededNoise(0)),
    ):
        with pytest.raises(ValueError, match="a part of epsilon"):
            draw()


def test_rounding_of_priors_stays_within_what_is_charged():
    """Scores are added to log-priors as large as the noise: what that loses at the least part."""
    scale, prior = 2.0 / SMALLEST_PART, -12.0
    lost = np.spacing(abs(scale * prior)) / 2
    assert 4 * lost / 2.0 <= score_slack(2) / 2  # four scores, in sensitivities; half the charge


def test_laplace_noise_never_costs_more_than_was_charged():
    class Recorder(SeededNoise):
        def laplace(self, values, scale):
            self.scale = scale
            return values

    noise = Recorder(0)
    for epsilon in np.random.default_rng(0).uniform(0.01, 3, 500).tolist():
        release_counts(np.array([1]), epsilon, noise, 3)
        assert Fraction(3) / Fraction(noise.scale) <= Fraction(epsilon)


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_counts_beyond_32_bits_keep_their_size(kind):
    pytest.importorskip("opendp")
    large = np.array([2**33, -(2**33)])
    assert np.abs(getattr(SecureNoise(), kind)(large, 2.0) - large).max() < 1_000
