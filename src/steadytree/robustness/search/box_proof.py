"""BoxProof: a bound on all trees over boxes of three levels or more, lowered step by step."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from steadytree.robustness._kernels import box_bounds, box_roots, box_splits, boxes
from steadytree.robustness._kernels.box_bounds import EXACT_ROUNDS
from steadytree.robustness._kernels.box_splits import ROUNDING, BoxTable
from steadytree.robustness._kernels.boxes import LABEL
from steadytree.robustness.search.boxes import BoxProblem, empty_tree, rows_of
from steadytree.robustness.search.problem import Floats

STEP_WORK = 10_000_000  # values looked at in one step; limits of time are checked between steps
ROOM = 0.04  # share of the gap by which the bounds of two sides may be too high at first
FIRST_ROOM, DEEP_ROOM = 0.005, 0.1  # of trees of two levels over all rows, and of more, by bound
MOST_SHARES = 20_000_000  # rows by roots of which shares are kept
MOST_VISITS = 5  # of a root: each has half the room of the one before, and more rounds
STEP, SHRINK = 0.25, 0.9  # of the shares that rows give to the left side, and from round to round


def first_bounds(
    table: BoxTable, weight: Floats, most: float, bound: float
) -> tuple[Floats, Floats]:
    """Bounds of each root, and (2, n_roots) of its sides, where rows on both count half on each.

    `bound` holds for all trees, `most` for all that have one level less: over all rows, hence over
    any of them.
    """
    sides = np.minimum(box_roots.side_weights(table, weight), most)
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
        self.visits = np.zeros(problem.n_splits, np.int64)
        room = (FIRST_ROOM if depth == 3 else DEEP_ROOM) * bound
        most = self._least_upper(self.table.weight, depth - 1, room, 1)[0]
        # of each root, as far as known
        self.near, self.sides = first_bounds(self.table, self.table.weight, most, bound)
        self.shares: dict[int, NDArray[np.float16]] = {}  # of roots that were visited
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
        before, visit = float(self.near[pick]), int(self.visits[pick])
        room = max(ROOM * (before - value), 2.0 * ROUNDING) * 0.5**visit
        roots = self.near, self.sides, self.table.weight
        share = self._known_share(pick) if visit else None
        _, share = self._settle(pick, roots, self.depth, room, 1 + 2 * visit, share)
        if pick in self.shares or (len(self.shares) + 1) * len(share) <= MOST_SHARES:
            self.shares[pick] = share.astype(np.float16)
        unit = self.problem.unit
        if unit > 0.0:
            self.near[:] = unit * np.floor(self.near / unit + 1e-4)
        self.visits[pick] += 1
        if self.near[pick] >= before and self.visits[pick] >= MOST_VISITS:
            self.settled = before
        return True

    def _known_share(self, pick: int) -> Floats | None:
        """Shares at a root, or those nearby in its column where more rounds were made."""
        column = int(np.searchsorted(self.ends, pick, side="right"))
        start = int(self.ends[column]) - int(self.table.n_thresholds[column])
        near = [other for other in self.shares if start <= other < self.ends[column]]
        near.sort(key=lambda other: (self.visits[other] < 2, abs(other - pick)))
        return self.shares[near[0]].astype(np.float64) if near else None

    def _settle(
        self,
        pick: int,
        roots: tuple[Floats, Floats, Floats],
        depth: int,
        room: float,
        rounds: int,
        share: Floats | None = None,
    ) -> tuple[float, Floats]:
        """Bound trees with one root; rows that can be on both sides count in part on each.

        First they count half on each, or as told, then in some rounds less where they are kept.
        Returns the bound, and the shares for further rounds.
        """
        near, sides, weight = roots
        column = int(np.searchsorted(self.ends, pick, side="right"))
        start = int(self.ends[column]) - int(self.table.n_thresholds[column])
        index, span = pick - start, slice(start, int(self.ends[column]))
        left = self.table.right_below[column] <= index
        right = self.table.left_from[column] > index
        own, best, halves = np.empty((2, len(weight))), np.inf, share is None
        share = np.full(len(weight), 0.5) if share is None else share
        for turn in range(rounds):
            own[0] = weight * np.where(right, share, 1.0) * left
            own[1] = weight * np.where(left, 1.0 - share, 1.0) * right
            (first, kept_left), (second, kept_right) = (
                self._least_upper(side, depth - 1, room, 1 + rounds // 2) for side in own
            )
            if turn == 0 and halves:
                at = self.table, weight, column, index
                box_roots.spread_sides(*at, (first, second), sides[:, span], near[span])
            best = min(best, first + second - self.table.penalty)
            moved = STEP * SHRINK**turn * (kept_left * 1.0 - kept_right) * (left & right)
            share = np.clip(share - moved, 0.0, 1.0)
        box_roots.spread_bound(self.table, weight, column, index, best, near[span])
        near[pick] = min(near[pick], best)
        return best, share

    def _least_upper(
        self, weight: Floats, depth: int, room: float, rounds: int
    ) -> tuple[float, NDArray[np.bool_]]:
        """A bound on trees of some levels under these weights, and rows that a tree near it keeps.

        The bound is at most `room` above the least seen.
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
            levels[1] = stump
            near, sides = first_bounds(table, table.weight, stump, total)
            given = table, table.weight, near, sides, levels, room, min(rounds, EXACT_ROUNDS - 1)
            work, resume = self.work, np.zeros(2, np.int64)
            while work >= self.work:
                self.begin_step("two levels of a side")
                work = box_bounds.two_levels(*given, 0.0, self.work, resume, tree)
            marks = np.zeros((2, len(tree), len(rows)), bool)
            boxes.mark_rows(table, tree, marks[0], marks[1])
            kept[rows] = marks[0, 1]
        else:
            most = self._least_upper(weight, depth - 1, room / 2, 1)[0]
            near, sides = first_bounds(self.table, weight, most, total)
            while near.max() > max(levels[0], levels[1]) + room + ROUNDING:
                pick = int(box_roots.widest_top(near))
                bound, _ = self._settle(pick, (near, sides, weight), depth, room / 2, rounds)
                levels[1] = max(levels[1], bound)
        return max(float(stump), float(near.max())), kept
