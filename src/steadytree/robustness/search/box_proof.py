"""BoxProof: a bound on all trees over boxes of three levels or more, lowered step by step."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from steadytree.robustness._kernels import box_bounds, box_roots, box_splits, boxes
from steadytree.robustness._kernels.box_splits import ROUNDING, BoxTable
from steadytree.robustness._kernels.boxes import LABEL
from steadytree.robustness.search.boxes import BoxProblem, empty_tree, rows_of
from steadytree.robustness.search.problem import Floats

STEP_WORK = 10_000_000  # values looked at in one step; limits of time are checked between steps
ROOM = 0.04  # share of the gap by which the bounds of two sides may be too high at first
FIRST_ROOM, DEEP_ROOM = 0.005, 0.1  # of trees of two levels over all rows, and of more, by bound
MOST_VISITS = 5  # of a root: each has half the room of the one before, and more rounds
STEP, SHRINK = 0.25, 0.9  # of the shares that rows give to the left side, and from round to round
TAKEN_UP = 0.5  # of what one call finds out about shares at the next level, for those that follow
Shares = NDArray[np.float32]


def even_shares(table: BoxTable) -> Shares:
    """Half of each row, (2, p, n) by column: the shares in use, and those to try next."""
    return np.full((2, *table.left_from.shape), 0.5, np.float32)


def first_bounds(
    table: BoxTable, weight: Floats, shares: Shares, most: float, bound: float
) -> tuple[Floats, Floats]:
    """Bounds of each root, and (2, n_roots) of its sides.

    Rows that can be on both sides give shares (p, n) of their weight to the left. `bound` holds for
    all trees, `most` for all that have one level less: over all rows, hence over any of them.
    """
    sides = np.minimum(box_roots.side_weights(table, weight, shares), most)
    return np.minimum(bound, sides.sum(axis=0) - table.penalty), sides


class BoxProof:
    """Bounds of trees by their root; `begin_step` is called before every piece of work."""

    def __init__(
        self,
        problem: BoxProblem,
        depth: int,
        bound: float,
        begin_step: Callable[[str], None],
        work: int = STEP_WORK,
    ) -> None:
        self.problem, self.table, self.depth = problem, problem.table, depth
        self.begin_step, self.work = begin_step, work
        self.ends = np.cumsum(self.table.n_thresholds)
        # what is given to the left side: at the root, and at the level below it on either side,
        # where what was found out under one root serves all others
        self.shares, self.below = even_shares(self.table), even_shares(self.table)
        self.visits = np.zeros(problem.n_splits, np.int64)
        self.ages = np.zeros(len(self.ends), np.int64)  # how often a column's shares were renewed
        self.seen = np.full(problem.n_splits, -1, np.int64)  # their age at the last visit
        room = (FIRST_ROOM if depth == 3 else DEEP_ROOM) * bound
        weight, even = self.table.weight, even_shares(self.table)[0]
        self.most = self._least_upper(weight, depth - 1, room, even)[0]
        # of each root, as far as known
        self.near, self.sides = first_bounds(self.table, weight, self.shares[0], self.most, bound)
        self.settled = -np.inf  # the largest bound that cannot be lowered

    @property
    def bound(self) -> float:
        """No tree with a split at its root keeps more, less penalties."""
        return float(self.near.max(initial=-np.inf))

    def lower(self, value: float) -> bool:
        """One more root, where that can lower the bound towards `value`; False where not."""
        if self.bound <= max(value, self.settled) + ROUNDING:
            return False
        pick = int(box_roots.widest_top(self.near))
        column, _, span = self._column_at(pick)
        before, visit = float(self.near[pick]), int(self.visits[pick])
        room = max(ROOM * (before - value), 2.0 * ROUNDING) * 0.5**visit
        if self.seen[pick] == self.ages[column]:
            self._renew(column, span)
        self.seen[pick] = self.ages[column]
        roots = self.near, self.sides, self.shares, self.table.weight
        self._settle(pick, roots, self.depth, room, 1 + int(self.ages[column]))
        unit = self.problem.unit
        if unit > 0.0:
            self.near[:] = unit * np.floor(self.near / unit + 1e-4)
        self.visits[pick] += 1
        if self.near[pick] >= before and self.visits[pick] >= MOST_VISITS:
            self.settled = before
        return True

    def _column_at(self, pick: int) -> tuple[int, int, slice]:
        """Column and threshold index of a root, and the place of the column's roots among all."""
        column = int(np.searchsorted(self.ends, pick, side="right"))
        start = int(self.ends[column]) - int(self.table.n_thresholds[column])
        return column, pick - start, slice(start, int(self.ends[column]))

    def _renew(self, column: int, span: slice) -> None:
        """Use the shares that the visits of a column's roots led to, for all of its roots.

        What was known about sides held for the shares before.
        """
        self.shares[0, column] = self.shares[1, column]
        self.ages[column] += 1
        own = slice(column, column + 1)
        table = self.table._replace(
            left_from=self.table.left_from[own],
            right_below=self.table.right_below[own],
            n_thresholds=self.table.n_thresholds[own],
        )
        weights = box_roots.side_weights(table, self.table.weight, self.shares[0, own])
        self.sides[:, span] = np.minimum(weights, self.most)

    def _settle(
        self,
        pick: int,
        roots: tuple[Floats, Floats, Shares, Floats],
        depth: int,
        room: float,
        rounds: int,
    ) -> float:
        """Bound trees with one root; rows that can be on both sides count in part on each.

        First they count by the shares of the column, then in some rounds less where they are kept.
        """
        near, sides, shares, weight = roots
        column, index, span = self._column_at(pick)
        left = self.table.right_below[column] <= index
        right = self.table.left_from[column] > index
        at, both = (self.table, weight, column, index), left & right
        own, best = np.empty((2, len(weight))), np.inf
        share = shares[0, column].astype(np.float64)
        for turn in range(rounds):
            own[0] = weight * np.where(right, share, 1.0) * left
            own[1] = weight * np.where(left, 1.0 - share, 1.0) * right
            (first, kept_left), (second, kept_right) = (
                self._least_upper(own[side], depth - 1, room, self.below[side]) for side in (0, 1)
            )
            if turn == 0:
                known = shares[0, column], (first, second), sides[:, span], near[span]
                box_roots.spread_sides(*at, *known)
            best = min(best, first + second - self.table.penalty)
            moved = STEP * SHRINK**turn * (kept_left * 1.0 - kept_right) * both
            share = np.clip(share - moved, 0.0, 1.0)
        shares[1, column, both] = share[both]
        box_roots.spread_bound(*at, best, near[span])
        near[pick] = min(near[pick], best)
        return best

    def _least_upper(
        self, weight: Floats, depth: int, room: float, below: Shares
    ) -> tuple[float, NDArray[np.bool_]]:
        """A bound on trees of some levels under these weights, and rows that a tree near it keeps.

        The bound is at most `room` above the least seen. Rows give shares `below` (p, n) to the
        left side of a split; what is found out about them is taken up there.
        """
        rows, kept = np.flatnonzero(weight > 0.0), np.zeros(len(weight), bool)
        if len(rows) == 0:
            return 0.0, kept
        self.begin_step("side")
        table, tree = rows_of(self.table, rows, weight), empty_tree(2)
        stump, *split = box_splits.one_level(table, table.weight, 0)
        tree[1, LABEL] = split[2]
        if split[0] >= 0:
            boxes.put_stump(tree, 1, *split)
        levels, total = np.array([stump, -np.inf]), float(weight.sum())
        if depth == 2:
            levels[1], shares = stump, even_shares(table)
            shares[:] = below[:, rows]
            near, sides = first_bounds(table, table.weight, shares[0], stump, total)
            given = table, table.weight, near, sides, shares, levels, room, 1
            work, resume = self.work, np.zeros(2, np.int64)
            while work >= self.work:
                self.begin_step("two levels of a side")
                work = box_bounds.two_levels(*given, 0.0, self.work, resume, tree)
            below[:, rows] += TAKEN_UP * (shares[1] - shares[0])
            marks = np.zeros((2, len(tree), len(rows)), bool)
            boxes.mark_rows(table, tree, marks[0], marks[1])
            kept[rows] = marks[0, 1]
        else:
            most = self._least_upper(weight, depth - 1, room / 2, below)[0]
            shares = even_shares(self.table)
            near, sides = first_bounds(self.table, weight, shares[0], most, total)
            while near.max() > max(levels[0], levels[1]) + room + ROUNDING:
                pick = int(box_roots.widest_top(near))
                bound = self._settle(pick, (near, sides, shares, weight), depth, room / 2, 1)
                levels[1] = max(levels[1], bound)
        return max(float(stump), float(near.max())), kept
