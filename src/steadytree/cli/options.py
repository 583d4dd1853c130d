"""Options that several commands share, and the role of every path that a command takes.

The role of a path is declared in its annotation and checked before the command runs.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer
from typer.models import ArgumentInfo, OptionInfo, ParameterInfo

import steadytree as st
from steadytree._base.files import Role, UsedPath, check_apart

LIMIT_EXCEEDED = 3  # exit code: a limit is not met, or a privacy budget is spent
Values = dict[str, Any]


@dataclass(frozen=True)
class Does:
    """What a command does at the path of a parameter."""

    role: Role | None  # None where no file is read or written, such as at a socket
    # further places that follow from the values of the command's parameters
    implies: Callable[[Values], Iterable[UsedPath]] | None = None


READS, WRITES, CHANGES, FILLS = Does("read"), Does("write"), Does("change"), Does("fill")
CONNECTS = Does(None)


class App(typer.Typer):
    """An app whose commands refuse to overwrite their inputs or their other outputs."""

    def command(self, *names: Any, **options: Any) -> Callable[[Any], Any]:
        register = super().command(*names, **options)

        def add(function: Any) -> Any:
            register(keeps_apart(function))
            return function

        return add


def keeps_apart(function: Callable[..., None]) -> Callable[..., None]:
    """The command, run after a check of all its paths."""

    @functools.wraps(function)
    def command(**values: Any) -> None:
        check_apart(places_of(function, values))
        function(**values)

    return command


def places_of(function: Callable[..., None], values: Values) -> list[UsedPath]:
    """Every place that a call of a command reads or writes."""
    found = []
    for name, does in roles_of(function).items():
        given = values.get(name)
        if does.role is not None and given is not None:
            paths = given if isinstance(given, list) else [given]
            found += [UsedPath(path, does.role, shown_name(function, name)) for path in paths]
        if does.implies is not None:
            found += does.implies(values)
    return found


def roles_of(function: Callable[..., None]) -> dict[str, Does]:
    """What a command does at each path; a path for which that is not declared is refused."""
    hints = _hints(function)
    found = {}
    for name in inspect.signature(function).parameters:
        own = [one for one in _notes(hints.get(name)) if isinstance(one, Does)]
        if own:
            found[name] = own[0]
        elif _is_path(hints.get(name)):
            raise TypeError(
                f"{function.__name__}: the path {name!r} has no role: write READS, WRITES, "
                "CHANGES, FILLS or CONNECTS into its annotation."
            )
    return found


def shown_name(function: Callable[..., None], name: str) -> str:
    """A parameter as it is shown in the help: --out, or DATA."""
    notes = _notes(_hints(function).get(name))
    info = next((one for one in notes if isinstance(one, ParameterInfo)), None)
    if isinstance(info, ArgumentInfo):
        return (info.metavar or name.upper()).strip("[].")
    # in an annotation typer keeps the first name in the field of the default
    named = (info.default, *(info.param_decls or ())) if isinstance(info, OptionInfo) else ()
    declared = [one for one in named if isinstance(one, str) and one.startswith("--")]
    return (declared or [f"--{name.replace('_', '-')}"])[0]


@functools.cache
def _hints(function: Callable[..., None]) -> dict[str, Any]:
    return get_type_hints(function, include_extras=True)


def _notes(hint: Any) -> tuple[Any, ...]:
    return hint.__metadata__ if get_origin(hint) is Annotated else ()


def _is_path(hint: Any) -> bool:
    return hint is Path or any(_is_path(part) for part in get_args(hint) if part is not hint)


def _files_of_plan(values: dict[str, Any]) -> tuple[UsedPath, ...]:
    from steadytree.federated.study import StudyConfig

    return StudyConfig.load(values["plan"]).files


class Method(StrEnum):
    """How a private tree is grown."""

    GIBBS = "gibbs"
    GREEDY = "greedy"
    TOPDOWN = "topdown"


AsJson = Annotated[bool, typer.Option("--json", help="Print the results as JSON.")]
Data = Annotated[Path, typer.Argument(metavar="DATA", help="A csv or parquet file."), READS]
Target = Annotated[str, typer.Option(metavar="COLUMN", help="The column to predict.")]
OptionalTarget = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="The column to predict.")
]
TrueClasses = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="The column with the true classes.")
]
Drop = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="A column to leave out; may be repeated."),
]
Noise = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Perturbation of the inputs (TOML); default: 2% of each range."
    ),
    READS,
]
MaxDepth = Annotated[int, typer.Option(min=1, max=30, help="Maximum depth of the tree.")]
MaxFlips = Annotated[
    str | None,
    typer.Option(
        metavar="LIMIT", help="Most predictions that may change: 5%, 0.05, or 12 for 12 rows."
    ),
]
Jobs = Annotated[int, typer.Option(min=1, help="Number of parallel processes.")]
TreeOut = Annotated[Path, typer.Option(metavar="FILE", help="Where to write the tree."), WRITES]
PageOut = Annotated[Path, typer.Option(metavar="FILE", help="Where to write the page."), WRITES]
PlanFile = Annotated[
    Path,
    typer.Argument(metavar="PLAN", help="A plan file (TOML)."),
    Does(None, _files_of_plan),
]
SchemaFile = Annotated[
    Path, typer.Option("--schema", metavar="FILE", help="The completed schema (TOML)."), READS
]
LedgerFile = Annotated[
    Path, typer.Option("--ledger", metavar="FILE", help="The privacy ledger of the data."), CHANGES
]
Budget = Annotated[float, typer.Option(help="Total epsilon that may ever be spent on the data.")]
NewLedger = Annotated[
    bool, typer.Option("--new-ledger", help="Create the ledger, which must not exist yet.")
]
HolderKeys = Annotated[Path, typer.Option(metavar="FOLDER", help="This holder's keys."), READS]
GatewaySocket = Annotated[
    Path, typer.Option(metavar="FILE", help="The gateway's socket."), CONNECTS
]


def parse_share(text: str, option: str) -> float:
    """A share: "1%", "1 %" or "0.01".

    Examples
    --------
    >>> parse_share("5%", "--max-loss"), parse_share("0.01", "--max-loss")
    (0.05, 0.01)
    """
    bare = text.strip().removesuffix("%")
    try:
        share = float(bare) / (100 if bare != text.strip() else 1)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise ValueError(f"{option} must be a share such as 5% or 0.05, got {text!r}.")
    return share


def parse_flips(text: str, n_rows: int) -> float:
    """Most rows whose prediction may change: "5%" of them, "0.05" of them, or "12" rows.

    Examples
    --------
    >>> parse_flips("5%", 200), parse_flips("12", 200)
    (10.0, 12.0)
    """
    if text.strip().isdigit():
        return float(text)
    try:
        return parse_share(text, "--max-flips") * n_rows
    except ValueError:
        raise ValueError(
            "--max-flips must be a share such as 5% or 0.05, or a whole number of rows such as 12, "
            f"got {text!r}."
        ) from None


def stop_if_exceeded(n_flips: int, n_rows: int, limit: str | None) -> None:
    """End with exit code 3 where more predictions change than allowed."""
    if limit is not None and n_flips > parse_flips(limit, n_rows) + 1e-9:
        typer.echo(
            f"limit exceeded: {n_flips:,} of {n_rows:,} predictions change, "
            f"and --max-flips allows {limit}.",
            err=True,
        )
        raise typer.Exit(LIMIT_EXCEEDED)


def check_ledger(path: Path, new: bool) -> None:
    """Refuse a missing ledger unless it is `new`: a mistyped path must not give a full budget."""
    if not path.exists() and not new:
        raise ValueError(
            f"there is no ledger {str(path)!r}: check the path, or create one with --new-ledger "
            "for data that were never queried. If it was lost, the budget of the data is spent."
        )
    if new and path.exists():
        raise ValueError(f"the ledger {str(path)!r} exists: leave --new-ledger out.")


def open_ledger(path: Path, budget: float, new: bool) -> st.Ledger:
    """The ledger, created where `new`; opened last, when nothing else can be refused."""
    check_ledger(path, new)
    return st.Ledger(path, budget)
