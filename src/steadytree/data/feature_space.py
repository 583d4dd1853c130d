"""FeatureSpace: the columns of a model, and X as numbers and bins."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree._base.parallel import in_threads
from steadytree._base.validation import OneOf
from steadytree.data._kernels.counts import add_counts
from steadytree.data.binning import (
    GRIDS,
    TOGETHER,
    Grid,
    bin_index_type,
    column_blocks,
    encode_bins,
    equidistant_thresholds,
    even_bins,
    midpoint_thresholds,
    quantile_thresholds,
)
from steadytree.data.column import NO_THRESHOLDS, Bounds, Column, Kind, Summary, check_finite
from steadytree.data.table import FLAGS, Table, check_unique, is_number, quote, value_text

Categories = Mapping[str, Sequence[Any]]


@dataclass(frozen=True, repr=False)
class FeatureSpace:
    """Columns with names that differ; made from data, or declared without any.

    Missing values are nan, None or null. A category that the space does not know is treated
    like a missing value. Both follow a node's missing direction: the side chosen in training
    where the column had missing values, else the side with more training rows.

    Examples
    --------
    >>> space = FeatureSpace.observe([[0.5, 1], [2.5, 0]])
    >>> [(column.name, column.kind) for column in space]
    [('x0', 'numeric'), ('x1', 'binary')]
    """

    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        if not self.columns:
            raise ValueError("FeatureSpace: needs at least one column.")
        check_unique(self.names)

    @classmethod
    def observe(
        cls, X: Any, bounds: Bounds | None = None, categories: Categories | None = None
    ) -> "FeatureSpace":
        """Read names, kinds, bounds and categories off data; declared ones take their place."""
        table = Table.read(X)
        table.check_not_empty()
        bounds, categories = bounds or {}, categories or {}
        summary = Summary.of(table, _as_text(categories))
        _check_known("bounds", bounds, summary.names)
        _check_known("categories", categories, summary.names)
        return cls(summary.columns(bounds))

    @classmethod
    def declare(
        cls,
        bounds: Bounds | None = None,
        categories: Categories | None = None,
        kinds: Mapping[str, Kind] | None = None,
        missing: bool = True,
    ) -> "FeatureSpace":
        """A space that no data were looked at for; numeric unless `kinds` says otherwise."""
        kinds = kinds or {}
        columns = [
            Column(name, kinds.get(name, "numeric"), float(low), float(high), missing=missing)
            for name, (low, high) in (bounds or {}).items()
        ]
        columns += [
            Column(name, "categorical", categories=listed, missing=missing)
            for name, listed in _as_text(categories or {}).items()
        ]
        return cls(tuple(columns))

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @cached_property
    def categories(self) -> tuple[tuple[str, ...], ...]:
        """Categories of each column, none for numbers."""
        return tuple(column.categories for column in self.columns)

    @cached_property
    def n_categories(self) -> NDArray[np.int64]:
        """Number of categories of each column, 0 for numbers."""
        sizes = np.array([len(column.categories) for column in self.columns], dtype=np.int64)
        sizes.flags.writeable = False
        return sizes

    @cached_property
    def bounds(self) -> NDArray[np.float64]:
        """Lower and upper bound of each column (2, p); nan for categories."""
        bounds = np.array([[column.low, column.high] for column in self.columns]).T.copy()
        bounds.flags.writeable = False
        return bounds

    @property
    def categorical(self) -> NDArray[np.bool_]:
        return np.array([column.is_categorical for column in self.columns])

    def __len__(self) -> int:
        return len(self.columns)

    def __repr__(self) -> str:
        return f"FeatureSpace({len(self)} columns: {quote(self.names)})"

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __getitem__(self, index: int) -> Column:
        return self.columns[index]

    def bare(self) -> "FeatureSpace":
        """The same space without candidate thresholds: what a tree keeps."""
        if all(column.thresholds is NO_THRESHOLDS for column in self.columns):
            return self
        return FeatureSpace(tuple(column.bare() for column in self.columns))

    def typed_like(self, X: Any, fitted: bool = False) -> "FeatureSpace":
        """The space with kinds that depend on the types of X alone, never on its values.

        A column of numbers is binary where its type in X is bool, and integer where that type is
        integer or, for the space of a fitted model, where the model knows it as such. It is numeric
        elsewhere, and wherever the space saw a fraction when it was made. What a fitted model knows
        as binary, from 0 and 1 alone, stays so.
        """
        table = Table.read(X).select(self.names)
        types = table.types or (None,) * len(self)
        pairs = zip(self.columns, types, strict=True)
        return FeatureSpace(tuple(_typed(column, type_, fitted) for column, type_ in pairs))

    def encode(self, X: Any) -> NDArray[Any]:
        """X as a float array (n, p): numbers as they are, categories as their index, missing nan.

        Frames are read by column name and may hold more columns; arrays by position.
        """
        table = Table.read(X).select(self.names)
        if table.matrix is not None and not self.categorical.any():
            matrix = table.matrix
        else:
            matrix = np.empty((table.n_rows, len(self)))
            for j, column in enumerate(self):
                matrix[:, j] = _encode_column(column, table, j)
        with np.errstate(over="ignore", invalid="ignore"):  # finite values may have no finite sum
            total = matrix.sum()
        if not np.isfinite(total):  # quick: only then look for where
            check_finite(compress(self.names, np.isinf(matrix).any(axis=0)))
        return matrix

    def with_thresholds(
        self,
        values: NDArray[Any],
        grid: Grid = "equidistant",
        n_thresholds: int = 500,
        weights: NDArray[np.float64] | None = None,
    ) -> "FeatureSpace":
        """The space with candidate thresholds; equidistant ones come from the bounds alone.

        `values` is what `encode` returned; a binary column gets one threshold.
        """
        pairs = [(values[:, j], weights) for j in range(len(self))]
        return self.with_thresholds_at(grid, n_thresholds, pairs)

    def with_thresholds_at(
        self, grid: Grid, n_thresholds: int, distinct: Sequence[tuple[NDArray[Any], Any]] = ()
    ) -> "FeatureSpace":
        """As `with_thresholds`, from the values of each column with their weights or counts."""
        OneOf(*GRIDS).check(grid, "grid")
        together = max(TOGETHER // n_thresholds, 1)  # as in `column_blocks`
        even: list[NDArray[np.float64]] = []
        columns = list(self.columns)
        for j, column in enumerate(self.columns):
            if grid == "equidistant" and j % together == 0:
                even = equidistant_thresholds(self.columns[j : j + together], n_thresholds)
            if column.is_categorical:
                continue
            if column.kind == "binary" and column.low < column.high:
                thresholds = np.array([0.5])
            elif grid == "equidistant":
                thresholds = even[j % together]
            elif grid == "quantile":
                thresholds = quantile_thresholds(distinct[j][0], n_thresholds, distinct[j][1])
            else:
                thresholds = midpoint_thresholds(column.name, distinct[j][0])
            columns[j] = column.with_thresholds(thresholds)
        return FeatureSpace(tuple(columns))

    def with_even_bins(self, n_bins: int) -> "FeatureSpace":
        """The space with the thresholds of at most `n_bins` even bins a column."""
        return FeatureSpace(
            tuple(c if c.is_categorical else c.with_thresholds(even_bins(c, n_bins)) for c in self)
        )

    def binned(self, values: NDArray[Any]) -> NDArray[Any]:
        """Bins (p, n) of encoded values, feature by feature; missing is a column's last bin.

        Values beyond the outermost thresholds fall into the outermost bins.
        """
        kind, sizes = bin_index_type(self._most_bins, len(values)), np.array(self.n_categories)
        binned = np.empty((len(self), len(values)), kind)
        for first, last in column_blocks(self.bin_offsets):
            thresholds = [column.thresholds for column in self.columns[first:last]]
            offsets = np.cumsum([0, *map(len, thresholds)], dtype=np.int64)
            own = offsets, sizes[first:last], binned[first:last]
            encode_bins(values, np.concatenate(thresholds), *own, first)
        return binned

    def bin_table(self, table: Table) -> NDArray[Any]:
        """Bins (p, n) of a table, column by column: no matrix of all values is made.

        All parts of the data have one type, the smallest, however few rows one has.
        """
        table = table.select(self.names)
        binned = np.empty((len(self), table.n_rows), bin_index_type(self._most_bins))
        for j, column in enumerate(self):
            encoded = np.ascontiguousarray(_encode_column(column, table, j))[:, None]
            ends, own = np.array([0, len(column.thresholds)]), slice(j, j + 1)
            encode_bins(
                encoded, column.thresholds, ends, np.array(self.n_categories[own]), binned[own]
            )
        return binned

    @property
    def _most_bins(self) -> int:
        return max(column.n_bins for column in self.columns)

    @cached_property
    def bin_offsets(self) -> NDArray[np.int64]:
        """Where the bins of each column begin; the last bin of a column is for missing values."""
        sizes = [column.n_bins + 1 for column in self.columns]
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    def count_bins(
        self,
        binned: NDArray[Any],
        labels: NDArray[np.int32],
        n_classes: int,
        weights: NDArray[np.float64] | None = None,
        columns: tuple[int, int] | None = None,
    ) -> NDArray[Any]:
        """Rows (or summed weights) of each class in every bin, (n_bins, n_classes).

        Of a range of columns (first, last) only, where one is given.
        """
        root, every = np.zeros(len(labels), np.int32), np.empty(0, np.uint32)
        own = np.empty(0, np.int64) if weights is None else weights
        first, last = columns or (0, len(self))
        offsets = self.bin_offsets - self.bin_offsets[first]
        counts = np.zeros((1, offsets[last], n_classes), own.dtype)

        def add(start: int, end: int) -> None:
            given = binned, every, labels, root, own, offsets, counts
            add_counts(*given, first + start, first + end)

        in_threads(add, last - first, (last - first) * len(labels))
        return counts[0]


def _typed(column: Column, type_: str | None, fitted: bool) -> Column:
    if column.kind in ("categorical", "numeric") or (fitted and column.kind == "binary"):
        return column
    kind: Kind = "integer" if fitted or type_ is not None else "numeric"
    return replace(column, kind="binary" if type_ == "binary" else kind)


def _check_known(parameter: str, declared: Mapping[str, Any], names: Sequence[str]) -> None:
    unknown = [name for name in declared if name not in names]
    if unknown:
        raise ValueError(f"{parameter} names {quote(unknown)}, but X has {quote(names)}.")


def _encode_column(column: Column, table: Table, j: int) -> NDArray[Any]:
    if not column.is_categorical:
        if table.columns[j].dtype != object:
            return table.columns[j]
        flags = table.flags(j)  # as a csv file holds a column of bools
        if flags is not None:
            return flags
        raise ValueError(
            f"column {column.name!r} was numbers when the model was fitted and now holds text"
            f"{_first_text(table.text(j).values)}: convert it to numbers, missing ones to nan."
        )
    known = column.index_of
    text = table.text_for(j, known)
    return np.array([*(known.get(value, np.nan) for value in text.values), np.nan])[text.of_row]


def _first_text(values: Iterable[str]) -> str:
    found = next((v for v in values if not is_number(v) and v not in FLAGS), None)
    return "" if found is None else f" such as {found!r}"


def _as_text(categories: Categories) -> dict[str, tuple[str, ...]]:
    return {
        name: tuple(value_text(value) for value in listed) for name, listed in categories.items()
    }
