"""Fixtures: a gateway in memory, and the keys of a study."""

import pytest

from tests.federated.hospitals import NAMES, gateway_of


@pytest.fixture
def gateway(tmp_path):
    with gateway_of(tmp_path) as found:
        yield found


@pytest.fixture
def keys(tmp_path):
    pytest.importorskip("cryptography")
    from steadytree.federated.keys import make_study_keys

    make_study_keys(tmp_path / "keys", NAMES, ["localhost", "127.0.0.1"])
    return tmp_path / "keys"
