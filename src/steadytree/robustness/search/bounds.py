"""Lower bounds of the losses of sub-trees, by price interval; each is computed once."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.robustness._kernels import cost, search
from steadytree.robustness._kernels.cost import PriceIntervals, RobustTable
from steadytree.robustness.search.problem import Floats, Problem

Rows = NDArray[np.int64]
Path = tuple[tuple[int, int], ...]  # splits with the side taken, 0 being left
NEAR = 1e-9  # bounds this close to a target reach it
MOST_INTERVALS = 96
MEMORY = 3_000_000_000  # bytes that lists, bounds and shares may take together, if not told
LIST_SHARE = 3  # one list at most: those of both sides are held at once, and one that grows
FIRST_LIST = 8  # of that, until better bounds were tried
LEAST_KEPT = 16_000_000  # bytes of bounds: without them each would be found over and over
FEW_SPLITS = 150
TINY = 1e-15  # a price so low that no sum of losses differs from that at 0 by as much as NEAR
WHOLE = 1.0 - 1e-6  # at price 0 whole rows are lost: a bound above 79 is one of 80


class Bounds:
    """Least losses of regions under the present intervals; `begin_step` is called before work."""

    def __init__(
        self,
        problem: Problem,
        depth: int,
        begin_step: Callable[[str], None],
        memory: float = MEMORY,
    ) -> None:
        self.problem, self.depth, self.begin_step = problem, depth, begin_step
        self.memory = memory
        self.table, self.penalty = problem.table, problem.penalty
        self.splits = range(len(problem.splits))
        self.everyone = np.arange(len(self.table.label))
        # losing a part of a row counts in the bounds, but not in a value of whole rows
        self.slack = 1.0 if problem.shared and problem.integer and self.penalty > 0 else 0.0
        self.intervals: PriceIntervals = problem.intervals(0.0, 1.0, 1)
        self.known: dict[tuple[int, int, Path], Floats] = {}  # of regions with -depth, of splits
        self.n_listed = 0  # sub-trees that had to be listed, as a measure of work
        self.n_lists = 0  # lists that had to be made
        # bytes beyond which something else is tried first
        self.largest_list = memory / LIST_SHARE / FIRST_LIST
        self.exact = False  # whether two levels of splits are priced with all their leaves

    def choose_intervals(self, target: float) -> None:
        """Even intervals over the prices that a tree below the target can have, as bounds allow."""
        exact, self.exact = self.exact, False  # the quicker bounds do
        self._narrow_intervals(target)
        if exact:
            self.sharpen()

    def _narrow_intervals(self, target: float) -> None:
        if not self.problem.shared:
            self._set_intervals(0.0, 1.0, 1)
            return
        lowest, highest = self._least_price(), (target + self.slack) / self.problem.limit
        n_intervals, zero = int(np.clip(4 * target, 8, MOST_INTERVALS)), True
        for _ in range(3):
            self._set_intervals(lowest, highest, n_intervals, zero)
            if lowest >= highest:
                return
            least = self.least((), self.everyone, self.depth)
            open_ = self.intervals.offset + least < target + self.slack - NEAR
            if not open_.any():
                return
            free, others = zero and bool(open_[0]), np.flatnonzero(open_[zero * 1 :])
            prices = np.linspace(lowest, highest, n_intervals + 1)
            if len(others) == 0:
                lowest, zero = highest, free
                break
            narrowed = prices[others[0]], prices[others[-1] + 1]
            if narrowed[1] - narrowed[0] > 0.7 * (highest - lowest):
                return
            (lowest, highest), zero = narrowed, free
        self._set_intervals(lowest, highest, n_intervals, zero)

    def _least_price(self) -> float:
        """The least price above 0 that a worst perturbation can have: one over the largest cost."""
        # the least over prices lies where a row is just worth its cost, or at 0
        table, largest = self.table, np.zeros(len(self.problem.space))
        for split, costs in enumerate(np.maximum(table.left_cost, table.right_cost)):
            found = costs[np.isfinite(costs)].max(initial=0.0)
            largest[table.feature[split]] = max(largest[table.feature[split]], found)
        highest = np.sort(largest)[::-1][: 1 if table.largest else self.depth].sum()
        return float((1.0 - NEAR) / highest) if highest > 0.0 else np.inf

    def _set_intervals(
        self, lowest: float, highest: float, n_intervals: int, zero: bool = False
    ) -> None:
        """Even intervals between two prices, and one for the price 0 alone."""
        self.known = {}
        parts = []
        if zero:
            none = self.problem.intervals(0.0, TINY, 1)
            whole = self.problem.integer and self.penalty == 0
            parts.append(none._replace(offset=none.offset + (WHOLE if whole else 0.0)))
        if lowest < highest or not zero:
            parts.append(self.problem.intervals(lowest, highest, n_intervals))
        first, last = parts[0], parts[-1]
        self.intervals = (
            last
            if len(parts) == 1
            else last._replace(
                offset=np.concatenate([first.offset, last.offset]),
                slope=np.concatenate([first.slope, last.slope]),
                cross=np.concatenate([first.cross, last.cross], axis=2),
            )
        )

    def of_all(self) -> float:
        """What every tree must lose."""
        least = self.least((), self.everyone, self.depth)
        return float((self.intervals.offset + least).min()) - self.slack

    def least(self, path: Path, rows: Rows, depth: int, most: int | None = None) -> Floats:
        """Least losses (n_intervals,) of a region's own rows to sub-trees of at most `most`."""
        most = 2**depth - 1 if most is None else min(most, 2**depth - 1)
        key = -depth, most, tuple(sorted(path))
        if key in self.known:
            return self.known[key]
        self.begin_step(f"bound of {depth} levels")
        bound = np.empty(len(self.intervals.offset))
        if most == 0 or len(rows) == 0:
            bound[:] = cost.leaf_loss(rows, self.table)
        elif most == 1:
            cost.stump_bound(rows, self.table, self.intervals, self.penalty, bound)
        elif most == 2 or (depth == 2 and not self.exact):
            cost.two_level_bound(rows, self.table, self.intervals, (self.penalty, most), bound)
        elif depth == 2:
            bound[:] = cost.leaf_loss(rows, self.table)
            own = own_rows(self.table, rows)
            search.exact_two_levels(self.arrays(path), own, self.intervals, self.penalty, bound)
        else:
            bound[:] = cost.leaf_loss(rows, self.table)
            for found in self.of_splits(path, rows, depth, most):
                np.minimum(bound, found, out=bound)
        if len(self.known) * bound.nbytes > max(self.memory / 4, LEAST_KEPT):
            self.known.clear()  # they are found again where needed
        self.known[key] = bound
        return bound

    def of_splits(self, path: Path, rows: Rows, depth: int, most: int) -> Floats:
        """Least losses (n_candidates, n_intervals) of sub-trees with each split at their root."""
        key = depth, most, path
        if key in self.known:
            return self.known[key]
        found = np.empty((len(self.splits), len(self.intervals.offset)))
        for split in self.splits:
            found[split] = self.of_split(path, rows, split, depth, most)
        if depth == self.depth - 1 and len(self.splits) <= FEW_SPLITS:  # few enough to keep
            self.known[key] = found
        return found

    def lengthen(self) -> bool:
        """Allow lists as long as memory does; False where they are already."""
        before, self.largest_list = self.largest_list, self.memory / LIST_SHARE
        return before < self.largest_list

    def sharpen(self) -> None:
        """Price two levels of splits exactly from now on: expensive, and much higher bounds."""
        self.exact, self.known = True, {}

    def arrays(self, path: Path) -> tuple[Rows, Rows]:
        """Splits and sides with room for more; the last side is their number."""
        splits, sides = np.zeros((2, self.depth + 3), np.int64)
        splits[: len(path)], sides[: len(path)] = np.array(path, np.int64).reshape(-1, 2).T
        sides[-1] = len(path)
        return splits, sides

    def of_split(
        self, path: Path, rows: Rows, split: int, depth: int, most: int | None = None
    ) -> Floats:
        """Least losses of sub-trees with the given split at their root."""
        left, right = cost.split_rows(rows, split, self.table)
        found = np.full(len(self.intervals.offset), np.inf)
        for on_left, on_right in divisions(depth, most):
            below = self.least((*path, (split, 0)), left, depth - 1, on_left)
            beyond = self.least((*path, (split, 1)), right, depth - 1, on_right)
            np.minimum(found, self.penalty + below + beyond, out=found)
        return found


def own_rows(table: RobustTable, rows: Rows) -> RobustTable:
    """The table of some rows only, laid out as the whole one is: loops are compiled for that."""
    by_split = ("left_cost", "right_cost", "on_left", "missing", "cost_level")
    parts: Any = {name: np.ascontiguousarray(getattr(table, name)[:, rows]) for name in by_split}
    return table._replace(**parts, label=table.label[rows], weight=table.weight[rows])


def divisions(depth: int, most: int | None) -> list[tuple[int, int]]:
    """Most splits left and right of a first one, in every way that leaves none unused."""
    full = 2 ** (depth - 1) - 1
    left = 2 * full if most is None else min(most - 1, 2 * full)
    return [(first, left - first) for first in range(max(0, left - full), min(left, full) + 1)]
