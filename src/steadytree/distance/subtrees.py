"""Subtrees of two trees with a number for their content, and splits that move within them."""

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from steadytree.models.tree import LEAF, Tree

NONE = -1
ROUNDING = 1e-7  # share of a threshold and its range below which it is the same
Task = Generator[Any, Any, Any]


@dataclass(frozen=True, eq=False)
class Subtree:
    """A leaf, or a split and what follows it."""

    content: int  # equal subtrees have equal numbers
    key: int  # number of the split at the top, or of the label: equal ones are equal
    node: int  # node of the tree that the top stems from
    n_splits: int
    marks: int  # a bit for each split; very many splits share bits
    children: tuple["Subtree", ...] = ()


class Subtrees:
    """Makes subtrees of two trees over one space, and new ones from their parts."""

    def __init__(self, old: Tree, new: Tree) -> None:
        self.features: list[int] = []  # of each split, by its number
        self._splits: dict[Any, int] = {}
        self._labels: dict[Any, int] = {}
        self._contents: dict[tuple[int, ...], int] = {}
        self._thresholds = [_rounded(old, new, j) for j in range(len(old.space))]
        self.old, self.new = self._read(old), self._read(new)

    def _read(self, tree: Tree) -> Subtree:
        made: dict[int, Subtree] = {}
        labels = tree.classes[tree.label].tolist()
        for node in range(tree.n_nodes - 1, -1, -1):  # children come after their parents
            if tree.left[node] == LEAF:
                label = self._labels.setdefault(labels[node], len(self._labels))
                made[node] = self._make(-1 - label, node)
            else:
                below = [made.pop(int(side[node])) for side in (tree.left, tree.right)]
                made[node] = self._make(self._number(tree, node), node, *below)
        return made[0]

    def _number(self, tree: Tree, node: int) -> int:
        """Number of a split; the side of missing values counts where the column had some."""
        j = int(tree.feature[node])
        column = tree.space[j]
        test: Any = tree.subset[node].tobytes()
        if not column.is_categorical:
            test = self._thresholds[j][float(tree.threshold[node])]
        split = (j, test, bool(column.missing and tree.missing_left[node]))
        if split not in self._splits:
            self.features.append(j)
        return self._splits.setdefault(split, len(self._splits))

    def _make(self, key: int, node: int, *children: Subtree) -> Subtree:
        parts = (key, *(child.content for child in children))
        content = self._contents.setdefault(parts, len(self._contents))
        if not children:
            return Subtree(content, key, node, 0, 0)
        left, right = children
        marks = left.marks | right.marks | mark(key)
        return Subtree(content, key, node, left.n_splits + right.n_splits + 1, marks, children)

    def lift(self, subtree: Subtree, key: int) -> Subtree:
        """The same decisions with the split `key`, which occurs below the top, asked first."""
        sides = [run(self._answer(subtree, key, side)) for side in (0, 1)]
        return self._make(key, _first(subtree, key).node, *sides)

    def _answer(self, subtree: Subtree, key: int, side: int) -> Task:
        """The subtree where the split `key` goes to one side; equal children are merged."""
        if not subtree.marks & mark(key):
            return subtree
        if subtree.key == key:
            return (yield self._answer(subtree.children[side], key, side))
        left = yield self._answer(subtree.children[0], key, side)
        right = yield self._answer(subtree.children[1], key, side)
        if left.content == right.content and (left, right) != subtree.children:
            return left
        return self._make(subtree.key, subtree.node, left, right)

    def swap(self, subtree: Subtree, key: int) -> Subtree:
        """The top split and the topmost splits `key` below it in each other's place."""
        below = [run(self._exchange(child, key, subtree)) for child in subtree.children]
        return self._make(key, _first(subtree, key).node, *below)

    def _exchange(self, subtree: Subtree, key: int, top: Subtree) -> Task:
        if not subtree.marks & mark(key):
            return subtree
        if subtree.key == key:
            return self._make(top.key, top.node, *subtree.children)
        left = yield self._exchange(subtree.children[0], key, top)
        right = yield self._exchange(subtree.children[1], key, top)
        return self._make(subtree.key, subtree.node, left, right)


def mark(key: int) -> int:
    return 1 << key % 1024


def _rounded(old: Tree, new: Tree, feature: int) -> dict[float, float]:
    """One number for thresholds of a feature that differ by rounding only.

    The float32 and the float64 form of one threshold are the same.
    """
    column = old.space[feature]
    own = [tree.threshold[tree.feature == feature] for tree in (old, new)]
    found: dict[float, float] = {}
    last = group = -np.inf
    for threshold in np.unique(np.concatenate(own)).tolist():
        tolerance = ROUNDING * (abs(threshold) + column.high - column.low)
        if np.isinf(threshold) or threshold - last > tolerance:
            group = threshold
        found[threshold], last = group, threshold
    return found


def preorder(subtree: Subtree) -> Iterator[Subtree]:
    """The subtree and all below it, in the order root, left, right."""
    stack = [subtree]
    while stack:
        own = stack.pop()
        yield own
        stack += own.children[::-1]


def has_split(subtree: Subtree, key: int) -> bool:
    """Whether a split occurs in the subtree."""
    return bool(subtree.marks & mark(key)) and any(own.key == key for own in preorder(subtree))


def _first(subtree: Subtree, key: int) -> Subtree:
    return next(own for own in preorder(subtree) if own.key == key)


def run(task: Task) -> Any:
    """Result of a task that yields further tasks to get their results: recursion of any depth."""
    stack, result = [task], None
    while stack:
        try:
            task = stack[-1].send(result)
        except StopIteration as end:
            stack.pop()
            result = end.value
        else:
            stack.append(task)
            result = None
    return result
