"""Files as parts: looked at once, binned once into a map on disk, then counted from there."""

from os import PathLike
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.core.grid import Grid
from steadytree.core.look import Look, label_codes
from steadytree.core.rules import Rules
from steadytree.core.space import FeatureSpace
from steadytree.kernels import occupied_bins
from steadytree.sources.data_files import DataFiles
from steadytree.sources.mapped_rows import MapFolder, MappedRows, Say

Known = tuple[FeatureSpace, NDArray[Any], NDArray[np.bool_]]


class FileParts:
    """Rows of files, binned into a folder; use it in a `with` statement, which cleans up.

    Parameters
    ----------
    files : DataFiles
    cache : path-like, optional
        Folder for the binned rows that is kept; by default a temporary one.
    say : callable, optional
        Told, in words, what is being done.
    """

    def __init__(
        self,
        files: DataFiles,
        cache: str | PathLike[str] | None = None,
        say: Say | None = None,
    ) -> None:
        self._files = files
        self._say = say or _say_nothing
        self._folder = MapFolder(cache)
        self._n_rows = 0
        self._marks: Any = None
        self._known: Known | None = None

    def __enter__(self) -> "FileParts":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._folder.close()

    def recall(self, grid: Grid, n_thresholds: int) -> Known | None:
        """What a kept map of the same files and grid holds; None where there is none."""
        how = [grid, n_thresholds, self._files.target, self._files.names]
        self._marks = [self._files.marks, how]
        self._known = self._folder.recall(self._marks)
        return self._known

    def look(self, grid: Grid) -> Look:
        """First pass over the files."""
        whole: Look | None = None
        for table, labels in self._files.blocks():
            here = Look.at(table, labels, grid)
            whole = here if whole is None else whole + here
            self._tell("first reading", whole.summary.n_rows)
        if whole is None:
            raise ValueError("the files hold no rows.")
        self._n_rows = whole.summary.n_rows
        return whole

    def encode(self, space: FeatureSpace, classes: NDArray[Any]) -> NDArray[np.bool_]:
        """Second pass: the bins of all rows are written to the folder."""
        self._folder.begin(space, self._n_rows)
        offsets = np.concatenate([[0], np.cumsum([column.n_bins + 1 for column in space])])
        occupied, n_read = np.zeros(offsets[-1], bool), 0
        for table, labels in self._files.blocks():
            codes = space.codes_of(table)
            occupied |= occupied_bins(codes, offsets)
            self._folder.append(codes, label_codes(labels, table.n_rows, classes))
            n_read += table.n_rows
            self._tell("binning", n_read)
        self._known = None
        self._new = (space, classes, occupied)
        return occupied

    def source(self, rules: Rules, n_classes: int) -> MappedRows:
        """The folder as a source of counts."""
        if self._known is None:
            self._folder.recode(rules)
            self._folder.keep(self._marks, *self._new)
        return MappedRows(self._folder, rules, n_classes, self._say)

    def _tell(self, what: str, n_rows: int) -> None:
        whole = self._n_rows or self._files.n_rows
        of = f" of {whole:,}" if whole else ""
        self._say(f"{what}: {n_rows:,}{of} rows")


def _say_nothing(text: str) -> None:
    pass
