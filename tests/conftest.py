import os
import pathlib
import random
import signal
import sys

import hypothesis
import pytest

from steadytree.cli import app as cli

# A slow machine is no failure, and the same examples come in every run.
hypothesis.settings.register_profile("steadytree", deadline=None, derandomize=True)
hypothesis.settings.load_profile("steadytree")


def pytest_addoption(parser):
    parser.addoption("--shuffle", type=int, metavar="SEED", help="run the tests in a random order")


def pytest_collection_modifyitems(config, items):
    seed = config.getoption("--shuffle")
    if seed is not None:
        random.Random(seed).shuffle(items)


@pytest.fixture(scope="session", autouse=True)
def no_ledger_is_noted_at_home(tmp_path_factory):
    """What was seen of a test's ledger is forgotten with the test; processes inherit this."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture
def data_folder():
    """Folder of the papers' data sets; tests that use it carry the mark `data`."""
    folder = os.environ.get("STEADYTREE_DATA")
    if not folder:
        pytest.skip("STEADYTREE_DATA names no folder")
    return pathlib.Path(folder)


@pytest.fixture
def no_time_passes(monkeypatch):
    """No exact search ends because of its time limit, however slow the machine is."""
    from steadytree.robustness.robust_tree import RobustTreeClassifier
    from tests._base.clocks import ToldClock

    monkeypatch.setattr(RobustTreeClassifier, "_clock", ToldClock())


@pytest.fixture
def run(request, monkeypatch, capsys, tmp_path):
    """Run a command in an empty folder; returns exit code, output and errors.

    Every call of a test file begins with its COMMAND, where it has one.
    """
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        begin = getattr(request.module, "COMMAND", ())
        monkeypatch.setattr(sys, "argv", ["steadytree", *begin, *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        captured = capsys.readouterr()
        return stop.value.code, captured.out, captured.err

    return call


@pytest.fixture(autouse=True)
def signals_stay_as_they_were():
    """A command that runs until it is told to stop leaves its handlers in the process."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        if signal.getsignal(number) is not handler:
            signal.signal(number, handler)
