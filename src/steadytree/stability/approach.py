"""Approach: a search for the tree nearest to the one in use that is worth no less on new rows."""

import heapq
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

import numpy as np

from steadytree.models.tree import Tree
from steadytree.stability.new_rows import (
    Floats,
    Integers,
    Leaf,
    Nested,
    NewRows,
    Split,
    nested_of,
    split_of,
)

MOST_READS = 24_000_000  # rows that splits may be tried on
INWARDS = 0.6  # share of them that the search from the given tree may have
FEW_THRESHOLDS = 8  # of a column that the tree in use asks, all are tried everywhere
OVERHEAD = 200  # rows that a split costs in any case
DETOUR = 0.03  # share of the rows by which a tree on the way may be worse
EPSILON = 1e-9


class Approach:
    """Search for a tree nearer to the tree in use than a given one, by path distance.

    It must have no more loss, flips, empty leaves, nor leaves than the given tree (or, of leaves,
    the tree in use). One move changes a tree: a leaf gets another label or a split of the tree in
    use; a split goes, gets another of the `thresholds` of its column or a split of the
    tree in use, or changes places with one below it. Splits of the tree in use are tried with all
    thresholds where these are few. The search starts from both ends. From the given tree, the
    nearest that waits is changed next, and what is little worse is passed on the way. From the tree
    in use, it is the one that lacks least, among those nearer than the best so far: the way from
    one end may lead through trees that are much worse, or much farther. Each search ends with its
    budget of rows read.
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
        self.reads, self.most_reads = 0, 0.0

    def nearest(self) -> Tree:
        """The nearest tree that was found, the given one where none is nearer."""
        given = nested_of(self.tree)
        self.best, self.apart = self.tree, float(self.rows.distance([self.tree])[0])
        self.limit = self._worth(given, self.rows.everyone)
        self.limit[2] = max(self.limit[2], self.rows.old.n_leaves)
        self._search(given, INWARDS * MOST_READS, outwards=False)
        self._search(nested_of(self.rows.old), MOST_READS, outwards=True)
        return self.best

    def _search(self, start: Nested, most_reads: float, outwards: bool) -> None:
        """Search from one end, `outwards` from the tree in use."""
        self.most_reads = most_reads
        turn, known = count(), {_key(start)}
        waiting: list[tuple[float, float, int, Any]] = [(0.0, 0.0, next(turn), start)]
        while waiting and self.apart > EPSILON and self.reads < most_reads:
            new = []
            for one in self._moves_on(heapq.heappop(waiting)[-1], outwards):
                if _key(one) not in known:
                    known.add(_key(one))
                    new.append(one)
                    self.reads += 2 * OVERHEAD * _n_leaves(one)  # to build and to compare it
            trees = [self.rows.tree_of(one) for one in new]
            distances = self.rows.distance(trees) if trees else np.empty(0)
            for one, tree, distance in zip(new, trees, distances.tolist(), strict=True):
                lacks = self._lacks(one)
                if distance < self.apart - EPSILON and lacks <= EPSILON:
                    self.best, self.apart = tree, distance
                if not outwards:
                    heapq.heappush(waiting, (distance, 0.0, next(turn), one))
                elif distance < self.apart - EPSILON:
                    heapq.heappush(waiting, (lacks, distance, next(turn), one))

    def _moves_on(self, nested: Nested, outwards: bool) -> Iterator[Nested]:
        """Trees one move away that are little worse than the limit or, outwards, than `nested`."""
        worth = self._worth(nested, self.rows.everyone)
        limit = np.maximum(self.limit, worth) if outwards else self.limit
        detour = np.array([1.0, 1.0, 0.0, 0.0]) * DETOUR * self.rows.weights.sum()
        return self._moves(nested, self.rows.everyone, limit + detour - worth)

    def _lacks(self, nested: Nested) -> float:
        """How far loss, flips and leaves are beyond the limit, in sum."""
        over = self._worth(nested, self.rows.everyone) - self.limit
        return float(np.maximum(over, 0.0).sum())

    def _moves(self, nested: Nested, rows: Integers, spare: Floats) -> Iterator[Nested]:
        """Trees one move away whose worth exceeds that of `nested` by at most `spare`."""
        limit = self._worth(nested, rows) + spare + EPSILON
        for other in self._candidates(nested, rows, may_grow=spare[2] >= 1):
            if self.reads >= self.most_reads:
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

    def _candidates(self, nested: Nested, rows: Integers, may_grow: bool) -> Iterator[Nested]:
        """Trees that differ at the root of a sub-tree."""
        known = self.rows
        share = known.old.value[0]
        if len(rows):
            share = np.average(known.old_shares[rows], axis=0, weights=known.weights[rows])
        labels = np.union1d(known.labels[rows], known.decided[rows]).tolist()
        leaves = [Leaf(label, share) for label in labels]
        yield from leaves
        if isinstance(nested, Leaf):
            for split in self.splits if may_grow else ():
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
