"""What golden tests share: files of expected values, and the command as a user calls it.

``pytest tests/golden --update-golden`` writes the expected files anew and says which changed.
"""

import difflib
import pathlib
import platform
import runpy
import sys
import time

import pytest

HERE = pathlib.Path(__file__).parent
EXPECTED = HERE / "expected"
MOST_LINES = 40  # of a difference that are shown
CHANGES = pytest.StashKey[list]()
SEEN = pytest.StashKey[set]()


def pytest_addoption(parser):
    parser.addoption(
        "--update-golden", action="store_true", help="write tests/golden/expected anew"
    )


def pytest_configure(config):
    config.stash[CHANGES], config.stash[SEEN] = [], set()
    if updating(config) and getattr(config.option, "numprocesses", None):
        raise pytest.UsageError("--update-golden works in one process only: leave -n out.")


def updating(config):
    """False too where the option is not known, as in a run of all tests."""
    return bool(config.getoption("update_golden", False))


def pytest_terminal_summary(terminalreporter, config):
    if not updating(config):
        return
    terminalreporter.section("golden files")
    for line in config.stash[CHANGES] or ["nothing changed"]:
        terminalreporter.write_line(line)
    unseen = {path.name for path in EXPECTED.iterdir()} - config.stash[SEEN]
    for name in sorted(unseen):
        terminalreporter.write_line(f"not looked at in this run, left as it is: {name}")


@pytest.fixture
def golden(request):
    """Compare text with an expected file; with --update-golden write it."""

    def compare(name, text):
        path = EXPECTED / name
        text = text.rstrip("\n") + "\n"
        before = path.read_text("utf-8") if path.exists() else None
        request.config.stash[SEEN].add(name)
        if updating(request.config):
            if before != text:
                EXPECTED.mkdir(exist_ok=True)
                path.write_text(text, "utf-8", newline="\n")
                request.config.stash[CHANGES].append(told(name, before, text))
            return
        assert before is not None, f"there is no {name}: run pytest tests/golden --update-golden"
        if before != text:
            pytest.fail(f"{name} is not as expected:\n{difference(before, text)}", pytrace=False)

    return compare


def difference(before, after):
    lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), n=1, lineterm=""))
    shown = [line if len(line) <= 300 else line[:300] + " ..." for line in lines[2:]]
    more = len(shown) - MOST_LINES
    return "\n".join(shown[:MOST_LINES] + ([f"... and {more} lines more"] if more > 0 else []))


def told(name, before, after):
    if before is None:
        return f"new: {name}, {len(after.splitlines())} lines"
    old, new = before.splitlines(), after.splitlines()
    same = sum(b.size for b in difflib.SequenceMatcher(None, old, new, False).get_matching_blocks())
    return f"changed: {name}, {len(old) - same} lines gone, {len(new) - same} new"


@pytest.fixture
def command(monkeypatch, capsys, tmp_path):
    """Call ``python -m steadytree`` in an empty folder: exit code, output and errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["steadytree", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            runpy.run_module("steadytree", run_name="__main__")
        captured = capsys.readouterr()
        return stop.value.code or 0, captured.out, captured.err

    return call


@pytest.fixture
def same_everywhere(monkeypatch):
    """Pages name versions of Python and packages and how long a fit took, which vary."""
    monkeypatch.setattr("importlib.metadata.version", lambda name: "0.0.0")
    monkeypatch.setattr(platform, "python_version", lambda: "0.0.0")
    monkeypatch.setattr(time, "process_time", lambda: 0.0)
