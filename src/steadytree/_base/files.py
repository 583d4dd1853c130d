"""One process at a time: a lock on an open file, freed when the process ends, however it ends."""

import contextlib
import os
import secrets
import sys
from collections.abc import Iterator
from pathlib import Path


def check_can_write(path: str | os.PathLike[str]) -> Path:
    """Refuse a path that cannot be written, before any work is done for it.

    Returns
    -------
    path : Path
        The file itself, links followed.

    Examples
    --------
    >>> check_can_write("no/such/report.html")
    Traceback (most recent call last):
        ...
    FileNotFoundError: cannot write 'no/such/report.html': make its folder first.
    """
    target, shown = _target(path), f"cannot write {str(path)!r}"
    _try_to_make_a_file(target, shown)
    return target


def check_can_fill(folder: str | os.PathLike[str]) -> None:
    """Refuse a folder that cannot be made, or in which no file can be made.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     check_can_fill(f"{folder}/new/one")
    """
    target, shown = Path(folder).resolve(), f"cannot write into {str(folder)!r}"
    nearest = next(place for place in (target, *target.parents) if place.exists())
    if not nearest.is_dir():
        raise NotADirectoryError(f"{shown}: {str(nearest)!r} is a file, not a folder.")
    _try_to_make_a_file(nearest / "file", shown)


def _target(path: str | os.PathLike[str]) -> Path:
    """The file itself, where what is there already does not stand in its way."""
    target, shown = Path(path).resolve(), f"cannot write {str(path)!r}"
    if target.is_dir():
        raise IsADirectoryError(f"{shown}: it is a folder, name a file in it.")
    if target.exists() and not target.is_file():
        raise OSError(f"{shown}: it is no ordinary file, name another.")
    if not target.parent.exists():
        raise FileNotFoundError(f"{shown}: make its folder first.")
    if not target.parent.is_dir():
        raise NotADirectoryError(f"{shown}: {str(target.parent)!r} is a file, not a folder.")
    return target


def _try_to_make_a_file(target: Path, shown: str) -> None:
    """Rights do not tell all: root has every right in a folder that takes no files."""
    beside = _beside(target)
    try:
        beside.open("x").close()
        beside.unlink()
    except PermissionError:
        raise PermissionError(
            f"{shown}: its folder may not be written to, choose another."
        ) from None
    except OSError as error:
        what = f"{shown}: no file can be made in its folder ({error.strerror}), choose another."
        raise type(error)(what) from None


def _beside(target: Path) -> Path:
    """A name in the same folder that nothing else has."""
    return target.with_name(f".{target.name[:100]}.{secrets.token_hex(6)}.part")


def write_text_atomically(
    path: str | os.PathLike[str], text: str, *, for_owner: bool = False
) -> None:
    """Write a file so that a reader sees the old content or the new one, never a part.

    Parameters
    ----------
    path : str or path-like
        Replaced if it exists; its folder must exist.
    text : str
        Written as UTF-8, line ends as they are.
    for_owner : bool, default=False
        Whether nobody else may read it, whoever could read the file before.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_text_atomically(f"{folder}/a.txt", "all of it")
    ...     Path(f"{folder}/a.txt").read_text()
    'all of it'
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
            beside.unlink()
    sync_folder(target.parent)


def create_text(path: str | os.PathLike[str], text: str) -> bool:
    """Write a file for its owner only, whole at once, unless there is one of that name.

    Returns
    -------
    made : bool
        False where a file was there; it stays as it is.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     create_text(f"{folder}/a.txt", "first"), create_text(f"{folder}/a.txt", "second")
    (True, False)
    """
    target = _target(path)
    beside = _beside(target)
    try:
        _write(beside, text, 0o600)
        try:
            os.link(beside, target)  # unlike a rename, replaces nothing
        except FileExistsError:
            return False
        except OSError:  # a disk without links
            with contextlib.suppress(FileExistsError):
                _write(target, text, 0o600)
                return True
            return False
    finally:
        with contextlib.suppress(OSError):
            beside.unlink()
        sync_folder(target.parent)
    return True


def _write(path: Path, text: str, mode: int) -> None:
    """Write a file that does not exist yet; it is on the disk when this returns."""
    with open(
        path, "x", encoding="utf-8", newline="", opener=lambda name, how: os.open(name, how, mode)
    ) as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Make a new or moved name itself last, where the system lets a folder be synced."""
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
        import os

        os.lseek(handle, 2**31 - 2, os.SEEK_SET)
        while True:
            with contextlib.suppress(OSError):  # gives up after ten seconds: ask again
                msvcrt.locking(handle, msvcrt.LK_LOCK, 1)
                return

    def _unlock(handle: int) -> None:
        import os

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
    """Hold the lock of an open file; others wait."""
    _lock(handle)
    try:
        yield
    finally:
        _unlock(handle)
