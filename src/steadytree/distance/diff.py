"""Diff: what changed from one tree to another, node by node and row by row."""

import math
import sys
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadytree._base.optional import is_a
from steadytree.data.column import Column
from steadytree.data.labels import UNKNOWN, match_labels
from steadytree.data.table import check_in_memory, value_text
from steadytree.distance.alignment import STATUSES, NodeChange, Status, align, n_edits
from steadytree.distance.path import are_regression_trees, path_distance
from steadytree.metrics.accuracy import distinct_labels
from steadytree.models.boxes import exact_thresholds, rebase, shared_space, space_of_both, widen
from steadytree.models.sklearn import as_tree, regression_tree
from steadytree.models.tree import LEAF, Tree

ClassStatus = Literal["new", "gone", "unknown"]


MOST_STEPS = 200_000  # splits that are looked at


class Values(NamedTuple):
    """Values of one column: numbers in ``(low, high]``, categories as bits, missing."""

    low: float
    high: float
    categories: int
    missing: bool

    @property
    def any(self) -> bool:
        return self.low < self.high or self.categories != 0 or self.missing


class Split(NamedTuple):
    """A split: to the left go numbers up to the threshold, or the categories set as bits."""

    column: int
    threshold: float
    categories: int
    missing_left: bool
    children: tuple[int, int]

    def sides(self, values: Values) -> tuple[Values, Values]:
        """The values that go left and those that go right."""
        low, high, categories, missing = values
        return (
            Values(
                low,
                min(high, self.threshold),
                categories & self.categories,
                missing and self.missing_left,
            ),
            Values(
                max(low, self.threshold),
                high,
                categories & ~self.categories,
                missing and not self.missing_left,
            ),
        )


@dataclass(frozen=True)
class Equivalence:
    """Whether two trees decide alike; where not, an input on which they differ."""

    alike: bool | None  # None where the limit of work was reached first
    # values of the columns that matter, by name; None is a missing value
    example: dict[str, Any] | None = None


def compare_decisions(old: Tree, new: Tree, most_steps: int = MOST_STEPS) -> Equivalence:
    """Look for an input on which two trees over one space predict different classes."""
    trees = [_splits(tree) for tree in (old, new)]
    labels = [tree.classes[tree.label].tolist() for tree in (old, new)]
    everything = [_all_values(column) for column in old.space]
    box = everything.copy()
    # pairs of nodes to look at, the column that leads there, and its values
    stack: list[tuple[int, int, int, Values]] = [(0, 0, 0, box[0])]
    while stack:
        *nodes, column, values = stack.pop()
        box[column] = values
        if nodes[0] == LEAF:  # only undoes what the pairs above it on the stack changed
            continue
        for k, splits in enumerate(trees):
            while (split := splits[nodes[k]]) is not None:
                most_steps -= 1
                left, right = split.sides(box[split.column])
                if left.any and right.any:
                    break
                nodes[k] = split.children[0 if left.any else 1]
        if most_steps < 0:
            return Equivalence(None)
        k = 0 if trees[0][nodes[0]] is not None else 1
        split = trees[k][nodes[k]]
        if split is not None:
            stack.append((LEAF, LEAF, split.column, box[split.column]))
            sides = split.sides(box[split.column])
            for child, own in zip(split.children[::-1], sides[::-1], strict=True):
                nodes[k] = child
                stack.append((nodes[0], nodes[1], split.column, own))
        elif labels[0][nodes[0]] != labels[1][nodes[1]]:
            return Equivalence(False, _example(old, everything, box))
    return Equivalence(True)


def _splits(tree: Tree) -> list[Split | None]:
    """Split of each node, None at leaves."""
    by_value, thresholds = tree.space.categorical, exact_thresholds(tree).tolist()
    found: list[Split | None] = [None] * tree.n_nodes
    for node in (tree.left != LEAF).nonzero()[0].tolist():
        j = int(tree.feature[node])
        bits = sum(1 << k for k in tree.subset[node].nonzero()[0].tolist())
        threshold = 0.0 if by_value[j] else thresholds[node]
        children = int(tree.left[node]), int(tree.right[node])
        found[node] = Split(j, threshold, bits, bool(tree.missing_left[node]), children)
    return found


def _all_values(column: Column) -> Values:
    if column.is_categorical:
        return Values(0.0, 0.0, (1 << len(column.categories)) - 1, True)
    return Values(-math.inf, sys.float_info.max, 0, True)


def _example(tree: Tree, everything: list[Values], box: list[Values]) -> dict[str, Any]:
    pairs = zip(tree.space, everything, box, strict=True)
    return {column.name: _one_of(column, own) for column, every, own in pairs if own != every}


def _one_of(column: Column, values: Values) -> Any:
    """A value among those allowed: whole where that is usual, else with few digits."""
    low, high, categories, _ = values
    if categories:
        return column.categories[(categories & -categories).bit_length() - 1]
    if not low < high:
        return None
    # an example within the bounds of the column, if there is one
    if max(low, math.nextafter(column.low, -math.inf)) < min(high, column.high):
        low, high = max(low, math.nextafter(column.low, -math.inf)), min(high, column.high)
    open_ends = math.isinf(low), high == sys.float_info.max
    if column.kind != "numeric":
        whole = float(math.floor(low) + 1 if not open_ends[0] else math.floor(high))
        if low < whole <= high and not all(open_ends):
            return whole
    around = {(True, True): 0.0, (True, False): high - 1, (False, True): low + 1}
    middle = around.get(open_ends, low / 2 + high / 2)
    rounded = (float(f"{middle:.{digits}g}") for digits in range(1, 18))
    return next((value for value in rounded if low < value <= high), high)


@dataclass(frozen=True)
class ClassChange:
    """A class that only one tree knows or predicts, or neither."""

    label: Any
    # "new", the old tree does not know it; "gone", a leaf of the old tree predicts it and none
    # of the new one does; "unknown", rows have it and neither tree knows it
    status: ClassStatus
    answered: bool  # whether some leaf of the new tree predicts it
    n_rows: int | None  # rows given that have it; None without labels
    n_right: int | None  # of those, the rows that the new tree predicts correctly

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return dict(vars(self))


def class_changes(
    old: Tree,
    new: Tree,
    classes: list[Any],
    truth: NDArray[np.int64] | None = None,
    new_leaf: NDArray[np.int64] | None = None,
) -> tuple[ClassChange, ...]:
    """Classes that are new, gone or known to neither tree, in the order of `classes`."""
    known = [tree.classes.tolist() for tree in (old, new)]
    answers = [
        {labels[k] for k in tree.label[tree.is_leaf]}
        for tree, labels in zip((old, new), known, strict=True)
    ]
    found = []
    for position, label in enumerate(classes):
        status: ClassStatus
        if label not in known[0]:
            status = "new" if label in known[1] else "unknown"
        elif label in answers[0] and label not in answers[1]:
            status = "gone"
        else:
            continue
        n_rows = n_right = None
        if truth is not None and new_leaf is not None:
            own = new.label[new_leaf[truth == position]]
            n_rows = len(own)
            n_right = int((own == known[1].index(label)).sum()) if label in known[1] else 0
        found.append(ClassChange(label, status, label in answers[1], n_rows, n_right))
    return tuple(found)


def labels_alike(old: Tree, new: Tree) -> tuple[Tree, Tree]:
    """Both trees with labels as text, where no two are equal otherwise and some are as text."""
    own, others = old.classes.tolist(), new.classes.tolist()
    if set(own) & set(others) or set(match_labels(own, others)) == {UNKNOWN}:
        return old, new
    return _as_text(old), _as_text(new)


def _as_text(tree: Tree) -> Tree:
    return replace(tree, classes=np.array([*map(value_text, tree.classes.tolist())]))


MOST_PATHS = 4_000_000  # pairs of paths up to which the path distance is measured


@dataclass(frozen=True, eq=False)
class RowChanges:
    """Where given rows went in the old tree and go in the new one."""

    old_leaf: NDArray[np.int64]  # (n_rows,): leaf of each row
    new_leaf: NDArray[np.int64]
    flipped: NDArray[np.int64]  # rows whose decision changed
    flows: tuple[tuple[int, int, int, bool], ...]  # old leaf, new leaf, rows, changed?
    old_accuracy: float | None = None  # share correct, where labels were given
    new_accuracy: float | None = None
    # rows predicted wrongly before and correctly now, and the other way round
    mended: int | None = None
    broken: int | None = None

    @property
    def n_rows(self) -> int:
        return len(self.old_leaf)

    @property
    def flip_share(self) -> float:
        """Share of the rows whose decision changed."""
        return len(self.flipped) / self.n_rows

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        keys = ("old_leaf", "new_leaf", "rows", "flips")
        return {
            "n_rows": self.n_rows,
            "n_flipped": len(self.flipped),
            "flip_share": self.flip_share,
            "flipped": self.flipped.tolist(),
            "flows": [dict(zip(keys, flow, strict=True)) for flow in self.flows],
            "old_accuracy": self.old_accuracy,
            "new_accuracy": self.new_accuracy,
            "mended": self.mended,
            "broken": self.broken,
        }


@dataclass(frozen=True, eq=False)
class TreeChanges:
    """All that changed from one tree to another."""

    old: Tree  # over one space
    new: Tree
    nodes: tuple[NodeChange, ...]  # in the order root, left, right; positions are indices into it
    # path distance; None where no bounds are known to measure it in, or too many paths
    distance: float | None
    rows: RowChanges | None  # where rows were given
    classes: tuple[ClassChange, ...]  # classes that are new, gone, or known to neither tree
    equivalence: Equivalence  # whether they decide alike on every input

    @property
    def alike(self) -> bool | None:
        """Whether both trees decide alike on every possible input; None where not decided."""
        return self.equivalence.alike

    @property
    def n_edits(self) -> int:
        """Number of edits that make the new tree of the old one; a move is one."""
        return n_edits(self.nodes)

    @property
    def counts(self) -> dict[Status, int]:
        """Number of positions by status."""
        found = [node.status for node in self.nodes]
        return {status: found.count(status) for status in STATUSES}

    @property
    def is_same(self) -> bool:
        """Whether every split and every label stayed."""
        return self.counts["same"] == len(self.nodes)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "counts": dict(self.counts),
            "n_edits": self.n_edits,
            "alike": self.alike,
            "example": self.equivalence.example,
            "distance": self.distance,
            "classes": [one.to_dict() for one in self.classes],
            "nodes": [dict(vars(node)) for node in self.nodes],
            "rows": None if self.rows is None else self.rows.to_dict(),
        }


def find_changes(old: Any, new: Any, X: Any = None, y: Any = None) -> TreeChanges:
    """Lay two trees over each other, and send rows through both."""
    if y is not None and X is None:
        raise ValueError("y was given without X: pass the rows that the labels belong to.")
    check_in_memory(X)
    numbers = are_regression_trees([old, new])
    if numbers and y is not None:
        raise ValueError("y is for trees that predict classes: leave it out.")
    digits = _digits([old, new]) if numbers else 0
    trees, known = zip(*(_read(model, X, digits) for model in (old, new)), strict=True)
    trees = labels_alike(*trees)
    bounds = [tree.space for tree, has_bounds in zip(trees, known, strict=True) if has_bounds]
    space = space_of_both(*trees)
    if len(bounds) == 1:  # the other, from scikit-learn, keeps none
        shared_space([tree.space for tree in trees])  # names must agree
        space = widen(bounds[0], trees)
    before, after = (rebase(tree, space) for tree in trees)
    distance = None
    if bounds and before.n_leaves * after.n_leaves <= MOST_PATHS:
        pair = (old, new) if numbers else (before, after)
        distance = path_distance(*pair, space=space).value
    classes = [*dict.fromkeys([*before.classes.tolist(), *after.classes.tolist()])]
    truth = None if y is None else _truth(classes, y)
    rows = None if X is None else _row_changes(before, after, X, truth)
    leaf = None if rows is None else rows.new_leaf
    found = () if numbers else class_changes(before, after, classes, truth, leaf)
    nodes, alike = align(before, after), compare_decisions(before, after)
    return TreeChanges(before, after, nodes, distance, rows, found, alike)


def _digits(models: list[Any]) -> int:
    """Decimals to which predictions of regression trees are compared: 0.1 to 1 % of their range."""
    predicted = np.concatenate([regression_tree(model).classes for model in models])
    spread = float(np.ptp(predicted)) or float(np.abs(predicted).max()) or 1.0
    return 2 - math.floor(math.log10(spread))


def _read(model: Any, X: Any, digits: int) -> tuple[Tree, bool]:
    """The tree inside a model, and whether the bounds of its columns are known."""
    if is_a(model, "sklearn.tree", "DecisionTreeRegressor"):
        return regression_tree(model, X, digits), X is not None
    if isinstance(model, Tree) or isinstance(getattr(model, "tree_", None), Tree):
        return as_tree(model), True
    return as_tree(model, X), X is not None


def _truth(classes: list[Any], y: Any) -> NDArray[np.int64]:
    """Index of each row's class; one that neither tree knows is added to the classes."""
    labels, inverse = distinct_labels(y)
    positions = match_labels(labels, classes)
    for k, position in enumerate(positions):
        if position == UNKNOWN:
            positions[k] = len(classes)
            classes.append(labels[k])
    return np.array(positions, dtype=np.int64)[inverse]


def _row_changes(old: Tree, new: Tree, X: Any, truth: NDArray[np.int64] | None) -> RowChanges:
    before, after = old.apply(X), new.apply(X)
    if len(before) == 0:
        raise ValueError("X has no rows: pass rows to compare decisions on, or leave X out.")
    if truth is not None and len(truth) != len(before):
        raise ValueError(f"X has {len(before)} rows, but y has {len(truth)} labels.")
    position = {label: k for k, label in enumerate(old.classes.tolist())}
    index_in_old = np.array(
        [position.setdefault(label, len(position)) for label in new.classes.tolist()]
    )
    was, now = old.label[before], index_in_old[new.label[after]]
    pairs, counts = np.unique(np.stack([before, after], axis=1), axis=0, return_counts=True)
    flows = tuple(
        (int(a), int(b), int(n), bool(old.label[a] != index_in_old[new.label[b]]))
        for (a, b), n in zip(pairs.tolist(), counts.tolist(), strict=True)
    )
    flipped = np.flatnonzero(was != now)
    if truth is None:
        return RowChanges(before, after, flipped, flows)
    right_before, right_now = was == truth, now == truth
    return RowChanges(
        before,
        after,
        flipped,
        flows,
        int(right_before.sum()) / len(truth),
        int(right_now.sum()) / len(truth),
        int((~right_before & right_now).sum()),
        int((right_before & ~right_now).sum()),
    )
