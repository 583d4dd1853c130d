"""Files as parts: summarised, binned once into a map on disk, then counted from there."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree._base.optional import require
from steadytree.data.binning import Grid
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.memmap import MapFolder, MappedRows, OnProgress
from steadytree.data.out_of_core import DataSummary, Known, class_indices
from steadytree.data.splits import SplitTable
from steadytree.data.table import Table, check_unique, quote

PARQUET_ENDINGS = (".parquet", ".pq")
ARROW_ENDINGS = (".arrow", ".feather", ".ipc")
ENDINGS = PARQUET_ENDINGS + ARROW_ENDINGS
BLOCK_ROWS = 1_000_000
BLOCK_VALUES = 24_000_000  # 192 MB of numbers: of wide files fewer rows are read at a time
LEAST_ROWS = 1_000
Paths = str | PathLike[str] | Sequence[str | PathLike[str]]


class DataFiles:
    """Rows of Parquet or Arrow files of one schema, as blocks of features and labels.

    In folders, files whose names begin with ``.`` or ``_`` are skipped.
    """

    def __init__(self, paths: Paths, target: str, columns: Sequence[str] | None = None) -> None:
        self._arrow = require("pyarrow", extra="parquet", purpose="reading Parquet or Arrow files")
        self.paths = list_files(paths)
        schemas = [self._schema(path) for path in self.paths]
        for path, schema in zip(self.paths, schemas, strict=True):
            _check_same(self.paths[0], schemas[0], path, schema)
        self.target, self._found = target, self.marks
        self.names = _check_columns(list(schemas[0]), target, columns)
        # from the files' own tables of contents; None where one has none
        self.n_rows: int | None = None
        if all(_is_parquet(path) for path in self.paths):
            self.n_rows = sum(self._parquet.read_metadata(path).num_rows for path in self.paths)

    @classmethod
    def columns_of(cls, paths: Paths) -> list[str]:
        """Names of the columns of the first file."""
        one = cls.__new__(cls)
        one._arrow = require("pyarrow", extra="parquet", purpose="reading Parquet or Arrow files")
        return list(one._schema(list_files(paths)[0]))

    @cached_property
    def _parquet(self) -> Any:
        return require("pyarrow.parquet", extra="parquet", purpose="reading Parquet files")

    @property
    def block_rows(self) -> int:
        """Rows that are read at a time: fewer than a million where there are many columns."""
        return min(BLOCK_ROWS, max(BLOCK_VALUES // (len(self.names) + 1), LEAST_ROWS))

    @property
    def marks(self) -> list[tuple[str, int, int]]:
        """What tells whether the files changed: names, sizes, times."""
        found = [(path, path.stat()) for path in self.paths]
        return [(str(path.resolve()), stat.st_size, stat.st_mtime_ns) for path, stat in found]

    def blocks(self) -> Iterator[tuple[Table, NDArray[Any]]]:
        """Features and labels of as many rows as one block has room for, at a time."""
        for part in self._parts():
            yield Table.read(part.select(self.names)), self._labels(part.column(self.target))
        if self.marks != self._found:
            raise ValueError(
                "the files changed while they were read: let no one write to them, and start again."
            )

    def _parts(self) -> Iterator[Any]:
        """Arrow tables of at most `block_rows` rows, full ones as far as there are rows."""
        most = self.block_rows
        waiting: list[Any] = []
        n_waiting = 0
        for batch in self._batches():
            while batch.num_rows:
                room = most - n_waiting
                waiting.append(batch.slice(0, room))
                n_waiting += waiting[-1].num_rows
                batch = batch.slice(room)
                if n_waiting == most:
                    yield self._arrow.Table.from_batches(waiting)
                    waiting, n_waiting = [], 0
        if waiting:
            yield self._arrow.Table.from_batches(waiting)

    def _batches(self) -> Iterator[Any]:
        wanted = [*self.names, self.target]
        for path in self.paths:
            with _arrow_errors(self._arrow, path):
                batches = self._parquet_batches if _is_parquet(path) else self._arrow_batches
                for batch in batches(path, wanted):
                    yield batch.select(wanted)

    def _parquet_batches(self, path: Path, wanted: list[str]) -> Iterator[Any]:
        with self._parquet.ParquetFile(path, pre_buffer=False) as file:
            yield from file.iter_batches(self.block_rows, columns=wanted, use_threads=False)

    def _arrow_batches(self, path: Path, wanted: list[str]) -> Iterator[Any]:
        with self._arrow.memory_map(str(path)) as mapped, _open_arrow(self._arrow, mapped) as file:
            stored = getattr(file, "num_record_batches", None)
            yield from file if stored is None else map(file.get_batch, range(stored))

    def _schema(self, path: Path) -> dict[str, Any]:
        with _arrow_errors(self._arrow, path):
            if _is_parquet(path):
                schema = self._parquet.read_schema(path)
            else:
                with self._arrow.memory_map(str(path)) as mapped:
                    schema = _open_arrow(self._arrow, mapped).schema
        check_unique(schema.names)
        return dict(zip(schema.names, schema.types, strict=True))

    def _labels(self, column: Any) -> NDArray[Any]:
        if column.null_count:
            raise ValueError(
                f"target {self.target!r} has {column.null_count:,} missing label(s) in one block "
                "of rows alone: drop those rows or label them."
            )
        if self._arrow.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        return np.asarray(column.to_numpy())


def list_files(paths: Paths) -> list[Path]:
    """Data files by name; folders stand for the files in them, in order of their names."""
    listed = [paths] if isinstance(paths, str | PathLike) else list(paths)
    if not listed:
        raise ValueError("paths is empty: name at least one Parquet or Arrow file.")
    found: list[Path] = []
    for path in map(Path, listed):
        if not path.exists():
            raise FileNotFoundError(f"there is no file or folder {str(path)!r}: check the path.")
        if path.is_dir():
            seen = sorted(each for each in path.iterdir() if each.name[0] not in "._")
            parted = [each.name for each in seen if each.is_dir() and "=" in each.name]
            if parted:
                raise ValueError(
                    f"folder {str(path)!r} holds the folder {parted[0]!r}, whose files are not "
                    "read: pass a list of such folders, or write the rows without partitions."
                )
            inside = [each for each in seen if _is_data_file(each)]
            if not inside:
                raise ValueError(
                    f"folder {str(path)!r} holds no file that ends in {', '.join(ENDINGS)}."
                )
            found += inside
        elif path.suffix.lower() not in ENDINGS:
            raise ValueError(
                f"{str(path)!r} ends in {path.suffix or 'nothing'!r}: "
                f"pass files that end in {', '.join(ENDINGS)}."
            )
        else:
            found.append(path)
    return found


def _is_data_file(path: Path) -> bool:
    return path.is_file() and path.suffix.lower() in ENDINGS


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() in PARQUET_ENDINGS


def _check_columns(known: list[str], target: str, columns: Sequence[str] | None) -> list[str]:
    if target not in known:
        raise ValueError(
            f"target {target!r} is not a column of the files: they have {quote(known)}."
        )
    if columns is None:
        names = [name for name in known if name != target]
    else:
        names = list(columns)
        absent = [name for name in names if name not in known]
        if absent:
            raise ValueError(f"columns names {quote(absent)}, but the files have {quote(known)}.")
        check_unique(names)
        if target in names:
            raise ValueError(f"column {target!r} is both the target and in columns: choose one.")
    if not names:
        raise ValueError(f"there is no column to learn from beside the target {target!r}.")
    return names


def _check_same(first: Path, known: dict[str, Any], path: Path, found: dict[str, Any]) -> None:
    """Refuse a file whose columns differ from those of the first, and say which."""
    for one, has, other, lacks in ((first, known, path, found), (path, found, first, known)):
        for name in has.keys() - lacks.keys():
            raise ValueError(
                f"files differ: {str(one)!r} has a column {name!r}, {str(other)!r} has none."
            )
    for name, type_ in known.items():
        if found[name] != type_:
            raise ValueError(
                f"files differ: column {name!r} is {type_} in {str(first)!r} and {found[name]} "
                f"in {str(path)!r}: write both alike."
            )


def _open_arrow(arrow: Any, mapped: Any) -> Any:
    """Files come with or without a table of contents at their end."""
    try:
        return arrow.ipc.open_file(mapped)
    except arrow.ArrowInvalid:
        mapped.seek(0)
        return arrow.ipc.open_stream(mapped)


@contextmanager
def _arrow_errors(arrow: Any, path: Path) -> Iterator[None]:
    """Turn the reader's own errors into one that names the file."""
    try:
        yield
    except arrow.ArrowException as error:
        raise ValueError(
            f"{str(path)!r} is not a Parquet or Arrow file, or is damaged: write it again."
        ) from error


class FileParts:
    """Rows of files, binned into a folder; use it in a `with` statement, which cleans up.

    A folder named by `cache` is kept, any other is temporary.
    """

    def __init__(
        self, files: DataFiles, cache: str | PathLike[str] | None, on_progress: OnProgress | None
    ) -> None:
        self._files, self._folder = files, MapFolder(cache)
        self._on_progress = on_progress or (lambda message: None)
        self._n_rows = 0
        self._marks: Any = None
        self._known: Known | None = None

    def __enter__(self) -> "FileParts":
        return self

    def __exit__(self, *raised: object) -> None:
        self._folder.close()

    def recall(self, grid: Grid, n_thresholds: int) -> Known | None:
        """What a kept map of the same files and grid holds; None where there is none."""
        how = [grid, n_thresholds, self._files.target, self._files.names]
        self._marks = [self._files.marks, how]
        self._known = self._folder.recall(self._marks)
        return self._known

    def summarise(self, grid: Grid) -> DataSummary:
        """First pass over the files."""
        total: DataSummary | None = None
        for table, labels in self._files.blocks():
            here = DataSummary.at(table, labels, grid)
            total = here if total is None else total + here
            self._report("first reading", total.summary.n_rows)
        if total is None:
            raise ValueError("the files hold no rows.")
        self._n_rows = total.summary.n_rows
        return total

    def encode(self, space: FeatureSpace, classes: NDArray[Any]) -> NDArray[np.int64]:
        """Second pass: the bins of all rows are written to the folder."""
        self._folder.begin(space, self._n_rows)
        counts, n_read = np.zeros((space.bin_offsets[-1], len(classes)), np.int64), 0
        for table, labels in self._files.blocks():
            binned, indices = space.bin_table(table), class_indices(labels, table.n_rows, classes)
            counts += space.count_bins(binned, indices, len(classes))
            self._folder.append(binned, indices)
            n_read += table.n_rows
            self._report("binning", n_read)
        self._known = None
        self._new = (space, classes, counts)
        return counts

    def source(self, splits: SplitTable, n_classes: int) -> MappedRows:
        """The folder as a source of counts."""
        if self._known is None:
            self._folder.merge_bins(splits)
            self._folder.keep(self._marks, *self._new)
        return MappedRows(self._folder, splits, n_classes, self._on_progress)

    def _report(self, step: str, n_rows: int) -> None:
        total = self._n_rows or self._files.n_rows
        of = f" of {total:,}" if total else ""
        self._on_progress(f"{step}: {n_rows:,}{of} rows")
