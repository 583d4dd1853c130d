"""SplitTable: every candidate split of a learner, and the bins it is made of."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree._base.exceptions import UnsuitableDataError
from steadytree._base.parallel import in_threads
from steadytree.data._kernels.bins import merge_bins
from steadytree.data._kernels.counts import SplitArrays, list_splits
from steadytree.data.binning import (
    MAX_THRESHOLDS,
    bin_index_type,
    column_blocks,
    equidistant_thresholds,
)
from steadytree.data.column import Column
from steadytree.data.feature_space import FeatureSpace

Integers = NDArray[np.int64]
GROUPED_ROWS = 30  # a category on average; with fewer, groups fit the noise
SHARE_PRIOR = 10.0  # rows of the common share that each category's share begins with


@dataclass(frozen=True, eq=False)
class Bins:
    """Candidate splits and seed of a fit, kept so that the next one has the same."""

    space: FeatureSpace  # with candidate thresholds
    order: Mapping[str, tuple[str, ...]]  # of the categories of columns that are split in groups
    seed: int

    @classmethod
    def read(
        cls,
        space: FeatureSpace,
        thresholds: list[int | list[float]],
        order: Mapping[str, tuple[str, ...]],
        seed: int,
    ) -> "Bins":
        """Bins over a bare space; thresholds as `plain_thresholds` returns them."""
        if len(thresholds) != len(space):
            raise ValueError("bins: thresholds must be given for each feature")
        columns = []
        for column, given in zip(space, thresholds, strict=True):
            if isinstance(given, int):
                if column.is_categorical or not 0 < given <= MAX_THRESHOLDS:
                    raise ValueError(
                        f"bins: {given} is not a valid number of thresholds of {column.name!r}"
                    )
                columns.append(column.with_thresholds(equidistant_thresholds([column], given)[0]))
            else:
                columns.append(column.with_thresholds(np.array(given)) if given else column)
        return cls(FeatureSpace(tuple(columns)), order, seed)

    def plain_thresholds(self) -> list[int | list[float]]:
        """Thresholds of each column, or how many where they lie evenly between its bounds."""
        plain: list[int | list[float]] = []
        for column in self.space:
            own, n_even = column.thresholds, len(column.thresholds)
            if column.kind == "integer" and column.high - column.low == n_even:
                n_even += 1  # every whole number
            even = n_even > 0 and np.array_equal(equidistant_thresholds([column], n_even)[0], own)
            plain.append(n_even if even else own.tolist())
        return plain

    def over(self, space: FeatureSpace) -> FeatureSpace:
        """Columns of new rows with these thresholds and categories; unknown columns as they are."""
        known = {column.name: column for column in self.space}
        return FeatureSpace(
            tuple(_reused(known[new.name], new) if new.name in known else new for new in space)
        )


def _reused(kept: Column, new: Column) -> Column:
    if kept.is_categorical != new.is_categorical:
        held = "categories" if kept.is_categorical else "numbers"
        raise ValueError(
            f"bins: column {new.name!r} held {held} when they were made, and now does not: "
            "convert it, or leave bins out."
        )
    missing = kept.missing or new.missing
    if kept.is_categorical:
        added = [name for name in new.categories if name not in kept.categories]
        known = (*kept.categories, *added)
        # in their order, as far as one is known for all
        ordered = kept.ordered and (not added or (new.ordered and known == new.categories))
        return replace(kept, categories=known, ordered=ordered, missing=missing)
    kind = kept.kind if kept.kind == new.kind else "numeric"
    low, high = min(kept.low, new.low), max(kept.high, new.high)
    return replace(kept, kind=kind, low=low, high=high, missing=missing)


@dataclass(frozen=True, eq=False)
class SplitTable:
    """The candidate splits of a feature space with thresholds."""

    space: FeatureSpace
    table: SplitArrays  # for the kernels
    merged_bin: NDArray[np.uint16] | None  # of every full bin; None if nothing was merged
    order: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # as in Bins

    @classmethod
    def of(
        cls, space: FeatureSpace, counts: NDArray[Any] | None = None, kept: Bins | None = None
    ) -> "SplitTable":
        """Splits of all columns; with class counts (n_full_bins, n_classes) also of groups of them.

        A group begins the order of a class's share in `counts`; there is none in a column of fewer
        than GROUPED_ROWS rows a category. Groups of `kept` take their place. Ordered categories are
        then divided as numbers are, the lower ones from the higher ones. Empty bins are merged.
        Merging changes no tree: thresholds with no row between them give the same split, and a
        merged split keeps the range of thresholds it stands for. In a column with missing values
        each split is listed twice, with missing values on the right and on the left, and a last
        split asks whether the value is missing.
        """
        if counts is None:
            return cls._list(space, None, {}, None)
        return cls._list(space, np.asarray(counts.any(axis=1)), _of_categories(space, counts), kept)

    @classmethod
    def of_rows(
        cls,
        space: FeatureSpace,
        binned: NDArray[Any],
        labels: NDArray[np.int32],
        n_classes: int,
        weights: NDArray[np.float64] | None = None,
        kept: Bins | None = None,
    ) -> "SplitTable":
        """As `of` with the class counts of these rows, which are not held for all columns."""
        occupied = np.empty(space.bin_offsets[-1], np.bool_)
        of_categories: dict[int, NDArray[Any]] = {}
        for first, last in column_blocks(space.bin_offsets):
            counts = space.count_bins(binned, labels, n_classes, weights, (first, last))
            occupied[space.bin_offsets[first] : space.bin_offsets[last]] = counts.any(axis=1)
            of_categories |= _of_categories(space, counts, first, last)
        return cls._list(space, occupied, of_categories, kept)

    @classmethod
    def _list(
        cls,
        space: FeatureSpace,
        occupied: NDArray[np.bool_] | None,
        of_categories: Mapping[int, NDArray[Any]],
        kept: Bins | None,
    ) -> "SplitTable":
        """See `of`: which bins have rows, if that is known, and the counts of categories."""
        n_categories, is_merged = np.array(space.n_categories), occupied is not None
        has_missing = np.array([column.missing for column in space], dtype=np.int64)
        starts, grouped = space.bin_offsets, np.zeros(len(space), np.bool_)
        if occupied is None:
            occupied = np.ones(starts[-1], np.bool_)
        order = np.zeros(starts[-1], np.int64)
        names: dict[str, tuple[str, ...]] = {}
        if is_merged:
            n_categories[[column.ordered for column in space]] = 0
        for j in np.flatnonzero(n_categories).tolist():
            own, column = slice(starts[j], starts[j] + n_categories[j]), space[j]
            if not is_merged:
                order[own] = np.arange(n_categories[j])
            elif kept is not None and column.name in kept.space.names:
                known = kept.order.get(column.name, ())
                order[own] = np.argsort(
                    [_rank(known, name) for name in column.categories], kind="stable"
                )
                grouped[j] = len(known) > 0
            else:
                order[own] = category_order(of_categories[j])
                grouped[j] = of_categories[j].sum() >= GROUPED_ROWS * n_categories[j]
            if grouped[j]:
                names[column.name] = tuple(column.categories[k] for k in order[own])
        bins, n_splits, merged_bin, splits = list_splits(
            occupied, starts, n_categories, has_missing, order, grouped
        )
        feature = np.repeat(np.arange(len(space), dtype=np.int32), n_splits)
        offsets = _running(bins + has_missing), bins, _running(n_splits)
        listed = zip(space, grouped.tolist(), strict=True)
        candidates = _running(np.array([_n_candidates(*pair, is_merged) for pair in listed]))
        table = SplitArrays(*offsets, feature, *splits, candidates)  # type: ignore[call-arg]
        return cls(space, table, merged_bin if is_merged else None, names)

    @classmethod
    def declared(cls, space: FeatureSpace, n_bins: int) -> "SplitTable":
        """Splits at evenly spaced thresholds and on single categories of a declared space.

        Nothing is taken from data: the same schema gives the same splits. Missing values go right.
        """
        space = space.with_even_bins(n_bins)
        listed = [(j, *split) for j, column in enumerate(space) for split in _declared(column)]
        if not listed:
            message = "schema: no column can be asked about: all have one category only."
            raise UnsuitableDataError(message)
        feature, bin_, index = np.array(listed, dtype=np.int32).T.copy()
        index = index.astype(np.uint16)
        offsets = _running(np.bincount(feature, minlength=len(space)))
        sizes = np.array([column.n_bins for column in space], dtype=np.int64)
        right = np.zeros(len(feature), np.bool_)
        single = space.categorical[feature] & (bin_ >= 0)
        arrays = (space.bin_offsets, sizes, offsets, feature, bin_, right)
        return cls(space, SplitArrays(*arrays, index, index, single, offsets), None)

    @classmethod
    @lru_cache(maxsize=16)  # a fit asks for the same grids several times
    def at_most(cls, space: FeatureSpace, n_bins: int, most: int) -> "SplitTable":
        """Declared splits of the finest grid of 2 to `n_bins` bins with at most `most` of them."""
        fixed = sum(len(_declared(column)) for column in space if column.is_categorical)
        for size in range(n_bins if fixed < most else 2, 2, -1):
            found = cls.declared(space, size)
            if len(found) <= most:
                return found
        return cls.declared(space, 2)

    def __len__(self) -> int:
        return len(self.table.feature)

    @property
    def n_bins(self) -> int:
        return int(self.table.bin_offsets[-1])

    @property
    def n_splits(self) -> int:
        return len(self)

    @property
    def n_candidates(self) -> int:
        """Number of splits before merging: the size of the set that one is sampled from."""
        return int(self.table.candidate_offsets[-1])

    @cached_property
    def log_prior(self) -> NDArray[np.float64]:
        """Each feature is as likely as any other, and so is each split of it."""
        counts = np.bincount(self.table.feature)
        return -np.log((counts > 0).sum()) - np.log(counts[self.table.feature])

    @cached_property
    def arrays(self) -> tuple[Integers, Integers, NDArray[np.bool_]]:
        """Feature, bin and by_value of declared splits, for the kernels of private learners.

        A row goes left if its bin is at most `bin`, or equal to it where by_value.
        """
        feature, bin_ = self.table.feature, self.table.bin
        last = self.table.bin_sizes[feature] - 1
        return feature, np.where(bin_ < 0, last, bin_), self.table.by_value

    def categories_left(self, split: int, category: int) -> NDArray[np.bool_]:
        """Which categories a split sends left, `category` where it is a single one."""
        feature = self.table.feature[split]
        indices = np.arange(self.space.n_categories[feature])
        if self.table.by_value[split]:
            return indices == category
        if self.table.bin[split] < 0 or self.merged_bin is None:
            return indices >= 0
        merged = self.merged_bin[self.space.bin_offsets[feature] + indices]
        return merged <= self.table.bin[split]

    def merge_bins(self, binned: NDArray[Any], reuse: bool = False) -> NDArray[Any]:
        """Bins of the full grid as merged bins, in the smallest type that fits.

        With `reuse` those of the same type are written over `binned`.
        """
        if self.merged_bin is None:
            return binned
        n_bins = int(self.table.bin_sizes.max(initial=0))
        kind = bin_index_type(n_bins, binned.shape[1])
        merged = binned if reuse and binned.dtype == kind else np.empty(binned.shape, kind)
        offsets, merged_bin = self.space.bin_offsets, self.merged_bin

        def merge(first: int, last: int) -> None:
            merge_bins(binned[first:last], offsets[first:], merged_bin, merged[first:last])

        in_threads(merge, len(binned), binned.size)
        return merged

    def once_merged(self) -> "SplitTable":
        """The same splits without what merges bins of numbers, where there are numbers only."""
        if self.merged_bin is None or self.space.n_categories.any():
            return self
        return replace(self, merged_bin=np.empty(0, np.uint16))

    def goes_left(
        self, binned: NDArray[Any], split: int, rows: Integers | None = None
    ) -> NDArray[np.bool_]:
        """Which rows a declared split sends left; of some rows only, where they are listed."""
        feature, bin_, by_value = (array[split] for array in self.arrays)
        found = binned[feature]
        if rows is not None:  # before the comparison, so that the work is that of these rows
            found = found[rows]
        return found == bin_ if by_value else found <= bin_


def _declared(column: Column) -> list[tuple[int, int]]:
    """Bin, and index of the threshold or category, of each declared split of a column.

    The last asks whether the value is missing: bin -1 for categories, else the last bin.
    """
    n_bins = column.n_bins
    if not column.is_categorical:
        return [(k, k) for k in range(n_bins if column.missing else n_bins - 1)]
    single = n_bins if n_bins > 2 or (n_bins == 2 and column.missing) else n_bins - 1
    listed = [(k, k) for k in range(single)]
    return [*listed, (-1, n_bins)] if column.missing else listed


def _of_categories(
    space: FeatureSpace, counts: NDArray[Any], first: int = 0, last: int | None = None
) -> dict[int, NDArray[Any]]:
    """Counts of the categories of each column that has some, from counts of a range of columns."""
    starts, sizes = space.bin_offsets - space.bin_offsets[first], space.n_categories
    return {
        j: counts[starts[j] : starts[j] + sizes[j]]
        for j in (first + np.flatnonzero(sizes[first:last])).tolist()
    }


def _rank(known: tuple[str, ...], name: str) -> int:
    """Place in an order, new categories last."""
    return known.index(name) if name in known else len(known)


def category_order(counts: NDArray[Any]) -> Integers:
    """Categories (n, n_classes) by the share of one class: that whose shares vary most.

    Shares of rare categories are drawn to that of all rows. For two classes and Gini's impurity,
    the best of all divisions in two groups begins this order (Breiman and others, 1984, 4.2.2).
    """
    sizes, totals = counts.sum(axis=1, keepdims=True), counts.sum(axis=0)
    mean = totals / max(totals.sum(), 1e-300)
    shares = (counts + SHARE_PRIOR * mean) / (sizes + SHARE_PRIOR)
    spread = ((shares - mean) ** 2 * sizes).sum(axis=0)
    # of two classes the shares mirror each other: the second one, whatever the rounding
    widest = 1 if counts.shape[1] == 2 else int(spread.argmax())
    return np.argsort(shares[:, widest], kind="stable")


def _n_candidates(column: Column, grouped: bool, in_order: bool) -> int:
    if column.ordered and in_order:
        splits = len(column.categories) - 1
    elif column.is_categorical:
        n = len(column.categories)
        splits = (n if n > 2 else n - 1) + max(n - 3, 0) * grouped
    else:
        splits = len(column.thresholds)
    return splits * 2 + 1 if column.missing else splits


def _running(sizes: Integers) -> Integers:
    """Offsets of parts with the given sizes."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
