"""Commands as a user calls them, and what is always true of a refusal."""

import os
import re
import shutil
import subprocess
import sys


def steadytree(folder, *arguments, before=()):
    """A command in a process of its own: exit code, output and errors."""
    command = [*before, sys.executable, "-m", "steadytree", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=folder)
    return done.returncode, done.stdout, done.stderr


def as_ordinary_user():
    """What to put before a command so that it may not write everywhere; None if that cannot be."""
    if os.name != "posix" or os.geteuid() != 0:
        return () if os.name == "posix" else None
    limited = ("setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner")
    if shutil.which("setpriv") is None or subprocess.run([*limited, "true"]).returncode:
        return None
    return limited


def refused(result, message):
    """Exit code 2, nothing on standard output, one line that matches on standard error."""
    code, out, err = result
    assert code == 2
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("error: ")
    assert re.search(message, err), err


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())
