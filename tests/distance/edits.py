"""Edits of small trees written as nested tuples, each done as obviously as can be.

A tree is a label, or (split, left, right). Splits are numbers; split 0 and 1 are on one feature.
"""

from collections import deque
from functools import cache

import numpy as np

from steadytree.data.feature_space import FeatureSpace
from steadytree.models.tree import Tree

FEATURES = [0, 0, 1, 2]  # of the splits
THRESHOLDS = [0.25, 0.75, 0.5, 0.5]
SPACE = FeatureSpace.declare({"p": (0, 1), "q": (0, 1), "r": (0, 1)})


def is_split(tree):
    return isinstance(tree, tuple)


def size(tree):
    return 1 + size(tree[1]) + size(tree[2]) if is_split(tree) else 0


def has(tree, split):
    return is_split(tree) and (tree[0] == split or any(has(child, split) for child in tree[1:]))


@cache
def trees(n_splits, splits, labels):
    """All trees with so many splits."""
    if n_splits == 0:
        return tuple(labels)
    return tuple(
        (split, left, right)
        for split in splits
        for k in range(n_splits)
        for left in trees(k, splits, labels)
        for right in trees(n_splits - 1 - k, splits, labels)
    )


def answered(tree, split, side):
    """The tree where a split always goes to one side; what then has equal children is merged."""
    if not is_split(tree):
        return tree
    if tree[0] == split:
        return answered(tree[1 + side], split, side)
    below = tuple(answered(child, split, side) for child in tree[1:])
    return below[0] if below[0] == below[1] and below != tree[1:] else (tree[0], *below)


def lifted(tree, split):
    """The tree with a split that occurs in it asked first."""
    return split, answered(tree, split, 0), answered(tree, split, 1)


def swapped(tree, split):
    """The tree with its top split and the topmost ones of another split in each other's place."""

    def put(part):
        if not is_split(part):
            return part
        return (tree[0], *part[1:]) if part[0] == split else (part[0], *map(put, part[1:]))

    return split, put(tree[1]), put(tree[2])


def at_top(tree, splits, labels):
    """All trees that one edit of the top makes."""
    if not is_split(tree):
        yield from labels
        yield from ((split, a, b) for split in splits for a in labels for b in labels)
    else:
        yield from ((split, *tree[1:]) for split in splits)
        for other in splits:
            if other != tree[0] and has(tree, other):
                yield lifted(tree, other)
                yield swapped(tree, other)
        for side in (1, 2):
            if not is_split(tree[side]):
                yield tree[3 - side]
        if size(tree) == 1:
            yield from labels
    for split in splits:
        for label in labels:
            yield split, tree, label
            yield split, label, tree


def paths(tree, path=()):
    yield path
    if is_split(tree):
        for side in (1, 2):
            yield from paths(tree[side], (*path, side))


def at(tree, path):
    for side in path:
        tree = tree[side]
    return tree


def put_at(tree, path, part):
    if not path:
        return part
    below = list(tree)
    below[path[0]] = put_at(tree[path[0]], path[1:], part)
    return tuple(below)


def neighbours(tree, splits, labels):
    """All trees that one edit makes of a tree."""
    found = set()
    places = list(paths(tree))
    for path in places:
        part = at(tree, path)
        found.update(put_at(tree, path, other) for other in at_top(part, splits, labels))
        if not is_split(part):
            continue
        for target in places:  # the subtree moves to where a leaf was
            if not is_split(at(tree, target)) and target[: len(path)] != path:
                for label in labels:
                    found.add(put_at(put_at(tree, path, label), target, part))
    found.discard(tree)
    return found


def distances(start, splits, labels, most_splits):
    """Fewest edits from a tree to each tree, by breadth-first search."""
    reached, queue = {start: 0}, deque([start])
    while queue:
        tree = queue.popleft()
        for other in known_neighbours(tree, splits, labels):
            if other not in reached and size(other) <= most_splits:
                reached[other] = reached[tree] + 1
                queue.append(other)
    return reached


@cache
def known_neighbours(tree, splits, labels):
    return tuple(sorted(neighbours(tree, splits, labels), key=repr))


@cache
def as_tree(plan):
    """A nested tuple as a Tree; labels are numbers from 0."""
    rows = []

    def add(part):
        index = len(rows)
        rows.append(None)
        if not is_split(part):
            rows[index] = (-1, np.nan, -1, -1, np.eye(3)[part])
            return index
        left, right = add(part[1]), add(part[2])
        split = FEATURES[part[0]], THRESHOLDS[part[0]]
        rows[index] = (*split, left, right, np.full(3, 1 / 3))
        return index

    add(plan)
    arrays = zip(*rows, strict=True)
    return Tree(SPACE, ["a", "b", "c"], *arrays, np.ones(len(rows)))


def as_plan(tree, node=0):
    """A Tree as a nested tuple; equal splits are equal, the side of missing values included."""
    if tree.is_leaf[node]:
        return tree.classes.tolist()[tree.label[node]]
    below = (as_plan(tree, int(side[node])) for side in (tree.left, tree.right))
    return split_of(tree, node), *below


def split_of(tree, node):
    column = tree.space[int(tree.feature[node])]
    threshold = None if column.is_categorical else float(tree.threshold[node])
    side = bool(column.missing and tree.missing_left[node])
    return column.name, threshold, tree.subset[node].tobytes(), side


def replay(found):
    """The old tree of a diff with each of its edits done in turn, as a nested tuple.

    Only an edit may take a split or a label from the new tree; all else comes from the old one.
    """
    return Replay(found).build(0, as_plan(found.old))


class Replay:
    def __init__(self, found):
        self.nodes, self.old, self.new = found.nodes, found.old, found.new

    def holds(self, k, side):
        """Whether something of a tree stands at or below a position, subtrees that came apart."""
        own = self.nodes[k]
        if own.move == "subtree":
            return side == "new" or own.went_to >= 0
        here = getattr(own, side) >= 0 or (side == "old" and own.went_to >= 0)
        return here or any(self.holds(c, side) for c in (own.left, own.right) if c >= 0)

    def build(self, k, tree):
        """What stands at a position in the end; `tree` is what the edits so far made there."""
        own = self.nodes[k]
        if own.move == "subtree":
            assert self.is_kept(own.left)
            assert self.is_kept(own.right)
            return as_plan(self.old, own.old)
        tree = None if own.went_to >= 0 else tree
        if own.left < 0:
            return self.leaf(own, tree)
        if own.status == "cut":
            return self.cut(own, tree)
        if own.status == "grown":
            return self.grown(own, tree)
        if own.status == "moved":
            move = lifted if own.move == "up" else swapped
            tree = move(tree, split_of(self.old, own.old))
        split = tree[0] if own.status in ("same", "moved") else split_of(self.new, own.new)
        return split, self.build(own.left, tree[1]), self.build(own.right, tree[2])

    def is_kept(self, k):
        own = self.nodes[k]
        below = own.left < 0 or (self.is_kept(own.left) and self.is_kept(own.right))
        return own.status == "same" and below

    def leaf(self, own, tree):
        if own.new < 0:
            return None
        if own.status != "same":
            return as_plan(self.new, own.new)
        assert not is_split(tree)
        return tree

    def cut(self, own, tree):
        """A split goes: one of its sides takes its place, or a new leaf, or nothing."""
        assert is_split(tree)
        rest = [k for k in (0, 1) if self.holds((own.left, own.right)[k], "new")]
        if not rest:
            return None if own.new < 0 else as_plan(self.new, own.new)
        assert len(rest) == 1
        return self.build((own.left, own.right)[rest[0]], tree[1 + rest[0]])

    def grown(self, own, tree):
        """A split comes: what was there stays on one of its sides, or goes."""
        sides = own.left, own.right
        rest = [k for k in (0, 1) if tree is not None and self.holds(sides[k], "old")]
        assert len(rest) < 2
        parts = [self.build(sides[k], tree if k in rest else None) for k in (0, 1)]
        return split_of(self.new, own.new), *parts
