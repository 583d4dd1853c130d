"""Clocks of which a test decides how they go: no result hangs on the machine's speed."""

import threading

from steadytree._base.clock import Clock


class ToldClock(Clock):
    """Time passes where somebody waits, and by `tick` seconds at every look; else it stands still.

    How long was waited is in `slept`.
    """

    def __init__(self, tick=0.0):
        self._now, self._tick, self.slept = 0.0, tick, []
        self._turn = threading.Lock()

    def now(self):
        with self._turn:
            self._now += self._tick
            return self._now

    def sleep(self, seconds):
        with self._turn:
            self.slept.append(seconds)
            self._now += max(seconds, 0.0)


class LateInThreads(Clock):
    """No time passes in the main thread; in any other every deadline is over."""

    def now(self):
        return 0.0 if threading.current_thread() is threading.main_thread() else float("inf")
