"""Figures in the README and on pages are those of the last run of the command that prints them.

``docs/figures.json`` has two sorts of entries. One is what a command printed, with when and how it
ran, and where its numbers are shown. The other names rows of a study's results file (after a
heading, by how they begin), and where the numbers of these rows are shown. Other files are
included in a page as they are. A paragraph or table with a number and a unit that is neither is
found, unless it is listed here with a reason.
"""

import json
import math
import operator
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


# ---- counted in results, or computed from their rows ----
def read(name):
    return (PROJECT / name).read_text("utf-8")


def counted_in_steady():
    text = read("studies/steady/results.txt")
    n_sets = len(set(re.findall(r"^\| ([\w-]+) \| 0\.\d+ -> ", text, re.MULTILINE)))
    beyond = text.partition("## Beyond the limits for a single set")[2]
    cases = [line for line in beyond.splitlines() if line.startswith("- ")]
    assert all(" leaves: changed " in line for line in cases), "of accuracy or AUC, too"
    few = [line for line in cases if ", 4 leaves" in line or ", 6 leaves" in line]
    yield "On no set and at no size is it less accurate than CART of its size by 0.7 points"
    yield f"as CART's in {len(cases)} of {4 * n_sets} cases, {len(few)} of them at 4 and 6 leaves"


def counted_in_frontier():
    text, lost = read("studies/tree_distance/results.txt"), []
    for name in ("Pima diabetes:", "heart (Statlog): 270 x 13, 10", "ionosphere: 351 x 34, 10"):
        part = text[text.index(f"== {name}") :]
        knee, cart = (
            row_of(part, "sections 3.3", f"{way}  ")[0]
            for way in ("Pareto, knee", "cross-validated CART")
        )
        lost.append(cart - knee)
    yield f"the knee gives up {min(lost)} to {max(lost)} AUC against"


def counted_in_separation_speed():
    text = read("benchmarks/results/separation_speed.txt")
    few, many = (
        row_of(text, f"drawn_images {rows}:", "steadytree")[0] for rows in (300_000, 1_000_000)
    )
    yield f"to 1,000,000 it is {math.log(many / few) / math.log(10 / 3):.2f}."


def counted_in_intervals():
    text = read("studies/risk/intervals.txt")
    mean = row_of(text, "", "mean ")
    share = [row_of(text, "", f"{world:24}{rows:>4}")[2] for world, rows in RARELY]
    yield f"{share[0]:.0f} % of the time on higgs with 300 rows and {share[1]:.0f} % on sites with"
    yield f"at {mean[1] / mean[3]:.2f} times the width of the share's"


RARELY = [("higgs_sample", 300), ("sites", 1000)]


def counted_in_noise():
    text = read("studies/separation/results.txt")
    for name in ("heart", "ionosphere"):
        for objective in ("majority", "logistic"):
            start = f"| {objective}, tau 1se | {objective}, tau 0 | {name} | 20 |"
            gained, low, high = (f"{100 * each:.1f}" for each in row_of(text, "", start)[3:6])
            yield f"{gained} ({low} to {high})"


def counted_in_risk():
    """Over ten splits, how far the best of the peers is ahead; on monks-1, one with five."""
    sets, n_all, text = {}, 0, read("studies/risk/results.txt")
    for line in text.partition("banded, all splits")[2].splitlines()[1:]:
        cells = line[28:].split()
        if cells and "-" not in cells[7:11]:
            own = [Decimal(each) for each in cells[1:5:2]]
            peers = [each for each in cells[5:11] if each != "-"]
            best = min(map(Decimal, peers[::2])), max(map(Decimal, peers[1::2]))
            sets[line[:28].strip()] = own, best, (own[0] - best[0], best[1] - own[1])
            n_all += cells[5] != "-"
        elif not cells:
            break
    yield f"L1 regression have on all {len(sets)} sets and FasterRisk on {n_all}"
    limits = Decimal("0.007"), Decimal("0.003")
    near = [name for name, one in sets.items() if all(map(operator.le, one[2], limits))]
    assert set(sets) - set(near) == {"monks-3", "monks-2"}
    at_most = f"is at most {limits[0]} of log loss and {limits[1]} of AUC"
    yield f"{at_most} behind the best of them on {len(near)}."
    own, best, behind = sets["monks-3"]
    yield f"L1 regression has {behind[0]:.3f} less log loss"
    yield f"AUC {own[1]:.3f} and {best[1]:.3f}"
    own, best, _ = sets["monks-2"]
    yield f"an AUC of {own[1]:.1f}, and the best {best[1]:.3f}"
    text = text.partition("Sets that had no part in the choice")[2]
    losses, areas = (row_of(text, f"\n{what} ", "monks-1")[1:] for what in ("log_loss", "auc"))
    ahead = {f"{losses[0] - losses[6]:.3f}", f"{areas[6] - areas[0]:.3f}"}
    assert len(ahead) == 1
    yield f"is {ahead.pop()} of both ahead on monks-1"


def counted_in_sensitivity():
    lines = read("studies/steady/sensitivity.txt").splitlines()[2:]
    sets = {line.split()[0]: [float(cell) for cell in line.split()[1:]] for line in lines}
    assert all(own[3] == own[10] == own[11] == 0 for own in sets.values())
    yield f"does what is reported for every row of all {len(sets)} sets"
    *some, last = [name for name, own in sets.items() if own[5] > 1.1]
    yield f"more than a tenth more on {', '.join(some)} and {last}:"


COUNTED_IN = {
    "docs/stability.rst": counted_in_sensitivity,
    "docs/steady.rst": counted_in_steady,
    "docs/stable_choice.rst": counted_in_frontier,
    "docs/benchmarks.rst": counted_in_separation_speed,
    "docs/cards.rst": lambda: [
        *counted_in_intervals(),
        *counted_in_noise(),
        *counted_in_risk(),
    ],
}


@pytest.mark.parametrize("page", COUNTED_IN)
def test_what_is_counted_in_results_is_shown(page):
    text = plain(read(page))
    for each in COUNTED_IN[page]():
        assert each in text


# ---- no other figures ----
# a time, a size of memory, points of accuracy, an error behind a plus-minus, a factor
MEASURED = re.compile(
    r"\d[\d.,]* ?(?:CPU|ms\b|ns\b|[MG]B\b|s\b|seconds?\b|minutes?\b|points?\b|±)"
    r"|[x×] \d+\.\d|\d(?:\.\d+)? (?:times|x)\b(?! as| \d)"
)
# in what is no code: a share with three decimals, so many of so many, a percentage with a decimal
COUNTED = re.compile(r"\b0\.\d{3}|\b\d+ of (?:the )?\d|\d\.\d+ %")
# how a paragraph or table begins, or words inside one, by page; and why they are not compared
OTHERWISE = {
    "benchmarks": {
        "1.7 x": "what was asked for",
        "60 ms": "what was asked for",
        "4 s of CPU": "what was asked for",
    },
    "cards": {
        "20 points": "a limit",
        "0.2 % share": "a setting",
        "99 of 100": "a setting",
    },
    "cluster": {"2.7 GB": "bytes by the number of rows"},
    "errata": {
        "Figure 3 prints 72 of 100": "printed in the paper",
        "at ε = 0.316": "printed in the paper",
        "γ ≥ 0.001": "printed in the paper",
        "4 x": "a setting of a test",
    },
    "file_formats": {"64 MB": "a limit"},
    "how_far": {"2.5 % of a column's values": "a setting"},
    "past_one_machine": {"================== =": "a formula"},
    "private": {"0.800000001 of 2.0": "an example", "a rho of 0.0243": "computed below"},
    "retraining": {"5 times": "an example", "2,000 points": "a limit"},
    "stability": {"* - epsilon": "compared by tests/test_errata.py"},
    "stable_choice": {"0.015": "an example"},
    "steady": {"0.7 points": "a limit of the study"},
    "threat_model": {"1.3 times": "a setting"},
    "three_hospitals": {
        "(0.25 s)": "a setting",
        "0.001 (``--least-epsilon``": "a setting",
        "3 seconds": "a setting",
    },
}


def paragraphs(text):
    """Each paragraph or table, and whether it is code."""
    for part in re.split(r"\n\s*\n", text):
        if part.strip():
            begins = part.lstrip()
            code = part.startswith("   ") and not begins.startswith(("* -", "- "))
            yield plain(part), code


def shown_texts():
    """What is compared on each page, the longest first."""
    shown = {}
    for figure in FIGURES:
        values = values_of(figure)
        for place in figure["shown"]:
            shown.setdefault(place["file"], []).append(plain(place["text"].format(**values)))
    for page, counted in COUNTED_IN.items():
        shown.setdefault(page, []).extend(counted())
    return {page: sorted(texts, key=len, reverse=True) for page, texts in shown.items()}


def test_a_number_that_was_measured_is_compared_or_listed():
    """Also beside one that is."""
    found, listed, shown = [], set(), shown_texts()
    for path in [PROJECT / "README.md", *sorted((PROJECT / "docs").glob("*.rst"))]:
        page = path.relative_to(PROJECT).as_posix()
        for part, code in paragraphs(path.read_text("utf-8")):
            rest = part
            for text in shown.get(page, ()):
                rest = rest.replace(text, "...")
            for text in OTHERWISE.get(path.stem, {}):
                listed |= {(path.stem, text)} if text in part else set()
                rest = "" if part.startswith(text) else rest.replace(text, "...")
            seen = MEASURED.search(rest) or (not code and COUNTED.search(rest))
            if seen:
                found.append((page, part[:60], seen.group()))
    assert not found
    every = {(page, text) for page, texts in OTHERWISE.items() for text in texts}
    assert listed == every, "what is listed is no longer there"


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
