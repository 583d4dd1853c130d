"""Only a whole ledger is spent from: damage, cuts, crashes and full disks win nothing back."""

import contextlib
import errno
import os
import random
import zlib
from decimal import Decimal

import pytest

from steadytree._base.exceptions import BudgetError
from steadytree.federated.receipts import verify_ledger
from steadytree.privacy.ledger import Ledger
from steadytree.privacy.ledger_lines import (
    HEADER,
    START,
    Chain,
    Entry,
    Mark,
    decimal_of,
    mark_path,
)
from steadytree.privacy.old_ledger import upgrade_ledger

AMOUNTS = (0.5, 1.25, 0.1, 2.0)  # four lines behind the first
BUDGET, SPENT = 10.0, 3.85


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda handle: None)


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setenv(
        "XDG_STATE_HOME", str(tmp_path / "state")
    )  # OLD has one identity in all tests
    return tmp_path / "patients.ledger"


def begin(path):
    ledger = Ledger(path, BUDGET)
    for number, amount in enumerate(AMOUNTS):
        ledger.spend(amount, "tree", "whole tree", request=f"study:{number}")
    return ledger


# ---- damage ----
def flip(content, rng):
    changed = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 5])):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def cut(content, rng):
    return content[: rng.randrange(len(content))]


def delete(content, rng):
    first, last = sorted(rng.randrange(len(content) + 1) for _ in range(2))
    return content[:first] + content[last:]


def insert(content, rng):
    place = rng.randrange(len(content) + 1)
    return content[:place] + rng.choice([b"\n", b" ", b"\r", b"\0", b"0"]) + content[place:]


def by_lines(change):
    def changed(content, rng):
        lines = content.splitlines(keepends=True)
        change(lines, rng)
        return b"".join(lines)

    return changed


def swap(lines, rng):
    one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]


HARMS = [
    *(flip, flip, cut, delete, insert),
    by_lines(lambda lines, rng: lines.pop(rng.randrange(len(lines)))),
    by_lines(lambda lines, rng: lines.insert(rng.randrange(len(lines)), rng.choice(lines))),
    by_lines(lambda lines, rng: lines.__delitem__(slice(rng.randrange(len(lines)), None))),
    by_lines(swap),
]


@pytest.mark.parametrize("harmed", ["ledger", "mark"])
def test_no_damage_gives_budget_back(path, harmed):
    begin(path)
    files = (path, mark_path(path))
    whole = [file.read_bytes() for file in files]
    which = ("ledger", "mark").index(harmed)
    rng = random.Random(0)
    opened = 0
    for trial in range(4000):
        content = rng.choice(HARMS)(whole[which], rng)
        for file, found in zip(files, whole, strict=True):
            file.unlink()  # some disks are slow to write over a file
            file.write_bytes(content if file == files[which] else found)
        try:
            ledger = Ledger(path, BUDGET)
        except ValueError:  # BudgetError is one
            continue
        opened += 1
        assert ledger.spent == SPENT, (trial, content)
        # only what changed nothing, or took from the last line alone, which its mark has too
        assert path.read_bytes() == whole[0]
        assert content == whole[which] or (
            harmed == "ledger" and whole[0].startswith(content) and content.count(b"\n") >= 4
        )
    assert 0 < opened < 800


@pytest.mark.parametrize("lines", range(5))
def test_a_ledger_that_is_shorter_than_its_mark_is_refused(path, lines):
    ledger = begin(path)
    whole = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(whole[:lines]))
    if lines == 4:  # as after a crash between the mark and the line: the mark knows the line
        assert ledger.spent == SPENT
        return
    for use in (
        lambda: Ledger(path, BUDGET),
        lambda: ledger.left,
        lambda: ledger.check(0.1, "tree"),
        lambda: ledger.spend(0.1, "tree"),
    ):
        with pytest.raises(BudgetError, match=r"truncated.* restore the newest"):
            use()


def test_an_older_copy_is_refused_and_the_newest_goes_on(path):
    ledger = begin(path)
    older = path.read_bytes()
    ledger.spend(1.0, "tree")
    ledger.spend(1.0, "tree")
    newest = path.read_bytes()
    path.write_bytes(older)
    with pytest.raises(BudgetError, match="older copy than its mark"):
        ledger.spend(1.0, "tree")
    path.write_bytes(newest)
    ledger.spend(1.0, "tree")
    assert ledger.spent == SPENT + 3


def test_a_ledger_without_its_mark_is_refused(path):
    ledger = begin(path)
    mark_path(path).unlink()
    for use in (lambda: Ledger(path, BUDGET), lambda: ledger.spend(0.1, "tree")):
        with pytest.raises(BudgetError, match=r"'patients\.ledger\.mark' together"):
            use()
    assert not mark_path(path).exists()


def test_a_mark_without_its_ledger_is_no_new_budget(path):
    begin(path)
    path.unlink()
    with pytest.raises(BudgetError, match="removed or replaced"):
        Ledger(path, BUDGET)
    assert not path.exists()


def test_an_empty_file_is_no_new_ledger(path):
    path.touch()
    with pytest.raises(BudgetError, match="removed or replaced"):
        Ledger(path, BUDGET)
    assert path.read_bytes() == b""
    assert not mark_path(path).exists()


def test_a_ledger_of_other_rows_does_not_fit_the_mark(path, tmp_path):
    begin(path)
    other = tmp_path / "other.ledger"
    begin(other)
    path.write_bytes(other.read_bytes())  # the same lines, and another id
    with pytest.raises(BudgetError, match="removed or replaced"):
        Ledger(path, BUDGET)


def test_both_files_are_for_their_owner(path):
    if os.name == "nt":
        pytest.skip("no modes")
    begin(path)
    assert [file.stat().st_mode & 0o777 for file in (path, mark_path(path))] == [0o600, 0o600]
    lost = path.with_name("lost.mark")
    Mark.read(mark_path(path)).write(lost)  # where there was none, too
    assert lost.stat().st_mode & 0o777 == 0o600


# ---- crashes and full disks at each call that changes a file ----
class Died(BaseException):
    """Stands for kill -9."""


CALLS = ("write", "fsync", "ftruncate", "link", "replace", "unlink")


class Fate:
    """Lets so many calls pass; the next one fails, before, within or after its work."""

    def __init__(self, monkeypatch, passing, where, error, lasting):
        self.left, self.where, self.error, self.lasting = passing, where, error, lasting
        self.struck = False
        for name in CALLS:
            monkeypatch.setattr(os, name, self.wrap(name, getattr(os, name)))

    def wrap(self, name, real):
        def call(*args, **kwargs):
            if self.struck and self.lasting:
                raise self.error()
            self.left -= 1
            if self.struck or self.left >= 0:
                return real(*args, **kwargs)
            self.struck = True
            if self.where == "within" and name == "write":
                real(args[0], args[1][: len(args[1]) // 2])
            elif self.where == "after":
                real(*args, **kwargs)
            raise self.error()

        return call


def full():
    return OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("where", ["before", "within", "after"])
@pytest.mark.parametrize(("error", "lasting"), [(Died, True), (full, True), (full, False)])
@pytest.mark.parametrize("begun", [False, True])
def test_a_failure_at_any_write_loses_and_wins_nothing(tmp_path, where, error, lasting, begun):
    passed = 0
    while True:
        path = tmp_path / f"{passed}.ledger"
        if begun:
            Ledger(path, BUDGET).spend(1.0, "earlier", request="earlier")
        answered = False
        with pytest.MonkeyPatch.context() as patch:
            fate = Fate(patch, passed, where, error, lasting)
            try:
                Ledger(path, BUDGET).spend(0.25, "answer", request="7")
                answered = True
            except (Died, OSError):
                pass
        before = ["earlier"] if begun else []
        again = Ledger(path, BUDGET)
        paid = [entry.request for entry in again.entries]
        assert paid in ([*before, "7"], before), (passed, paid)
        assert not answered or paid == [*before, "7"]
        assert again.spent == begun + 0.25 * ("7" in paid)
        again.spend(0.5, "later")
        assert Ledger(path, BUDGET).spent == begun + 0.25 * ("7" in paid) + 0.5
        if not fate.struck:
            break
        passed += 1
    assert answered
    assert passed >= 5


# ---- ledgers of version 1 ----
def old_line(epsilon, what, request):
    def check(body):
        return f"{zlib.crc32(body):08x}".encode()

    amount = f"{epsilon} 0".encode()
    body = amount + b" " + check(amount) + f' ["{what}", "gibbs", "", "", "{request}"]'.encode()
    return body + b" " + check(body) + b"\n"


OLD = b"steadytree ledger 1 budget 10.0 delta 0.0\n" + b"".join(
    old_line(amount, "tree", f"study:{number}") for number, amount in enumerate(AMOUNTS)
)


def test_an_old_ledger_is_upgraded_when_asked_to(path):
    path.write_bytes(OLD)
    with pytest.raises(BudgetError, match=r"version 1: .* --budget 10\.0 --upgrade'"):
        Ledger(path, BUDGET)
    assert path.read_bytes() == OLD
    upgrade_ledger(path, BUDGET)
    ledger = Ledger(path, BUDGET)
    assert (ledger.spent, ledger.answered("study:2")) == (SPENT, True)
    assert (ledger.entries[0].what, ledger.entries[0].mechanism) == ("tree", "gibbs")
    ledger.spend(1.0, "tree")
    with pytest.raises(ValueError, match="nothing to upgrade"):
        upgrade_ledger(path, BUDGET)
    path.write_bytes(OLD)  # an old copy beside a newer mark
    for use in (lambda: Ledger(path, BUDGET), lambda: upgrade_ledger(path, BUDGET)):
        with pytest.raises(BudgetError, match="older copy than its mark"):
            use()
    assert path.read_bytes() == OLD


def test_an_old_ledger_without_a_line_is_upgraded(path):
    path.write_bytes(OLD.splitlines(keepends=True)[0])
    upgrade_ledger(path, BUDGET)
    assert Ledger(path, BUDGET).left == BUDGET


def test_an_interrupted_upgrade_is_done_again(path, monkeypatch):
    for passed in range(20):
        monkeypatch.setenv("XDG_STATE_HOME", str(path.with_name(f"state{passed}")))  # not seen yet
        mark_path(path).unlink(missing_ok=True)
        path.write_bytes(OLD)
        with pytest.MonkeyPatch.context() as patch, contextlib.suppress(Died):
            fate = Fate(patch, passed, "before", Died, True)
            upgrade_ledger(path, BUDGET)
        if path.read_bytes() == OLD:
            upgrade_ledger(path, BUDGET)
        assert Ledger(path, BUDGET).spent == SPENT
        if not fate.struck:
            break
    assert 5 <= passed < 19


@pytest.mark.parametrize("harm", [flip, cut, by_lines(swap)])
def test_an_old_ledger_that_is_not_whole_is_not_upgraded(path, harm):
    rng = random.Random(1)
    for _ in range(300):
        content = harm(OLD, rng)
        path.write_bytes(content)
        mark_path(path).unlink(missing_ok=True)
        whole_lines = sorted(content.splitlines()) == sorted(OLD.splitlines())
        at_a_line = OLD.startswith(content) and content.endswith(b"\n")
        if content[:1] == b"s" and (whole_lines or at_a_line):
            continue  # version 1 cannot tell
        with pytest.raises(ValueError, match=r"truncated or altered|not a ledger of version 1"):
            upgrade_ledger(path, BUDGET)
        assert path.read_bytes() == content
        assert not mark_path(path).exists()


@pytest.mark.parametrize("wrong", [-1, -0.1, float("nan"), float("inf"), -float("inf")])
def test_no_amount_is_negative_or_endless(path, wrong):
    with pytest.raises(ValueError, match="x must be finite and at least 0, got"):
        decimal_of(wrong, "x")
    with pytest.raises(ValueError, match="must be finite and"):
        Ledger(path, wrong)
    assert not path.exists()


def test_a_line_under_another_number_is_refused():
    """Beside the hashes: the number of a line is part of its text."""
    body = Entry(Decimal("0.5"), Decimal(0), "tree").to_body(3)
    assert Entry.from_body(body, 3).epsilon == Decimal("0.5")
    with pytest.raises(ValueError, match="line 2 has the number 3"):
        Entry.from_body(body, 2)


def forge(path, *texts, tail='["tree", "", "", "", ""]'):
    """A line behind the last one, as anybody can write it who has the disk: all hashes fit."""
    chain = Chain.of(path.read_bytes())
    mark = Mark.after(chain.heads[-1], " ".join([str(len(chain.bodies)), *texts, tail]).encode())
    mark.write(mark_path(path))
    path.write_bytes(path.read_bytes() + mark.line)


@pytest.mark.parametrize("amount", ["-1", "-1e-40", "NaN", "sNaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("place", ["epsilon", "delta", "rho"])
def test_a_forged_line_gives_nothing_back(path, amount, place):
    """It continues every line that was seen, so that no witness and no receipt refuses it."""
    ledger = begin(path)
    amounts = {"epsilon": "0", "delta": "0", "rho": "0"} | {place: amount}
    forge(path, *list(amounts.values())[:2], tail=f'["t", "", "", "", "", "{amounts["rho"]}"]')
    for act in (lambda: Ledger(path, BUDGET), lambda: ledger.spend(0.1, "tree")):
        with pytest.raises(BudgetError, match="was removed or replaced"):
            act()
    with pytest.raises(ValueError, match="is not whole"):
        verify_ledger(path)


@pytest.mark.parametrize(
    "tail", ['"abcdef"', "{}", "7", "[1, 2, 3, 4, 5]", '["a", "", [], "", ""]']
)
def test_a_forged_line_of_another_form_is_refused(path, tail):
    begin(path)
    forge(path, "0.1", "0", tail=tail)
    if tail == "{}":  # as a line without texts: it costs what it says
        assert Ledger(path, BUDGET).spent == pytest.approx(SPENT + 0.1)
        return
    with pytest.raises(BudgetError, match="was removed or replaced"):
        Ledger(path, BUDGET)


@pytest.mark.parametrize("budget", ["NaN", "Infinity", "-1", "much"])
def test_a_forged_first_line_is_refused(path, budget):
    mark = Mark.after(START, f"{HEADER} id {'0' * 32} budget {budget} delta 0.0".encode())
    mark.write(mark_path(path))
    path.write_bytes(mark.line)
    with pytest.raises(ValueError, match="is not whole"):
        verify_ledger(path)


@pytest.mark.parametrize("dust", [Decimal("1e-30"), 5e-324, Decimal("1e-9999")])
def test_an_amount_that_28_digits_do_not_show_is_not_free(path, dust):
    """By brute force: a sum that rounds down would take it again and again."""
    ledger = Ledger(path, 1.0)
    ledger.spend(0.9, "tree")
    ledger.spend(dust, "dust")
    assert ledger.cost(ledger.entries)[0] > Decimal("0.9")
    with pytest.raises(BudgetError, match="is left"):
        ledger.spend(0.1, "tree")
