"""Optional packages: imported on demand, with the extra to install where one is missing."""

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from numpy.typing import NDArray


def require(module: str, extra: str, purpose: str) -> ModuleType:
    """Import an optional module; the error of a missing one names the purpose and the extra.

    Examples
    --------
    >>> require("json", extra="plot", purpose="reading settings").__name__
    'json'
    >>> require("no_such_module", extra="plot", purpose="plotting the frontier")
    Traceback (most recent call last):
        ...
    ImportError: plotting the frontier needs no_such_module: pip install 'steadytree[plot]'
    """
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        # a package that is installed but broken raises its own error
        if (error.name or "").partition(".")[0] != package:
            raise
        message = f"{purpose} needs {package}: pip install 'steadytree[{extra}]'"
    raise ImportError(message, name=package)


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
