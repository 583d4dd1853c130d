"""What parameters may be: a table beside each class, and `validate`, which checks it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from numbers import Real as RealNumber
from typing import Any, Protocol

import numpy as np


class Allowed(Protocol):
    """What a parameter may be; `check` returns the value or says what is allowed."""

    def check(self, value: Any, name: str) -> Any: ...


Parameters = Mapping[str, Allowed]


def validate(estimator: Any, table: Parameters) -> None:
    """Check the parameters of an estimator against a table, in the table's order."""
    for name, allowed in table.items():
        allowed.check(getattr(estimator, name), name)


@dataclass(frozen=True)
class Integer:
    """An integer from `least` to `most`, or one of the values of `also`; bools are not numbers."""

    least: int
    most: int | None = None
    also: tuple[str | None, ...] = ()

    def check(self, value: Any, name: str) -> Any:
        """The value as an int; a value of `also` as it is."""
        if _is_listed(value, self.also):
            return value
        least, most = self.least, self.most
        end = f"of at least {least}" if most is None else f"from {least} to {most}"
        message = f"{name} must be {_listed(self.also)}a whole number {end}, got {value!r}."
        _check_kind(value, Integral, message, self.also)
        if value < least or (most is not None and value > most):
            raise ValueError(message)
        return int(value)


@dataclass(frozen=True)
class Real:
    """A number between two ends, or one of the values of `also`; True, False and NaN are none.

    `least` and `most` are allowed themselves, `above` and `below` are not; ``below=math.inf``
    allows finite numbers only.
    """

    least: float = -math.inf
    most: float = math.inf
    above: float | None = None
    below: float | None = None
    also: tuple[str | None, ...] = ()

    def check(self, value: Any, name: str) -> Any:
        """The value as a float; a value of `also` as it is."""
        if _is_listed(value, self.also):
            return value
        message = f"{name} must be {_listed(self.also)}a {self._described()}, got {value!r}."
        _check_kind(value, RealNumber, message, self.also)
        number = float(value)
        inside = (
            self.least <= number <= self.most
            and (self.above is None or number > self.above)
            and (self.below is None or number < self.below)
        )
        if not inside:
            raise ValueError(message)
        return number

    def _described(self) -> str:
        if self.least > -math.inf and self.most < math.inf:
            return f"number from {self.least} to {self.most}"
        ends = [f"of at least {self.least}"] if self.least > -math.inf else []
        ends += [f"above {self.above}"] if self.above is not None else []
        ends += [f"at most {self.most}"] if self.most < math.inf else []
        ends += [f"below {self.below}"] if self.below not in (None, math.inf) else []
        kind = "finite number" if self.below == math.inf else "number"
        return f"{kind} {' and '.join(ends)}"


@dataclass(frozen=True)
class OneOf:
    """One of some words."""

    words: tuple[str, ...]

    def __init__(self, *words: str) -> None:
        object.__setattr__(self, "words", words)

    def check(self, value: Any, name: str) -> Any:
        """The value."""
        if not isinstance(value, str) or value not in self.words:
            raise ValueError(f"{name} must be one of {self.words}, got {value!r}.")
        return value


class Boolean:
    """True or False, of Python or NumPy."""

    def check(self, value: Any, name: str) -> bool:
        """The value as a bool."""
        if not isinstance(value, bool | np.bool_):
            raise ValueError(f"{name} must be True or False, got {value!r}.")
        return bool(value)


@dataclass(frozen=True)
class Instance:
    """An object of a class, or None where that is `optional`; `described` says what it is."""

    kind: type
    described: str
    optional: bool = True

    def check(self, value: Any, name: str) -> Any:
        """The value."""
        if not (isinstance(value, self.kind) or (value is None and self.optional)):
            end = " or None" if self.optional else ""
            got = type(value).__name__
            raise TypeError(f"{name} must be {self.described}{end}, got {got}.")
        return value


@dataclass(frozen=True)
class Replaced:
    """A parameter that is gone after one release: None only, and `instead` says what to use."""

    instead: str

    def check(self, value: Any, name: str) -> None:
        """Refuse any value."""
        if value is not None:
            raise ValueError(f"{name} was removed: use {self.instead}.")


def _is_listed(value: Any, also: tuple[str | None, ...]) -> bool:
    return (value is None or isinstance(value, str)) and value in also


def _listed(also: tuple[str | None, ...]) -> str:
    return "".join(f"{one!r} or " for one in also)


def _check_kind(value: Any, kind: type, message: str, also: tuple[str | None, ...]) -> None:
    if isinstance(value, str) and any(also):  # a word, but not one that is allowed
        raise ValueError(message)
    if isinstance(value, bool | np.bool_) or not isinstance(value, kind):
        raise TypeError(message)
