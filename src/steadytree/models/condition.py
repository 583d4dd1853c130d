"""Condition: what a scorecard asks of one column, answered by yes or no."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from steadytree.data.column import ByKey, Column

Sort = Literal["at_least", "below", "among", "missing", "present"]
SORTS = ("at_least", "below", "among", "missing", "present")


@dataclass(frozen=True, eq=False)
class Condition(ByKey):
    """What is asked of one column. A missing value satisfies only the sort "missing".

    Parameters
    ----------
    feature : int
        Place of the column in its space.
    sort : {"at_least", "below", "among", "missing", "present"}
    threshold : float
        For "at_least" (``x >= threshold``) and "below" (``x < threshold``); else nan.
    categories : tuple of int
        Codes, rising, for "among"; else empty.

    Examples
    --------
    >>> Condition(0, "at_least", 75.0).text(Column("age", "integer", 18.0, 99.0))
    'age ≥ 75'
    """

    feature: int
    sort: Sort
    threshold: float = math.nan
    categories: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.sort not in SORTS:
            raise ValueError(f"condition: sort must be one of {SORTS}, got {self.sort!r}.")
        object.__setattr__(self, "feature", int(self.feature))
        # minus zero asks the same as zero, and would be printed otherwise
        object.__setattr__(self, "threshold", float(self.threshold) + 0.0)
        object.__setattr__(self, "categories", tuple(sorted({int(c) for c in self.categories})))
        asks_number = self.sort in ("at_least", "below")
        if asks_number != math.isfinite(self.threshold):
            raise ValueError(
                f"condition: {self.sort!r} needs {'a finite' if asks_number else 'no'} threshold, "
                f"got {self.threshold}."
            )
        if (self.sort == "among") != bool(self.categories):
            raise ValueError("condition: 'among' needs categories, the other sorts have none.")

    def check(self, column: Column) -> None:
        """Refuse a question that does not fit its column."""
        numbers = not column.is_categorical
        if self.sort in ("at_least", "below") and not numbers:
            raise ValueError(f"condition: column {column.name!r} has categories, not numbers.")
        if self.sort == "among" and (numbers or self.categories[-1] >= len(column.categories)):
            raise ValueError(f"condition: column {column.name!r} lacks such categories.")

    def holds(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Whether encoded values of the column satisfy it."""
        if self.sort == "at_least":
            return values >= self.threshold
        if self.sort == "below":
            return values < self.threshold
        if self.sort == "among":
            return np.isin(values, self.categories)
        return np.isnan(values) == (self.sort == "missing")

    def text(self, column: Column, exact: bool = False) -> str:
        """The question in words, with the threshold to as many digits as matter, or exactly."""
        if self.sort == "missing":
            return f"{column.name} is missing"
        if self.sort == "present":
            return f"{column.name} is known"
        if self.sort == "among":
            return self._among(column)
        sign = "≥" if self.sort == "at_least" else "<"
        if exact:
            return f"{column.name} {sign} {repr(self.threshold).removesuffix('.0')}"
        if column.kind == "binary" and 0 < self.threshold <= 1:
            return column.name if self.sort == "at_least" else f"not {column.name}"
        # x >= 34.5 and x >= 35 ask the same of integers, which are shown as such
        is_integer = column.kind in ("integer", "binary")
        shown = str(math.ceil(self.threshold)) if is_integer else f"{self.threshold:.15g}"
        return f"{column.name} {sign} {shown}"

    def _among(self, column: Column) -> str:
        names = [name if name.strip() else f'"{name}"' for name in column.categories]
        inside = [names[index] for index in self.categories]
        outside = [name for name in names if name not in inside]
        if len(inside) > 1 and len(outside) == 1:
            return f"{column.name} is known and not {outside[0]}"
        if len(inside) == 1:
            return f"{column.name} is {inside[0]}"
        return f"{column.name} is one of {', '.join(inside)}"

    def key(self) -> tuple[object, ...]:
        """What makes two conditions equal; nan would differ from itself."""
        threshold = None if math.isnan(self.threshold) else self.threshold
        return self.feature, self.sort, threshold, self.categories
