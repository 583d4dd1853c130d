"""Scaled: columns in units of their range, and which of their values lie closer than 2 r, exactly.

0.3 and 0.1 are 0.2 apart for whoever wrote them, but not in binary, nor after a division. So a
float stands here for the shortest decimal that reads back as it, as Python prints it, and sums and
quotients of these are exact. Where floats alone settle a comparison they do; ties are settled by
fractions.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.data.feature_space import FeatureSpace
from steadytree.data.table import Table, quote

SLACK = 8  # roundings by which a sum of floats may be off: half of one each, and room to spare


@dataclass(frozen=True, eq=False)
class Scaled:
    """Rows as compared: numbers, a 0/1 column a category, and one for missing values."""

    values: NDArray[np.float64]  # (n, p): in units of the range or the scale, rounded
    ranks: NDArray[np.int64]  # (n, p): place of each value among the different ones of its column
    # the different values of each column, rising, in its own units and precision
    levels: tuple[NDArray[Any], ...]
    units: tuple[Fraction, ...]  # what counts as distance one

    @classmethod
    def of(cls, X: Any, scale: Mapping[str, float] | None = None) -> "Scaled":
        """Read rows; a missing number stands at its column's least, and in a column of its own."""
        table = Table.read(X)
        space = FeatureSpace.observe(table)
        asked = _check_scale(space, scale)
        encoded = space.encode(table)
        columns: list[tuple[NDArray[Any], float | None]] = []
        for j, column in enumerate(space):
            gone = np.isnan(encoded[:, j])
            if column.is_categorical:
                columns += [(encoded[:, j] == k, 1.0) for k in range(len(column.categories))]
            else:
                own = table.columns[j]  # in its own precision, in which it was written
                filled = np.where(gone, own[~gone].min(), own) + own.dtype.type(0)
                columns.append((filled, asked.get(column.name)))
            if gone.any():
                columns.append((gone, 1.0))
        return cls._joined(columns)

    @classmethod
    def _joined(cls, columns: list[tuple[NDArray[Any], float | None]]) -> "Scaled":
        values = np.empty((len(columns[0][0]), len(columns)))
        ranks, levels, units = np.empty(values.shape, np.int64), [], []
        for j, (column, unit) in enumerate(columns):
            numbers = column.astype(np.float64) if column.dtype == bool else column
            level, ranks[:, j] = np.unique(numbers, return_inverse=True)
            wide = _decimal(level[-1]) - _decimal(level[0])
            levels.append(level)
            units.append(_decimal(unit) if unit is not None else wide or Fraction(1))
            value = level.astype(np.float64)
            values[:, j] = ((value - value[0]) / float(units[-1]))[ranks[:, j]]
        return cls(values, ranks, tuple(levels), tuple(units))

    def closer_than(self, distance: Fraction) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The last rank closer to each rank than a distance above 0, and where columns start.

        Two values of a column with ranks a <= b are closer just where ``b <= last[start + a]``.
        """
        each = [
            _last_closer(level, distance * unit)
            for level, unit in zip(self.levels, self.units, strict=True)
        ]
        starts = np.concatenate([[0], np.cumsum([len(one) for one in each])])
        return np.concatenate(each), starts[:-1].astype(np.int64)


def two_times(r: float) -> Fraction:
    """2 r, exactly, for r as it is written."""
    return 2 * _decimal(r)


def _decimal(number: Any) -> Fraction:
    """A float as the shortest decimal that reads back as it, in its own precision."""
    return Fraction(str(number))


def _last_closer(level: NDArray[Any], reach: Fraction) -> NDArray[np.int64]:
    """Of rising values, the last that lies less than `reach` above each."""
    n = len(level)
    if reach > _decimal(level[-1]) - _decimal(level[0]):
        return np.full(n, n - 1)
    value, near, precision = level.astype(np.float64), float(reach), np.finfo(level.dtype)
    rounding = SLACK * float(precision.eps)
    slack = rounding * np.abs(value) + rounding * near + SLACK * float(precision.smallest_subnormal)
    low = np.searchsorted(value, value + near - slack, side="left")
    high = np.searchsorted(value, value + near + slack, side="right")
    for k in np.flatnonzero(low < high).tolist():
        end = _decimal(level[k]) + reach
        a, b = int(low[k]), int(high[k])
        while a < b:
            middle = (a + b) // 2
            a, b = (a, middle) if _decimal(level[middle]) >= end else (middle + 1, b)
        low[k] = a
    return low.astype(np.int64) - 1


def _check_scale(space: FeatureSpace, scale: Mapping[str, float] | None) -> Mapping[str, float]:
    """What counts as distance one in some columns; refused where that cannot be."""
    if scale is not None and not isinstance(scale, Mapping):
        raise ValueError(f"scale must map names to numbers, got {scale!r}.")
    asked = scale or {}
    unknown = [name for name in asked if name not in space.names]
    if unknown:
        raise ValueError(f"scale names {quote(unknown)}, but X has {quote(space.names)}.")
    for column in space:
        unit = asked.get(column.name, column.high - column.low)
        if column.name in asked:
            if column.is_categorical:
                raise ValueError(
                    f"scale of {column.name!r}: its categories are 1 apart, whatever they are."
                )
            if not is_number(unit) or not 0 < unit < np.inf:
                raise ValueError(
                    f"scale of {column.name!r} must be a number above 0, got {unit!r}."
                )
        if not column.is_categorical and not np.isfinite(
            (column.high - column.low) / (float(unit) or 1.0)
        ):
            raise ValueError(
                f"column {column.name!r} reaches from {column.low:g} to {column.high:g}, too "
                "far in units of its scale: divide its values, or drop it."
            )
    return asked


def is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)
