"""SuperNode: what it checks before code that Flower ships may run."""

import os
import pathlib
import threading

import pytest

from steadytree.federated.flower.supernode import check_gateway, plain_environment
from steadytree.federated.transport import GatewayServer
from tests.federated import hospitals
from tests.federated.hospitals import unix_only, with_terms


@unix_only
def test_join_refuses_the_user_of_the_rows_and_a_gateway_that_believes_anyone(
    gateway, keys, tmp_path, monkeypatch
):
    from steadytree.federated.signed_files import message_opener

    monkeypatch.chdir(tmp_path)
    opener = message_opener(keys / "north" / "coordinator.sign.pub", "north")
    path = pathlib.Path("g.sock")
    with pytest.raises(ValueError, match="start it first"):
        check_gateway(path, seconds=0)
    for terms in ({}, {"open_message": opener}):
        server = GatewayServer(with_terms(gateway, **terms), path)
        thread = threading.Thread(target=server.serve)
        thread.start()
        try:
            with pytest.raises(ValueError, match="another user"):
                check_gateway(path)
            if terms:
                check_gateway(path, same_user=True)
                monkeypatch.setattr(os, "getuid", lambda: -1)
                check_gateway(path)
            else:
                with pytest.raises(ValueError, match="answers unsigned messages"):
                    check_gateway(path, same_user=True)
        finally:
            server.stop()
            thread.join(hospitals.PATIENCE)


def test_shipped_code_does_not_get_the_environment(monkeypatch):
    monkeypatch.setenv("DATABASE_PASSWORD", "secret")
    monkeypatch.setenv("FLWR_X", "1")
    assert "secret" not in plain_environment().values()
    assert plain_environment()["FLWR_X"] == "1"
