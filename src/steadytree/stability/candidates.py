"""Candidates: several small trees for the same rows, and the one that decides most like all."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadytree.models.tree import LEAF
from steadytree.stability._kernels.small_tree import best_splits
from steadytree.stability.small_tree import COARSE, SmallTree, TaughtRows

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
N_ROOTS, N_HALVES = 4, 12  # first splits tried; trees from halves of the rows
NEARLY = 0.05  # share of the most explained error that may be given up
DIGITS = 10  # of agreements: equal ones must not differ by rounding


class Candidates(NamedTuple):
    """The greedy tree first, then those with other first splits and those from halves of the rows.

    Which of several trees explains most turns with few rows where they explain nearly as much. What
    they predict turns less, so the tree that agrees most is taken: `agreement` is the mean of the
    shares of rows decided like the other trees and like the teacher, and of one less the distance
    (total variation) of the probabilities from those of the other trees. A greedy first split may
    also leave its few successors nothing good to split on, so the columns of largest gain are each
    tried as the first.
    """

    trees: list[SmallTree]
    explained: Floats  # squared error of the targets
    agreement: Floats

    @classmethod
    def grow(
        cls, rows: TaughtRows, hashes: NDArray[np.uint64], n_leaves: int, least: float, deepest: int
    ) -> "Candidates":
        """Trees for taught rows; `hashes` of the real ones halve them, copies with their rows."""
        trees = [SmallTree.grow(rows, n_leaves, least, LEAF, deepest)]
        if len(trees[0].left) > 1:
            everyone = np.flatnonzero(rows.weights > 0)
            gains = best_splits(*rows, everyone, least, COARSE)[0]
            roots = np.argsort(-gains, kind="stable")[:N_ROOTS]
            for root in roots[(gains[roots] > 0) & (roots != trees[0].feature[0])].tolist():
                trees.append(SmallTree.grow(rows, n_leaves, least, root, deepest))
            for half in _halves(hashes, len(rows.weights)):
                part = rows._replace(weights=rows.weights * half)
                trees.append(SmallTree.grow(part, n_leaves, least, LEAF, deepest))
        explained = np.array([tree.explained(rows) for tree in trees])
        return cls(trees, explained, _agreement(trees, rows, len(hashes)))

    @property
    def chosen(self) -> int:
        """The tree of largest agreement among those that explain nearly as much as the best."""
        near = np.flatnonzero(self.explained >= (1 - NEARLY) * self.explained.max())
        return int(near[np.argmax(self.agreement[near])])


def decisions(value: Floats) -> Integers:
    """Class of each row of probabilities; one column is that of the second of two classes."""
    return (value[:, 0] > 0.5).astype(np.int64) if value.shape[1] == 1 else value.argmax(axis=1)


def _halves(hashes: NDArray[np.uint64], n_rows: int) -> Floats:
    """Weights (N_HALVES, n_rows) of 0 and 2; all copies of a row have that of the row."""
    coins = (hashes >> np.arange(N_HALVES, dtype=np.uint64)[:, None]) & np.uint64(1)
    n_copies = n_rows // len(hashes) - 1
    weights: Floats = 2.0 * np.hstack([coins, np.repeat(coins, n_copies, axis=1)])
    return weights


def _agreement(trees: list[SmallTree], rows: TaughtRows, n_real: int) -> Floats:
    binned, n_targets = rows.binned[:n_real], rows.targets.shape[1]
    shares = rows.weights[:n_real] / rows.weights[:n_real].sum()
    chances = np.array([tree.values(rows, n_real)[tree.leaves(binned)] for tree in trees])
    decided = np.array([decisions(chance) for chance in chances])
    teacher, found = decisions(rows.targets[:n_real]), []
    for own, chance in zip(decided, chances, strict=True):
        apart = np.abs(chances - chance).mean(axis=0).sum(axis=1) / (1 if n_targets == 1 else 2)
        alike = (decided == own).mean(axis=0) + (teacher == own) + 1 - apart
        found.append((shares * alike).sum() / 3)
    return np.array(found).round(DIGITS)
