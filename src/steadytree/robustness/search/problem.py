"""The search's view of the data: rows merged, questions listed, costs of answering them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree._base.exceptions import UnsuitableDataError
from steadytree.data.column import Column
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.splits import SplitTable
from steadytree.robustness._kernels.cost import Cells, RobustTable
from steadytree.robustness.perturbation import LARGEST, Moves

MOST_TESTS = 400
MOST_CODES = 12

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Question:
    """One question: is the value at most `cut`, or is it the category `category`?

    A cut of infinity and a category of -1 ask only whether the value is there.
    """

    column: int
    cut: float
    category: int
    missing_left: bool


@dataclass(frozen=True, eq=False)
class Problem:
    """Find the tree that loses least weight to the worst perturbation.

    Parameters
    ----------
    table : RobustTable
        Distinct rows with their weights, and what each question costs them.
    questions : tuple of Question
        In the order of the table's tests.
    bins : int64 array (n_features, n)
        The bin each row is in, counted as in the table's bins.
    limit : float
        What may be spent, by each row or (shared) by all together.
    shared : bool
    whole : bool
        Whether weights are numbers of rows; else parts of a row can be lost.
    penalty : float
        Charged for every question, in units of weight.
    """

    table: RobustTable
    questions: tuple[Question, ...]
    bins: NDArray[np.int64]
    limit: float
    shared: bool
    whole: bool
    penalty: float

    @property
    def total(self) -> float:
        return float(self.table.weight.sum())

    @property
    def spending(self) -> tuple[float, float, bool, bool]:
        return self.limit, self.penalty, self.shared, self.whole

    def cells(self, lowest: float, highest: float, n_cells: int) -> Cells:
        """Even cells between two prices of the budget; one without prices if it is per row."""
        crossing = _crossing_costs(self.table)
        levels = _code_levels(crossing)
        if not self.shared:
            lost = (levels <= self.limit).astype(np.float64)[:, :, None]
            return Cells(np.zeros(1), np.zeros(1), lost, self.limit, False)
        edges = np.linspace(lowest, highest, n_cells + 1)
        with np.errstate(invalid="ignore"):
            cross = np.maximum(0.0, 1.0 - levels[:, :, None] * edges[1:])
        # of a row that costs more than there is to spend nothing is lost, unless it can be divided
        reach = self.limit if self.whole else np.inf
        return Cells(self.limit * edges[:-1], edges[1:], np.nan_to_num(cross), reach, True)


def make_problem(
    space: FeatureSpace,
    moves: Moves,
    values: Floats,
    labels: NDArray[np.int64],
    weights: Floats | None,
    spending: tuple[float, bool, float],
) -> Problem:
    """List the questions of a space with cuts and price them for every distinct row.

    spending is (limit, shared, penalty).
    """
    limit, shared, penalty = spending
    questions = list_questions(space)
    rows, row_labels, row_weights = merge_rows(values, labels, weights)
    whole = bool((row_weights == np.floor(row_weights)).all())
    tests = [_price(space[q.column], q, moves, rows[:, q.column]) for q in questions]
    n_bins = max((len(test[3]) for test in tests), default=1)
    left_bins, right_bins = (_padded([test[k] for test in tests], n_bins) for k in (3, 4))
    n = len(rows)
    table = RobustTable(
        left_cost=_stacked([test[0] for test in tests], n, np.float64),
        right_cost=_stacked([test[1] for test in tests], n, np.float64),
        on_left=_stacked([test[2] for test in tests], n, np.bool_),
        feature=np.array([q.column for q in questions], dtype=np.int64),
        left_bins=left_bins,
        right_bins=right_bins,
        gone=np.ascontiguousarray(np.isnan(rows).T),
        code=np.zeros((len(tests), n), dtype=np.int64),
        label=row_labels,
        weight=row_weights,
        n_classes=int(labels.max(initial=0)) + 1,
        largest=moves.norm == LARGEST,
    )
    crossing = _crossing_costs(table)
    table.code[:] = _codes(crossing, _code_levels(crossing))
    bins = np.array([_bins_of(column, x, n_bins) for column, x in zip(space, rows.T, strict=True)])
    return Problem(table, questions, bins, limit, shared, whole, penalty)


def list_questions(space: FeatureSpace) -> tuple[Question, ...]:
    """The candidate splits of a space, in the order of `SplitTable`, each with its threshold."""
    table = SplitTable.of(space).table
    found = []
    for j, k, way in zip(
        table.feature.tolist(), table.first.tolist(), table.missing_left, strict=True
    ):
        cuts, n_categories = space[j].thresholds, len(space[j].categories)
        if k < n_categories:
            found.append(Question(j, np.nan, k, bool(way)))
        else:
            cut = float(cuts[k]) if k < len(cuts) else np.inf
            found.append(Question(j, cut, -1, bool(way)))
    if len(found) > MOST_TESTS:
        raise UnsuitableDataError(_too_many(space, found))
    return tuple(found)


def merge_rows(
    values: Floats, labels: NDArray[np.int64], weights: Floats | None
) -> tuple[Floats, NDArray[np.int64], Floats]:
    """Distinct (row, label) pairs with their summed weights; missing equals missing."""
    marked = np.where(np.isnan(values), np.finfo(np.float64).max, values)
    joined = np.column_stack([marked, labels])
    distinct, inverse = np.unique(joined, axis=0, return_inverse=True)
    summed = np.bincount(np.ravel(inverse), weights=weights, minlength=len(distinct))
    rows = distinct[:, :-1]
    rows = np.where(rows == np.finfo(np.float64).max, np.nan, rows)
    return rows, distinct[:, -1].astype(np.int64), summed.astype(np.float64)


def _price(column: Column, question: Question, moves: Moves, x: Floats) -> tuple[NDArray[Any], ...]:
    """Cost of each side, which side each value is on, and the bins of each side."""
    j, gone = question.column, np.isnan(x)
    if column.is_categorical and np.isnan(question.cut):
        left = x == question.category
        left_cost = np.where(left, 0.0, moves.up[j])
        right_cost = np.where(left, moves.up[j], 0.0)
        bins = np.arange(len(column.categories)) == question.category
    else:
        cut = np.inf if column.is_categorical else question.cut
        left = x <= cut
        left_cost = _interval_cost(moves, j, x, -np.inf, cut)
        right_cost = _interval_cost(moves, j, x, cut, np.inf)
        size = len(column.categories) if column.is_categorical else len(column.thresholds) + 1
        bins = np.arange(size) <= (
            size if np.isinf(cut) else np.searchsorted(column.thresholds, cut)
        )
    left = np.where(gone, question.missing_left, left)
    appears = moves.missing[j]
    left_cost = np.where(gone, 0.0 if question.missing_left else appears, left_cost)
    right_cost = np.where(gone, appears if question.missing_left else 0.0, right_cost)
    if not bins.all():
        right_bins = ~bins
    else:  # nothing but missing values on the right: no value can become one
        right_bins = np.zeros_like(bins)
        right_cost = np.where(gone, right_cost, np.inf)
    # without missing values among the rows, no box holds them
    to_left, to_right = (question.missing_left, not question.missing_left) if gone.any() else (0, 0)
    return left_cost, right_cost, left, np.append(bins, to_left), np.append(right_bins, to_right)


def _bins_of(column: Column, x: Floats, n_bins: int) -> NDArray[np.int64]:
    gone = np.isnan(x)
    known = np.where(gone, 0.0, x)
    found = known if column.is_categorical else np.searchsorted(column.thresholds, known)
    return np.where(gone, n_bins - 1, found).astype(np.int64)


def _interval_cost(moves: Moves, j: int, x: Floats, low: float, high: float) -> Floats:
    least, greatest = moves.ends(j, np.array(low), np.array(high))
    inside = (x > low) & (x <= high)
    if least > greatest:
        return np.where(inside, 0.0, np.inf)
    with np.errstate(invalid="ignore"):
        cost = np.where(x > high, (x - greatest) * moves.down[j], (least - x) * moves.up[j])
    return np.where(inside, 0.0, cost)


def _crossing_costs(table: RobustTable) -> Floats:
    """Cost for each row of getting to the other side of each test (n_tests, n)."""
    return np.where(table.on_left, table.right_cost, table.left_cost)


def _code_levels(crossing: Floats) -> Floats:
    """A few crossing costs for each test, the last being the largest; others are rounded up."""
    levels = np.full((len(crossing), MOST_CODES), np.inf)
    n_codes = 1
    for test, costs in enumerate(crossing):
        distinct = np.unique(costs)
        if len(distinct) > MOST_CODES:
            places = np.linspace(0, len(distinct) - 1, MOST_CODES).round().astype(int)
            distinct = distinct[places]
        levels[test, : len(distinct)] = distinct
        n_codes = max(n_codes, len(distinct))
    return levels[:, :n_codes]


def _codes(crossing: Floats, levels: Floats) -> NDArray[np.int64]:
    codes = [np.searchsorted(own, costs) for own, costs in zip(levels, crossing, strict=True)]
    return np.array(codes, dtype=np.int64).reshape(crossing.shape)


def _padded(rows: Sequence[NDArray[np.bool_]], width: int) -> NDArray[np.bool_]:
    """Rows of bins of one width; the last bin, for missing values, stays last."""
    padded = np.zeros((len(rows), width), bool)
    for place, row in enumerate(rows):
        padded[place, : len(row) - 1] = row[:-1]
        padded[place, -1] = bool(row[-1])
    return padded


def _stacked(rows: Sequence[NDArray[Any]], n: int, dtype: Any) -> NDArray[Any]:
    return np.array(rows, dtype=dtype).reshape(len(rows), n)


def _too_many(space: FeatureSpace, questions: Sequence[Question]) -> str:
    counts = np.bincount([q.column for q in questions], minlength=len(space))
    widest = np.argsort(-counts, kind="stable")[:3]
    named = ", ".join(f"{counts[j]} about {space[j].name!r}" for j in widest)
    return (
        f"X gives {len(questions)} questions, more than the {MOST_TESTS} the exact search can take "
        f"({named}): lower n_thresholds, pass fewer thresholds in cuts, round whole-number columns "
        "to fewer values, or drop columns."
    )
