"""Study page: what a study printed and drew, as one offline page."""

import base64
import json
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from steadytree._base.files import write_text_atomically
from steadytree.reporting.claims import ClaimList
from steadytree.reporting.data_set import made_with
from steadytree.reporting.html import render_study


class Results:
    """Finished cells in a file, read where it exists; each is written as soon as it is known.

    Settings, where given, are the file's first line: cells of other settings are refused.
    """

    def __init__(self, path: str | PathLike[str], settings: dict[str, Any] | None = None) -> None:
        self._path = Path(path)
        lines = self._path.read_text("utf-8").splitlines() if self._path.exists() else []
        self.cells: list[dict[str, Any]] = [json.loads(line) for line in lines]
        self._head: list[dict[str, Any]] = []
        if settings is not None:
            self._head = [{"settings": settings}]
            noted = self.cells.pop(0) if lines else self._head[0]
            if json.dumps(noted) != json.dumps(self._head[0]):
                old = json.dumps(noted.get("settings", "no settings"))
                raise ValueError(
                    f"{path} was made with {old}, this command has {json.dumps(settings)}: "
                    "go on with the old settings, or name another --out."
                )

    def find(self, **used: Any) -> dict[str, Any] | None:
        """The first cell with these values, or None."""
        return next((cell for cell in self.cells if used.items() <= cell.items()), None)

    def add(self, cell: dict[str, Any]) -> None:
        """Keep a cell."""
        self.cells.append(cell)
        text = "".join(json.dumps(each) + "\n" for each in (*self._head, *self.cells))
        write_text_atomically(self._path, text)


WIDE = 2000  # pixels
KINDS = {".png": "image/png", ".svg": "image/svg+xml"}


def study_page(
    name: str,
    about: str,
    output: Sequence[str],
    pictures: Sequence[str | PathLike[str]],
    command: str = "",
    seconds: float | None = None,
    kept: str = "",
    claims: ClaimList | None = None,
    date: str | None = None,
) -> str:
    r"""One page of tables and pictures that needs no scripts and fetches nothing."""
    data = {
        "name": name,
        "about": about,
        "command": command,
        "seconds": seconds,
        "made": made_with(date),
        "output": list(output),
        "pictures": [Path(path).name for path in pictures],
        "claims": None if claims is None else claims.to_dict(),
    }
    return render_study(data, blocks(output), [_embedded(Path(path)) for path in pictures], kept)


def blocks(lines: Sequence[str]) -> list[dict[str, Any]]:
    """Runs of lines: tables in Markdown, and text that stands as it is."""
    runs: list[tuple[str, list[str]]] = []
    for line in lines:
        kind = "table" if line.startswith("|") and line.rstrip().endswith("|") else "text"
        if not runs or runs[-1][0] != kind:
            runs.append((kind, []))
        runs[-1][1].append(line.rstrip())
    found = [_table(run) if kind == "table" else _text(run) for kind, run in runs]
    return [block for block in found if block["rows" if block["kind"] == "table" else "text"]]


def _text(lines: list[str]) -> dict[str, Any]:
    return {"kind": "text", "text": "\n".join(lines).strip("\n")}


def _table(lines: list[str]) -> dict[str, Any]:
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]
    ruled = len(rows) > 1 and all(set(cell) <= set("-:") and cell for cell in rows[1])
    if not ruled:
        return _text(lines)
    right = [cell.endswith(":") for cell in rows[1]]
    return {"kind": "table", "head": rows[0], "right": right, "rows": rows[2:]}


def _embedded(path: Path) -> dict[str, Any]:
    content, kind = path.read_bytes(), KINDS[path.suffix.lower()]
    # a PNG's width stands in its head; a wide one is left so wide that it can be read
    wide = kind == "image/png" and int.from_bytes(content[16:20], "big") > WIDE
    address = f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"
    return {"name": path.stem.replace("-", " "), "address": address, "wide": wide}
