"""Files: written as a whole, locked by one process at a time, and never one in place of another."""

import contextlib
import os
import secrets
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

Role = Literal["read", "write", "change", "fill"]


def check_can_write(path: str | os.PathLike[str]) -> Path:
    """Refuse a path that cannot be written, before any work is done; returns it, links followed."""
    target, shown = _target(path), f"cannot write {str(path)!r}"
    _try_to_make_a_file(target, shown)
    return target


def check_is_page(path: str | os.PathLike[str]) -> None:
    """Refuse to write a page under the name of another kind of file."""
    if Path(path).suffix.lower() not in ("", ".html", ".htm"):
        raise ValueError(
            f"{str(path)!r} must end in .html, as what is written is a page: print it from a "
            "browser where a PDF is wanted."
        )


def check_can_fill(folder: str | os.PathLike[str]) -> None:
    """Refuse a folder that cannot be made, or in which no file can be made."""
    shown = f"cannot write into {str(folder)!r}"
    target = _followed(folder, shown)
    nearest = next(path for path in (target, *target.parents) if path.exists())
    if not nearest.is_dir():
        raise NotADirectoryError(f"{shown}: {str(nearest)!r} is a file, not a folder.")
    _try_to_make_a_file(nearest / "file", shown)


def _followed(path: str | os.PathLike[str], shown: str) -> Path:
    """The path with links followed; links in a circle are refused."""
    with contextlib.suppress(OSError, RuntimeError):  # which depends on the version of Python
        followed = Path(path).resolve()
        # from 3.13 on nothing is raised, and the circle stays in the path
        parts = (followed, *followed.parents)
        if not any(os.path.islink(part) for part in parts):  # noqa: PTH114  (where none may look)
            return followed
    raise OSError(f"{shown}: its links lead in a circle, name another.")


def _target(path: str | os.PathLike[str]) -> Path:
    """The file, links followed; refused where a folder or a special file has its name."""
    shown = f"cannot write {str(path)!r}"
    target = _followed(path, shown)
    if target.is_dir():
        raise IsADirectoryError(f"{shown}: it is a folder, name a file in it.")
    if target.exists() and not target.is_file():
        raise OSError(f"{shown}: it is not an ordinary file: name another.")
    if not target.parent.exists():
        raise FileNotFoundError(f"{shown}: make its folder first.")
    if not target.parent.is_dir():
        raise NotADirectoryError(f"{shown}: {str(target.parent)!r} is a file, not a folder.")
    return target


def _try_to_make_a_file(target: Path, shown: str) -> None:
    """Make a file and remove it: permission bits do not say all, such as for root."""
    beside = _beside(target)
    try:
        beside.open("x").close()
        beside.unlink()
    except PermissionError:
        what = f"{shown}: its folder may not be written to, choose another."
        raise PermissionError(what) from None
    except OSError as error:
        what = f"{shown}: no file can be made in its folder ({error.strerror}), choose another."
        raise type(error)(what) from None


def _beside(target: Path) -> Path:
    """A name in the same folder that nothing else has."""
    return target.with_name(f".{target.name[:50]}.{secrets.token_hex(6)}.part")


def write_text_atomically(
    path: str | os.PathLike[str], text: str | bytes, *, for_owner: bool = False
) -> None:
    """Write a file so that a reader sees the old content or the new one, never a part.

    Text is written as UTF-8 with its line ends as they are, into a folder that must exist.
    With `for_owner` nobody else may read the file, whoever could read it before.
    """
    target = _target(path)
    beside = _beside(target)
    try:
        _write(beside, text, 0o600 if for_owner else 0o666)
        if target.exists() and not for_owner:
            beside.chmod(target.stat().st_mode & 0o7777)
        beside.replace(target)
    except OSError as error:
        what = f"{error.strerror}, so nothing was written; choose another place"
        raise type(error)(error.errno, what, str(path)) from None
    finally:
        with contextlib.suppress(OSError):
            beside.chmod(0o600)  # Windows removes no file that is read-only, as the old one may be
            beside.unlink()
    sync_folder(target.parent)


def create_text(path: str | os.PathLike[str], text: str) -> bool:
    """Write a new file for its owner only, atomically; False where one of that name exists."""
    target = _target(path)
    beside = _beside(target)
    try:
        _write(beside, text, 0o600)
        try:
            os.link(beside, target)  # unlike a rename, replaces nothing
        except FileExistsError:
            raise
        except OSError:  # a disk without links
            _write(target, text, 0o600)
        return True
    except FileExistsError:
        return False
    finally:
        with contextlib.suppress(OSError):
            beside.unlink()
        sync_folder(target.parent)


def close_to_others(path: Path) -> None:
    """Let nobody but its owner read a file, where the system knows of others."""
    with contextlib.suppress(OSError):  # it does not exist, or belongs to somebody else
        if path.stat().st_mode & 0o077:
            path.chmod(0o600)


def _write(path: Path, text: str | bytes, mode: int) -> None:
    """Write a file that does not exist yet; it is on the disk when this returns."""
    content = text if isinstance(text, bytes) else text.encode("utf-8")
    with open(path, "xb", opener=lambda name, how: os.open(name, how, mode)) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Sync a folder, so that new and renamed files survive a crash, where the system allows it."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


if sys.platform == "win32":
    import msvcrt

    def _lock(handle: int) -> None:
        # the lock is on one byte far beyond the end, so that reading stays possible
        os.lseek(handle, 2**31 - 2, os.SEEK_SET)
        while True:
            with contextlib.suppress(OSError):  # gives up after ten seconds: try again
                msvcrt.locking(handle, msvcrt.LK_LOCK, 1)
                return

    def _unlock(handle: int) -> None:
        os.lseek(handle, 2**31 - 2, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)
else:
    import fcntl

    def _lock(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX)

    def _unlock(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_UN)


@contextlib.contextmanager
def locked(handle: int) -> Iterator[None]:
    """Hold the lock of an open file; other processes wait. It is freed when the process ends."""
    _lock(handle)
    try:
        yield
    finally:
        _unlock(handle)


@dataclass(frozen=True)
class UsedPath:
    """A path and its role in one call.

    The roles are: a file or folder that is read; a file that is written; a file that is read and
    appended to, such as a ledger ("change"); a folder into which files are written ("fill").
    """

    path: str | os.PathLike[str]
    role: Role
    name: str  # as the user knows it, such as an option

    @cached_property
    def real(self) -> Path:
        """The path with links followed; it need not exist."""
        try:
            return Path(self.path).resolve()
        except (OSError, RuntimeError):  # links in a circle; opening it raises the error
            return Path(self.path).absolute()


def check_apart(used: Iterable[UsedPath]) -> None:
    """Refuse paths of which one would be written over, or into, another.

    Links, hard links and other spellings of a path are resolved. Two paths that are only read may
    be the same.
    """
    listed = list(used)
    written = [each for each in listed if each.role != "read"]
    read = [each for each in listed if each.role == "read"]
    for k, one in enumerate(written):
        for other in (*read, *written[:k]):
            _check_pair(one, other)
    for folder in read:
        if folder.real.is_dir():
            _check_links(folder, written)


def _check_pair(one: UsedPath, other: UsedPath) -> None:
    if one.role == "change":  # a ledger stays where it is; what is written can go elsewhere
        one, other = (one, other) if other.role in ("read", "change") else (other, one)
    if _same(one.real, other.real):
        raise ValueError(_same_message(one, other))
    for outer, inner in ((one, other), (other, one)):
        if _holds(outer) and _is_inside(inner.real, outer.real):
            raise ValueError(_inside_message(outer, inner))


def _check_links(folder: UsedPath, written: list[UsedPath]) -> None:
    """Refuse to write a file to which a link in a folder that is read leads."""
    there = {_inode(each.real): each for each in written if each.real.exists()}
    if not there:
        return
    for above, _, names in os.walk(folder.real):
        for name in names:
            path = Path(above, name)
            if path.exists() and _inode(path) in there:
                linked = UsedPath(path, "read", folder.name)
                raise ValueError(_same_message(there[_inode(path)], linked))


def _inode(path: Path) -> tuple[int, int]:
    """Device and inode of a file."""
    found = path.stat()
    return found.st_dev, found.st_ino


def _holds(used: UsedPath) -> bool:
    """Whether files inside belong to the path: folders that are read or filled."""
    return used.role == "fill" or (used.role == "read" and used.real.is_dir())


def _same(one: Path, other: Path) -> bool:
    """Whether two paths are one file: by inode, or by folder and name where it does not exist."""
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


def _same_message(one: UsedPath, other: UsedPath) -> str:
    if "fill" in (one.role, other.role):
        return (
            f"{one.name} is {str(one.path)!r}, the same as {other.name}: files are written there, "
            "and it holds other files; name another folder, so that nothing is lost."
        )
    does = {"read": "which {} reads", "write": "which {} writes too", "change": "the same as {}"}
    what = does[other.role].format(other.name)
    return f"{one.name} is {str(one.path)!r}, {what}: name another file, so that nothing is lost."


def _inside_message(outer: UsedPath, inner: UsedPath) -> str:
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
