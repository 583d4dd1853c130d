"""The table "to change X, read Y" of the documentation is true of the source."""

import importlib.util
import pathlib
import re
import subprocess
import sys

import pytest

PROJECT = pathlib.Path(__file__).parents[1]
ROOT = PROJECT / "src/steadytree"
PAGE = PROJECT / "docs/architecture.rst"

REPORT_ON_A_PLAIN_TREE = """
import sys
from sklearn.datasets import load_iris
from sklearn.tree import DecisionTreeClassifier
import steadytree

X, y = load_iris(return_X_y=True)
model = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)
steadytree.report(model, X, y)
print(*(name for name in sys.modules if name.startswith("steadytree.")))
"""


def rows_of_table():
    """Subject and folders of each row."""
    rows = re.findall(r"^   \* - (.*)\n     - (``.*)$", PAGE.read_text("utf-8"), flags=re.M)
    return {subject: re.findall(r"``(\w+)``", folders) for subject, folders in rows}


def test_each_subject_is_in_at_most_two_folders():
    rows = rows_of_table()
    assert len(rows) >= 13
    for subject, folders in rows.items():
        assert 1 <= len(folders) <= 2, subject
        assert all((ROOT / folder / "__init__.py").is_file() for folder in folders), subject


def test_every_module_is_in_a_folder_of_the_table():
    named = {folder for folders in rows_of_table().values() for folder in folders}
    packages = {path.name for path in ROOT.iterdir() if (path / "__init__.py").is_file()}
    assert packages == named
    assert {path.stem for path in ROOT.glob("*.py")} == {"__init__", "__main__"}


def test_a_report_on_a_plain_tree_loads_neither_studies_nor_the_exact_search():
    called = [sys.executable, "-c", REPORT_ON_A_PLAIN_TREE]
    loaded = subprocess.run(called, capture_output=True, text=True, check=True).stdout.split()
    assert "steadytree.reporting.report" in loaded
    unwanted = ("steadytree.federated", "steadytree.robustness.search")
    assert not [name for name in loaded if name.startswith(unwanted)]


def test_every_module_has_its_test_or_a_reason():
    """A test of the module's name beside its package's tests, or a line that says why not."""
    lines = (PROJECT / "tests/untested_modules.txt").read_text("utf-8").splitlines()
    reasons = dict(line.split(": ", 1) for line in lines if line and not line.startswith("#"))
    without = set()
    for path in ROOT.rglob("*.py"):
        module = path.relative_to(ROOT)
        if module.stem in ("__init__", "__main__") or "_kernels" in (module.stem, path.parent.name):
            continue  # tests/test_kernels.py compares every kernel with its twin
        if not (PROJECT / "tests" / module.parent / f"test_{module.name}").is_file():
            without.add(".".join(module.with_suffix("").parts))
    assert without == set(reasons)
    assert all(reason.strip() for reason in reasons.values())


# ---- figures of the house ----
def house():
    spec = importlib.util.spec_from_file_location("house", PROJECT / "tools/house.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rows_of(text):
    """Numbers of each row of a table of the house, by the row's name."""
    lines = [line.split() for line in text.partition("\n\n")[0].splitlines()]
    return {name: [int(n.replace(",", "")) for n in numbers] for name, *numbers in lines[1:]}


def test_figures_of_the_house_are_those_of_the_source():
    """The page is at most 2 % (or 30 lines, or one module) behind; all packages are in it."""
    now, shown = house().render(), (PROJECT / "docs/house.txt").read_text("utf-8")
    assert now.splitlines()[0] == shown.splitlines()[0]
    assert list(rows_of(now)) == list(rows_of(shown))
    for name, found in rows_of(now).items():
        (n_modules, *sizes), (n_shown, *listed) = found, rows_of(shown)[name]
        message = f"{name}: run python tools/house.py --out docs/house.txt"
        assert abs(n_modules - n_shown) <= max(1, 0.02 * n_modules), message
        assert sizes == pytest.approx(listed, rel=0.02, abs=30), message
    assert "literalinclude:: house.txt" in PAGE.read_text("utf-8")


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ('"""One."""\n\nx = 1  # two\n# three\n', (1, 1, 1, 1)),
        ('def f():\n    """One\n\n    two."""\n    return """a\nb"""\n', (3, 3, 0, 0)),
        ("x = [\n    1,  # one\n\n    # two\n    2,\n]\n", (4, 0, 1, 1)),
        ("", (0, 0, 0, 0)),
    ],
)
def test_lines_are_counted_by_kind(text, sizes):
    tool = house()
    assert tuple(tool.count_lines(text)[kind] for kind in tool.KINDS) == sizes
