"""Exact branch and bound for the tree that loses least to the worst perturbation."""

import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.kernels.robust_bounds import leaf_loss, split_rows, stump_bound, two_level_bound
from steadytree.kernels.robust_descent import count_splits, improve_plan, plan_value
from steadytree.kernels.robust_lists import (
    add_leaves,
    join_pairs,
    narrow_pair,
    open_tests,
    two_level_list,
)
from steadytree.kernels.robust_pairs import best_pair, promising_pairs, region_weights
from steadytree.kernels.robust_table import Cells
from steadytree.solve.outcome import Outcome, Plan, Progress
from steadytree.solve.problem import Problem
from steadytree.solve.subtrees import SubTrees, inner_places, random_plan, without_worse

Floats = NDArray[np.float64]
Path = tuple[tuple[int, int], ...]
LARGEST_LIST = 1_000_000_000  # bytes of costs held at once
ROUNDING = 1e-7  # values that differ by less are equal
EDGE = 1e-9  # bounds this close to a target reach it
MOST_CELLS = 96
FIRST_ROOM = 2048
PAIRS_AT_ONCE = 20_000_000
Outside = tuple[NDArray[np.int64], Floats]


class Stop(Exception):
    """The search ends here, for the reason given."""


class Search:
    """One search; `run` may be called once."""

    def __init__(
        self,
        problem: Problem,
        depth: int,
        time_limit: float = math.inf,
        seed: int = 0,
        progress: Callable[[Progress], None] | None = None,
    ) -> None:
        self.problem, self.depth = problem, depth
        self.table, self.penalty = problem.table, problem.penalty
        self.time_limit, self.progress = time_limit, progress
        self.rng = np.random.default_rng(seed)
        self.started = time.monotonic()
        self.everyone = np.arange(len(self.table.label))
        self.counted = problem.whole and self.penalty == 0  # values are whole numbers
        # losing a part of a row counts in the bounds, but not in a value of whole rows
        self.slack = 1.0 if problem.shared and problem.whole and self.penalty > 0 else 0.0
        self.most_splits = 2**depth - 1
        self.shortest = True  # no tree of the same value has fewer questions, as far as was looked
        self.plan = self._majority()
        self.value = self._evaluate(self.plan)
        self.bound = 0.0
        self.cells: Cells = problem.cells(0.0, 1.0, 1)
        self.active = np.arange(1)
        self.known: dict[tuple[int, Path], Floats] = {}

    # ---- the whole ----
    def run(self, start: Plan | None = None) -> Outcome:
        """Improve the tree until it is proven best, time is up, or the user interrupts."""
        reason = "proven"
        try:
            if start is not None:
                self._offer(start)
            self._descend()
            self._prove()
            self.bound = self.value
            self._shorten()
        except Stop as stop:
            reason = str(stop)
        except KeyboardInterrupt:
            reason = "interrupted"
        bound = min(self.bound, self.value)
        return Outcome(self.plan, self.value, bound, reason == "proven", reason)

    def _prove(self) -> None:
        """Raise the target until a tree is found below it; every failure is a certain bound."""
        if self.value <= ROUNDING:
            return
        self._choose_cells(self.value)
        self._raise_bound(self._root_bound())
        unit = 1.0 if self.problem.whole else self.problem.total / len(self.everyone)
        step = unit
        while self.bound < self.value - ROUNDING:
            start = math.floor(self.bound + ROUNDING) if self.counted else self.bound
            target = min(self.value, start + step)
            if self._search_below(target):
                return
            self._raise_bound(target)
            step = min(2 * step, unit * max(1, len(self.everyone) // 60))

    def _shorten(self) -> None:
        """Among the trees that lose no more, find one with fewest questions."""
        if not self.counted:
            return  # a penalty sees to it, or equal values are chance
        self.most_splits = count_splits(self.plan, self.depth) - 1
        if self.most_splits < 0:
            return
        try:
            self._choose_cells(self.value + 1)  # the old ones hold the prices of better trees only
            self._search_below(self.value + 1)
        except Stop:  # what was proven stays so
            self.shortest = False

    def _search_below(self, target: float) -> bool:
        """Look for the best tree below a target; True where there was one (it is then the best)."""
        found = False
        for plan in self._trees_below(target):
            found = self._offer(plan, target) or found
        return found

    def _trees_below(self, target: float) -> Iterator[Plan]:
        """Better and better trees below the target, until there is none."""
        if self.depth < 3:
            if self._focus(self._least((), self.everyone, self.depth), target + self.slack - EDGE):
                limit = target + self.slack - EDGE
                yield from self._list((), self.everyone, self.depth, self._alone(), limit).plans
            return
        bounds = [self._split_bound((), self.everyone, test, self.depth) for test in self._tests()]
        least = np.array([(self.cells.offset + bound).min() for bound in bounds])
        for test in np.argsort(least, kind="stable").tolist():
            limit = self._limit(target)
            if least[test] < limit + self.slack and self._focus(bounds[test], limit + self.slack):
                sides = self._both_sides((), self.everyone, test, self.depth, self._alone(), limit)
                if sides is not None:
                    yield from self._best_tree(test, *sides, limit)

    def _limit(self, target: float) -> float:
        """What to stay below: a better value, or while shortening an equal one."""
        return (target if self._is_shortening else min(target, self.value)) - EDGE

    @property
    def _is_shortening(self) -> bool:
        return self.most_splits < 2**self.depth - 1

    def _best_tree(
        self, test: int, left: SubTrees, right: SubTrees, limit: float
    ) -> Iterator[Plan]:
        """The best tree with the given root, after each portion of pairs that has a better one."""
        spending = self.problem.limit, self.problem.shared, self.problem.whole
        charge = self.penalty, self.most_splits
        for part, pairs in self._pairs(left, right, self._alone(), limit + self.slack):
            lists = part.arrays[1:], right.arrays[1:]
            best, value = best_pair(*lists, pairs, self.table.weight, *charge, spending)
            if value < limit:
                first, second = pairs[best]
                limit = limit if self._is_shortening else value - EDGE
                yield np.concatenate([[test], part.plans[first], right.plans[second]])

    def _pairs(
        self, left: SubTrees, right: SubTrees, outside: Outside, target: float
    ) -> Iterator[tuple[SubTrees, NDArray[np.int64]]]:
        """Portions of the left list, with the pairs of each that may beat the target."""
        region, bounds = outside
        around = region_weights(region, self.table.weight, len(bounds)), bounds
        size, room = max(1, PAIRS_AT_ONCE // len(right)), FIRST_ROOM
        for first in range(0, len(left), size):
            part = left.between(first, first + size)
            while True:
                self._check_time()
                pairs = np.empty((room, 2), np.int64)
                lists = part.arrays[1:3], right.arrays[1:3]
                count = promising_pairs(*lists, around, self.seen, target - self.penalty, pairs)
                if count >= 0:
                    break
                room *= 4
            yield part, pairs[:count]

    # ---- cells ----
    def _choose_cells(self, target: float) -> None:
        """Even cells over the prices that a tree below the target can have, as bounds allow."""
        if not self.problem.shared:
            self._set_cells(0.0, 1.0, 1)
            return
        lowest, highest = 0.0, (target + self.slack) / self.problem.limit
        n_cells = int(np.clip(4 * target, 8, MOST_CELLS))
        for _ in range(3):
            self._set_cells(lowest, highest, n_cells)
            least = self._least((), self.everyone, self.depth)
            open_ = np.flatnonzero(self.cells.offset + least < target + self.slack - EDGE)
            if len(open_) == 0:
                return
            edges = np.linspace(lowest, highest, n_cells + 1)
            narrowed = edges[open_[0]], edges[open_[-1] + 1]
            if narrowed[1] - narrowed[0] > 0.7 * (highest - lowest):
                return
            lowest, highest = narrowed
        self._set_cells(lowest, highest, n_cells)

    def _set_cells(self, lowest: float, highest: float, n_cells: int) -> None:
        self.cells = self.problem.cells(lowest, highest, n_cells)
        self.known = {}

    def _focus(self, least: Floats, target: float) -> bool:
        """Look only at cells in which the target can be reached; False where there is none."""
        self.active = np.flatnonzero(self.cells.offset + least < target)
        self.seen = Cells(
            self.cells.offset[self.active],
            self.cells.slope[self.active],
            np.ascontiguousarray(self.cells.cross[:, :, self.active]),
            self.cells.limit,
            self.cells.shared,
        )
        return len(self.active) > 0

    # ---- bounds ----
    def _root_bound(self) -> float:
        least = self._least((), self.everyone, self.depth)
        return float((self.cells.offset + least).min()) - self.slack

    def _least(self, path: Path, rows: NDArray[np.int64], depth: int) -> Floats:
        """Least losses, cell by cell, of any sub-tree of a region on the region's own rows."""
        key = depth, tuple(sorted(path))
        if key in self.known:
            return self.known[key]
        self._check_time()
        bound = np.empty(len(self.cells.offset))
        if depth == 0 or len(rows) == 0:
            bound[:] = leaf_loss(rows, self.table)
        elif depth == 1:
            stump_bound(rows, self.table, self.cells, self.penalty, bound)
        elif depth == 2:
            two_level_bound(rows, self.table, self.cells, self.penalty, bound)
        else:
            bound[:] = leaf_loss(rows, self.table)
            for test in self._tests():
                np.minimum(bound, self._split_bound(path, rows, test, depth), out=bound)
        self.known[key] = bound
        return bound

    def _split_bound(self, path: Path, rows: NDArray[np.int64], test: int, depth: int) -> Floats:
        """Least losses of sub-trees that ask the given question first."""
        left, right = split_rows(rows, test, self.table)
        below = self._least((*path, (test, 0)), left, depth - 1)
        return self.penalty + below + self._least((*path, (test, 1)), right, depth - 1)

    def _tests(self) -> range:
        return range(len(self.table.feature))

    # ---- lists of sub-trees ----
    def _alone(self) -> Outside:
        """No other regions: the rows are all of the tree's."""
        return np.zeros(len(self.everyone), np.int64), np.zeros((1, len(self.active)))

    def _list(
        self, path: Path, rows: NDArray[np.int64], depth: int, outside: Outside, target: float
    ) -> SubTrees:
        """All sub-trees of a region that may be part of a tree below the target."""
        self._check_time()
        if depth == 2:
            return self._filled(
                7,
                lambda found: two_level_list(
                    self._arrays(path),
                    rows,
                    outside,
                    self.table,
                    self.seen,
                    (self.penalty, self.most_splits),
                    target,
                    found,
                ),
            )
        width = 2 ** (depth + 1) - 1
        tests, sides = self._arrays(path)
        leaves = self._filled(
            width,
            lambda found: add_leaves(
                tests, sides, len(path), outside, self.table, self.seen, target, found
            ),
        )
        if depth == 0:
            return leaves
        parts = [leaves]
        for test in np.flatnonzero(open_tests(tests, sides, len(path), self.table)):
            parts.append(self._join(path, rows, int(test), depth, outside, target))
        return self._without_worse(SubTrees.joined(parts))

    def _join(
        self,
        path: Path,
        rows: NDArray[np.int64],
        test: int,
        depth: int,
        outside: Outside,
        target: float,
    ) -> SubTrees:
        """All sub-trees of a region that ask the given question first and may beat the target."""
        width = 2 ** (depth + 1) - 1
        sides = self._both_sides(path, rows, test, depth, outside, target)
        if sides is None:
            return SubTrees.none(width, len(self.everyone), len(self.active))
        left, right = sides
        charge = self.penalty, self.most_splits
        found, count = SubTrees.none(width, len(self.everyone), len(self.active), FIRST_ROOM), 0
        around = outside, self.table, self.seen, charge, target
        for part, pairs in self._pairs(left, right, outside, target):
            while True:
                lists = part.arrays, right.arrays, pairs
                count, seen = join_pairs(test, *lists, *around, found.arrays, count)
                if seen == len(pairs):
                    break
                pairs = pairs[seen:]
                found, count = self._compressed(found, count)
        return self._without_worse(found.between(0, count))

    def _compressed(self, found: SubTrees, count: int) -> tuple[SubTrees, int]:
        """Room for more: by dropping what others can stand in for, else in larger arrays."""
        left = self._without_worse(found.between(0, count))
        if len(left) > len(found) // 2:
            return self._enlarged(found, count), count
        for old, new in zip(left.arrays, found.arrays, strict=True):
            new[: len(left)] = old
        return found, len(left)

    def _without_worse(self, trees: SubTrees) -> SubTrees:
        return without_worse(trees, self.cells.limit, self.problem.shared)

    def _enlarged(self, found: SubTrees, count: int) -> SubTrees:
        """The same with four times the room; ends the search where that is too much."""
        room = 4 * len(found)
        n, n_cells = len(self.everyone), len(self.active)
        if room * 8 * (n + n_cells) > LARGEST_LIST:
            raise Stop("too many candidates")
        larger = SubTrees.none(found.plans.shape[1], n, n_cells, room)
        for old, new in zip(found.arrays, larger.arrays, strict=True):
            new[:count] = old[:count]
        return larger

    def _both_sides(
        self,
        path: Path,
        rows: NDArray[np.int64],
        test: int,
        depth: int,
        outside: Outside,
        target: float,
    ) -> tuple[SubTrees, SubTrees] | None:
        """Sub-trees for both sides of a question; None where no pair can beat the target."""
        region, bounds = outside
        target = target if path else target + self.slack
        paths = [(*path, (test, side)) for side in (0, 1)]
        own = split_rows(rows, test, self.table)
        least = [self._least(p, r, depth - 1)[self.active] for p, r in zip(paths, own, strict=True)]
        rest = self.seen.offset + self.penalty + bounds[1:].sum(axis=0)
        if (rest + least[0] + least[1]).min() >= target:
            return None
        lists: list[Any] = [None, None]
        first = int(self.table.weight[own[1]].sum() > self.table.weight[own[0]].sum())
        for side in (first, 1 - first):
            divided = region.copy()
            divided[own[1 - side]] = len(bounds)
            around = divided, np.vstack([bounds, least[1 - side]])
            found = self._list(paths[side], own[side], depth - 1, around, target - self.penalty)
            if len(found) == 0:
                return None
            lists[side], least[side] = found, found.losses.min(axis=0)
        kept = [np.arange(len(found)) for found in lists]
        counts = narrow_pair(lists[0].losses, kept[0], lists[1].losses, kept[1], rest, target)
        if min(counts) == 0:
            return None
        left, right = (found.take(k[:n]) for found, k, n in zip(lists, kept, counts, strict=True))
        return left.in_order(), right.in_order()

    def _filled(self, width: int, fill: Callable[[tuple[Any, ...]], int]) -> SubTrees:
        """What `fill` puts into arrays, which are made larger until they hold it."""
        found = SubTrees.none(width, len(self.everyone), len(self.active), FIRST_ROOM)
        while True:
            self._check_time()
            count = fill(found.arrays)
            if count >= 0:
                return self._without_worse(found.between(0, count))
            found = self._enlarged(found, 0)

    def _arrays(self, path: Path) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Tests and sides with room for more; the last side is the number asked."""
        tests, sides = np.zeros(self.depth + 3, np.int64), np.zeros(self.depth + 3, np.int64)
        for place, (test, side) in enumerate(path):
            tests[place], sides[place] = test, side
        sides[-1] = len(path)
        return tests, sides

    # ---- the best tree so far ----
    def _majority(self) -> Plan:
        counts = np.bincount(self.table.label, self.table.weight, self.table.n_classes)
        plan = np.zeros(2 ** (self.depth + 1) - 1, np.int32)
        plan[0] = -1 - counts.argmax()
        return plan

    def _evaluate(self, plan: Plan) -> float:
        costs = np.empty(len(self.table.label))
        return float(plan_value(plan, self.depth, self.table, self.problem.spending, costs))

    def _offer(self, plan: Plan, target: float = math.inf) -> bool:
        """Take a tree if it is better or as good and shorter; True if it is below the target."""
        plan = np.ascontiguousarray(plan, dtype=np.int32)
        value = self._evaluate(plan)
        shorter = count_splits(plan, self.depth) < count_splits(self.plan, self.depth)
        if value < self.value - ROUNDING or (value < self.value + ROUNDING and shorter):
            self.plan, self.value = plan.copy(), min(value, self.value)
            self._report()
        return value < target - ROUNDING

    def _descend(self) -> None:
        """Local search from random trees; the number of starts falls with the work of each."""
        n_tests = len(self.table.feature)
        if n_tests == 0 or self.table.n_classes < 2:
            return
        work = len(self.everyone) * n_tests * 4**self.depth * self.table.n_classes**2
        for _ in range(int(np.clip(1e9 / work, 2, 4))):
            self._check_time()
            plan = random_plan(self.rng, self.depth, n_tests, self.table.n_classes)
            order = self.rng.permutation(2**self.depth - 1)
            improve_plan(plan, self.depth, self.table, self.problem.spending, order)
            self._offer(self._shortened(plan))

    def _shortened(self, plan: Plan) -> Plan:
        """The plan without questions whose removal costs nothing."""
        plan, value = plan.copy(), self._evaluate(plan)
        for place in inner_places(self.depth)[::-1]:
            if plan[place] < 0:
                continue
            for label in range(self.table.n_classes):
                shorter = plan.copy()
                shorter[place] = -1 - label
                cheaper = self._evaluate(shorter)
                if cheaper <= value + ROUNDING:
                    plan, value = shorter, min(value, cheaper)
                    break
        return plan

    def _raise_bound(self, bound: float) -> None:
        if self.counted:
            # with a shared budget a bound counts the part of a row that is not lost in the end
            bound = (
                math.floor(bound + ROUNDING) if self.problem.shared else math.ceil(bound - ROUNDING)
            )
        if bound > self.bound:
            self.bound = min(bound, self.value)
            self._report()

    def _report(self) -> None:
        if self.progress is not None:
            elapsed = time.monotonic() - self.started
            self.progress(Progress(elapsed, self.value, self.bound))

    def _check_time(self) -> None:
        if time.monotonic() - self.started > self.time_limit:
            raise Stop("time limit")
