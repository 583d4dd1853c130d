"""Figures in the README and on pages are those of the last run of the command that prints them.

``docs/figures.json`` has two sorts of entries. One is what a command printed, with when and how it
ran, and where its numbers are shown. The other names rows of a study's results file (after a
heading, by how they begin), and where the numbers of these rows are shown. Other files are
included in a page as they are. A paragraph or table with a number and a unit that is neither is
found, unless it is listed here with a reason.
"""

import json
import math
import pathlib
import re
from decimal import Decimal

import pytest

from steadytree.privacy.accounting import epsilon_of
from steadytree.privacy.ledger_lines import Entry, compose
from steadytree.privacy.utility import rows_for_split, rows_for_tree, splits_for_error

PROJECT = pathlib.Path(__file__).parents[1]
FIGURES = json.loads((PROJECT / "docs/figures.json").read_text("utf-8"))
PRINTED = {"name", "command", "date", "version", "settings", "values", "shown"}
KEPT = sorted((PROJECT / "benchmarks/results").glob("*.txt"))
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


@pytest.mark.parametrize("path", KEPT, ids=lambda one: one.name)
def test_kept_results_say_when_and_how_they_were_measured(path):
    command, about, gap, *lines = path.read_text("utf-8").splitlines()
    assert re.fullmatch(r"\$ python (benchmarks|studies)/[\w/]+\.py.*", command)
    assert re.match(
        r"20\d\d-\d\d-\d\d, steadytree \d+\.\d+\.\d+, Python \S+, \w+, \d+ cores, ", about
    )
    assert "warm" in about or "cold" in about
    assert not gap
    assert lines
    pages = [page.read_text("utf-8") for page in (PROJECT / "docs").glob("*.rst")]
    name = f"benchmarks/results/{path.name}"
    included = any(f"literalinclude:: ../{name}" in page for page in pages)
    assert included or name in {figure.get("results") for figure in FIGURES}


# ---- no other figures ----
# a time, a size of memory, points of accuracy, an error behind a plus-minus, a factor
MEASURED = re.compile(
    r"\d[\d.,]* ?(?:CPU|ms\b|ns\b|[MG]B\b|s\b|seconds?\b|minutes?\b|points?\b|±)"
    r"|[x×] \d+\.\d|\d(?:\.\d+)? (?:times|x)\b(?! as)"
)
# how a paragraph or table begins, by page, and why its numbers are not compared
OTHERWISE = {
    "cards": {"* **Reasons** are": "points of a risk score"},
    "cluster": {"The private learner": "bytes by the number of rows"},
    "errata": {"- The winning score": "a setting of a test"},
    "file_formats": {"Fields that are unknown": "a limit"},
    "past_one_machine": {"================== =": "a formula"},
    "retraining": {"1. At each node": "an example", "- The frontier is exact": "a limit"},
    "threat_model": {
        "An answer of a gateway": "a setting",
        "What remains: without": "a setting",
        "==================== =": "printed by studies/three_hospitals/attacks.py, no file yet",
    },
    "three_hospitals": {
        "It does not hide": "a setting",
        "========================================": "a setting",
    },
}


def paragraphs(text):
    return [plain(part) for part in re.split(r"\n\s*\n", text) if part.strip()]


def test_a_paragraph_with_a_measurement_is_compared_or_listed():
    shown = {}
    for figure in FIGURES:
        for place in figure["shown"]:
            text = plain(place["text"].format(**values_of(figure)))
            shown.setdefault(place["file"], []).append(text)
    found, listed = [], set()
    for path in sorted((PROJECT / "docs").glob("*.rst")):
        page = f"docs/{path.name}"
        for part in paragraphs(path.read_text("utf-8")):
            begins = [start for start in OTHERWISE.get(path.stem, {}) if part.startswith(start)]
            listed |= {(path.stem, start) for start in begins}
            held = any(text in part for text in shown.get(page, ()))
            if MEASURED.search(part) and not begins and not held:
                found.append((page, part[:90]))
    assert not found
    every = {(page, start) for page, parts in OTHERWISE.items() for start in parts}
    assert listed == every, "a paragraph is listed that is no longer there"


def test_a_measurement_is_seen():
    for text in (
        "took 17 seconds",
        "1.5 points less",
        "0.34 CPU s",
        "88.1 ± 0.4",
        "x 0.52",
        "9 times",
    ):
        assert MEASURED.search(text)
    for text in ("5 rows", "epsilon 0.5", "the 3 sites", "2 times as many", "x 3"):
        assert not MEASURED.search(text)


# ---- what is computed ----
def test_numbers_of_rows_are_what_the_functions_return():
    page = plain((PROJECT / "docs/how_many_rows.rst").read_text("utf-8"))
    common = {"delta": 0.05, "n_splits": 160}
    ways = {
        "RNM, Gini, 0.05": {"loss": 0.05},
        "RNM, Gini, 0.01": {"loss": 0.01},
        "RNM, entropy, 0.05 bits": {"loss": 0.05, "criterion": "entropy"},
        "NoisyCounts, 4 holders, Gini, 0.05": {
            "loss": 0.05, "method": "noisy_counts", "n_holders": 4,
        },
    }  # fmt: skip
    for name, given in ways.items():
        rows = [rows_for_split(epsilon=epsilon, **given, **common) for epsilon in (0.1, 1.0)]
        assert f"{name} {rows[0]:,} {rows[1]:,}" in page
    rows = [rows_for_split(0.05, 1.0, n_classes=n, **common) for n in (2, 5, 10)]
    assert f"{rows[0]:,} rows with 2, {rows[1]:,} with 5, {rows[2]:,} with 10 classes" in page
    for n_splits in (1, 3, 7, 15):
        given = {"error": 0.1, "epsilon": 1.0, "advantage": 0.25, "max_splits": n_splits}
        both = [
            rows_for_tree(**given, **common, **more)
            for more in ({}, {"method": "noisy_counts", "n_holders": 4})
        ]
        texts = [re.sub(r"e\+0*", "e", f"{rows:.1e}") for rows in both]
        assert f" {n_splits} {' '.join(texts)} " in page
    assert f"it is {splits_for_error(0.5, 0.5):.0e} (".replace("e+", "e") in page


def test_numbers_about_budgets_are_computed():
    page = plain((PROJECT / "docs/private.rst").read_text("utf-8"))
    epsilons = [0.1, 1, 8]
    factors = [f"{math.exp(e):.{2 if e < 8 else 0}f}" for e in epsilons]
    assert "{} for epsilon 0.1, {} for epsilon 1, {} for epsilon 8".format(*factors) in page
    odds = [100 / (1 + math.exp(-e)) for e in (1, 0.1, 3)]
    assert "to {:.0f} % at most; at 0.1 to {:.0f} %; at 3 to {:.0f} %".format(*odds) in page
    many = [Entry(Decimal("0.1"))] * 100
    assert compose(many)[0] == 10
    assert f"cost 10 by addition, and {compose(many, Decimal('1e-6'))[0]:.2f} with" in page
    low, high = 0.0, 1.0  # the rho whose epsilon is 1
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if epsilon_of(Decimal(middle), Decimal("1e-6")) < 1 else (low, middle)
        )
    pure = math.sqrt(2 * math.exp(-1)) / (1 - math.exp(-1))  # of discrete Laplace noise
    assert f"leaves a rho of {low:.4f} of epsilon 1" in page
    assert f"deviation of {1 / math.sqrt(2 * low):.1f}, where pure epsilon gives {pure:.1f}" in page
    assert f"root of n / honest, {math.sqrt(4 / 3):.2f} for three of four" in page
