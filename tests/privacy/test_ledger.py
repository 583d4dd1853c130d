import errno
import os
import signal
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadytree._base.exceptions import BudgetError
from steadytree.privacy.ledger import Ledger, charge
from steadytree.privacy.ledger_lines import Entry, compose, decimal_of, mark_path

SPEND_FOREVER = """
    import os, sys
    from steadytree.privacy.ledger import Ledger, charge
    ledger, number = Ledger(sys.argv[1], budget=1e6), int(sys.argv[2])
    while True:
        ledger.spend(0.1, "answer", request=str(number))
        os.write(1, f"{number}\\n".encode())  # the answer leaves
        number += 1
"""
DIE_WHILE_WRITING = """
    import os, signal, sys
    from steadytree.privacy import ledger as module
    ledger, kept = module.Ledger(sys.argv[1], budget=10.0), int(sys.argv[2])
    whole_write = os.write
    def half_write(handle, line):
        whole_write(handle, line[:kept])
        os.kill(os.getpid(), signal.SIGKILL)
    module.os.write = half_write
    ledger.spend(0.25, "answer")
    whole_write(1, b"left")
"""
SPEND_MANY = """
    import sys
    from steadytree.privacy.ledger import BudgetError, Ledger
    ledger, granted = Ledger(sys.argv[1], budget=4.0), 0
    for _ in range(125):
        try:
            ledger.spend(0.01, "answer")
            granted += 1
        except BudgetError:
            pass
    sys.stdout.write(str(granted))
"""


def start(code, *arguments):
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "patients.ledger"


def test_what_is_spent_stays_spent_in_another_process_life(path):
    Ledger(path, 1.0).spend(0.1, "tree", "whole tree")
    again = Ledger(path, 1.0)
    assert (again.spent, again.left) == (0.1, 0.9)
    assert (again.entries[0].what, again.entries[0].mechanism) == ("tree", "whole tree")


def test_ten_tenths_are_one_and_no_more_is_given(path):
    ledger = Ledger(path, 1.0)
    for _ in range(10):
        ledger.spend(0.1, "answer")
    assert ledger.left == 0
    with pytest.raises(BudgetError, match=r"0.000001 asked for 'one more', but 0.0 of 1.0 is left"):
        ledger.spend(1e-6, "one more")
    assert len(ledger.entries) == 10


def test_a_request_is_paid_for_once(path):
    ledger = Ledger(path, 1.0)
    ledger.spend(0.1, "answer", request="round 1")
    assert ledger.answered("round 1")
    with pytest.raises(BudgetError, match="answered before"):
        ledger.spend(0.1, "answer", request="round 1")


def test_parts_that_share_no_row_cost_as_much_as_the_dearest(path):
    ledger = Ledger(path, 1.0)
    for part, cost in (("left", 0.2), ("right", 0.3), ("left", 0.2)):
        ledger.spend(cost, "leaf", parallel=("level 1", part))
    assert ledger.spent == 0.4  # left twice
    ledger.spend(0.1, "leaf", parallel=("level 2", "left"))
    ledger.spend(0.1, "all rows")
    assert ledger.spent == 0.6


def test_delta_is_counted_and_refused(path):
    ledger = Ledger(path, 1.0, delta=1e-6)
    ledger.spend(0.1, "sum", delta=1e-6)
    assert ledger.spent_delta == 1e-6
    with pytest.raises(BudgetError, match="pure mechanism"):
        ledger.spend(0.1, "sum", delta=1e-9)


@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.sampled_from(["", "g", "h"]), st.sampled_from("ab")),
        max_size=8,
    )
)
def test_composition_is_what_the_row_loses_that_loses_most(spends):
    entries = [Entry(decimal_of(e / 10, "e"), group=g, part=p if g else "") for e, g, p in spends]
    total, lost = compose(entries)[0], []
    for home in ({"g": a, "h": b} for a in "ab" for b in "ab"):  # the parts that hold one row
        touched = [e.epsilon for e in entries if not e.group or e.part == home[e.group]]
        lost.append(sum(touched))
    assert max(lost) == total  # and no more than the row that loses most


def test_what_is_granted_and_left_is_what_fractions_and_the_file_say(path):
    ledger, random = Ledger(path, 1.0), Random(0)
    granted = Fraction(0)
    for k in range(40):
        amount = random.choice([0.1, 0.3, 1e-7, 0.05, 0.0625, 1 / 3])
        exact = Fraction(repr(amount))  # the number as it is printed
        if granted + exact <= 1:
            ledger.spend(amount, f"answer {k}", request=str(k))
            granted += exact
        else:
            with pytest.raises(BudgetError, match="is left: ask for less"):
                ledger.spend(amount, f"answer {k}", request=str(k))
        assert ledger.answered(str(k)) == (ledger.entries[-1].request == str(k))
    lines = path.read_text("ascii").splitlines()[1:]
    assert [int(line.split()[0]) for line in lines] == [*range(1, len(lines) + 1)]
    assert 3 < len(lines) < 40
    assert sum(Fraction(line.split()[1]) for line in lines) == granted
    assert (ledger.spent, ledger.left) == (float(granted), float(1 - granted))
    assert ledger.head.number == len(lines) + 1


@pytest.mark.parametrize(
    ("epsilon", "error"),
    [(float("nan"), ValueError), (-0.1, ValueError), (float("inf"), ValueError), ("1", TypeError)],
)
def test_amounts_must_be_numbers_that_can_be_spent(path, epsilon, error):
    with pytest.raises(error, match="epsilon must be"):
        Ledger(path, 1.0).spend(epsilon, "answer")


@pytest.mark.parametrize("budget", [0, -1, float("inf"), float("nan")])
def test_a_budget_must_be_finite_and_positive(path, budget):
    with pytest.raises(ValueError, match="budget must be"):
        Ledger(path, budget)


@pytest.mark.parametrize("delta", [1, 1.5, -0.1, float("nan")])
def test_a_delta_is_a_probability_below_one(path, delta):
    with pytest.raises(ValueError, match="delta must be"):
        Ledger(path, 1.0, delta)
    assert not path.exists()
    assert Ledger(path, 1.0, 0.999).entries == []


def test_a_budget_cannot_be_changed_and_a_file_must_be_a_ledger(path):
    Ledger(path, 1.0)
    with pytest.raises(ValueError, match="cannot be changed later"):
        Ledger(path, 2.0)
    path.write_text("something else\n", "utf-8")
    with pytest.raises(ValueError, match="is not a ledger"):
        Ledger(path, 1.0)


# ---- crashes ----
def test_every_way_to_cut_the_last_line_counts_its_amount(path, monkeypatch):
    ledger = Ledger(path, 10.0)
    ledger.spend(1.5, "first")
    before, older = path.read_bytes(), mark_path(path).read_bytes()
    ledger.spend(0.25, "second", "mechanism", request="7")
    whole, newest = path.read_bytes(), mark_path(path).read_bytes()
    for length in range(len(before), len(whole) + 1):
        monkeypatch.setenv("XDG_STATE_HOME", str(path.with_name(f"state{length}")))  # not seen yet
        path.write_bytes(whole[:length])
        mark_path(path).write_bytes(newest)
        again = Ledger(path, 10.0)
        assert again.spent == 1.75, length
        assert path.read_bytes() == whole  # completed from the mark
        again.spend(1.0, "third")
        assert again.spent == 2.75
        if length > len(before):  # never written in this order, so nobody can tell
            path.write_bytes(whole[:length])
            mark_path(path).write_bytes(older)
            monkeypatch.setenv("XDG_STATE_HOME", str(path.with_name(f"other{length}")))
            if length < len(whole):
                with pytest.raises(BudgetError, match="truncated"):
                    Ledger(path, 10.0)
            else:
                assert Ledger(path, 10.0).spent == 1.75


def test_what_stands_behind_the_last_line_is_refused(path):
    ledger = Ledger(path, 10.0)
    with path.open("ab") as file:
        file.write(b"0.2")
    for refused in (lambda: ledger.left, lambda: ledger.spend(1.0, "tree")):
        with pytest.raises(BudgetError, match="truncated or altered"):
            refused()


def test_an_altered_amount_is_refused(path):
    ledger = Ledger(path, 10.0)
    ledger.spend(5.0, "tree")
    path.write_bytes(path.read_bytes().replace(b"1 5.0 0", b"1 0.5 0"))
    with pytest.raises(BudgetError, match="truncated or altered"):
        _ = ledger.left
    with pytest.raises(BudgetError, match="truncated or altered"):
        ledger.spend(1.0, "another tree")


def test_a_header_cut_off_at_birth_is_written_again(path):
    Ledger(path, 1.0)
    path.write_bytes(path.read_bytes()[:7])
    ledger = Ledger(path, 1.0)
    ledger.spend(0.5, "tree")
    assert ledger.spent == 0.5


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_killed_at_any_moment_no_answer_is_missing(path):
    number = 0
    for answers_before_the_kill in (1, 4, 9, 16, 25):
        process = start(SPEND_FOREVER, path, number)
        for _ in range(answers_before_the_kill):
            process.stdout.readline()
        os.kill(process.pid, signal.SIGKILL)
        process.stdout.read()
        process.wait()
        process.stdout.close()
        written = {entry.request for entry in Ledger(path, 1e6).entries}
        assert written >= {str(n) for n in range(number + answers_before_the_kill)}
        number = len(written)
    assert Ledger(path, 1e6).spent >= 0.1 * (1 + 4 + 9 + 16 + 25)


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
@pytest.mark.parametrize("kept", [0, 3, 20, 40])
def test_killed_within_the_write_nothing_left_and_nothing_is_lost(path, kept):
    Ledger(path, 10.0).spend(1.0, "earlier")
    process = start(DIE_WHILE_WRITING, path, kept)
    assert process.communicate()[0] == b""  # no answer left
    ledger = Ledger(path, 10.0)
    assert ledger.entries[0].what == "earlier"
    assert ledger.spent >= (1.25 if kept else 1.0)


def test_a_thousand_requests_of_eight_processes_never_overspend(path):
    processes = [start(SPEND_MANY, path) for _ in range(8)]
    granted = [int(process.communicate()[0]) for process in processes]
    ledger = Ledger(path, 4.0)
    assert sum(granted) == 400
    assert (ledger.spent, ledger.left, len(ledger.entries)) == (4.0, 0.0, 400)


def test_threads_share_a_ledger(path):
    ledger = Ledger(path, 1.0)

    def ask(_):
        try:
            ledger.spend(0.1, "answer")
        except BudgetError:
            return 0
        return 1

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(ask, range(40))) == 10


@pytest.mark.parametrize("harm", ["removed", "emptied", "replaced"])
def test_a_ledger_that_vanishes_gives_no_new_budget(tmp_path, harm):
    path = tmp_path / "l"
    ledger = Ledger(path, 1.0)
    ledger.spend(1.0, "tree")
    if harm == "removed":
        path.unlink()
    else:
        path.write_text(
            "" if harm == "emptied" else "steadytree ledger 1 budget 9.0 delta 0.0\n", "utf-8"
        )
    with pytest.raises(BudgetError, match="removed or replaced"):
        ledger.spend(1.0, "another tree")
    with pytest.raises(BudgetError, match="removed or replaced"):
        _ = ledger.left
    assert path.exists() == (harm != "removed")


def test_long_names_of_groups_do_not_run_together(tmp_path):
    ledger = Ledger(tmp_path / "l", 1.0)
    for parallel in (("g" * 201, "left"), ("g", "p" * 201)):
        with pytest.raises(ValueError, match="at most 200 characters"):
            ledger.spend(0.5, "leaf", parallel=parallel)
    assert ledger.spent == 0
    ledger.spend(0.5, "leaf", parallel=("g" * 200, "p" * 200))
    assert (ledger.entries[0].group, ledger.entries[0].part) == ("g" * 200, "p" * 200)


def test_all_parts_of_a_release_are_charged_in_one_line(tmp_path):
    ledger = Ledger(tmp_path / "one.ledger", 1.0)
    assert charge(ledger, {"splits": 0.1, "leaves": 0.2}, "Laplace") == Fraction(3, 10)
    assert (ledger.spent, len(ledger.entries)) == (0.3, 1)
    assert charge(ledger, {"rows": 0.0}, "Laplace") == 0
    assert charge(None, {"rows": 5.0}, "Laplace") == 5
    assert (ledger.spent, len(ledger.entries)) == (0.3, 1)
    with pytest.raises(BudgetError, match="ask for less"):
        charge(ledger, {"splits": 0.7, "leaves": 0.1}, "Laplace")
    assert ledger.spent == 0.3


@pytest.mark.parametrize("stays", [False, True])
def test_a_full_disk_costs_nothing_unless_a_part_of_the_line_stays(tmp_path, stays):
    ledger, write = Ledger(tmp_path / "one.ledger", 1.0), os.write
    ledger.spend(0.25, "before")

    def fill(*given):
        if stays and len(given) == 2 and isinstance(given[1], bytes):
            write(given[0], given[1][:5])
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "write", fill)
        if stays:
            patch.setattr(os, "ftruncate", fill)
        with pytest.raises(OSError, match="No space left"):
            ledger.spend(0.5, "after")
    assert Ledger(ledger.path, 1.0).spent == (0.75 if stays else 0.25)


@pytest.mark.skipif(sys.platform == "win32", reason="folders are not synced there")
def test_mark_and_line_are_on_the_disk_in_this_order_before_spend_returns(path, monkeypatch):
    """Whole, each: what was synced before its last byte was written could be lost with power."""
    ledger, synced, sync = Ledger(path, 1.0), [], os.fsync

    def noted(handle):
        sync(handle)
        found = os.fstat(handle)
        synced.append((found.st_ino, found.st_size))

    monkeypatch.setattr(os, "fsync", noted)
    for _ in range(2):
        synced.clear()
        ledger.spend(0.25, "answer")
        mark, folder, line = (each.stat() for each in (mark_path(path), path.parent, path))
        assert synced[0] == (mark.st_ino, mark.st_size)
        assert synced[1][0] == folder.st_ino  # so that the mark's new name is there too
        assert synced[2] == (line.st_ino, line.st_size)
