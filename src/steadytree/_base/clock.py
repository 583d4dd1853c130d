"""Clock and Limit: how time is told, and how much time and work something may take.

Whoever waits or keeps a deadline is handed a clock, so that a test can hand in one of its own.
"""

import math
import threading
import time


class Clock:
    """The machine's own: seconds since some moment, which never go backwards, and waiting."""

    def now(self) -> float:
        """Seconds since some moment."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait; not at all where the seconds are over already."""
        time.sleep(max(seconds, 0.0))


CLOCK = Clock()


class Limit:
    """Seconds and steps of work that something may take from now on, in any number of threads.

    Parameters
    ----------
    seconds : float, default=math.inf
    steps : int, optional
        By default as many as it takes.
    clock : Clock, optional

    Examples
    --------
    >>> limit = Limit(steps=2)
    >>> [limit.spend() for _ in range(3)]
    ['', '', 'node limit']
    """

    def __init__(
        self, seconds: float = math.inf, steps: int | None = None, clock: Clock = CLOCK
    ) -> None:
        self._seconds, self._steps, self._clock = seconds, steps, clock
        self._start, self._spent = clock.now(), 0
        self._turn = threading.Lock()

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return self._clock.now() - self._start

    @property
    def left(self) -> float:
        """Seconds until the end, 0 after it."""
        return max(self._seconds - self.elapsed, 0.0)

    def spend(self) -> str:
        """Begin one more step; which limit forbids it, or nothing where it may be done."""
        with self._turn:
            if self._steps is not None and self._spent >= self._steps:
                return "node limit"
            self._spent += 1
        return "" if self.left > 0 else "time limit"
