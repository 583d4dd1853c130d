"""Sub-trees as the search holds them: plans in preorder at full size, with their costs."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.kernels.robust_better import hash_costs, strongest_first, undominated
from steadytree.solve.outcome import Plan

Floats = NDArray[np.float64]
WINDOW = 128  # sub-trees that others are compared with
SAMPLE = 500
ENOUGH_KEPT = 0.7


@dataclass(frozen=True)
class SubTrees:
    """Sub-trees of one region: plans, costs of a wrong answer, losses with penalties, questions."""

    plans: Plan
    costs: Floats
    losses: Floats
    splits: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.plans)

    @property
    def arrays(self) -> tuple[Any, ...]:
        return self.plans, self.costs, self.losses, self.splits

    def take(self, kept: NDArray[np.int64]) -> "SubTrees":
        return SubTrees(*(array[kept] for array in self.arrays))

    def between(self, first: int, last: int) -> "SubTrees":
        """Part of the list; nothing is copied."""
        return SubTrees(*(array[first:last] for array in self.arrays))

    def in_order(self) -> "SubTrees":
        """Sorted by plan, so that similar sub-trees are neighbours."""
        return self.take(np.lexsort(self.plans.T[::-1]))

    @classmethod
    def none(cls, width: int, n: int, n_cells: int, room: int = 0) -> "SubTrees":
        """Empty arrays with room for some sub-trees."""
        plans, splits = np.zeros((room, width), np.int32), np.zeros(room, np.int64)
        return cls(plans, np.empty((room, n)), np.empty((room, n_cells)), splits)

    @classmethod
    def joined(cls, parts: "list[SubTrees]") -> "SubTrees":
        columns = zip(*(part.arrays for part in parts), strict=True)
        return cls(*(np.concatenate(column) for column in columns))


def random_plan(rng: np.random.Generator, depth: int, n_tests: int, n_classes: int) -> Plan:
    """A full tree with random questions and labels."""
    if depth == 0:
        return np.array([-1 - rng.integers(n_classes)], np.int32)
    below = [random_plan(rng, depth - 1, n_tests, n_classes) for _ in range(2)]
    return np.concatenate([[rng.integers(n_tests)], *below]).astype(np.int32)


def inner_places(depth: int, place: int = 0) -> list[int]:
    """Place of every inner node of a full plan, parents first."""
    if depth == 0:
        return []
    below = 2**depth - 1
    left, right = inner_places(depth - 1, place + 1), inner_places(depth - 1, place + 1 + below)
    return [place, *left, *right]


def without_worse(trees: SubTrees, limit: float, shared: bool) -> SubTrees:
    """Without sub-trees that others in the list can stand in for.

    Of equal ones the one with fewest questions stays; those that are worse than one of the
    strongest for every row, and not shorter, go.
    """
    if len(trees) < 2:
        return trees
    order = np.argsort(trees.splits, kind="stable")
    keys = hash_costs(trees.costs, limit, shared)[order].view(np.dtype((np.void, 16))).ravel()
    _, first = np.unique(keys, return_index=True)
    trees = trees.take(order[np.sort(first)])
    order = strongest_first(trees.costs, limit)
    # looking for worse ones pays only where there are many: a sample tells
    strongest, step = order[:WINDOW], max(1, len(order) // SAMPLE)
    sample = np.concatenate([strongest, order[WINDOW::step]])
    kept = undominated(trees.costs[sample], trees.splits[sample], limit, shared, WINDOW)
    if kept.mean() > ENOUGH_KEPT:
        return trees
    trees = trees.take(order)
    kept = undominated(trees.costs, trees.splits, limit, shared, WINDOW)
    return trees.take(np.flatnonzero(kept))
