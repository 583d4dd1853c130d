"""Branch and bound: the tree with the least robust loss, proven or within a limit."""

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from steadytree._base.clock import Limit
from steadytree.data.column import Column
from steadytree.data.feature_space import FeatureSpace
from steadytree.robustness._kernels import cost, pairs, search
from steadytree.robustness.perturbation import Perturbation
from steadytree.robustness.search.bounds import MEMORY, NEAR, Bounds, divisions
from steadytree.robustness.search.problem import Encoding, Floats, Outcome, Problem
from steadytree.robustness.search.sharing import SharedRows, can_share
from steadytree.robustness.search.subtrees import Lists, SubTrees, TooExpensive, random_encoding

FEW_LISTED = 50  # sub-trees of an inexpensive step
MANY_LISTED = 2000  # sub-trees of a step so expensive that better bounds pay
MANY_LISTS = 100  # lists of such a step, be they empty
ROUNDING = 1e-7  # values that differ by less are equal


class Stop(Exception):
    """The search ends here, for the reason given."""


@dataclass(frozen=True)
class Progress:
    """State of a search: robust loss (with penalties) of the best tree, and a lower bound."""

    seconds: float
    incumbent: float
    bound: float


class Search:
    """One search; `run` may be called once."""

    def __init__(
        self,
        problem: Problem,
        depth: int,
        limit: Limit | None = None,
        seed: int = 0,
        progress: Callable[[Progress], None] | None = None,
        n_threads: int = 1,
        memory: float = MEMORY,
    ) -> None:
        self.problem, self.depth, self.n_threads = problem, depth, n_threads
        self.table, self.penalty = problem.table, problem.penalty
        self.limit, self.progress = limit or Limit(), progress
        self.rng = np.random.default_rng(seed)
        self.stopped = False
        self.everyone = np.arange(len(self.table.label))
        self.counted = problem.integer and self.penalty == 0  # values are integers
        self.most_splits = 2**depth - 1
        self.encoding = np.zeros(2 ** (depth + 1) - 1, np.int32)  # always the most frequent class
        self.encoding[0] = -1 - np.bincount(self.table.label, self.table.weight).argmax()
        self.value, self.bound = self._evaluate(self.encoding), 0.0
        self.bounds = Bounds(problem, depth, self._begin_step, memory / n_threads)
        self.slack = self.bounds.slack
        self.sharing = False  # whether rows count in part on both sides of the splits
        self.shared: dict[int, tuple[Any, Any]] = {}  # by root: first splits and leaves left open

    def run(self, start: Encoding | None = None, bound: float = 0.0) -> Outcome:
        """Improve the tree until it is proven best, a limit is reached, or the user interrupts.

        `start` is a tree to begin with, `bound` what every tree is known to lose.
        """
        reason, shortest = "proven", False
        self._raise_bound(max(bound, self.problem.inseparable))
        try:
            if start is not None:
                self._offer(start)
            self._descend()
            self._prove()
            self.bound = self.value
            self._report()
        except Stop as stop:
            reason = str(stop)
        except KeyboardInterrupt:
            reason = "interrupted"
        else:
            shortest = self._shorten()
        bound = min(self.bound, self.value)
        return Outcome(self.encoding, self.value, bound, reason == "proven", reason, shortest)

    def _prove(self) -> None:
        """Raise the target until a tree is found below it; every failure is a certain bound."""
        # steps grow only while they are inexpensive: lists grow very fast beyond the optimum
        if self.value <= ROUNDING:
            return
        self.bounds.choose_intervals(self.value)
        self._raise_bound(self.bounds.of_all())
        unit = 1.0 if self.problem.integer else self.problem.total / len(self.everyone)
        step, largest = unit, unit * max(1, len(self.everyone) // 120)
        while self.bound < self.value - ROUNDING:
            start = math.floor(self.bound + ROUNDING) if self.counted else self.bound
            target = min(self.value, start + (math.floor(step) if self.counted else step))
            self.bounds.n_listed = self.bounds.n_lists = 0
            try:
                if self._search_below(target):
                    return
            except TooExpensive:
                step = self._ease(step, unit)
                continue
            self._raise_bound(target)
            if self.sharing:  # half of the gap: beyond the optimum nothing can be closed
                self._descend()
                step = max(unit, (self.value - self.bound) / 2)
                continue
            many = self.bounds.n_listed > MANY_LISTED or self.bounds.n_lists > MANY_LISTS
            if self.bounds.n_listed < FEW_LISTED and not many:
                step = min(2 * step, largest)
                continue
            step = min(2 * step, max(unit, largest / 2))
            self._descend()
            if many and self._sharpen() and self.sharing:
                step = max(unit, (self.value - self.bound) / 2)

    def _ease(self, step: float, unit: float) -> float:
        """What to do where lists get too long: better bounds, longer lists, then smaller steps."""
        self.stopped = False
        self._descend()
        if self._sharpen():
            return step
        if self.bounds.lengthen():
            return step
        if step <= unit:
            raise Stop("too many candidates")
        return max(unit, step / 2)

    def _sharpen(self) -> bool:
        """Turn to better bounds; False where they are in use, or there are none."""
        # at depth 3 two levels are priced exactly first: that is inexpensive there
        share = can_share(self.bounds) and not self.sharing
        share = share and (self.depth > 3 or self.bounds.exact)
        if not share and (self.bounds.exact or self.depth < 3):
            return False
        with self.limit.paused():
            load_loops(self.depth, sharp=True)
        if share:
            self.sharing = True
            return True
        self.bounds.sharpen()
        self._raise_bound(self.bounds.of_all())
        return True

    def _shorten(self) -> bool:
        """Among the trees that lose no more, find one with fewest splits; False if unproven."""
        # Few splits are tried first: then most bounds are high, and little has to be listed.
        # with a penalty fewer splits are better anyway; equal fractions are coincidence
        if not self.counted and search.count_splits(self.encoding, self.depth):
            return False
        self._offer(self._shortened(self.encoding))
        n_splits = search.count_splits(self.encoding, self.depth)
        if n_splits == 0:
            return True
        try:  # what was proven stays so
            # the old intervals hold the prices of better trees only
            self.bounds.choose_intervals(self.value + 1)
            self.bounds.lengthen()
            for self.most_splits in range(1, n_splits):
                if self._search_below(self.value + 1):
                    return True
        except (Stop, TooExpensive, KeyboardInterrupt):
            return False
        return True

    def _search_below(self, target: float) -> bool:
        """Look for the best tree below a target; True where there was one (it is then the best)."""
        found = False
        for encoding in self._trees_below(target):
            found = self._offer(encoding, target) or found
            if found and self._is_shortening:
                break  # fewer splits were tried before
        return found

    def _trees_below(self, target: float) -> Iterator[Encoding]:
        """Better and better trees below the target, until there is none."""
        everything = (), self.everyone
        if self.depth < 3:
            limit = target + self.slack - NEAR
            least = self.bounds.least(*everything, self.depth, self.most_splits)
            lists = self._focused(least, limit)
            if lists is not None:
                region = *everything, self.most_splits
                yield from lists.below(region, self.depth, lists.alone(), limit).encodings
            return
        bounds = [
            self.bounds.of_split(*everything, split, self.depth, self.most_splits)
            for split in self.bounds.splits
        ]
        least = np.array([(self.bounds.intervals.offset + bound).min() for bound in bounds])
        self.shared.clear()
        if self.sharing and not self._is_shortening:
            least = self._share(bounds, least, self._limit(target) + self.slack)
        roots = np.argsort(least, kind="stable").tolist()
        for first in range(0, len(roots), self.n_threads):
            limit = self._limit(target)
            batch = roots[first : first + self.n_threads]
            promising = [split for split in batch if least[split] < limit + self.slack]
            for encodings in self._side_by_side(promising, bounds, limit):
                yield from encodings

    def _share(self, bounds: list[Floats], least: Floats, target: float) -> Floats:
        """Raise the bounds of roots below the target, as far as needed, by sharing rows."""
        offset = self.bounds.intervals.offset
        for split in np.flatnonzero(least < target).tolist():
            shared = SharedRows(self.bounds, split)
            shared.close(np.flatnonzero(offset + bounds[split] < target), target)
            bounds[split] = np.maximum(bounds[split], shared.of_root)
            self.shared[split] = shared.open_pairs, shared.open_leaves
        raised = np.array([(offset + bound).min() for bound in bounds])
        self._raise_bound(min(target, float(raised.min())) - self.slack)
        return raised

    def _side_by_side(
        self, roots: list[int], bounds: list[Floats], limit: float
    ) -> Iterator[Iterator[Encoding] | list[Encoding]]:
        """Trees below the limit with each of the given roots, in threads where allowed."""
        if self.n_threads == 1 or len(roots) < 2:
            yield from (self._rooted(split, bounds[split], limit) for split in roots)
            return
        with ThreadPoolExecutor(self.n_threads) as pool:
            try:
                yield from list(pool.map(lambda s: list(self._rooted(s, bounds[s], limit)), roots))
            except BaseException:
                self.stopped = True  # the others end before their next step
                raise

    def _rooted(self, split: int, bound: Floats, limit: float) -> Iterator[Encoding]:
        """Better and better trees with the given root below the limit."""
        lists = self._focused(bound, limit + self.slack)
        if lists is None:
            return
        sharp = self.bounds.exact or self.sharing
        if sharp and self.depth > 3 and not self._is_shortening:
            yield from self._rooted_in_three(split, limit)
            return
        for most in divisions(self.depth, self.most_splits):
            yield from self._divided(lists, split, most, limit)

    def _divided(
        self, lists: Lists, split: int, most: tuple[int, int], limit: float
    ) -> Iterator[Encoding]:
        """Trees with the given root and at most so many splits on its sides."""
        root = (), self.everyone, split, most
        sides = lists.both_sides(root, self.depth, lists.alone(), limit)
        if sides is not None:
            yield from self._best_tree(lists, split, *sides, limit)

    def _rooted_in_three(self, split: int, limit: float) -> Iterator[Encoding]:
        """The same with the splits below the root given too: more, but much shorter lists."""
        bounds, depth = self.bounds, self.depth - 1
        own = cost.split_rows(self.everyone, split, self.table)
        least = [
            np.array([bounds.of_split(((split, k),), own[k], t, depth) for t in bounds.splits])
            for k in (0, 1)
        ]
        full = 2**depth - 1
        every = np.ones((1, 1, 1), bool), np.ones((2, 1), bool)
        open_pairs, open_leaves = self.shared.get(split, every)
        for leaf, most in enumerate(((0, full), (full, 0))):
            bound = bounds.of_split((), self.everyone, split, self.depth, 1 + full)
            bound = np.where(open_leaves[leaf], bound, np.inf)
            lists = self._focused(bound, limit + self.slack)
            if lists is not None:
                yield from self._divided(lists, split, most, limit)
        for left in bounds.splits:
            open_ = open_pairs[left % len(open_pairs)]
            both = np.where(open_, self.penalty + least[0][left] + least[1], np.inf)
            least_sum = (bounds.intervals.offset + both).min(axis=1)
            for right in np.flatnonzero(least_sum < limit + self.slack).tolist():
                now = min(limit, self._limit(limit))
                lists = self._focused(both[right], now + self.slack)
                if lists is None:
                    continue
                sides = lists.four_parts(split, (left, right), now + self.slack)
                if sides is not None:
                    yield from self._best_tree(lists, split, *sides, now)

    def _focused(self, least: Floats, target: float) -> Lists | None:
        """Lists for the intervals in which the target can be reached; None without any."""
        active = np.flatnonzero(self.bounds.intervals.offset + least < target)
        return Lists(self.bounds, active) if len(active) else None

    def _limit(self, target: float) -> float:
        """What to stay below: a better value, or while shortening an equal one."""
        return (target if self._is_shortening else min(target, self.value)) - NEAR

    @property
    def _is_shortening(self) -> bool:
        return self.most_splits < 2**self.depth - 1

    def _best_tree(
        self, lists: Lists, split: int, left: SubTrees, right: SubTrees, limit: float
    ) -> Iterator[Encoding]:
        """The best tree with the given root, after each portion of pairs that has a better one."""
        spending = self.problem.limit, self.problem.shared, self.problem.integer
        charge = self.penalty, self.most_splits
        for part, some in lists.pairs(left, right, lists.alone(), limit + self.slack):
            both = part.arrays[1:], right.arrays[1:]
            best, value = pairs.best_pair(*both, some, self.table.weight, *charge, spending)
            if value < limit:
                first, second = some[best]
                limit = limit if self._is_shortening else value - NEAR
                yield np.concatenate([[split], part.encodings[first], right.encodings[second]])

    def _evaluate(self, encoding: Encoding) -> float:
        costs, spending = np.empty(len(self.table.label)), self.problem.spending
        return float(search.encoding_value(encoding, self.depth, self.table, spending, costs))

    def _offer(self, encoding: Encoding, target: float = math.inf) -> bool:
        """Take a tree if it is better or as good and shorter; True if it is below the target."""
        encoding = np.ascontiguousarray(encoding, dtype=np.int32)
        value = self._evaluate(encoding)
        now, new = (search.count_splits(tree, self.depth) for tree in (self.encoding, encoding))
        if value < self.value - ROUNDING or (value < self.value + ROUNDING and new < now):
            self.encoding, self.value = encoding.copy(), min(value, self.value)
            self._report()
        return value < target - ROUNDING

    def _descend(self) -> None:
        """Local search from random trees; the number of starts falls with the work of each."""
        n_candidates = len(self.table.feature)
        if n_candidates == 0 or self.table.n_classes < 2:
            return
        work = len(self.everyone) * n_candidates * 4**self.depth * self.table.n_classes**2
        for _ in range(int(np.clip(1e9 / work, 2, 4 if self.depth < 4 else 8))):
            self._begin_step("random start")
            encoding = random_encoding(self.rng, self.depth, n_candidates, self.table.n_classes)
            order = self.rng.permutation(2**self.depth - 1)
            search.improve_encoding(encoding, self.depth, self.table, self.problem.spending, order)
            self._offer(self._shortened(encoding))

    def _shortened(self, encoding: Encoding) -> Encoding:
        """The encoding without splits whose removal costs nothing."""
        encoding, value = encoding.copy(), self._evaluate(encoding)
        for index in search.node_indices(self.depth)[0][::-1]:
            if encoding[index] < 0:
                continue
            for label in range(self.table.n_classes):
                shorter = encoding.copy()
                shorter[index] = -1 - label
                found = self._evaluate(shorter)
                if found <= value + ROUNDING:
                    encoding, value = shorter, min(value, found)
                    break
        return encoding

    def _raise_bound(self, bound: float) -> None:
        if self.counted:
            # with a shared budget a bound counts the part of a row that is not lost in the end
            down = self.problem.shared
            bound = math.floor(bound + ROUNDING) if down else math.ceil(bound - ROUNDING)
        if bound > self.bound:
            self.bound = min(bound, self.value)
            self._report()

    def _report(self) -> None:
        if self.progress is not None:
            self.progress(Progress(self.limit.elapsed, self.value, self.bound))

    def _begin_step(self, kind: str) -> None:
        """Raise Stop where a limit is reached; called before every piece of work."""
        if self.stopped:
            raise Stop("interrupted")
        reason = self.limit.spend(kind)
        if reason:
            raise Stop(reason)


N_ROWS, N_COLUMNS, HIGHEST = 24, 3, 2


@cache
def load_loops(depth: int, sharp: bool = False) -> None:
    """Compile or load the kernels of a search of that depth, while its time limit is paused.

    Those of the better bounds, which few searches turn to, only if asked for.
    """
    random = np.random.default_rng(0)
    columns = [Column(f"x{j}", "integer", 0.0, float(HIGHEST)) for j in range(N_COLUMNS)]
    thresholds = np.arange(HIGHEST, dtype=float)
    space = FeatureSpace(tuple(column.with_thresholds(thresholds) for column in columns))
    values = random.integers(0, HIGHEST + 1, (N_ROWS, N_COLUMNS)).astype(np.float64)
    labels = random.integers(0, 2, N_ROWS).astype(np.int64)
    moves = Perturbation(step_cost=1.0, budget=2.0, scope="total").moves(space)
    problem = Problem.of(space, moves, values, labels, np.ones(N_ROWS), (2.0, True, 0.0))
    few = Search(problem, min(depth, 4))
    if sharp:  # from the start, where other searches turn to it only if a proof is hard
        few.bounds.sharpen()
        few.sharing = True
    few.run()
