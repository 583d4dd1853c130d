"""Checks of what a RiskScoreClassifier was asked for."""

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

from sklearn.utils import check_scalar

from steadytree.core.space import FeatureSpace
from steadytree.core.table import quote

LOSSES = ("majority", "logistic")
DIRECTIONS = ("both", "up")


def check_parameters(asked: Any) -> None:
    """Refuse settings that mean nothing, before data are looked at."""
    if asked.loss not in LOSSES:
        raise ValueError(f"loss must be one of {LOSSES}, got {asked.loss!r}.")
    if asked.directions not in DIRECTIONS:
        raise ValueError(f"directions must be one of {DIRECTIONS}, got {asked.directions!r}.")
    if asked.as_published and (asked.loss != "majority" or asked.directions != "up"):
        raise ValueError("as_published needs loss='majority' and directions='up'.")
    if asked.tau != "1se":
        _check_share("tau", asked.tau, "'1se'", "from 0 to 1", lambda v: 0 <= v <= 1)
    if asked.gamma != "cv":
        _check_share("gamma", asked.gamma, "'cv'", "above 0 and below 0.5", lambda v: 0 < v < 0.5)
    if isinstance(asked.n_rounds, str):
        if asked.n_rounds != "cv":
            raise ValueError(f"n_rounds must be 'cv' or a whole number, got {asked.n_rounds!r}.")
    else:
        check_scalar(asked.n_rounds, "n_rounds", Integral, min_val=1, max_val=1000)
    for name in ("max_conditions", "max_points"):
        if getattr(asked, name) is not None:
            check_scalar(getattr(asked, name), name, Integral, min_val=1)
    _check_names(asked)


def _check_share(name: str, value: Any, word: str, allowed: str, fits: Any) -> None:
    # nan fits no comparison, and True is no amount
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not fits(value):
        kind = ValueError if number or isinstance(value, str) else TypeError
        raise kind(f"{name} must be {word} or a number {allowed}, got {value!r}.")


def _check_names(asked: Any) -> None:
    for name in ("forced", "forbidden"):
        if isinstance(getattr(asked, name), str):
            raise ValueError(f"{name} must be a list of names, got {getattr(asked, name)!r}.")
    if asked.monotone is not None and not isinstance(asked.monotone, Mapping):
        kind = type(asked.monotone).__name__
        raise ValueError(f"monotone must map names to 'up' or 'down', got a {kind}.")
    n_forced = len(asked.forced or ())
    if asked.max_conditions is not None and n_forced > asked.max_conditions:
        raise ValueError(
            f"forced names {n_forced} columns, more than max_conditions={asked.max_conditions} "
            "allows: raise it."
        )


def allowed_ways(asked: Any, space: FeatureSpace, n_classes: int) -> dict[int, tuple[bool, bool]]:
    """Columns that may be asked about, each with the directions it may give points in."""
    named = {name: getattr(asked, name) or () for name in ("monotone", "forced", "forbidden")}
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
    return ways
