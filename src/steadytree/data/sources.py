"""Sources of class counts: rows in memory, in parts, or summed over several sources."""

from __future__ import annotations  # those of inner functions would be made anew at each call

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce
from operator import add
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from steadytree._base.parallel import LEAST_WORK, in_threads
from steadytree.data._kernels.counts import (
    SplitArrays,
    child_counts,
    count_classes,
    count_nodes,
    move_rows,
    order_rows,
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

    def children(self, split: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Class counts of each node, and of its children; see `child_counts`."""
        return child_counts(self.values, self.splits.table, split)

    def __add__(self, other: ClassCounts) -> ClassCounts:
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

    @property
    def block_counters(self) -> int:
        """Counters to ask for at once, at most."""

    @property
    def n_values(self) -> int:
        """Values that a level reads; 0 where nodes must be counted one after another."""

    def start(self) -> None:
        """Put all rows into one open node, the root."""

    def advance(self, level: LevelSplits) -> None:
        """Send rows on by the splits of the last level.

        Open nodes are numbered in the order of their parents, left before right.
        """

    def count(self, first: int, last: int) -> Any:
        """Counts of the open nodes first up to, not including, last: ClassCounts.

        Or, from `WideRows`, CountsByColumn.
        """


class Pass(NamedTuple):
    """What to do with every part: move its rows by some splits, then count some of the nodes."""

    moves: Sequence[LevelSplits]
    # for each open node, the index of its counts (-1: not counted); a last entry for closed rows
    index_of_node: NDArray[np.int32]
    n_counted: int
    n_classes: int


def pass_over(
    binned: NDArray[Any],
    labels: NDArray[np.int32],
    node_of_row: NDArray[np.int32],
    table: SplitArrays,
    todo: Pass,
    weights: NDArray[np.float64] | None = None,
) -> NDArray[Any]:
    """Counts (n_counted, n_bins, n_classes) of one part; nodes of rows are updated in place."""
    for level in todo.moves:
        move_rows(binned, node_of_row, table, *level)
    # where all open nodes are counted, each keeps its index
    counts_all = todo.n_counted == len(todo.index_of_node) - 1
    index = node_of_row if counts_all else todo.index_of_node[node_of_row]
    sizes = (todo.n_counted, table.bin_offsets, todo.n_classes)
    if weights is None:
        return count_classes(binned, labels, index, *sizes)
    return weigh_classes(binned, labels, index, weights, *sizes)


class Parted(ABC):
    """A source whose rows lie in parts; of two children only the smaller one is counted.

    Which child is smaller follows from the counts of the level above, so that moving rows and
    counting them is one pass over the parts.
    """

    block_counters = 16_000_000  # 128 MB: each block is a pass over all rows
    n_values = 0

    def __init__(self, splits: SplitTable, n_classes: int) -> None:
        self.splits, self.n_classes = splits, n_classes

    @abstractmethod
    def restart(self) -> None:
        """Put the rows of all parts into node 0."""

    @abstractmethod
    def sum_over(self, todo: Pass) -> NDArray[Any]:
        """The counts of all parts together."""

    def start(self) -> None:
        self._n_open, self._first = 1, 0
        self._moves: list[LevelSplits] = []
        self._parents: NDArray[Any] | None = None  # counts of the last level
        self.restart()

    def advance(self, level: LevelSplits) -> None:
        if self._moves:
            self._parents = None  # of the level above the last, so of no use
        self._moves.append(level)
        self._n_open = level.n_open

    def count(self, first: int, last: int) -> ClassCounts:
        self._first = first
        counted = np.zeros(self._n_open, bool)
        counted[first:last] = True
        if not counted.all():
            self._parents = None
            return ClassCounts(self._ask(counted), self.splits)
        if self._parents is None or not self._moves:
            self._parents = self._ask(counted)
        else:
            self._parents = self._ask_smaller_children(self._parents, self._moves[-1])
        return ClassCounts(self._parents, self.splits)

    def _ask(self, counted: NDArray[np.bool_]) -> NDArray[Any]:
        index = np.append(np.where(counted, np.cumsum(counted) - 1, -1), -1).astype(np.int32)
        moves, self._moves = tuple(self._moves), []
        return self.sum_over(Pass(moves, index, int(counted.sum()), self.n_classes))

    def _ask_smaller_children(self, parents: NDArray[Any], level: LevelSplits) -> NDArray[Any]:
        """Count the smaller child of each pair; the other is what is left of the parent."""
        _, children = child_counts(parents, self.splits.table, level.split)
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


TURNED = 2_048  # rows
NODE_RANGES = 4  # of nodes, a thread: some nodes have more rows than others


class Rows:
    """Binned rows (n_features, n_rows) in memory, in the bins of `splits`.

    They are kept in the order of their nodes, so that some of the nodes can be counted without
    reading the rows of the others. Unless `in_order`, threads may ask for nodes at the same time:
    then whoever chooses splits must not draw numbers one after another, nor call `rows_in`.
    """

    block_counters = 250_000  # 2 MB: they stay in the cache

    def __init__(
        self,
        binned: NDArray[Any],
        labels: NDArray[np.int32],
        splits: SplitTable,
        n_classes: int,
        weights: NDArray[np.float64] | None = None,
        in_order: bool = True,
    ) -> None:
        self.splits, self.n_classes, self._in_order = splits, n_classes, in_order
        self._binned, self._labels, self._weights = binned, labels, weights

    @property
    def n_values(self) -> int:
        return 0 if self._in_order else self._ordered[0].size

    def start(self) -> None:
        n_rows, weights = len(self._labels), self._weights
        own_weights = np.empty(0, np.int64) if weights is None else weights.copy()
        rows = np.arange(n_rows, dtype=np.uint32)
        bins = np.empty(self._binned.shape[::-1], self._binned.dtype)

        def turn(first: int, last: int) -> None:
            for row in range(first, last, TURNED):  # both forms of so many rows stay in the cache
                some = slice(row, min(row + TURNED, last))
                bins[some] = self._binned[:, some].T

        in_threads(turn, n_rows, bins.size)
        self._ordered: tuple[NDArray[Any], ...] = (bins, self._labels.copy(), own_weights, rows)
        self._starts, self._first = np.array([0, n_rows]), 0

    def advance(self, level: LevelSplits) -> None:
        size, table = self._ordered[0].size, self.splits.table
        if size < LEAST_WORK:  # nothing for threads, which take longer to be asked
            order, self._starts = order_rows(self._ordered[0], self._starts, table, *level)
            self._ordered = tuple(part[order] if len(part) else part for part in self._ordered)
            return
        pieces = in_threads(partial(self._order, level), len(level.split), size, NODE_RANGES)
        order, self._starts = pieces[0]
        if len(pieces) > 1:
            order, ends = np.concatenate([one for one, _ in pieces]), [0]
            for _, own in pieces:
                ends.extend((own[1:] + ends[-1]).tolist())
            self._starts = np.array(ends)

        def taken(part: NDArray[Any]) -> NDArray[Any]:
            out = np.empty((len(order), *part.shape[1:]), part.dtype)

            def take(first: int, last: int) -> None:
                np.take(part, order[first:last], axis=0, out=out[first:last], mode="clip")

            in_threads(take, len(order), size)
            return out

        self._ordered = tuple(taken(part) if len(part) else part for part in self._ordered)

    def _order(
        self, level: LevelSplits, first: int, last: int
    ) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """The rows of some nodes in the order of the next level, and where its nodes end."""
        split, left, right = (part[first:last] for part in level)
        if first:  # open ones are numbered in order, and those of this range begin with 0
            before = sum(int((part[:first] >= 0).sum()) for part in level[1:])
            left, right = (np.where(part < 0, -1, part - before) for part in (left, right))
        starts, table = self._starts[first : last + 1], self.splits.table
        return order_rows(self._ordered[0], starts, table, split, left, right)

    def count(self, first: int, last: int) -> ClassCounts:
        self._first, table = first, self.splits.table
        shape = (last - first, self.splits.n_bins * self.n_classes)
        counts = np.zeros(shape, self._ordered[2].dtype)
        starts = self._starts[first : last + 1]
        bins, *rest = self._ordered[:3]
        given = (bins, *rest, starts, table.bin_offsets, self.n_classes, counts)
        n_values = int(starts[-1] - starts[0]) * bins.shape[1]
        in_threads(partial(count_nodes, *given), bins.shape[1], n_values)
        return ClassCounts(counts.reshape(last - first, -1, self.n_classes), self.splits)

    def rows_in(self, node: int) -> NDArray[np.int64]:
        """Numbers of the rows in a node, the first of those counted last being 0."""
        first, last = self._starts[self._first + node : self._first + node + 2]
        return self._ordered[3][first:last].astype(np.int64)


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
        self.splits, self.n_classes = sources[0].splits, sources[0].n_classes
        self.block_counters = max(source.block_counters for source in sources)
        self.n_values = 0

    def start(self) -> None:
        for source in self._sources:
            source.start()

    def advance(self, level: LevelSplits) -> None:
        for source in self._sources:
            source.advance(level)

    def count(self, first: int, last: int) -> ClassCounts:
        return reduce(add, (source.count(first, last) for source in self._sources))
