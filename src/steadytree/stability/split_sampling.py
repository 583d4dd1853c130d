"""SplitSampler: which rule each open node gets, and how likely every other one was."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadytree.data.feature_space import FeatureSpace
from steadytree.data.sources import ClassCounts, Rows
from steadytree.data.splits import SplitTable
from steadytree.stability._kernels.choose import SplitSampling, choose_splits, sample_split
from steadytree.stability._kernels.grow import score_ahead


@dataclass(frozen=True, eq=False)
class PreparedFit:
    """Rows as codes, the rules that may be asked, and how one is drawn.

    Refits on fewer rows share the bins, the rules and the noise with the fit on all rows; only
    so is a change of the tree a change caused by the rows.

    Parameters
    ----------
    space : FeatureSpace
        With the cuts that the rules were made from.
    codes : array of shape (n_features, n_rows)
    labels : int32 array of shape (n_rows,)
        Places among the classes; kernels never see the labels themselves.
    classes : array of labels
    rules : SplitTable
    draw : Draw
    max_depth : int
    lookahead : int
    weights : float64 array of shape (n_rows,), or None
    """

    space: FeatureSpace
    binned: NDArray[Any]
    labels: NDArray[np.int32]
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
    def n_classes(self) -> int:
        return len(self.classes)

    def with_seed(self, seed: int) -> "PreparedFit":
        """The same fit with other noise."""
        return replace(self, sampling=self.sampling._replace(seed=int(seed)))

    def take(self, rows: NDArray[Any]) -> "PreparedFit":
        """The same fit on some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        binned = np.ascontiguousarray(self.binned[:, rows])
        return replace(self, binned=binned, labels=self.labels[rows], weights=weights)


MOST_CELLS = 5_000_000  # scores kept of one tree: 40 MB; nodes beyond are grown all the same
Chosen = tuple[NDArray[np.int64], NDArray[np.int64]]


class SplitProbability(NamedTuple):
    """One question a node could have got, and how likely it was.

    Thresholds from `low` to `high` divide the training rows alike; both are nan for a category,
    and infinite where only presence is asked.
    """

    feature: str
    low: float
    high: float
    category: str | None
    missing_left: bool
    probability: float


class SplitSampler:
    """Draws rules from class counts, or by looking ahead on the rows themselves.

    Parameters
    ----------
    recipe : PreparedFit
    rows : Rows, optional
        The source that the tree is grown from; looked at where the recipe looks ahead.
    """

    def __init__(self, prepared: PreparedFit, rows: Rows | None = None) -> None:
        self._prepared = prepared
        self._rows = rows
        self._n_cells = 0
        self.levels: list[tuple[NDArray[np.uint64], NDArray[np.float64]]] = []

    def __call__(self, counts: ClassCounts, positions: NDArray[np.uint64]) -> Chosen:
        prepared = self._prepared
        if prepared.lookahead > 1 and self._rows is not None:
            splits, thresholds, scores = self._look_ahead(self._rows, positions)
        else:
            table, sampling = prepared.splits.table, prepared.sampling
            splits, thresholds, scores = choose_splits(counts.values, positions, table, sampling)
        self._n_cells += scores.size
        if self._n_cells <= MOST_CELLS:
            self.levels.append((positions, scores))
        return splits, thresholds

    def _look_ahead(
        self, source: Rows, positions: NDArray[np.uint64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        prepared, table = self._prepared, self._prepared.splits.table
        splits = np.full(len(positions), -1)
        thresholds = np.full(len(positions), -1)
        scores = np.full((len(positions), prepared.splits.n_rules), -1.0)
        for node, position in enumerate(positions):
            depth = (int(position) + 1).bit_length() - 1
            levels = min(prepared.lookahead, prepared.max_depth - depth)
            rows = source.rows_in(node)
            data = (prepared.binned, prepared.labels, prepared.n_classes)
            scores[node] = score_ahead(*data, table, rows, levels, prepared.sampling.min_leaf)
            splits[node], thresholds[node] = sample_split(
                scores[node], table, prepared.sampling, position
            )
        return splits, thresholds, scores


def split_probabilities(
    space: FeatureSpace, splits: SplitTable, sampling: SplitSampling, scores: NDArray[np.float64]
) -> list[SplitProbability]:
    """Every question with a chance, the likeliest first, from the scores of one node's rules."""
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
        asked = first < len(column.categories)
        category = column.categories[first] if asked else None
        edge = np.nan if asked else np.inf
        return SplitProbability(column.name, edge, edge, category, missing_left, probability)
    cuts = np.append(column.cuts, np.inf)
    low, high = float(cuts[first]), float(cuts[last])
    return SplitProbability(column.name, low, high, None, missing_left, probability)
