"""SharedRows: bounds in which each row counts in part on both sides of a split."""

from dataclasses import dataclass

import numpy as np

from steadytree.robustness._kernels import cost, lists, sharing
from steadytree.robustness.search.bounds import NEAR, Bounds, Path, Rows
from steadytree.robustness.search.problem import Floats

ROUNDS = 4  # subgradient steps of the shares at the root, for each interval of prices
ROUNDS_BELOW = 2  # of those at the splits below
ROUNDS_OF_PAIR = 5  # of all three together, where the splits below the root are given
MOST_PAIRS = 64  # of an interval, else the target is out of reach
STEP = 0.5
CELLS_AT_ONCE = 8  # intervals that are joined as long as that suffices


@dataclass(frozen=True, eq=False)
class Shares:
    """Sub-trees of one region by their first split: what they lose at least, and shares of rows."""

    bound: Floats  # (n_candidates,)
    left: Floats  # (n_candidates, n): the part of each row that counts left of each split
    rates: Floats  # (n_candidates, n): the part of each row that the best sub-tree loses
    weight: Floats  # (n,): for which the bounds hold
    base: Floats  # (n,): cost of getting into the region


def can_share(bounds: Bounds) -> bool:
    """Whether rows can be shared: no missing values, which no sum of costs describes; few bytes."""
    m, n = len(bounds.splits), len(bounds.everyone)
    n_regions = sum((2 * m) ** k for k in range(bounds.depth - 3)) * 2
    return (
        bounds.depth > 2
        and not bounds.table.missing.any()
        and (16 * n_regions * m * n <= bounds.memory / 4)
    )


class SharedRows:
    """Bounds of the trees with one given split at their root; rising prices are visited last."""

    # A row is lost if either side of the root loses it. So what is lost is at least what the left
    # side loses of a part of each row's weight and the right side of the rest, moved across the
    # root at its cost. The parts are improved by subgradient steps, and kept from one interval of
    # prices to the next; bounds hold for lower prices, and fall by no more than parts are taken.

    def __init__(self, bounds: Bounds, split: int) -> None:
        self.bounds, self.table, self.penalty = bounds, bounds.table, bounds.penalty
        self.intervals, self.depth = bounds.intervals, bounds.depth
        self.split, self.paths = split, (((split, 0),), ((split, 1),))
        self.left = self.table.on_left[split] * 1.0
        self.shares: dict[Path, Shares] = {}
        shape = len(bounds.splits), len(self.intervals.offset)
        # what trees lose at least, by interval; infinite where none is below the target
        self.of_root = np.full(shape[1], np.inf)
        # first splits of both sides with which a tree may be below the target, and sides as leaves
        self.open_pairs = np.zeros((shape[0], *shape), bool)
        self.open_leaves = np.zeros((2, shape[1]), bool)

    def close(self, cells: Rows, target: float) -> None:
        """Look for intervals, among some, in which no tree is below the target."""
        waiting = [
            (at, min(at + CELLS_AT_ONCE, len(cells))) for at in range(0, len(cells), CELLS_AT_ONCE)
        ]
        while waiting:  # the highest prices first
            first, last = waiting.pop()
            price = float(self.intervals.slope[cells[last - 1]])
            offset = float(self.intervals.offset[cells[first:last]].min())
            goal = target - offset - self.penalty - NEAR
            if self._reaches(price, goal):
                continue
            if last - first > 1:
                middle = (first + last) // 2
                waiting += [(first, middle), (middle, last)]
            else:
                self._keep(int(cells[first]), price, goal)

    def _reaches(self, price: float, goal: float) -> bool:
        """Whether shares are found with which both sides lose at least the goal."""
        for turn in range(ROUNDS):
            weights = self._weights()
            rest = self._known(self.paths[1], weights[1], price)
            left, rates = self._side(0, weights[0], price, goal - rest)
            if left + rest >= goal:
                return True
            right, others = self._side(1, weights[1], price, goal - left)
            if left + right >= goal:
                return True
            moved = STEP / np.sqrt(turn + 1.0) * (rates - others)
            self.left = np.clip(self.left + moved, 0.0, 1.0)
        return False

    def _keep(self, cell: int, price: float, goal: float) -> None:
        """Note which trees may be below the target in one interval."""
        weights = self._weights()
        rest = [self._known(path, w, price) for path, w in zip(self.paths, weights, strict=True)]
        leaves = []
        for side, (path, weight) in enumerate(zip(self.paths, weights, strict=True)):
            if self.depth == 3:
                rest[side] = self._side(side, weight, price, np.inf)[0]
                continue
            shares = self.shares[path]
            for split in np.argsort(shares.bound).tolist():
                for turn in range(ROUNDS_BELOW + 1):
                    if shares.bound[split] + rest[1 - side] < goal:
                        self._improve(shares, path, split, self.depth - 1, price, turn)
            leaves.append(self._leaf(shares.base, weight, price)[0])
            rest[side] = min(float(shares.bound.min()), leaves[side])
        self.of_root[cell] = self.penalty + sum(rest)
        if self.depth > 3:
            self.open_leaves[:, cell] = [leaves[k] + rest[1 - k] < goal for k in (0, 1)]
            self._keep_pairs(cell, price, goal)

    def _keep_pairs(self, cell: int, price: float, goal: float) -> None:
        """Note which first splits of both sides are left, with shares for each two of them."""
        left, right = (self.shares[path].bound for path in self.paths)
        self.open_pairs[:, :, cell] = open_ = left[:, None] + right < goal
        pairs = np.argwhere(open_)
        for first, second in pairs.tolist() if len(pairs) <= MOST_PAIRS else ():
            below = self._pair(first, second, price, goal) < goal
            self.open_pairs[first, second, cell] = below

    def _pair(self, first: int, second: int, price: float, goal: float) -> float:
        """What trees lose at least whose first splits on both sides are given."""
        best, left = -np.inf, self.left.copy()
        ways = [
            (path, split, self.shares[path].left[split].copy())
            for path, split in zip(self.paths, (first, second), strict=True)
        ]
        for turn in range(ROUNDS_OF_PAIR):
            total, step, rates = 2 * self.penalty, STEP / np.sqrt(turn + 1.0), []
            for part, (path, split, share) in zip((left, 1.0 - left), ways, strict=True):
                found = [
                    self._least(
                        (*path, (split, k)),
                        self.table.weight * part * own,
                        self.depth - 2,
                        price,
                        np.inf,
                    )
                    for k, own in enumerate((share, 1.0 - share))
                ]
                total += found[0][0] + found[1][0]
                rates.append(np.maximum(found[0][1], found[1][1]))
                share[:] = np.clip(share + step * (found[0][1] - found[1][1]), 0.0, 1.0)
            best = max(best, total)
            if best >= goal:
                break
            left = np.clip(left + step * (rates[0] - rates[1]), 0.0, 1.0)
        return best

    def _weights(self) -> tuple[Floats, Floats]:
        return self.table.weight * self.left, self.table.weight * (1.0 - self.left)

    def _side(self, side: int, weight: Floats, price: float, goal: float) -> tuple[float, Floats]:
        return self._least(self.paths[side], weight, self.depth - 1, price, goal)

    def _least(
        self, path: Path, weight: Floats, depth: int, price: float, goal: float
    ) -> tuple[float, Floats]:
        """What sub-trees of a region lose at least, and of which rows; any bound from the goal on.

        Rows count with the given weights.
        """
        if depth == 2:
            self.bounds.begin_step("shared rows")
            rates = np.empty(len(weight))
            around = self.bounds.arrays(path), self.table, weight
            spending = price, self.intervals.limit, self.intervals.shared, self.penalty
            return float(sharing.least_two_levels(*around, spending, rates)), rates
        shares = self._held(path, weight, price)
        leaf, leaf_rates = self._leaf(shares.base, weight, price)
        tried = np.zeros(len(shares.bound), np.int64)
        while True:
            split = int(shares.bound.argmin())
            least = float(shares.bound[split])
            if least >= min(goal, leaf):
                return min(least, leaf), leaf_rates
            if tried[split] == ROUNDS_BELOW:
                return least, shares.rates[split]
            self._improve(shares, path, split, depth, price, int(tried[split]))
            tried[split] += 1

    def _improve(
        self, shares: Shares, path: Path, split: int, depth: int, price: float, turn: int
    ) -> None:
        """Bound the sub-trees with a first split, then move its shares one step."""
        total, rates = self.penalty, []
        for side, part in enumerate((shares.left[split], 1.0 - shares.left[split])):
            below = *path, (split, side)
            least, lost = self._least(below, shares.weight * part, depth - 1, price, np.inf)
            total += least
            rates.append(lost)
        shares.bound[split] = max(shares.bound[split], total)
        shares.rates[split] = np.maximum(*rates)
        moved = STEP / np.sqrt(turn + 1.0) * (rates[0] - rates[1])
        shares.left[split] = np.clip(shares.left[split] + moved, 0.0, 1.0)

    def _known(self, path: Path, weight: Floats, price: float) -> float:
        """What is known already that a side loses at least."""
        if self.depth == 3:
            return 0.0
        shares = self._held(path, weight, price)
        return min(float(shares.bound.min()), self._leaf(shares.base, weight, price)[0])

    def _held(self, path: Path, weight: Floats, price: float) -> Shares:
        """The shares of a region, with bounds that hold for the given weights."""
        if path not in self.shares:
            splits, sides = self.bounds.arrays(path)
            base, shape = np.empty(len(weight)), self.table.on_left.shape
            cost.box_costs(splits, sides, len(path), self.table, base)
            open_ = lists.open_splits(splits, sides, len(path), self.table)
            bound, left = np.where(open_, 0.0, np.inf), self.table.on_left * 1.0
            self.shares[path] = Shares(bound, left, np.zeros(shape), weight.copy(), base)
        shares = self.shares[path]
        taken = np.maximum(shares.weight - weight, 0.0)
        shares.bound[:] -= float(taken @ self._rates(shares.base, price))
        shares.weight[:] = weight
        return shares

    def _leaf(self, base: Floats, weight: Floats, price: float) -> tuple[float, Floats]:
        """What a region loses as a leaf, and of which rows."""
        rates, label = self._rates(base, price), self.table.label
        totals = np.bincount(label, weight * rates, self.table.n_classes)
        return float(totals.sum() - totals.max()), np.where(label == totals.argmax(), 0.0, rates)

    def _rates(self, costs: Floats, price: float) -> Floats:
        """Part of each row that is lost at a cost."""
        if not self.intervals.shared:
            return np.asarray(costs <= self.intervals.limit, np.float64)
        known = np.isfinite(costs)
        rates = np.maximum(0.0, 1.0 - price * np.where(known, costs, 0.0))
        return np.asarray(rates * known, np.float64)
