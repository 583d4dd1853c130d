"""The command `steadytree reproduce`."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from steadytree._base.files import UsedPath, check_can_write, write_text_atomically
from steadytree.cli.options import Does, MayRead, option
from steadytree.cli.output import command_line, show

PAGE = "study.html"
WRONG_OPTION = 2  # the exit code of argparse
USUALLY = (("matplotlib", "plot"), ("pandas", "frame"))
NEEDS = {"three_hospitals": (("flwr", "federated"), ("cryptography", "private"))}
EXAMPLES = """\b
Examples:
  steadytree reproduce
  steadytree reproduce average-sensitivity --quick
  steadytree reproduce average-sensitivity --claims
  steadytree reproduce separation --data papers/data --full

Further options go to the study: steadytree reproduce separation --help lists them. Studies come
with the package, and are in the folder studies of a source checkout."""
PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


def _usual_folder(values: dict[str, Any]) -> list[UsedPath]:
    """The folder that is written into without --out."""
    if values["out"] is not None or values["claims"] or values["study"] in (None, "--help"):
        return []
    return [UsedPath(_folder_of(_find(values["study"])), "fill", "the folder of the study")]


def _folder_of(path: Path) -> Path:
    return Path(f"{path.parent.name}_out")


def reproduce(
    context: typer.Context,
    study: Annotated[
        str | None,
        typer.Argument(metavar="[STUDY]", help="A study; without it, all studies are listed."),
    ] = None,
    data: Annotated[MayRead, option("FOLDER", "Folder of the papers' data sets.")] = None,
    out: Annotated[
        Path | None,
        option("FOLDER", "Where to write plots, the page and results."),
        Does("fill", _usual_folder),
    ] = None,
    claims: Annotated[
        bool,
        typer.Option("--claims", help="Print every claim of the paper beside ours."),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the list, or the result of the run, as JSON.")
    ] = False,
) -> None:
    """Reproduce the tables and figures of a paper.

    They are printed, and shown on a page: study.html in the folder of --out, by default STUDY_out.
    """
    if study == "--help":
        typer.echo(context.get_help())
        return
    if study is None:
        about = {name: _about(path) for name, path in _studies().items()}
        width = max(map(len, about), default=0)
        show(about, [f"{name:<{width}}  {line}" for name, line in about.items()], as_json)
        return
    import time

    path = _find(study)
    if claims:
        _show_claims(path.parent, as_json)
        return
    if "--help" in context.args:
        _run([sys.executable, str(path), "--help"], None)
        return
    _check_extras(path.parent.name)
    if data is not None and not data.is_dir():
        raise ValueError(f"--data {str(data)!r} is not a folder: name the one with the data sets.")
    folder = out or _folder_of(path)
    is_new = not folder.exists()
    if is_new:
        check_can_write(folder)
        folder.mkdir()
    check_can_write(folder / PAGE)
    start, clock = time.monotonic(), time.time()
    command = [sys.executable, str(path), *context.args, "--out", str(folder)]
    code, lines, last = _run(command, data, quiet=as_json)
    seconds = round(time.monotonic() - start, 2)
    written = [] if code else [_write_page(path.parent, folder, lines, seconds, clock)]
    if is_new and not any(folder.iterdir()):
        folder.rmdir()
    result = {"study": study, "exit_code": code, "seconds": seconds, "output": lines}
    show(result, [], as_json, written)
    if code == WRONG_OPTION and last:
        raise ValueError(
            f"the study {study!r} refuses its options, {last}: "
            f"steadytree reproduce {study} --help lists what is allowed."
        )
    if code:
        raise ValueError(f"the study {study!r} ended: {last or f'exit code {code}.'}")


def _show_claims(folder: Path, as_json: bool) -> None:
    from steadytree.reporting.study import ClaimList

    found = ClaimList.load(folder)
    if found is None:
        raise ValueError(f"the study {folder.name!r} follows no paper: it has no list of claims.")
    show(found.to_dict(), found.lines(), as_json)


def _check_extras(study: str) -> None:
    """Name a missing extra; the study imports the packages itself."""
    from importlib.util import find_spec

    for module, extra in NEEDS.get(study, USUALLY):
        if find_spec(module) is None:
            raise ImportError(
                f"the study {study!r} needs {module}: pip install 'steadytree[{extra}]'"
            )


def _run(command: list[str], data: Path | None, quiet: bool = False) -> tuple[int, list[str], str]:
    """Run a study and show its output as it comes; returns exit code, lines and its last error."""
    import os
    import subprocess
    import threading

    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "MPLBACKEND": "Agg"}
    if data is not None:
        environment["STEADYTREE_DATA"] = str(data.resolve())
    lines: list[str] = []
    held: list[str] = []
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, env=environment, stdout=pipe, stderr=pipe, text=True, encoding="utf-8"
    ) as running:
        beside = threading.Thread(target=_pass_on, args=(running.stderr or (), held))
        beside.start()
        for line in running.stdout or ():
            lines.append(line.rstrip("\n"))
            if not quiet:
                typer.echo(lines[-1])
        beside.join()
    last = "".join(held)
    if not running.returncode and last:
        typer.echo(last, err=True)
    return running.returncode, lines, last.removeprefix("run.py: error: ")


def _pass_on(errors: Iterable[str], held: list[str]) -> None:
    """Show all lines but the last, which `held` keeps, and those on how to call the study."""
    usage = False
    for line in errors:
        usage = line.startswith("usage:") or (usage and line.startswith(" "))
        if usage:
            continue
        if held:
            typer.echo(held.pop(), err=True)
        held.append(line.rstrip("\n"))


def _write_page(study: Path, folder: Path, lines: list[str], seconds: float, since: float) -> Path:
    """Write the page of a run, with its figures."""
    from steadytree.reporting.study import KINDS, ClaimList, study_page

    picture = [path for path in sorted(folder.iterdir()) if path.suffix.lower() in KINDS]
    figures = [path for path in picture if path.stat().st_mtime >= since - 1]
    kept = study / "results.txt"
    text = kept.read_text("utf-8") if kept.exists() else ""
    claims = ClaimList.load(study)
    name, about = study.name.replace("_", " "), _about(study / "run.py")
    page = study_page(name, about, lines, figures, command_line(), seconds, text, claims)
    write_text_atomically(folder / PAGE, page)
    return folder / PAGE


def _folder() -> Path:
    """The folder of the studies: in the package, or beside it in a source checkout."""
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


def _about(path: Path) -> str:
    """The first line of the study's docstring."""
    import ast

    return (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").split("\n")[0]
