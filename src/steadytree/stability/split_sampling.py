"""SplitSampler: which rule each open node gets, and how likely every other one was."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadytree.data.feature_space import FeatureSpace
from steadytree.data.sources import ClassCounts, Rows
from steadytree.data.splits import SplitTable
from steadytree.stability._kernels.choose import Draw, choose_rules, draw_rule
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
    codes: NDArray[Any]
    labels: NDArray[np.int32]
    classes: NDArray[Any]
    rules: SplitTable
    draw: Draw
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
        return replace(self, draw=self.draw._replace(seed=int(seed)))

    def take(self, rows: NDArray[Any]) -> "PreparedFit":
        """The same fit on some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        codes = np.ascontiguousarray(self.codes[:, rows])
        return replace(self, codes=codes, labels=self.labels[rows], weights=weights)


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

    def __init__(self, recipe: PreparedFit, rows: Rows | None = None) -> None:
        self._recipe = recipe
        self._rows = rows
        self._n_cells = 0
        self.levels: list[tuple[NDArray[np.uint64], NDArray[np.float64]]] = []

    def __call__(self, counts: ClassCounts, positions: NDArray[np.uint64]) -> Chosen:
        recipe = self._recipe
        if recipe.lookahead > 1 and self._rows is not None:
            rules, thresholds, scores = self._look_ahead(self._rows, positions)
        else:
            table, draw = recipe.rules.table, recipe.draw
            rules, thresholds, scores = choose_rules(counts.values, positions, table, draw)
        self._n_cells += scores.size
        if self._n_cells <= MOST_CELLS:
            self.levels.append((positions, scores))
        return rules, thresholds

    def _look_ahead(
        self, source: Rows, positions: NDArray[np.uint64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        recipe, table = self._recipe, self._recipe.rules.table
        rules = np.full(len(positions), -1)
        thresholds = np.full(len(positions), -1)
        scores = np.full((len(positions), recipe.rules.n_splits), -1.0)
        for slot, position in enumerate(positions):
            depth = (int(position) + 1).bit_length() - 1
            levels = min(recipe.lookahead, recipe.max_depth - depth)
            rows = source.rows_in(slot)
            data = (recipe.codes, recipe.labels, recipe.n_classes)
            scores[slot] = score_ahead(*data, table, rows, levels, recipe.draw.min_leaf)
            rules[slot], thresholds[slot] = draw_rule(scores[slot], table, recipe.draw, position)
        return rules, thresholds, scores


def split_probabilities(
    space: FeatureSpace, rules: SplitTable, draw: Draw, scores: NDArray[np.float64]
) -> list[SplitProbability]:
    """Every question with a chance, the likeliest first, from the scores of one node's rules."""
    table = rules.table
    valid = np.flatnonzero(scores >= 0)
    best = scores.max(initial=-1.0)
    size = (table.last - table.first + 1)[valid]
    if draw.sharpness > 0 and best > 0:
        chance = size * np.exp(draw.sharpness / best * (scores[valid] - best))
    else:
        chance = size * (scores[valid] == best)
    chance = chance / chance.sum()
    order = np.argsort(-chance, kind="stable")
    return [_describe(space, rules, valid[k], float(chance[k])) for k in order if chance[k] > 0]


def _describe(
    space: FeatureSpace, rules: SplitTable, rule: int, probability: float
) -> SplitProbability:
    table = rules.table
    column = space[int(table.feature[rule])]
    first, last = int(table.first[rule]), int(table.last[rule])
    missing_left = bool(table.missing_left[rule])
    if column.is_categorical:
        asked = first < len(column.categories)
        category = column.categories[first] if asked else None
        edge = np.nan if asked else np.inf
        return SplitProbability(column.name, edge, edge, category, missing_left, probability)
    cuts = np.append(column.thresholds, np.inf)
    low, high = float(cuts[first]), float(cuts[last])
    return SplitProbability(column.name, low, high, None, missing_left, probability)
