"""Candidates: every question a private tree may ask, from the schema alone."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree._base.exceptions import UnsuitableDataError
from steadytree.data._kernels import encode_bins
from steadytree.data.column import Column
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.splits import smallest_code_type

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Candidates:
    """Questions as arrays; a row answers yes, and goes left, by the code of its bin.

    Nothing here is taken from data: the same schema gives the same questions.

    Parameters
    ----------
    space : FeatureSpace
        With cuts; missing and unknown values have a code behind a column's last bin.
    feature, bin : int64 arrays (m,)
        Yes is a code of at most `bin`, or, where `by_value`, equal to it. The last bin of a column
        asks whether the value is there.
    by_value : bool array (m,)
    log_prior : float64 array (m,)
        Each feature is as likely as any other, and so is each question about it.
    """

    space: FeatureSpace
    feature: Integers
    bin: Integers
    by_value: NDArray[np.bool_]
    log_prior: NDArray[np.float64]

    @classmethod
    def of(cls, space: FeatureSpace, n_bins: int) -> "Candidates":
        """Questions about evenly spaced thresholds, and about single categories."""
        cut = FeatureSpace(tuple(_with_cuts(column, n_bins) for column in space))
        asked = [_questions(column) for column in cut]
        features = [j for j, listed in enumerate(asked) if listed]
        if not features:
            message = "schema: no column can be asked about: all have one category only."
            raise UnsuitableDataError(message)
        listed = [(j, bin_, by) for j in features for bin_, by in asked[j]]
        sizes = np.array([len(asked[j]) for j, _, _ in listed])
        return cls(
            cut,
            np.array([j for j, _, _ in listed]),
            np.array([bin_ for _, bin_, _ in listed]),
            np.array([by for _, _, by in listed]),
            -np.log(len(features)) - np.log(sizes),
        )

    @classmethod
    def at_most(cls, space: FeatureSpace, n_bins: int, most: int) -> "Candidates":
        """The finest grid up to `n_bins` with at most `most` questions; two bins at least."""
        return _finest(space, n_bins, most)

    def __len__(self) -> int:
        return len(self.feature)

    @property
    def arrays(self) -> tuple[Integers, Integers, NDArray[np.bool_]]:
        """What kernels read."""
        return self.feature, self.bin, self.by_value

    def codes(self, values: NDArray[np.float64]) -> NDArray[Any]:
        """Bins (p, n) of rows as `Schema.encode` returns them."""
        cuts = [column.cuts for column in self.space]
        offsets = np.concatenate([[0], np.cumsum([len(c) for c in cuts])]).astype(np.int64)
        sizes = np.array([len(column.categories) for column in self.space], dtype=np.int64)
        dtype = smallest_code_type(max(column.n_bins for column in self.space))
        codes = np.empty((len(self.space), len(values)), dtype)
        return encode_bins(values, np.concatenate(cuts), offsets, sizes, codes)

    def answers(
        self, codes: NDArray[Any], candidate: int, rows: NDArray[np.int64] | None = None
    ) -> NDArray[np.bool_]:
        """Which rows say yes to one question; of some rows only, where they are named."""
        found, bin_ = codes[self.feature[candidate]], self.bin[candidate]
        if rows is not None:  # before the comparison, so that the work is that of these rows
            found = found[rows]
        return found == bin_ if self.by_value[candidate] else found <= bin_

    def threshold(self, candidate: int) -> float:
        """The number asked about: infinity for presence, nan for categories."""
        column = self.space[int(self.feature[candidate])]
        if column.is_categorical:
            return np.nan
        bin_ = int(self.bin[candidate])
        return float(column.cuts[bin_]) if bin_ < len(column.cuts) else np.inf

    def subset(self, candidate: int, width: int) -> NDArray[np.bool_]:
        """The categories that say yes."""
        column = self.space[int(self.feature[candidate])]
        chosen = np.zeros(width, bool)
        if column.is_categorical:
            bin_ = int(self.bin[candidate])
            first = bin_ if self.by_value[candidate] else 0
            chosen[first : bin_ + 1] = True
        return chosen


@lru_cache(maxsize=16)  # a fit asks for the same grids several times
def _finest(space: FeatureSpace, n_bins: int, most: int) -> Candidates:
    fixed = sum(len(_questions(column)) for column in space if column.is_categorical)
    for size in range(n_bins if fixed < most else 2, 2, -1):
        found = Candidates.of(space, size)
        if len(found) <= most:
            return found
    return Candidates.of(space, 2)


def _with_cuts(column: Column, n_bins: int) -> Column:
    if column.is_categorical:
        return column
    if column.kind in ("integer", "binary") and column.high - column.low < n_bins:
        return column.with_cuts(np.arange(np.ceil(column.low), column.high))
    share = np.arange(1, n_bins) / n_bins
    cuts = column.low * (1 - share) + column.high * share
    if column.kind != "numeric":
        cuts = np.floor(cuts)
    single = cuts.astype(np.float32).astype(np.float64)
    step = (column.high - column.low) / n_bins
    # libraries that compare in float32 then agree
    cuts = np.where(np.abs(single - cuts) < step / 4, single, cuts)
    return column.with_cuts(np.unique(cuts))


def _questions(column: Column) -> list[tuple[int, bool]]:
    n_bins = column.n_bins
    if column.is_categorical:
        few = n_bins == 2 and not column.missing
        single = 0 if n_bins == 1 else 1 if few else n_bins
        listed = [(bin_, True) for bin_ in range(single)]
    else:
        listed = [(bin_, False) for bin_ in range(n_bins - 1)]
    return [*listed, (n_bins - 1, False)] if column.missing else listed
