"""Questions: what a card may ask, as columns of numbers that move by at most a given noise."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from steadytree.data._kernels import short_edges
from steadytree.data.column import Column
from steadytree.data.feature_space import FeatureSpace
from steadytree.models.scorecard import Condition
from steadytree.riskscore._kernels import DOWN, UP

# shifts are this much larger than asked for, so that rounding never breaks a certificate
SLACK = 1 + 1e-8


@dataclass(frozen=True)
class Question:
    """A column of numbers that conditions can be put to.

    Parameters
    ----------
    feature : int
        The column of the space it comes from.
    sort : {"number", "category", "missing"}
        Asked of numbers; of one category against the others (1 or 0); of whether a value is gone.
    unit : float
        What noise of size one moves it by: the column's range; 0 for what no noise moves.
    ways : tuple of two bool
        Whether points may be given upwards, and downwards.
    code : int
        The category.
    """

    feature: int
    sort: Literal["number", "category", "missing"]
    unit: float
    ways: tuple[bool, bool]
    code: int = -1

    def condition(self, way: int, threshold: float, space: FeatureSpace) -> Condition:
        """The condition that a cut stands for; a threshold of minus infinity asks for any value."""
        if self.sort == "missing":
            return Condition(self.feature, "missing" if way == UP else "present")
        if np.isinf(threshold):
            return Condition(self.feature, "present")
        if self.sort == "number":
            return Condition(self.feature, "at_least" if way == UP else "below", threshold)
        others = set(range(len(space[self.feature].categories))) - {self.code}
        chosen = {self.code} if way == UP else others
        return Condition(self.feature, "among", categories=tuple(chosen))


@dataclass(frozen=True, eq=False)
class Questions:
    """All questions about a space, with rows answered: nan where a value is missing."""

    space: FeatureSpace
    listed: tuple[Question, ...]
    answers: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        space: FeatureSpace,
        values: NDArray[np.float64],
        ways: Mapping[int, tuple[bool, bool]],
        as_published: bool = False,
    ) -> "Questions":
        """Questions about the columns in `ways`, each with the directions it may be asked in."""
        listed: list[Question] = []
        columns: list[NDArray[np.float64]] = []
        for j, both in ways.items():
            column, x = space[j], values[:, j]
            gone = np.isnan(x)
            if column.is_categorical:
                for code in range(
                    1 if len(column.categories) == 2 and not gone.any() else 0,
                    len(column.categories),
                ):
                    listed.append(Question(j, "category", 0.0, both, code))
                    columns.append(np.where(gone, np.nan, x == code))
            else:
                wide = _width(column)
                moves = as_published or column.kind != "binary"
                unit = (wide if wide > 0 else 1.0) if moves else 0.0
                listed.append(Question(j, "number", unit, both))
                columns.append(x)
            if gone.any():
                listed.append(Question(j, "missing", 0.0, (True, False)))
                columns.append(gone.astype(np.float64))
        answers = np.stack(columns, axis=1) if columns else np.empty((len(values), 0))
        return cls(space, tuple(listed), answers)

    def __len__(self) -> int:
        return len(self.listed)

    def take(self, rows: NDArray[Any]) -> "Questions":
        """The same questions of some rows."""
        return Questions(self.space, self.listed, self.answers[rows])

    def shifted(
        self, labels: NDArray[np.int64], tau: float, way: int, slack: float = SLACK
    ) -> NDArray[np.float64]:
        """Answers (n, q) moved by noise tau against the label: down for yes, if asked upwards."""
        if tau == 0:
            return self.answers
        units = np.array([question.unit for question in self.listed])
        sign = -labels if way == UP else labels
        return self.answers + (tau * slack) * sign[:, None] * units

    @property
    def open(self) -> NDArray[np.bool_]:
        """Which ways (q, 2) each may be asked in."""
        return np.array([question.ways for question in self.listed], bool).reshape(-1, 2)

    @property
    def moved(self) -> NDArray[np.bool_]:
        """Which are moved by noise."""
        return np.array([question.unit > 0 for question in self.listed], bool)


def _width(column: Column) -> float:
    """A column's range, which noise of size one moves values by."""
    wide = column.high - column.low
    if not np.isfinite(2 * wide + max(abs(column.low), abs(column.high))):
        raise ValueError(
            f"column {column.name!r} reaches from {column.low:g} to {column.high:g}, too far for "
            "noise to be added: divide its values, or drop it."
        )
    return wide


@dataclass(frozen=True, eq=False)
class Codes:
    """Shifted answers as ranks, one way, with the thresholds between them."""

    codes: NDArray[np.int64]
    size: NDArray[np.int64]
    edges: list[NDArray[np.float64]]

    @classmethod
    def of(cls, shifted: NDArray[np.float64], way: int, short: bool = True) -> "Codes":
        """Ranks (q, n): missing first upwards and last downwards, so that it never says yes.

        Edge c stands between codes c - 1 and c; `short` takes one with few digits.
        """
        n, q = shifted.shape
        codes = np.empty((q, n), np.int64)
        size, edges = np.empty(q, np.int64), []
        for j in range(q):
            x = shifted[:, j]
            gone = np.isnan(x)
            known, place = ranks(x[~gone])
            before = int(gone.any() and way == UP)
            codes[j, ~gone] = place + before
            codes[j, gone] = 0 if way == UP else len(known)
            size[j] = len(known) + int(gone.any())
            between = edges_between(known, short)
            ends = [-np.inf] if gone.any() else []
            start = known[:1] if len(known) else np.zeros(1)
            edges.append(
                np.concatenate([start, ends, between] if way == UP else [start, between, ends])
            )
        most = int(size.max(initial=1))
        kind = np.uint8 if most <= 256 else np.uint16 if most <= 65_536 else np.int64
        return cls(codes.astype(kind), size, edges)


def ranks(x: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Different values in order, and the place of each entry among them."""
    if len(x):
        low, high = x.min(), x.max()
        top = x == high
        if high > low and (top | (x == low)).all():  # two values, as often, need no sorting
            return np.array([low, high]), top.astype(np.int64)
    known, place = np.unique(x, return_inverse=True)
    return known, place


def edges_between(known: NDArray[np.float64], short: bool) -> NDArray[np.float64]:
    """Thresholds between neighbouring values, in the middle or at a short number near it."""
    if short:
        return short_edges(known)
    low, high = known[:-1], known[1:]
    edges = low + (high - low) / 2
    return np.where(edges <= low, high, edges)  # neighbouring floats: the upper one divides them


__all__ = ["DOWN", "UP", "Codes", "Question", "Questions", "edges_between", "ranks"]
