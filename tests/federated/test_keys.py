"""No private key gets out: not into output, errors, logs, or files that are sent."""

import base64
import logging
import pathlib

import pytest

from tests.federated import hospitals


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
    pytest.importorskip("cryptography")
    caplog.set_level(logging.DEBUG)
    hospitals.SCHEMA.save("schema.toml")
    hospitals.write_files(tmp_path, n_rows=60)
    hospitals.write_plan()
    rows = ("--data", "north.csv", "--schema", "schema.toml", "--ledger", "l", "--budget", 4)
    printed = [run("private", "keys", "plan.toml"), run("private", "ask", "plan.toml")]
    question = next(pathlib.Path("questions").glob("*.0000.north.question.json"))
    asked = (question, "--keys", "keys/north", *rows)
    printed.append(run("private", "answer", *asked, "--new-ledger"))
    printed.append(run("private", "answer", question, "--keys", "keys/south", *rows))  # refused
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
