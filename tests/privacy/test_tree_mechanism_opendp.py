"""The whole-tree mechanism as an OpenDP measurement."""

import pytest

from steadytree.data.splits import SplitTable
from steadytree.privacy.mechanisms import SecureNoise, SeededNoise
from steadytree.privacy.tree_mechanism import whole_tree_measurement
from tests.federated.test_holder import SCHEMA

CANDIDATES = SplitTable.declared(SCHEMA.space, 4)


@pytest.mark.parametrize(
    "rows", [[[0, 0, 0, 2]], [[0, 0, 0, -1]], [[9, 0, 0, 0]], [[0, 0, 0]], [[0, 0, 0, True]], "x"]
)
def test_a_measurement_refuses_what_is_outside_its_domain(rows):
    pytest.importorskip("opendp")
    measurement = whole_tree_measurement(CANDIDATES, 2, 0.5, 1, SecureNoise())
    assert not measurement.input_domain.member(rows)
    with pytest.raises(Exception, match="bins of the candidates"):
        measurement(rows)


def test_a_measurement_takes_no_rows_and_no_seeded_noise():
    pytest.importorskip("opendp")
    assert whole_tree_measurement(CANDIDATES, 2, 0.5, 1, SecureNoise())([]) is not None
    with pytest.raises(ValueError, match="needs private noise"):
        whole_tree_measurement(CANDIDATES, 2, 0.5, 1, SeededNoise(0))
