"""Neighbours: the exact frontier of all trees near a tree in use, on some rows.

Loss, changed decisions (flips), changed splits and leaves add over the children of a node, so a
node's Pareto frontier follows from those of its children.
"""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
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
    Nested,
    NewRows,
    Split,
    nested_of,
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
        chosen, bins, left = grow_small(
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


MOST_READS = 20_000_000  # rows that splits may be tried on
FEW_THRESHOLDS = 8  # of a column that the tree in use asks, all are tried everywhere
OVERHEAD = 200  # rows that a split costs in any case
DETOUR = 0.03  # share of the rows by which a tree on the way may be worse
EPSILON = 1e-9


class Approach:
    """Search from a tree for one nearer to the tree in use, by path distance.

    Trees with more loss, flips or empty leaves than the first are left out, or only passed on the
    way where they are little worse, and so are those with more leaves than it and the tree in use.
    The nearest tree that waits is changed next, by one move: a leaf gets another label or a split
    of the tree in use; a split goes, gets another of the `thresholds` of its column or a
    split of the tree in use, or changes places with one below it. Splits of the tree in use are
    tried with all thresholds where these are few. The search ends with its budget of rows read.
    """

    def __init__(self, rows: NewRows, tree: Tree, thresholds: Sequence[Floats]) -> None:
        self.rows, self.tree, self.thresholds = rows, tree, thresholds
        chosen = [split_of(rows.old, node) for node in range(rows.old.n_nodes)]
        self.splits = [split for split in chosen if split is not None]
        for own in {split.feature: split for split in self.splits}.values():
            if not np.isnan(own.threshold) and len(thresholds[own.feature]) <= FEW_THRESHOLDS:
                self.splits += [
                    own._replace(threshold=float(threshold))
                    for threshold in thresholds[own.feature]
                ]
        self.reads = 0

    def nearest(self) -> Tree:
        """The nearest tree that was found, the first one where none is nearer."""
        best, apart = self.tree, float(self.rows.distance([self.tree])[0])
        first = nested_of(self.tree)
        limit = self._worth(first, self.rows.everyone)
        limit[2] = max(limit[2], self.rows.old.n_leaves)
        detour = np.array([1.0, 1.0, 0.0, 0.0]) * DETOUR * self.rows.weights.sum()
        turn, known = count(), {_key(first)}
        waiting: list[tuple[float, int, Any]] = [(apart, next(turn), first)]
        while waiting and apart > EPSILON and self.reads < MOST_READS:
            nested = heapq.heappop(waiting)[2]
            spare = limit + detour - self._worth(nested, self.rows.everyone)
            new = []
            for one in self._moves(nested, self.rows.everyone, spare):
                if _key(one) not in known:
                    known.add(_key(one))
                    new.append(one)
                    self.reads += 2 * OVERHEAD * _n_leaves(one)  # to build and to compare it
            trees = [self.rows.tree_of(one) for one in new]
            distances = self.rows.distance(trees) if trees else np.empty(0)
            for one, tree, distance in zip(new, trees, distances.tolist(), strict=True):
                heapq.heappush(waiting, (distance, next(turn), one))
                if distance < apart - EPSILON and self._is_within(one, limit):
                    best, apart = tree, distance
        return best

    def _is_within(self, nested: Nested, limit: Floats) -> bool:
        return bool((self._worth(nested, self.rows.everyone) <= limit + EPSILON).all())

    def _moves(self, nested: Nested, rows: Integers, spare: Floats) -> Iterator[Nested]:
        """Trees one move away whose worth exceeds that of `nested` by at most `spare`."""
        limit = self._worth(nested, rows) + spare + EPSILON
        for other in self._candidates(nested, rows):
            if self.reads >= MOST_READS:
                return
            if (self._worth(other, rows) <= limit).all():
                yield other
        if not isinstance(nested, Leaf):
            split, left, right = nested
            goes = self.rows.goes_left(split, rows)
            for other in self._moves(left, rows[goes], spare):
                yield split, other, right
            for other in self._moves(right, rows[~goes], spare):
                yield split, left, other

    def _candidates(self, nested: Nested, rows: Integers) -> Iterator[Nested]:
        """Trees that differ at the root of a sub-tree."""
        known = self.rows
        share = known.old.value[0]
        if len(rows):
            share = np.average(known.old_shares[rows], axis=0, weights=known.weights[rows])
        labels = np.union1d(known.labels[rows], known.decided[rows]).tolist()
        leaves = [Leaf(label, share) for label in labels]
        yield from leaves
        if isinstance(nested, Leaf):
            for split in self.splits:
                for leaf in leaves:
                    yield split, nested, leaf
                    yield split, leaf, nested
            return
        split, left, right = nested
        yield from (left, right)
        for other in [*self.splits, *self._moved(split)]:
            yield other, left, right
        yield from _turned(split, left, right)

    def _moved(self, split: Split) -> Iterator[Split]:
        """The split with other thresholds, also those of the tree in use with its own side."""
        for own in self.splits:
            if own.feature == split.feature and own.missing_left != split.missing_left:
                yield own._replace(missing_left=split.missing_left)
        if not np.isnan(split.threshold):
            for threshold in self.thresholds[split.feature]:
                yield split._replace(threshold=float(threshold))

    def _worth(self, nested: Nested, rows: Integers) -> Floats:
        """Loss, flips, leaves and empty leaves."""
        self.reads += OVERHEAD + len(rows)
        if isinstance(nested, Leaf):
            point = self.rows.leaf_point(*self.rows.counts(rows), nested)
            return np.array([*point, 1.0, float(len(rows) == 0)])
        goes = self.rows.goes_left(nested[0], rows)
        return self._worth(nested[1], rows[goes]) + self._worth(nested[2], rows[~goes])


def _turned(split: Split, left: Nested, right: Nested) -> Iterator[Nested]:
    """A split of a child stands above; what is left of the child keeps its sides or one of them."""
    for side in (left, right):
        if isinstance(side, Leaf):
            continue
        below, *parts = side
        under = [(split, one, right) if side is left else (split, left, one) for one in parts]
        yield below, under[0], under[1]
        yield below, parts[0], under[1]
        yield below, under[0], parts[1]
    if not isinstance(left, Leaf) and not isinstance(right, Leaf) and left[0].same(right[0]):
        yield left[0], (split, left[1], right[1]), (split, left[2], right[2])


def _n_leaves(nested: Nested) -> int:
    return 1 if isinstance(nested, Leaf) else _n_leaves(nested[1]) + _n_leaves(nested[2])


def _key(nested: Nested) -> Any:
    """What makes two nested trees equal."""
    if isinstance(nested, Leaf):
        return nested.label
    (feature, threshold, subset, missing_left), left, right = nested
    chosen = feature, str(threshold), subset.tobytes(), missing_left
    return chosen, _key(left), _key(right)
