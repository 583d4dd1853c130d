"""Figures in the README and on pages are those of the last run of the command that prints them.

``docs/figures.json`` has for each command when and how it ran, what it printed, and where its
numbers are shown. Whoever runs it again writes both.
"""

import json
import pathlib
import re

import pytest

PROJECT = pathlib.Path(__file__).parents[1]
FIGURES = json.loads((PROJECT / "docs/figures.json").read_text("utf-8"))


def plain(text):
    """Text with one space wherever it breaks, without marks of emphasis."""
    return " ".join(text.split())


@pytest.mark.parametrize("figure", FIGURES, ids=lambda one: one["name"])
def test_what_is_shown_is_what_was_measured(figure):
    assert set(figure) == {"name", "command", "date", "version", "settings", "values", "shown"}
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", figure["date"])
    assert figure["shown"]
    for place in figure["shown"]:
        page = plain((PROJECT / place["file"]).read_text("utf-8"))
        assert plain(place["text"].format(**figure["values"])) in page, place


def test_every_measured_row_of_the_readme_has_its_file():
    text = (PROJECT / "README.md").read_text("utf-8")
    table = text.partition("## Measured")[2].partition("\n\nFigures of other")[0]
    rows = [line for line in table.splitlines() if line.count("|") == 4][2:]
    assert len(rows) >= 5
    commands = {figure["command"] for figure in FIGURES}
    for row in rows:
        command = re.findall(r"`([^`]+)`", row)[-1]
        study = re.match(r"python (studies/[^/]+)/", command)
        if study:
            assert (PROJECT / study[1] / "results.txt").is_file(), row
        else:
            assert command in commands | NOT_RUN_AGAIN, row


# measured before figures were kept, with larger machines or peers than are at hand
NOT_RUN_AGAIN = {"make bench", "python benchmarks/path_distance.py"}
