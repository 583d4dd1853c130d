"""Read a perturbation from TOML."""

import tomllib
from os import PathLike
from pathlib import Path
from typing import Any


def read_toml(path: str | PathLike[str]) -> dict[str, Any]:
    """Plain values of a TOML file; says which line is wrong where it cannot be read."""
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"cannot read {str(path)!r}: no such file.")
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{str(path)!r} is not valid TOML: {error}.") from error
    if "bounds" in values and isinstance(values["bounds"], dict):
        values["bounds"] = {name: _pair(name, pair) for name, pair in values["bounds"].items()}
    return values


def _pair(name: str, value: Any) -> tuple[float, float]:
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError(f"bounds of {name!r} must be a list [low, high], got {value!r}.")
    return float(value[0]), float(value[1])
