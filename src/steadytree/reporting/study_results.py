"""Study results: finished cells as lines of JSON, so that a stopped study goes on where it was."""

import json
from os import PathLike
from pathlib import Path
from typing import Any

from steadytree.core.atomic import write_text_atomically


class Results:
    """Finished cells in a file; each is written as soon as it is known, whole or not at all.

    Parameters
    ----------
    path : str or path-like
        Read where it exists.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Results(f"{folder}/cells.jsonl").add({"set": "iris", "seed": 0, "accuracy": 0.9})
    ...     Results(f"{folder}/cells.jsonl").find(set="iris", seed=0)["accuracy"]
    0.9
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self._path = Path(path)
        lines = self._path.read_text("utf-8").splitlines() if self._path.exists() else []
        self.cells: list[dict[str, Any]] = [json.loads(line) for line in lines]

    def find(self, **asked: Any) -> dict[str, Any] | None:
        """The first cell with these values, or None."""
        return next((cell for cell in self.cells if asked.items() <= cell.items()), None)

    def add(self, cell: dict[str, Any]) -> None:
        """Keep a cell."""
        self.cells.append(cell)
        text = "".join(json.dumps(each) + "\n" for each in self.cells)
        write_text_atomically(self._path, text)
