"""The attacks of the study of three hospitals, small; `attacks.py` there runs them at full size."""

import importlib.util
import pathlib
import sys

import numpy as np
import pytest

pytest.importorskip("cryptography")
SCRIPT = pathlib.Path(__file__).parents[2] / "studies" / "three_hospitals" / "attacks.py"


@pytest.fixture(scope="module")
def attacks():
    spec = importlib.util.spec_from_file_location("attacks", SCRIPT)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_fuzzed_messages_and_files_are_refused_in_one_line(attacks):
    refused, accepted, _, faults = attacks.run_fuzz(1_000, seed=1)
    assert faults == []
    assert refused > 100
    assert accepted > 100  # by a gateway, with a code


def test_the_audit_of_times_finds_what_is_there(attacks):
    rng = np.random.default_rng(0)
    same = [rng.normal(1.0, 0.1, 4_000) for _ in range(2)]
    assert attacks.audit(same)[0] < 0.2
    apart = [same[0], same[1] + 0.2]
    assert attacks.audit(apart)[0] > 1.0


@pytest.mark.skipif(sys.platform != "linux", reason="needs fork")
@pytest.mark.slow
def test_a_gateway_killed_at_random_moments_loses_and_doubles_nothing(attacks):
    class Asked:
        times = 20

    assert attacks.kills(Asked)
