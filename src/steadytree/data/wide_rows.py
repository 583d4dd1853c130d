"""WideRows: rows in memory whose class counts of all columns would take much memory."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadytree.data._kernels.counts import SplitArrays, add_counts, child_counts, move_rows
from steadytree.data.binning import TOGETHER, column_blocks
from steadytree.data.sources import LevelSplits
from steadytree.data.splits import SplitTable


class ColumnBlock(NamedTuple):
    """A range of columns, and its splits as if there were no other columns."""

    first: int
    last: int
    first_split: int
    table: SplitArrays


@dataclass(frozen=True, eq=False)
class CountsByColumn:
    """Rows per open node, bin and class, counted for a block of columns when they are asked for."""

    splits: SplitTable
    blocks: tuple[ColumnBlock, ...]  # all columns, in order
    count: Callable[[ColumnBlock], NDArray[Any]]  # (n_nodes, bins of the block, n_classes)

    @cached_property
    def totals(self) -> NDArray[Any]:
        """Class counts (n_nodes, n_classes), added up bin by bin as kernels do."""
        counts = self.count(block_of(self.splits, 0, 1))
        none = np.zeros_like(counts, shape=(len(counts), 1, counts.shape[2]))
        return np.cumsum(np.concatenate([none, counts], axis=1), axis=1)[:, -1]

    def children(self, split: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[Any]]:
        """See `ClassCounts.children`."""
        found = np.zeros((2, *self.totals.shape), self.totals.dtype)
        for node, chosen in enumerate(split.tolist()):
            if chosen < 0:
                continue
            column = int(self.splits.table.feature[chosen])
            own = block_of(self.splits, column, column + 1)
            within = np.array([chosen - own.first_split])
            counts = self.count(own)[node : node + 1]
            found[:, node] = child_counts(counts, own.table, within)[1][:, 0]
        return self.totals, found


def block_of(splits: SplitTable, first: int, last: int) -> ColumnBlock:
    """The splits of columns first up to last, numbered anew."""
    table = splits.table
    bins, offsets, candidates = (
        part[first : last + 1] - part[first]
        for part in (table.bin_offsets, table.offsets, table.candidate_offsets)
    )
    start, end = int(table.offsets[first]), int(table.offsets[last])
    feature = table.feature[start:end] - np.int32(first)
    rest = (part[start:end] for part in table[4:9])
    own = SplitArrays(bins, table.bin_sizes[first:last], offsets, feature, *rest, candidates)  # type: ignore[call-arg]
    return ColumnBlock(first, last, start, own)


class WideRows:
    """Binned rows (n_features, n_rows) in memory, of many columns.

    They stay as they are, and only which node each row is in is kept: a level copies no bins, and
    counts are made for some columns at a time.
    """

    block_counters = 1  # a node is counted after another

    def __init__(
        self,
        binned: NDArray[Any],
        labels: NDArray[np.int32],
        splits: SplitTable,
        n_classes: int,
        weights: NDArray[np.float64] | None = None,
    ) -> None:
        self.splits, self.n_classes, self.n_values = splits, n_classes, binned.size
        self._binned, self._labels = binned, labels
        self._weights = np.empty(0, np.int64) if weights is None else weights
        ranges = column_blocks(splits.table.bin_offsets, max(TOGETHER // n_classes, 1))
        self._blocks = tuple(block_of(splits, *each) for each in ranges)

    def start(self) -> None:
        self._nodes = np.zeros(len(self._labels), np.int32)

    def advance(self, level: LevelSplits) -> None:
        move_rows(self._binned, self._nodes, self.splits.table, *level)

    def count(self, first: int, last: int) -> CountsByColumn:
        rows = np.flatnonzero((self._nodes >= first) & (self._nodes < last)).astype(np.uint32)
        nodes, labels = self._nodes[rows] - np.int32(first), self._labels[rows]
        weights = self._weights[rows] if len(self._weights) else self._weights
        starts = self.splits.table.bin_offsets

        def count(block: ColumnBlock) -> NDArray[Any]:
            n_bins = int(block.table.bin_offsets[-1])
            counts = np.zeros((last - first, n_bins, self.n_classes), weights.dtype)
            given = rows, labels, nodes, weights, starts - starts[block.first], counts
            add_counts(self._binned, *given, block.first, block.last)
            return counts

        return CountsByColumn(self.splits, self._blocks, count)
