"""Rows that conflict: which lie closer than 2 r, decided exactly, and the fewest to drop.

0.3 and 0.1 are 0.2 apart as written, but not in binary, nor after a division. So a float stands
here for the shortest decimal that reads back as it, as Python prints it, and sums and quotients of
these are exact. Floats decide a comparison where they can; ties are decided by fractions.
"""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from steadytree.data.feature_space import FeatureSpace
from steadytree.data.table import Table, quote
from steadytree.robustness._kernels.separation import (
    RowTree,
    bound_nodes,
    close_pairs,
    cover_close,
    grow_tree,
    nearest_rows,
)
from steadytree.robustness.perturbation import is_number

MOST_CLASSES = 62  # one bit each
MOST_PAIRS = 5_000_000  # that are listed
NO_PAIRS = np.empty((0, 2), np.int64)
LEAF = 8  # rows of the tree that are not divided further
SLACK = 8  # roundings by which a sum of floats may be off, with a margin

# the least and the last rank close to each, column after column, and where columns start
Closer = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


@dataclass(frozen=True, eq=False)
class Scaled:
    """Rows as compared: numbers, a 0/1 column for each category and for missing values."""

    values: NDArray[np.float64]  # (n, p): in units of the range or the scale, rounded
    ranks: NDArray[np.int64]  # (n, p): rank of each value among the distinct ones of its column
    # the distinct values of each column, rising, in its own units and precision
    levels: tuple[NDArray[Any], ...]
    units: tuple[Fraction, ...]  # what counts as distance one

    @classmethod
    def of(cls, X: Any, scale: Mapping[str, float] | None = None) -> "Scaled":
        """Read rows; a missing number becomes its column's least, and is marked in a new column."""
        table = Table.read(X)
        space = FeatureSpace.observe(table)
        given = _check_scale(space, scale)
        encoded = space.encode(table)
        columns: list[tuple[NDArray[Any], float | None]] = []
        for j, column in enumerate(space):
            missing = np.isnan(encoded[:, j])
            if column.is_categorical:
                for category in range(len(column.categories)):
                    columns.append(((encoded[:, j] == category).astype(float), 1.0))
            else:
                own = table.columns[j]  # in its own precision, in which it was written
                filled = np.where(missing, own[~missing].min(), own) + own.dtype.type(0)
                columns.append((filled, given.get(column.name)))
            if missing.any():
                columns.append((missing.astype(float), 1.0))
        values = np.empty((table.n_rows, len(columns)))
        ranks, levels, units = np.empty(values.shape, np.int64), [], []
        for j, (numbers, unit) in enumerate(columns):
            level, ranks[:, j] = np.unique(numbers, return_inverse=True)
            wide = _decimal(level[-1]) - _decimal(level[0])
            levels.append(level)
            units.append(_decimal(unit) if unit is not None else wide or Fraction(1))
            value = level.astype(np.float64)
            values[:, j] = ((value - value[0]) / float(units[-1]))[ranks[:, j]]
        return cls(values, ranks, tuple(levels), tuple(units))

    def closer_than(self, r: float) -> Closer:
        """The least and the last rank closer to each rank than 2 r, for r > 0."""
        columns = zip(self.levels, self.units, strict=True)
        each = [_last_closer(level, 2 * _decimal(r) * unit) for level, unit in columns]
        # ranks a <= b are close where b is at most the last of a, which rises with a
        least = [np.searchsorted(last, np.arange(len(last))) for last in each]
        starts = np.concatenate([[0], np.cumsum([len(one) for one in each])])
        return np.concatenate(least), np.concatenate(each), starts[:-1].astype(np.int64)


def _decimal(number: Any) -> Fraction:
    """A float as the shortest decimal that reads back as it, in its own precision."""
    return Fraction(str(number))


def _last_closer(level: NDArray[Any], reach: Fraction) -> NDArray[np.int64]:
    """Of rising values, the last that lies less than `reach` above each."""
    n = len(level)
    if reach > _decimal(level[-1]) - _decimal(level[0]):
        return np.full(n, n - 1)
    value, near, precision = level.astype(np.float64), float(reach), np.finfo(level.dtype)
    rounding = SLACK * float(precision.eps)
    slack = rounding * np.abs(value) + rounding * near + SLACK * float(precision.smallest_subnormal)
    low = np.searchsorted(value, value + near - slack, side="left")
    high = np.searchsorted(value, value + near + slack, side="right")
    for k in np.flatnonzero(low < high).tolist():
        end = _decimal(level[k]) + reach
        a, b = int(low[k]), int(high[k])
        while a < b:
            middle = (a + b) // 2
            a, b = (a, middle) if _decimal(level[middle]) >= end else (middle + 1, b)
        low[k] = a
    return low.astype(np.int64) - 1


def _check_scale(space: FeatureSpace, scale: Mapping[str, float] | None) -> Mapping[str, float]:
    """What counts as distance one in some columns; refused where that cannot be."""
    if scale is not None and not isinstance(scale, Mapping):
        raise ValueError(f"scale must map names to numbers, got {scale!r}.")
    given = scale or {}
    unknown = [name for name in given if name not in space.names]
    if unknown:
        raise ValueError(f"scale names {quote(unknown)}, but X has {quote(space.names)}.")
    for column in space:
        unit = given.get(column.name, column.high - column.low)
        if column.name in given and column.is_categorical:
            raise ValueError(f"scale of {column.name!r}: its categories are always 1 apart.")
        if column.name in given and not (is_number(unit) and 0 < unit < np.inf):
            raise ValueError(f"scale of {column.name!r} must be a number above 0, got {unit!r}.")
        wide = (column.high - column.low) / (float(unit) or 1.0)
        if not column.is_categorical and not np.isfinite(wide):
            raise ValueError(
                f"column {column.name!r} reaches from {column.low:g} to {column.high:g}, too "
                "far in units of its scale: divide its values, or drop it."
            )
    return given


@dataclass(frozen=True, eq=False)
class Distinct:
    """Distinct rows with the number of rows of each class."""

    rows: NDArray[np.float64]  # (m, p)
    counts: NDArray[np.int64]  # (m, n_classes): how often each stands in the data, by class
    distinct_row: NDArray[np.int64]  # (n,): index of each row among the distinct ones
    # (m, p): rank of each value in its column, exact where `rows` are rounded
    ranks: NDArray[np.int64]

    @classmethod
    def of(cls, scaled: Scaled, labels: NDArray[np.int64], n_classes: int) -> "Distinct":
        """Group equal rows, by their ranks."""
        ranks = np.ascontiguousarray(scaled.ranks)
        _, first, index = np.unique(_row_keys(ranks), return_index=True, return_inverse=True)
        index = index.ravel()
        counts = np.bincount(index * n_classes + labels, minlength=len(first) * n_classes)
        rows = scaled.values[first] + 0.0
        return cls(rows, counts.reshape(len(first), n_classes), index, ranks[first])

    @property
    def bits(self) -> NDArray[np.int64]:
        """The classes of each row, one bit each."""
        return ((self.counts > 0) << np.arange(self.counts.shape[1])).sum(axis=1)

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """The rows in the order of their tree."""
        return self._grown[0]

    @cached_property
    def _grown(self) -> tuple[NDArray[np.int64], ...]:
        """Order of the rows, and start, end, first child and parent of the tree's nodes."""
        found: tuple[NDArray[np.int64], ...] = grow_tree(np.ascontiguousarray(self.rows), LEAF)
        return found

    def _tree(self, compared: NDArray[Any], bits: NDArray[np.int64]) -> RowTree:
        """The tree with boxes of sorted rows or ranks."""
        _, start, end, left, parent = self._grown
        return RowTree(start, end, left, parent, *bound_nodes(start, end, left, compared, bits))

    def cover(
        self, closer: Closer | None, time_limit: float
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_], int]:
        """Pairs of close rows, what to drop by (distinct row, class), and a proven lower bound.

        Without `closer` only equal rows are close. Pairs beyond `MOST_PAIRS` are not listed; then
        what is dropped may be up to twice the least.
        """
        if closer is None:
            return NO_PAIRS, *least_cover(self.counts, NO_PAIRS, time_limit)
        ranks, bits = np.ascontiguousarray(self.ranks[self.order]), self.bits[self.order]
        tree = self._tree(ranks, bits)
        pairs = close_pairs(tree, ranks, bits, closer, MOST_PAIRS)
        listed: NDArray[np.int64] = self.order[pairs]
        if len(pairs) <= MOST_PAIRS:
            return listed, *least_cover(self.counts, listed, time_limit)
        dropped = np.empty(self.counts.shape, bool)
        dropped[self.order], paid = cover_close(tree, ranks, self.counts[self.order], closer)
        return listed[:MOST_PAIRS], dropped, int(paid)

    def least_distance(self, dropped: NDArray[np.bool_]) -> float:
        """Distance of the nearest rows of different classes without some (distinct row, class)."""
        left = np.where(dropped, 0, self.counts)
        if ((left > 0).sum(axis=1) > 1).any():
            return 0.0
        rest = replace(self, counts=left)
        # every pair has an end outside the largest class; in random order a near pair is found
        # soon, and most rows then have none that is nearer
        n_rows = (left > 0).sum(axis=0)
        others = np.delete(left, np.argmax(n_rows), axis=1).sum(axis=1)
        wanted = np.random.default_rng(0).permutation(np.flatnonzero(others[self.order]))
        best = np.full(len(left), np.inf)
        self._nearest(rest.bits, wanted, best, True)
        return float(best.min())

    def nearest_other_class(self) -> NDArray[np.float64]:
        """Distance (m,) of each distinct row to the nearest row of another class."""
        best = np.where((self.counts > 0).sum(axis=1) > 1, 0.0, np.inf)[self.order]
        self._nearest(self.bits, np.flatnonzero(best > 0), best, False)
        found = np.empty(len(best))
        found[self.order] = best
        return found

    def _nearest(
        self,
        bits: NDArray[np.int64],
        wanted: NDArray[np.int64],
        best: NDArray[np.float64],
        together: bool,
    ) -> None:
        rows, bits = np.ascontiguousarray(self.rows[self.order]), bits[self.order]
        nearest_rows(self._tree(rows, bits), rows, bits, wanted, best, together)


def _row_keys(rows: NDArray[Any]) -> NDArray[Any]:
    return rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()


def least_cover(
    counts: NDArray[np.int64], pairs: NDArray[np.int64], time_limit: float
) -> tuple[NDArray[np.bool_], int]:
    """Least rows whose removal leaves no pair, by (distinct row, class), and a proven bound."""
    # Exact for two classes by maximum flow. With more the half-integral relaxation (a minimum cut
    # again) settles most rows; what it leaves open is finished by branch and bound within the
    # limit.
    where, which = np.nonzero(counts)
    node = np.full(counts.shape, -1)
    node[where, which] = np.arange(len(where))
    edges = _edges(node, pairs)
    weight = counts[where, which]
    dropped = np.zeros(counts.shape, bool)
    if len(edges) == 0:
        return dropped, 0
    if counts.shape[1] == 2:
        ends = np.where(which[edges[:, :1]] == 0, edges, edges[:, ::-1])
        left, right, lower = _cover_between(weight, ends)
        picked = left | right
    else:
        left, right, total = _cover_between(weight, np.concatenate([edges, edges[:, ::-1]]))
        # half of both copies is a least fractional cover
        picked, proven = _finish(weight, edges, (left.astype(float) + right) / 2, time_limit)
        lower = max(total / 2, proven)
    dropped[where[picked], which[picked]] = True
    # a bound goes up to the next number of rows, but not by the solver's rounding
    return dropped, min(int(np.ceil(lower - 1e-6)), int(weight[picked].sum()))


def _edges(node: NDArray[np.int64], pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Pairs of (row, class) nodes in conflict: close rows, and classes of one row."""
    found = [NO_PAIRS]
    for a, b in itertools.permutations(range(node.shape[1]), 2):
        found.append(np.stack([node[pairs[:, 0], a], node[pairs[:, 1], b]], axis=1))
        if a < b:
            found.append(node[:, [a, b]])
    edges = np.concatenate(found)
    return edges[(edges >= 0).all(axis=1)]


def _cover_between(weight: Any, edges: Any) -> tuple[Any, Any, float]:
    """Minimum vertex cover of edges from one copy of the nodes to another, with its weight."""
    n, source, sink = len(weight), 2 * len(weight), 2 * len(weight) + 1
    start = np.concatenate([np.full(n, source), edges[:, 0], n + np.arange(n)])
    end = np.concatenate([np.arange(n), n + edges[:, 1], np.full(n, sink)])
    big = np.full(len(edges), 2 * int(weight.sum()) + 1)
    room = np.concatenate([weight, big, weight]).astype(np.int32)
    graph = sparse.csr_matrix((room, (start, end)), shape=(2 * n + 2, 2 * n + 2))
    flow = maximum_flow(graph, source, sink)
    rest = graph - flow.flow
    rest.data = np.maximum(rest.data, 0)
    rest.eliminate_zeros()
    reached = np.zeros(2 * n + 2, bool)
    reached[breadth_first_order(rest, source, return_predecessors=False)] = True
    return ~reached[:n], reached[n : 2 * n], float(flow.flow_value)


def _finish(
    weight: Any, edges: Any, half: Any, time_limit: float
) -> tuple[NDArray[np.bool_], float]:
    """A full cover and a proven bound, from a fractional cover of values 0, 1/2 and 1."""
    # some least cover takes what the fractional one takes as a whole; what that one halves is left
    # to branch and bound, whose bound adds to the rest
    picked = half == 1
    taken = float(weight[picked].sum())
    open_ = np.flatnonzero(half == 0.5)
    index = np.full(len(weight), -1)
    index[open_] = np.arange(len(open_))
    inner = index[edges]
    inner = inner[(inner >= 0).all(axis=1)]
    if len(inner) == 0:
        return picked, taken
    rows = np.repeat(np.arange(len(inner)), 2)
    entries = np.ones(inner.size), (rows, inner.ravel())
    matrix = sparse.csr_matrix(entries, shape=(len(inner), len(open_)))
    solved = milp(
        weight[open_].astype(float),
        constraints=LinearConstraint(matrix, 1, np.inf),
        integrality=np.ones(len(open_)),
        bounds=Bounds(0, 1),
        options={"time_limit": time_limit, "mip_rel_gap": 0.0},
    )
    chosen = np.ones(len(open_)) if solved.x is None else solved.x
    picked[open_[chosen > 0.5]] = True
    return picked, taken + float(solved.mip_dual_bound or 0.0)
