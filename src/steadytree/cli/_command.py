"""The command as it was typed: for reports to show, and for mistakes to be named."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def command_line() -> str:
    """The whole command line, quoted where needed."""
    import shlex

    return shlex.join(["steadytree", *sys.argv[1:]])


def check_order(command: str, tree: Path, data: Path) -> None:
    """Refuse a file of rows before the tree, and say how the command goes."""
    if data.suffix.lower() == ".json" and tree.suffix.lower() != ".json":
        raise ValueError(
            f"{str(tree)!r} looks like a data file, and the tree comes first: "
            f"steadytree {command} {data} {tree} ..."
        )
