"""Parts: rows in files or on a cluster, read part by part for sums over all and for a sample."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.data.blocks import DataFiles, Paths
from steadytree.data.dask import DaskParts
from steadytree.data.labels import check_labels
from steadytree.data.table import Table, is_dask

MOST_SAMPLED = 100_000  # rows that are loaded for what needs them in memory


def is_parted(X: Any) -> bool:
    """Whether rows are not in memory: the path of a file or folder, or a Dask collection."""
    return isinstance(X, str | PathLike | Parts) or is_dask(X)


@dataclass(frozen=True, eq=False)
class RowSample:
    """Rows drawn by chance, each as likely as any other: those of the smallest random keys.

    Samples of two parts add up to one of both. Rows stay in their order.
    """

    table: Table
    labels: NDArray[Any]
    keys: NDArray[np.float64]
    most: int
    n_all: int  # rows that these were drawn from

    def __add__(self, other: "RowSample") -> "RowSample":
        tables = [one.table for one in (self, other) if one.table.n_rows]
        if len(tables) < 2:
            filled = self if self.table.n_rows else other
            return replace(filled, n_all=self.n_all + other.n_all)
        both = RowSample(
            Table.stack(tables),
            np.concatenate([self.labels, other.labels]),
            np.concatenate([self.keys, other.keys]),
            self.most,
            self.n_all + other.n_all,
        )
        return both.smallest()

    def smallest(self) -> "RowSample":
        """At most `most` of the rows."""
        if len(self.keys) <= self.most:
            return self
        kept = np.sort(np.argpartition(self.keys, self.most - 1)[: self.most])
        taken = self.table.take(kept), self.labels[kept], self.keys[kept]
        return RowSample(*taken, self.most, self.n_all)

    @property
    def note(self) -> str:
        """A sentence where rows were left out; empty where none was."""
        if len(self.keys) == self.n_all:
            return ""
        return f"{len(self.keys):,} of {self.n_all:,} rows, drawn by chance"


class Parts:
    """Rows of Parquet or Arrow files, or of a Dask collection.

    Parameters
    ----------
    X : path, list of paths, or dask array or dataframe
    y : str, or dask array or series
        The name of the target where X is a path.
    columns : list of str, optional
        Those to read; by default all but the target.
    """

    def __init__(self, X: Any, y: Any, columns: Sequence[str] | None = None) -> None:
        self._given, self._target, self.is_dask = X, y, is_dask(X)
        if self.is_dask:
            self._dask = DaskParts(X, y)
            self.names = tuple(map(str, getattr(X, "columns", ())))
        elif not isinstance(y, str):
            raise TypeError(
                f"y must name the target column where X is a path, got {type(y).__name__}."
            )
        else:
            self._columns = columns
            self.names = tuple(self._files(columns).names)

    @classmethod
    def of(cls, X: Any, y: Any) -> "Parts":
        """As they are, or from paths or collections."""
        return X if isinstance(X, Parts) else cls(X, y)

    def _files(self, columns: Sequence[str] | None) -> DataFiles:
        paths: Paths = self._given
        return DataFiles(paths, self._target, columns)

    def add_up(
        self, function: Callable[..., Any], *shared: Any, columns: Sequence[str] | None = None
    ) -> Any:
        """The sum of ``function(X, y, *shared)`` over the parts, of which there must be one.

        Of files only `columns` are read.
        """
        if self.is_dask:
            return self._dask.add_up(function, *shared)
        total: Any = None
        for table, labels in self._files(columns or self._columns).blocks():
            here = function(table, labels, *shared)
            total = here if total is None else total + here
        if total is None:
            raise ValueError("X and y have no rows: at least one is needed.")
        return total

    def sample(self, most: int = MOST_SAMPLED, seed: int = 0) -> RowSample:
        """At most so many rows, drawn by chance in one pass: all of them where there are fewer."""
        if self.is_dask:
            found = self._dask.add_up_numbered(sample_part, most, seed)
        else:
            # one stream of keys for all blocks: their size does not matter
            rng = np.random.default_rng(seed)
            found = self.add_up(_sample_with, rng, most)
        if not found.n_all:
            raise ValueError("X and y have no rows: at least one is needed.")
        return found


def sample_part(X: Any, y: Any, number: int, most: int, seed: int) -> RowSample:
    """A sample of one partition, by a stream of keys of its own."""
    return _sample_with(X, y, np.random.default_rng([seed, number]), most)


def _sample_with(X: Any, y: Any, rng: np.random.Generator, most: int) -> RowSample:
    table = Table.read(X)
    labels = check_labels(y, table.n_rows)
    return RowSample(table, labels, rng.random(table.n_rows), most, table.n_rows).smallest()
