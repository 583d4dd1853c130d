"""How far two measurements of the same objects lie apart."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.data.feature_space import FeatureSpace
from steadytree.data.table import Table


def differences(first: Any, second: Any) -> dict[str, NDArray[np.float64]]:
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
            apart = np.array(
                [
                    float(str(a) != str(b)) if a is not None and b is not None else np.nan
                    for a, b in pairs
                ]
            )
        else:
            apart = np.abs(np.asarray(one.columns[j]) - _numbers(column.name, table.columns[j]))
        found[column.name] = apart[~np.isnan(apart)]
        if len(found[column.name]) == 0:
            raise ValueError(
                f"column {column.name!r} has no pair of measurements: drop it, or freeze it."
            )
    return found


def estimate_radius(first: Any, second: Any, coverage: float) -> dict[str, float]:
    """Per column the least distance that covers the given share of differences."""
    if not 0 < coverage < 1:
        raise ValueError(f"coverage must be between 0 and 1, got {coverage}.")
    radius = {}
    for name, apart in differences(first, second).items():
        place = math.ceil((len(apart) + 1) * coverage - 1e-12)
        if place > len(apart):
            least = math.ceil(coverage / (1 - coverage) - 1e-9)
            raise ValueError(
                f"column {name!r} has {len(apart)} pairs, too few for coverage={coverage}: "
                f"at least {least} are needed, or lower coverage."
            )
        radius[name] = float(np.sort(apart)[place - 1])
    return radius


def estimate_certainty(first: Any, second: Any) -> dict[str, float]:
    """Per column the probability of no move, by maximum likelihood of the geometric law."""
    apart = differences(first, second)
    return {name: len(steps) / (len(steps) + float(steps.sum())) for name, steps in apart.items()}


def _numbers(name: str, values: NDArray[Any]) -> NDArray[np.float64]:
    if values.dtype == object:
        raise ValueError(f"column {name!r} holds numbers in first and text in second: convert it.")
    return np.asarray(values, np.float64)
