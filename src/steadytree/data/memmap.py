"""Binned rows in a folder on disk, mapped into memory a block at a time."""

import contextlib
import errno
import hashlib
import json
import os
import shutil
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from steadytree._base.files import locked, write_text_atomically
from steadytree.data._kernels.bins import merge_bins
from steadytree.data.binning import bin_index_type
from steadytree.data.column import Column
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.sources import Parted, Pass, pass_over
from steadytree.data.splits import SplitTable

VERSION = 3
CONTENTS = "map.json"
NAMES = ("codes", "labels")
OnProgress = Callable[[str], None]
OWN = ("slots", "codes", "labels")  # followed by the fit's token
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
CHUNK = 1 << 20


class MapFolder:
    """A folder of binned rows, labels and the nodes of rows; by block and feature.

    Fits may share a folder. Each writes files of its own and keeps open what it reads; a map is
    moved to its place when it is whole, with the size and digest of each file in its table of
    contents, and is used again only where they are right. Without a path the files have no name,
    so that nothing is left of them however the process ends.
    """

    def __init__(self, path: str | PathLike[str] | None = None) -> None:
        self._temporary = path is None
        self.path = Path(tempfile.gettempdir() if path is None else path)
        self.sizes: list[int] = []  # rows of each block
        self.n_features = 0
        self.dtype: type[Any] = np.uint8
        self._files: dict[str, IO[bytes]] = {}
        if self._temporary:
            self._files["slots"] = self._open("slots")
            return
        _check_own(self.path)
        self._made = not self.path.exists()
        self.path.mkdir(parents=True, exist_ok=True)
        self._token = uuid.uuid4().hex
        with alone(self.path):
            sweep(self.path)
            self._files["slots"] = self._open("slots")
            _is_free(self._files["slots"])  # locked as long as it is open: the fit is alive

    def _open(self, name: str) -> IO[bytes]:
        """A new file of this fit."""
        if self._temporary:
            return tempfile.TemporaryFile()
        return own_path(self.path, name, self._token).open("x+b")

    def close(self) -> None:
        """Remove what was made for one fit only."""
        for file in self._files.values():
            file.close()
        if self._temporary:
            return
        for name in OWN:
            own_path(self.path, name, self._token).unlink(missing_ok=True)
        if self._made:
            with contextlib.suppress(OSError):  # a map is in it
                self.path.rmdir()

    # ---- writing ----
    def begin(self, space: FeatureSpace, n_rows: int) -> None:
        """Make room for the bins of a space; an error if the disk has none."""
        self.sizes, self.n_features = [], len(space)
        self.dtype = bin_index_type(max(column.n_bins for column in space))
        needed = n_rows * sum(self._widths.values())
        if needed > shutil.disk_usage(self.path).free:
            raise no_room(needed, self.path)
        for name in NAMES:
            self._files[name] = self._open(name)
        sizes = {self._files[name]: n_rows * width for name, width in self._widths.items()}
        reserve(sizes, self.path)

    @property
    def _widths(self) -> dict[str, int]:
        """Bytes that a row takes in each file."""
        binned = self.n_features * np.dtype(self.dtype).itemsize
        return {"codes": binned, "labels": 4, "slots": 4}

    def append(self, binned: NDArray[Any], labels: NDArray[np.int32]) -> None:
        """Write one block behind the others."""
        for name, array in (("codes", binned), ("labels", labels)):
            self._files[name].write(np.ascontiguousarray(array).data)
        self.sizes.append(len(labels))

    def merge_bins(self, splits: SplitTable) -> None:
        """Codes of the merged bins in place of those of the full grid."""
        self._files["codes"].flush()
        if splits.merged_bin is None:
            return
        for first, size in self.blocks():
            binned = self.binned(first, size, "r+")
            merge_bins(binned, splits.space.bin_offsets, splits.merged_bin, binned)

    def clear_nodes(self) -> None:
        """Put all rows into node 0."""
        node_of_row = self._files["slots"]
        node_of_row.truncate(0)
        reserve({node_of_row: 4 * sum(self.sizes)}, self.path)

    # ---- reading ----
    def blocks(self) -> Iterator[tuple[int, int]]:
        """First row and number of rows of each block."""
        first = 0
        for size in self.sizes:
            yield first, size
            first += size

    def binned(self, first: int, size: int, mode: Any = "c") -> NDArray[Any]:
        """Codes (p, size) of one block."""
        offset = first * self.n_features * np.dtype(self.dtype).itemsize
        return self._map("codes", self.dtype, mode, offset, (self.n_features, size))

    def labels(self, first: int, size: int) -> NDArray[np.int32]:
        return self._map("labels", np.int32, "c", 4 * first, (size,))

    def node_of_row(self, first: int, size: int) -> NDArray[np.int32]:
        """The node of each row; what is written here is written to the disk."""
        return self._map("slots", np.int32, "r+", 4 * first, (size,))

    def _map(
        self, name: str, dtype: type[Any], mode: Any, offset: int, shape: tuple[int, ...]
    ) -> NDArray[Any]:
        return np.asarray(np.memmap(self._files[name], dtype, mode, offset, shape))

    # ---- table of contents ----
    def keep(
        self, marks: Any, space: FeatureSpace, classes: NDArray[Any], counts: NDArray[np.int64]
    ) -> None:
        """Move a whole map to where the next fit looks for it, unless one is there already."""
        for name in NAMES:
            self._files[name].flush()
        if self._temporary:
            return
        for name in NAMES:  # cut off what was reserved and not needed, and make the rest last
            self._files[name].truncate(sum(self.sizes) * self._widths[name])
            os.fsync(self._files[name].fileno())
        content = {
            "version": VERSION,
            "marks": marks,
            "sizes": self.sizes,
            "codes": np.dtype(self.dtype).name,
            "columns": [_column_dict(column) for column in space],
            "classes": classes.tolist(),
            "class_type": classes.dtype.str,
            "counts": counts.tolist(),
            "files": {name: _describe(self._files[name]) for name in NAMES},
        }
        with alone(self.path):
            if _read_contents(self.path) is not None:
                return  # of a fit that was faster
            for name in NAMES:
                self._files[name].close()
                kept = own_path(self.path, name, self._token).replace(self.path / f"{name}.bin")
                self._files[name] = kept.open("rb")
            try:  # written last, so that half a map is never taken for one
                write_text_atomically(self.path / CONTENTS, _text(content))
            except OSError:
                for name in NAMES:
                    self._files[name].close()
                    (self.path / f"{name}.bin").unlink(missing_ok=True)
                raise

    def recall(self, marks: Any) -> tuple[FeatureSpace, NDArray[Any], NDArray[np.int64]] | None:
        """Space, classes and class counts of a map that was kept; None where there is none."""
        if self._temporary:
            return None
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
        counts = np.array(content["counts"], np.int64)
        return space, np.array(content["classes"], content["class_type"]), counts


class MappedRows(Parted):
    """The rows of a map as a source; no more than one block of them is in memory."""

    def __init__(
        self, folder: MapFolder, splits: SplitTable, n_classes: int, on_progress: OnProgress
    ) -> None:
        super().__init__(splits, n_classes)
        self._folder, self._on_progress, self._n_passes = folder, on_progress, 0
        self.start()

    def restart(self) -> None:
        self._folder.clear_nodes()

    def sum_over(self, todo: Pass) -> NDArray[np.int64]:
        self._n_passes += 1
        total = np.zeros((todo.n_counted, self.splits.n_bins, self.n_classes), np.int64)
        n_rows, table = sum(self._folder.sizes), self.splits.table
        for first, size in self._folder.blocks():
            binned, labels = self._folder.binned(first, size), self._folder.labels(first, size)
            total += pass_over(binned, labels, self._folder.node_of_row(first, size), table, todo)
            self._on_progress(f"pass {self._n_passes}: {first + size:,} of {n_rows:,} rows counted")
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


def _describe(file: Any) -> list[Any]:
    """Size of a file, and what tells its content from any other."""
    file.seek(0)
    digest = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=32))
    return [os.fstat(file.fileno()).st_size, digest.hexdigest()]


def _column_dict(column: Column) -> dict[str, Any]:
    bounds = [None, None] if column.is_categorical else [column.low, column.high]
    found: dict[str, Any] = {"name": column.name, "kind": column.kind, "bounds": bounds}
    found |= {"categories": list(column.categories), "missing": column.missing}
    found["ordered"] = column.ordered
    return found | {"cuts": column.thresholds.tolist()}


def _column(found: dict[str, Any]) -> Column:
    low, high = (np.nan if bound is None else bound for bound in found["bounds"])
    categories = tuple(found["categories"])
    own = found["name"], found["kind"], low, high, categories, found["missing"]
    column = Column(*own, ordered=found.get("ordered", False))
    return column if column.is_categorical else column.with_thresholds(np.array(found["cuts"]))


# ---- files of one fit, in a folder that other fits may use too ----
@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """One process at a time, for moments; where folders cannot be locked, digests have to do."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        yield
        return
    try:
        with locked(handle):
            yield
    finally:
        os.close(handle)


def own_path(folder: Path, name: str, token: str) -> Path:
    """Where a fit writes a file that no other fit writes."""
    return folder / f"{name}-{token}.bin"


def sweep(folder: Path) -> None:
    """Remove the files of fits that were killed."""
    begun = [file.stem.partition("-") for file in folder.iterdir()]
    for token in {token for name, dash, token in begun if name in OWN and dash}:
        alive = own_path(folder, "slots", token)
        with contextlib.suppress(OSError):  # open elsewhere, where open files cannot be removed
            if alive.exists():
                with alive.open("rb") as file:
                    if not _is_free(file):
                        continue
                alive.unlink()
            for name in OWN[1:]:
                own_path(folder, name, token).unlink(missing_ok=True)


def _is_free(file: IO[bytes]) -> bool:
    """Take the lock of a file, unless a living fit has it."""
    if sys.platform != "win32":
        import fcntl

        with contextlib.suppress(OSError):
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        return False
    return True


def reserve(sizes: Mapping[IO[bytes], int], folder: Path) -> None:
    """Give files their sizes, on the disk too: a mapped page without room kills the process.

    The OSError of a disk without enough room for all says how much is needed.
    """
    try:
        for file, size in sizes.items():
            if size and hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
            else:
                _write_zeros(file, size)
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        for file in sizes:
            with contextlib.suppress(OSError):  # what is left in a buffer has no room either
                file.truncate(0)
        raise no_room(sum(sizes.values()), folder) from None


def _write_zeros(file: IO[bytes], size: int) -> None:
    os.lseek(file.fileno(), 0, os.SEEK_SET)
    while size > 0:
        size -= os.write(file.fileno(), bytes(min(CHUNK, size)))
    os.fsync(file.fileno())
    file.seek(0)


def no_room(needed: int, folder: Path) -> OSError:
    """What to say where the disk is full."""
    free = shutil.disk_usage(folder).free
    return OSError(
        f"the binned rows need {needed / 1e9:.3g} GB, and {str(folder)!r} has {free / 1e9:.3g} "
        "GB left: name a folder on another disk with cache=."
    )
