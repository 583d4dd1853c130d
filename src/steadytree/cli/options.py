"""Options that several commands share, and the role of every path that a command takes.

The role of a path is declared in its annotation and checked before the command runs.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer
from typer.core import TyperCommand
from typer.models import ArgumentInfo, OptionInfo, ParameterInfo

import steadytree as st
from steadytree._base.files import Role, UsedPath, check_apart
from steadytree._base.optional import load_late
from steadytree.cli.output import stop

Values = dict[str, Any]
RARELY_USED = ("scipy.stats", "pandas")  # and slow to load; scikit-learn imports both


@dataclass(frozen=True)
class Does:
    """What a command does at the path of a parameter."""

    role: Role | None  # None where no file is read or written, such as at a socket
    # further places that follow from the values of the command's parameters
    implies: Callable[[Values], Iterable[UsedPath]] | None = None


READS, WRITES, CHANGES, FILLS = Does("read"), Does("write"), Does("change"), Does("fill")
CONNECTS = Does(None)


class Command(TyperCommand):
    """A command whose help lists options by what they are for."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        titles = getattr(self.callback, "titles", {})
        listed: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            usual = "Arguments" if param.param_type_name == "argument" else "Options"
            if record := param.get_help_record(ctx):
                title = titles.get(param.name) or getattr(param, "rich_help_panel", None) or usual
                listed.setdefault(title, []).append(record)
        for title, records in listed.items():
            with formatter.section(title):
                formatter.write_dl(records)


class App(typer.Typer):
    """An app whose commands refuse to overwrite their inputs or their other outputs."""

    def command(
        self, *names: Any, titles: Mapping[str, str] | None = None, **options: Any
    ) -> Callable[[Any], Any]:
        """Add a command; `titles` of its parameters take the place of those of the options."""
        register = super().command(*names, **{"cls": Command, **options})

        def add(function: Any) -> Any:
            kept = keeps_apart(function)
            kept.titles = titles or {}  # type: ignore[attr-defined]
            register(kept)
            return function

        return add


def keeps_apart(function: Callable[..., None]) -> Callable[..., None]:
    """The command, run after a check of all its paths."""

    @functools.wraps(function)
    def command(**values: Any) -> None:
        check_apart(paths_used(function, values))
        load_late(*RARELY_USED)
        function(**values)

    return command


def paths_used(function: Callable[..., None], values: Values) -> list[UsedPath]:
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
        own = [one for one in getattr(hints.get(name), "__metadata__", ()) if isinstance(one, Does)]
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
    notes = getattr(_hints(function).get(name), "__metadata__", ())
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


def _is_path(hint: Any) -> bool:
    return hint is Path or any(_is_path(part) for part in get_args(hint) if part is not hint)


def _files_of_plan(values: dict[str, Any]) -> tuple[UsedPath, ...]:
    from steadytree.federated.study import StudyConfig

    return StudyConfig.load(values["plan"]).files


def option(metavar: str, help: str, title: str | None = None) -> Any:
    """An option with the name of its value and its help, listed under a title."""
    return typer.Option(metavar=metavar, help=help, rich_help_panel=title)


Method = StrEnum("Method", "GIBBS GREEDY TOPDOWN")  # how a private tree is grown
Reads = Annotated[Path, READS]
MayRead = Annotated[Path | None, READS]
Writes = Annotated[Path, WRITES]
MayWrite = Annotated[Path | None, WRITES]
MayFill = Annotated[Path | None, FILLS]
AsJson = Annotated[bool, typer.Option("--json", help="Print the results as JSON.")]
Data = Annotated[Reads, typer.Argument(metavar="DATA", help="A csv (or .csv.gz) or parquet file.")]
DataOrFolder = Annotated[
    Reads,
    typer.Argument(
        metavar="DATA", help="A csv (or .csv.gz) file; or a Parquet or Arrow file, or a folder."
    ),
]
Target = Annotated[str, option("COLUMN", "The column to predict.")]
OptionalTarget = Annotated[str | None, option("COLUMN", "The column to predict.")]
TrueClasses = Annotated[str | None, option("COLUMN", "The column with the true classes.")]
Drop = Annotated[list[str] | None, option("COLUMN", "A column to leave out; may be repeated.")]
ModelFile = "A saved model: *.tree.json, *.card.json, skops, or with --trust pickle or joblib."
Trust = Annotated[
    bool,
    typer.Option("--trust", help="Read pickle and joblib files, which can run any code."),
]
Noise = Annotated[
    MayRead, option("FILE", "Perturbation of the inputs (TOML); default: 2% of usual ranges.")
]
MaxLeaves = Annotated[
    int, typer.Option(min=2, max=32, help="Maximum number of leaves of a steady tree.")
]
MaxFlips = Annotated[
    str | None, option("LIMIT", "Maximum number of changed predictions: 5%, 0.05, or 12.")
]
Jobs = Annotated[int, typer.Option(min=1, help="Number of parallel processes.")]
TreeOut = Annotated[Writes, option("FILE", "Where to write the tree.")]
PageOut = Annotated[Writes, option("FILE", "Where to write the page.")]
PlanFile = Annotated[
    Path, typer.Argument(metavar="PLAN", help="A plan file (TOML)."), Does(None, _files_of_plan)
]
SchemaFile = Annotated[Reads, option("FILE", "The completed schema (TOML).")]
LedgerFile = Annotated[Path, option("FILE", "The privacy ledger of the data."), CHANGES]
OptionalLedger = Annotated[Path | None, option("FILE", "The privacy ledger of the data."), CHANGES]
Budget = Annotated[float, typer.Option(help="Total epsilon that may ever be spent on the data.")]
Persons = Annotated[
    str | None, option("COLUMN", "Column naming each row's person; needs --rows-per-person.")
]
RowsPerPerson = Annotated[
    int | None, typer.Option(min=1, help="Rows kept per person; privacy then holds for the person.")
]
NewLedger = Annotated[
    bool, typer.Option("--new-ledger", help="Create the ledger, which must not exist yet.")
]
WitnessFile = Annotated[
    Path | None,
    option("FILE", "A witness kept elsewhere: records the newest line; required from then on."),
    CHANGES,
]
HolderKeys = Annotated[Reads, option("FOLDER", "This holder's keys.")]
GatewaySocket = Annotated[Path, option("FILE", "The gateway's socket."), CONNECTS]


def parse_share(text: str, option: str) -> float:
    """A share: "1%", "1 %" or "0.01".

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
        change = f"{n_flips:,} of {n_rows:,} predictions change"
        stop(f"limit exceeded: {change}, and --max-flips allows {limit}.")


def check_ledger(path: Path, new: bool) -> None:
    """Refuse a missing ledger unless it is `new`: a mistyped path must not give a full budget."""
    if not path.exists() and not new:
        raise ValueError(
            f"there is no ledger {str(path)!r}: check the path, or create one with --new-ledger "
            "for data that were never queried. If it was lost, the budget of the data is spent."
        )
    if new and path.exists():
        raise ValueError(f"the ledger {str(path)!r} exists: leave --new-ledger out.")


def open_ledger(path: Path, budget: float, new: bool, witness: Path | None = None) -> st.Ledger:
    """The ledger, created where `new`; opened last, when nothing else can be refused."""
    check_ledger(path, new)
    return st.Ledger(path, budget, witness=witness)
