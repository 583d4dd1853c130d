"""Neighbours: the exact front of all trees near a tree in use, on some rows.

Loss, changed decisions (flips), changed splits and leaves add over the children of a node, so a
node's Pareto front follows from those of its children.
"""

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadytree.data.binning import quantile_thresholds
from steadytree.data.feature_space import FeatureSpace
from steadytree.models.tree import LEAF, Tree
from steadytree.stability._kernels.front import sum_pairs, undominated
from steadytree.stability._kernels.steady import grow_small
from steadytree.stability.grouped_bins import GroupedBins

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
LOSS, FLIPS, CHANGES, LEAVES = range(4)
# what one change may cost in loss, from keeping the tree to hardly minding
RATES = (np.inf, 1, 0.7, 0.5, 0.4, 0.3, 0.2, 0.15, 0.1, 0.07, 0.05, 0.03, 0.02, 0.01, 0.005, 0)
PRICE = 1.0  # rows that a changed split must gain in any case
N_CUTS = 60
FRESH_LEAVES = 10
PRIOR = 2.0  # rows of the old shares in a leaf's probabilities
TINY = 1e-6
MOST_POINTS = 2_000  # of a node's front; beyond that it is thinned


class Split(NamedTuple):
    """What a node asks, as in a Tree."""

    feature: int
    threshold: float
    subset: NDArray[np.bool_]
    missing_left: bool


class Sketch(NamedTuple):
    """The splits of a tree; children are LEAF at leaves."""

    splits: list[Split | None]
    left: list[int]
    right: list[int]

    @classmethod
    def of(cls, tree: Tree) -> "Sketch":
        """The splits of a tree that is given."""
        return cls(
            [split_of(tree, node) for node in range(tree.n_nodes)],
            tree.left.tolist(),
            tree.right.tolist(),
        )


def split_of(tree: Tree, node: int) -> Split | None:
    """The split of a node, None at a leaf."""
    if tree.is_leaf[node]:
        return None
    parts = tree.threshold[node], tree.subset[node], tree.missing_left[node]
    return Split(int(tree.feature[node]), float(parts[0]), parts[1], bool(parts[2]))


def same_split(one: Split, other: Split) -> bool:
    """Whether two splits of a space send every value to the same side."""
    return (
        one.feature == other.feature
        and (one.threshold == other.threshold or np.isnan(one.threshold))
        and bool((one.subset == other.subset).all())
        and one.missing_left == other.missing_left
    )


def changed_splits(old: Tree, new: Tree) -> int:
    """Changed splits by position: 1 if moved, dropped or added, 2 if replaced by another column's.

    Both trees must be over one space.
    """
    pairs, changed = [(0, 0)], 0
    while pairs:
        a, b = pairs.pop()
        before = split_of(old, a) if a != LEAF else None
        after = split_of(new, b) if b != LEAF else None
        if before is not None and after is not None:
            same = same_split(before, after)
            changed += 0 if same else 1 if before.feature == after.feature else 2
        elif before is not None or after is not None:
            changed += 1
        else:
            continue
        below = [
            (tree.left[n], tree.right[n]) if n != LEAF else (LEAF, LEAF)
            for tree, n in ((old, a), (new, b))
        ]
        pairs += zip(*below, strict=True)
    return changed


@dataclass(eq=False)
class Front:
    """Undominated points of a node and how each is made."""

    counts: Floats  # weight of the rows of each class
    share: Floats  # class shares of the old node
    options: list[Any] = field(default_factory=list)  # leaf values, splits with fronts, or a Tree
    points: Floats = field(default_factory=lambda: np.empty((0, 4)))
    made: Integers = field(
        default_factory=lambda: np.empty((0, 3), np.int64)
    )  # option, left, right

    def add(self, option: Any, points: Floats, pairs: Integers) -> None:
        """Add what an option makes possible and keep the front."""
        which = np.full((len(points), 1), len(self.options))
        self.options.append(option)
        points = np.concatenate([self.points, points])
        kept = undominated(points, np.lexsort(points[:, ::-1].T))
        self.points = points[kept]
        self.made = np.concatenate([self.made, np.hstack([which, pairs])])[kept]

    def keep(self, kept: Integers) -> None:
        """Keep some points only."""
        self.points, self.made = self.points[kept], self.made[kept]


class Neighbours:
    """All trees that differ from `old` by a leaf, a moved or new split a path, or a fresh sub-tree.

    Options at a node: a leaf with any label; the split as it is; another threshold, set of
    categories or side of missing values; the best new split above the old branches; any pruning
    of a fresh sub-tree, at the root that of `refit`. No tree has more flips than `refit`, nor more
    leaves than it and `old`. All trees are over one space, in double precision.
    """

    def __init__(
        self,
        old: Tree,
        refit: Tree,
        values: Floats,
        labels: Integers,
        weights: Floats,
        log_loss: bool = False,
    ) -> None:
        self.old, self.values, self.labels, self.weights = old, values, labels, weights
        self.log_loss, self.exact = log_loss, True
        self.n_classes, total = len(old.classes), weights.sum()
        self.decided = old.label[old.apply_encoded(values)]
        self.split_weight = max(1.0, total // 500)  # flips that are as bad as a changed split
        self.least = max(3.0, total // 200)
        self.n_splits = np.zeros(old.n_nodes, np.int64)  # at and below each node
        for node in np.flatnonzero(~old.is_leaf)[::-1]:
            self.n_splits[node] = 1 + self.n_splits[[old.left[node], old.right[node]]].sum()
        hot = np.eye(self.n_classes)[labels]
        self.targets = hot[:, 1:] if self.n_classes == 2 else hot
        self.bins = fine_bins(old.space, values, self.targets, weights)
        self.codes = self.bins.codes(values)
        self.refit, self.refit_point = refit, self.measure(refit)
        self.most = np.array(
            [np.inf, self.refit_point[FLIPS], np.inf, max(old.n_leaves, refit.n_leaves)]
        )
        self.front = self._node(0, np.arange(len(labels)), False, Sketch.of(refit))
        self.front.add(refit, self.refit_point[None], np.zeros((1, 2), np.int64))

    # ---- what a tree is worth ----
    def measure(self, tree: Tree) -> Floats:
        """Loss, flips, changed splits and leaves of any tree on the rows."""
        leaves = tree.apply_encoded(self.values)
        loss = row_losses(tree, leaves, self.labels, self.log_loss) @ self.weights
        flips = (tree.label[leaves] != self.decided) @ self.weights
        return np.array([loss, flips, changed_splits(self.old, tree), tree.n_leaves])

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

    # ---- the front ----
    def _node(self, node: int, rows: Integers, used: bool, fresh: Sketch | None = None) -> Front:
        """The front of a node of the old tree; `used` where a split above it was changed."""
        old, inner = self.old, int(self.n_splits[node])
        front = self._leaf(rows, old.value[node], inner)
        may = not used and self.weights[rows].sum() >= 2 * self.least
        if fresh is None and may:
            fresh = self._grow(rows, FRESH_LEAVES)
        if fresh is not None and fresh.left[0] != LEAF:
            self._add_fresh(front, fresh, 0, rows, inner)
        for split, changes in self._splits(node, rows, fresh) if inner else ():
            if changes and not may:
                continue
            goes = self.goes_left(split, rows)
            sides = [
                self._node(int(child), own, used or changes > 0)
                for child, own in ((old.left[node], rows[goes]), (old.right[node], rows[~goes]))
            ]
            self._join(front, split, sides, changes)
        self._thin(front)
        return front

    def _splits(self, node: int, rows: Integers, fresh: Sketch | None) -> list[tuple[Split, int]]:
        """Splits that may stand above the old branches, and how many changes each is."""
        own = split_of(self.old, node)
        assert own is not None
        found = [(own, 0)]
        if self.weights[rows].sum() >= 2 * self.least:
            moved = self._grow(rows, 2, own.feature).splits[0]
            if moved is not None and not same_split(own, moved):
                found.append((moved, 1))
            if np.isnan(self.values[rows, own.feature]).any():
                found.append((own._replace(missing_left=not own.missing_left), 1))
        new = None if fresh is None else fresh.splits[0]
        if new is not None and new.feature != own.feature:
            found.append((new, 2))
        return found

    def _add_fresh(
        self, front: Front, fresh: Sketch, node: int, rows: Integers, dropped: int
    ) -> None:
        """Add all prunings of a fresh sub-tree that keep its split `node`."""
        split, sides = fresh.splits[node], []
        assert split is not None
        goes = self.goes_left(split, rows)
        for child, own in ((fresh.left[node], rows[goes]), (fresh.right[node], rows[~goes])):
            side = self._leaf(own, front.share, 0)
            if fresh.left[child] != LEAF:
                self._add_fresh(side, fresh, child, own, 0)
            sides.append(side)
        self._join(front, split, sides, dropped + 1)
        self._thin(front)

    def _join(self, front: Front, split: Split, sides: list[Front], changes: int) -> None:
        added = np.array([0.0, 0.0, changes, 0.0])
        points, pairs = sum_pairs(sides[0].points, sides[1].points, added, self.most)
        front.add((split, *sides), points, pairs)

    def _leaf(self, rows: Integers, share: Floats, dropped: int) -> Front:
        """A leaf with any label that is not worse than another in both loss and flips."""
        counts, decided = (
            np.bincount(which[rows], self.weights[rows], self.n_classes)
            for which in (self.labels, self.decided)
        )
        front, total = Front(counts, share), counts.sum()
        shares = np.maximum((counts + PRIOR * share) / (total + PRIOR), TINY)
        known = np.flatnonzero((counts > 0) | (decided > 0)) if total else [share.argmax()]
        for label in known:
            value = shares.copy()
            if value.argmax() != label:  # as a tie, which the label wins
                value[label] = value.max() + 4 * TINY
            value /= value.sum()
            loss = -counts @ np.log(value) if self.log_loss else total - counts[label]
            point = np.array([[loss, total - decided[label], dropped, 1.0]])
            front.add(value, point, np.zeros((1, 2), np.int64))
        return front

    def _thin(self, front: Front) -> None:
        """Of more points than are held, keep what the rates pick and some of the rest."""
        if len(front.points) <= MOST_POINTS:
            return
        self.exact = False
        picked = {int(self.ranking(front.points, rate)[0]) for rate in RATES}
        picked |= set(range(0, len(front.points), -(-len(front.points) // MOST_POINTS)))
        front.keep(np.array(sorted(picked)))

    # ---- splits ----
    def goes_left(self, split: Split, rows: Integers) -> NDArray[np.bool_]:
        """Which rows a split sends left."""
        found = self.values[rows, split.feature]
        missing = np.isnan(found)
        if np.isnan(split.threshold):
            goes = split.subset[np.where(missing, 0, found).astype(np.int64)]
        else:
            goes = found <= split.threshold
        return np.where(missing, split.missing_left, goes)

    def _grow(self, rows: Integers, n_leaves: int, feature: int | None = None) -> Sketch:
        """A tree grown greedily from some rows, on one column or all."""
        columns = slice(None) if feature is None else slice(feature, feature + 1)
        codes = np.ascontiguousarray(self.codes[rows, columns])
        asked, bins, left = grow_small(
            codes,
            self.targets[rows],
            self.weights[rows],
            self.bins.n_bins[columns],
            self.bins.kinds[columns],
            np.zeros(codes.shape[1], np.int64),
            n_leaves,
            self.least,
            0.0,
        )
        right = np.where(left == LEAF, LEAF, left + 1)
        reached = {0: rows}
        splits: list[Split | None] = [None] * len(left)
        for node in np.flatnonzero(left != LEAF):
            column = int(asked[node]) if feature is None else feature
            own = reached[node]
            goes = (bins[node] >> self.codes[own, column].astype(np.uint64)) & np.uint64(1) > 0
            reached[left[node]], reached[right[node]] = own[goes], own[~goes]
            larger = self.weights[own[goes]].sum() >= self.weights[own[~goes]].sum()
            question = self.bins.question(column, int(bins[node]), bool(larger))
            splits[node] = Split(column, *question[:3])
            if question.swapped:
                left[node], right[node] = right[node], left[node]
        return Sketch(splits, left.tolist(), right.tolist())

    # ---- trees ----
    def build(self, point: int) -> Tree:
        """The tree of a point of the front."""
        option = self.front.options[self.front.made[point, 0]]
        if isinstance(option, Tree):
            return option
        nodes: list[Any] = []
        self._add_nodes(self.front, point, nodes)
        arrays = dict(zip(NODE, map(np.array, zip(*nodes, strict=True)), strict=True))
        return replace(self.old, **arrays, note="")

    def _add_nodes(self, front: Front, point: int, nodes: list[Any]) -> int:
        """Add a node and all below it; returns its index."""
        which, i, j = front.made[point]
        option, index, total = front.options[which], len(nodes), front.counts.sum()
        if not isinstance(option, tuple):
            no_split = LEAF, np.nan, np.zeros(self.old.subset.shape[1], bool), False, LEAF, LEAF
            nodes.append((*no_split, option, total))
            return index
        split, left, right = option
        share = front.counts / total if total else front.share
        nodes.append(())
        below = self._add_nodes(left, i, nodes), self._add_nodes(right, j, nodes)
        nodes[index] = (*split, *below, share, total)
        return index


NODE = ("feature", "threshold", "subset", "missing_left", "left", "right", "value", "weight")


def row_losses(tree: Tree, leaves: Integers, labels: Integers, log_loss: bool) -> Floats:
    """Loss of each row: whether the decision is wrong, or the log loss of its probability.

    A row spread evenly over the classes is added to each leaf, so that no loss is infinite.
    """
    if not log_loss:
        return (tree.label[leaves] != labels).astype(np.float64)
    weight = tree.weight[leaves]
    share = (tree.value[leaves, labels] * weight + 1 / len(tree.classes)) / (weight + 1)
    return -np.log(share)


def fine_bins(space: FeatureSpace, values: Floats, targets: Floats, weights: Floats) -> GroupedBins:
    """Bins at many quantiles of each column; those of categories in groups."""
    grouped = GroupedBins.of(space, values, targets, weights)
    columns, n_bins = [], grouped.n_bins.copy()
    for j, column in enumerate(space):
        if not column.is_categorical:
            column = column.with_thresholds(quantile_thresholds(values[:, j], N_CUTS, weights))
            n_bins[j] = column.n_bins + column.missing
        columns.append(column)
    return replace(grouped, space=FeatureSpace(tuple(columns)), n_bins=n_bins)
