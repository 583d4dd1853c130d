"""What the parameters of a perturbation may hold: costs, names and groups of columns."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from steadytree.data.table import quote
from steadytree.robustness.readings import parse_amount

COSTS = ("radius", "step_cost", "change_cost")  # of which one sets the norm


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
