"""Figures in the README and on pages are those of the last run of the command that prints them.

``docs/figures.json`` has two sorts of entries. One is what a command printed, with when and how it
ran, and where its numbers are shown. The other names rows of a study's results file (after a
heading, by how they begin), and where the numbers of these rows are shown.
"""

import json
import pathlib
import re
from decimal import Decimal

import pytest

PROJECT = pathlib.Path(__file__).parents[1]
FIGURES = json.loads((PROJECT / "docs/figures.json").read_text("utf-8"))
PRINTED = {"name", "command", "date", "version", "settings", "values", "shown"}
READ = {"name", "results", "rows", "shown"}


def plain(text):
    """Text with one space wherever it breaks."""
    return " ".join(text.split())


def row_of(text, heading, start):
    """The numbers of the first row after a heading that begins so."""
    below = text[text.index(heading) :]
    line = next(line for line in below.splitlines() if line.startswith(start))
    return [Decimal(number) for number in re.findall(r"[-+]?\d+(?:\.\d+)?", line[len(start) :])]


def values_of(figure):
    if "command" in figure:
        assert set(figure) == PRINTED
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", figure["date"])
        return figure["values"]
    assert set(figure) == READ
    text = (PROJECT / figure["results"]).read_text("utf-8")
    return {name: row_of(text, *where) for name, where in figure["rows"].items()}


@pytest.mark.parametrize("figure", FIGURES, ids=lambda one: one["name"])
def test_what_is_shown_is_what_was_measured(figure):
    values = values_of(figure)
    assert figure["shown"]
    for place in figure["shown"]:
        page = plain((PROJECT / place["file"]).read_text("utf-8"))
        assert plain(place["text"].format(**values)) in page, place


def test_every_measured_row_of_the_readme_is_compared():
    text = (PROJECT / "README.md").read_text("utf-8")
    table = text.partition("## Measured")[2].partition("\n\nFigures of other")[0]
    rows = [line for line in table.splitlines() if line.count("|") == 4][2:]
    assert len(rows) >= 4
    shown = [
        plain(place["text"].format(**values_of(figure)))
        for figure in FIGURES
        for place in figure["shown"]
        if place["file"] == "README.md"
    ]
    for row in rows:
        assert any(text in plain(row) for text in shown), row
