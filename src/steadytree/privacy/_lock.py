"""One process at a time: a lock on an open file, freed when the process ends, however it ends."""

import contextlib
import sys
from collections.abc import Iterator

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
