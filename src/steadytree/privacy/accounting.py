"""What answers cost together: pure epsilons beside zero-concentrated privacy (zCDP).

An answer with pure epsilon is epsilon^2 / 2-zCDP too (Bun and Steinke 2016, Proposition 1.4), rhos
add, and rho-zCDP implies (rho + 2 sqrt(rho log(1 / delta)), delta) (Proposition 1.3). So a hundred
answers of epsilon 0.1 cost 10 by addition, and 5.8 with a delta of 1e-6.

Whichever of two bounds is smaller may be used, also if answers were chosen after earlier ones had
been seen. Let A be the transcripts whose epsilons add up to at most E, and B those that zCDP keeps
below (E, delta). Both totals only rise, so a transcript in A (in B) was in A (in B) all the time,
and has the same probability as under a mechanism that stops when A (B) would be left, for which the
bound holds. For any set S of transcripts in A or B, P(S) = P(S and A) + P(S and B without A) is
at most e^E P'(S and A) + e^E P'(S and B without A) + delta on a neighbour.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

ZERO, TWO = Decimal(0), Decimal(2)
UP = 1 + Decimal("1e-24")  # covers the rounding of 28 digits
LARGEST_SCALE = 2.0**60


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

    def total(self, delta: Decimal = ZERO) -> tuple[Decimal, Decimal]:
        """Epsilon and delta of all answers together, where `delta` is all that may be lost.

        Without a delta to convert with, rho has no finite epsilon.
        """
        added, left = self.pure + self.approximate, delta - self.delta
        if self.rho == 0 and (left <= 0 or self.squares == 0):
            return added, self.delta
        if left <= 0:
            return Decimal("Infinity"), self.delta
        both = added + epsilon_of(self.rho, left)
        converted = self.approximate + epsilon_of(self.rho + self.squares, left)
        if self.rho == 0 and added <= converted:
            return added, self.delta
        return min(both, converted), delta


def epsilon_of(rho: Decimal, delta: Decimal) -> Decimal:
    """The epsilon of rho-zCDP at a delta, rounded up.

    >>> round(epsilon_of(Decimal("0.5"), Decimal("1e-6")), 4)
    Decimal('5.7565')
    """
    if rho == 0:
        return ZERO
    return (rho + TWO * (rho * (-delta.ln())).sqrt()) * UP


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
