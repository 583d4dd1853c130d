"""`steadytree private rehearse`: real processes, one killed, and an account that is right."""

import json

import pytest

from tests.federated.hospitals import unix_only

pytest.importorskip("opendp")
pytest.importorskip("cryptography")
COMMAND = ("private", "rehearse")


@unix_only
@pytest.mark.slow
def test_a_rehearsal_kills_a_gateway_and_accounts_for_everything(run, tmp_path):
    code, out, err = run("--rows", 300, "--folder", "trial", "--json")
    assert (code, err) == (0, "")
    account = json.loads(out)
    assert set(account["ledgers"]) == {"north", "south", "east"}
    for one in account["ledgers"].values():
        assert one["spent"] == pytest.approx(1.0)
        assert one["checkpoint"] == one["lines"]
        assert one["receipts"] > 0
    assert (tmp_path / "trial" / "schema.toml").is_file()


def test_a_folder_with_files_is_refused(run, tmp_path):
    (tmp_path / "trial").mkdir()
    (tmp_path / "trial" / "file").touch()
    code, _, err = run("--folder", "trial")
    assert (code, "is not empty: name another" in err) == (2, True)
