"""Bands of a risk score with their log odds, which are a ridge regression of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

# a normal prior on the log odds of each band: of variance 1/2 in the search, at most 10 after it
RIDGE, LEAST_RIDGE = 2.0, 0.1
AROUND_ONE = 16.0  # precision of the prior of the factor on log odds: a standard deviation of 1/4
MOST_LEVERAGE = 0.95  # share to which a row determines its own risk, where it is left out
KNOWN = 8.0  # coefficients that the prior's variance of 1/2 counts as, in its estimate

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Bands:
    """Bands of the variables with their log odds, and the rows by their combination of bands."""

    band: NDArray[np.int64]  # (p, b): band of each bin
    value: Floats  # (p, b): log odds of its band
    start: float
    used: tuple[int, ...]  # variables with at least two bands, in order of their first split
    pattern_of_row: NDArray[np.int64]
    members: NDArray[np.int64]  # (m, n_used): band of each pattern
    weight: Floats  # (m,)
    events: Floats  # (m,)
    loss: float  # penalised, summed over rows
    plain_loss: float  # without the penalty
    null_loss: float  # of the share of events alone
    paid: Mapping[int, float] = field(default_factory=dict)  # prices of each variable's splits
    ridge: float = RIDGE
    # of variables that follow a trend: what their coefficients are multiplied by, (1 or 2, bands)
    trend: Mapping[int, Floats] = field(default_factory=dict)

    def levels(self) -> Floats:
        """Log odds of each pattern."""
        columns = [self.values_of(v)[self.members[:, k]] for k, v in enumerate(self.used)]
        return self.start + np.sum([np.zeros(len(self.weight)), *columns], axis=0)

    @property
    def spent(self) -> float:
        """Prices of all splits."""
        return sum(self.paid.values())

    def n_splits(self, v: int) -> int:
        """Splits of a variable; a trend counts as one."""
        return 1 if v in self.trend else int(self.band[v].max())

    def values_of(self, v: int) -> Floats:
        """Log odds of each band of a variable."""
        found = np.empty(self.band[v].max() + 1)
        found[self.band[v]] = self.value[v]
        return found


def refit(found: Bands) -> Bands:
    """The ridge regression of all bands and trends, from where they are."""
    bases, design, theta = _coefficients(found)
    ridge = np.append(0.0, np.full(len(theta) - 1, found.ridge))
    theta, loss = _newton(design, found.weight, found.events, ridge, theta)
    value, at = np.zeros_like(found.value), 1
    for v, basis in zip(found.used, bases, strict=True):
        value[v] = (theta[at : at + len(basis)] @ basis)[found.band[v]]
        at += len(basis)
    plain = loss - 0.5 * float(ridge @ theta**2)
    return replace(found, value=value, start=float(theta[0]), loss=loss, plain_loss=plain)


def with_own_prior(found: Bands) -> Bands:
    """The bands refitted under a prior whose variance is that of their log odds.

    The evidence for a ridge is largest where it is the number of coefficients that the rows
    determine, by their sum of squares (MacKay 1992). Both are counted together with those of
    `KNOWN` coefficients under the prior of the search, as few say little about a variance. One step
    from that prior: where the evidence has its top, large log odds of few events go on growing.
    """
    _, design, theta = _coefficients(found)
    left = found.ridge * np.trace(_inverse(found, design, theta)[1:, 1:])
    known, squares = len(theta) - 1 - left + KNOWN, theta[1:] @ theta[1:] + KNOWN / RIDGE
    return refit(replace(found, ridge=float(np.clip(known / squares, LEAST_RIDGE, RIDGE))))


def held_out_slope(found: Bands) -> float:
    """The factor with which log odds of rows that were left out fit best; 1 is usual.

    Each row is left out in turn, to second order. Above 1 the prior shrinks too much, below 1 too
    little; few rows tell this poorly, so the factor has a normal prior around 1.
    """
    if not found.used:
        return 1.0
    _, design, theta = _coefficients(found)
    levels = design @ theta
    risk, spread = expit(levels), ((design @ _inverse(found, design, theta)) * design).sum(axis=1)
    step = spread / (1 - np.minimum(spread * risk * (1 - risk), MOST_LEVERAGE))
    others = np.maximum(found.weight - found.events, 0.0)
    left_out = np.concatenate([levels - step * (1 - risk), levels + step * risk])
    line, weight = np.stack([np.ones_like(left_out), left_out], axis=1), [found.events, others]
    events = np.append(found.events, np.zeros_like(others))
    prior, none = np.array([0.0, AROUND_ONE]), np.zeros(2)
    change, _ = _newton(line, np.concatenate(weight), events, prior, none, left_out)
    return max(1 + float(change[1]), 0.0)


def _inverse(found: Bands, design: Floats, theta: Floats) -> Floats:
    """The inverse of the penalised loss's curvature."""
    levels = design @ theta
    curve = (design.T * (found.weight * expit(levels) * expit(-levels))) @ design
    ridge = np.append(1e-9, np.full(len(theta) - 1, found.ridge))
    return np.asarray(np.linalg.inv(curve + np.diag(ridge)), np.float64)


def _coefficients(found: Bands) -> tuple[list[Floats], Floats, Floats]:
    """Levels that each variable's coefficients are multiplied by, the design, and the start."""
    bases = [found.trend.get(v, np.eye(found.band[v].max() + 1)) for v in found.used]
    parts = [basis.T[found.members[:, k]] for k, basis in enumerate(bases)]
    design = np.column_stack([np.ones(len(found.weight)), *parts])
    now = [
        basis @ found.values_of(v) / (basis * basis).sum(axis=1)
        for v, basis in zip(found.used, bases, strict=True)
    ]
    return bases, design, np.concatenate([[found.start], *now])


def _newton(
    design: Floats,
    weight: Floats,
    events: Floats,
    ridge: Floats,
    theta: Floats,
    known: Floats | float = 0.0,
) -> tuple[Floats, float]:
    """Newton steps with halving on the penalised logistic loss; known is a part of the log odds."""

    def loss(at: Floats) -> float:
        level = known + design @ at
        return float((weight * np.logaddexp(0, level) - events * level).sum() + 0.5 * ridge @ at**2)

    now = loss(theta)
    for _ in range(30):
        risk = expit(known + design @ theta)
        slope = design.T @ (weight * risk - events) + ridge * theta
        curve = (design.T * (weight * risk * (1 - risk))) @ design
        step = np.linalg.solve(curve + np.diag(ridge + 1e-9), slope)
        size, found = 1.0, loss(theta - step)
        while found > now and size > 1e-4:
            size /= 2
            found = loss(theta - size * step)
        if found > now:
            break
        theta, now = theta - size * step, found
        if np.abs(step).max() < 1e-4:
            break
    return theta, now
