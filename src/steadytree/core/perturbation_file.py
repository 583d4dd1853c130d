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
    return values
