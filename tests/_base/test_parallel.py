"""Calls in parallel processes give what a loop gives, in its order."""

import pytest

from steadytree._base.parallel import (
    BATCHES_A_WORKER,
    LARGEST_BATCH,
    LEAST_WORK,
    Shared,
    allow_threads,
    fan_out,
    in_threads,
)


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


@pytest.mark.parametrize("n_jobs", [None, 1, 2, 3])
def test_ranges_of_threads_make_up_the_whole(n_jobs):
    with allow_threads(n_jobs):
        ranges = in_threads(lambda first, last: (first, last), 10, 10 * LEAST_WORK)
    assert [k for first, last in ranges for k in range(first, last)] == list(range(10))
    assert len(ranges) == (n_jobs or 1)


def test_little_work_is_done_by_one_thread():
    with allow_threads(4):
        assert in_threads(lambda first, last: last, 100, LEAST_WORK) == [100]
        assert in_threads(lambda first, last: last, 0, 0) == [0]


def test_no_threads_are_refused():
    with pytest.raises(ValueError, match="n_jobs must be None, -1 or a number of workers, got 0"):
        allow_threads(0)
    with pytest.raises(ValueError, match="n_jobs must be None, -1 or a number of workers, got 0"):
        fan_out(pow, [1, 2], 2, n_jobs=0)


def test_a_thread_may_have_several_ranges_and_starts_no_others():
    def nested(first, last):
        return first, last, len(in_threads(lambda a, b: b, 10, 10 * LEAST_WORK))

    with allow_threads(2):
        ranges = in_threads(nested, 10, 10 * LEAST_WORK, 3)
    assert [last - first for first, last, _ in ranges] == [1, 2, 2, 1, 2, 2]
    assert {inside for _, _, inside in ranges} == {1}
