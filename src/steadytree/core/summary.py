"""Summary: what a feature space must know of rows; summaries of parts of the rows add up."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.core.column import MAX_CATEGORIES, Column, Kind
from steadytree.core.table import Table, quote
from steadytree.kernels import summarise_columns

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
        for name, values in zip(names, table.columns, strict=True):
            by_value = values.dtype == object or name in declared
            found.append(_categories_in(values) if by_value else None)
            parts.append(_count_missing(values) if by_value else summarise_columns(values[:, None]))
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


def _categories_in(values: NDArray[Any]) -> frozenset[str]:
    return frozenset(value for value in set(column_text(values)) if value is not None)


def _count_missing(values: NDArray[Any]) -> Figures:
    gone = sum(value is None for value in column_text(values))
    none = np.zeros(1, np.int64)
    return np.array([np.inf]), np.array([-np.inf]), np.array([gone]), none, np.ones(1, np.bool_)


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


def column_text(values: NDArray[Any]) -> list[str | None]:
    """Values of a column as text; None is missing."""
    if values.dtype == object:
        return list(values.tolist())
    return [None if v != v else number_text(v) for v in values.tolist()]


def number_text(value: Any) -> str:
    """How a number reads as a category: whole numbers without a decimal point."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
