"""How far values move, read off rows: shares of a range, standard deviations, repeated readings."""

import math
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.data.column import Column
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.table import Table, quote

Floats = NDArray[np.float64]
TAIL = 0.025  # of the values at each end of a column that its range leaves out, at least one
FEW = 5  # fewer values have the range from the least to the greatest
FAR = 3.0  # interquartile ranges beyond the quartiles: not part of a standard deviation
AMOUNT = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(%|sd)\s*")
STATED = "a number of units, a share of the range such as '5 %', or standard deviations, '0.5 sd'"


def parse_amount(text: str, name: str) -> tuple[float, str]:
    """How much of what: a share of the range ("%") or standard deviations ("sd").

    >>> parse_amount("5 %", "age"), parse_amount("0.5 sd", "age")
    ((0.05, '%'), (0.5, 'sd'))
    """
    found = AMOUNT.fullmatch(text)
    if found is None:
        raise ValueError(f"radius of {name!r} must be {STATED}, got {text!r}.")
    unit = found[2]
    return float(found[1]) / (100 if unit == "%" else 1), unit


def in_units(text: str, column: Column, values: Floats) -> float:
    """A stated amount in the units of a column, measured on its values (nan is missing)."""
    amount, unit = parse_amount(text, column.name)
    if column.is_categorical:
        raise ValueError(
            f"radius of {column.name!r} is {text!r}, but it holds categories, which have no range: "
            "give 1 if a category may turn into another, 0 if not."
        )
    return amount * (usual_range(values) if unit == "%" else usual_deviation(values))


def usual_range(values: Floats) -> float:
    """Range between quantiles, so that no single value decides: 2.5 % are left out at each end.

    At least one value is left out at each end, of five or more. Where nothing is left of the range
    because most values are equal, only one value is left out at each end.

    >>> usual_range(np.array([*range(100), 1e9]))
    96.0
    """
    x = np.sort(values[~np.isnan(values)])
    fewest = 1 if len(x) >= FEW else 0
    for tail in (max(fewest, math.floor(TAIL * len(x))), fewest):
        inside = x[tail : len(x) - tail]
        if len(inside) and inside[-1] > inside[0]:
            return float(inside[-1] - inside[0])
    return 0.0


def usual_deviation(values: Floats) -> float:
    """Standard deviation without values farther than three interquartile ranges from the quartiles.

    >>> round(usual_deviation(np.array([*range(100), 1e9])), 2)
    28.87
    """
    x = values[~np.isnan(values)]
    if len(x) == 0:
        return 0.0
    first, third = np.quantile(x, [0.25, 0.75])
    away = FAR * (third - first)
    inside = x[(x >= first - away) & (x <= third + away)] if away > 0 else x
    return float(inside.std())


def recognise_one_hot(X: Any) -> tuple[tuple[str, ...], ...]:
    """Groups of 0/1 columns with a common beginning of their names and exactly one 1 in each row.

    The beginning ends at the last ``=`` or, without one, at the last ``_``.
    """
    table = Table.read(X)
    stems: dict[str, list[int]] = {}
    for j, name in enumerate(table.names or ()):
        stem = re.match(r"(.+)=", name) or re.match(r"(.+)_", name)
        if stem and table.columns[j].dtype != object and name not in table.declared:
            stems.setdefault(stem[1], []).append(j)
    found = []
    for columns in stems.values():
        values = np.stack([np.asarray(table.columns[j], np.float64) for j in columns], axis=1)
        flags = bool(len(columns) > 1 and len(values) and np.isin(values, (0.0, 1.0)).all())
        if flags and (values.sum(axis=1) == 1.0).all():
            found.append(tuple((table.names or ())[j] for j in columns))
    return tuple(found)


def differences(first: Any, second: Any) -> dict[str, Floats]:
    """Absolute differences per column, a changed category counting 1; missing pairs left out."""
    one, other = Table.read(first), Table.read(second)
    if one.n_rows != other.n_rows:
        raise ValueError(
            f"first has {one.n_rows} rows, second {other.n_rows}: "
            "row i of both must be the same object."
        )
    space = FeatureSpace.observe(one)
    table = other.select(space.names)
    found = {}
    for j, column in enumerate(space):
        if column.is_categorical:
            pairs = zip(one.columns[j].tolist(), table.columns[j].tolist(), strict=True)
            both = [(a, b) for a, b in pairs if a is not None and b is not None]
            apart = np.array([float(str(a) != str(b)) for a, b in both])
        elif table.columns[j].dtype == object:
            raise ValueError(
                f"column {column.name!r} holds numbers in first and text in second: convert it."
            )
        else:
            apart = np.abs(one.columns[j] - table.columns[j].astype(np.float64))
        found[column.name] = apart[~np.isnan(apart)]
        if len(found[column.name]) == 0:
            raise ValueError(
                f"column {column.name!r} has no pair of measurements: drop it, or freeze it."
            )
    return found


def repeated_pairs(X: Any, by: str) -> tuple[Table, Table]:
    """Rows of the same thing, by the column `by`, in pairs: the first two, the next two, ..."""
    table = Table.read(X)
    names = table.names
    if names is None or by not in names:
        own = "it has no names" if names is None else f"it has {quote(names)}"
        raise ValueError(f"X lacks the column {by!r} of what was measured; {own}.")
    rest = table.select([name for name in names if name != by])
    text = table.text(names.index(by)).of_row
    known = np.flatnonzero(text >= 0)
    order = known[np.argsort(text[known], kind="stable")]
    begins = np.flatnonzero(np.diff(text[order], prepend=-1) != 0)
    order_in_group = np.arange(len(order)) - np.repeat(
        begins, np.diff(np.append(begins, len(order)))
    )
    second = np.flatnonzero(order_in_group % 2 == 1)
    if len(second) == 0:
        raise ValueError(
            f"no value of {by!r} stands in two rows, so nothing was measured twice: pass rows with "
            "repeated measurements."
        )
    return rest.take(order[second - 1]), rest.take(order[second])


def estimate_radius(first: Any, second: Any, coverage: float) -> dict[str, float]:
    """Per column the least distance that covers the given share of differences."""
    if not 0 < coverage < 1:
        raise ValueError(f"coverage must be between 0 and 1, got {coverage}.")
    radius = {}
    for name, apart in differences(first, second).items():
        rank = math.ceil((len(apart) + 1) * coverage - 1e-12)
        if rank > len(apart):
            least = math.ceil(coverage / (1 - coverage) - 1e-9)
            raise ValueError(
                f"column {name!r} has {len(apart)} pairs, too few for coverage={coverage}: "
                f"at least {least} are needed, or lower coverage."
            )
        radius[name] = float(np.sort(apart)[rank - 1])
    return radius


def estimate_certainty(first: Any, second: Any) -> dict[str, float]:
    """Per column the probability of no move, by maximum likelihood of the geometric law."""
    apart = differences(first, second)
    return {name: len(steps) / (len(steps) + float(steps.sum())) for name, steps in apart.items()}
