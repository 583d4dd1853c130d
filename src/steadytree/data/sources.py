"""Sources of class counts: rows in memory, in parts, or summed over several sources."""

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
    """Rows per open node, bin and class; counts of disjoint sets of rows add."""

    # (n_nodes, n_bins, n_classes), int64, or float64 if rows have weights; the bins of feature j
    # are splits.table.bin_offsets[j] up to bin_offsets[j + 1]
    values: NDArray[Any]
    splits: SplitTable

    def __post_init__(self) -> None:
        if self.values.ndim != 3 or self.values.shape[1] != self.splits.n_bins:
            raise ValueError(
                f"ClassCounts: values must have shape (nodes, {self.splits.n_bins} bins, classes), "
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
        return ClassCounts(self.values + other.values, self.splits)


class LevelSplits(NamedTuple):
    """The splits chosen at the last level, per open node of it.

    A split of -1 closes a node; a child of -1 is closed, others number the nodes of the next level.
    """

    split: NDArray[np.int64]
    left_node: NDArray[np.int64]
    right_node: NDArray[np.int64]

    @property
    def n_open(self) -> int:
        """Nodes of the next level."""
        return int(max(self.left_node.max(initial=-1), self.right_node.max(initial=-1))) + 1


class Source(Protocol):
    """Where class counts come from: rows in memory, a sum of holders, a cluster."""

    @property
    def splits(self) -> SplitTable: ...

    @property
    def n_classes(self) -> int: ...

    def start(self) -> None:
        """Put all rows into one open node, the root."""

    def advance(self, level: LevelSplits) -> None:
        """Send rows on by the splits of the last level."""

    def count(self, first: int, last: int) -> ClassCounts:
        """Counts of the open nodes first up to, not including, last."""


SMALL = 100_000  # values; below this, counting again is cheaper than finding out what to subtract


class Rows:
    """Binned rows (n_features, n_rows) in memory, in the bins of `splits`."""

    def __init__(
        self,
        binned: NDArray[Any],
        labels: NDArray[np.int32],
        splits: SplitTable,
        n_classes: int,
        weights: NDArray[np.float64] | None = None,
    ) -> None:
        self._binned = binned
        self._labels = labels
        self._weights = weights
        self._splits = splits
        self._n_classes = n_classes
        self.start()

    @property
    def splits(self) -> SplitTable:
        return self._splits

    @property
    def n_classes(self) -> int:
        return self._n_classes

    def start(self) -> None:
        self._node_of_row = np.zeros(len(self._labels), np.int32)
        self._n_open = 1
        self._parents: NDArray[Any] | None = None  # counts of the last level, where kept
        self._level: LevelSplits | None = None

    def advance(self, level: LevelSplits) -> None:
        move_rows(self._binned, self._node_of_row, self._splits.table, *level)
        self._level = level
        self._n_open = level.n_open

    def count(self, first: int, last: int) -> ClassCounts:
        whole_level = (first, last) == (0, self._n_open)
        parents, level = self._parents, self._level
        subtract = whole_level and self._binned.size > SMALL
        if subtract and parents is not None and level is not None:
            values = self._count_smaller_children(parents, level)
        else:
            node_of_row = self._node_of_row
            if not whole_level:
                inside = (node_of_row >= first) & (node_of_row < last)
                node_of_row = np.where(inside, node_of_row - first, -1).astype(np.int32)
            values = self._count(node_of_row, last - first)
        # fractions do not subtract exactly, so with weights every node is counted
        self._parents = values if whole_level and self._weights is None else None
        return ClassCounts(values, self._splits)

    def rows_in(self, node: int) -> NDArray[np.int64]:
        """Numbers of the rows in an open node."""
        return np.flatnonzero(self._node_of_row == node)

    def _count(self, node_of_row: NDArray[np.int32], n_nodes: int) -> NDArray[Any]:
        offsets = self._splits.table.bin_offsets
        if self._weights is None:
            return count_classes(
                self._binned, self._labels, node_of_row, n_nodes, offsets, self._n_classes
            )
        return weigh_classes(
            self._binned,
            self._labels,
            node_of_row,
            self._weights,
            n_nodes,
            offsets,
            self._n_classes,
        )

    def _count_smaller_children(self, parents: NDArray[Any], level: LevelSplits) -> NDArray[Any]:
        """Count the smaller child of each pair; the other is what is left of the parent."""
        sizes = np.bincount(self._node_of_row + 1, minlength=self._n_open + 1)[1:]
        left, right = level.left_node, level.right_node
        both = np.flatnonzero((left >= 0) & (right >= 0))
        left_is_larger = sizes[left[both]] > sizes[right[both]]
        larger = np.where(left_is_larger, left[both], right[both])
        smaller = np.where(left_is_larger, right[both], left[both])
        counted = np.ones(self._n_open, bool)
        counted[larger] = False
        place = np.append(np.where(counted, np.cumsum(counted) - 1, -1), -1).astype(np.int32)
        some = self._count(place[self._node_of_row], int(counted.sum()))
        values = np.empty((self._n_open, *some.shape[1:]), some.dtype)
        values[counted] = some
        values[larger] = parents[both] - values[smaller]
        return values


class Pass(NamedTuple):
    """What to do with every part: move its rows by some splits, then count some of the nodes.

    place has an entry for each open node, where its counts go (-1: not counted), and a last one
    for rows that are in none.
    """

    moves: Sequence[LevelSplits]
    place: NDArray[np.int32]
    n_counted: int
    n_classes: int


def pass_over(
    binned: NDArray[Any],
    labels: NDArray[np.int32],
    node_of_row: NDArray[np.int32],
    table: SplitArrays,
    todo: Pass,
) -> NDArray[np.int64]:
    """Counts (n_counted, n_bins, n_classes) of one part; nodes of rows are updated in place."""
    for level in todo.moves:
        move_rows(binned, node_of_row, table, *level)
    # where all open nodes are counted, each keeps its place
    place = node_of_row if todo.n_counted == len(todo.place) - 1 else todo.place[node_of_row]
    return count_classes(binned, labels, place, todo.n_counted, table.bin_offsets, todo.n_classes)


class Parted(ABC):
    """A source whose rows lie in parts; of two children only the smaller one is counted.

    Which child is smaller follows from the counts of the level above, so that moving rows and
    counting them is one pass over the parts.
    """

    def __init__(self, splits: SplitTable, n_classes: int) -> None:
        self._splits = splits
        self._n_classes = n_classes

    @property
    def splits(self) -> SplitTable:
        return self._splits

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
        self._moves: list[LevelSplits] = []
        self._parents: NDArray[np.int64] | None = None  # counts of the last level
        self.restart()

    def advance(self, level: LevelSplits) -> None:
        if self._moves:
            self._parents = None  # of the level above the last, so of no use
        self._moves.append(level)
        self._n_open = level.n_open

    def count(self, first: int, last: int) -> ClassCounts:
        if (first, last) != (0, self._n_open):
            counted = np.zeros(self._n_open, bool)
            counted[first:last] = True
            self._parents = None
            return ClassCounts(self._ask(counted), self._splits)
        if self._parents is None or not self._moves:
            values = self._ask(np.ones(self._n_open, bool))
        else:
            values = self._ask_smaller_children(self._parents, self._moves[-1])
        self._parents = values
        return ClassCounts(values, self._splits)

    def _ask(self, counted: NDArray[np.bool_]) -> NDArray[np.int64]:
        place = np.append(np.where(counted, np.cumsum(counted) - 1, -1), -1).astype(np.int32)
        todo = Pass(tuple(self._moves), place, int(counted.sum()), self._n_classes)
        values = self.sum_over(todo)
        self._moves = []
        return values

    def _ask_smaller_children(
        self, parents: NDArray[np.int64], level: LevelSplits
    ) -> NDArray[np.int64]:
        _, children = child_counts(parents, self._splits.table, level.split)
        both = np.flatnonzero((level.left_node >= 0) & (level.right_node >= 0))
        left, right = level.left_node[both], level.right_node[both]
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
    """Sources over one feature space and one list of classes, whose counts are added up."""

    def __init__(self, sources: Sequence[Source]) -> None:
        if not sources:
            raise ValueError("Summed: needs at least one source.")
        shapes = {(source.splits.n_bins, source.n_classes) for source in sources}
        if len(shapes) > 1:
            raise ValueError(
                f"Summed: sources differ in (bins, classes), got {sorted(shapes)}: "
                "make all of them from one FeatureSpace and one list of classes."
            )
        self._sources = tuple(sources)

    @property
    def splits(self) -> SplitTable:
        return self._sources[0].splits

    @property
    def n_classes(self) -> int:
        return self._sources[0].n_classes

    def start(self) -> None:
        for source in self._sources:
            source.start()

    def advance(self, level: LevelSplits) -> None:
        for source in self._sources:
            source.advance(level)

    def count(self, first: int, last: int) -> ClassCounts:
        return reduce(add, (source.count(first, last) for source in self._sources))
