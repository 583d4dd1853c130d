"""Print the lower bounds in pyproject.toml as exact versions, one requirement a line.

The core dependencies and those of the extra `test` are what the oldest-versions run installs.
"""

import pathlib
import re
import sys
import tomllib

PYPROJECT = pathlib.Path(__file__).parents[1] / "pyproject.toml"
EXTRAS = ["test"]


def oldest(requirement: str) -> str:
    """Turn ``name[extra]>=1.2,<2`` into ``name[extra]==1.2``."""
    found = re.fullmatch(r"([\w.\-]+(?:\[[\w,\-]+\])?)\s*>=\s*([\w.]+)(?:\s*,.*)?", requirement)
    if not found:
        raise ValueError(f"{requirement!r} has no lower bound of the form name>=version")
    name, version = found.groups()
    return f"{name}=={version}"


def oldest_requirements(project: dict) -> list[str]:
    """Every core and test requirement of a `[project]` table, each at its lower bound."""
    extras = project["optional-dependencies"]
    wanted = project["dependencies"] + [line for extra in EXTRAS for line in extras[extra]]
    return [oldest(requirement) for requirement in wanted]


if __name__ == "__main__":
    lines = oldest_requirements(tomllib.loads(PYPROJECT.read_text("utf-8"))["project"])
    sys.stdout.write("\n".join(lines) + "\n")
