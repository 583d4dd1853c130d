"""Modules that may be missing: optional packages, and modules of another version of steadytree."""

import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any


def require(module: str, extra: str, purpose: str) -> ModuleType:
    """Import an optional module; the error of a missing one names the purpose and the extra."""
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        # a package that is installed but broken raises its own error
        if (error.name or "").partition(".")[0] != package:
            raise
        message = f"{purpose} needs {package}: pip install 'steadytree[{extra}]'"
    raise ImportError(message, name=package)


def to_frame(columns: Mapping[str, Any]) -> Any:
    """A pandas frame, or a polars frame where only that is installed."""
    if find_spec("pandas") is None and find_spec("polars") is not None:
        lists = {name: column.tolist() for name, column in columns.items()}
        return require("polars", extra="frame", purpose="making a frame").DataFrame(lists)
    return require("pandas", extra="frame", purpose="making a frame").DataFrame(dict(columns))


class MissingModules:
    """The last finder of modules, so it is reached only by names that no other finder knows."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Refuse a module of steadytree that does not exist, in one line."""
        if name.startswith("steadytree."):
            raise ModuleNotFoundError(
                f"this steadytree has no module {name!r}. Where a pickle of another version names "
                "it, fit the model again and keep it with save(); where a Flower app does, install "
                "one version on all sides and run `steadytree private coordinate` again.",
                name=name,
            )


def install_finder() -> None:
    """Add the finder once, behind all others."""
    if not any(isinstance(finder, MissingModules) for finder in sys.meta_path):
        sys.meta_path.append(MissingModules())
