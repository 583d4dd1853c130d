"""Parted: class counts of rows that lie in parts, one pass over the parts a level."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadytree.core.counts import ClassCounts, Splits
from steadytree.core.rules import Rules
from steadytree.kernels import RuleTable, child_counts, count_classes, move_rows


class Pass(NamedTuple):
    """What to do with every part: move its rows by some splits, then count some of the nodes.

    place has an entry for each open node, where its counts go (-1: not counted), and a last one
    for rows that are in none.
    """

    moves: Sequence[Splits]
    place: NDArray[np.int32]
    n_counted: int
    n_classes: int


def pass_over(
    codes: NDArray[Any],
    labels: NDArray[np.int32],
    slots: NDArray[np.int32],
    table: RuleTable,
    todo: Pass,
) -> NDArray[np.int64]:
    """Counts (n_counted, n_bins, n_classes) of one part; its slots are moved in place."""
    for splits in todo.moves:
        move_rows(codes, slots, table, *splits)
    # where all open nodes are counted, each keeps its place
    place = slots if todo.n_counted == len(todo.place) - 1 else todo.place[slots]
    return count_classes(codes, labels, place, todo.n_counted, table.bin_offsets, todo.n_classes)


class Parted(ABC):
    """A source whose rows lie in parts; of two children only the smaller one is counted.

    Which child is smaller follows from the counts of the level above, so that moving rows and
    counting them is one pass over the parts.

    Parameters
    ----------
    rules : Rules
    n_classes : int
    """

    def __init__(self, rules: Rules, n_classes: int) -> None:
        self._rules = rules
        self._n_classes = n_classes

    @property
    def rules(self) -> Rules:
        return self._rules

    @property
    def n_classes(self) -> int:
        return self._n_classes

    @abstractmethod
    def restart(self) -> None:
        """Put the rows of all parts into node 0."""

    @abstractmethod
    def sum_over(self, todo: Pass) -> NDArray[np.int64]:
        """The counts of all parts together."""

    def start(self) -> None:
        self._n_open = 1
        self._moves: list[Splits] = []
        self._parents: NDArray[np.int64] | None = None  # counts of the last level
        self.restart()

    def advance(self, splits: Splits) -> None:
        if self._moves:
            self._parents = None  # of the level above the last, so of no use
        self._moves.append(splits)
        self._n_open = splits.n_open

    def count(self, first: int, last: int) -> ClassCounts:
        if (first, last) != (0, self._n_open):
            counted = np.zeros(self._n_open, bool)
            counted[first:last] = True
            self._parents = None
            return ClassCounts(self._ask(counted), self._rules)
        if self._parents is None or not self._moves:
            values = self._ask(np.ones(self._n_open, bool))
        else:
            values = self._ask_smaller_children(self._parents, self._moves[-1])
        self._parents = values
        return ClassCounts(values, self._rules)

    def _ask(self, counted: NDArray[np.bool_]) -> NDArray[np.int64]:
        place = np.append(np.where(counted, np.cumsum(counted) - 1, -1), -1).astype(np.int32)
        todo = Pass(tuple(self._moves), place, int(counted.sum()), self._n_classes)
        values = self.sum_over(todo)
        self._moves = []
        return values

    def _ask_smaller_children(
        self, parents: NDArray[np.int64], splits: Splits
    ) -> NDArray[np.int64]:
        _, children = child_counts(parents, self._rules.table, splits.rule)
        both = np.flatnonzero((splits.left_slot >= 0) & (splits.right_slot >= 0))
        left, right = splits.left_slot[both], splits.right_slot[both]
        sizes = children.sum(axis=2)[:, both]
        larger = np.where(sizes[0] > sizes[1], left, right)
        smaller = np.where(sizes[0] > sizes[1], right, left)
        counted = np.ones(self._n_open, bool)
        counted[larger] = False
        some = self._ask(counted)
        values = np.empty((self._n_open, *some.shape[1:]), some.dtype)
        values[counted] = some
        values[larger] = parents[both] - values[smaller]
        return values
