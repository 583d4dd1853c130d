"""Sampled splits: a fit prepared once, the splits its nodes get, and their probabilities."""

from dataclasses import dataclass, replace
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadytree._base.parallel import LEAST_WORK
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.sources import ClassCounts, Rows
from steadytree.data.splits import Bins, SplitTable
from steadytree.data.wide_rows import CountsByColumn, WideRows
from steadytree.models.builder import TreeBuilder
from steadytree.models.tree import LEAF, Tree
from steadytree.stability._kernels.by_column import choose_by_column
from steadytree.stability._kernels.choose import (
    INVALID,
    REJECTION,
    SplitSampling,
    choose_splits,
    sample_split,
)
from steadytree.stability._kernels.grow import grow_by_level, score_ahead


@dataclass(frozen=True, eq=False)
class PreparedFit:
    """Binned rows, the candidate splits, and how one is sampled.

    Refits on fewer rows share the bins, the splits and the noise with the fit on all rows, so
    that only the removed rows can change the tree.
    """

    space: FeatureSpace  # with the thresholds of the splits
    binned: NDArray[Any]  # (n_features, n_rows)
    labels: NDArray[np.int32]  # (n_rows,), indices of classes
    classes: NDArray[Any]
    splits: SplitTable
    sampling: SplitSampling
    max_depth: int
    lookahead: int = 1
    weights: NDArray[np.float64] | None = None

    @property
    def n_rows(self) -> int:
        return len(self.labels)

    @property
    def arrays(self) -> tuple[Any, Any, Any, Any, Any]:
        """The first arguments of the kernels that grow trees."""
        return self.binned, self.labels, self.n_classes, self.splits.table, self.sampling

    def source(self) -> Rows | WideRows:
        """Class counts of the rows, for level-wise growth."""
        data = self.binned, self.labels, self.splits, self.n_classes, self.weights
        if self.is_wide:
            return WideRows(*data)
        return Rows(*data, in_order=self.lookahead > 1)

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    @property
    def is_small(self) -> bool:
        """Whether the tree can be grown in one call: few values, and usual sampling."""
        return self.binned.size < LEAST_WORK and self._is_usual

    @property
    def is_wide(self) -> bool:
        """Whether splits are chosen from some columns at a time: many bins, and usual sampling."""
        n_counters = self.splits.n_bins * self.n_classes
        return n_counters > MANY_COUNTERS and not self.is_small and self._is_usual

    @property
    def _is_usual(self) -> bool:
        rejects = self.sampling.coupling == REJECTION and self.sampling.sharpness > 0
        return self.lookahead == 1 and not rejects

    def with_seed(self, seed: int) -> "PreparedFit":
        """The same fit with other noise."""
        return replace(self, sampling=self.sampling._replace(seed=int(seed)))

    def take(
        self, rows: NDArray[Any], labels: NDArray[Any] | None = None, values: Any = None
    ) -> "PreparedFit":
        """The same fit on some of the rows, with labels and values of others: see `Variant`."""
        weights = None if self.weights is None else self.weights[rows]
        taken = rows if labels is None else labels
        if values is None:
            binned = np.ascontiguousarray(self.binned[:, rows])
        else:
            binned = np.take_along_axis(self.binned, values.T, axis=1)
        return replace(self, binned=binned, labels=self.labels[taken], weights=weights)


MANY_COUNTERS = 1_000_000  # 8 MB: of one node; more would not stay in the cache
MAX_SCORES = 5_000_000  # scores kept of one tree: 40 MB; deeper levels grow without being kept
MAX_READS = 20_000_000_000  # values that a look-ahead may read: about a minute
Chosen = tuple[NDArray[np.int64], NDArray[np.int64]]
Levels = list[tuple[NDArray[np.uint64], NDArray[np.float64]]]  # positions, and scores of each


class SplitProbability(NamedTuple):
    """A candidate split of a node and its probability.

    Thresholds from `low` to `high` divide the training rows alike; both are nan for categories,
    and infinite for the split of observed from missing values. `category` names one category, or
    those of a group with commas between.
    """

    feature: str
    low: float
    high: float
    category: str | None
    missing_left: bool
    probability: float


class SplitSampler:
    """Samples splits from class counts or, with a look-ahead, from the rows themselves."""

    def __init__(self, prepared: PreparedFit, rows: Rows | None = None) -> None:
        self._prepared = prepared
        self._rows = rows
        self.levels: Levels = []

    def __call__(
        self, counts: ClassCounts | CountsByColumn, positions: NDArray[np.uint64]
    ) -> Chosen:
        prepared = self._prepared
        most = MAX_SCORES // max(prepared.splits.n_splits, 1)
        if isinstance(counts, CountsByColumn):
            n_kept = len(positions) if positions[0] < most else 0
            scores = np.full((n_kept, prepared.splits.n_splits), INVALID)
            splits, thresholds = choose_by_column(counts, positions, prepared.sampling, scores)
        elif prepared.lookahead > 1 and self._rows is not None:
            splits, thresholds, scores = self._look_ahead(self._rows, positions)
        else:
            table, sampling = prepared.splits.table, prepared.sampling
            splits, thresholds, scores = choose_splits(counts.values, positions, table, sampling)
        # by position, as threads may ask for the nodes of a level in any order
        if positions[0] < most:  # they rise
            n_kept = int(np.searchsorted(positions, most))
            self.levels.append((positions[:n_kept], scores[:n_kept]))
        return splits, thresholds

    def _look_ahead(
        self, source: Rows, positions: NDArray[np.uint64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        prepared, table = self._prepared, self._prepared.splits.table
        splits = np.full(len(positions), -1)
        thresholds = np.full(len(positions), -1)
        scores = np.full((len(positions), prepared.splits.n_splits), -1.0)
        for node, position in enumerate(positions):
            depth = (int(position) + 1).bit_length() - 1
            levels = min(prepared.lookahead, prepared.max_depth - depth)
            rows = source.rows_in(node)
            *data, sampling = prepared.arrays
            scores[node] = score_ahead(*data, rows, levels, sampling.min_leaf)
            splits[node], thresholds[node] = sample_split(scores[node], table, sampling, position)
        return splits, thresholds, scores


def grow_few(
    prepared: PreparedFit, merge: bool, bins: Bins | None, smoothing: float
) -> tuple[Tree, Levels]:
    """The tree of a small fit and its scores, as `grow` with a `SplitSampler`, in one call."""
    splits, n_classes, n = prepared.splits, prepared.n_classes, prepared.n_rows
    weights = np.empty(0, np.int64) if prepared.weights is None else prepared.weights
    full = 2 ** (prepared.max_depth + 1) - 1
    most, n_splits = max(min(2 * n - 1, full), 1), splits.n_splits
    n_positions = min(MAX_SCORES // max(n_splits, 1), full)
    nodes, totals = np.empty((8, most), np.int64), np.empty((most, n_classes))
    rows, scores = np.empty((2, n), np.int64), np.empty((min(n_positions, most), n_splits))
    counts = np.empty((1, splits.n_bins, n_classes), weights.dtype)
    found, of_node = np.empty((3, 1, n_classes), weights.dtype), np.empty((2, 1), np.int64)
    picked = np.empty((2, n_classes)), np.empty(0), np.empty(0, np.int64)
    work = found, of_node, np.empty((1, n_splits)), picked, np.empty(1, np.uint64)
    data, kept = (prepared.binned, prepared.labels, weights), (scores, n_positions)
    grown = nodes, totals, rows, kept, counts, work
    n_nodes, n_kept = grow_by_level(
        data, splits.table, prepared.sampling, prepared.max_depth, *grown
    )
    split, threshold, left, *_, is_open, position = nodes[:, :n_nodes]
    right = np.where(left == LEAF, LEAF, left + 1)
    builder = TreeBuilder(splits, prepared.classes)
    tree = builder.build(
        split, left, right, totals[:n_nodes], threshold,
        merge=merge, bins=bins, smoothing=smoothing,
    )  # fmt: skip
    positions = position[is_open == 1][:n_kept].astype(np.uint64)
    return tree, [(positions[:1], scores[:1]), (positions[1:], scores[1:n_kept])]


def split_probabilities(
    space: FeatureSpace, splits: SplitTable, sampling: SplitSampling, scores: NDArray[np.float64]
) -> list[SplitProbability]:
    """Every split that can be chosen, the most probable first, from the scores of one node."""
    table = splits.table
    valid = np.flatnonzero(scores >= 0)
    best = scores.max(initial=-1.0)
    size = (table.last - table.first + 1)[valid]
    if sampling.sharpness > 0 and best > 0:
        chance = size * np.exp(sampling.sharpness / best * (scores[valid] - best))
    else:
        chance = size * (scores[valid] == best)
    chance = chance / chance.sum()
    order = np.argsort(-chance, kind="stable")
    return [_describe(space, splits, valid[k], float(chance[k])) for k in order if chance[k] > 0]


def _describe(
    space: FeatureSpace, splits: SplitTable, split: int, probability: float
) -> SplitProbability:
    table = splits.table
    column = space[int(table.feature[split])]
    first, last = int(table.first[split]), int(table.last[split])
    missing_left = bool(table.missing_left[split])
    if column.is_categorical:
        left = splits.categories_left(split, first)
        chosen = table.bin[split] >= 0 and not left.all()
        category = ", ".join(compress(column.categories, left)) if chosen else None
        bound = np.nan if chosen else np.inf
        return SplitProbability(column.name, bound, bound, category, missing_left, probability)
    thresholds = np.append(column.thresholds, np.inf)
    low, high = float(thresholds[first]), float(thresholds[last])
    return SplitProbability(column.name, low, high, None, missing_left, probability)


def check_lookahead(n_splits: int, n_values: int, lookahead: int, weights: Any) -> None:
    """Refuse a look-ahead that would take too long."""
    if lookahead == 1:
        return
    if weights is not None:
        raise ValueError("sample_weight works with lookahead=1 only: leave one of them out.")
    reads = float(n_splits) ** (lookahead - 1) * n_values
    if reads > MAX_READS:
        raise ValueError(
            f"lookahead={lookahead} would read about {reads:.0e} values, more than "
            f"{MAX_READS:.0e}: use a smaller lookahead, or fewer thresholds or rows."
        )
