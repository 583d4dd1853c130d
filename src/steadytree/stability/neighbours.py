"""Neighbours: the exact frontier of all trees near a tree in use, on some rows.

Loss, changed decisions (flips), changed splits and leaves add over the children of a node, so a
node's Pareto frontier follows from those of its children.
"""

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, cast

import numpy as np

from steadytree.data.binning import quantile_thresholds
from steadytree.data.feature_space import FeatureSpace
from steadytree.models.tree import LEAF, Tree
from steadytree.stability._kernels.frontier import sum_pairs, undominated_points
from steadytree.stability._kernels.small_tree import MOST_BINS, grow_small
from steadytree.stability.grouped_bins import GroupedBins
from steadytree.stability.new_rows import (
    CHANGES,
    FLIPS,
    LOSS,
    Floats,
    Integers,
    Leaf,
    NewRows,
    Split,
    split_of,
)

# what one change may cost in loss, from keeping the tree to hardly minding
RATES = (np.inf, 1, 0.7, 0.5, 0.4, 0.3, 0.2, 0.15, 0.1, 0.07, 0.05, 0.03, 0.02, 0.01, 0.005, 0)
PRICE = 1.0  # rows that a changed split must gain in any case
N_THRESHOLDS = 60
FRESH_LEAVES = 10
MOST_POINTS = 2_000  # of a node's frontier; beyond that it is thinned


class Sketch(NamedTuple):
    """The splits of a tree, None at leaves, and its children."""

    splits: list[Split | None]
    left: list[int]
    right: list[int]

    @classmethod
    def of(cls, tree: Tree) -> "Sketch":
        """The splits of a tree that is given."""
        splits = [split_of(tree, node) for node in range(tree.n_nodes)]
        return cls(splits, tree.left.tolist(), tree.right.tolist())


@dataclass(eq=False)
class Frontier:
    """Undominated points of a node and how each is made."""

    share: Floats  # class shares of the old node
    options: list[Any] = field(default_factory=list)  # leaves, splits with two frontiers, or a Tree
    points: Floats = field(default_factory=lambda: np.empty((0, 4)))
    made: Integers = field(
        default_factory=lambda: np.empty((0, 3), np.int64)
    )  # option, left, right

    def add(self, option: Any, points: Floats, pairs: Integers) -> None:
        """Add what an option makes possible and keep the frontier."""
        which = np.full((len(points), 1), len(self.options))
        self.options.append(option)
        points = np.concatenate([self.points, points])
        kept = undominated_points(points, np.lexsort(points[:, ::-1].T))
        self.points = points[kept]
        self.made = np.concatenate([self.made, np.hstack([which, pairs])])[kept]

    def keep(self, kept: Integers) -> None:
        """Keep some points only."""
        self.points, self.made = self.points[kept], self.made[kept]


class Neighbours:
    """All trees that differ from the one in use by a changed split a path, or fresh sub-trees.

    Options at a node: a leaf with any label; the split as it is; another threshold, set of
    categories or side of missing values; the best new split above the old branches; any pruning
    of a fresh sub-tree, at the root that of `refit`. No tree has more flips than `refit`, nor more
    leaves than it and the tree in use.
    """

    def __init__(self, rows: NewRows, refit: Tree) -> None:
        old, weights = rows.old, rows.weights
        self.rows, self.old, self.refit, self.exact = rows, old, refit, True
        self.split_weight = max(1.0, weights.sum() // 500)  # flips as bad as a changed split
        self.least = max(3.0, weights.sum() // 200)
        self.n_splits = np.zeros(old.n_nodes, np.int64)  # at and below each node
        for node in np.flatnonzero(~old.is_leaf)[::-1]:
            self.n_splits[node] = 1 + self.n_splits[[old.left[node], old.right[node]]].sum()
        hot = np.eye(rows.n_classes)[rows.labels]
        self.targets = hot[:, 1:] if rows.n_classes == 2 else hot
        self.bins = fine_bins(old.space, rows.values, self.targets, weights)
        self.binned = self.bins.binned(rows.values)
        self.refit_point = rows.measure(refit)
        n_leaves = max(old.n_leaves, refit.n_leaves)
        self.most = np.array([np.inf, self.refit_point[FLIPS], np.inf, n_leaves])
        self.frontier = self._node(0, rows.everyone, False, Sketch.of(refit))
        self.frontier.add(refit, self.refit_point[None], np.zeros((1, 2), np.int64))

    def change(self, points: Floats) -> Floats:
        """Flips and changed splits in one number."""
        found: Floats = points[:, FLIPS] + self.split_weight * points[:, CHANGES]
        return found

    def ranking(self, points: Floats, rate: float) -> Integers:
        """Points from the least loss + rate x change on; by change first where it is infinite."""
        change = self.change(points)
        if np.isinf(rate):
            return np.lexsort((points[:, LOSS], change))
        cost = points[:, LOSS] + PRICE * points[:, CHANGES] + rate * change
        return np.lexsort((change, cost))

    def _node(self, node: int, rows: Integers, used: bool, fresh: Sketch | None = None) -> Frontier:
        """The frontier of a node of the old tree; `used` where a split above it was changed."""
        old, inner = self.old, int(self.n_splits[node])
        frontier = self._leaf(rows, old.value[node], inner)
        may = not used and self.rows.weights[rows].sum() >= 2 * self.least
        if fresh is None and may:
            fresh = self._grow(rows, FRESH_LEAVES)
        if fresh is not None and fresh.left[0] != LEAF:
            self._add_fresh(frontier, fresh, 0, rows, inner)
        for split, changes in self._splits(node, rows, fresh) if inner else ():
            if changes and not may:
                continue
            goes = self.rows.goes_left(split, rows)
            sides = [
                self._node(int(child), own, used or changes > 0)
                for child, own in ((old.left[node], rows[goes]), (old.right[node], rows[~goes]))
            ]
            self._join(frontier, split, sides, changes)
        self._thin(frontier)
        return frontier

    def _splits(self, node: int, rows: Integers, fresh: Sketch | None) -> list[tuple[Split, int]]:
        """Splits that may stand above the old branches, and how many changes each is."""
        own = cast(Split, split_of(self.old, node))
        found = [(own, 0)]
        if self.rows.weights[rows].sum() >= 2 * self.least:
            moved = self._grow(rows, 2, own.feature).splits[0]
            if moved is not None and not own.same(moved):
                found.append((moved, 1))
            if np.isnan(self.rows.values[rows, own.feature]).any():
                found.append((own._replace(missing_left=not own.missing_left), 1))
        new = None if fresh is None else fresh.splits[0]
        if new is not None and new.feature != own.feature:
            found.append((new, 2))
        return found

    def _add_fresh(
        self, frontier: Frontier, fresh: Sketch, node: int, rows: Integers, dropped: int
    ) -> None:
        """Add all prunings of a fresh sub-tree that keep its split `node`."""
        split, sides = cast(Split, fresh.splits[node]), []
        goes = self.rows.goes_left(split, rows)
        for child, own in ((fresh.left[node], rows[goes]), (fresh.right[node], rows[~goes])):
            side = self._leaf(own, frontier.share, 0)
            if fresh.left[child] != LEAF:
                self._add_fresh(side, fresh, child, own, 0)
            sides.append(side)
        self._join(frontier, split, sides, dropped + 1)
        self._thin(frontier)

    def _join(self, frontier: Frontier, split: Split, sides: list[Frontier], changes: int) -> None:
        added = np.array([0.0, 0.0, changes, 0.0])
        points, pairs = sum_pairs(sides[0].points, sides[1].points, added, self.most)
        frontier.add((split, *sides), points, pairs)

    def _leaf(self, rows: Integers, share: Floats, dropped: int) -> Frontier:
        """A leaf with any label that is not worse than another in both loss and flips."""
        frontier, (counts, decided) = Frontier(share), self.rows.counts(rows)
        known = np.flatnonzero(counts + decided) if len(rows) else [share.argmax()]
        for label in known:
            leaf = Leaf(int(label), share)
            point = np.array([[*self.rows.leaf_point(counts, decided, leaf), dropped, 1.0]])
            if point[0, FLIPS] <= self.most[FLIPS]:
                frontier.add(leaf, point, np.zeros((1, 2), np.int64))
        return frontier

    def _thin(self, frontier: Frontier) -> None:
        """Of more points than are held, keep what the rates pick and some of the rest."""
        if len(frontier.points) <= MOST_POINTS:
            return
        self.exact = False
        picked = {int(self.ranking(frontier.points, rate)[0]) for rate in RATES}
        picked |= set(range(0, len(frontier.points), -(-len(frontier.points) // MOST_POINTS)))
        frontier.keep(np.array(sorted(picked)))

    def _grow(self, rows: Integers, n_leaves: int, feature: int | None = None) -> Sketch:
        """A tree grown greedily from some rows, on one column or all."""
        columns = slice(None) if feature is None else slice(feature, feature + 1)
        binned = np.ascontiguousarray(self.binned[rows, columns])
        chosen, bins, left, _ = grow_small(
            binned,
            self.targets[rows],
            self.rows.weights[rows],
            self.bins.n_bins[columns],
            self.bins.kinds[columns],
            np.zeros(binned.shape[1], np.int64),
            np.zeros((binned.shape[1], MOST_BINS)),
            n_leaves,
            self.least,
            *(0.0, 0.0, LEAF, n_leaves),  # the best split of all, at any depth
        )
        right = np.where(left == LEAF, LEAF, left + 1)
        reached = {0: rows}
        splits: list[Split | None] = [None] * len(left)
        for node in np.flatnonzero(left != LEAF).tolist():
            column = int(chosen[node]) if feature is None else feature
            own = reached[node]
            goes = (bins[node] >> self.binned[own, column].astype(np.uint64)) & np.uint64(1) > 0
            reached[left[node]], reached[right[node]] = own[goes], own[~goes]
            larger = self.rows.weights[own[goes]].sum() >= self.rows.weights[own[~goes]].sum()
            split_at = self.bins.split_at(column, int(bins[node]), bool(larger))
            splits[node] = Split(column, *split_at[:3])
            if split_at.swapped:
                left[node], right[node] = right[node], left[node]
        return Sketch(splits, left.tolist(), right.tolist())

    def build(self, point: int) -> Tree:
        """The tree of a point of the frontier."""
        found = _nested(self.frontier, point)
        return found if isinstance(found, Tree) else self.rows.tree_of(found)


def _nested(frontier: Frontier, point: int) -> Any:
    """What a point of a frontier is made of."""
    which, left, right = frontier.made[point]
    option = frontier.options[which]
    if isinstance(option, Leaf | Tree):
        return option
    return option[0], _nested(option[1], left), _nested(option[2], right)


def fine_bins(space: FeatureSpace, values: Floats, targets: Floats, weights: Floats) -> GroupedBins:
    """Bins at many quantiles of each column; those of categories in groups."""
    grouped = GroupedBins.of(space, values, targets, weights)
    columns, n_bins = [], grouped.n_bins.copy()
    for j, column in enumerate(space):
        if not column.is_categorical:
            column = column.with_thresholds(
                quantile_thresholds(values[:, j], N_THRESHOLDS, weights)
            )
            n_bins[j] = column.n_bins + column.missing
        columns.append(column)
    return replace(grouped, space=FeatureSpace(tuple(columns)), n_bins=n_bins)
