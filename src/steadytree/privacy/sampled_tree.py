"""SampledTree: a tree of candidate splits; walked without recursion, as one may be a chain."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

MOST_NODES = 200_000
DEEPEST = 1_000  # levels of a tree from outside


class SampledTree(NamedTuple):
    """A split with two trees below, or a leaf with a label (-1: none was sampled).

    The split of a leaf is -1, or -2 for a closed one, which nothing is asked about.
    """

    split: int
    yes: "SampledTree" = None  # type: ignore[assignment]  # leaves have none
    no: "SampledTree" = None  # type: ignore[assignment]
    label: int = -1

    @property
    def is_leaf(self) -> bool:
        return self.yes is None


OPEN, CLOSED = SampledTree(-1), SampledTree(-2)


def nodes_of(tree: SampledTree) -> Iterator[SampledTree]:
    """Splits and leaves in preorder, the yes side first."""
    waiting = [tree]
    while waiting:
        part = waiting.pop()
        yield part
        if not part.is_leaf:
            waiting += (part.no, part.yes)


def assemble(parts: Iterable[SampledTree | int]) -> SampledTree:
    """The tree of splits (integers) and leaves, or trees instead of leaves, in preorder."""
    done: list[SampledTree] = []
    for part in reversed(list(parts)):  # children are complete before their parent is reached
        done.append(SampledTree(part, done.pop(), done.pop()) if isinstance(part, int) else part)
    return done[0]


def leaves_of(tree: SampledTree) -> list[SampledTree]:
    """Leaves, the yes side first."""
    return [part for part in nodes_of(tree) if part.is_leaf]


def n_open(tree: SampledTree) -> int:
    """Leaves that are not closed."""
    return sum(part.split == OPEN.split for part in nodes_of(tree))


def replace_leaves(tree: SampledTree, leaves: Iterator[SampledTree]) -> SampledTree:
    """The tree with every leaf replaced by the next of `leaves`, the yes side first."""
    return assemble(next(leaves) if part.is_leaf else part.split for part in nodes_of(tree))


def split_leaves(tree: SampledTree, splits: Sequence[int]) -> SampledTree:
    """The tree with every leaf split."""
    return replace_leaves(tree, (SampledTree(split, OPEN, OPEN) for split in splits))


def to_numbers(tree: SampledTree) -> tuple[int, ...]:
    """Splits in preorder, the yes side first; -1 for a leaf, -2 for a closed one; no labels.

    >>> to_numbers(SampledTree(4, OPEN, SampledTree(2, OPEN, OPEN)))
    (4, -1, 2, -1, -1)
    """
    return tuple(part.split for part in nodes_of(tree))


def from_numbers(numbers: Sequence[int], n_splits: int, closed: bool = False) -> SampledTree:
    """The tree that `to_numbers` wrote; anything else is refused, and closed leaves by default."""
    wrong = ValueError("tree: splits must be integers that make up one tree.")
    if not 0 < len(numbers) <= MOST_NODES:
        raise wrong
    done: list[tuple[SampledTree, int]] = []  # with their depths
    for number in reversed(numbers):  # children are complete before their parent is reached
        if isinstance(number, bool) or not isinstance(number, int | np.integer):
            raise wrong
        if not -1 - closed <= number < n_splits or (number >= 0 and len(done) < 2):
            raise wrong
        if number < 0:
            done.append((OPEN if number == OPEN.split else CLOSED, 0))
            continue
        (yes, one), (no, other) = done.pop(), done.pop()
        depth = 1 + max(one, other)
        if depth > DEEPEST:
            raise ValueError(f"tree: may have at most {DEEPEST:,} levels.")
        done.append((SampledTree(int(number), yes, no), depth))
    if len(done) != 1:
        raise wrong
    return done[0][0]
