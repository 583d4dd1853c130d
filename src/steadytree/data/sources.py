"""Summed: many sources that look like one, because their counts add."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from steadytree.data._kernels import (
    SplitArrays,
    child_counts,
    count_classes,
    move_rows,
    weigh_classes,
)
from steadytree.data.splits import SplitTable


@dataclass(frozen=True, eq=False)
class ClassCounts:
    """Rows per open node, bin and class; counts of disjoint sets of rows add.

    Parameters
    ----------
    values : array of shape (n_nodes, n_bins, n_classes)
        int64, or float64 where rows have weights. The bins of feature j are
        ``rules.table.bin_offsets[j]`` up to ``bin_offsets[j + 1]``.
    rules : SplitTable
        The bins and what may be asked of them.
    """

    values: NDArray[Any]
    rules: SplitTable

    def __post_init__(self) -> None:
        if self.values.ndim != 3 or self.values.shape[1] != self.rules.n_bins:
            raise ValueError(
                f"ClassCounts: values must have shape (nodes, {self.rules.n_bins} bins, classes), "
                f"got {self.values.shape}."
            )
        if self.values.dtype not in (np.int64, np.float64):
            raise ValueError(f"ClassCounts: int64 or float64 needed, got {self.values.dtype}.")

    def __add__(self, other: "ClassCounts") -> "ClassCounts":
        if self.values.shape != other.values.shape:
            raise ValueError(
                f"ClassCounts: shapes differ, {self.values.shape} and {other.values.shape}: "
                "all sources must share one feature space and one list of classes."
            )
        return ClassCounts(self.values + other.values, self.rules)


class Splits(NamedTuple):
    """What was decided at the last level, per open node of it.

    rule -1 closes a node; a child slot of -1 is closed as well, others number the next level.
    """

    rule: NDArray[np.int64]
    left_slot: NDArray[np.int64]
    right_slot: NDArray[np.int64]

    @property
    def n_open(self) -> int:
        """Nodes of the next level."""
        return int(max(self.left_slot.max(initial=-1), self.right_slot.max(initial=-1))) + 1


class Source(Protocol):
    """Where class counts come from: rows in memory, a sum of holders, a cluster."""

    @property
    def rules(self) -> SplitTable: ...

    @property
    def n_classes(self) -> int: ...

    def start(self) -> None:
        """Put all rows into one open node, the root."""

    def advance(self, splits: Splits) -> None:
        """Send rows on by the splits of the last level."""

    def count(self, first: int, last: int) -> ClassCounts:
        """Counts of the open nodes first up to, not including, last."""


SMALL = 100_000  # codes; below this, counting again is cheaper than sorting out what to subtract


class Rows:
    """One holder's rows as codes; answers counts for the open nodes of a level.

    Parameters
    ----------
    codes : array of shape (n_features, n_rows)
        Codes of the bins of `rules`.
    labels : int32 array of shape (n_rows,)
    rules : SplitTable
    n_classes : int
    weights : float64 array of shape (n_rows,), optional
    """

    def __init__(
        self,
        codes: NDArray[Any],
        labels: NDArray[np.int32],
        rules: SplitTable,
        n_classes: int,
        weights: NDArray[np.float64] | None = None,
    ) -> None:
        self._codes = codes
        self._labels = labels
        self._weights = weights
        self._rules = rules
        self._n_classes = n_classes
        self.start()

    @property
    def rules(self) -> SplitTable:
        return self._rules

    @property
    def n_classes(self) -> int:
        return self._n_classes

    def start(self) -> None:
        self._slots = np.zeros(len(self._labels), np.int32)
        self._n_open = 1
        self._parents: NDArray[Any] | None = None  # counts of the last level, where kept
        self._splits: Splits | None = None

    def advance(self, splits: Splits) -> None:
        move_rows(self._codes, self._slots, self._rules.table, *splits)
        self._splits = splits
        self._n_open = splits.n_open

    def count(self, first: int, last: int) -> ClassCounts:
        whole_level = (first, last) == (0, self._n_open)
        parents, splits = self._parents, self._splits
        subtract = whole_level and self._codes.size > SMALL
        if subtract and parents is not None and splits is not None:
            values = self._count_smaller_children(parents, splits)
        else:
            slots = self._slots
            if not whole_level:
                inside = (slots >= first) & (slots < last)
                slots = np.where(inside, slots - first, -1).astype(np.int32)
            values = self._count(slots, last - first)
        # fractions do not subtract exactly, so with weights every node is counted
        self._parents = values if whole_level and self._weights is None else None
        return ClassCounts(values, self._rules)

    def rows_in(self, slot: int) -> NDArray[np.int64]:
        """Numbers of the rows in an open node."""
        return np.flatnonzero(self._slots == slot)

    def _count(self, slots: NDArray[np.int32], n_slots: int) -> NDArray[Any]:
        offsets = self._rules.table.bin_offsets
        if self._weights is None:
            return count_classes(
                self._codes, self._labels, slots, n_slots, offsets, self._n_classes
            )
        return weigh_classes(
            self._codes, self._labels, slots, self._weights, n_slots, offsets, self._n_classes
        )

    def _count_smaller_children(self, parents: NDArray[Any], splits: Splits) -> NDArray[Any]:
        """Count the smaller child of each pair; the other is what is left of the parent."""
        sizes = np.bincount(self._slots + 1, minlength=self._n_open + 1)[1:]
        left, right = splits.left_slot, splits.right_slot
        both = np.flatnonzero((left >= 0) & (right >= 0))
        left_is_larger = sizes[left[both]] > sizes[right[both]]
        larger = np.where(left_is_larger, left[both], right[both])
        smaller = np.where(left_is_larger, right[both], left[both])
        counted = np.ones(self._n_open, bool)
        counted[larger] = False
        place = np.append(np.where(counted, np.cumsum(counted) - 1, -1), -1).astype(np.int32)
        some = self._count(place[self._slots], int(counted.sum()))
        values = np.empty((self._n_open, *some.shape[1:]), some.dtype)
        values[counted] = some
        values[larger] = parents[both] - values[smaller]
        return values


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
    table: SplitArrays,
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
    rules : SplitTable
    n_classes : int
    """

    def __init__(self, rules: SplitTable, n_classes: int) -> None:
        self._rules = rules
        self._n_classes = n_classes

    @property
    def rules(self) -> SplitTable:
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


class Summed:
    """Sources over one feature space and one list of classes, asked together and added up.

    Parameters
    ----------
    sources : sequence of Source
    """

    def __init__(self, sources: Sequence[Source]) -> None:
        if not sources:
            raise ValueError("Summed: needs at least one source.")
        shapes = {(source.rules.n_bins, source.n_classes) for source in sources}
        if len(shapes) > 1:
            raise ValueError(
                f"Summed: sources differ in (bins, classes), got {sorted(shapes)}: "
                "make all of them from one FeatureSpace and one list of classes."
            )
        self._sources = tuple(sources)

    @property
    def rules(self) -> SplitTable:
        return self._sources[0].rules

    @property
    def n_classes(self) -> int:
        return self._sources[0].n_classes

    def start(self) -> None:
        for source in self._sources:
            source.start()

    def advance(self, splits: Splits) -> None:
        for source in self._sources:
            source.advance(splits)

    def count(self, first: int, last: int) -> ClassCounts:
        return reduce(add, (source.count(first, last) for source in self._sources))
