"""Plain values: what JSON can hold, with nothing lost but infinity."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from steadytree.metrics.measurement import Measurement

SHARES = {  # read best in per cent
    "accuracy",
    "balanced accuracy",
    "calibration error",
    "group gap",
    "least group accuracy",
    "linear separateness",
    "majority baseline",
    "separateness",
    "worst-case accuracy",
}


def number_text(value: float, tolerance: float) -> str:
    """A number with as few digits as stay within the tolerance.

    Examples
    --------
    >>> number_text(16.7951, tolerance=0.03), number_text(52310.0, tolerance=50)
    ('16.8', '52,300')
    >>> number_text(0.00012345, tolerance=1e-6)
    '0.000123'
    """
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    for digits in range(1, 17):
        rounded = float(f"{value:.{digits}g}")
        if abs(rounded - value) <= tolerance:
            break
    return plain_text(rounded)


def percent_text(share: float) -> str:
    """A share in per cent, never rounded to 0 or 100 unless it is that.

    Examples
    --------
    >>> percent_text(0.934), percent_text(0.0004), percent_text(0.9999), percent_text(1.0)
    ('93 %', '< 1 %', '> 99 %', '100 %')
    """
    whole = f"{100 * share:.0f}"
    if whole == "0" and share > 0:
        return "< 1 %"
    if whole == "100" and share < 1:
        return "> 99 %"
    return f"{whole} %"


def rows_text(count: int) -> str:
    """A number of rows.

    Examples
    --------
    >>> rows_text(1), rows_text(12345)
    ('1 row', '12,345 rows')
    """
    return f"{count:,} row" if count == 1 else f"{count:,} rows"


def reading_text(reading: Measurement) -> str:
    """The value of a reading, shares in per cent.

    Examples
    --------
    >>> reading_text(Measurement("accuracy", 0.93449, "share right"))
    '93.4 %'
    >>> reading_text(Measurement("leaves", 12, "answers"))
    '12'
    >>> reading_text(Measurement("median distance", float("inf"), "no move turns them"))
    '∞'
    """
    return _value_text(reading, reading.value) + (f" {reading.unit}" if reading.unit else "")


def interval_text(reading: Measurement) -> str:
    """The interval of a reading; empty where the value is exact.

    Examples
    --------
    >>> interval_text(Measurement("accuracy", 0.93, "share right", (0.9, 0.955)))
    '90.0 % to 95.5 %'
    """
    if reading.interval is None:
        return ""
    low, high = (_value_text(reading, end) for end in reading.interval)
    return f"{low} to {high}"


def _value_text(reading: Measurement, value: float) -> str:
    if reading.name in SHARES:
        return f"{100 * value:.1f} %"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if float(value).is_integer():
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def plain_text(value: float) -> str:
    """A number written out where it is short that way, else with an exponent."""
    if value.is_integer() and abs(value) < 1e15:
        return f"{int(value):,}" if abs(value) >= 10_000 else str(int(value))
    text = repr(value)
    if "e" in text and 1e-6 <= abs(value) < 1e15:
        text = f"{value:.17f}".rstrip("0")
    whole, point, part = text.partition(".")
    if point and "e" not in text and abs(value) >= 10_000:
        return f"{int(whole):,}.{part}"
    return text


def plain(value: Any) -> Any:
    """Arrays as lists, numpy numbers as Python's, infinity and nan as None.

    Examples
    --------
    >>> plain({"a": np.array([1.0, np.inf]), "b": (np.int64(2),)})
    {'a': [1.0, None], 'b': [2]}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(inside) for key, inside in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(inside) for inside in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def plain_reading(reading: Measurement) -> dict[str, Any]:
    """A reading with its texts."""
    return plain(reading.to_dict()) | {
        "interval": None if reading.interval is None else plain(list(reading.interval)),
        "shown": reading_text(reading),
        "shown_interval": interval_text(reading),
    }
