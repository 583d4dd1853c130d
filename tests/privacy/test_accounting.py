"""Costs under zCDP: against the definitions, numerically; noise that several holders add."""

import itertools
from decimal import Decimal

import mpmath
import numpy as np
import pytest
from scipy import stats

from steadytree._base.exceptions import BudgetError
from steadytree.privacy.accounting import (
    ORDERS,
    Cost,
    epsilon_of,
    largest_rho,
    share_scale,
    simple_epsilon_of,
    sum_rho,
)
from steadytree.privacy.ledger import Ledger
from steadytree.privacy.ledger_lines import Entry, compose
from steadytree.privacy.mechanisms import SecureNoise, SeededNoise, release_share, rho_of

SMALL = Decimal("1e-6")


def gaussian(scale, reach):
    """Probabilities of the discrete Gaussian from its definition."""
    support = np.arange(-reach, reach + 1)
    weights = np.exp(-(support**2) / (2 * scale**2))
    return weights / weights.sum()


def summed(scale, n, reach=60):
    found = np.ones(1)
    for _ in range(n):
        found = np.convolve(found, gaussian(scale, reach))
    return found


def renyi(p, q, alpha):
    kept = (p > 1e-250) & (q > 1e-250)
    terms = alpha * np.log(p[kept]) + (1 - alpha) * np.log(q[kept])
    return np.logaddexp.reduce(terms) / (alpha - 1)


# ---- sums of noise ----
@pytest.mark.parametrize("n", [1, 2, 4])
@pytest.mark.parametrize("scale", [0.5, 0.7, 1.0, 3.0])
def test_the_bound_on_a_sum_covers_its_divergences(scale, n):
    """rho-zCDP: the Renyi divergence of order a is at most a rho, for every a > 1."""
    p = summed(scale, n)
    shifted = np.append(p, 0.0), np.append(0.0, p)
    rho = sum_rho(scale, n, 1, 1)
    for alpha in (1.01, 1.5, 2.0, 3.0, 5.0):
        assert renyi(*shifted, alpha) <= alpha * rho * (1 + 1e-9)
    if scale >= 1:  # and it is not far from it
        assert renyi(*shifted, 2.0) > 2 * rho * 0.9


def test_the_bound_on_a_sum_is_that_of_the_paper():
    """Theorem 1, term by term, in 30 digits: both of its bounds are the smaller one somewhere."""
    smaller = set()
    with mpmath.workdps(30):
        for scale, n, times, size in itertools.product((0.5, 0.9), (2, 5), (1, 100), (1, 400)):
            squared = mpmath.mpf(scale) ** 2
            tau = 0
            for k in range(1, n):
                tau += 10 * mpmath.exp(-2 * mpmath.pi**2 * squared * k / (k + 1))
            main = mpmath.sqrt(times) / (mpmath.sqrt(n) * scale)
            bounds = [mpmath.sqrt(main**2 + tau * size / 2), main + tau * mpmath.sqrt(size)]
            smaller.add(bounds.index(min(bounds)))
            expected = min(bounds) ** 2 / 2
            assert sum_rho(scale, n, times, size) == pytest.approx(float(expected), rel=1e-12)
    assert smaller == {0, 1}


@pytest.mark.parametrize("rho", [1e-6, 0.01, 0.5])
def test_a_share_is_the_least_that_is_enough(rho):
    for n, times, size in ((1, 1, 1), (3, 14, 5_000), (8, 2, 10)):
        scale = share_scale(rho, n, times, size)
        assert sum_rho(scale, n, times, size) <= rho
        assert scale == 0.5 or sum_rho(0.999 * scale, n, times, size) > rho
        # never less than one holder's noise divided by all
        assert scale >= np.sqrt(times / (2 * rho * n)) * (1 - 1e-12)
    assert share_scale(1e9, 3, 14, 10) == 0.5  # the least for which the theorem holds
    with pytest.raises(ValueError, match="rho must be"):
        share_scale(0.0, 3, 1, 1)


@pytest.mark.parametrize("secure", [False, True])
def test_the_noise_of_a_sum_is_as_calibrated(secure):
    """Chi-square of the noise of three holders against its exact distribution.

    One false alarm in a million: secure noise cannot be seeded.
    """
    if secure:
        pytest.importorskip("opendp")
    noise, rho, n_draws = SecureNoise() if secure else SeededNoise(3), 0.02, 4_000
    zeros = np.zeros(n_draws, np.int64)
    found = sum(release_share(zeros, rho, noise, 1, 3) for _ in range(3))
    scale = share_scale(rho, 3, 1, n_draws)
    expected = summed(scale, 3) * n_draws
    reach = len(expected) // 2
    edges = [-reach, *range(-8, 10, 2), reach + 1]
    wanted = [expected[a + reach : b + reach].sum() for a, b in itertools.pairwise(edges)]
    seen = np.histogram(found, edges)[0]
    wanted = np.array(wanted) * seen.sum() / sum(wanted)
    assert stats.chisquare(seen, wanted).pvalue > 1e-6
    assert np.var(found) == pytest.approx(3 * scale**2, rel=0.12)
    # and the audit sees noise of half the scale, or of two holders where three are needed
    for broken in (0.5, np.sqrt(2 / 3)):
        wrong = summed(scale * broken, 3)
        wrong = np.array([wrong[a + reach : b + reach].sum() for a, b in itertools.pairwise(edges)])
        assert stats.chisquare(seen, wrong * seen.sum() / wrong.sum()).pvalue < 1e-6


# ---- costs ----
def test_rho_and_epsilon_come_back():
    for epsilon in (0.01, 1.0, 5.0):
        found = epsilon_of(Decimal(rho_of(epsilon, 1e-6)), SMALL)
        assert float(found) == pytest.approx(epsilon, rel=1e-12)


def least_epsilon(rho, delta):
    """The conversion from its definition, in 40 digits, at the best of all orders."""
    with mpmath.workdps(40):
        rho, delta = mpmath.mpf(rho), mpmath.mpf(delta)

        def of(less):  # order - 1
            a = 1 + less
            # delta = exp((a - 1)(a rho - epsilon)) (1 - 1 / a)^a / (a - 1)
            return a * rho + mpmath.log((1 - 1 / a) ** a / (less * delta)) / less

        low, high = mpmath.mpf("1e-8"), mpmath.mpf("1e12")
        for _ in range(200):  # thirds, on a logarithmic scale
            step = (high / low) ** (mpmath.mpf(1) / 3)
            left, right = low * step, high / step
            low, high = (low, right) if of(left) < of(right) else (left, high)
        return float(max(of(low), 0))


@pytest.mark.parametrize("delta", ["1e-9", "1e-6", "0.01", "0.3"])
def test_the_conversion_is_that_of_the_paper(delta):
    for rho in ("1e-9", "1e-5", "0.0175", "0.5", "1", "2", "4", "300"):
        expected = least_epsilon(rho, delta)
        found = float(epsilon_of(Decimal(rho), Decimal(delta)))
        # never less than what is proved, and hardly more
        assert expected * (1 - 1e-12) <= found <= expected * 1.002 + 1e-12
        simple = float(simple_epsilon_of(Decimal(rho), Decimal(delta)))
        assert found <= simple
        again = Decimal(largest_rho(simple, float(delta)))
        assert epsilon_of(again, Decimal(delta)) <= Decimal(simple)
    assert epsilon_of(Decimal(0), Decimal(delta)) == 0
    assert simple_epsilon_of(Decimal(0), Decimal(delta)) == 0


@pytest.mark.parametrize("n_answers", [1, 20])
def test_the_conversion_covers_gaussian_noise_and_is_close(n_answers):
    """Exact delta of Gaussian answers (Balle and Wang 2018, Theorem 8) at the epsilon of rho."""
    for rho in (1e-4, 0.01, 0.5):
        epsilon = float(epsilon_of(n_answers * Decimal(str(rho)), SMALL))
        mean = np.sqrt(2 * rho * n_answers)  # of all answers together, in standard deviations

        def exact(epsilon, mean=mean):
            near, far = mean / 2 - epsilon / mean, -mean / 2 - epsilon / mean
            return stats.norm.cdf(near) - np.exp(epsilon) * stats.norm.cdf(far)

        assert exact(epsilon) <= 1e-6
        assert exact(0.75 * epsilon) > 1e-6


def test_pure_answers_cost_no_more_than_their_worst_case():
    """Randomized responses, k of them: the exact delta at the epsilon that a ledger adds up."""
    for epsilon, k in ((0.1, 100), (0.5, 30), (0.02, 1_000)):
        total = float(compose(entries(*[(epsilon, 0)] * k), SMALL)[0])
        flips = np.arange(k + 1)
        share = 1 / (1 + np.exp(epsilon))
        p = stats.binom.logpmf(flips, k, share)
        q = stats.binom.logpmf(flips, k, 1 - share)
        assert np.maximum(np.exp(p) - np.exp(total + q), 0).sum() <= 1e-6


def test_epsilon_never_falls_where_rho_rises():
    last = Decimal(-1)
    for k in range(400):  # in steps below the resolution of doubles, too
        rho = Decimal("0.02") + Decimal(k) * Decimal("1e-20")
        found = epsilon_of(rho, SMALL)
        assert found >= last
        last = found
    assert epsilon_of(Decimal("1e-30"), SMALL) >= 0


def test_gaussian_noise_is_as_private_as_its_converted_epsilon():
    """delta of the discrete Gaussian at the epsilon of its rho, from the definition."""
    for scale in (2.0, 5.0):
        p = gaussian(scale, 200)
        one, other = np.append(p, 0.0), np.append(0.0, p)
        epsilon = float(epsilon_of(Decimal(1 / (2 * scale**2)), SMALL))
        assert np.maximum(one - np.exp(epsilon) * other, 0).sum() <= 1e-6


def entries(*amounts):
    return [Entry(*(Decimal(str(each)) for each in amount)) for amount in amounts]


def test_a_year_of_small_answers_fits_a_budget():
    year = entries(*[(0.1, 0)] * 100)
    assert compose(year) == (Decimal("10.0"), 0)
    epsilon, delta = compose(year, SMALL)
    assert float(epsilon) == pytest.approx(least_epsilon(0.5, 1e-6), rel=1e-3)
    assert delta == SMALL
    # few answers cost less by addition, and no delta
    assert compose(year[:3], SMALL) == (Decimal("0.3"), 0)


def test_more_answers_never_cost_less():
    random = np.random.default_rng(0)
    for delta in (Decimal(0), SMALL, Decimal("0.01")):
        listed, last = [], Decimal(0)
        for _ in range(60):
            kind = random.integers(3)
            amount = Decimal(str(round(float(random.exponential(0.1)), 6)))
            if kind == 0:
                listed.append(Entry(amount))
            elif kind == 1:
                listed.append(Entry(amount, min(SMALL / 100, delta)))
            elif delta:
                listed.append(Entry(Decimal(0), rho=amount / 10))
            epsilon, used = compose(listed, delta)
            assert last <= epsilon <= compose(listed, delta, simple_epsilon_of)[0]
            assert used <= max(delta, sum(e.delta for e in listed))
            last = epsilon


def test_rho_without_a_delta_has_no_finite_epsilon():
    assert Cost.of(Decimal(0), Decimal(0), Decimal("0.1")).total() == (Decimal("Infinity"), 0)


def test_parallel_parts_cost_as_much_as_the_most_expensive():
    parts = [Entry(Decimal(0), rho=Decimal(str(r)), group="g", part=str(r)) for r in (0.1, 0.3)]
    assert compose(parts, SMALL)[0] == epsilon_of(Decimal("0.3"), SMALL)


def test_a_ledger_keeps_rho_and_refuses_more(tmp_path):
    path = tmp_path / "patients.ledger"
    ledger = Ledger(path, 1.0, 1e-6)
    rho = rho_of(1.0, 1e-6) * (1 - 1e-9)
    ledger.spend(0.0, "sum", rho=rho / 2)
    ledger.spend(0.0, "sum", rho=rho / 2)
    assert 0.999 < ledger.spent <= 1.0
    assert Ledger(path, 1.0, 1e-6).entries == ledger.entries
    with pytest.raises(BudgetError, match=r"rho 0\.001 asked for 'sum', but"):
        ledger.spend(0.0, "sum", rho=0.001)
    # what a gateway's folder of answers notes is computed as by older versions
    assert ledger.extent == simple_epsilon_of(Decimal(str(rho / 2)) * 2, Decimal("1e-6"))
    pure = Ledger(tmp_path / "pure.ledger", 1.0)
    with pytest.raises(BudgetError, match="needs a ledger with a delta"):
        pure.spend(0.0, "sum", rho=0.001)


def test_lines_without_rho_are_written_as_before():
    entry = Entry(Decimal("0.5"), Decimal(0), "tree", "gibbs")
    assert entry.to_body(3) == b'3 0.5 0 ["tree", "gibbs", "", "", ""]'
    assert Entry.from_body(entry.to_body(3), 3) == entry
    entry = Entry(Decimal(0), what="sum", rho=Decimal("0.25"))
    assert Entry.from_body(entry.to_body(1), 1) == entry


def test_orders_rise_from_nearly_one_to_a_million_in_even_steps():
    """With other orders the same answers would cost another epsilon."""
    assert len(ORDERS) == 257
    for k, order in enumerate(ORDERS):
        assert float(order - 1) == pytest.approx(10 ** (k / 32 - 2), rel=1e-4)
    for delta, rho in itertools.product(("1e-9", "1e-6", "0.3"), ("1e-9", "0.0175", "4", "300")):
        with mpmath.workdps(40):
            tried = []
            for order in ORDERS:
                a = mpmath.mpf(str(order))
                rest = mpmath.log(1 / mpmath.mpf(delta)) - mpmath.log(a - 1)
                rest += a * mpmath.log(1 - 1 / a)
                tried.append(a * mpmath.mpf(rho) + rest / (a - 1))
            least = min(tried)
            older = mpmath.mpf(rho) + 2 * mpmath.sqrt(mpmath.mpf(rho) * -mpmath.log(delta))
            expected = min(max(least, 0), older)
            found = mpmath.mpf(str(epsilon_of(Decimal(rho), Decimal(delta))))
            assert expected <= found <= expected * (1 + mpmath.mpf("1e-22")) + mpmath.mpf("1e-22")
            simple = mpmath.mpf(str(simple_epsilon_of(Decimal(rho), Decimal(delta))))
            assert older <= simple <= older * (1 + mpmath.mpf("1e-22"))
        epsilon = float(found)
        if epsilon > 1e-6:  # the largest rho is just within it, and a little more is not
            rho_within = largest_rho(epsilon, float(delta))
            assert epsilon_of(Decimal(rho_within), Decimal(delta)) <= Decimal(epsilon)
            more = Decimal(rho_within) * (1 + Decimal("1e-9"))
            assert epsilon_of(more, Decimal(delta)) > Decimal(epsilon) * (1 - Decimal("1e-10"))


def slow_total(costs, delta, convert):
    """The least of what two bounds give: addition, and rhos beside those that epsilons imply."""
    pure = sum(e for e, d, _ in costs if d == 0)
    mixed = sum(e for e, d, _ in costs if d > 0)
    left, rho = delta - sum(d for _, d, _ in costs), sum(r for *_, r in costs)
    implied = sum(e * e / 2 for e, d, _ in costs if d == 0)
    if left <= 0:
        return pure + mixed if rho == 0 else Decimal("Infinity")
    bounds = [pure + mixed + convert(rho, left), mixed + convert(rho + implied, left)]
    return min(bounds)


@pytest.mark.parametrize("seed", range(40))
def test_answers_of_all_kinds_cost_what_is_added_up_by_hand(seed):
    """With no delta to spare, exactly as much as is used, and more."""
    rng = np.random.default_rng(seed)
    kinds = [("0.3", "0", "0"), ("0.2", "1e-7", "0"), ("0", "0", "0.01"), ("0.05", "0", "0")]
    drawn = [kinds[k] for k in rng.integers(0, 4, rng.integers(1, 40))]
    drawn = drawn if seed % 4 else [one for one in drawn if one[2] == "0"] or [kinds[0]]
    costs = [tuple(map(Decimal, one)) for one in drawn]
    total = sum((Cost.of(*one) for one in costs), Cost())
    used = sum(d for _, d, _ in costs)
    for delta in (Decimal(0), used, used + SMALL):
        for convert in (epsilon_of, simple_epsilon_of, lambda rho, left: rho * 3 + left):
            epsilon, spent = total.total(delta, convert)
            assert epsilon == slow_total(costs, delta, convert)
            assert spent in {used, delta}
            added = sum(e for e, _, _ in costs)
            if all(r == 0 for *_, r in costs) and epsilon == added:
                assert spent == used  # addition needs no more delta than is used
        assert total.total(delta) == total.total(delta, epsilon_of)
