"""What answers cost together: pure epsilons beside zero-concentrated privacy (zCDP).

An answer with pure epsilon is epsilon^2 / 2-zCDP too (Bun and Steinke 2016, Proposition 1.4), rhos
add, and rho-zCDP implies (epsilon, delta) for every a > 1 and

    epsilon = a rho + (log(1 / delta) - log(a - 1) + a log(1 - 1 / a)) / (a - 1)

(Canonne, Kamath and Steinke 2020, Corollary 13), which is less than the older rho + 2 sqrt(rho
log(1 / delta)) (Bun and Steinke, Proposition 1.3). The least over a list of orders a is taken, the
same for all amounts: so epsilon never falls where rho rises. A hundred answers of epsilon 0.1 cost
10 by addition, and 5.2 with a delta of 1e-6.

Whichever of two bounds is smaller may be used, also if answers were chosen after earlier ones had
been seen. Let A be the transcripts whose epsilons add up to at most E, and B those that zCDP keeps
below (E, delta). Both totals only rise, so a transcript in A (in B) was in A (in B) all the time,
and has the same probability as under a mechanism that stops when A (B) would be left, for which the
bound holds. For any set S of transcripts in A or B, P(S) = P(S and A) + P(S and B without A) is
at most e^E P'(S and A) + e^E P'(S and B without A) + delta on a neighbour.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

ZERO, ONE, TWO = Decimal(0), Decimal(1), Decimal(2)
UP = 1 + Decimal("1e-24")  # covers the rounding of 28 digits
ORDERS = tuple(1 + Decimal(f"{10 ** (k / 32):.5g}") for k in range(-64, 193))  # 1.01 to 1,000,001
DOWN = 1 - 1e-12  # covers the rounding of doubles
LARGEST_SCALE = 2.0**60
Conversion = Callable[[Decimal, Decimal], Decimal]  # rho and delta to epsilon


@dataclass(frozen=True)
class Cost:
    """What answers about the same rows cost; costs of answers one after the other add."""

    pure: Decimal = ZERO  # epsilons of answers without a delta
    approximate: Decimal = ZERO  # epsilons of answers with a delta
    delta: Decimal = ZERO
    rho: Decimal = ZERO  # of answers under zCDP
    squares: Decimal = ZERO  # the rhos that the pure epsilons imply

    @classmethod
    def of(cls, epsilon: Decimal, delta: Decimal, rho: Decimal) -> "Cost":
        """The cost of one answer."""
        if delta > 0:
            return cls(ZERO, epsilon, delta, rho)
        return cls(epsilon, ZERO, delta, rho, epsilon * epsilon / TWO)

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(*(a + b for a, b in zip(self._amounts, other._amounts, strict=True)))

    @classmethod
    def most(cls, costs: Iterable["Cost"]) -> "Cost":
        """A cost that none of some costs exceeds in any amount."""
        amounts = zip(*(cost._amounts for cost in costs), strict=True)
        return cls(*(max(each) for each in amounts))

    @property
    def _amounts(self) -> tuple[Decimal, ...]:
        return self.pure, self.approximate, self.delta, self.rho, self.squares

    def total(
        self, delta: Decimal = ZERO, convert: Conversion | None = None
    ) -> tuple[Decimal, Decimal]:
        """Epsilon and delta of all answers together, where `delta` is all that may be lost.

        Without a delta to convert with, rho has no finite epsilon.
        """
        convert = convert or epsilon_of
        added, left = self.pure + self.approximate, delta - self.delta
        if self.rho == 0 and (left <= 0 or self.squares == 0):
            return added, self.delta
        if left <= 0:
            return Decimal("Infinity"), self.delta
        both = added + convert(self.rho, left)
        converted = self.approximate + convert(self.rho + self.squares, left)
        if self.rho == 0 and added <= converted:
            return added, self.delta
        return min(both, converted), delta


def epsilon_of(rho: Decimal, delta: Decimal) -> Decimal:
    """The epsilon of rho-zCDP at a delta, rounded up.

    >>> round(epsilon_of(Decimal("0.5"), Decimal("1e-6")), 4)
    Decimal('5.2217')
    """
    if rho == 0:
        return ZERO
    least = min(order * rho + rest for order, rest in _rests(delta))
    return min(max(least, ZERO) * UP, simple_epsilon_of(rho, delta))


def simple_epsilon_of(rho: Decimal, delta: Decimal) -> Decimal:
    """The same by the older formula, which costs more; never less than `epsilon_of`."""
    if rho == 0:
        return ZERO
    return (rho + TWO * (rho * (-delta.ln())).sqrt()) * UP


def largest_rho(epsilon: float, delta: float) -> float:
    """The largest rho whose `epsilon_of` is at most epsilon, rounded down."""
    log_delta = math.log(1 / delta)
    # the difference of two roots, written without cancellation
    simple = (epsilon / (math.sqrt(log_delta + epsilon) + math.sqrt(log_delta))) ** 2
    parts = ((float(order), float(rest)) for order, rest in _rests(Decimal(repr(float(delta)))))
    return DOWN * max(simple, *((epsilon - rest) / order for order, rest in parts))


@lru_cache(maxsize=64)
def _rests(delta: Decimal) -> list[tuple[Decimal, Decimal]]:
    """The orders, and what each adds to the epsilon that rho costs."""
    return [(a, _rest(a, delta)) for a in ORDERS]


def _rest(order: Decimal, delta: Decimal) -> Decimal:
    less = order - ONE
    return (order * (less / order).ln() - less.ln() - delta.ln()) / less + Decimal("1e-24")


# ---- sums that several holders noise, each a little ----
def sum_rho(scale: float, n: int, rows_counted: int, size: int) -> float:
    """The rho of a sum of integer vectors to which n holders add discrete Gaussian noise each.

    A sum of n discrete Gaussians of variance s^2 is close to one of variance n s^2, but not equal:
    Kairouz, Liu and Steinke 2021, Theorem 1. With l2 sensitivity D and dimension d the sum is
    e^2 / 2-zCDP for e the smaller of sqrt(D^2 / (n s^2) + t d / 2) and D / (sqrt(n) s) + t sqrt(d),
    where t = 10 sum_{k=1}^{n-1} exp(-2 pi^2 s^2 k / (k + 1)). It needs s >= 1/2. More holders than
    n only add noise.
    """
    variance = scale * scale
    parts = (math.exp(-2 * math.pi**2 * variance * k / (k + 1)) for k in range(1, n))
    t = 10 * math.fsum(parts)
    main = math.sqrt(rows_counted / (n * variance))
    e = min(math.sqrt(main * main + t * size / 2), main + t * math.sqrt(size))
    return e * e / 2


def share_scale(rho: float, n: int, rows_counted: int, size: int) -> float:
    """The least scale, at least 1/2, of the noise of each of n holders that makes a sum rho-zCDP.

    >>> round(share_scale(0.5, 4, 1, 10), 3)
    0.702
    """
    if not 0 < rho < math.inf:
        raise ValueError(f"rho must be finite and more than 0, got {rho}.")
    low, high = 0.5, 0.5
    while sum_rho(high, n, rows_counted, size) > rho:
        low, high = high, 2 * high
        if high > LARGEST_SCALE:
            raise ValueError(f"rho {rho:g} is too small for noise that can be added.")
    for _ in range(60):  # the bound falls as the scale rises
        middle = (low + high) / 2
        low, high = (
            (middle, high) if sum_rho(middle, n, rows_counted, size) > rho else (low, middle)
        )
    return high
