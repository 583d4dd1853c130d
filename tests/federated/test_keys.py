"""Keys: the relay gets its own only, those that sign may be encrypted, and none gets out."""

import base64
import logging
import pathlib
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
from tests.federated import hospitals

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


def secrets_of(folder):
    """The private number of each key as bytes, as hex and in base64; the rest of it is public."""
    serialization = pytest.importorskip("cryptography.hazmat.primitives.serialization")
    for path in folder.rglob("*.key"):
        content = path.read_bytes()
        is_ssh = b"OPENSSH" in content
        read = serialization.load_ssh_private_key if is_ssh else serialization.load_pem_private_key
        key = read(content, password=None)
        raw = (
            key.private_bytes_raw()
            if hasattr(key, "private_bytes_raw")
            else key.private_numbers().private_value.to_bytes(48).lstrip(b"\0")
        )
        yield raw
        yield raw.hex()
        yield base64.b64encode(raw).decode().rstrip("=")[:-1]


def test_no_private_key_is_in_what_is_printed_logged_or_sent(run, tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    hospitals.SCHEMA.save("schema.toml")
    hospitals.write_files(tmp_path, n_rows=60)
    hospitals.write_plan()
    rows = ("--data", "north.csv", "--schema", "schema.toml", "--ledger", "l", "--budget", 4)
    printed = [run("keys", "plan.toml"), run("ask", "plan.toml")]
    question = next(pathlib.Path("questions").glob("*.0000.north.question.json"))
    asked = (question, "--keys", "keys/north", *rows)
    printed.append(run("answer", *asked, "--new-ledger"))
    printed.append(run("answer", question, "--keys", "keys/south", *rows))  # refused
    assert [code for code, _, _ in printed] == [0, 0, 0, 2]
    files = [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".key"]
    assert len(files) > 8
    content = b"".join(path.read_bytes() for path in files)
    text = caplog.text + "".join(out + err for _, out, err in printed) + content.decode("latin-1")
    found = list(secrets_of(tmp_path / "keys"))
    assert len(found) > 9
    for secret in found:
        shown = secret in content if isinstance(secret, bytes) else secret in text
        assert not shown


@pytest.mark.parametrize("public", [True, False])
def test_a_damaged_key_is_refused_in_one_line(tmp_path, public):
    """A changed name of the kind of key is an error of its own in the library."""
    make_holder_keys(tmp_path / "north")
    path = tmp_path / "north" / ("sign.pub" if public else "sign.key")
    path.write_bytes(path.read_bytes().replace(b"ssh-ed25519", b"ssh-ed25529").replace(b"M", b"O"))
    with pytest.raises(ValueError, match="not a signing key"):
        read_key(path, public=public)
