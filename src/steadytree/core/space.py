"""FeatureSpace: the columns a tree may ask about, and X as numbers and codes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.core.column import NO_CUTS, Column, Kind
from steadytree.core.grid import (
    GRIDS,
    Grid,
    equidistant_cuts,
    midpoint_cuts,
    quantile_cuts,
)
from steadytree.core.rules import Rules, smallest_code_type
from steadytree.core.summary import Bounds, Summary, check_finite, column_text, number_text
from steadytree.core.table import Table, check_unique, quote
from steadytree.kernels import encode_bins, occupied_bins

Categories = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
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

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __getitem__(self, place: int) -> Column:
        return self.columns[place]

    def bare(self) -> "FeatureSpace":
        """The same space without candidate cuts: what a tree keeps."""
        if all(column.cuts is NO_CUTS for column in self.columns):
            return self
        return FeatureSpace(tuple(column.bare() for column in self.columns))

    def typed_like(self, X: Any) -> "FeatureSpace":
        """The space with kinds that hold for every row there could be, not just for rows seen.

        A column of numbers is integer (or, as bool, binary) where the type of X says so and no
        fraction was seen when the space was made; else it is numeric. Numbers that merely happen
        to be whole, in X or when the space was made, say nothing of the next row.
        """
        table = Table.read(X).select(self.names)
        types = table.types or (None,) * len(self)
        return FeatureSpace(tuple(map(_typed, self.columns, types)))

    def encode(self, X: Any) -> NDArray[Any]:
        """X as a float array (n, p): numbers as they are, categories as their index, missing nan.

        Frames are read by column name and may hold more columns; arrays by position.
        """
        table = Table.read(X).select(self.names)
        if table.matrix is not None and not self.categorical.any():
            matrix = table.matrix
        else:
            matrix = np.empty((table.n_rows, len(self)))
            for j, (column, values) in enumerate(zip(self, table.columns, strict=True)):
                matrix[:, j] = _encode_column(column, values)
        if not np.isfinite(matrix.sum()):  # cheap: only then look for where
            check_finite(self.names, matrix)
        return matrix

    def with_cuts(
        self,
        values: NDArray[Any],
        grid: Grid = "equidistant",
        n_cuts: int = 500,
        weights: NDArray[np.float64] | None = None,
    ) -> "FeatureSpace":
        """The space with candidate cuts; equidistant ones come from the bounds alone.

        `values` is what `encode` returned; a binary column gets one cut.
        """
        pairs = [(values[:, j], weights) for j in range(len(self))]
        return self._with_cuts(grid, n_cuts, pairs)

    def with_cuts_at(
        self, grid: Grid, n_cuts: int, distinct: Sequence[tuple[NDArray[Any], NDArray[Any]]] = ()
    ) -> "FeatureSpace":
        """As `with_cuts` on rows with so many of each distinct value; even cuts need none."""
        return self._with_cuts(grid, n_cuts, distinct)

    def _with_cuts(
        self, grid: Grid, n_cuts: int, values: Sequence[tuple[NDArray[Any], NDArray[Any] | None]]
    ) -> "FeatureSpace":
        if grid not in GRIDS:
            raise ValueError(f"grid must be one of {GRIDS}, got {grid!r}.")
        if grid == "equidistant":
            even = equidistant_cuts(self.columns, n_cuts)
        columns = []
        for j, column in enumerate(self.columns):
            if column.is_categorical:
                columns.append(column)
                continue
            if column.kind == "binary" and column.low < column.high:
                cuts = np.array([0.5])
            elif grid == "equidistant":
                cuts = even[j]
            elif grid == "quantile":
                cuts = quantile_cuts(values[j][0], n_cuts, values[j][1])
            else:
                cuts = midpoint_cuts(column.name, values[j][0])
            columns.append(column.with_cuts(cuts))
        return FeatureSpace(tuple(columns))

    def codes(self, values: NDArray[Any]) -> NDArray[Any]:
        """Bin codes (p, n) of encoded values, feature by feature; missing is a column's last code.

        Values beyond the outermost cuts fall into the outermost bins.
        """
        cuts = [column.cuts for column in self.columns]
        offsets = np.concatenate([[0], np.cumsum([len(c) for c in cuts])]).astype(np.int64)
        sizes = np.array([len(column.categories) for column in self.columns], dtype=np.int64)
        dtype = smallest_code_type(max(column.n_bins for column in self.columns))
        codes = np.empty((len(self), len(values)), dtype)
        return encode_bins(values, np.concatenate(cuts), offsets, sizes, codes)

    def codes_of(self, table: Table) -> NDArray[Any]:
        """Bin codes (p, n) of a table, column by column: no matrix of all values is made."""
        table = table.select(self.names)
        dtype = smallest_code_type(max(column.n_bins for column in self.columns))
        codes = np.empty((len(self), table.n_rows), dtype)
        for j, (column, values) in enumerate(zip(self, table.columns, strict=True)):
            encoded = np.ascontiguousarray(_encode_column(column, values))[:, None]
            ends = np.array([0, len(column.cuts)])
            encode_bins(encoded, column.cuts, ends, self.n_categories[j : j + 1], codes[j : j + 1])
        return codes

    def rules(self, codes: NDArray[Any] | None = None) -> Rules:
        """Every candidate rule; with the codes at hand, rules they cannot tell apart are merged."""
        if codes is None:
            return Rules.of(self.columns)
        sizes = np.array([column.n_bins + 1 for column in self.columns])
        return Rules.of(self.columns, occupied_bins(codes, np.concatenate([[0], np.cumsum(sizes)])))


def _typed(column: Column, type_: str | None) -> Column:
    if column.is_categorical:
        return column
    kind: Kind = "numeric"
    if column.kind != "numeric" and type_ is not None:
        kind = "binary" if type_ == "binary" else "integer"
    return replace(column, kind=kind)


def _check_known(parameter: str, declared: Mapping[str, Any], names: Sequence[str]) -> None:
    unknown = [name for name in declared if name not in names]
    if unknown:
        raise ValueError(f"{parameter} names {quote(unknown)}, but X has {quote(names)}.")


def _encode_column(column: Column, values: NDArray[Any]) -> NDArray[Any]:
    if not column.is_categorical:
        if values.dtype != object:
            return values
        raise ValueError(
            f"column {column.name!r} was numbers when the tree was learned and now holds text: "
            "convert it to numbers, missing ones to nan."
        )
    codes: dict[str | None, float] = {c: float(k) for k, c in enumerate(column.categories)}
    text = column_text(values)
    return np.fromiter((codes.get(v, np.nan) for v in text), np.float64, count=len(text))


def _as_text(categories: Categories) -> dict[str, tuple[str, ...]]:
    return {
        name: tuple(number_text(value) for value in listed) for name, listed in categories.items()
    }
