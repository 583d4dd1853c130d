"""The page of errata names tests that exist, and its example runs."""

import ast
import pathlib
import re
import runpy

PROJECT = pathlib.Path(__file__).parents[1]


def test_every_named_test_exists():
    named = re.findall(
        r"``(tests/[\w/]+\.py)::(\w+)``", (PROJECT / "docs" / "errata.rst").read_text("utf-8")
    )
    assert len(named) > 15
    for path, name in named:
        found = ast.parse((PROJECT / path).read_text("utf-8")).body
        assert name in {each.name for each in found if hasattr(each, "name")}, name


def test_the_example_shows_each_error(capsys):
    """Its assertions fail where an error is none."""
    runpy.run_path(str(PROJECT / "examples" / "60_errata.py"))
    assert "printed bound: 0" in capsys.readouterr().out


def test_the_table_on_stability_is_that_of_the_results():
    """docs/stability.rst shows rows of the first table of the study's results."""
    results = (PROJECT / "studies" / "average_sensitivity" / "results.txt").read_text("utf-8")
    page = (PROJECT / "docs" / "stability.rst").read_text("utf-8").split("What does it cost?")[1]
    rows = [line.split(" | ") for line in results.splitlines() if line.startswith("| ")]
    shown = re.findall(r"\* - (\S+)\n     - (.+)\n     - (\S+)\n     - (\S+)\n", page)
    assert [row[0] for row in shown] == ["greedy", "0.01", "0.1", "0.3"]
    for name, *values in shown:
        row = next(row for row in rows if row[0] == f"| {name}")
        assert values == [row[1], row[3], row[4].rstrip(" |")]
