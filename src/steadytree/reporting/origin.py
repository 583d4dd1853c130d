"""Origin: where data and model came from, and with what versions a page was made."""

import datetime
import importlib.metadata
import platform
from dataclasses import asdict, dataclass
from typing import Any

PACKAGES = ("steadytree", "numpy", "scipy", "scikit-learn", "numba")


@dataclass(frozen=True)
class Origin:
    """Where data and model came from, as far as the caller knows.

    Parameters
    ----------
    data : str
        Name of the data.
    file_sha256 : str
        Hash of the file they were read from.
    command : str
        The command that made the report.
    seen : bool or None
        Whether the rows were used in fitting; None where that is not known.
    """

    data: str = ""
    file_sha256: str = ""
    command: str = ""
    seen: bool | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


def made_with(date: str | None = None) -> dict[str, Any]:
    """Date and versions."""
    return {
        "date": date or datetime.date.today().isoformat(),
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in PACKAGES},
    }


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "of unknown version"
