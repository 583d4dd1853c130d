"""Older copies, forks and damage of a ledger, of its mark and of its witness win no budget."""

import os
import random
import shutil
import stat

import pytest

from steadytree._base.exceptions import BudgetError
from steadytree.privacy.ledger import Ledger
from steadytree.privacy.ledger_lines import ChainHead, mark_path
from steadytree.privacy.witness import Witness
from tests.privacy.test_ledger_lines import HARMS


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda handle: None)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "patients.ledger"


def both(path):
    return {each: each.read_bytes() for each in (path, mark_path(path))}


def restore(files):
    for each, content in files.items():
        each.write_bytes(content)


def is_refused(path, **more):
    with pytest.raises(BudgetError, match=r"older copy .* restore the newest"):
        Ledger(path, 1.0, **more)
    return True


def test_copied_back_after_each_answer_a_ledger_answers_once(path):
    """The attack that once won 20 answers of 0.9 from a budget of 1."""
    ledger = Ledger(path, 1.0)
    older, answered = both(path), 0
    for _ in range(20):
        for account in (lambda: ledger, lambda: Ledger(path, 1.0)):  # a gateway; a new process
            try:
                account().spend(0.9, "tree")
                answered += 1
            except BudgetError:
                pass
        restore(older)
    assert answered == 1


def test_a_ledger_object_remembers_where_no_file_does(path, monkeypatch, tmp_path):
    ledger = Ledger(path, 1.0)
    older = both(path)
    ledger.spend(0.9, "tree")
    restore(older)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another user"))
    with pytest.raises(BudgetError, match="older copy"):
        ledger.spend(0.9, "tree")
    assert Ledger(path, 1.0).spent == 0  # nobody can notice


def test_two_copies_are_not_both_spent(path, tmp_path):
    Ledger(path, 1.0).spend(0.1, "tree")
    fork = tmp_path / "fork" / path.name
    fork.parent.mkdir()
    for each in both(path):
        shutil.copy(each, fork.parent)
    Ledger(fork, 1.0).spend(0.5, "tree")
    assert is_refused(path)
    assert Ledger(fork, 1.0).spent == 0.6


def test_a_witness_elsewhere_has_to_be_named_from_then_on(path, tmp_path, monkeypatch):
    witness = tmp_path / "share" / "witness"
    witness.parent.mkdir()
    Ledger(path, 1.0).spend(0.1, "tree")
    ledger = Ledger(path, 1.0, witness=witness)
    before = both(path) | {witness: witness.read_bytes()}
    ledger.spend(0.3, "tree")
    newest = both(path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another user"))
    with pytest.raises(BudgetError, match="has a witness, and it was not given or is lost: name"):
        Ledger(path, 1.0)
    witness.rename(tmp_path / "moved")
    with pytest.raises(BudgetError, match="not given or is lost"):
        Ledger(path, 1.0, witness=witness)
    (tmp_path / "moved").rename(witness)
    restore({each: before[each] for each in newest})
    assert is_refused(path, witness=witness)
    restore(newest)
    assert Ledger(path, 1.0, witness=witness).spent == 0.4
    other = tmp_path / "other.ledger"
    assert is_refused(other, witness=witness)  # of another ledger
    assert not other.exists()
    assert not mark_path(other).exists()
    assert stat.S_IMODE(witness.stat().st_mode) == 0o600


def test_a_witness_that_cannot_be_written_lets_nothing_out(path, tmp_path, monkeypatch):
    witness = tmp_path / "witness"
    ledger = Ledger(path, 1.0, witness=witness)

    def full(*_, **__):
        raise OSError("full")

    monkeypatch.setattr("steadytree.privacy.witness.write_text_atomically", full)
    with pytest.raises(OSError, match="full"):
        ledger.spend(0.5, "tree")
    assert ledger.spent == 0.5  # it counts: the line was written


def test_a_ledger_works_without_a_home(path, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("", "utf-8")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    Ledger(path, 1.0).spend(0.5, "tree")
    assert Ledger(path, 1.0).spent == 0.5


def test_a_witness_only_rises(tmp_path):
    witness = Witness(tmp_path / "witness")
    for number, noted in ((3, 3), (1, 3), (4, 4)):
        witness.note(ChainHead("0" * 32, number, "f" * 64))
        assert witness.read().number == noted


def test_files_that_others_could_read_are_closed(path):
    Ledger(path, 1.0)
    for each in both(path):
        each.chmod(0o644)
    Ledger(path, 1.0)
    assert all(stat.S_IMODE(each.stat().st_mode) == 0o600 for each in both(path))


# ---- attacks at random: every file replaced by an older one, one of a fork, a damaged one ----
def grow(folder, rng, lines):
    """A ledger with a witness elsewhere, and all that was ever in its files."""
    path = folder / "patients.ledger"
    versions = []
    for _ in range(lines):
        Ledger(path, 1e3, witness=folder / "w").spend(rng.choice([0.5, 1.0, 2.0]), "tree")
        versions.append([each.read_bytes() for each in (path, mark_path(path))])
    return path, versions


def attack(path, versions, forked, rng):
    """Both files as an attacker leaves them; None removes one."""
    found = []
    together = rng.choice(versions)  # the usual attack: both from one backup
    for which in range(2):
        content = rng.choice([together, together, rng.choice(versions), rng.choice(forked)])[which]
        found.append(rng.choice(HARMS)(content, rng) if rng.random() < 0.3 else content)
    if rng.random() < 0.02:
        found[rng.randrange(2)] = None
    return found


@pytest.mark.parametrize("seen_by", ["user", "witness"])
@pytest.mark.parametrize("trials", [200, pytest.param(5_000, marks=pytest.mark.slow)])
def test_no_rollback_fork_or_damage_wins_budget(tmp_path, monkeypatch, seen_by, trials):
    rng = random.Random(trials)
    for name in ("one", "fork"):
        (tmp_path / name).mkdir()
    path, versions = grow(tmp_path / "one", rng, 6)
    restored = tmp_path / "fork" / path.name  # a fork of the same ledger, which went another way
    restore(dict(zip((restored, mark_path(restored)), versions[2], strict=True)))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "forger"))
    (tmp_path / "fork" / "w").write_bytes((tmp_path / "one" / "w").read_bytes())
    forked = [versions[2]]
    for _ in range(3):
        (tmp_path / "fork" / "w").unlink()  # the forger makes up a witness
        Witness(tmp_path / "fork" / "w").note(ChainHead("0" * 32, 0, "0" * 64))
        monkeypatch.setattr(Witness, "check", lambda self, known: None)
        Ledger(restored, 1e3, witness=tmp_path / "fork" / "w").spend(0.25, "tree")
        forked.append([each.read_bytes() for each in (restored, mark_path(restored))])
    monkeypatch.undo()
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    if seen_by == "witness":
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another user"))
    newest, opened = versions[-1], 0
    spent = Ledger(path, 1e3, witness=tmp_path / "one" / "w").spent
    for trial in range(trials):
        for each, content in zip(
            (path, mark_path(path)), attack(path, versions, forked, rng), strict=True
        ):
            each.unlink(missing_ok=True)
            if content is not None:
                each.write_bytes(content)
        if seen_by == "user":  # the witness elsewhere is rolled back too, or gone
            (tmp_path / "one" / "w").unlink(missing_ok=True)
            if rng.random() < 0.9:
                Witness(tmp_path / "one" / "w").note(ChainHead(_id(newest), 1, _head(newest, 1)))
        try:
            ledger = Ledger(path, 1e3, witness=tmp_path / "one" / "w")
        except ValueError:
            continue
        opened += 1
        assert ledger.spent == spent, trial
    assert 0 < opened < trials / 2


def _id(version):
    return version[0].split(b" ")[4].decode()


def _head(version, number):
    return version[0].splitlines()[number - 1][-64:].decode()
