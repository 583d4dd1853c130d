"""Risk scores of small integers by lattice cutting planes, the paper's baseline LCPA.

B. Ustun and C. Rudin, *Learning Optimized Risk Scores* (2019), minimise the logistic loss plus a
price per column over integer points, of which at most so many are not 0. Their program adds a cut
inside one search of a commercial solver; here an open one (HiGHS) is asked anew after each cut. The
result is the same: a card, and a bound that no card's value is below.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp


@dataclass(frozen=True)
class Integers:
    """Which points are allowed: from -largest to largest, at most `size` columns."""

    n_columns: int
    size: int
    largest: int = 5
    price: float = 1e-6  # of each column in use, as in the authors' program

    @property
    def offset(self):
        """No row's total can be farther from 0 than this, so no larger offset is of use."""
        return self.largest * min(self.size, self.n_columns) + 1

    def bounds(self):
        """Of offset, points, loss, and whether each column is in use."""
        high = np.r_[self.offset, np.full(self.n_columns, self.largest), np.inf]
        low = np.r_[-high[:-1], 0.0]
        return Bounds(np.r_[low, np.zeros(self.n_columns)], np.r_[high, np.ones(self.n_columns)])

    def uses(self):
        """|points| <= largest * in use; at most `size` in use."""
        d = self.n_columns
        points = np.eye(d, 2 * d + 2, k=1)
        used = np.eye(d, 2 * d + 2, k=d + 2) * self.largest
        count = np.r_[np.zeros(d + 2), np.ones(d)]
        return [
            LinearConstraint(np.r_[points - used, -points - used], ub=0.0),
            LinearConstraint(count, ub=self.size),
        ]


class Loss:
    """Mean logistic loss of integer points (offset first); equal rows are counted together."""

    def __init__(self, X, y):
        rows = np.column_stack([np.ones(len(X)), X]) * np.where(y > 0, 1.0, -1.0)[:, None]
        self.rows, counts = np.unique(rows, axis=0, return_counts=True)
        self.weights = counts / len(y)

    def value(self, points):
        return float(self.weights @ np.logaddexp(0.0, -self.rows @ points))

    def cut(self, points):
        """Gradient and constant of the plane that touches the loss there."""
        margin = self.rows @ points
        slope = -(self.weights / (1.0 + np.exp(np.clip(margin, -700, 700)))) @ self.rows
        return slope, self.value(points) - slope @ points


@dataclass(frozen=True)
class Found:
    """A card, its value, a value that no card is below, and how often the solver was asked."""

    points: np.ndarray
    value: float
    bound: float
    n_solves: int

    @property
    def gap(self):
        return 1.0 - self.bound / self.value

    def predict(self, X):
        return (X @ self.points[1:] + self.points[0] > 0).astype(int)


def lcpa(X, y, size, gap=0.01, n_relaxed=60, n_solves=60, n_nodes=2_000):
    """The best card within a gap; the budget is in solves and nodes, so that no clock matters."""
    loss, allowed = Loss(X, y), Integers(X.shape[1], size)

    def value(points):
        return loss.value(points) + allowed.price * np.count_nonzero(points[1:])

    best = polished(np.zeros(X.shape[1] + 1), loss, allowed)
    cuts, bound = [loss.cut(best), loss.cut(np.zeros(len(best)))], 0.0
    for _ in range(n_relaxed):  # the relaxed program first: its cuts cost little
        points, bound = solve(cuts, allowed)
        if loss.value(points) - bound < 0.2 * gap * value(best):
            break
        cuts.append(loss.cut(points))
    asked = 0
    while asked < n_solves and value(best) - bound > gap * value(best):
        asked += 1
        points, reached = solve(cuts, allowed, True, gap / 4, n_nodes)
        bound = max(bound, reached)
        if points is None:
            break
        near = polished(points, loss, allowed)
        cuts += [loss.cut(points), loss.cut(near)]
        best = min(best, near, key=value)
    return Found(best, value(best), bound, asked)


def solve(cuts, allowed, whole=False, gap=0.0, n_nodes=None):
    """Points that minimise the cuts' maximum and the price, and the value none is below."""
    d = allowed.n_columns
    slopes, constants = np.array([cut[0] for cut in cuts]), np.array([cut[1] for cut in cuts])
    planes = np.column_stack([slopes, -np.ones(len(cuts)), np.zeros((len(cuts), d))])
    found = milp(
        np.r_[np.zeros(d + 1), 1.0, np.full(d, allowed.price)],
        integrality=np.r_[np.ones(d + 1), 0, np.ones(d)] * whole,
        bounds=allowed.bounds(),
        constraints=[*allowed.uses(), LinearConstraint(planes, ub=-constants)],
        options={"mip_rel_gap": gap, "node_limit": n_nodes} if whole else {},
    )
    if not whole:
        return found.x[: d + 1], found.fun
    points = None if found.x is None else np.round(found.x[: d + 1])
    return points, found.mip_dual_bound or 0.0


def polished(points, loss, allowed):
    """Steps of one point in one column, the best first, as long as the value falls."""
    limits = np.r_[allowed.offset, np.full(allowed.n_columns, allowed.largest)]
    points, moves = points.copy(), np.array([-1.0, 1.0])
    now = loss.value(points) + allowed.price * np.count_nonzero(points[1:])
    while True:
        margin = loss.rows @ points
        moved = -margin[:, None, None] - loss.rows[:, :, None] * moves
        values = np.tensordot(loss.weights, np.logaddexp(0.0, moved), 1)
        others = points[:, None] + moves
        used = np.count_nonzero(points[1:]) - (points != 0)[:, None] + (others != 0)
        used[0] = np.count_nonzero(points[1:])  # the offset is free
        values += allowed.price * used
        values[(np.abs(others) > limits[:, None]) | (used > allowed.size)] = np.inf
        j, k = np.unravel_index(values.argmin(), values.shape)
        if values[j, k] >= now - 1e-12:
            return points
        now = values[j, k]
        points[j] = others[j, k]
