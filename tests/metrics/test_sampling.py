import numpy as np
import pytest

from steadytree.metrics.sampling import hold_out


def test_every_class_gives_its_share():
    y = np.repeat(["a", "b", "c"], [100, 50, 10])
    held = hold_out(y, 0.3, seed=1)
    assert [int(held[y == label].sum()) for label in "abc"] == [30, 15, 3]


def test_same_seed_same_rows():
    y = np.arange(100) % 3
    np.testing.assert_array_equal(hold_out(y, seed=5), hold_out(y, seed=5))
    assert (hold_out(y, seed=5) != hold_out(y, seed=6)).any()


@pytest.mark.parametrize("share", [0.3, 0.99])
def test_a_class_keeps_a_row_for_fitting(share):
    y = np.array(["a"] * 20 + ["b"] + ["c"] * 2)
    held = hold_out(y, share)
    assert set(y[~held]) == {"a", "b", "c"}


@pytest.mark.parametrize("share", [0, 1, -0.5])
def test_share_must_leave_both_parts(share):
    with pytest.raises(ValueError, match="between 0 and 1"):
        hold_out([0, 1], share)
