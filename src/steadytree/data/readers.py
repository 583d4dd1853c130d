"""Data files: csv and parquet read into a Table, the same wherever it runs."""

import csv
import gc
import gzip
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, islice
from os import PathLike
from pathlib import Path
from typing import Any, TextIO

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

from steadytree.data.cell_reader import read_columns
from steadytree.data.table import (
    FLAGS,
    Table,
    TextValues,
    check_unique,
    is_number,
    quote,
    text_values,
)

CSV_ENDINGS = (".csv", ".tsv", ".txt")
GZIP_ENDING = ".gz"  # behind one of csv
PARQUET_ENDINGS = (".parquet", ".pq")
EXCEL_ENDINGS = (".xlsx", ".xls", ".ods")
# those that pandas knows, and a question mark
MISSING = frozenset(
    ["", "NA", "N/A", "n/a", "<NA>", "#N/A", "#NA", "NaN", "nan", "-NaN", "-nan"]
    + ["null", "NULL", "None", "?"]
)
DELIMITERS = (",", ";", "\t", "|")
ROWS_AT_ONCE = 2_000


def column_names(path: str | PathLike[str]) -> list[str]:
    """Names of the columns of a csv or parquet file, as `read_data` gives them."""
    path, csv_file = _check_path(path)
    if not csv_file:
        return _with_parquet(path, None)
    with _open_csv(path) as (_, _, names):
        return names


def read_data(path: str | PathLike[str], skip: Collection[str] = ()) -> Table:
    r"""Read a csv or parquet file.

    A csv file is UTF-8 text, which may be compressed as ``.csv.gz``. Its first line names the
    columns, with commas, semicolons, tabs or bars between the fields. A column is numbers where
    every value is one (with a decimal comma too, unless commas stand between fields), else text;
    empty fields, ``NA``, ``#N/A``, ``NaN``, ``null`` and ``?`` are missing. A column without a name
    is called ``(unnamed 1)``, by its place.

    Spaces around text are left out. A model that knows a text with its spaces, or a mark such as
    ``?`` as a category, gets the cell as it stands (`Table.as_given`). An empty cell is missing to
    all models.
    """
    path, csv_file = _check_path(path)
    if csv_file:
        with _open_csv(path) as (file, delimiter, names):
            kept = [index for index, name in enumerate(names) if name not in skip]
            columns, given = _read_columns(path, file, delimiter, len(names), kept)
        as_given = {names[index]: text for index, text in given.items()}
        return Table(tuple(names[index] for index in kept), columns, {}, as_given=as_given)
    table = Table.read(_with_parquet(path, skip))
    if table.n_rows == 0:
        raise ValueError(f"{str(path)!r} has no rows.")
    return table


def read_texts(path: str | PathLike[str], skip: Collection[str] = ()) -> dict[str, list[str]]:
    """Columns of a file as the text that stands there; a missing value of parquet is empty."""
    path, is_csv = _check_path(path)
    if is_csv:
        with _open_csv(path) as (file, delimiter, names):
            parts: list[list[str]] = [[] for _ in names]
            for block in _blocks(path, file, delimiter, len(names)):
                for part, cells in zip(parts, block, strict=True):
                    part.extend(cells)
        return {name: part for name, part in zip(names, parts, strict=True) if name not in skip}
    frame = nw.from_native(_with_parquet(path, skip), eager_only=True)
    return {
        name: ["" if value is None else str(value) for value in frame[name].to_list()]
        for name in frame.columns
    }


def read_cells(
    path: str | PathLike[str], names: Sequence[str], as_they_stand: Collection[str] = ()
) -> Table:
    """Some columns of a file, each cell by itself, for `Schema` to read.

    Cells of a csv file are text (None is missing). Whether they may have a decimal comma is
    decided by the delimiter alone; texts in `as_they_stand` never do. No message reveals a row.
    """
    path, csv_file = _check_path(path)
    found = column_names(path)
    absent = [name for name in names if name not in found]
    if absent:
        raise ValueError(f"{str(path)!r} lacks the column(s) {quote(absent)}.")
    if csv_file:
        return Table(tuple(names), _text_columns(path, names, as_they_stand), {})
    frame = _with_parquet(path, [name for name in found if name not in names])
    columns, n_rows = read_columns(frame, names)
    # one by one, since numpy would unpack lists
    arrays = [
        cells if isinstance(cells, np.ndarray) else np.fromiter(cells, object, n_rows)
        for cells in columns
    ]
    return Table(tuple(names), arrays, {})


def _check_path(path: str | PathLike[str]) -> tuple[Path, bool]:
    """The path, and whether it is a csv file; refuses what is no data file."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no file {str(path)!r}: check the path.")
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder: name a csv or parquet file in it.")
    if is_csv(path):
        return path, True
    ending = path.suffix.lower()
    if ending in EXCEL_ENDINGS:
        raise ValueError(
            f"{str(path)!r} is a spreadsheet, which is not read: save the sheet as 'CSV UTF-8'."
        )
    if ending not in PARQUET_ENDINGS:
        raise ValueError(
            f"{str(path)!r} ends in {ending or 'nothing'!r}: pass a file that ends in "
            f"{', '.join(CSV_ENDINGS + PARQUET_ENDINGS)}, or a csv file compressed as .csv.gz."
        )
    return path, False


def is_csv(path: Path) -> bool:
    """Whether a file is csv by its name, compressed by gzip or not."""
    ending = path.suffix.lower()
    return (Path(path.stem).suffix.lower() if ending == GZIP_ENDING else ending) in CSV_ENDINGS


# ---- csv ----
def _text_columns(
    path: Path, names: Sequence[str], as_they_stand: Collection[str]
) -> list[NDArray[Any]]:
    with _open_csv(path) as (file, delimiter, header):
        indices = [header.index(name) for name in names]
        parts: list[list[NDArray[Any]]] = [[np.empty(0, object)] for _ in names]
        try:
            for block in _blocks(path, file, delimiter, len(header)):
                for part, index in zip(parts, indices, strict=True):
                    part.append(_texts(block[index]))
        except (csv.Error, ValueError):  # whose words tell of the row, so they are not kept
            raise ValueError(
                f"{str(path)!r} has rows that do not fit its header or are not UTF-8 csv: correct "
                "the file. The rows are not named, since that would reveal something about them."
            ) from None
    columns = [np.concatenate(part) for part in parts]
    if delimiter != ",":
        point = np.frompyfunc(lambda cell: _with_point(cell, as_they_stand), 1, 1)
        columns = [point(column) for column in columns]
    return columns


def _with_point(cell: str | None, as_they_stand: Collection[str]) -> str | None:
    """A number's decimal comma as a point; any other text as it stands."""
    if cell is None or cell in as_they_stand or cell.count(",") != 1 or "." in cell:
        return cell
    changed = cell.replace(",", ".")
    return changed if is_number(changed) else cell


@contextmanager
def _open_csv(path: Path) -> Iterator[tuple[TextIO, str, list[str]]]:
    """The file at its first line, its delimiter and the names of its columns."""
    opens = gzip.open if path.suffix.lower() == GZIP_ENDING else open
    try:
        with opens(path, "rt", encoding="utf-8-sig", newline="") as file:
            yield file, *_read_header(path, file)
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise ValueError(f"{str(path)!r} is not a whole gzip file: compress it again.") from None
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{str(path)!r} is not a csv file of UTF-8 text: save it as 'CSV UTF-8'."
        ) from error
    except csv.Error as error:
        raise ValueError(f"{str(path)!r} is not a csv file: {error}.") from error


def _read_header(path: Path, file: TextIO) -> tuple[str, list[str]]:
    """Delimiter and names of the columns; leaves the file at its first line."""
    line = file.readline(1_000_000)
    file.seek(0)
    if not line.strip():
        raise ValueError(f"{str(path)!r} is empty: it needs a line of column names, then rows.")
    if "\0" in line:
        raise ValueError(f"{str(path)!r} is not a csv file: it holds bytes that are not text.")
    delimiter = max(DELIMITERS, key=lambda each: len(next(csv.reader([line], delimiter=each))))
    header = [name.strip() for name in next(csv.reader(file, delimiter=delimiter))]
    file.seek(0)
    if all(is_number(name) for name in header):
        raise ValueError(
            f"{str(path)!r} begins with numbers: add a first line that names the columns."
        )
    names = [name or f"(unnamed {index})" for index, name in enumerate(header, start=1)]
    check_unique(names)
    return delimiter, names


def _read_columns(
    path: Path, file: TextIO, delimiter: str, n_columns: int, kept: Sequence[int]
) -> tuple[list[NDArray[Any]], dict[int, TextValues]]:
    """The kept columns, and cells as they stand where text or a mark of missing values was changed.

    The file is read again where a column turned to text late.
    """
    text = dict.fromkeys(kept, False)
    while True:
        parts: dict[int, list[NDArray[Any]]] = {index: [] for index in kept}
        cells: dict[int, list[tuple[str, ...]]] = {index: [] for index in kept}
        changed: set[int] = set()
        n_blocks = 0
        file.seek(0)
        for columns in _blocks(path, file, delimiter, n_columns):
            n_blocks += 1
            blank = ("",) * len(columns[0])
            for index in kept:
                numbers = None
                if not text[index]:
                    numbers = _numbers(columns[index], decimal_comma=delimiter != ",")
                    text[index] = numbers is None
                parts[index].append(_texts(columns[index]) if numbers is None else numbers)
                own = columns[index] if numbers is None else _marks(columns[index], numbers, blank)
                cells[index].append(own)
                if own is not blank and index not in changed and any(map(_is_changed, set(own))):
                    changed.add(index)
        if not any(len({block.dtype for block in part}) > 1 for part in parts.values()):
            break
    if n_blocks == 0:
        raise ValueError(f"{str(path)!r} has column names but no rows.")
    given = {index: text_values(list(chain(*cells[index]))) for index in sorted(changed)}
    return [np.concatenate(part) for part in parts.values()], given


def _marks(
    cells: tuple[str, ...], numbers: NDArray[np.float64], blank: tuple[str, ...]
) -> tuple[str, ...]:
    """Marks of missing values among numbers, which a model may know as categories; else blank."""
    missing = np.isnan(numbers)
    if not any(cells[row] for row in np.flatnonzero(missing).tolist()):
        return blank
    pairs = zip(cells, missing.tolist(), strict=True)
    return tuple(cell if is_missing else "" for cell, is_missing in pairs)


def _is_changed(cell: str) -> bool:
    """Whether a model may know a cell of text as something else than the text it is taken as."""
    return cell != "" and (cell in MISSING or cell in FLAGS or cell != cell.strip())


def _blocks(
    path: Path, file: TextIO, delimiter: str, n_columns: int
) -> Iterator[list[tuple[str, ...]]]:
    """Some rows at a time, column by column; blank lines are skipped."""
    reader = csv.reader(file, delimiter=delimiter, strict=True)
    next(reader)
    n_before = 0
    while True:
        collects = gc.isenabled()
        gc.disable()  # millions of short lists make the collector look again and again, for nothing
        try:
            rows = list(islice(reader, ROWS_AT_ONCE))
        finally:
            if collects:
                gc.enable()
        if not rows:
            return
        if any(len(row) != n_columns for row in rows):
            rows = [row for row in rows if row]
            for index, row in enumerate(rows, start=n_before + 1):
                if len(row) != n_columns:
                    raise ValueError(
                        f"{str(path)!r}: row {index} has {len(row)} field(s) where the header has "
                        f"{n_columns}: it begins {quote(row[:2])}. Correct or delete that row."
                    )
        n_before += len(rows)
        if rows:
            yield list(zip(*rows, strict=True))


def _numbers(values: Sequence[str], decimal_comma: bool) -> NDArray[np.float64] | None:
    """Values as numbers, missing ones nan; None where one is neither."""
    with suppress(ValueError):
        numbers = np.fromiter(map(float, values), np.float64, len(values))
        return None if "_" in "".join(values) else numbers
    found = np.empty(len(values))
    for row, value in enumerate(values):
        value = value.strip()
        if value in MISSING:
            found[row] = np.nan
            continue
        if decimal_comma and value.count(",") == 1 and "." not in value:
            value = value.replace(",", ".")
        if not is_number(value):
            return None
        found[row] = float(value)
    return found


def _texts(values: Sequence[str]) -> NDArray[Any]:
    stripped = {value: value.strip() for value in set(values)}
    texts = [None if stripped[value] in MISSING else stripped[value] for value in values]
    return np.array(texts, dtype=object)


# ---- parquet ----
def _with_parquet(path: Path, skip: Collection[str] | None) -> Any:
    """The frame without the skipped columns, or the names where `skip` is None."""
    for reader, name in ((_with_pyarrow, "pyarrow"), (_with_polars, "polars")):
        try:
            return reader(path, skip)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != name:
                raise
    raise ImportError(
        f"reading {str(path)!r} needs pyarrow or polars: pip install pyarrow, or use csv."
    )


def _with_pyarrow(path: Path, skip: Collection[str] | None) -> Any:
    from pyarrow import ArrowException, parquet

    try:
        with parquet.ParquetFile(path) as file:
            names = file.schema_arrow.names
            check_unique(names)
            if skip is None:
                return list(names)
            return file.read([name for name in names if name not in skip])
    except ArrowException as error:
        raise _no_parquet(path) from error


def _with_polars(path: Path, skip: Collection[str] | None) -> Any:
    import polars

    try:
        names = list(polars.read_parquet_schema(path))
        if skip is None:
            return names
        return polars.read_parquet(path, columns=[name for name in names if name not in skip])
    except polars.exceptions.PolarsError as error:
        raise _no_parquet(path) from error


def _no_parquet(path: Path) -> ValueError:
    return ValueError(f"{str(path)!r} is not a parquet file, or is damaged: write it again.")
