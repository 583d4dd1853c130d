"""FeatureSpace: the columns a tree may ask about, and X as numbers and codes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree._base.validation import OneOf
from steadytree.data._kernels import encode_bins, occupied_bins, summarise_columns
from steadytree.data.binning import (
    GRIDS,
    Grid,
    equidistant_cuts,
    even_bins,
    midpoint_cuts,
    quantile_cuts,
    smallest_code_type,
)
from steadytree.data.column import MAX_CATEGORIES, NO_CUTS, Column, Kind
from steadytree.data.table import Table, TextValues, check_unique, number_text, quote

Bounds = Mapping[str, tuple[float, float]]
Figures = tuple[
    NDArray[np.float64],
    NDArray[np.float64],
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.bool_],
]


@dataclass(frozen=True, eq=False)
class Summary:
    """Names, ranges, missing values and categories of the columns of some rows.

    Parameters
    ----------
    names : tuple of str
    n_rows : int
    figures : arrays (p,)
        As `summarise_columns` returns them; for columns of text only missing values count.
    found : tuple
        The categories that occur in a column, None for a column of numbers.
    declared : dict
        Categories by column name, where the data's type or the user declares them.

    Examples
    --------
    >>> parts = [Summary.of(Table.read(rows)) for rows in ([[1, 0.5]], [[4, None]])]
    >>> [(column.kind, column.low, column.high) for column in (parts[0] + parts[1]).columns()]
    [('integer', 1.0, 4.0), ('numeric', 0.5, 0.5)]
    """

    names: tuple[str, ...]
    n_rows: int
    figures: Figures
    found: tuple[frozenset[str] | None, ...]
    declared: dict[str, tuple[str, ...]]

    @classmethod
    def of(cls, table: Table, categories: Mapping[str, tuple[str, ...]] | None = None) -> "Summary":
        """Look at the rows once; `categories` take the place of those that the data declare."""
        names = table.names or tuple(f"x{j}" for j in range(table.n_columns))
        declared = {**table.declared, **(categories or {})}
        if table.matrix is not None and not declared:
            figures = summarise_columns(table.matrix)
            return cls(names, table.n_rows, figures, (None,) * len(names), {})
        parts, found = [], []
        for j, (name, values) in enumerate(zip(names, table.columns, strict=True)):
            by_value = values.dtype == object or name in declared
            found.append(_categories_in(table.text(j)) if by_value else None)
            parts.append(
                _count_missing(table.text(j)) if by_value else summarise_columns(values[:, None])
            )
        whole = tuple(np.concatenate(one) for one in zip(*parts, strict=True))
        return cls(names, table.n_rows, whole, tuple(found), declared)  # type: ignore[arg-type]

    def __add__(self, other: "Summary") -> "Summary":
        check_same_names(self.names, other.names)
        low, high, missing, infinite, whole = self.figures
        figures = (
            np.minimum(low, other.figures[0]),
            np.maximum(high, other.figures[1]),
            missing + other.figures[2],
            infinite + other.figures[3],
            whole & other.figures[4],
        )
        found = tuple(self._found_with(other, place) for place in range(len(self.names)))
        declared = {
            # in order of appearance, as categories unite when parts are put together
            name: tuple(dict.fromkeys(self.declared.get(name, ()) + other.declared.get(name, ())))
            for name in {**self.declared, **other.declared}
        }
        return Summary(self.names, self.n_rows + other.n_rows, figures, found, declared)

    def _found_with(self, other: "Summary", place: int) -> frozenset[str] | None:
        """Categories of both; a part without any value of a column goes with either kind."""
        one, two = self.found[place], other.found[place]
        if one is not None and two is not None:
            return one | two
        numbers = self if one is None else other
        if one is two or numbers.figures[2][place] == numbers.n_rows:
            return one if two is None else two
        raise ValueError(
            f"column {self.names[place]!r} holds text in some parts of the data and numbers in "
            "others: turn it into one of them."
        )

    def columns(self, bounds: Bounds | None = None) -> tuple[Column, ...]:
        """The columns as observed; declared bounds take the place of observed ones."""
        return tuple(self._columns(bounds or {}))

    def _columns(self, bounds: Bounds) -> Iterator[Column]:
        low, high, missing, infinite, whole = self.figures
        bad = [name for name, n in zip(self.names, infinite, strict=True) if n]
        if bad:
            raise ValueError(_infinite(bad))
        for j, name in enumerate(self.names):
            if missing[j] == self.n_rows:
                raise ValueError(
                    f"column {name!r} holds no value at all, only missing ones: drop it."
                )
            found = self.found[j]
            if found is not None:
                yield _categorical(name, found, self.declared.get(name), bool(missing[j]))
                continue
            kind: Kind = "integer" if whole[j] else "numeric"
            if whole[j] and low[j] == 0 and high[j] == 1:
                kind = "binary"
            least, most = bounds.get(name, (low[j], high[j]))
            yield Column(name, kind, float(least), float(most), missing=bool(missing[j]))


def _categorical(
    name: str, found: frozenset[str], declared: tuple[str, ...] | None, missing: bool
) -> Column:
    known = declared if declared is not None else tuple(sorted(found))
    if len(known) > MAX_CATEGORIES and declared is not None:
        known = tuple(category for category in known if category in found)
    gone = missing or len(found - set(known)) > 0
    return Column(name, "categorical", categories=known, missing=gone)


def _categories_in(text: TextValues) -> frozenset[str]:
    counts = np.bincount(text.index + 1, minlength=len(text.values) + 1)[1:]
    return frozenset(text.values[k] for k in np.flatnonzero(counts))


def _count_missing(text: TextValues) -> Figures:
    missing, none = np.array([(text.index < 0).sum()]), np.zeros(1, np.int64)
    return np.array([np.inf]), np.array([-np.inf]), missing, none, np.ones(1, np.bool_)


def check_same_names(names: Sequence[str], others: Sequence[str]) -> None:
    """Refuse parts whose columns differ."""
    if tuple(names) != tuple(others):
        differ = [name for name in (*names, *others) if (name in names) != (name in others)]
        what = f"{quote(differ)} only in some" if differ else "in another order"
        raise ValueError(f"parts of the data have different columns: {what}.")


def check_finite(names: Sequence[str], matrix: NDArray[Any]) -> None:
    """Refuse infinity, and say in which columns it is."""
    bad = [name for name, column in zip(names, matrix.T, strict=True) if np.isinf(column).any()]
    if bad:
        raise ValueError(_infinite(bad))


def _infinite(names: Sequence[str]) -> str:
    return f"column(s) {quote(names)} hold infinity: clip such values, or mark them missing."


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

    def typed_like(self, X: Any, fitted: bool = False) -> "FeatureSpace":
        """The space with kinds that depend on the types of X alone, never on its values.

        A column of numbers is binary where its type in X is bool, and integer where that type is
        integer or, for the space of a fitted model, where the model knows it as such. It is numeric
        elsewhere, and wherever the space saw a fraction when it was made.
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
        OneOf(*GRIDS).check(grid, "grid")
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

    def with_even_bins(self, n_bins: int) -> "FeatureSpace":
        """The space with the thresholds of at most `n_bins` even bins a column."""
        return FeatureSpace(
            tuple(c if c.is_categorical else c.with_cuts(even_bins(c, n_bins)) for c in self)
        )

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
        for j, column in enumerate(self):
            encoded = np.ascontiguousarray(_encode_column(column, table, j))[:, None]
            ends = np.array([0, len(column.cuts)])
            encode_bins(encoded, column.cuts, ends, self.n_categories[j : j + 1], codes[j : j + 1])
        return codes

    @cached_property
    def bin_offsets(self) -> NDArray[np.int64]:
        """Where the bins of each column begin; the last bin of a column is for missing values."""
        sizes = [column.n_bins + 1 for column in self.columns]
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    def occupied(self, codes: NDArray[Any]) -> NDArray[np.bool_]:
        """For every bin, whether any row is in it."""
        return occupied_bins(codes, self.bin_offsets)


def _typed(column: Column, type_: str | None, fitted: bool) -> Column:
    if column.kind in ("categorical", "numeric"):
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
        raise ValueError(
            f"column {column.name!r} was numbers when the tree was learned and now holds text: "
            "convert it to numbers, missing ones to nan."
        )
    known = {category: float(k) for k, category in enumerate(column.categories)}
    text = table.text(j)
    return np.array([*(known.get(value, np.nan) for value in text.values), np.nan])[text.index]


def _as_text(categories: Categories) -> dict[str, tuple[str, ...]]:
    return {
        name: tuple(number_text(value) for value in listed) for name, listed in categories.items()
    }
