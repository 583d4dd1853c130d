"""Checks of the parameters of RiskScoreClassifier."""

from collections.abc import Iterable, Mapping
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree._base.validation import Boolean, Integer, OneOf, Parameters, Real, validate
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.table import quote

PARAMETERS: Parameters = {
    "loss": OneOf("auto", "majority", "logistic"),
    "directions": OneOf("both", "up"),
    "as_published": Boolean(),
    "tau": Real(0, 1, also=("1se",)),
    "gamma": Real(above=0, below=0.5, also=("cv",)),
    "n_rounds": Integer(1, 1000, also=("cv",)),
    "max_conditions": Integer(1, also=(None,)),
    "max_points": Integer(1, also=(None,)),
}


def check_parameters(estimator: Any) -> None:
    """Refuse invalid parameters, before the data are read."""
    validate(estimator, PARAMETERS)
    if estimator.as_published and (estimator.loss == "logistic" or estimator.directions != "up"):
        raise ValueError("as_published needs loss='majority' and directions='up'.")
    _check_names(estimator)


def names_of(estimator: Any, parameter: str) -> list[str]:
    """The names in a parameter, each once; empty for None."""
    given = getattr(estimator, parameter)
    if given is None:
        return []
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise ValueError(f"{parameter} must be a list of names, got {given!r}.")
    return list(dict.fromkeys(given))


def _check_names(estimator: Any) -> None:
    forced = names_of(estimator, "forced")
    names_of(estimator, "forbidden")
    if estimator.monotone is not None and not isinstance(estimator.monotone, Mapping):
        kind = type(estimator.monotone).__name__
        raise ValueError(f"monotone must map names to 'up' or 'down', got a {kind}.")
    limits = ["max_conditions", *(["n_rounds"] if estimator.loss != "logistic" else [])]
    for limit in limits:
        most = getattr(estimator, limit)
        if isinstance(most, Integral) and len(forced) > most:
            raise ValueError(
                f"forced names {len(forced)} columns, more than {limit}={most} allows: raise it."
            )


def allowed_directions(
    estimator: Any, space: FeatureSpace, n_classes: int
) -> dict[int, tuple[bool, bool]]:
    """Columns that may be used, each with the directions (large, small values) of its points."""
    named = {name: names_of(estimator, name) for name in ("monotone", "forced", "forbidden")}
    for parameter, names in named.items():
        unknown = [name for name in names if name not in space.names]
        if unknown:
            raise ValueError(
                f"{parameter} names {quote(unknown)}, but the columns are {quote(space.names)}."
            )
    both = [name for name in named["forced"] if name in named["forbidden"]]
    if both:
        raise ValueError(f"{quote(both)} is both forced and forbidden: choose one.")
    monotone = estimator.monotone or {}
    if monotone and n_classes > 2:
        raise ValueError(
            f"monotone is for two classes, but y has {n_classes} classes: leave it out, or fit one "
            "class against the rest."
        )
    directions = {}
    for j, column in enumerate(space):
        direction = monotone.get(column.name)
        if direction not in (None, "up", "down"):
            raise ValueError(
                f"monotone of {column.name!r} must be 'up' or 'down', got {direction!r}."
            )
        if direction and column.is_categorical:
            raise ValueError(f"monotone of {column.name!r}: its categories have no order.")
        up, down = direction != "down", direction != "up" and estimator.directions == "both"
        if column.name not in named["forbidden"] and (up or down):
            directions[j] = (up, down)
        elif column.name in named["forced"]:
            raise ValueError(
                f"{column.name!r} is forced, but directions='up' and monotone allow no condition."
            )
        elif column.name not in named["forbidden"]:
            raise ValueError(
                f"monotone of {column.name!r} is 'down', but directions='up' gives points for "
                "large values only: use directions='both', or list the column in forbidden."
            )
    return directions


def check_classes(estimator: Any, classes: NDArray[Any]) -> None:
    """Refuse numbers of classes that the algorithm does not support."""
    if len(classes) < 2:
        raise ValueError(f"y holds one class only, {str(classes[0])!r}: at least two are needed.")
    if estimator.as_published and len(classes) > 2:
        raise ValueError(
            "Only binary classification is supported. The published algorithm takes two classes, "
            f"but y has {len(classes)}: leave as_published out, or fit one class against the rest."
        )


def check_forced(
    estimator: Any, space: FeatureSpace, values: NDArray[np.float64]
) -> tuple[int, ...]:
    """Indices of the columns that must be used; constant columns are refused."""
    names = names_of(estimator, "forced")
    indices = tuple(space.names.index(name) for name in names)
    same = [
        name for name, j in zip(names, indices, strict=True) if len(np.unique(values[:, j])) < 2
    ]
    if same and not estimator.as_published:
        raise ValueError(
            f"forced names {quote(same)}, which holds one value only in these rows: no condition "
            "can use it, so leave it out."
        )
    return indices
