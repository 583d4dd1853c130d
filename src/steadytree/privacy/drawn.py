"""Drawn: questions of a tree and nothing else, and which rows reach which leaf."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadytree.core.candidates import Candidates

MOST_NODES = 200_000
DEEPEST = 64  # trees are walked by recursion, so one from outside must not be a chain


class Drawn(NamedTuple):
    """A drawn tree: a question with two trees below, or a leaf with a label (-1: none drawn)."""

    question: int
    yes: "Drawn" = None  # type: ignore[assignment]  # leaves have none
    no: "Drawn" = None  # type: ignore[assignment]
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


OPEN = Drawn(-1)


def leaves_of(drawn: Drawn) -> list[Drawn]:
    """Leaves, the yes side first."""
    if drawn.is_leaf:
        return [drawn]
    return [*leaves_of(drawn.yes), *leaves_of(drawn.no)]


def rows_by_leaf(drawn: Drawn, block: BlockRows, candidates: Candidates) -> Iterator[BlockRows]:
    """Rows of each leaf, in the order of `leaves_of`."""
    if drawn.is_leaf:
        yield block
        return
    yes = candidates.answers(block.codes, drawn.question, block.rows)
    yield from rows_by_leaf(drawn.yes, block.take(yes), candidates)
    yield from rows_by_leaf(drawn.no, block.take(~yes), candidates)


def leaf_counts(drawn: Drawn, block: BlockRows, candidates: Candidates) -> NDArray[np.int64]:
    """Exact class counts (leaves, classes): to be noised before they go anywhere."""
    return np.array([rows.class_counts() for rows in rows_by_leaf(drawn, block, candidates)])


def extend(
    drawn: Drawn, block: BlockRows, candidates: Candidates, grow: Callable[[BlockRows], Drawn]
) -> Drawn:
    """The tree with every leaf replaced by what `grow` draws for its rows."""
    if drawn.is_leaf:
        return grow(block)
    yes = candidates.answers(block.codes, drawn.question, block.rows)
    return Drawn(
        drawn.question,
        extend(drawn.yes, block.take(yes), candidates, grow),
        extend(drawn.no, block.take(~yes), candidates, grow),
    )


def to_numbers(drawn: Drawn) -> tuple[int, ...]:
    """Questions, the root's first, then those of the yes side; -1 for a leaf. Labels are left out.

    Examples
    --------
    >>> to_numbers(Drawn(4, Drawn(-1), Drawn(2, Drawn(-1), Drawn(-1))))
    (4, -1, 2, -1, -1)
    """
    if drawn.is_leaf:
        return (-1,)
    return (drawn.question, *to_numbers(drawn.yes), *to_numbers(drawn.no))


def from_numbers(numbers: Sequence[int], n_questions: int) -> Drawn:
    """The tree that `to_numbers` wrote down; refuses what is none."""
    wrong = ValueError("tree: questions must be whole numbers that make up one tree.")
    if not 0 < len(numbers) <= MOST_NODES:
        raise wrong
    done: list[tuple[Drawn, int]] = []  # with their depths
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
        done.append((Drawn(int(number), yes, no), depth))
    if len(done) != 1:
        raise wrong
    return done[0][0]
