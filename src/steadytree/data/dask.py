"""Dask collections as parts: aligned, summarised, binned once on the workers, counted there."""

import contextlib
import operator
import os
import sys
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree._base.optional import require
from steadytree.data._kernels.counts import SplitArrays, move_rows
from steadytree.data.binning import Grid
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.out_of_core import DataSummary, class_indices
from steadytree.data.sources import Parted, Pass, pass_over
from steadytree.data.splits import SplitTable
from steadytree.data.table import Table, is_dask

ADDED_AT_ONCE = 8
CHAINS_A_THREAD, LEAST_CHAINS = 4, 16  # sums at a time; while a link waits, others go on
SMALL = 10_000  # open nodes; what is to be done with more of them is sent once
Part = tuple[NDArray[Any], NDArray[np.int32]]  # binned (p, n) and labels
Ready = tuple[NDArray[Any], NDArray[np.int32], SplitArrays]


def check_both_dask(X: Any, y: Any) -> None:
    """Refuse one Dask collection without the other."""
    for name, one, other, rest in (("X", X, "y", y), ("y", y, "X", X)):
        if is_dask(one) and not is_dask(rest):
            raise TypeError(
                f"{name} is a Dask collection, so {other} must be one too, "
                f"got {type(rest).__name__}: use dask.array.from_array."
            )


class DaskParts:
    """Partitions of X with their labels, on a cluster or wherever Dask computes.

    Without a client the active one is used, and without any Dask's own scheduler.
    """

    def __init__(self, X: Any, y: Any, client: Any = None) -> None:
        check_both_dask(X, y)
        self.runner = Runner(client)
        self.sample, self._pairs = _align(X, y)

    def recall(self, grid: Grid, n_thresholds: int) -> None:
        """Nothing is kept from one fit to the next."""

    def summarise(self, grid: Grid) -> DataSummary:
        """What all partitions tell together; reads the data once."""
        return self.add_up(DataSummary.at, grid)

    def encode(self, space: FeatureSpace, classes: NDArray[Any]) -> NDArray[np.int64]:
        """Bin every partition on its worker and keep it there; class counts of the bins."""
        parts, shared = self._calls(_encode, space, classes), self.runner.share((space, classes))
        counts = self.runner.add_up(_count, [(part, shared) for part in parts])
        *self._parts, counts = self.runner.keep([*parts, counts])
        return self.runner.get(counts)

    def source(self, splits: SplitTable, n_classes: int) -> "DaskRows":
        """The binned partitions as a source of counts."""
        shared = self.runner.share(splits)
        ready = self.runner.keep([self.runner.call(_ready, part, shared) for part in self._parts])
        self._parts = []
        return DaskRows(ready, splits, n_classes, self.runner)

    # ---- for learners and measures that read rows in their own way ----
    def add_up(self, function: Callable[..., Any], *shared: Any) -> Any:
        """The sum of ``function(X, y, *shared)`` over the partitions, brought here."""
        return self.runner.get(self.runner.add_up(_apply, self._arguments(function, *shared)))

    def add_up_numbered(self, function: Callable[..., Any], *shared: Any) -> Any:
        """As `add_up` of ``function(X, y, number, *shared)``, by the partition's number."""
        pairs = enumerate(self._pairs)
        given = [(k, *pair, Parcel((function, k, *shared))) for k, pair in pairs]
        return self.runner.get(self.runner.add_up(_apply, given))

    def keep(self, function: Callable[..., Any], *shared: Any) -> list[Any]:
        """``function(X, y, *shared)`` of every partition, left on its worker."""
        return self.runner.keep(self._calls(function, *shared))

    def _calls(self, function: Callable[..., Any], *shared: Any) -> list[Any]:
        return [self.runner.call(_apply, *each) for each in self._arguments(function, *shared)]

    def _arguments(self, function: Callable[..., Any], *shared: Any) -> list[tuple[Any, ...]]:
        # in a parcel: some schedulers call a tuple that begins with a function
        given = self.runner.share(Parcel((function, *shared)))
        return [(k, *pair, given) for k, pair in enumerate(self._pairs)]

    def chain(self, function: Callable[..., Any], parts: Sequence[Any], *shared: Any) -> list[Any]:
        """``function(part, *shared)`` of what was kept, left there too."""
        given = self.runner.share(shared)
        return self.runner.keep([self.runner.call(_spread, function, p, given) for p in parts])

    def gather(
        self, function: Callable[..., Any], parts: Sequence[Any], *shared: Any
    ) -> tuple[Any, ...]:
        """``function(part, *shared)`` of what was kept, brought here."""
        given = self.runner.share(shared)
        calls = [self.runner.call(_spread, function, part, given) for part in parts]
        return self.runner.get_all(calls)


class DaskRows(Parted):
    """Binned partitions on the workers; a level is two tasks a partition, and a short sum.

    The nodes of a partition's rows stay on its worker, its counts only until they are added. Tasks
    change nothing in place, so that what a lost worker held can be computed again.
    """

    def __init__(
        self, parts: Sequence[Any], splits: SplitTable, n_classes: int, run: "Runner"
    ) -> None:
        super().__init__(splits, n_classes)
        self._parts, self._run = parts, run
        self.start()

    def restart(self) -> None:
        self._nodes: list[Any] = [None] * len(self._parts)  # of the rows, by part

    def sum_over(self, todo: Pass) -> NDArray[np.int64]:
        given = self._run.share(todo) if todo.index_of_node.size > SMALL else Parcel(todo)
        call, nodes = self._run.call, self._nodes
        if todo.moves:
            pairs = zip(self._parts, nodes, strict=True)
            nodes = [call(_move, part, before, given) for part, before in pairs]
        pairs = zip(self._parts, nodes, strict=True)
        total = self._run.add_up(_count_at, [(part, own, given) for part, own in pairs])
        *kept, total = self._run.keep([*(nodes if todo.moves else ()), total])
        self._nodes = kept or nodes
        return self._run.take(total)


class Parcel:
    """A small value that goes along with every call; Dask would take apart a dataclass or tuple."""

    def __init__(self, value: Any) -> None:
        self.value = value


class Runner:
    """Calls of Dask, on one client if there is one."""

    def __init__(self, client: Any = None) -> None:
        self._dask = require("dask", extra="dask", purpose="learning from a Dask collection")
        if client is not None:
            distributed = require("distributed", extra="dask", purpose="learning on a cluster")
            if not isinstance(client, distributed.Client):
                raise TypeError(
                    f"client must be a distributed.Client, got {type(client).__name__}."
                )
        self._where = {"scheduler": client}

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return self._dask.delayed(function, pure=False)(*arguments)

    def share(self, value: Any) -> Any:
        """One value for many calls, sent once."""
        return self._dask.delayed(value, traverse=False, pure=False)

    def add_up(self, function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> Any:
        """The sum of ``function(*arguments)`` over calls, of which few terms are held at a time.

        Calls form chains, each link adding to the sum of those before it: were all calls made
        first and their answers added later, workers would be ahead of the sums, which a scheduler
        hands out one by one, and hold hundreds of answers.
        """
        n = min(len(calls), self._n_chains())
        values: list[Any] = [None] * n
        for k in range(n):
            for arguments in calls[len(calls) * k // n : len(calls) * (k + 1) // n]:
                values[k] = self.call(_add_to, values[k], function, *arguments)
        while len(values) > 1:
            values = [self.call(_add, group) for group in _groups(values)]
        return values[0]

    def _n_chains(self) -> int:
        """Enough to keep all threads of the cluster at work."""
        client, distributed = self._where["scheduler"], sys.modules.get("distributed")
        if client is None and distributed:
            with contextlib.suppress(ValueError):  # there is none
                client = distributed.default_client()
        n_threads = (os.cpu_count() or 1) if client is None else sum(client.nthreads().values())
        return max(LEAST_CHAINS, CHAINS_A_THREAD * n_threads)

    def keep(self, values: Sequence[Any]) -> list[Any]:
        """Compute and leave the results where they are."""
        return list(self._dask.persist(*values, optimize_graph=False, **self._where))

    def take(self, kept: Any) -> Any:
        """A result that was kept, fetched without another task."""
        distributed = sys.modules.get("distributed")
        futures = distributed.futures_of(kept) if distributed else []
        return futures[0].result() if futures else self.get(kept)

    def get(self, value: Any) -> Any:
        return self._dask.compute(value, **self._where)[0]

    def get_all(self, values: Sequence[Any]) -> tuple[Any, ...]:
        return self._dask.compute(*values, **self._where)


def _groups(values: Sequence[Any]) -> list[Sequence[Any]]:
    return [values[k : k + ADDED_AT_ONCE] for k in range(0, len(values), ADDED_AT_ONCE)]


def map_rows(function: Callable[[Any], NDArray[Any]], X: Any, sample: NDArray[Any]) -> Any:
    """``function`` of every partition as a dask array, computed when that is.

    `function` returns one entry a row; `sample` is what it returns for no rows.
    """
    require("dask", extra="dask", purpose="predicting for a Dask collection")
    if not hasattr(X, "numblocks"):
        return X.map_partitions(function, meta=sample)
    one_chunk = X if X.numblocks[1] == 1 else X.rechunk({1: -1})
    if sample.ndim == 1:
        return one_chunk.map_blocks(function, dtype=sample.dtype, drop_axis=1, meta=sample)
    chunks = (one_chunk.chunks[0], (sample.shape[1],))
    return one_chunk.map_blocks(function, dtype=sample.dtype, chunks=chunks, meta=sample)


# ---- what runs on the workers ----
def _encode(X: Any, y: Any, space: FeatureSpace, classes: NDArray[Any]) -> Part:
    table = Table.read(X)
    return space.bin_table(table), class_indices(y, table.n_rows, classes)


def _count(part: Part, shared: tuple[FeatureSpace, NDArray[Any]]) -> NDArray[np.int64]:
    return shared[0].count_bins(*part, len(shared[1]))


def _ready(part: Part, splits: SplitTable) -> Ready:
    # arrays that came over a network cannot be written to, and kernels are compiled for those apart
    table = SplitArrays(*(np.array(array) for array in splits.table))
    return np.ascontiguousarray(splits.merge_bins(part[0])), part[1], table


def _move(part: Ready, before: NDArray[np.int32] | None, given: Pass | Parcel) -> NDArray[np.int32]:
    binned, labels, table = part
    todo = given.value if isinstance(given, Parcel) else given
    nodes = np.zeros(len(labels), np.int32) if before is None else before.copy()
    for level in todo.moves:
        move_rows(binned, nodes, table, *(np.array(array) for array in level))
    return nodes


def _count_at(
    part: Ready, nodes: NDArray[np.int32] | None, given: Pass | Parcel
) -> NDArray[np.int64]:
    binned, labels, table = part
    todo = given.value if isinstance(given, Parcel) else given
    node_of_row = np.zeros(len(labels), np.int32) if nodes is None else np.array(nodes)
    return pass_over(binned, labels, node_of_row, table, todo._replace(moves=()))


def _add_to(before: Any, function: Callable[..., Any], *arguments: Any) -> Any:
    found = function(*arguments)
    return found if before is None else before + found


def _add(values: Sequence[Any]) -> Any:
    return reduce(operator.add, values)


def _apply(number: int, X: Any, y: Any, kept: Parcel) -> Any:
    function, *shared = kept.value
    try:
        return function(X, y, *shared)
    except (ValueError, TypeError) as error:
        raise type(error)(f"partition {number}: {error}") from None


def _spread(function: Callable[..., Any], part: Any, shared: tuple[Any, ...]) -> Any:
    return function(part, *shared)


# ---- alignment ----
def _align(X: Any, y: Any) -> tuple[Any, list[tuple[Any, Any]]]:
    """An empty X that has the names, and (X, y) of every partition as delayed objects."""
    for name, data in (("X", X), ("y", y)):
        if not hasattr(data, "_meta"):  # a bag, or a delayed object, which claims to have all else
            kind = "array or dataframe" if name == "X" else "array or series"
            raise TypeError(f"{name} must be a dask {kind}, got {type(data).__name__}.")
    x_is_array, y_is_array = (hasattr(data, "numblocks") for data in (X, y))
    if x_is_array and X.ndim != 2:
        raise ValueError(f"X must be a table of rows and columns, got {X.ndim} dimension(s).")
    if not x_is_array and not hasattr(X, "columns"):
        raise TypeError(f"X must be a dask array or dataframe, got {type(X).__name__}.")
    y = _one_column(y)
    if x_is_array and X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    if x_is_array and y_is_array:
        y = _same_chunks(X, y)
    x_parts = list(X.to_delayed()[:, 0] if x_is_array else X.to_delayed())
    y_parts = list(y.to_delayed())
    if len(x_parts) != len(y_parts):
        raise ValueError(
            f"X has {len(x_parts)} partitions and y has {len(y_parts)}: take both from one "
            "collection, or repartition one of them like the other."
        )
    sample = np.empty((0, X.shape[1])) if x_is_array else X._meta
    return sample, list(zip(x_parts, y_parts, strict=True))


def _one_column(y: Any) -> Any:
    if hasattr(y, "numblocks"):
        if y.ndim == 2 and y.shape[1] == 1:
            return y[:, 0]
        if y.ndim == 1:
            return y
        raise ValueError(f"y must be one column of labels, got {y.ndim} dimension(s).")
    columns = getattr(y, "columns", None)
    if columns is not None and getattr(y, "ndim", 1) == 2:
        if len(columns) != 1:
            raise ValueError(f"y must be one column of labels, got {len(columns)} columns.")
        return y[columns[0]]
    return y


def _same_chunks(X: Any, y: Any) -> Any:
    """The labels in the chunks of X; only they are moved."""
    if np.isnan(X.shape[0]) or np.isnan(y.shape[0]):
        if X.numblocks[0] == y.numblocks[0]:
            return y  # every chunk is checked when it is read
        raise ValueError(
            f"X and y have unknown chunk sizes and {X.numblocks[0]} and {y.numblocks[0]} chunks: "
            "call compute_chunk_sizes() on both."
        )
    if X.shape[0] != y.shape[0]:
        raise ValueError(
            f"X and y have inconsistent numbers of samples: {X.shape[0]} rows, {y.shape[0]} labels."
        )
    return y if X.chunks[0] == y.chunks[0] else y.rechunk((X.chunks[0],))
