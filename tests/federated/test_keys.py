"""No private key gets out: not into output, errors, logs, or files that are sent."""

import base64
import logging
import pathlib
import re

import pytest

from tests.federated import hospitals


def secrets_of(folder):
    """Parts of every private key as it could be written: lines of PEM, and bytes as hex."""
    for path in folder.rglob("*.key"):
        body = "".join(re.findall(r"^[A-Za-z0-9+/=]+$", path.read_text("ascii"), flags=re.M))
        raw = base64.b64decode(body)
        yield body[-44:]
        yield raw[-24:].hex()
        yield raw[-24:]


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
