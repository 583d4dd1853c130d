"""Limits of time and work, with a clock that is told how to go."""

import math
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from steadytree._base.clock import CLOCK, CPU_CLOCK, Limit
from tests._base.clocks import ToldClock


def test_the_machines_clock_never_goes_backwards_and_waits():
    before = CLOCK.now()
    CLOCK.sleep(0.01)
    CLOCK.sleep(-1.0)  # too late to wait
    assert CLOCK.now() - before >= 0.01 - time.get_clock_info("monotonic").resolution


def test_seconds_are_over_when_they_are_over():
    clock = ToldClock()
    clock.sleep(100.0)  # a limit begins when it is made
    limit = Limit(3.0, clock=clock)
    assert (limit.elapsed, limit.left, limit.spend()) == (0.0, 3.0, "")
    clock.sleep(2.0)
    assert (limit.elapsed, limit.left, limit.spend()) == (2.0, 1.0, "")
    clock.sleep(1.0)
    assert (limit.elapsed, limit.left, limit.spend()) == (3.0, 0.0, "time limit")
    clock.sleep(1.0)
    assert (limit.elapsed, limit.left, limit.spend()) == (4.0, 0.0, "time limit")


def test_without_limits_nothing_ends():
    clock = ToldClock(tick=1e9)
    limit = Limit(clock=clock)
    assert {limit.spend() for _ in range(1000)} == {""}
    assert limit.left == math.inf


@pytest.mark.parametrize("steps", [1, 7])
def test_as_many_steps_as_allowed(steps):
    limit = Limit(steps=steps, clock=ToldClock())
    assert [limit.spend() for _ in range(steps + 2)] == [""] * steps + ["node limit"] * 2


def test_threads_together_make_no_more_steps_than_allowed():
    limit = Limit(steps=500)
    with ThreadPoolExecutor(8) as pool:
        allowed = pool.map(lambda _: sum(limit.spend() == "" for _ in range(200)), range(8))
        assert sum(allowed) == 500


def test_the_limit_that_forbids_a_step_is_named():
    limit = Limit(steps=2)
    assert [limit.spend() for _ in range(3)] == ["", "", "node limit"]


def test_the_clock_of_the_process_counts_its_work(monkeypatch):
    monkeypatch.setattr(time, "process_time", lambda: 7.0)
    assert CPU_CLOCK.now() == 7.0


def test_half_of_a_limit_is_spent_of_the_whole():
    whole = Limit(10.0, 7, ToldClock())
    half = whole.half()
    assert half.left == 5.0
    assert [half.spend() for _ in range(4)] == ["", "", "", "node limit"]
    assert [whole.spend() for _ in range(5)] == ["", "", "", "", "node limit"]
    assert Limit().half().spend() == ""
