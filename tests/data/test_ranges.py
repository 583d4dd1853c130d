"""Categories that are ranges of numbers: their order."""

import pytest

from steadytree.data.ranges import order_of_ranges


@pytest.mark.parametrize(
    ("categories", "ranks"),
    [
        (["10-14", "15-19", "5-9"], [1, 2, 0]),
        (["30 to 39", "<30", "40+", ">= 50"], [1, 0, 2, 3]),
        (["under 18", "18–64", "over 64"], [0, 1, 2]),
        (["<=5", "5-9", "<5", ">5"], [1, 2, 0, 3]),
        (["-1.5-0", "0-1.5", "1.5"], [0, 1, 2]),
        (["10", "20", "30-40"], None),  # rather codes
        (["10-14", "15-19"], None),
        (["10-14", "15-19", "unknown"], None),
        (["1-2", "1 - 2", "3-4"], None),
        (["2021-03-04", "2021-03-05", "2021-03-06"], None),
    ],
)
def test_categories_that_are_ranges_of_numbers_have_an_order(categories, ranks):
    found = order_of_ranges(categories)
    assert (found if found is None else found.tolist()) == ranks
