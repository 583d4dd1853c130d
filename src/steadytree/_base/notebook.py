"""Shown: results that print as one line and draw themselves in a notebook."""

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

MOST_SHOWN = 3  # measurements in the line
_renderers: list[Callable[[Any], str | None]] = []


def set_renderer(render: Callable[[Any], str | None]) -> None:
    """Say what makes HTML of a result: the package does, as it knows the layer of pages."""
    _renderers[:] = [render]


def html_of(thing: Any) -> str | None:
    """HTML for a notebook; None, which means the plain line, where there is none."""
    return _renderers[0](thing) if _renderers else None


class Shown:
    """One line for `repr`, however many rows the result is about, and HTML in a notebook."""

    def __repr__(self) -> str:
        found = getattr(self, "measurements", None)
        listed = found() if callable(found) else found
        if listed:
            text = "; ".join(str(one) for one in listed[:MOST_SHOWN])
        else:
            text = ", ".join(f"{name}: {_size(getattr(self, name))}" for name in _names(self))
        return f"{type(self).__name__}({text})"

    def _repr_html_(self) -> str | None:
        return html_of(self)


def _names(thing: Any) -> list[str]:
    return [item.name for item in fields(thing)] if is_dataclass(thing) else []


def _size(value: Any) -> str:
    """A value in a few characters: how many there are of what cannot be shown."""
    if isinstance(value, str | int | float | type(None)):
        return repr(value)[:80]
    return f"{len(value)} values" if hasattr(value, "__len__") else type(value).__name__
