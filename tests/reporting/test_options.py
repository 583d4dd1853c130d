"""Limits by name, as numbers or shares."""

import pytest

from steadytree.reporting.options import Limits, Signature, SignOff


def test_shares_are_read_as_numbers():
    read = Limits.of({"min_accuracy": "90%", "max_leaves": 12}).values
    assert read == {"min_accuracy": 0.9, "max_leaves": 12.0}


def test_an_unknown_limit_is_refused_with_a_similar_one():
    with pytest.raises(ValueError, match="'min_acuracy': did you mean 'min_accuracy'"):
        Limits.of({"min_acuracy": 0.9})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("min_acuracy = 0.9", "unknown limit 'min_acuracy': did you mean 'min_accuracy'"),
        ("luck = 0.9", "unknown limit 'luck': known are min_accuracy"),
        ("min_accuracy = 90", "min_accuracy must be a share such as 5% or 0.05, got 90"),
        ("max_leaves = 'few'", "max_leaves must be a number of at least 0, got 'few'"),
        ("max_flips = true", "max_flips must be a share"),
        ("min_accuracy =", "is not a valid TOML file"),
        ("", "no limit is stated"),
    ],
)
def test_wrong_limits_are_refused(tmp_path, text, message):
    (tmp_path / "limits.toml").write_text(text, "utf-8")
    with pytest.raises(ValueError, match=message):
        Limits.of(tmp_path / "limits.toml")


def test_limits_may_stand_in_a_table_and_in_per_cent(tmp_path):
    (tmp_path / "limits.toml").write_text(
        '[limits]\nmin_accuracy = "90 %"\nmax_depth = 4\n', "utf-8"
    )
    found = Limits.of(tmp_path / "limits.toml")
    assert found.values == {"min_accuracy": 0.9, "max_depth": 4.0}


# ---- sign-off ----
SIGNED = """
title = "Second opinion"
owner = "Risk office"
intended_use = "triage"
version = 1.3
decision = "approved"
[[signatures]]
name = "A. Person"
role = "validator"
date = 2026-02-01
"""


def test_sign_off_is_read_from_a_file_or_a_mapping(tmp_path):
    (tmp_path / "s.toml").write_text(SIGNED, "utf-8")
    found = SignOff.of(tmp_path / "s.toml")
    assert found.version == "1.3"
    assert found.signatures == (Signature("A. Person", "validator", "2026-02-01"),)
    assert SignOff.of(found.to_dict() | {"signatures": []}).owner == "Risk office"
    assert SignOff.of(found) is found
    assert SignOff.of(None) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('ownr = "x"', "unknown key 'ownr': known are title, owner"),
        ("owner = [1]", "owner must be text"),
        ('signatures = "x"', "signatures must be tables"),
        ('[[signatures]]\nrole = "x"', "each of the signatures needs a name"),
        ('[[signatures]]\nnome = "x"', "unknown key 'nome': known are name, role, date"),
        ("owner =", "is not a valid TOML file"),
    ],
)
def test_a_wrong_sign_off_is_refused(tmp_path, text, message):
    (tmp_path / "s.toml").write_text(text, "utf-8")
    with pytest.raises(ValueError, match=message):
        SignOff.of(tmp_path / "s.toml")
    with pytest.raises(TypeError, match="sign_off must be a mapping or a TOML file, got int"):
        SignOff.of(1)
