"""Checks of what a RiskScoreClassifier was asked for."""

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


def check_parameters(asked: Any) -> None:
    """Refuse settings that mean nothing, before data are looked at."""
    validate(asked, PARAMETERS)
    if asked.as_published and (asked.loss == "logistic" or asked.directions != "up"):
        raise ValueError("as_published needs loss='majority' and directions='up'.")
    _check_names(asked)


def names_of(asked: Any, parameter: str) -> list[str]:
    """The names a parameter lists, each once; none where it is left out."""
    given = getattr(asked, parameter)
    if given is None:
        return []
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise ValueError(f"{parameter} must be a list of names, got {given!r}.")
    return list(dict.fromkeys(given))


def _check_names(asked: Any) -> None:
    forced = names_of(asked, "forced")
    names_of(asked, "forbidden")
    if asked.monotone is not None and not isinstance(asked.monotone, Mapping):
        kind = type(asked.monotone).__name__
        raise ValueError(f"monotone must map names to 'up' or 'down', got a {kind}.")
    limits = ["max_conditions", *(["n_rounds"] if asked.loss != "logistic" else [])]
    for limit in limits:
        most = getattr(asked, limit)
        if isinstance(most, Integral) and len(forced) > most:
            raise ValueError(
                f"forced names {len(forced)} columns, more than {limit}={most} allows: raise it."
            )


def allowed_ways(asked: Any, space: FeatureSpace, n_classes: int) -> dict[int, tuple[bool, bool]]:
    """Columns that may be asked about, each with the directions it may give points in."""
    named = {name: names_of(asked, name) for name in ("monotone", "forced", "forbidden")}
    for parameter, names in named.items():
        unknown = [name for name in names if name not in space.names]
        if unknown:
            raise ValueError(
                f"{parameter} names {quote(unknown)}, but the columns are {quote(space.names)}."
            )
    both = [name for name in named["forced"] if name in named["forbidden"]]
    if both:
        raise ValueError(f"{quote(both)} is both forced and forbidden: choose one.")
    monotone = asked.monotone or {}
    if monotone and n_classes > 2:
        raise ValueError(
            f"monotone says which way the second class goes, but y has {n_classes} classes: leave "
            "it out, or fit one class against the rest."
        )
    ways = {}
    for j, column in enumerate(space):
        way = monotone.get(column.name)
        if way not in (None, "up", "down"):
            raise ValueError(f"monotone of {column.name!r} must be 'up' or 'down', got {way!r}.")
        if way and column.is_categorical:
            raise ValueError(f"monotone of {column.name!r}: its categories have no order.")
        up, down = way != "down", way != "up" and asked.directions == "both"
        if column.name not in named["forbidden"] and (up or down):
            ways[j] = (up, down)
        elif column.name in named["forced"]:
            raise ValueError(
                f"{column.name!r} is forced, but directions='up' and monotone leave no way to ask."
            )
        elif column.name not in named["forbidden"]:
            raise ValueError(
                f"monotone of {column.name!r} is 'down', but directions='up' gives points for "
                "large values only: use directions='both', or list the column in forbidden."
            )
    return ways


def check_classes(asked: Any, classes: NDArray[Any]) -> None:
    """Refuse labels that no card, or not the card asked for, can tell apart."""
    if len(classes) < 2:
        raise ValueError(f"y holds one class only, {str(classes[0])!r}: a card needs at least two.")
    if asked.as_published and len(classes) > 2:
        raise ValueError(
            "Only binary classification is supported. The published algorithm tells two classes "
            f"apart, but y has {len(classes)}: leave as_published out, or fit one class against "
            "the rest."
        )


def check_forced(asked: Any, space: FeatureSpace, values: NDArray[np.float64]) -> tuple[int, ...]:
    """Places of the columns that must be asked; those that are the same in all rows cannot be."""
    names = names_of(asked, "forced")
    places = tuple(space.names.index(name) for name in names)
    same = [name for name, j in zip(names, places, strict=True) if len(np.unique(values[:, j])) < 2]
    if same and not asked.as_published:
        raise ValueError(
            f"forced names {quote(same)}, which holds one value only in these rows: nothing can be "
            "asked of it, so leave it out."
        )
    return places
