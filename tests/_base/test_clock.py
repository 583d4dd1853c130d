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


def test_a_step_that_would_end_too_late_is_not_begun():
    clock = ToldClock()
    limit = Limit(10.0, clock=clock)
    assert limit.spend("long") == ""
    clock.sleep(4.0)
    assert limit.spend("short") == ""  # nothing is known of it
    clock.sleep(1.0)
    assert limit.spend("long") == ""  # 5 are left, 4 were needed
    clock.sleep(2.0)
    assert limit.spend("long") == "", "2.8 of 3: what was long once is not forgotten at once"
    clock.sleep(1.0)
    assert limit.spend("short") == ""  # 2 are left, 1 was needed
    assert limit.spend("long") == "", "1.96 of 2"
    clock.sleep(0.5)
    assert limit.spend("long") == ""  # 1.5 are left, 1.37 needed
    clock.sleep(0.25)
    assert limit.spend("long") == ""  # 1.25 are left, .96 needed
    clock.sleep(0.75)
    assert limit.spend("long") == "time limit"  # .5 are left, .75 needed
    assert limit.spend() == ""  # without a kind the time that is left alone counts


def test_the_steps_of_a_thread_are_its_own():
    clock = ToldClock()
    limit = Limit(10.0, clock=clock)
    with ThreadPoolExecutor(1) as pool:
        assert limit.spend("here") == ""
        assert pool.submit(limit.spend, "there").result() == ""
        clock.sleep(6.0)
        assert pool.submit(limit.spend, "here").result() == ""  # the one here has not ended
        assert limit.spend("there") == "time limit"


def test_time_that_does_not_count():
    clock = ToldClock()
    limit = Limit(3.0, clock=clock)
    clock.sleep(1.0)
    with limit.paused():
        clock.sleep(100.0)
    assert (limit.elapsed, limit.left) == (1.0, 2.0)


def test_a_pause_is_no_part_of_the_step_under_way():
    clock = ToldClock()
    limit = Limit(10.0, clock=clock)
    assert limit.spend("step") == ""
    clock.sleep(1.0)
    with limit.paused():
        clock.sleep(100.0)
    clock.sleep(1.0)
    assert limit.spend("step") == ""  # 8 are left, 2 were needed
    assert (limit.elapsed, limit.left) == (2.0, 8.0)


def test_steps_leave_time_for_what_comes_after_the_last():
    clock = ToldClock()
    limit = Limit(10.0, clock=clock)
    assert limit.seconds == 10.0
    with limit.rehearsed():
        clock.sleep(3.0)
    assert limit.spend("step") == ""
    clock.sleep(3.0)
    assert limit.spend() == ""  # 4 are left, the end takes 3
    assert limit.spend("step") == "time limit"  # 3 for the step as well
    clock.sleep(1.0)
    assert limit.spend() == "time limit"
    assert limit.left == 3.0


def test_a_limit_that_was_ended_says_why():
    whole = Limit(10.0, clock=ToldClock())
    half = whole.half()
    assert half.spend() == whole.spend() == ""
    half.end("interrupted")
    assert half.spend() == whole.spend("step") == "interrupted"
