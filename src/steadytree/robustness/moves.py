"""Moves: what a perturbation lets each column of a space do, and at what cost."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.data.feature_space import FeatureSpace
from steadytree.data.table import quote
from steadytree.robustness.readings import parse_amount

COSTS = ("radius", "step_cost", "change_cost")  # of which one sets the norm
TOLERANCE = 1e-9  # a cost that exceeds the budget by rounding alone is within it
NAMING = (*COSTS, "frozen", "direction", "missing_cost", "bounds", "whole")
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Moves:
    """What one unit costs in each column; infinity where it does not move."""

    # (p,): cost of rising or falling by one unit; both hold the cost of another category
    up: Floats
    down: Floats
    missing: Floats  # (p,): cost of a missing value becoming any value
    low: Floats  # (p,): values do not leave [low, high]
    high: Floats
    integer: NDArray[np.bool_]  # (p,): columns that move in whole steps
    categorical: NDArray[np.bool_]
    largest: bool  # whether the largest cost over columns counts, else their sum
    once: Floats  # (p,): cost of a number's moving at all, however far
    reach: Floats  # (p,): no number moves farther

    @property
    def prices(self) -> Floats:
        """Costs (p, 5): one unit up, one down, a missing value, moving at all; and the reach."""
        return np.stack([self.up, self.down, self.missing, self.once, self.reach], axis=1)

    def ends(self, column: Any, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Least and greatest value at which a move into ``low < x <= high`` of a column may end."""
        # All three broadcast to one length. No value fits where the least is above the greatest.
        integer = self.integer[column]
        least = np.where(integer, np.floor(low) + 1.0, np.nextafter(low, np.inf))
        greatest = np.where(integer, np.floor(high), high)
        # nextafter(-inf) is the least finite number, which bounds nothing
        least = np.where(np.isneginf(low), -np.inf, least)
        lowest = np.where(integer, np.ceil(self.low[column]), self.low[column])
        highest = np.where(integer, np.floor(self.high[column]), self.high[column])
        least = np.maximum(least, lowest)
        # beyond the greatest number there is nothing to move to, as past a threshold of infinity
        return least, np.where(np.isposinf(least), -np.inf, np.minimum(greatest, highest))

    def by_row(
        self, rows: Floats, unknown: NDArray[np.bool_]
    ) -> Iterator[tuple[NDArray[np.int64], "Moves"]]:
        """Indices of rows with the moves they may make.

        A fraction moves to any number, and an unknown category, which is nan as a missing value is,
        costs what a changed category costs.
        """
        # each row is looked at by itself, so that none depends on what others hold
        fractions = self.integer & (rows != np.floor(rows)) & ~np.isnan(rows)
        if not (fractions.any() or unknown.any()):
            yield np.arange(len(rows)), self
            return
        both = np.concatenate([fractions, unknown], axis=1)
        patterns, group = np.unique(both, axis=0, return_inverse=True)
        for k, (fraction, strange) in enumerate(patterns.reshape(len(patterns), 2, -1)):
            missing = np.where(strange, self.up, self.missing)
            own = replace(self, integer=self.integer & ~fraction, missing=missing)
            yield np.flatnonzero(group.ravel() == k), own

    def stuck(self, limit: float) -> NDArray[np.bool_]:
        """Columns whose least step, a whole number or another category, costs more than allowed."""
        step = self.once + np.minimum(self.up, self.down)
        beyond = (step > limit) | (self.reach < 1.0)
        return (self.integer | self.categorical) & np.isfinite(step) & beyond


def moves_of(noise: Any, space: FeatureSpace, others: Sequence[str] = ()) -> Moves:
    """What a perturbation allows in each column of a space; see `Perturbation.all_moves`."""
    if noise.relative_to_rows:
        raise ValueError(
            "the perturbation is stated in shares of ranges, standard deviations or 'auto': "
            "say of which rows, such as perturbation.scaled_to(X_train)."
        )
    names = tuple(dict.fromkeys((*space.names, *others)))
    for parameter in NAMING:
        given = getattr(noise, parameter)
        if isinstance(given, Mapping | list | tuple):
            advice = ": use the names the tree was learned with."
            check_names(parameter, given, names, advice)
    for parameter in ("one_hot", "together"):
        check_names(parameter, (n for group in getattr(noise, parameter) for n in group), names)
    up, down, missing, low, high, once, reach = np.full((7, len(space)), np.inf)
    low *= -1
    for j, column in enumerate(space):
        way = noise.direction.get(column.name, "both")
        if column.is_categorical and way != "both":
            raise ValueError(
                f"direction of {column.name!r} is {way!r}, but its categories have no order."
            )
        if column.is_categorical and column.name in noise.bounds:
            raise ValueError(f"bounds of {column.name!r}: its categories have no order.")
        unit, once[j], reach[j] = _costs(noise, column.name, column.is_categorical)
        up[j] = np.inf if way == "down" else unit
        down[j] = np.inf if way == "up" else unit
        if column.name not in noise.frozen:
            missing[j] = noise.missing_cost.get(column.name, np.inf)
        if column.kind == "binary":
            low[j], high[j] = 0.0, 1.0
        if column.name in noise.bounds:
            low[j], high[j] = noise.bounds[column.name]
    known = [column.name for column in space if column.kind in ("integer", "binary")]
    declared = known if noise.whole is None else noise.whole
    integer = np.array([column.name in declared for column in space])
    kinds = integer, space.categorical, noise.norm == "l_inf"
    return Moves(up, down, missing, low, high, *kinds, once, reach)


def _costs(noise: Any, name: str, categorical: bool) -> tuple[float, float, float]:
    """Cost of one unit, of a number's moving at all, and the farthest that it moves."""
    given = {parameter: value_of(getattr(noise, parameter), name) for parameter in COSTS}
    radius, step, change = given.values()
    if name in noise.frozen:
        return np.inf, 0.0, np.inf
    if noise.norm == "l_inf":
        return (1.0 / radius if radius else np.inf), 0.0, np.inf
    if noise.norm == "l1":
        return (np.inf if step is None else step), 0.0, np.inf
    if change is None or np.isinf(change) or (noise.radius is not None and not radius):
        return np.inf, 0.0, np.inf
    reach = np.inf if radius is None else radius * (1.0 + TOLERANCE)
    if categorical:  # another category is one step
        return (change if reach >= 1.0 else np.inf), 0.0, np.inf
    return 0.0, change, reach


# ---- what parameters may hold ----
def check_names(
    parameter: str, given: Iterable[str], names: Sequence[str], advice: str = "."
) -> None:
    """Refuse names in a parameter that are none of the columns'."""
    unknown = [name for name in given if name not in names]
    if unknown:
        known = quote(names)
        raise ValueError(f"{parameter} names {quote(unknown)}, but the columns are {known}{advice}")


def value_of(given: Any, name: str) -> float | None:
    """What a parameter says of a feature; None where it says nothing."""
    value = given.get(name) if isinstance(given, Mapping) else given
    return None if value is None else float(value)


def check_groups(parameter: str, given: Any) -> tuple[tuple[str, ...], ...]:
    """Groups of at least two names, none of which stands twice."""
    listed = isinstance(given, Iterable) and not isinstance(given, str | Mapping)
    groups = tuple(checked_names(parameter, group) for group in given) if listed else None
    if groups is None or any(len(group) < 2 for group in groups):
        raise ValueError(
            f"{parameter} must be a list of lists of at least two names, got {given!r}."
        )
    names = [name for group in groups for name in group]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"{parameter} names {quote(twice)} more than once: leave one of them out.")
    return groups


def certainty_cost(name: str, certainty: float) -> float:
    """Cost of a step of a feature that stays as it is with probability `certainty`."""
    if not is_number(certainty) or not 0 < certainty <= 1:
        raise ValueError(
            f"certainty of {name!r} must be in (0, 1], got {certainty}: the probability that a "
            "value is correct."
        )
    return np.inf if certainty == 1 else -math.log1p(-float(certainty))


def checked_names(parameter: str, given: Any) -> tuple[str, ...]:
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise ValueError(f"{parameter} must be a list of names, got {given!r}.")
    return tuple(given)


def check_costs(parameter: str, given: Any) -> None:
    alone = {} if given is None else {"every feature": given}
    each = given if isinstance(given, Mapping) else alone
    most = "a finite" if parameter == "radius" else "a"
    for name, value in each.items():
        if parameter == "radius" and isinstance(value, str):
            parse_amount(value, name)
            continue
        if not is_number(value) or not value >= 0 or (parameter == "radius" and np.isinf(value)):
            raise ValueError(
                f"{parameter} of {name!r} must be {most} number of at least 0, got {value!r}: "
                "list a feature in frozen if it does not move."
            )


def is_number(value: Any) -> bool:
    """Whether a value is a number of Python or NumPy, and no bool."""
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)
