"""Calls in parallel processes give what a loop gives, in its order."""

import pytest

from steadytree._base.parallel import BATCHES_A_WORKER, LARGEST_BATCH, Shared, fan_out


@pytest.mark.parametrize("n_items", [0, 1, 7, BATCHES_A_WORKER * LARGEST_BATCH * 2 + 1])
def test_results_are_those_of_a_loop_in_order(n_items):
    items = list(range(n_items))
    assert fan_out(pow, items, 2) == [item**2 for item in items]


def test_processes_change_nothing():
    items = list(range(11))
    assert fan_out(divmod, items, 3, n_jobs=2) == [divmod(item, 3) for item in items]


def test_shared_arguments_count_as_large():
    assert Shared((1,)).__sizeof__() > 1_000_000


def test_squares():
    assert fan_out(pow, [1, 2, 3], 2) == [1, 4, 9]
