"""Rows on a cluster or on disk: a fit is prepared in two passes over them."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from steadytree.data.binning import Grid
from steadytree.data.column import Summary
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.labels import check_labels
from steadytree.data.sources import Source
from steadytree.data.splits import SplitTable
from steadytree.data.table import Table

MOST_DISTINCT = 2_000_000  # values of one column that may be kept: 32 MB
Distinct = tuple[NDArray[np.float64], NDArray[np.int64]]
Known = tuple[FeatureSpace, NDArray[Any], NDArray[np.int64]]  # space, classes, class counts of bins


@dataclass(frozen=True, eq=False)
class DataSummary:
    """Summary of the columns, the labels that occur, and distinct values if the grid needs them."""

    summary: Summary
    labels: NDArray[Any]  # distinct ones
    # values and counts of each column; None for an equidistant grid, which needs ranges only
    distinct: tuple[Distinct, ...] | None = None

    @classmethod
    def at(cls, X: Any, y: Any, grid: Grid = "equidistant") -> "DataSummary":
        """Look at the rows of one part, which may be none, and check its labels."""
        table = Table.read(X)
        labels = np.unique(check_labels(y, table.n_rows))
        distinct = None
        if grid != "equidistant":
            distinct = tuple(_distinct(values) for values in table.columns)
        return cls(Summary.of(table), labels, distinct)

    def __add__(self, other: "DataSummary") -> "DataSummary":
        if 0 in (self.summary.n_rows, other.summary.n_rows):
            return other if self.summary.n_rows == 0 else self
        summary = self.summary + other.summary
        distinct = None
        if self.distinct is not None and other.distinct is not None:
            pairs = zip(summary.names, self.distinct, other.distinct, strict=True)
            distinct = tuple(_merge(name, one, two) for name, one, two in pairs)
        return DataSummary(summary, _merge_labels(self.labels, other.labels), distinct)

    def space(self, grid: Grid, n_thresholds: int) -> FeatureSpace:
        """The columns with their candidate thresholds, as all rows together give them."""
        if self.summary.n_rows == 0:
            raise ValueError("X has 0 sample(s) while a minimum of 1 is required.")
        bare = FeatureSpace(self.summary.columns())
        return bare.with_thresholds_at(grid, n_thresholds, self.distinct or ())


def _distinct(values: NDArray[Any]) -> Distinct:
    numbers = np.empty(0) if values.dtype == object else values[~np.isnan(values)]
    return np.unique(numbers, return_counts=True)


def _merge(name: str, one: Distinct, two: Distinct) -> Distinct:
    values, index = np.unique(np.concatenate([one[0], two[0]]), return_inverse=True)
    if len(values) > MOST_DISTINCT:
        raise ValueError(
            f"column {name!r} has more than {MOST_DISTINCT:,} distinct values, too many to gather "
            "from parts of the data: use grid='equidistant'."
        )
    counts = np.bincount(index, weights=np.concatenate([one[1], two[1]]), minlength=len(values))
    return values, counts.astype(np.int64)


def _merge_labels(one: NDArray[Any], two: NDArray[Any]) -> NDArray[Any]:
    both = np.concatenate([one, two])
    mixed = (one.dtype.kind in "US") != (two.dtype.kind in "US") and both.dtype.kind in "US"
    if mixed or (both.dtype == object and len({isinstance(x, str) for x in both.tolist()}) > 1):
        raise TypeError("y mixes text and numbers as labels: turn all of them into text.")
    return np.unique(both)


def class_indices(y: Any, n_rows: int, classes: NDArray[Any]) -> NDArray[np.int32]:
    """Index of each label among the classes of all parts."""
    labels = check_labels(y, n_rows)
    indices = np.searchsorted(classes, labels)
    inside = np.minimum(indices, len(classes) - 1)
    if not (classes[inside] == labels).all():
        raise ValueError(
            "y holds a label that was not there when it was first read: data that are read twice "
            "must not change between."
        )
    return inside.astype(np.int32)


class OutOfCore(Protocol):
    """Parts of the data that are read where they lie."""

    def recall(self, grid: Grid, n_thresholds: int) -> Known | None:
        """Space, classes and class counts of the bins where the rows were binned before."""

    def summarise(self, grid: Grid) -> DataSummary:
        """First pass: ranges, categories and labels of all rows."""

    def encode(self, space: FeatureSpace, classes: NDArray[Any]) -> NDArray[np.int64]:
        """Second pass: bin and keep all rows; class counts of the bins."""

    def source(self, splits: SplitTable, n_classes: int) -> Source:
        """The binned rows as a source of counts."""


def make_ready(
    parts: OutOfCore, grid: Grid, n_thresholds: int
) -> tuple[FeatureSpace, NDArray[Any], Source]:
    """Space with thresholds, classes, and the source; all as rows in memory would give them."""
    known = parts.recall(grid, n_thresholds)
    if known is None:
        summary = parts.summarise(grid)
        space = summary.space(grid, n_thresholds)
        known = space, summary.labels, parts.encode(space, summary.labels)
    space, classes, counts = known
    splits = SplitTable.of(space, counts)
    return space, classes, parts.source(splits, len(classes))
