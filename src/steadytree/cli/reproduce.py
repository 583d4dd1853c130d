"""The command `steadytree reproduce`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

EXAMPLES = """\b
Examples:
  steadytree reproduce
  steadytree reproduce average-sensitivity --quick
  steadytree reproduce separation --data papers/data --full

What follows the name goes to the study: steadytree reproduce separation --help lists it. Studies
come with the package, and are in the folder studies of a copy of the source."""
PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


def reproduce(
    context: typer.Context,
    study: Annotated[
        str | None, typer.Argument(metavar="[STUDY]", help="A study; without it, all are listed.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="The folder with the papers' data.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the list, or how the run ended, as JSON.")
    ] = False,
) -> None:
    """Run the study of a paper again: its tables, the paper's value beside ours."""
    if study in (None, "--help"):
        if study == "--help":
            typer.echo(context.get_help())
        else:
            _list(as_json)
        return
    import os
    import subprocess
    import time

    path = _find(str(study))
    environment = dict(os.environ)
    if data is not None:
        if not data.is_dir():
            raise ValueError(f"--data {str(data)!r} is no folder: name the one with the data sets.")
        environment["STEADYTREE_DATA"] = str(data.resolve())
    start = time.monotonic()
    command = [sys.executable, str(path), *context.args]
    output = subprocess.PIPE if as_json else None
    done = subprocess.run(command, env=environment, stdout=output, text=True, check=False)
    if as_json:
        import json

        seconds = round(time.monotonic() - start, 2)
        lines = (done.stdout or "").splitlines()
        found = {"study": study, "exit_code": done.returncode, "seconds": seconds, "output": lines}
        typer.echo(json.dumps(found, ensure_ascii=False))
    if done.returncode:
        raise ValueError(f"the study {study!r} ended with exit code {done.returncode}.")


def _folder() -> Path:
    """Where the studies are: in the package, or beside it in a copy of the source."""
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "_studies", package.parents[1] / "studies"):
        if folder.is_dir():
            return folder
    raise ValueError("the studies are not there: install the package, or run a copy of the source.")


def _studies() -> dict[str, Path]:
    return {path.parent.name: path for path in sorted(_folder().glob("*/run.py"))}


def _find(name: str) -> Path:
    from difflib import get_close_matches

    known = _studies()
    wanted = name.replace("-", "_")
    if wanted in known:
        return known[wanted]
    close = get_close_matches(wanted, known, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(known)}."
    raise ValueError(f"there is no study {name!r}: {hint}")


def _list(as_json: bool) -> None:
    import ast

    about = {
        name: (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").split("\n")[0]
        for name, path in _studies().items()
    }
    if as_json:
        import json

        typer.echo(json.dumps(about, ensure_ascii=False))
        return
    width = max(map(len, about), default=0)
    for name, line in about.items():
        typer.echo(f"{name:<{width}}  {line}")
