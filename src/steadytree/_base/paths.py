"""Places: files and folders that one call reads and writes, kept apart before any work is done."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

Role = Literal["read", "write", "change", "fill"]
ROLES: tuple[Role, ...] = ("read", "write", "change", "fill")


@dataclass(frozen=True)
class Place:
    """A path with what is done there.

    Parameters
    ----------
    path : path-like
    role : {"read", "write", "change", "fill"}
        A file or folder that is read; a file that is made or replaced; a file that is read and
        added to, such as a ledger; a folder in which files are made or replaced.
    name : str
        What the user calls it, such as an option.
    """

    path: str | os.PathLike[str]
    role: Role
    name: str

    @cached_property
    def real(self) -> Path:
        """The path itself, links followed; it need not be there."""
        try:
            return Path(self.path).resolve()
        except (OSError, RuntimeError):  # links in a circle; whoever opens it says so
            return Path(self.path).absolute()


def check_apart(places: Iterable[Place]) -> None:
    """Refuse places of which one would be written over, or into, another.

    Links, hard links and other spellings of a path are seen through. Two places that are only
    read may be the same.

    Raises
    ------
    ValueError
        One line: which two, and what to do.

    Examples
    --------
    >>> check_apart([Place("a.csv", "read", "DATA"), Place("./a.csv", "write", "--out")])
    Traceback (most recent call last):
        ...
    ValueError: --out is './a.csv', which DATA reads: name another file, so that nothing is lost.
    """
    listed = list(places)
    written = [place for place in listed if place.role != "read"]
    read = [place for place in listed if place.role == "read"]
    for k, one in enumerate(written):
        for other in (*read, *written[:k]):
            _check_pair(one, other)
    for folder in read:
        if folder.real.is_dir():
            _check_links(folder, written)


def _check_pair(one: Place, other: Place) -> None:
    if one.role == "change":  # a ledger stays where it is; what is written can go elsewhere
        one, other = (one, other) if other.role in ("read", "change") else (other, one)
    if _same(one.real, other.real):
        raise ValueError(_said_of_same(one, other))
    for outer, inner in ((one, other), (other, one)):
        if _holds(outer) and _is_inside(inner.real, outer.real):
            raise ValueError(_said_of_inside(outer, inner))


def _check_links(folder: Place, written: list[Place]) -> None:
    """Refuse to write a file to which a link in a folder that is read leads."""
    there = {_number(place.real): place for place in written if place.real.exists()}
    if not there:
        return
    for above, _, names in os.walk(folder.real):
        for name in names:
            path = Path(above, name)
            if path.exists() and _number(path) in there:
                linked = Place(path, "read", folder.name)
                raise ValueError(_said_of_same(there[_number(path)], linked))


def _number(path: Path) -> tuple[int, int]:
    """What a file is known by on its disk."""
    found = path.stat()
    return found.st_dev, found.st_ino


def _holds(place: Place) -> bool:
    """Whether files inside belong to the place: folders that are read or filled."""
    return place.role == "fill" or (place.role == "read" and place.real.is_dir())


def _same(one: Path, other: Path) -> bool:
    """Whether two paths are one file: by its number on the disk, else by folder and name."""
    return (
        one == other
        or _same_on_disk(one, other)
        or (one.name == other.name and _same_on_disk(one.parent, other.parent))
    )


def _same_on_disk(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def _is_inside(inner: Path, outer: Path) -> bool:
    return any(parent == outer or _same_on_disk(parent, outer) for parent in inner.parents)


def _said_of_same(one: Place, other: Place) -> str:
    if "fill" in (one.role, other.role):
        return (
            f"{one.name} is {str(one.path)!r}, the same as {other.name}: files are written there, "
            "and it holds other files; name another folder, so that nothing is lost."
        )
    does = {"read": "which {} reads", "write": "which {} writes too", "change": "the same as {}"}
    what = does[other.role].format(other.name)
    return f"{one.name} is {str(one.path)!r}, {what}: name another file, so that nothing is lost."


def _said_of_inside(outer: Place, inner: Place) -> str:
    if outer.role == "fill" and inner.role != "write":
        return (
            f"{outer.name} is {str(outer.path)!r}, a folder that holds other files, such as "
            f"{str(inner.path)!r} of {inner.name}: name another, so that nothing is lost."
        )
    does = "fills" if outer.role == "fill" else "reads"
    return (
        f"{inner.name} is {str(inner.path)!r}, inside the folder {str(outer.path)!r} that "
        f"{outer.name} {does}: name a place outside it, so that nothing is lost."
    )
