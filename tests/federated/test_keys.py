"""Keys: the relay gets its own only, and those that sign may be encrypted at rest."""

import stat

import pytest

pytest.importorskip("cryptography")
from steadytree.federated.flower.supernode import SuperNode
from steadytree.federated.keys import (
    PASSPHRASE,
    is_signed,
    make_holder_keys,
    make_study_keys,
    read_key,
    renew_certificate,
)

COMMAND = ("private",)


def test_the_relays_folder_has_no_key_that_signs(keys):
    assert {path.name for path in (keys / "north" / "relay").iterdir()} == {
        *("ca.crt", "node.key", "node.pub")
    }
    assert (keys / "north" / "sign.key").is_file()
    assert stat.S_IMODE((keys / "north" / "relay").stat().st_mode) == 0o700


def test_join_refuses_a_folder_with_the_key_that_signs(keys, tmp_path, monkeypatch):
    monkeypatch.setattr("steadytree.federated.flower.supernode.require", lambda *_, **__: None)
    with pytest.raises(ValueError, match=r"key that signs answers.*: move ca.crt and node.key"):
        SuperNode(keys / "north", "a:1", tmp_path / "s")


def test_keys_that_sign_are_encrypted_where_it_is_wanted(tmp_path, monkeypatch):
    make_study_keys(tmp_path / "keys", ["north"], ["127.0.0.1"], b"secret")
    key, public = (tmp_path / "keys" / "coordinator" / f"sign.{end}" for end in ("key", "pub"))
    monkeypatch.delenv(PASSPHRASE, raising=False)
    with pytest.raises(ValueError, match=f"is encrypted: set {PASSPHRASE}"):
        read_key(key)
    monkeypatch.setenv(PASSPHRASE, "another")
    with pytest.raises(ValueError, match="is not the passphrase of"):
        read_key(key)
    monkeypatch.setenv(PASSPHRASE, "secret")
    signature = read_key(key).sign(b"bytes")
    assert is_signed(b"bytes", signature, read_key(public, public=True))
    assert not is_signed(b"other", signature, read_key(public, public=True))
    renew_certificate(key.parent, ["127.0.0.1"])  # the authority's key is encrypted too
    for name, encrypted in (("ca.key", True), ("sign.key", True), ("server.key", False)):
        assert (b"ENCRYPTED" in (key.parent / name).read_bytes()) is encrypted


def test_the_command_makes_renews_and_revokes(run, tmp_path, monkeypatch):
    from tests.federated import hospitals

    hospitals.write_files(tmp_path)
    hospitals.write_plan(tmp_path)
    monkeypatch.delenv(PASSPHRASE, raising=False)
    assert f"set {PASSPHRASE}" in run("keys", "plan.toml", "--encrypt")[2]
    assert run("keys", "plan.toml")[0] == 0
    before = (tmp_path / "keys" / "coordinator" / "server.pem").read_bytes()
    code, out, _ = run("keys", "plan.toml", "--renew", "--revoke", "south")
    assert (code, "server.pem" in out, "revoked" in out) == (0, True, True)
    assert (tmp_path / "keys" / "coordinator" / "server.pem").read_bytes() != before
    assert not (tmp_path / "keys" / "coordinator" / "south.sign.pub").exists()
    code, _, err = run("keys", "plan.toml", "--revoke", "south")
    assert (code, "was revoked before" in err) == (2, True)


def test_a_holder_makes_its_own_keys(tmp_path):
    make_holder_keys(tmp_path / "north")
    assert (tmp_path / "north" / "relay" / "node.key").is_file()
    with pytest.raises(ValueError, match="exists: name another folder"):
        make_holder_keys(tmp_path / "north")
