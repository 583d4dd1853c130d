"""The command as it was typed, for reports to show."""

from __future__ import annotations

import sys


def command_line() -> str:
    """The whole command line, quoted where needed."""
    import shlex

    return shlex.join(["steadytree", *sys.argv[1:]])
