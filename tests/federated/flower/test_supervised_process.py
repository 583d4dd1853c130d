"""A supervised process ends with the process that started it."""

import pathlib
import signal
import subprocess
import sys

import pytest

from tests.federated import hospitals

OWNER = """
import subprocess, sys, time
held = subprocess.Popen(
    [sys.executable, "-m", "steadytree.federated.flower.supervised_process", sys.executable, "-c",
     "import os, time; print(os.getpid(), flush=True); time.sleep(600)"],
    stdin=subprocess.PIPE,
)
time.sleep(600)
"""


def has_ended(number):
    """Whether a process is no more; one that nobody has asked for its exit code counts as ended."""
    try:
        return (
            pathlib.Path(f"/proc/{number}/stat").read_text("utf-8").rpartition(")")[2].split()[0]
            in "ZX"
        )
    except OSError:
        return True


@pytest.mark.skipif(sys.platform == "win32", reason="needs process groups")
def test_a_supervised_process_ends_with_its_owner_even_by_kill_9():
    with subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE) as owner:
        child = int(owner.stdout.readline())
        owner.send_signal(signal.SIGKILL)
        # the pipe closes when the last of them has ended
        assert owner.stdout.read() == b""
    # its files are closed a moment before the system knows it as ended
    hospitals.wait_until(lambda: has_ended(child))
