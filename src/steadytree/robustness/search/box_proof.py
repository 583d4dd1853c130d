"""BoxProof: a bound on all trees over boxes of two levels or more, lowered step by step."""

from collections.abc import Callable

import numpy as np

from steadytree.robustness._kernels import box_bounds
from steadytree.robustness._kernels.boxes import ROUNDING
from steadytree.robustness.search.boxes import BoxProblem, empty_tree, rows_of
from steadytree.robustness.search.problem import Floats

STEP_WORK = 10_000_000  # values looked at in one step; limits of time are checked between steps
ROOM = 0.2  # share of the gap by which the bounds of two sides may be too high at first
MOST_VISITS = 4  # of a root, each with half the room
KEPT_BYTES = 64_000_000  # of bounds for other weights, from which new ones start
NEAREST = 4  # of those that are looked at


class KnownBounds:
    """Bounds of roots under some weights of rows, from which those under other weights follow.

    Where the weights of some rows rise, no tree gains more than they do.
    """

    def __init__(self, n_rows: int, n_roots: int) -> None:
        size = max(1, KEPT_BYTES // (8 * (n_rows + n_roots)))
        self.weights, self.near = np.empty((size, n_rows)), np.empty((size, n_roots))
        self.n_added = 0

    def start(self, weight: Floats) -> Floats:
        """A bound for each root under these weights."""
        near = np.full(self.near.shape[1], float(weight.sum()))
        n_kept = min(self.n_added, len(self.weights))
        risen = np.maximum(weight - self.weights[:n_kept], 0.0).sum(axis=1)
        for k in np.argsort(risen, kind="stable")[:NEAREST].tolist():
            np.minimum(near, self.near[k] + risen[k], out=near)
        return near

    def add(self, weight: Floats, near: Floats) -> None:
        """Keep bounds; the oldest go."""
        k = self.n_added % len(self.weights)
        self.weights[k], self.near[k] = weight, near
        self.n_added += 1


class BoxProof:
    """Bounds of trees by their root; `begin_step` is called before every piece of work."""

    def __init__(
        self, problem: BoxProblem, depth: int, bound: float, begin_step: Callable[[], None]
    ) -> None:
        self.problem, self.table, self.depth = problem, problem.table, depth
        self.begin_step = begin_step
        self.near = np.full(problem.n_splits, bound)  # of each root, as far as known
        self.visits = np.zeros(problem.n_splits, np.int64)
        shape = len(self.table.label), problem.n_splits
        self.known = {level: KnownBounds(*shape) for level in range(2, depth)}
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
        bound = self._of_root(self.near, pick, self.table.weight, self.depth, room)
        if self.problem.unit > 0.0:
            bound = self.problem.unit * np.floor(bound / self.problem.unit + 1e-4)
        self._spread(self.near, pick, self.table.weight, bound)
        self.visits[pick] += 1
        if self.near[pick] >= before and self.visits[pick] >= MOST_VISITS:
            self.settled = before
        return True

    def _of_root(self, near: Floats, pick: int, weight: Floats, depth: int, room: float) -> float:
        """Bound of trees with one root: rows that can be on both sides count half on each."""
        column = int(np.searchsorted(self.ends, pick, side="right"))
        index = pick - int(self.ends[column]) + int(self.table.n_thresholds[column])
        own, half = np.empty((2, len(weight))), np.full(len(weight), 0.5)
        left, right = box_bounds.sides_of(self.table, column, index)
        box_bounds.shared_weights(weight, left, right, half, own)
        both = [self._least_upper(side, depth - 1, room) for side in own]
        return sum(both) - self.table.penalty

    def _spread(self, near: Floats, pick: int, weight: Floats, bound: float) -> None:
        column = int(np.searchsorted(self.ends, pick, side="right"))
        start = int(self.ends[column]) - int(self.table.n_thresholds[column])
        near[pick] = min(near[pick], bound)
        roots = near[start : self.ends[column]]
        box_bounds.spread_bound(self.table, weight, column, pick - start, bound, roots)

    def _least_upper(self, weight: Floats, depth: int, room: float) -> float:
        """A bound on trees of some levels under these weights, `room` above the least seen."""
        rows = np.flatnonzero(weight > 0.0)
        if len(rows) == 0:
            return 0.0
        self.begin_step()
        table = rows_of(self.table, rows, weight)
        stump = float(box_bounds.one_level(table, table.weight, 0)[0])
        near = self.known[depth].start(weight)
        levels, tree = np.array([stump, -np.inf]), empty_tree(2)
        if depth == 2:
            work = STEP_WORK
            while work >= STEP_WORK:
                self.begin_step()
                work = box_bounds.two_levels(
                    table, table.weight, near, levels, room, False, 0.0, STEP_WORK, tree
                )
        else:
            while near.max() > max(levels[0], levels[1]) + room + ROUNDING:
                pick = int(box_bounds.widest_top(near))
                bound = self._of_root(near, pick, weight, depth, room / 2)
                self._spread(near, pick, weight, bound)
                levels[1] = max(levels[1], bound)
        self.known[depth].add(weight, near)
        return max(stump, float(near.max()))
