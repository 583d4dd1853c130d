"""Drawn questions to a Tree: leaves that carry released counts or drawn labels, nothing else."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadytree.data.schema import Schema
from steadytree.data.splits import SplitTable
from steadytree.models.builder import TreeBuilder
from steadytree.models.tree import LEAF, Tree

MOST_NODES = 200_000
DEEPEST = 64  # trees are walked by recursion, so one from outside must not be a chain


class SampledTree(NamedTuple):
    """A drawn tree: a question with two trees below, or a leaf with a label (-1: none drawn)."""

    question: int
    yes: "SampledTree" = None  # type: ignore[assignment]  # leaves have none
    no: "SampledTree" = None  # type: ignore[assignment]
    label: int = -1

    @property
    def is_leaf(self) -> bool:
        return self.yes is None


class BlockRows(NamedTuple):
    """The rows that a tree is drawn for: codes (p, n), labels (n,), and which of them."""

    codes: NDArray[Any]
    labels: NDArray[np.int32]
    n_classes: int
    rows: NDArray[np.int64]

    def take(self, kept: NDArray[np.bool_]) -> "BlockRows":
        return self._replace(rows=self.rows[kept])

    def class_counts(self) -> NDArray[np.int64]:
        return np.bincount(self.labels[self.rows], minlength=self.n_classes).astype(np.int64)


OPEN = SampledTree(-1)


def leaves_of(drawn: SampledTree) -> list[SampledTree]:
    """Leaves, the yes side first."""
    if drawn.is_leaf:
        return [drawn]
    return [*leaves_of(drawn.yes), *leaves_of(drawn.no)]


def rows_by_leaf(
    drawn: SampledTree, block: BlockRows, candidates: SplitTable
) -> Iterator[BlockRows]:
    """Rows of each leaf, in the order of `leaves_of`."""
    if drawn.is_leaf:
        yield block
        return
    yes = candidates.goes_left(block.codes, drawn.question, block.rows)
    yield from rows_by_leaf(drawn.yes, block.take(yes), candidates)
    yield from rows_by_leaf(drawn.no, block.take(~yes), candidates)


def leaf_counts(drawn: SampledTree, block: BlockRows, candidates: SplitTable) -> NDArray[np.int64]:
    """Exact class counts (leaves, classes): to be noised before they go anywhere."""
    return np.array([rows.class_counts() for rows in rows_by_leaf(drawn, block, candidates)])


def extend(
    drawn: SampledTree,
    block: BlockRows,
    candidates: SplitTable,
    grow: Callable[[BlockRows], SampledTree],
) -> SampledTree:
    """The tree with every leaf replaced by what `grow` draws for its rows."""
    if drawn.is_leaf:
        return grow(block)
    yes = candidates.goes_left(block.codes, drawn.question, block.rows)
    return SampledTree(
        drawn.question,
        extend(drawn.yes, block.take(yes), candidates, grow),
        extend(drawn.no, block.take(~yes), candidates, grow),
    )


def to_numbers(drawn: SampledTree) -> tuple[int, ...]:
    """Questions, the root's first, then those of the yes side; -1 for a leaf. Labels are left out.

    Examples
    --------
    >>> leaf = SampledTree(-1)
    >>> to_numbers(SampledTree(4, leaf, SampledTree(2, leaf, leaf)))
    (4, -1, 2, -1, -1)
    """
    if drawn.is_leaf:
        return (-1,)
    return (drawn.question, *to_numbers(drawn.yes), *to_numbers(drawn.no))


def from_numbers(numbers: Sequence[int], n_questions: int) -> SampledTree:
    """The tree that `to_numbers` wrote down; refuses what is none."""
    wrong = ValueError("tree: questions must be whole numbers that make up one tree.")
    if not 0 < len(numbers) <= MOST_NODES:
        raise wrong
    done: list[tuple[SampledTree, int]] = []  # with their depths
    for number in reversed(numbers):  # from behind, both sides are ready when their question comes
        if isinstance(number, bool) or not isinstance(number, int | np.integer):
            raise wrong
        if not -1 <= number < n_questions or (number >= 0 and len(done) < 2):
            raise wrong
        if number < 0:
            done.append((OPEN, 0))
            continue
        (yes, one), (no, other) = done.pop(), done.pop()
        depth = 1 + max(one, other)
        if depth > DEEPEST:
            raise ValueError(f"tree: may have at most {DEEPEST} questions one below the other.")
        done.append((SampledTree(int(number), yes, no), depth))
    if len(done) != 1:
        raise wrong
    return done[0][0]


Floats = NDArray[np.float64]


def plausible_counts(noisy: NDArray[np.int64], labels: NDArray[np.int64] | None = None) -> Floats:
    """Noisy leaf counts made positive, and led by the drawn label where there is one."""
    counts = np.maximum(noisy, 0).astype(np.float64)
    if labels is not None:
        place = np.arange(len(counts)), labels
        highest = counts.max(axis=1)
        # a label drawn with more budget outranks a count: the count gives way
        counts[place] = np.where(counts[place] < highest, highest, counts[place])
        tied = (counts == highest[:, None]).sum(axis=1) > 1
        counts[place] += np.where(tied, 1e-9 * highest + 1e-9, 0.0)
    return counts


def counts_from_labels(labels: NDArray[np.int64], n_classes: int, n_rows: float) -> Floats:
    """Where no counts were released: each leaf as heavy as any other, and of one class."""
    counts = np.zeros((len(labels), n_classes))
    counts[np.arange(len(labels)), labels] = max(n_rows, 1.0) / len(labels)
    return counts


def build_tree(drawn: SampledTree, candidates: SplitTable, schema: Schema, counts: Floats) -> Tree:
    """A Tree whose leaves have the given counts, parents those of their children together.

    Sibling leaves with equal labels are merged. A leaf with no counts takes its parent's shares.
    """
    nodes: list[tuple[int, int, int]] = []  # question, yes, no; parents first
    leaf_node: list[int] = []

    def add(part: SampledTree) -> int:
        here = len(nodes)
        nodes.append((-1, LEAF, LEAF))
        if part.is_leaf:
            leaf_node.append(here)
        else:
            yes = add(part.yes)
            nodes[here] = (part.question, yes, add(part.no))
        return here

    add(drawn)
    split, left, right = np.array(nodes).T.copy()
    totals = np.zeros((len(nodes), counts.shape[1]))
    totals[leaf_node] = counts
    for here in np.flatnonzero(split >= 0)[::-1]:
        totals[here] = totals[left[here]] + totals[right[here]]
    builder = TreeBuilder(candidates, np.array(schema.classes))
    return builder.build(split, left, right, totals, missing_right=True)
