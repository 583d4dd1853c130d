"""Run a command and keep what it prints in benchmarks/results, with when and how it ran.

    python benchmarks/keep.py NAME "settings" -- python benchmarks/past_one_machine.py

Pages show numbers of these files, and tests/test_figures.py compares. The settings say what the
numbers depend on and the command does not show, such as what else the machine did.
"""

import datetime
import os
import pathlib
import platform
import subprocess
import sys
from importlib import metadata

RESULTS = pathlib.Path(__file__).parent / "results"


def main():
    """Write the file only if the command ends well."""
    name, settings, dashes, *command = sys.argv[1:]
    if dashes != "--" or not command:
        sys.exit(__doc__.splitlines()[2].strip())
    ran = [sys.executable if command[0] == "python" else command[0], *command[1:]]
    ended = subprocess.run(ran, stdout=subprocess.PIPE, text=True, encoding="utf-8", check=True)
    about = [
        f"{datetime.datetime.now(datetime.UTC).date()}",
        f"steadytree {metadata.version('steadytree')}",
        f"Python {platform.python_version()}, {platform.system()}, {os.cpu_count()} cores",
        settings,
    ]
    RESULTS.mkdir(exist_ok=True)
    text = f"$ {' '.join(command)}\n{', '.join(about)}\n\n{ended.stdout}"
    (RESULTS / f"{name}.txt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
