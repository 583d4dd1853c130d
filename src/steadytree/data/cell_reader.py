"""Cells: values read one by one, so that no row changes how another is read.

`Table` types whole columns, which is right for public data. Where a row must be protected it is
not: one text among numbers would change every row, and no sensitivity would hold.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

from steadytree.data.table import TEXT_LIKE, Table, check_form, check_unique

# float64 where the type of the data is numeric, so that reading at once and one by one agree
Cells = NDArray[np.float64] | Sequence[Any]

INTEGERS = (nw.Int8, nw.Int16, nw.Int32, nw.Int64, nw.UInt8, nw.UInt16, nw.UInt32, nw.UInt64)
NUMERIC = (*INTEGERS, nw.Float32, nw.Float64, nw.Boolean)
ONE_BY_ONE = (*TEXT_LIKE, nw.Unknown)
SIMPLE = frozenset([str, int, float, bool])
FLAGS = {"true": 1.0, "false": 0.0}


# ---- one cell ----
def plain(value: Any) -> str | float | None:
    """A cell as text or a number; None where it is missing or anything else."""
    if type(value) is float:  # most cells are, so they are asked about first
        return value if value == value else None
    if isinstance(value, str):
        return str.__str__(value)  # the text itself, in an enumeration of texts too
    if isinstance(value, np.bool_):
        return float(value)
    if isinstance(value, complex | np.complexfloating):  # as numbers are kept beside complex ones
        return _as_float(value.real) if value.imag == 0 else None
    is_number = isinstance(value, int | float | Decimal | np.number)
    return _as_float(value) if is_number and not isinstance(value, np.timedelta64) else None


def _as_float(value: Any) -> float | None:
    try:
        number = float(value)
    except OverflowError:  # a whole number beyond all floats
        return np.inf if value > 0 else -np.inf
    except (TypeError, ValueError):
        return None
    return None if number != number else number


def number(value: Any) -> float:
    """A cell of a numeric column; nan where it is missing or no number."""
    found = plain(value)
    if isinstance(found, str):
        return _text_as_number(found)
    return np.nan if found is None else found


def _text_as_number(text: str) -> float:
    text = text.strip()
    if "_" in text:  # Python reads 2024_01 as a number, people do not
        return np.nan
    try:
        return float(text)
    except ValueError:
        return FLAGS.get(text.lower(), np.nan)


def canonical(value: Any) -> str | None:
    """One text for a category or label however it was stored; None where it is missing.

    Numbers pass through float64, as a frame would store them beside a missing value.
    """
    found = plain(value)
    if isinstance(found, str):
        if found[:1] not in "+-.0123456789" and found.lower() not in FLAGS:
            return found
        text, found = found, _text_as_number(found)
        if found != found:
            return text
    if found is None:
        return None
    return str(int(found)) if found.is_integer() else repr(found)


# ---- columns of cells ----
def numbers(cells: Cells) -> NDArray[np.float64]:
    """Cells of a numeric column."""
    if isinstance(cells, np.ndarray):
        return cells
    return np.fromiter(map(number, cells), np.float64, len(cells))


def indices(cells: Cells, known: Mapping[str, int], other: float) -> NDArray[np.float64]:
    """Index of each cell's canonical text among the known ones; `other` for all else."""
    if isinstance(cells, np.ndarray):
        found, back = np.unique(cells, return_inverse=True)
        return _look_up(found.tolist(), known, other)[back.ravel()]
    return _look_up(cells, known, other)


def _look_up(cells: Sequence[Any], known: Mapping[str, int], other: float) -> NDArray[np.float64]:
    seen: dict[Any, float] = {}  # a value is looked at once; equal ones have one text
    found = np.empty(len(cells))
    for row, value in enumerate(cells):
        simple = type(value) in SIMPLE  # others may not be hashed, or not safely
        index = seen.get(value) if simple else None
        if index is None:
            text = canonical(value)
            index = other if text is None else known.get(text, other)
            if simple:
                seen[value] = index
        found[row] = index
    return found


# ---- data as a user hands them over ----
def read_columns(X: Any, names: Sequence[str]) -> tuple[list[Cells], int]:
    """The named columns in order, and the number of rows.

    Fails on a wrong number or name of columns, never on a value or for lack of rows.
    """
    if isinstance(X, list | tuple) and len(X) == 0:  # a list has no columns of its own
        return [[] for _ in names], 0
    found, columns, n_rows = _columns(X)
    shell = Table(found, [np.empty(0)] * len(columns), {})
    shell.select(names)  # refuses what does not fit, in the same words as everywhere
    if found is not None:
        columns = [columns[found.index(name)] for name in names]
    return columns, n_rows


def numeric_types(X: Any) -> dict[str, bool]:
    """Whether each column's type is numeric, whatever it holds; by name, or x0, x1, ..."""
    names, columns, _ = _columns(X)
    names = names or tuple(f"x{index}" for index in range(len(columns)))
    flags = [isinstance(cells, np.ndarray) for cells in columns]
    return dict(zip(names, flags, strict=True))


def read_labels(y: Any) -> Cells:
    """One cell a row, of an array, a list, a series or a frame of one column."""
    series = nw.from_native(y, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(series, nw.DataFrame):
        if len(series.columns) != 1:
            raise ValueError("y must be one column: pass one label a row.")
        series = next(series.iter_columns())
    if isinstance(series, nw.Series):
        return _cells_of_series(series)
    if isinstance(y, np.ndarray) or not hasattr(y, "__iter__"):
        return _cells_of_array(np.asarray(y).ravel())
    return list(y)


def _columns(X: Any) -> tuple[tuple[str, ...] | None, list[Cells], int]:
    X = getattr(X, "native", X)  # of a Dataset: typed columns would let one row change another
    if isinstance(X, Table):
        return X.names, [_cells_of_array(np.asarray(c)) for c in X.columns], X.n_rows
    if isinstance(X, list | tuple):
        rows = list(_rows(X))
        return None, list(zip(*rows, strict=True)), len(rows)
    check_form(X)
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        names = tuple(str(name) for name in frame.columns)
        check_unique(names)
        return names, [_cells_of_series(column) for column in frame.iter_columns()], len(frame)
    if hasattr(X, "toarray"):
        raise TypeError("X is a sparse matrix, which trees here do not take: pass X.toarray().")
    array = np.asarray(X)
    if array.ndim != 2:
        raise _no_table()
    return None, [_cells_of_array(column) for column in array.T], len(array)


def _rows(X: Sequence[Any]) -> Iterator[list[Any]]:
    # not through numpy, which would see another shape where a cell is a list
    n_columns = None
    for row in X:
        is_row = hasattr(row, "__iter__") and not isinstance(row, str | bytes | Mapping)
        listed = list(row) if is_row and getattr(row, "ndim", 1) == 1 else None
        if listed is None or n_columns not in (None, len(listed)):
            raise _no_table()
        n_columns = len(listed)
        yield listed
    if n_columns is None:
        raise _no_table()


def _no_table() -> ValueError:
    return ValueError(
        "X must be a table of rows and columns, all rows of one length. Reshape your data: "
        "X.reshape(-1, 1) for one column, X.reshape(1, -1) for one row."
    )


def _cells_of_array(column: NDArray[Any]) -> Cells:
    if column.dtype.kind in "biuf":
        with np.errstate(over="ignore"):  # as float() of a long double
            return column.astype(np.float64)
    if column.dtype.kind == "c":
        return _cells_of_array(np.where(column.imag == 0, column.real, np.nan))
    # other types must not pass `tolist`, which turns some dates into whole numbers
    return column.tolist() if column.dtype.kind in "OUT" else [None] * len(column)


def _cells_of_series(column: Any) -> Cells:
    if isinstance(column.dtype, NUMERIC):
        # not cast with its nulls, since some frames refuse to cast large whole numbers
        with contextlib.suppress(TypeError, ValueError):
            missing = column.is_null().to_numpy().astype(bool)
            filled = column.fill_null(False if column.dtype == nw.Boolean else 0)
            values = filled.to_numpy()
            if values.dtype.kind in "biuf":
                values = values.astype(np.float64)
                values[missing] = np.nan
                return values
        return column.to_list()
    # dates and the like are missing whatever they hold; some could not even be listed
    listed = isinstance(column.dtype, ONE_BY_ONE) or column.dtype.is_numeric()
    return column.to_list() if listed else [None] * len(column)
