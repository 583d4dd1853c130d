"""Lists of the sub-trees that a tree below a target may have."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.robustness._kernels import cost, lists, pairs
from steadytree.robustness.search.bounds import Bounds, Path, Rows, divisions
from steadytree.robustness.search.problem import Encoding, Floats

WINDOW = 128  # sub-trees that others are compared with
SAMPLE = 500
ENOUGH_KEPT = 0.7
FIRST_ROOM = 2048
PAIRS_AT_ONCE = 20_000_000
Outside = tuple[Rows, Floats]
Region = tuple[Path, Rows, int]  # with the most splits that it may have
RootSplit = tuple[Path, Rows, int, tuple[int, int]]  # a split, and the most below each side


class TooExpensive(Exception):
    """Lists grew beyond what they may for now."""


@dataclass(frozen=True)
class SubTrees:
    """Sub-trees of one region, with costs of a wrong prediction and losses with penalties."""

    encodings: Encoding
    costs: Floats
    losses: Floats
    split_counts: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.encodings)

    @property
    def arrays(self) -> tuple[Any, ...]:
        return self.encodings, self.costs, self.losses, self.split_counts

    def take(self, kept: NDArray[np.int64] | slice) -> "SubTrees":
        """Some of the list; nothing is copied where they are a slice."""
        return SubTrees(*(array[kept] for array in self.arrays))

    def in_order(self) -> "SubTrees":
        """Sorted by encoding, so that similar sub-trees are neighbours."""
        return self.take(np.lexsort(self.encodings.T[::-1]))

    @classmethod
    def joined(cls, parts: "list[SubTrees]") -> "SubTrees":
        columns = zip(*(part.arrays for part in parts), strict=True)
        return cls(*(np.concatenate(column) for column in columns))


def random_encoding(
    rng: np.random.Generator, depth: int, n_candidates: int, n_classes: int
) -> Encoding:
    """A full tree with random splits and labels."""
    if depth == 0:
        return np.array([-1 - rng.integers(n_classes)], np.int32)
    below = [random_encoding(rng, depth - 1, n_candidates, n_classes) for _ in range(2)]
    return np.concatenate([[rng.integers(n_candidates)], *below]).astype(np.int32)


class Lists:
    """Sub-trees of regions, for the intervals in which the target can be reached."""

    def __init__(self, bounds: Bounds, active: NDArray[np.int64]) -> None:
        self.bounds, self.active = bounds, active
        self.problem, self.table = bounds.problem, bounds.table
        self.penalty, self.everyone = bounds.penalty, bounds.everyone
        every = bounds.intervals
        cross = np.ascontiguousarray(every.cross[:, :, active])
        offset, slope = every.offset[active], every.slope[active]
        self.seen = every._replace(offset=offset, slope=slope, cross=cross)

    def alone(self) -> Outside:
        """No other regions: the rows are all of the tree's."""
        return np.zeros(len(self.everyone), np.int64), np.zeros((1, len(self.active)))

    def below(self, region: Region, depth: int, outside: Outside, target: float) -> SubTrees:
        """All sub-trees of a region that may be part of a tree below the target."""
        self.bounds.begin_step(f"list of {depth} levels")
        path, rows, most = region
        splits, sides = self.bounds.arrays(path)
        charge = self.penalty, most
        around = outside, self.table, self.seen
        if depth == 2:
            above = (splits, sides), rows
            within = *around, charge, target
            return self._filled(7, lambda to: lists.two_level_list(*above, *within, to))
        leaf = splits, sides, len(path)
        width = 2 ** (depth + 1) - 1
        leaves = self._filled(width, lambda to: lists.add_leaves(*leaf, *around, target, to))
        if depth == 0 or most == 0:
            return leaves
        parts = [leaves]
        least = self.bounds.of_splits(path, rows, depth, most)[:, self.active]
        rest = self.seen.offset + outside[1][1:].sum(axis=0)
        promising = (rest + least).min(axis=1) < target
        promising &= lists.open_splits(splits, sides, len(path), self.table)
        for split in np.flatnonzero(promising):
            for division in divisions(depth, most):
                root = path, rows, int(split), division
                parts.append(self.join(root, depth, outside, target))
        return self._without_worse(SubTrees.joined(parts))

    def both_sides(
        self, root: RootSplit, depth: int, outside: Outside, target: float
    ) -> tuple[SubTrees, SubTrees] | None:
        """Sub-trees for both sides of a split; None where no pair can beat the target."""
        path, rows, split, most = root
        region, bounds = outside
        target = target if path else target + self.bounds.slack
        paths = [(*path, (split, side)) for side in (0, 1)]
        own = cost.split_rows(rows, split, self.table)
        least = [
            self.bounds.least(p, r, depth - 1, m)[self.active]
            for p, r, m in zip(paths, own, most, strict=True)
        ]
        rest = self.seen.offset + self.penalty + bounds[1:].sum(axis=0)
        if (rest + least[0] + least[1]).min() >= target:
            return None
        both: list[Any] = [None, None]
        first = int(np.argmax([self.table.weight[rows].sum() for rows in own]))
        for side in (first, 1 - first):
            divided = region.copy()
            divided[own[1 - side]] = len(bounds)
            around = divided, np.vstack([bounds, least[1 - side]])
            inside = paths[side], own[side], most[side]
            found = self.below(inside, depth - 1, around, target - self.penalty)
            self.bounds.n_listed += len(found)
            if len(found) == 0:
                return None
            both[side], least[side] = found, found.losses.min(axis=0)
        kept = [np.arange(len(found)) for found in both]
        counts = lists.narrow_pair(both[0].losses, kept[0], both[1].losses, kept[1], rest, target)
        if min(counts) == 0:
            return None
        left, right = (found.take(k[:n]) for found, k, n in zip(both, kept, counts, strict=True))
        return left.in_order(), right.in_order()

    def four_parts(
        self, split: int, below: tuple[int, int], target: float
    ) -> tuple[SubTrees, SubTrees] | None:
        """Sub-trees for both sides of the root's split whose first splits are given."""
        depth = self.bounds.depth - 1
        most = 2 * (2 ** (depth - 1) - 1,)
        own = cost.split_rows(self.everyone, split, self.table)
        first = int(np.argmax([self.table.weight[rows].sum() for rows in own]))
        region = np.zeros(len(self.everyone), np.int64)
        parts = cost.split_rows(own[1 - first], below[1 - first], self.table)
        path = (split, 1 - first)
        bounds = [np.zeros(len(self.active))]
        for side, part in enumerate(parts):
            region[part] = side + 1
            least = self.bounds.least((path, (below[1 - first], side)), part, depth - 1)
            bounds.append(least[self.active])
        both: list[Any] = [None, None]
        for side in (first, 1 - first):
            root = ((split, side),), own[side], below[side], most
            found = self.join(root, depth, (region, np.vstack(bounds)), target - self.penalty)
            self.bounds.n_listed += len(found)
            if len(found) == 0:
                return None
            both[side] = found.in_order()
            region[:] = 0
            region[own[side]] = 1
            bounds = [np.zeros(len(self.active)), found.losses.min(axis=0)]
        return both[0], both[1]

    def pairs(
        self, left: SubTrees, right: SubTrees, outside: Outside, target: float
    ) -> Iterator[tuple[SubTrees, NDArray[np.int64]]]:
        """Portions of the left list, with the pairs of each that may beat the target."""
        region, bounds = outside
        around = pairs.region_weights(region, self.table.weight, len(bounds)), bounds
        size, room, limit = max(1, PAIRS_AT_ONCE // len(right)), FIRST_ROOM, target - self.penalty
        for first in range(0, len(left), size):
            part = left.take(slice(first, first + size))
            both, count = (part.arrays[1:3], right.arrays[1:3]), -1
            while count < 0:
                self.bounds.begin_step("pairs")
                found = np.empty((room, 2), np.int64)
                count = pairs.promising_pairs(*both, around, self.seen, limit, found)
                room = 4 * room if count < 0 else room
            yield part, found[:count]

    def join(self, root: RootSplit, depth: int, outside: Outside, target: float) -> SubTrees:
        """All sub-trees of a region with the given split at their root and may beat the target."""
        width = 2 ** (depth + 1) - 1
        sides = self.both_sides(root, depth, outside, target)
        if sides is None:
            return self._none(width)
        left, right = sides
        _, _, split, most = root
        charge = self.penalty, 1 + sum(most)
        found, count = self._none(width, FIRST_ROOM), 0
        around = outside, self.table, self.seen, charge, target
        for part, some in self.pairs(left, right, outside, target):
            while True:
                both = part.arrays, right.arrays, some
                count, seen = lists.join_pairs(split, *both, *around, found.arrays, count)
                if seen == len(some):
                    break
                some = some[seen:]
                found, count = self._compressed(found, count)
        return self._without_worse(found.take(slice(count)))

    def _compressed(self, found: SubTrees, count: int) -> tuple[SubTrees, int]:
        """Room for more: by dropping what others can stand in for, else in larger arrays."""
        left = self._without_worse(found.take(slice(count)))
        if len(left) > len(found) // 2:
            return self._enlarged(found, count), count
        for old, new in zip(left.arrays, found.arrays, strict=True):
            new[: len(left)] = old
        return found, len(left)

    def _without_worse(self, trees: SubTrees) -> SubTrees:
        """Without sub-trees that others in the list can stand in for."""
        # of equal ones the one with fewest splits stays; those that are worse than one of the
        # strongest for every row, and not shorter, go
        if len(trees) < 2:
            return trees
        limit, shared = self.seen.limit, self.problem.shared
        order = np.argsort(trees.split_counts, kind="stable")
        keys = pairs.hash_costs(trees.costs, limit, shared)[order]
        keys = keys.view(np.dtype((np.void, 16))).ravel()
        _, first = np.unique(keys, return_index=True)
        trees = trees.take(order[np.sort(first)])
        order = pairs.strongest_first(trees.costs, limit)
        # a full comparison pays only where many are dominated, which a sample shows
        strongest, step = order[:WINDOW], max(1, len(order) // SAMPLE)
        sample = np.concatenate([strongest, order[WINDOW::step]])
        costs, split_counts = trees.costs[sample], trees.split_counts[sample]
        kept = pairs.undominated(costs, split_counts, limit, shared, WINDOW)
        if kept.mean() > ENOUGH_KEPT:
            return trees
        trees = trees.take(order)
        kept = pairs.undominated(trees.costs, trees.split_counts, limit, shared, WINDOW)
        return trees.take(np.flatnonzero(kept))

    def _none(self, width: int, room: int = 0) -> SubTrees:
        """Empty arrays with room for some sub-trees."""
        encodings, split_counts = np.zeros((room, width), np.int32), np.zeros(room, np.int64)
        costs, losses = np.empty((room, len(self.everyone))), np.empty((room, len(self.active)))
        return SubTrees(encodings, costs, losses, split_counts)

    def _enlarged(self, found: SubTrees, count: int) -> SubTrees:
        """The same with four times the room; ends the step where that is too much."""
        room = 4 * len(found)
        if room * 8 * (len(self.everyone) + len(self.active)) > self.bounds.largest_list:
            raise TooExpensive
        larger = self._none(found.encodings.shape[1], room)
        for old, new in zip(found.arrays, larger.arrays, strict=True):
            new[:count] = old[:count]
        return larger

    def _filled(self, width: int, fill: Callable[[tuple[Any, ...]], int]) -> SubTrees:
        """What `fill` puts into arrays, which are made larger until they hold it."""
        found = self._none(width, FIRST_ROOM)
        self.bounds.n_lists += 1
        while True:
            self.bounds.begin_step("list")
            count = fill(found.arrays)
            if count >= 0:
                return self._without_worse(found.take(slice(count)))
            found = self._enlarged(found, 0)
