"""Progress: a line on the terminal while something takes long."""

import threading
from types import TracebackType
from typing import Any

PATIENCE = 2.0  # seconds without a word


class Progress:
    """Says what is being done, on standard error, if that is a terminal and it takes over 2 s.

    Examples
    --------
    >>> with Progress() as progress:
    ...     progress.say("reading data.csv")
    """

    def __init__(self, patience: float = PATIENCE):
        self._message = ""
        self._status: Any = None
        self._over = False
        self._lock = threading.Lock()
        self._timer = threading.Timer(patience, self._show)
        self._timer.daemon = True

    def say(self, message: str) -> None:
        """What is done from now on."""
        with self._lock:
            self._message = message
            if self._status is not None:
                self._status.update(message)

    def __enter__(self) -> "Progress":
        self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        with self._lock:
            self._over = True
            if self._status is not None:
                self._status.stop()

    def _show(self) -> None:
        from rich.console import Console

        console = Console(stderr=True)
        with self._lock:
            if console.is_terminal and not self._over:
                self._status = console.status(self._message)
                self._status.start()
