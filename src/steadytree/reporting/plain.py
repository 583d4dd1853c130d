"""Plain values: what JSON can hold, with nothing lost but infinity."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from steadytree.core.reading import Reading
from steadytree.reporting.numbers import interval_text, reading_text


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


def plain_reading(reading: Reading) -> dict[str, Any]:
    """A reading with its texts."""
    return plain(reading.to_dict()) | {
        "interval": None if reading.interval is None else plain(list(reading.interval)),
        "shown": reading_text(reading),
        "shown_interval": interval_text(reading),
    }
