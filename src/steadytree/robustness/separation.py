"""Separation: could a small robust model exist on these data?"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog, minimize
from scipy.special import expit

from steadytree._base.notebook import Shown
from steadytree.data.table import check_in_memory
from steadytree.metrics.accuracy import distinct_labels
from steadytree.metrics.measurement import Measurement
from steadytree.robustness.conflict_graph import MOST_CLASSES, Distinct, Scaled
from steadytree.robustness.perturbation import is_number

LISTED = 1000  # conflicting pairs kept for reading
REFITS, FEW_REFITS = 12, 3  # of a hyperplane, and where there are many values
LARGE = 1_000_000
# rows that a linear program takes in at once, the most programs, and the solver's tolerance
AT_ONCE, PROGRAMS, TOLERANCE = 1_000, 60, 1e-7

# what the figures mean; 2 r, gamma and gamma / 2 of the paper
DISTANCE = "least distance between rows of two classes once those are dropped, in ranges of columns"
MARGIN = "room between that hyperplane and the rows it is right on, columns scaled to -1 to 1"
CONDITION = "share that some single condition is right on, however those rows are weighted"


@dataclass(frozen=True)
class Statement:
    """A consequence of separation."""

    says: str  # what follows, with the numbers of the data
    assumes: str  # what it needs
    holds: bool  # whether the data meet that; if not, `says` is not claimed

    def __str__(self) -> str:
        return f"{'holds' if self.holds else 'does not apply'}: {self.says} (needs {self.assumes})"


@dataclass(frozen=True, eq=False)
class LinearSeparation:
    """How nearly a hyperplane separates two classes."""

    # share of rows right of the fitted hyperplane: a lower bound, as the best is hard to find
    separateness: float
    # margin ``min y w.x / |w|_1`` over those rows, in columns scaled to [-1, 1] with a
    # constant column of ones
    gamma: float
    # whether gamma is the greatest margin for those rows, or that of the fitted hyperplane
    exact: bool

    @property
    def edge(self) -> float:
        """A single condition is right on at least this share more than one half of any weights."""
        return self.gamma / 2

    @property
    def noise(self) -> float:
        """Noise, as a share of each column's range, after which half the margin is left."""
        return self.gamma / 4  # half of gamma in columns that are 2 wide

    def card_size(self, error: float) -> float:
        """Votes with which boosting by majority errs on this share; infinite without a margin."""
        if not 0 < error < 1:
            raise ValueError(f"error must be between 0 and 1, got {error}.")
        if self.edge == 0:
            return math.inf
        return math.ceil(math.log(1 / error) / (2 * self.edge**2))


@dataclass(frozen=True, eq=False, repr=False)
class Separation(Shown):
    """How far rows of different classes are apart."""

    # rows of different classes shall be at least 2 r apart; None: they shall differ
    r: float | None
    n_rows: int
    n_features: int  # as compared: each category counts, and missing values of a column
    # rows whose removal leaves the rest r-separated; as few as can be where `exact`
    dropped: NDArray[np.int64]
    least_dropped: int  # proven: no fewer rows suffice
    pairs: NDArray[np.int64]  # (m, 2): conflicting rows, up to 1,000 of them
    two_r: float  # distance of the nearest rows of different classes once those are dropped
    linear: LinearSeparation | None
    distinct: Distinct  # the scaled rows

    @cached_property
    def nearest_other_class(self) -> NDArray[np.float64]:
        """Distance of every row to the nearest row of another class; computed when needed."""
        return self.distinct.nearest_other_class()[self.distinct.distinct_row]

    @property
    def separateness(self) -> float:
        """Share of rows that can stay."""
        return 1 - len(self.dropped) / self.n_rows

    @property
    def exact(self) -> bool:
        return len(self.dropped) == self.least_dropped

    @property
    def depth_bound(self) -> float:
        """Some tree of at most this depth is right on all rows that stay: 6 d / r in [-1, 1]."""
        # scaled to be 2 wide, distances grow by 2 / width, and two_r is twice the radius
        width = float(np.ptp(self.distinct.rows, axis=0).max())
        return 6 * self.n_features * width / self.two_r if self.two_r > 0 else np.inf

    @property
    def depth_anyway(self) -> int:
        """Some tree of at most this depth separates all distinct rows, whatever their classes."""
        # splits isolate one row after the other, or halve each column's values in turn
        levels = [len(np.unique(column)) for column in self.distinct.ranks.T]
        halvings = [(n - 1).bit_length() for n in levels]
        return min(len(self.distinct.rows) - 1, sum(halvings))

    @property
    def depth_says_something(self) -> bool:
        """Whether `depth_bound` is below what any labels of these rows would need."""
        return self.depth_bound < self.depth_anyway

    def statements(self, error: float = 0.05) -> tuple[Statement, ...]:
        """What the theorems say about these rows, with what they assume and whether it holds."""
        found = [self._about_rows(), self._about_distance()]
        linear = [] if self.linear is None else self._about_hyperplane(self.linear, error)
        return tuple(found + linear)

    def measurements(self) -> tuple[Measurement, ...]:
        """The numbers with what they mean."""
        found = [
            Measurement("separateness", self.separateness, "share left without conflicting rows"),
            Measurement("rows to drop", len(self.dropped), "conflicting rows to remove"),
            Measurement("class distance", self.two_r, DISTANCE),
        ]
        if self.depth_says_something:
            meaning = "some tree of this depth is correct on all remaining rows"
            found.append(Measurement("tree depth", self.depth_bound, meaning))
        else:
            meaning = "enough for any labels; the distance of the classes gives no smaller depth"
            found.append(Measurement("tree depth", self.depth_anyway, meaning))
        if self.linear is not None:
            share, gamma, edge = self.linear.separateness, self.linear.gamma, self.linear.edge
            found += [
                Measurement("linear separateness", share, "accuracy of the best hyperplane"),
                Measurement("hyperplane margin", gamma, MARGIN),
                Measurement("single condition", 0.5 + edge, CONDITION),
            ]
        return tuple(found)

    def _about_rows(self) -> Statement:
        """A lower bound holds however long it took to find rows that suffice."""
        least, n = self.least_dropped, len(self.dropped)
        says = (
            f"the classes are apart once {n:,} rows are dropped, and dropping fewer is not enough"
        )
        if n == 0:
            says = "the classes are apart as they are: no row has to be dropped"
        elif not self.exact:
            says = (
                f"at least {least:,} rows must be dropped for the classes to be apart; "
                f"{n:,} are enough"
            )
        return Statement(says, "nothing", True)

    def _about_distance(self) -> Statement:
        stay = f"all {self.n_rows - len(self.dropped):,} rows that stay"
        bound = f"{self.depth_bound:,.0f}" if np.isfinite(self.depth_bound) else "without a limit"
        if np.isinf(self.two_r):
            says = f"{stay} are of one class, so nothing is left to separate"
        elif self.depth_says_something:
            says = f"some tree of depth {bound} is right on {stay}"
        else:
            says = (
                f"the distance of the classes gives no useful bound: a tree of depth {bound} "
                f"that is right on {stay}, where one of depth {self.depth_anyway:,} exists for "
                "any labels"
            )
        needs = "classes apart once rows are dropped, columns of bounded range"
        return Statement(says, needs, self.two_r > 0)

    def _about_hyperplane(self, linear: LinearSeparation, error: float) -> list[Statement]:
        n_right, size = round(linear.separateness * self.n_rows), linear.card_size(error)
        margin = f"a hyperplane that is right on {n_right:,} rows with a margin"
        best, holds = f"{margin}, every vote the best condition", linear.gamma > 0
        edge = f"under any weights of those rows some condition is right on {0.5 + linear.edge:.4g}"
        plain = f"a card of {size:,.0f} votes errs on at most {error:.0%} of those rows"
        # moved rows keep half the margin: half the edge, so four times as many votes are needed
        moved = (
            f"chosen on moved rows, a card of {4 * size:,.0f} votes errs on at most {error:.0%} of "
            f"them under any noise of {linear.noise:.3g} of each range"
        )
        return [
            Statement(edge, f"{margin}, conditions in both directions", holds),
            Statement(plain, best, holds),
            Statement(moved, f"{best}, and no more noise than that", holds),
        ]

    def __str__(self) -> str:
        return "\n".join(map(str, [*self.measurements(), *self.statements()]))


def separation(
    X: Any,
    y: Any,
    r: float | None = None,
    scale: Mapping[str, float] | None = None,
    linear: bool | None = None,
    time_limit: float = 60.0,
) -> Separation:
    """Measure how far apart the classes are, and what follows for trees and cards.

    Distances are the largest difference over columns (l_inf). Numbers are divided by their
    range, or by `scale`; different categories are 1 apart, and so are a missing value and any
    other. What the theorems say holds for the rows that stay, not for new ones.

    Which rows are closer than 2 r is decided without rounding: every float in `X`, `scale` and `r`
    stands for the decimal that Python prints for it, so 0.3 and 0.1 are exactly 0.2 apart. The
    distances returned (`two_r`, `nearest_other_class`) are rounded to floats.

    Parameters
    ----------
    X : array-like or frame of shape (n_rows, n_features)
    y : array-like of shape (n_rows,)
        Labels of at least two classes.
    r : float, optional
        Ask that rows of different classes are at least 2 r apart; by default that they differ.
    scale : mapping of name to float, optional
        What counts as distance one in a column; the range of the others.
    linear : bool, optional
        Whether to look for a hyperplane; by default for two classes.
    time_limit : float, default=60.0
        Seconds for the last step above two classes, where the least removal is hard to find.

    Returns
    -------
    separation : Separation

    Examples
    --------
    >>> found = separation([[0.0], [0.4], [0.5], [1.0]], ["a", "a", "b", "b"], r=0.1)
    >>> len(found.dropped), found.exact, round(found.two_r, 3)
    (1, True, 0.5)
    >>> found.nearest_other_class.round(2).tolist()
    [0.5, 0.1, 0.1, 0.6]
    """
    if r is not None and not (is_number(r) and 0 <= r < np.inf):
        raise ValueError(f"r must be a number of at least 0, got {r!r}.")
    if not is_number(time_limit) or not time_limit > 0:
        raise ValueError(f"time_limit must be above 0 seconds, got {time_limit!r}.")
    check_in_memory(X)
    known, inverse = distinct_labels(y)
    classes, index = np.unique(np.array(known), return_inverse=True)
    labels = index[inverse]
    scaled = Scaled.of(X, scale)
    if len(scaled.values) != len(labels):
        raise ValueError(f"X has {len(scaled.values)} rows, but y has {len(labels)} labels.")
    if not 2 <= len(classes) <= MOST_CLASSES:
        raise ValueError(f"y must hold 2 to {MOST_CLASSES} classes, got {len(classes)}.")
    if linear and len(classes) > 2:
        raise ValueError(
            f"a hyperplane separates two classes, but y has {len(classes)}: leave linear out."
        )
    distinct = Distinct.of(scaled, labels, len(classes))
    # exactly 2 r apart is apart
    closer = scaled.closer_than(r) if r else None
    pairs, dropped, least_dropped = distinct.cover(closer, time_limit)
    # proven to be at least 2 r, so that rounding does not make it less
    two_r = max(distinct.least_distance(dropped), 2 * float(r or 0))
    hyperplane = len(classes) == 2 if linear is None else linear
    plane = linear_separation(distinct) if hyperplane else None
    rows = np.flatnonzero(dropped[distinct.distinct_row, labels])
    about = None if r is None else float(r), len(labels), scaled.values.shape[1]
    listed = _listed(pairs, distinct, labels)
    return Separation(*about, rows, least_dropped, listed, two_r, plane, distinct)


def linear_separation(distinct: Distinct) -> LinearSeparation:
    """Fit a hyperplane, drop the rows on its wrong side, and widen the margin for the rest."""
    where, which = np.nonzero(distinct.counts)
    weight = distinct.counts[where, which].astype(float)
    signs = np.where(which == 1, 1.0, -1.0)
    low, wide = distinct.rows.min(axis=0), np.ptp(distinct.rows, axis=0)
    scaled = 2 * (distinct.rows - low) / np.where(wide > 0, wide, 1.0) - 1
    rows = np.column_stack([scaled[where], np.ones(len(where))])
    plane = _best_plane(rows, signs, weight)
    margin = signs * (rows @ plane)
    right = margin > 0
    share = float(weight[right].sum() / weight.sum())
    gamma = float(margin[right].min() / np.abs(plane).sum())
    widest = _widest_margin(rows[right], signs[right], plane)
    return LinearSeparation(share, max(gamma, widest or gamma), widest is not None)


def _best_plane(
    rows: NDArray[np.float64], signs: NDArray[np.float64], weight: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The hyperplane, of several that are fitted, that is right on most weight."""
    # rows far on the wrong side pull a hyperplane towards them although they are lost: they are
    # left out and it is fitted again, for as long as that changes which they are

    def right(plane: NDArray[np.float64]) -> float:
        return float(weight[signs * (rows @ plane) > 0].sum())

    best = np.append(np.zeros(rows.shape[1] - 1), np.sign(weight @ signs) or 1.0)
    kept = np.ones(len(rows), bool)
    for _ in range(REFITS if rows.size <= LARGE else FEW_REFITS):
        plane = _logistic_plane(rows, signs, weight * kept)
        if right(plane) > right(best):
            best = plane
        near = signs * (rows @ plane) > -1
        if (near == kept).all() or len(np.unique(signs[near])) < 2:
            break
        kept = near
    return best


def _logistic_plane(
    rows: NDArray[np.float64], signs: NDArray[np.float64], weight: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Coefficients of a logistic regression with a slight penalty and no intercept of its own."""
    # written out because scikit-learn's brings half a second of modules along
    share, penalty = weight / weight.sum(), 1e-4 / weight.sum()

    def loss(plane: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        margin = signs * (rows @ plane)
        slope = -(share * signs * expit(-margin)) @ rows + penalty * plane
        return float(share @ np.logaddexp(0, -margin) + penalty / 2 * plane @ plane), slope

    exact = {"maxiter": 2000, "maxls": 50, "gtol": 1e-4, "ftol": 64 * np.finfo(float).eps}
    start = np.zeros(rows.shape[1])
    return np.asarray(minimize(loss, start, method="L-BFGS-B", jac=True, options=exact).x)


def _widest_margin(
    rows: NDArray[np.float64], signs: NDArray[np.float64], plane: NDArray[np.float64]
) -> float | None:
    """Greatest margin: 1 over the least |w|_1 with y w.x >= 1; None where the solver gives up."""
    # Few rows decide it. The program starts with those nearest to a given plane, and takes in rows
    # that its solution misses until it misses none: then it solves the program of all rows.
    signed, double = signs[:, None] * rows, 2 * rows.shape[1]
    held = np.argsort(signed @ plane, kind="stable")[:AT_ONCE]
    for _ in range(PROGRAMS):
        part = signed[held]
        solved = linprog(
            np.ones(double),
            A_ub=-np.hstack([part, -part]),
            b_ub=-np.ones(len(held)),
            bounds=(0, None),
            method="highs",
            options={"time_limit": 60.0},
        )
        if solved.status != 0:
            return None
        plane = solved.x[: rows.shape[1]] - solved.x[rows.shape[1] :]
        reached = signed @ plane
        missed = np.setdiff1d(np.flatnonzero(reached < 1 - TOLERANCE), held)
        if len(missed) == 0:
            # of the plane itself: the solver's own figure is off by its tolerance
            margin = reached.min() / max(np.abs(plane).sum(), 1e-300)
            return float(margin) if margin > 0 else None
        worst = missed[np.argsort(reached[missed], kind="stable")[:AT_ONCE]]
        held = np.concatenate([held, worst])
    return None


def _listed(
    pairs: NDArray[np.int64], distinct: Distinct, labels: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Some rows that stand for conflicting pairs: equal rows of different classes first."""
    both = np.flatnonzero((distinct.counts > 0).sum(axis=1) > 1)[:LISTED]
    listed = np.concatenate([np.stack([both, both], axis=1), pairs[:LISTED]])[:LISTED]
    order = np.argsort(distinct.distinct_row, kind="stable")
    first = np.searchsorted(distinct.distinct_row[order], np.arange(len(distinct.rows)))
    last = np.append(first[1:], len(order))
    rows = []
    for a, b in listed.tolist():
        i, others = order[first[a]], order[first[b] : last[b]]
        rows += [(int(i), int(j)) for j in others[labels[others] != labels[i]][:1]]
    return np.array(rows, np.int64).reshape(-1, 2)
