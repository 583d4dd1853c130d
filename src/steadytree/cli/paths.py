"""Roles of paths in commands: declared once beside each option, checked before a command runs."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer
from typer.models import ArgumentInfo, OptionInfo, ParameterInfo

from steadytree._base.files import Place, Role, check_apart

Values = dict[str, Any]


@dataclass(frozen=True)
class Does:
    """What a command does at the path of a parameter.

    Parameters
    ----------
    role : str or None
        As in `Place`; None for a path at which no file is read or written, such as a socket.
    implies : callable, optional
        Further places that follow from the values of the command's parameters.
    """

    role: Role | None
    implies: Callable[[Values], Iterable[Place]] | None = None


READS, WRITES, CHANGES, FILLS = Does("read"), Does("write"), Does("change"), Does("fill")
CONNECTS = Does(None)


class App(typer.Typer):
    """An app whose commands refuse to write over, or into, what they read or write otherwise."""

    def command(self, *names: Any, **options: Any) -> Callable[[Any], Any]:
        register = super().command(*names, **options)

        def add(function: Any) -> Any:
            register(keeps_apart(function))
            return function

        return add


def keeps_apart(function: Callable[..., None]) -> Callable[..., None]:
    """The command with a check of all its paths before it."""

    @functools.wraps(function)
    def command(**values: Any) -> None:
        check_apart(places_of(function, values))
        function(**values)

    return command


def places_of(function: Callable[..., None], values: Values) -> list[Place]:
    """Every place that a call of a command reads or writes."""
    found = []
    for name, does in roles_of(function).items():
        given = values.get(name)
        if does.role is not None and given is not None:
            paths = given if isinstance(given, list) else [given]
            found += [Place(path, does.role, shown_name(function, name)) for path in paths]
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
    """A parameter as a user knows it: --out, or DATA."""
    notes = _notes(_hints(function).get(name))
    info = next((one for one in notes if isinstance(one, ParameterInfo)), None)
    if isinstance(info, ArgumentInfo):
        return (info.metavar or name.upper()).strip("[].")
    # in an annotation the first name stands where typer has the default
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
