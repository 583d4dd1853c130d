"""Binned rows in a folder on disk, mapped into memory a block at a time."""

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from os import PathLike
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from steadytree._base.files import write_text_atomically
from steadytree.data._kernels import SplitArrays, recode
from steadytree.data.column import Column
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.memmap_files import (
    OWN,
    alone,
    claim,
    digest,
    no_room,
    own_path,
    reserve,
    sweep,
)
from steadytree.data.sources import Parted, Pass, pass_over
from steadytree.data.splits import SplitTable, smallest_code_type

VERSION = 2
CONTENTS = "map.json"
NAMES = ("codes", "labels")
Say = Callable[[str], None]


class MapFolder:
    """A folder of codes, labels and the nodes that rows are in; block by block, feature by feature.

    Fits may share a folder. Each writes files of its own and keeps open what it reads; a map is
    moved to its place when it is whole, with the size and digest of each file in its table of
    contents, and is used again only where they are right.

    Parameters
    ----------
    path : path-like, optional
        Kept by this name, and used again for the same files and grid; by default a temporary
        folder that `close` removes.
    """

    def __init__(self, path: str | PathLike[str] | None = None) -> None:
        self._temporary = path is None
        self._made = False
        if path is None:
            self.path = Path(tempfile.mkdtemp(prefix="steadytree-"))
        else:
            self.path = Path(path)
            _check_own(self.path)
            self._made = not self.path.exists()
            self.path.mkdir(parents=True, exist_ok=True)
        self._token = uuid.uuid4().hex
        with alone(self.path):
            sweep(self.path)
            self._files: dict[str, IO[bytes]] = {"slots": claim(self.path, self._token)}
        self.sizes: list[int] = []  # rows of each block
        self.n_features = 0
        self.dtype: type[Any] = np.uint8

    def close(self) -> None:
        """Remove what was made for one fit only."""
        for file in self._files.values():
            file.close()
        if self._temporary:
            shutil.rmtree(self.path, ignore_errors=True)
            return
        for name in OWN:
            own_path(self.path, name, self._token).unlink(missing_ok=True)
        if self._made:
            with contextlib.suppress(OSError):  # a map is in it
                self.path.rmdir()

    # ---- writing ----
    def begin(self, space: FeatureSpace, n_rows: int) -> None:
        """Make room for the codes of a space; refuses where the disk has none."""
        self.sizes, self.n_features = [], len(space)
        self.dtype = smallest_code_type(max(column.n_bins for column in space))
        needed = n_rows * sum(self._widths.values())
        if needed > shutil.disk_usage(self.path).free:
            raise no_room(needed, self.path)
        for name in NAMES:
            self._files[name] = own_path(self.path, name, self._token).open("x+b")
        sizes = {self._files[name]: n_rows * width for name, width in self._widths.items()}
        reserve(sizes, self.path)

    @property
    def _widths(self) -> dict[str, int]:
        """Bytes that a row takes in each file."""
        codes = self.n_features * np.dtype(self.dtype).itemsize
        return {"codes": codes, "labels": 4, "slots": 4}

    def append(self, codes: NDArray[Any], labels: NDArray[np.int32]) -> None:
        """Write one block behind the others."""
        for name, array in (("codes", codes), ("labels", labels)):
            self._files[name].write(np.ascontiguousarray(array).data)
        self.sizes.append(len(labels))

    def recode(self, rules: SplitTable) -> None:
        """Codes of the merged bins in place of those of the full grid."""
        self._files["codes"].flush()
        if rules.new_code is None:
            return
        for first, size in self.blocks():
            codes = self.codes(first, size, "r+")
            recode(codes, rules.space.bin_offsets, rules.new_code, codes)

    def clear_slots(self) -> None:
        """Put all rows into node 0."""
        slots = self._files["slots"]
        slots.truncate(0)
        reserve({slots: 4 * sum(self.sizes)}, self.path)

    # ---- reading ----
    def blocks(self) -> Iterator[tuple[int, int]]:
        """First row and number of rows of each block."""
        first = 0
        for size in self.sizes:
            yield first, size
            first += size

    def codes(self, first: int, size: int, mode: Any = "c") -> NDArray[Any]:
        """Codes (p, size) of one block."""
        offset = first * self.n_features * np.dtype(self.dtype).itemsize
        return self._map("codes", self.dtype, mode, offset, (self.n_features, size))

    def labels(self, first: int, size: int) -> NDArray[np.int32]:
        return self._map("labels", np.int32, "c", 4 * first, (size,))

    def slots(self, first: int, size: int) -> NDArray[np.int32]:
        """The node of each row; what is written here is written to the disk."""
        return self._map("slots", np.int32, "r+", 4 * first, (size,))

    def _map(
        self, name: str, dtype: type[Any], mode: Any, offset: int, shape: tuple[int, ...]
    ) -> NDArray[Any]:
        return np.asarray(np.memmap(self._files[name], dtype, mode, offset, shape))

    # ---- table of contents ----
    def keep(
        self, marks: Any, space: FeatureSpace, classes: NDArray[Any], occupied: NDArray[np.bool_]
    ) -> None:
        """Move a whole map to where the next fit looks for it, unless one is there already."""
        for name in NAMES:
            self._files[name].flush()
        if self._temporary:
            return
        content = {
            "version": VERSION,
            "marks": marks,
            "sizes": self.sizes,
            "codes": np.dtype(self.dtype).name,
            "columns": [_column_dict(column) for column in space],
            "classes": classes.tolist(),
            "class_type": classes.dtype.str,
            "occupied": np.flatnonzero(occupied).tolist(),
            "files": {name: self._finish(name) for name in NAMES},
        }
        with alone(self.path):
            if _read_contents(self.path) is not None:
                return  # of a fit that was faster
            for name in NAMES:
                self._files[name].close()
                kept = self.path / f"{name}.bin"
                own_path(self.path, name, self._token).replace(kept)
                self._files[name] = kept.open("rb")
            try:  # written last, so that half a map is never taken for one
                write_text_atomically(self.path / CONTENTS, _text(content))
            except OSError:
                for name in NAMES:
                    self._files[name].close()
                    (self.path / f"{name}.bin").unlink(missing_ok=True)
                raise

    def _finish(self, name: str) -> list[Any]:
        """Cut off what was reserved and not needed, and make the rest last."""
        file = self._files[name]
        file.truncate(sum(self.sizes) * self._widths[name])
        os.fsync(file.fileno())
        return _describe(file)

    def recall(self, marks: Any) -> tuple[FeatureSpace, NDArray[Any], NDArray[np.bool_]] | None:
        """Space, classes and occupied bins of a map that was kept; None where there is none."""
        with alone(self.path):
            content = _read_contents(self.path)
            if content is None:
                (self.path / CONTENTS).unlink(missing_ok=True)
                return None
            if content["marks"] != json.loads(json.dumps(marks)):
                raise ValueError(
                    f"cache {str(self.path)!r} holds the map of other files, columns or another "
                    "grid: name another folder, or delete it."
                )
            files = _open_files(self.path)
        if {name: _describe(file) for name, file in files.items()} != content["files"]:
            for file in files.values():
                file.close()
            (self.path / CONTENTS).unlink(missing_ok=True)  # so that a new map takes its place
            return None
        self._files |= files
        space = FeatureSpace(tuple(_column(each) for each in content["columns"]))
        self.sizes, self.n_features = content["sizes"], len(space)
        self.dtype = np.dtype(content["codes"]).type
        occupied = np.zeros(sum(column.n_bins + 1 for column in space), bool)
        occupied[content["occupied"]] = True
        return space, np.array(content["classes"], content["class_type"]), occupied


class MappedRows(Parted):
    """The rows of a map as a source; no more than one block of them is in memory.

    Parameters
    ----------
    folder : MapFolder
    rules : SplitTable
    n_classes : int
    say : callable
        Told which level is counted.
    """

    def __init__(self, folder: MapFolder, rules: SplitTable, n_classes: int, say: Say) -> None:
        super().__init__(rules, n_classes)
        self._folder, self._say = folder, say
        self._n_passes = 0
        self.start()

    def restart(self) -> None:
        self._folder.clear_slots()

    def sum_over(self, todo: Pass) -> NDArray[np.int64]:
        self._n_passes += 1
        table: SplitArrays = self._rules.table
        shape = (todo.n_counted, self._rules.n_bins, self._n_classes)
        total = np.zeros(shape, np.int64)
        n_rows = sum(self._folder.sizes)
        for first, size in self._folder.blocks():
            codes, labels = self._folder.codes(first, size), self._folder.labels(first, size)
            total += pass_over(codes, labels, self._folder.slots(first, size), table, todo)
            self._say(f"pass {self._n_passes}: {first + size:,} of {n_rows:,} rows counted")
        return total


def _check_own(path: Path) -> None:
    """Refuse a folder that holds anything but a map, since a map is written over."""
    if path.exists() and not path.is_dir():
        raise NotADirectoryError(f"cache {str(path)!r} is a file: name a folder.")
    inside = {each.name for each in path.iterdir()} if path.is_dir() else set()
    kept = {CONTENTS, *(f"{name}.bin" for name in NAMES)}
    begun = tuple(f"{name}-" for name in OWN) + (f".{CONTENTS}.",)
    others = {name for name in inside - kept if not name.startswith(begun)}
    if others:
        raise ValueError(
            f"cache {str(path)!r} holds other files, such as {min(others)!r}: name an empty folder."
        )


def _read_contents(folder: Path) -> dict[str, Any] | None:
    """The table of contents of a folder; None where there is none, or not a whole one."""
    try:
        content = (folder / CONTENTS).read_text(encoding="utf-8")
    except (FileNotFoundError, UnicodeDecodeError):
        return None
    with contextlib.suppress(ValueError, AttributeError):
        found = json.loads(content)
        found.pop("check", None)
        if content == _text(found) and found["version"] == VERSION:
            return dict(found)
    return None


def _text(content: dict[str, Any]) -> str:
    """A table of contents with a digest of itself behind it."""
    check = hashlib.sha256(json.dumps(content).encode()).hexdigest()
    return json.dumps(content | {"check": check})


def _open_files(folder: Path) -> dict[str, IO[bytes]]:
    files: dict[str, IO[bytes]] = {}
    for name in NAMES:
        with contextlib.suppress(FileNotFoundError):
            files[name] = (folder / f"{name}.bin").open("rb")
    return files


def _describe(file: IO[bytes]) -> list[Any]:
    return [os.fstat(file.fileno()).st_size, digest(file)]


def _column_dict(column: Column) -> dict[str, Any]:
    bounds = [None, None] if column.is_categorical else [column.low, column.high]
    listed = [column.name, column.kind, bounds, list(column.categories), column.missing]
    keys = ("name", "kind", "bounds", "categories", "missing")
    return dict(zip(keys, listed, strict=True)) | {"cuts": column.cuts.tolist()}


def _column(found: dict[str, Any]) -> Column:
    low, high = (np.nan if bound is None else bound for bound in found["bounds"])
    categories = tuple(found["categories"])
    column = Column(found["name"], found["kind"], low, high, categories, found["missing"])
    return column if column.is_categorical else column.with_cuts(np.array(found["cuts"]))
