"""Frames out of columns, for people who go on in pandas or polars."""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from numpy.typing import NDArray

from steadytree.core.extras import require


def to_frame(columns: Mapping[str, NDArray[Any]]) -> Any:
    """A pandas frame, or a polars frame where only that is installed.

    Examples
    --------
    >>> import numpy as np
    >>> to_frame({"leaves": np.array([4, 7])}).shape
    (2, 1)
    """
    if find_spec("pandas") is None and find_spec("polars") is not None:
        lists = {name: column.tolist() for name, column in columns.items()}
        return require("polars", extra="frame", purpose="making a frame").DataFrame(lists)
    return require("pandas", extra="frame", purpose="making a frame").DataFrame(dict(columns))
