"""Files of one fit in a folder that others may use too: claimed, reserved, checked."""

import contextlib
import errno
import hashlib
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

from steadytree._base.files import locked

OWN = ("slots", "codes", "labels")  # followed by the fit's token
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
CHUNK = 1 << 20


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """One process at a time, for moments; where folders cannot be locked, digests have to do."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        yield
        return
    try:
        with locked(handle):
            yield
    finally:
        os.close(handle)


def own_path(folder: Path, name: str, token: str) -> Path:
    """Where a fit writes a file that no other fit writes."""
    return folder / f"{name}-{token}.bin"


def claim(folder: Path, token: str) -> IO[bytes]:
    """The file that says that a fit is alive, as long as it is open."""
    file = own_path(folder, "slots", token).open("x+b")
    _is_free(file)
    return file


def sweep(folder: Path) -> None:
    """Remove the files of fits that were killed."""
    begun = [file.stem.partition("-") for file in folder.iterdir()]
    for token in {token for name, dash, token in begun if name in OWN and dash}:
        slots = own_path(folder, "slots", token)
        with contextlib.suppress(OSError):  # open elsewhere, where open files cannot be removed
            if slots.exists():
                with slots.open("rb") as file:
                    if not _is_free(file):
                        continue
                slots.unlink()
            for name in OWN[1:]:
                own_path(folder, name, token).unlink(missing_ok=True)


def _is_free(file: IO[bytes]) -> bool:
    """Take the lock of a file, unless a living fit has it."""
    if sys.platform != "win32":
        import fcntl

        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
    return True


def reserve(sizes: Mapping[IO[bytes], int], folder: Path) -> None:
    """Give files their sizes, on the disk too: a mapped page without room kills the process.

    Raises
    ------
    OSError
        Where the disk has not enough room for all; it says how much is needed.
    """
    try:
        for file, size in sizes.items():
            if size and hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
            else:
                _write_zeros(file, size)
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        for file in sizes:
            with contextlib.suppress(OSError):  # what is left in a buffer has no room either
                file.truncate(0)
        raise no_room(sum(sizes.values()), folder) from None


def _write_zeros(file: IO[bytes], size: int) -> None:
    zeros = bytes(CHUNK)
    os.lseek(file.fileno(), 0, os.SEEK_SET)
    left = size
    while left > 0:
        left -= os.write(file.fileno(), zeros[: min(CHUNK, left)])
    os.fsync(file.fileno())
    file.seek(0)


def no_room(needed: int, folder: Path) -> OSError:
    """What to say where the disk is full."""
    free = shutil.disk_usage(folder).free
    return OSError(
        f"the binned rows need {needed / 1e9:.3g} GB, and {str(folder)!r} has {free / 1e9:.3g} "
        "GB left: name a folder on another disk with cache=."
    )


def digest(file: IO[bytes]) -> str:
    """What tells a file's content from any other."""
    found = hashlib.blake2b(digest_size=32)
    file.seek(0)
    while part := file.read(CHUNK):
        found.update(part)
    return found.hexdigest()
