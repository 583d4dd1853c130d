"""Rows read through a schema, in memory or in Dask partitions; nothing here is noised."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.core.candidates import Candidates
from steadytree.core.counts import Source
from steadytree.core.rules import Rules
from steadytree.core.schema import NO_CLASS, Schema
from steadytree.core.table import is_dask
from steadytree.kernels import RuleTable
from steadytree.sources.dask_parts import DaskParts, DaskRows
from steadytree.sources.rows import Rows

Encoded = tuple[NDArray[np.float64], NDArray[np.int32], int]


class RowsInMemory:
    """Rows with a declared label, as numbers within the schema's bounds.

    Parameters
    ----------
    schema : Schema
    X, y : data as the user handed them over
    """

    def __init__(self, schema: Schema, X: Any, y: Any) -> None:
        self._values, self._labels, self.n_read = _encode(X, y, schema)
        self._n_classes = len(schema.classes)
        self.sample = X

    @property
    def n_kept(self) -> int:
        return len(self._labels)

    def codes(self, candidates: Candidates) -> tuple[NDArray[Any], NDArray[np.int32]]:
        """Codes (p, n) of all rows, and their labels."""
        return candidates.codes(self._values), self._labels

    def source(self, candidates: Candidates) -> Source:
        """The rows as a source of counts, level by level."""
        rules = rules_of(candidates)
        return Rows(candidates.codes(self._values), self._labels, rules, self._n_classes)


class RowsInDask:
    """The same, read and kept on the workers of a cluster.

    Parameters
    ----------
    schema : Schema
    X, y : Dask collections
    client : distributed.Client or None
    """

    def __init__(self, schema: Schema, X: Any, y: Any, client: Any) -> None:
        self._parts = DaskParts(X, y, client)
        self._n_classes = len(schema.classes)
        self.sample = self._parts.sample
        self._kept = self._parts.keep(_encode, schema)
        sizes = self._parts.gather(_sizes, self._kept)
        self.n_read = sum(read for read, _ in sizes)
        self.n_kept = sum(kept for _, kept in sizes)

    def codes(self, candidates: Candidates) -> tuple[NDArray[Any], NDArray[np.int32]]:
        """Codes of all rows, binned on the workers and brought here: a byte or two a value."""
        found = self._parts.gather(_codes, self._kept, candidates)
        codes = np.concatenate([codes for codes, _ in found], axis=1)
        return codes, np.concatenate([labels for _, labels in found])

    def source(self, candidates: Candidates) -> Source:
        """The rows as a source of counts, which stay on the workers."""
        rules = rules_of(candidates)
        ready = self._parts.chain(_ready, self._kept, candidates, rules.table)
        return DaskRows(ready, rules, self._n_classes, self._parts.runner)


def read_rows(schema: Schema, X: Any, y: Any, client: Any = None) -> RowsInMemory | RowsInDask:
    """Read rows where they are."""
    if is_dask(X) or is_dask(y):
        return RowsInDask(schema, X, y, client)
    if client is not None:
        raise ValueError("client goes with Dask collections, but X is in memory: leave it out.")
    return RowsInMemory(schema, X, y)


def rules_of(candidates: Candidates) -> Rules:
    """The candidates as rules: number k is question k, and missing values go right."""
    space = candidates.space
    sizes = np.array([column.n_bins for column in space], dtype=np.int64)
    offsets = np.concatenate([[0], np.cumsum(sizes + 1)]).astype(np.int64)
    feature, bin_, by_value = candidates.arrays
    # that a category is there at all has a number of its own among rules
    presence = space.categorical[feature] & ~by_value
    counts = np.bincount(feature, minlength=len(space))
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    asked = np.where(presence, -1, bin_).astype(np.int64)
    never = np.zeros(len(candidates), np.bool_)
    table = RuleTable(
        offsets, sizes, space.categorical, starts, feature, asked, never, bin_, bin_, starts
    )
    return Rules(table, None, offsets)


# ---- what runs where the rows are ----
def _encode(X: Any, y: Any, schema: Schema) -> Encoded:
    values, labels = schema.encode(X), schema.encode_labels(y)
    if len(values) != len(labels):
        raise ValueError("X and y have different numbers of rows: pass one label a row.")
    kept = labels != NO_CLASS
    return values[kept], labels[kept], len(labels)


def _sizes(part: Encoded) -> tuple[int, int]:
    return part[2], len(part[1])


def _codes(part: Encoded, candidates: Candidates) -> tuple[NDArray[Any], NDArray[np.int32]]:
    return candidates.codes(np.array(part[0])), part[1]


def _ready(
    part: Encoded, candidates: Candidates, table: RuleTable
) -> tuple[NDArray[Any], NDArray[np.int32], RuleTable]:
    # copies, since arrays that came over a network cannot be written to
    own = RuleTable(*(np.array(array) for array in table))
    return candidates.codes(np.array(part[0])), np.array(part[1]), own
