"""Probes: rows at which an export could decide otherwise than its model, and the comparison.

Each leaf that a row can reach is entered once; then one value at a time is moved to every bound of
that leaf, one float64 and one float32 beside it, to the ends of the numbers, to infinity, to every
category, to texts that are not known, and is left out.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadytree._base.exceptions import ExportError
from steadytree.data.column import Column
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.table import Table
from steadytree.models.boxes import exact_thresholds
from steadytree.models.scorecard import Scorecard
from steadytree.models.tree import LEAF, Tree

MOST_ROWS = 20_000  # beyond that the leaves of a tree are sampled
N_MIXED = 200  # rows of a scorecard in which every value is a probe
LARGEST = float(np.finfo(np.float64).max)
LARGEST_SINGLE = float(np.finfo(np.float32).max)
REFUSED = -1  # instead of a leaf, where a value is infinite, which models refuse

Value = float | str | None


class Check(NamedTuple):
    """On what an export was compared with its model, and what ran it."""

    n_rows: int
    n_leaves: int  # of the model that were entered
    by: str

    def __str__(self) -> str:
        return f"agrees with the model on {self.n_rows:,} rows at its thresholds, by {self.by}"


@dataclass(frozen=True, eq=False)
class Probes:
    """Rows as a user hands them over: nan for a missing number, None for a missing text."""

    space: FeatureSpace
    rows: Sequence[tuple[Value, ...]]
    n_leaves: int

    @classmethod
    def of_tree(cls, tree: Tree) -> "Probes":
        """Rows of all leaves, or of as many as there is room for, sampled with a fixed seed."""
        rows: list[tuple[Value, ...]] = []
        leaves = np.flatnonzero(tree.is_leaf)
        order = np.random.default_rng(0).permutation(leaves) if len(leaves) > 1_000 else leaves
        exact = exact_thresholds(tree)
        n_leaves = 0
        for leaf in order.tolist():
            if len(rows) >= MOST_ROWS:
                break
            box = _box_of_leaf(tree, leaf, exact)
            start = _row_inside(tree.space, box)
            if start is None:
                continue
            n_leaves += 1
            rows.append(start)
            for feature, open_ in box.items():
                at = {float(each[node]) for each in (tree.threshold, exact) for node in open_.ends}
                finite = [bound for bound in at if np.isfinite(bound)]
                for value in _probe_values(tree.space[feature], finite):
                    rows.append((*start[:feature], value, *start[feature + 1 :]))
        return cls(tree.space, list(dict.fromkeys(rows)), n_leaves)

    @classmethod
    def of_scorecard(cls, scorecard: Scorecard) -> "Probes":
        """Every band of every variable, beside the first band of the others and mixed."""
        values: dict[int, list[Value]] = {}
        for variable in scorecard.variables:
            at = variable.thresholds.tolist()
            values[variable.feature] = list(_probe_values(variable.column, at))
        start: tuple[Value, ...] = tuple(
            None if column.is_categorical else 0.0 for column in scorecard.space
        )
        rows = [start]
        for feature, tried in values.items():
            rows += [(*start[:feature], value, *start[feature + 1 :]) for value in tried]
        random = np.random.default_rng(0)
        for _ in range(N_MIXED):
            row = list(start)
            for feature, tried in values.items():
                row[feature] = tried[random.integers(len(tried))]
            rows.append(tuple(row))
        return cls(scorecard.space, list(dict.fromkeys(rows)), len(values))

    def in_single(self) -> "Probes":
        """The rows with their numbers as the nearest finite ones of float32."""

        def nearest(value: Value) -> Value:
            if not isinstance(value, float):
                return value
            return float(np.float32(np.clip(value, -LARGEST_SINGLE, LARGEST_SINGLE)))

        rounded = [tuple(map(nearest, row)) for row in self.rows]
        return Probes(self.space, list(dict.fromkeys(rounded)), self.n_leaves)

    def columns(self, features: Iterable[int]) -> dict[str, list[Value]]:
        """Some columns of the rows, by name."""
        return {self.space[j].name: [row[j] for row in self.rows] for j in features}

    def refused(self, features: Iterable[int]) -> NDArray[np.bool_]:
        """Rows with an infinite number in one of the columns, which models refuse."""
        numbers = [j for j in features if not self.space[j].is_categorical]
        values = [[row[j] for j in numbers] for row in self.rows]
        matrix = np.array(values, np.float64).reshape(len(self.rows), len(numbers))
        return np.asarray(np.isinf(matrix).any(axis=1))

    def ask(
        self, answer: Callable[[Table], NDArray[Any]], features: Iterable[int], refusal: Any
    ) -> list[Any]:
        """What the model answers to each row, and `refusal` where it answers nothing."""
        kept = (~self.refused(features)).tolist()
        rows = list(compress(self.rows, kept))
        columns = [
            np.array([row[j] for row in rows], object if column.is_categorical else np.float64)
            for j, column in enumerate(self.space)
        ]
        answers = iter(answer(Table(self.space.names, columns, {})).tolist())
        return [next(answers) if known else refusal for known in kept]

    def compare(self, form: str, by: str, expected: Sequence[Any], found: Sequence[Any]) -> Check:
        """The check, or an error that names the first row on which the two differ."""
        differ = [k for k, pair in enumerate(zip(expected, found, strict=True)) if _differ(*pair)]
        if differ:
            row = dict(zip(self.space.names, self.rows[differ[0]], strict=True))
            first = f"{found[differ[0]]!r} instead of {expected[differ[0]]!r} for {row!r}"
            raise ExportError(
                f"{form} differs from the model on {len(differ):,} of {len(found):,} rows at its "
                f"thresholds, as run by {by}, such as {first[:400]}: it was not written."
            )
        return Check(len(found), self.n_leaves, by)


def used_features(model: Tree | Scorecard) -> list[int]:
    """Columns that a model asks about, in their order."""
    if isinstance(model, Tree):
        return np.unique(model.feature[model.feature >= 0]).tolist()
    return sorted({condition.feature for condition in model.conditions})


def _differ(expected: Any, found: Any) -> bool:
    """Whether two answers differ; nan, the refusal of some forms, equals itself."""
    if isinstance(expected, list | tuple):
        return any(map(_differ, expected, found)) or len(expected) != len(found)
    return bool(expected != found) and not (expected != expected and found != found)


# ---- rows of one leaf ----
class _Interval:
    """What a path leaves open of one column."""

    def __init__(self, column: Column) -> None:
        self.low, self.high, self.missing = -np.inf, np.inf, True
        self.low_node, self.high_node = LEAF, LEAF  # whose thresholds these are
        self.categories = set(range(len(column.categories)))

    @property
    def ends(self) -> list[int]:
        return [node for node in (self.low_node, self.high_node) if node != LEAF]


def _box_of_leaf(tree: Tree, leaf: int, thresholds: NDArray[np.float64]) -> dict[int, _Interval]:
    box: dict[int, _Interval] = {}
    path = tree.path(leaf)
    for node, child in pairwise(path):
        feature, goes_left = int(tree.feature[node]), bool(tree.left[node] == child)
        column = tree.space[feature]
        open_ = box.setdefault(feature, _Interval(column))
        open_.missing &= bool(tree.missing_left[node]) == goes_left
        if column.is_categorical:
            named = set(np.flatnonzero(tree.subset[node]).tolist())
            open_.categories &= named if goes_left else open_.categories - named
        elif goes_left and thresholds[node] < open_.high:
            open_.high, open_.high_node = float(thresholds[node]), node
        elif not goes_left and thresholds[node] > open_.low:
            open_.low, open_.low_node = float(thresholds[node]), node
    return box


def _row_inside(space: FeatureSpace, box: dict[int, _Interval]) -> tuple[Value, ...] | None:
    """A row that arrives at the leaf; None where none can."""
    row: list[Value] = [None if column.is_categorical else 0.0 for column in space]
    for feature, open_ in box.items():
        column = space[feature]
        if column.is_categorical and open_.categories:
            row[feature] = column.categories[min(open_.categories)]
        elif not column.is_categorical and open_.low < open_.high:
            above = float(np.nextafter(open_.low, np.inf))
            row[feature] = open_.high if np.isfinite(open_.high) else max(above, -LARGEST)
        elif open_.missing:
            row[feature] = None if column.is_categorical else np.nan
        else:
            return None
    return tuple(row)


def _probe_values(column: Column, thresholds: Iterable[float]) -> Iterator[Value]:
    if column.is_categorical:
        known = set(column.categories)
        yield from column.categories
        yield None
        for text in column.categories:
            yield from ({text.swapcase(), f"{text} ", f" {text}"} - known)
        yield from ({"", "not known before"} - known)
        return
    for at in thresholds:
        yield at
        for way in (-np.inf, np.inf):
            yield float(np.nextafter(at, way))
            with np.errstate(over="ignore"):
                single = np.nextafter(np.float32(at), np.float32(way))
            if np.isfinite(single):
                yield float(single)
    yield from (0.0, LARGEST, -LARGEST, np.nan, np.inf, -np.inf)
