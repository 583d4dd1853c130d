"""BoxProof: a bound on all trees over boxes of three levels or more, lowered step by step."""

from collections.abc import Callable

import numpy as np

from steadytree.robustness._kernels import box_bounds
from steadytree.robustness._kernels.boxes import ROUNDING
from steadytree.robustness.search.boxes import BoxProblem, empty_tree, rows_of
from steadytree.robustness.search.problem import Floats

STEP_WORK = 10_000_000  # values looked at in one step; limits of time are checked between steps
ROOM = 0.1  # share of the gap by which the bounds of two sides may be too high at first
MOST_VISITS = 4  # of a root, each with half the room


class BoxProof:
    """Bounds of trees by their root; `begin_step` is called before every piece of work."""

    def __init__(
        self, problem: BoxProblem, depth: int, bound: float, begin_step: Callable[[], None]
    ) -> None:
        self.problem, self.table, self.depth = problem, problem.table, depth
        self.begin_step = begin_step
        self.near = np.full(problem.n_splits, bound)  # of each root, as far as known
        self.sides = box_bounds.side_weights(self.table, self.table.weight)
        self.visits = np.zeros(problem.n_splits, np.int64)
        self.ends = np.cumsum(self.table.n_thresholds)
        self.settled = -np.inf  # the largest bound that cannot be lowered

    @property
    def bound(self) -> float:
        """No tree with a split at its root keeps more, less penalties."""
        return float(self.near.max(initial=-np.inf))

    def lower(self, value: float) -> bool:
        """One more root, where that can lower the bound towards `value`; False where not."""
        if self.bound <= max(value, self.settled) + ROUNDING:
            return False
        pick = int(box_bounds.widest_top(self.near))
        before = float(self.near[pick])
        room = max(ROOM * (before - value), 2.0 * ROUNDING) * 0.5 ** self.visits[pick]
        self._settle(pick, self.near, self.sides, self.table.weight, self.depth, room)
        unit = self.problem.unit
        if unit > 0.0:
            self.near[:] = unit * np.floor(self.near / unit + 1e-4)
        self.visits[pick] += 1
        if self.near[pick] >= before and self.visits[pick] >= MOST_VISITS:
            self.settled = before
        return True

    def _settle(
        self, pick: int, near: Floats, sides: Floats, weight: Floats, depth: int, room: float
    ) -> float:
        """Bound trees with one root, rows that can be on both sides counting half on each."""
        column = int(np.searchsorted(self.ends, pick, side="right"))
        start = int(self.ends[column]) - int(self.table.n_thresholds[column])
        index, roots = pick - start, slice(start, int(self.ends[column]))
        own, half = np.empty((2, len(weight))), np.full(len(weight), 0.5)
        left, right = box_bounds.sides_of(self.table, column, index)
        box_bounds.shared_weights(weight, left, right, half, own)
        values = (
            self._least_upper(own[0], depth - 1, room),
            self._least_upper(own[1], depth - 1, room),
        )
        at = self.table, weight, column, index
        box_bounds.spread_sides(*at, values, sides[:, roots], near[roots])
        box_bounds.spread_bound(*at, sum(values) - self.table.penalty, near[roots])
        return sum(values) - self.table.penalty

    def _least_upper(self, weight: Floats, depth: int, room: float) -> float:
        """A bound on trees of some levels under these weights, `room` above the least seen."""
        rows = np.flatnonzero(weight > 0.0)
        if len(rows) == 0:
            return 0.0
        self.begin_step()
        table = rows_of(self.table, rows, weight)
        stump = float(box_bounds.one_level(table, table.weight, 0)[0])
        near = np.full(self.problem.n_splits, float(weight.sum()))
        levels, tree = np.array([stump, -np.inf]), empty_tree(2)
        if depth == 2:
            sides, work = box_bounds.side_weights(table, table.weight), STEP_WORK
            given = table, table.weight, near, sides, levels, room, False, 0.0
            while work >= STEP_WORK:
                self.begin_step()
                work = box_bounds.two_levels(*given, STEP_WORK, tree)
            return max(stump, float(near.max()))
        sides = box_bounds.side_weights(self.table, weight)
        while near.max() > max(levels[0], levels[1]) + room + ROUNDING:
            pick = int(box_bounds.widest_top(near))
            bound = self._settle(pick, near, sides, weight, depth, room / 2)
            levels[1] = max(levels[1], bound)
        return max(stump, float(near.max()))
