"""Binned rows in a folder on disk, mapped into memory a block at a time."""

import json
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.core.atomic import write_text_atomically
from steadytree.core.column import Column
from steadytree.core.rules import Rules, smallest_code_type
from steadytree.core.space import FeatureSpace
from steadytree.kernels import RuleTable, recode
from steadytree.sources.parted import Parted, Pass, pass_over

VERSION = 1
CONTENTS = "map.json"
FILES = ("codes.bin", "labels.bin")
Say = Callable[[str], None]


class MapFolder:
    """A folder of codes, labels and the nodes that rows are in; block by block, feature by feature.

    Parameters
    ----------
    path : path-like, optional
        Kept by this name, and used again for the same files and grid; by default a temporary
        folder that `close` removes.
    """

    def __init__(self, path: str | PathLike[str] | None = None) -> None:
        self._temporary = path is None
        if path is None:
            self.path = Path(tempfile.mkdtemp(prefix="steadytree-"))
        else:
            self.path = Path(path)
            _check_own(self.path)
            self.path.mkdir(parents=True, exist_ok=True)
        self._slots = self.path / f"slots-{uuid.uuid4().hex}.bin"  # of this fit alone
        self.sizes: list[int] = []  # rows of each block
        self.n_features = 0
        self.dtype: type[Any] = np.uint8

    def close(self) -> None:
        """Remove what was made for one fit only."""
        if self._temporary:
            shutil.rmtree(self.path, ignore_errors=True)
        else:
            self._slots.unlink(missing_ok=True)

    # ---- writing ----
    def begin(self, space: FeatureSpace, n_rows: int) -> None:
        """Make room for the codes of a space; refuses where the disk has none."""
        self.sizes, self.n_features = [], len(space)
        self.dtype = smallest_code_type(max(column.n_bins for column in space))
        needed = n_rows * (self.n_features * np.dtype(self.dtype).itemsize + 8)
        free = shutil.disk_usage(self.path).free
        if needed > free:
            raise OSError(
                f"the binned rows need {needed / 1e9:.1f} GB, and {str(self.path)!r} has "
                f"{free / 1e9:.1f} GB left: name a folder on another disk with cache=."
            )
        for name in (CONTENTS, *FILES):
            (self.path / name).unlink(missing_ok=True)

    def append(self, codes: NDArray[Any], labels: NDArray[np.int32]) -> None:
        """Write one block behind the others."""
        for name, array in (("codes.bin", codes), ("labels.bin", labels)):
            with (self.path / name).open("ab") as file:
                file.write(np.ascontiguousarray(array).data)
        self.sizes.append(len(labels))

    def recode(self, rules: Rules) -> None:
        """Codes of the merged bins in place of those of the full grid."""
        if rules.new_code is None:
            return
        for first, size in self.blocks():
            codes = self.codes(first, size, "r+")
            recode(codes, rules.full_offsets, rules.new_code, codes)

    def clear_slots(self) -> None:
        """Put all rows into node 0."""
        with self._slots.open("wb") as file:
            file.truncate(4 * sum(self.sizes))

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
        return self._map("codes.bin", self.dtype, mode, offset, (self.n_features, size))

    def labels(self, first: int, size: int) -> NDArray[np.int32]:
        return self._map("labels.bin", np.int32, "c", 4 * first, (size,))

    def slots(self, first: int, size: int) -> NDArray[np.int32]:
        """The node of each row; what is written here is written to the disk."""
        return self._map(self._slots.name, np.int32, "r+", 4 * first, (size,))

    def _map(
        self, name: str, dtype: type[Any], mode: Any, offset: int, shape: tuple[int, ...]
    ) -> NDArray[Any]:
        return np.asarray(np.memmap(self.path / name, dtype, mode, offset, shape))

    # ---- table of contents ----
    def write_contents(
        self, marks: Any, space: FeatureSpace, classes: NDArray[Any], occupied: NDArray[np.bool_]
    ) -> None:
        """Say what the folder holds; written last, so that half a map is never taken for one."""
        content = {
            "version": VERSION,
            "marks": marks,
            "sizes": self.sizes,
            "codes": np.dtype(self.dtype).name,
            "columns": [_column_dict(column) for column in space],
            "classes": classes.tolist(),
            "class_type": classes.dtype.str,
            "occupied": np.flatnonzero(occupied).tolist(),
        }
        write_text_atomically(self.path / CONTENTS, json.dumps(content))

    def recall(self, marks: Any) -> tuple[FeatureSpace, NDArray[Any], NDArray[np.bool_]] | None:
        """Space, classes and occupied bins of a map that was kept; None where there is none."""
        path = self.path / CONTENTS
        if not path.exists():
            return None
        content = json.loads(path.read_text(encoding="utf-8"))
        if content.get("version") != VERSION or content["marks"] != json.loads(json.dumps(marks)):
            raise ValueError(
                f"cache {str(self.path)!r} holds the map of other files, columns or another grid: "
                "name another folder, or delete it."
            )
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
    rules : Rules
    n_classes : int
    say : callable
        Told which level is counted.
    """

    def __init__(self, folder: MapFolder, rules: Rules, n_classes: int, say: Say) -> None:
        super().__init__(rules, n_classes)
        self._folder, self._say = folder, say
        self._n_passes = 0
        self.start()

    def restart(self) -> None:
        self._folder.clear_slots()

    def sum_over(self, todo: Pass) -> NDArray[np.int64]:
        self._n_passes += 1
        table: RuleTable = self._rules.table
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
    others = {name for name in inside - {CONTENTS, *FILES} if not name.startswith("slots-")}
    if others:
        raise ValueError(
            f"cache {str(path)!r} holds other files, such as {min(others)!r}: name an empty folder."
        )


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
