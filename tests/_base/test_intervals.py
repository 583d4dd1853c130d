"""Wilson's interval against scipy's."""

import pytest
from scipy.stats import binomtest

from steadytree._base.intervals import difference_interval, wilson_interval


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize(("correct", "rows"), [(0, 5), (5, 5), (171, 200), (1, 1), (33, 1000)])
def test_interval_is_that_of_wilson(correct, rows, level):
    expected = binomtest(correct, rows).proportion_ci(level, method="wilson")
    found = wilson_interval(correct, rows, level)
    assert found == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_nine_of_ten():
    assert wilson_interval(9, 10) == pytest.approx((0.596, 0.982), abs=5e-4)


def test_interval_of_a_difference_equals_the_published_examples():
    # Newcombe 1998, table II, method 10: 56/70 - 48/80, 9/10 - 3/10, 10/10 - 0/10
    assert difference_interval((56, 70), (48, 80)) == pytest.approx((0.0524, 0.3339), abs=5e-5)
    assert difference_interval((9, 10), (3, 10)) == pytest.approx((0.1705, 0.8090), abs=5e-5)
    assert difference_interval((10, 10), (0, 10)) == pytest.approx((0.6075, 1.0), abs=5e-5)
