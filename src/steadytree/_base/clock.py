"""Clock and Limit: the time, and how much time and work a computation may take.

Code that waits or keeps a deadline is given a clock, so that a test can pass its own.
"""

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

FADING = 0.7  # of what a kind of step took at most, from one step of it to the next


class Clock:
    """The monotonic clock of the machine."""

    def now(self) -> float:
        """Seconds since an arbitrary start; never decreases."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait; return at once where `seconds` is negative."""
        time.sleep(max(seconds, 0.0))


class CpuClock(Clock):
    """Seconds that this process was at work, in all its threads."""

    def now(self) -> float:
        """Seconds at work since an arbitrary start."""
        return time.process_time()


CLOCK, CPU_CLOCK = Clock(), CpuClock()


class Limit:
    """Seconds and steps of work that may be used from now on, shared by any number of threads.

    Without `steps` their number is not limited.
    """

    def __init__(
        self, seconds: float = math.inf, steps: int | None = None, clock: Clock = CLOCK
    ) -> None:
        self._seconds, self._steps, self._clock = seconds, steps, clock
        self._start, self._spent = clock.now(), 0
        self._turn = threading.Lock()
        self._whole: Limit | None = None
        self._reason = ""  # why it ended before
        self._ending = 0.0  # seconds that what comes after the last step will take
        self._took: dict[str, float] = {}  # seconds of the last steps, by kind
        self._begun: dict[int, tuple[str, float]] = {}  # by thread: the step under way

    def half(self) -> "Limit":
        """A limit of half of what is left; what is spent of it is spent of the whole."""
        steps = None if self._steps is None else (self._steps - self._spent) // 2
        part = Limit(self.left / 2, steps, self._clock)
        part._whole = self
        return part

    def end(self, reason: str) -> None:
        """Forbid all further steps, of the whole as well, such as where the user interrupts."""
        self._reason = reason
        if self._whole is not None:
            self._whole.end(reason)

    @property
    def seconds(self) -> float:
        """Seconds that may be used in all."""
        return self._seconds

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return self._clock.now() - self._start

    @property
    def left(self) -> float:
        """Seconds that are left, at least 0."""
        return max(self._seconds - self.elapsed, 0.0)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Seconds that do not count, nor for the step under way."""
        before = self._clock.now()
        yield
        passed, own = self._clock.now() - before, threading.get_ident()
        self._start += passed
        if own in self._begun:
            kind, start = self._begun[own]
            self._begun[own] = kind, start + passed

    @contextmanager
    def rehearsed(self) -> Iterator[None]:
        """What is done here will be done again after the last step, which leaves time for it."""
        before = self._clock.now()
        yield
        self._ending = max(self._ending, self._clock.now() - before)

    def spend(self, kind: str = "") -> str:
        """Begin one more step; returns the limit that forbids it, or an empty text.

        A step of a named kind is forbidden, too, where it would end after the limit if it took as
        long as the last ones of its kind.
        """
        if self._reason:
            return self._reason
        now = self._clock.now()
        with self._turn:
            if self._steps is not None and self._spent >= self._steps:
                return "node limit"
            self._spent += 1
            needed = self._next_of(kind, now)
        if self._whole is not None:
            self._whole.spend()
        left = self._start + self._seconds - now - self._ending
        return "" if left > needed else "time limit"

    def _next_of(self, kind: str, now: float) -> float:
        """Seconds that a step of this kind will take, to go by the last ones; 0 if unknown."""
        own = threading.get_ident()
        last, start = self._begun.get(own, ("", now))
        if last:
            self._took[last] = max(now - start, FADING * self._took.get(last, 0.0))
        self._begun[own] = kind, now
        return self._took.get(kind, 0.0)
