"""Rules: every question a grower may ask, and how codes map to its bins."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.data._kernels import SplitArrays, list_rules, recode
from steadytree.data.column import Column

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SplitTable:
    """The candidate rules of a feature space, merged where the data cannot tell them apart.

    Parameters
    ----------
    table : SplitArrays
        Arrays for the kernels.
    new_code : int64 array or None
        Merged code of every full bin; None where nothing was merged.
    full_offsets : int64 array
        Full bins of feature j, the missing one last.
    """

    table: SplitArrays
    new_code: Integers | None
    full_offsets: Integers

    @classmethod
    def of(
        cls, columns: tuple[Column, ...], occupied: NDArray[np.bool_] | None = None
    ) -> "SplitTable":
        """Rules of all columns; with `occupied` (a flag per full bin) empty bins are merged away.

        Merging changes no tree: thresholds with no row between them give the same split, and a
        merged rule keeps the list of thresholds it stands for.
        """
        sizes = np.array([column.n_bins for column in columns], dtype=np.int64)
        full_offsets = _running(sizes + 1)
        n_categories = np.array([len(column.categories) for column in columns], dtype=np.int64)
        has_missing = np.array([column.missing for column in columns], dtype=np.int64)
        flags = np.ones(full_offsets[-1], np.bool_) if occupied is None else occupied
        bins, n_rules, new_code, rules = list_rules(flags, full_offsets, n_categories, has_missing)
        table = SplitArrays(
            _running(bins + has_missing),
            bins,
            n_categories > 0,
            _running(n_rules),
            np.repeat(np.arange(len(columns)), n_rules),
            rules[0],
            rules[1],
            rules[2],
            rules[3],
            _running(np.array([_n_candidates(column) for column in columns])),
        )
        return cls(table, None if occupied is None else new_code, full_offsets)

    @property
    def n_bins(self) -> int:
        return int(self.table.bin_offsets[-1])

    @property
    def n_rules(self) -> int:
        return len(self.table.feature)

    @property
    def n_candidates(self) -> int:
        """Number of rules before merging: the size of the set a draw is made from."""
        return int(self.table.candidate_offsets[-1])

    def recode(self, codes: NDArray[Any]) -> NDArray[Any]:
        """Codes of the full grid to codes of the merged bins, in the smallest type that fits."""
        if self.new_code is None:
            return codes
        dtype = smallest_code_type(int(self.table.bin_sizes.max(initial=0)))
        return recode(codes, self.full_offsets, self.new_code, np.empty(codes.shape, dtype))


def smallest_code_type(n_bins: int) -> type[np.uint8] | type[np.uint16]:
    """The type for codes 0..n_bins, the last being missing."""
    return np.uint8 if n_bins <= np.iinfo(np.uint8).max else np.uint16


def _n_candidates(column: Column) -> int:
    if column.is_categorical:
        n = len(column.categories)
        splits = 0 if n == 1 else 1 if n == 2 else n
    else:
        splits = len(column.cuts)
    return splits * 2 + 1 if column.missing else splits


def _running(sizes: Integers) -> Integers:
    """Offsets of parts with the given sizes."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
