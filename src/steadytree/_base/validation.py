"""Numbers among parameters, checked in one place: True and False are none."""

import math
from numbers import Integral, Real
from typing import Any


def check_whole_number(
    value: Any, name: str, least: int, most: int | None = None, also: str = ""
) -> int:
    """A parameter that must be a whole number, as an int; `also` is what else it might have been.

    Examples
    --------
    >>> check_whole_number(3, "max_depth", 1, 8)
    3
    >>> check_whole_number(True, "max_depth", 1, 8)
    Traceback (most recent call last):
        ...
    TypeError: max_depth must be a whole number from 1 to 8, got True.
    """
    allowed = f"from {least} to {most}" if most is not None else f"of at least {least}"
    other = f"{also} or " if also else ""
    message = f"{name} must be {other}a whole number {allowed}, got {value!r}."
    if also and isinstance(value, str):  # a word, but not the one that is allowed
        raise ValueError(message)
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(message)
    number = int(value)
    if number < least or (most is not None and number > most):
        raise ValueError(message)
    return number


def check_number(value: Any, name: str, least: float, most: float = math.inf) -> float:
    """A parameter that must be a number, infinity where there is no upper end, as a float.

    Examples
    --------
    >>> check_number(0.5, "error", 0, 1)
    0.5
    >>> check_number(float("nan"), "error", 0, 1)
    Traceback (most recent call last):
        ...
    ValueError: error must be a number from 0 to 1, got nan.
    """
    allowed = f"of at least {least}" if math.isinf(most) else f"from {least} to {most}"
    message = f"{name} must be a number {allowed}, got {value!r}."
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(message)
    number = float(value)
    if not least <= number <= most:
        raise ValueError(message)
    return number
