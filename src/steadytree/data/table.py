"""Table: data as a user hands it over, read once into plain columns."""

import datetime
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any, NamedTuple

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

TEXT_LIKE = (nw.String, nw.Categorical, nw.Enum, nw.Object)
NO_VALUE = ("NAType", "NaTType")  # pandas' types of missing values, which is not imported
FLAGS = {"True": 1.0, "TRUE": 1.0, "true": 1.0, "False": 0.0, "FALSE": 0.0, "false": 0.0}
ARRAY_TYPES = {"b": "binary", "i": "integer", "u": "integer"}  # by numpy's kind of type


class TextValues(NamedTuple):
    """The distinct values of a column as text, and which of them each row has; -1 is missing."""

    values: tuple[str, ...]
    of_row: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Table:
    """Names and columns of a data set; nothing is copied that need not be."""

    names: tuple[str, ...] | None  # None if the data came without names
    columns: Sequence[NDArray[Any]]  # float (nan is missing) or object (text, None is missing)
    declared: dict[str, tuple[str, ...]]  # categories that a column's own type declares, by name
    matrix: NDArray[Any] | None = None  # all columns (n, p), if the data came as one float array
    # "integer" or "binary" (bool) if a column's own type says so; None for floats, text, lists and
    # csv files, whatever values they hold; an empty tuple stands for None in every column
    types: tuple[str | None, ...] = ()
    _texts: dict[int, TextValues] = field(default_factory=dict, repr=False)  # found so far
    # cells of a csv file as they stand there, by column, where spaces around them or marks of
    # missing values were taken away: a model may know them as they stand
    as_given: Mapping[str, TextValues] = field(default_factory=dict, repr=False)
    ordered: frozenset[str] = frozenset()  # columns whose declared categories have an order

    @classmethod
    def read(cls, X: Any) -> "Table":
        """Read a numpy array, a nested list, or a pandas, polars or pyarrow frame."""
        if is_read(X):
            return getattr(X, "table", X)
        if isinstance(X, np.ndarray):
            return cls._read_array(X)
        check_form(X)
        frame = nw.from_native(X, eager_only=True, pass_through=True)
        if isinstance(frame, nw.DataFrame):
            return cls._read_frame(frame)
        # numpy reads a list as whole numbers if no row has a fraction: that is no type
        return replace(cls._read_array(X), types=())

    @classmethod
    def _read_frame(cls, frame: Any) -> "Table":
        names = tuple(str(name) for name in frame.columns)
        check_unique(names)
        declared: dict[str, tuple[str, ...]] = {}
        columns, types, given, faults = [], [], {}, _type_faults(names, frame)
        for name, column in zip(names, frame.iter_columns(), strict=True):
            if not _is_readable(column.dtype):
                continue
            if isinstance(column.dtype, nw.Categorical | nw.Enum):
                found = column.cat.get_categories().to_list()
                declared[name] = tuple(str(category) for category in found)
            try:
                columns.append(_read_column(name, column))
            except TypeError as error:
                faults.append(str(error))
            if column.dtype == nw.Object and columns and columns[-1].dtype != object:
                cells = ["nan" if _is_missing(value) else str(value) for value in column.to_list()]
                if {*cells} - {"nan"} and {*cells} <= {"nan", *FLAGS}:  # bools, some missing
                    given[name] = text_values(cells)
            integral = "integer" if column.dtype.is_integer() else None
            types.append("binary" if column.dtype == nw.Boolean else integral)
        if faults:
            raise TypeError(" ".join(faults))
        ordered = frozenset(name for name in declared if _is_ordered(frame[name]))
        own = names, columns, declared, None, tuple(types)
        return cls(*own, as_given=given, ordered=ordered)

    @classmethod
    def _read_array(cls, X: Any) -> "Table":
        check_not_masked(X, "X")
        array = np.asarray(X)
        if array.ndim != 2:
            raise ValueError(
                f"X must be a table of rows and columns, got {array.ndim} dimension(s). "
                "Reshape your data: X.reshape(-1, 1) for one column, X.reshape(1, -1) for one row."
            )
        if array.dtype.kind == "c":
            raise ValueError("Complex data not supported: X holds complex numbers.")
        if array.dtype.kind in "biuf":
            types = (ARRAY_TYPES.get(array.dtype.kind),) * array.shape[1]
            if array.dtype not in (np.float64, np.float32):
                array = array.astype(np.float64)
            return cls(None, list(array.T), {}, array, types)
        names = [f"x{j}" for j in range(array.shape[1])]
        columns = [_read_objects(n, c) for n, c in zip(names, array.T, strict=True)]
        if columns and all(column.dtype == np.float64 for column in columns):
            return cls(None, columns, {}, np.stack(columns, axis=1))
        return cls(None, columns, {})

    @property
    def n_rows(self) -> int:
        if self.matrix is not None:
            return int(self.matrix.shape[0])
        return len(self.columns[0]) if len(self.columns) else 0

    @property
    def n_columns(self) -> int:
        return len(self.columns)

    def check_not_empty(self) -> None:
        """Refuse a table without rows or without columns."""
        if self.n_columns == 0 or self.n_rows == 0:
            what = "sample(s)" if self.n_columns else "feature(s)"
            shape = f"(shape=({self.n_rows}, {self.n_columns}))"
            raise ValueError(f"X has 0 {what} {shape} while a minimum of 1 is required.")

    @classmethod
    def stack(cls, tables: Sequence["Table"]) -> "Table":
        """The rows of tables with the same columns, one after another."""
        first = tables[0]
        columns = []
        for j, parts in enumerate(zip(*(table.columns for table in tables), strict=True)):
            values = np.concatenate(parts)
            if values.dtype == object:  # numbers, or nothing, in one part and text in another
                values = _read_objects(first.names[j] if first.names else f"x{j}", values)
            columns.append(values)
        declared = {name: known for table in tables for name, known in table.declared.items()}
        matrix = np.stack(columns, axis=1) if first.matrix is not None else None
        columns = columns if matrix is None else list(matrix.T)
        same = all(table.declared == first.declared for table in tables)
        ordered = first.ordered if same else frozenset()
        return cls(first.names, columns, declared, matrix, first.types, ordered=ordered)

    def take(self, kept: NDArray[np.bool_] | NDArray[np.int64]) -> "Table":
        """The rows that are flagged, or listed by number."""
        matrix = None if self.matrix is None else self.matrix[kept]
        columns = [column[kept] for column in self.columns] if matrix is None else list(matrix.T)
        texts = {j: self.text(j) for j, column in enumerate(self.columns) if column.dtype == object}
        texts = {j: TextValues(text.values, text.of_row[kept]) for j, text in texts.items()}
        given = {name: TextValues(t.values, t.of_row[kept]) for name, t in self.as_given.items()}
        own = self.names, columns, self.declared, matrix, self.types
        return Table(*own, texts, given, self.ordered)

    def text(self, j: int) -> TextValues:
        """Column j as text; values are compared once, also for all tables taken from this one."""
        if j not in self._texts:
            listed = self.columns[j].tolist()
            if self.columns[j].dtype != object:
                listed = [None if value != value else value_text(value) for value in listed]
            self._texts[j] = text_values(listed)
        return self._texts[j]

    def text_for(self, j: int, known: Container[str]) -> TextValues:
        """Column j as text for a model that knows some texts; a text may stand in it twice.

        A cell is what the file holds where the model knows that, else without spaces around it; an
        empty one is missing. A bool is what the model calls it: 1 or True.
        """
        text, given = self.text(j), self.as_given.get(self.names[j]) if self.names else None
        if (self.types and self.types[j] == "binary") or self.flags(j) is not None:
            flags = FLAGS | {"1": 1.0, "0": 0.0}
            called = {flag: name for name, flag in flags.items() if name in known}
            values = (v if v in known else called.get(flags.get(v, -1), v) for v in text.values)
            text = TextValues(tuple(values), text.of_row)
        if given is not None:
            is_known = [value != "" and value in known for value in given.values]
            own = np.array([*is_known, False])[given.of_row]
            of_row = np.where(own, given.of_row + len(text.values), text.of_row)
            return TextValues((*text.values, *given.values), of_row)
        return text

    def flags(self, j: int) -> NDArray[np.float64] | None:
        """Column j as 0 and 1 where its text is nothing but True and False, else None."""
        text = self.text(j)
        if not text.values or any(value not in FLAGS for value in text.values):
            return None
        return np.array([*(FLAGS[value] for value in text.values), np.nan])[text.of_row]

    @staticmethod
    def pick(X: Any, rows: NDArray[np.int64]) -> Any:
        """Some rows of data as a user handed them over, in the same form."""
        if is_read(X):
            return X.take(rows)
        frame = nw.from_native(X, eager_only=True, pass_through=True)
        if isinstance(frame, nw.DataFrame):
            return nw.to_native(frame[rows.tolist()])
        # an array of whole numbers made of a list would claim a type that the list does not have
        return [X[row] for row in rows.tolist()] if isinstance(X, list) else np.asarray(X)[rows]

    def select(self, names: Sequence[str]) -> "Table":
        """The named columns in the given order; columns without names are taken as they stand."""
        if self.names is None or self.names == tuple(names):
            if self.n_columns != len(names):
                raise ValueError(
                    f"X has {self.n_columns} features, but {len(names)} are expected: "
                    f"{quote(names)}."
                )
            return self
        absent = [name for name in names if name not in self.names]
        if absent:
            raise ValueError(
                f"X lacks the column(s) {quote(absent)}; it has {quote(self.names)}. "
                "Pass the columns the model was learned from."
            )
        kept = [self.names.index(name) for name in names]
        types = tuple(self.types[j] for j in kept) if self.types else ()
        texts = {k: self._texts[j] for k, j in enumerate(kept) if j in self._texts}
        columns = [self.columns[j] for j in kept]
        given = {name: text for name, text in self.as_given.items() if name in names}
        own = tuple(names), columns, self.declared, None, types
        return Table(*own, texts, given, self.ordered)


def text_values(listed: Sequence[str | None]) -> TextValues:
    """The distinct texts in order of appearance, and which of them each row has."""
    distinct = (value for value in dict.fromkeys(listed) if value is not None)
    position = {value: k for k, value in enumerate(distinct)}
    of_row = [-1 if value is None else position[value] for value in listed]
    return TextValues(tuple(position), np.array(of_row, dtype=np.int64))


def value_text(value: Any) -> str:
    """A category or label as a file of text holds it: integers without a decimal point."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def is_read(data: Any) -> bool:
    """Whether data are a Table or a Dataset."""
    return isinstance(getattr(data, "table", data), Table)


def is_dask(data: Any) -> bool:
    """Whether data are a Dask collection; Dask is not imported for that."""
    return callable(getattr(data, "__dask_graph__", None))


def check_unique(names: Sequence[str]) -> None:
    """Refuse column names that stand twice."""
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(
            f"column name(s) {quote(twice)} appear more than once: rename or drop them."
        )


def check_in_memory(X: Any) -> None:
    """Refuse rows that lie elsewhere, naming who takes them."""
    if is_dask(X):
        raise TypeError(
            "X is a Dask collection, which is not taken here: load its rows with X.compute(). "
            "StableTreeClassifier, PrivateTreeClassifier, SteadyTreeClassifier and "
            "RiskScoreClassifier learn from one, and accuracy, calibration, by_group, certify "
            "and report measure one."
        )
    if isinstance(X, str | PathLike):
        raise TypeError(
            f"X is the path {str(X)!r}, and rows in memory are needed here: read the file "
            "first. Paths are taken by accuracy, calibration, by_group, certify, report, "
            "SteadyTreeClassifier, RiskScoreClassifier and StableTreeClassifier.fit_files."
        )


def check_form(X: Any) -> None:
    """Refuse forms of data that others would misread, or refuse without saying what to do."""
    if is_read(X):  # its columns are arrays, not names
        return
    check_in_memory(X)
    check_dense(X, "X")
    if isinstance(X, Mapping):
        raise TypeError(
            f"X is a {type(X).__name__}, not a table of rows and columns: pass a frame made "
            "of it, such as pandas.DataFrame(X)."
        )
    check_not_masked(X, "X")
    names = getattr(X, "column_names", getattr(X, "columns", None))
    if names is not None and not callable(names):
        check_unique([str(name) for name in names])


def check_dense(values: Any, what: str) -> None:
    """Refuse what numpy would take for one cell: rows that are not loaded, and sparse ones."""
    if type(values).__name__ == "LazyFrame":
        raise TypeError(f"{what} is a LazyFrame, whose rows are not loaded: pass {what}.collect().")
    if hasattr(values, "toarray"):
        raise TypeError(
            f"{what} is a sparse matrix, which trees here do not take: pass {what}.toarray()."
        )


def check_not_masked(values: Any, what: str) -> None:
    """Refuse masked values: numpy hands on what lies under a mask as if it were observed."""
    if np.ma.is_masked(values):
        raise TypeError(
            f"{what} is a masked array, whose masked values would be read as data: fill "
            f"them, as with {what}.astype(float).filled(numpy.nan), or drop these rows."
        )


def is_number(value: str) -> bool:
    """Whether text is a number as people write it."""
    try:
        float(value)
    except ValueError:
        return False
    return "_" not in value  # Python reads 2024_01 as a number, people do not


def quote(names: Iterable[str], most: int = 8) -> str:
    """Names for an error message, cut after a few."""
    listed = list(names)
    text = ", ".join(repr(str(name)) for name in listed[:most])
    return text + (f" and {len(listed) - most} more" if len(listed) > most else "")


def _is_ordered(column: Any) -> bool:
    """Whether pandas or pyarrow declares an order of categories; an enumeration has none."""
    native = column.to_native()
    own = getattr(native, "cat", None) or getattr(native, "type", None)
    return getattr(own, "ordered", False) is True


def _is_readable(dtype: Any) -> bool:
    return isinstance(dtype, (nw.Boolean, nw.Unknown, *TEXT_LIKE)) or dtype.is_numeric()


def _type_faults(names: Sequence[str], frame: Any) -> list[str]:
    """What is said of columns whose type holds neither numbers nor text."""
    dtypes = {name: column.dtype for name, column in zip(names, frame.iter_columns(), strict=True)}
    wrong: dict[str, list[str]] = {}
    for name, dtype in dtypes.items():
        if not _is_readable(dtype):
            kinds = {nw.Date: "dates", nw.Datetime: "dates", nw.Duration: "durations"}
            kind = next((text for one, text in kinds.items() if dtype == one), str(dtype))
            wrong.setdefault(kind, []).append(name)
    return [_not_split(own, kind) for kind, own in wrong.items()]


def _not_split(names: Sequence[str], kind: str) -> str:
    column, hold, them = (
        ("columns", "hold", "them") if len(names) > 1 else ("column", "holds", "it")
    )
    return (
        f"{column} {quote(names)} {hold} {kind}, which a tree cannot split on: "
        f"turn {them} into numbers (such as days since a date) or text, or drop {them}."
    )


def _read_column(name: str, column: Any) -> NDArray[Any]:
    dtype = column.dtype
    if dtype == nw.Boolean or dtype.is_numeric():
        if column.null_count() == 0:
            values = column.to_numpy()
        else:  # through float: nulls become nan, in nullable frames too
            values = column.cast(nw.Float32 if dtype == nw.Float32 else nw.Float64).to_numpy()
        if values.dtype.kind == "O":
            return _read_objects(name, values)
        keep = values.dtype in (np.float64, np.float32)
        return values if keep else values.astype(np.float64)
    return _read_objects(name, column.to_numpy().astype(object))


def _read_objects(name: str, values: NDArray[Any]) -> NDArray[Any]:
    """Numbers where every value is one, else text with None for missing."""
    listed = values.tolist()
    kinds = set(map(type, listed))
    if str in kinds and kinds <= {str, type(None)}:  # the usual case of text, checked at C speed
        return np.array(listed, dtype=object)
    missing = np.array([_is_missing(value) for value in listed], dtype=bool)
    observed = [value for value, is_missing in zip(listed, missing, strict=True) if not is_missing]
    for value in observed:
        if isinstance(value, datetime.date | datetime.timedelta):
            is_date = isinstance(value, datetime.date)
            raise TypeError(_not_split([name], "dates" if is_date else "durations"))
        known = isinstance(value, str | int | float | bool | np.generic)
        if isinstance(value, bytes) or not (known or hasattr(value, "__float__")):
            raise TypeError(
                f"column {name!r}: argument must be a string or a number, "
                f"got {type(value).__name__}."
            )
    if all(not isinstance(value, str) for value in observed):
        numbers = np.full(len(listed), np.nan)
        numbers[~missing] = np.array(observed, dtype=np.float64)
        return numbers
    text = np.empty(len(listed), dtype=object)
    text[~missing] = [str(value) for value in observed]
    return text


def _is_missing(value: Any) -> bool:
    # pandas.NA compares to pandas.NA, so its type is asked by name and pandas is not imported
    is_nan = isinstance(value, float) and value != value
    return value is None or is_nan or type(value).__name__ in NO_VALUE
