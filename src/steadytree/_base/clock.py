"""Clock and Limit: the time, and how much time and work a computation may take.

Code that waits or keeps a deadline is given a clock, so that a test can pass its own.
"""

import math
import threading
import time


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

    def half(self) -> "Limit":
        """A limit of half of what is left; what is spent of it is spent of the whole."""
        steps = None if self._steps is None else (self._steps - self._spent) // 2
        part = Limit(self.left / 2, steps, self._clock)
        part._whole = self
        return part

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return self._clock.now() - self._start

    @property
    def left(self) -> float:
        """Seconds that are left, at least 0."""
        return max(self._seconds - self.elapsed, 0.0)

    def spend(self) -> str:
        """Begin one more step; returns the limit that forbids it, or an empty text."""
        with self._turn:
            if self._steps is not None and self._spent >= self._steps:
                return "node limit"
            self._spent += 1
        if self._whole is not None:
            self._whole.spend()
        return "" if self.left > 0 else "time limit"
