"""Compiled loops: one decorator for every kernel, and the folder of compiled code."""

import contextlib
import os
import stat
import tempfile
from pathlib import Path

from numba import config, njit
from numba.core import event

from steadytree._base.progress import report_compiling


def find_folder():
    """Let numba cache compiled code in a temporary folder where it finds no other.

    Without a folder numba refuses to compile: so it is where the package belongs to another user
    and there is no home folder, as in many containers.
    """
    try:
        njit(cache=True)(own_folder)  # never called: it only has to find a folder
    except RuntimeError:
        config.CACHE_DIR = str(own_folder())  # type: ignore[attr-defined]


def own_folder():
    """A folder that only this user can write: the code in it is run."""
    user = os.getuid() if hasattr(os, "getuid") else "user"
    folder = Path(tempfile.gettempdir()) / f"steadytree-numba-{user}"
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    known = folder.lstat()
    if not stat.S_ISDIR(known.st_mode) or known.st_mode & 0o077 or known.st_uid != user:
        return Path(tempfile.mkdtemp(prefix="steadytree-numba-"))
    return folder


find_folder()


class Compiling(event.Listener):
    """Says which loop is compiled, as the first use of many takes a minute."""

    def on_start(self, event):
        """Name the loop; those that it calls are compiled inside."""
        report_compiling(getattr(event.data.get("dispatcher"), "__name__", "a loop"))

    def on_end(self, event):
        """Go back to the step itself."""
        report_compiling(None)


event.register("numba:compile", Compiling())


def kernel(function=None, **options):
    """Compile a function on its first call, cache it on disk, and run it without the GIL."""
    compiled = njit(cache=True, nogil=True, **options)
    return compiled if function is None else compiled(function)
