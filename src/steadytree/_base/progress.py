"""Progress: the current step, a bar and the time left, in a terminal or a notebook."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

PATIENCE = 2.0  # seconds before anything is shown
OnProgress = Callable[..., None]  # of a message and, where it is known, the share that is done
_active: "list[Progress]" = []


class Progress:
    """Shows the current step on standard error after 2 seconds; nothing where output is a file."""

    def __init__(self, patience: float = PATIENCE, console: Any = None) -> None:
        self._message = ""
        self._share: float | None = None
        self._console = console
        self._bar: Any = None  # once it is shown
        self._task: Any = None
        self._compiling: str | None = None
        self._n_compiled = 0
        self._over = False
        self._lock = threading.Lock()
        self._timer = threading.Timer(patience, self._start)
        self._timer.daemon = True

    def update(self, message: str, share: float | None = None) -> None:
        """Show this step from now on, with the share of the whole that is done."""
        with self._lock:
            self._message, self._share = message, share if share is not None else self._share
            self._redraw()

    def compiling(self, name: str | None) -> None:
        """Say that a loop is compiled, which happens at its first use; None when that is over."""
        with self._lock:
            self._compiling, self._n_compiled = name, self._n_compiled + (name is not None)
            self._redraw()

    @property
    def text(self) -> str:
        """What is shown beside the bar."""
        if self._compiling is None:
            return self._message
        return (
            f"{self._message} (first use: compiling {self._compiling}, loop {self._n_compiled}; "
            "about a minute in all, once; `steadytree warm-up` does it beforehand)"
        )

    def __enter__(self) -> "Progress":
        self._timer.start()
        _active.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        self._timer.cancel()
        _active.remove(self)
        with self._lock:
            self._over = True
            if self._bar is not None:
                self._bar.stop()

    def _redraw(self) -> None:
        if self._bar is not None:
            total = None if self._share is None else 1.0
            self._bar.update(
                self._task, description=self.text, completed=self._share or 0.0, total=total
            )

    def _start(self) -> None:
        from rich import progress
        from rich.console import Console

        console = self._console or Console(stderr=True)
        with self._lock:
            if self._over or not (console.is_terminal or console.is_jupyter):
                return
            columns = (
                progress.TextColumn("{task.description}"),
                progress.BarColumn(),
                progress.TimeRemainingColumn(elapsed_when_finished=True),
            )
            self._bar = progress.Progress(*columns, console=console, transient=True)
            self._task = self._bar.add_task(self.text, total=None)
            self._bar.start()
            self._redraw()


@contextmanager
def following(progress: Any) -> Iterator[OnProgress]:
    """A function to call with each step, for the parameter `progress` of a public function.

    None shows a bar in a terminal or notebook once it takes 2 seconds, True at once, False nothing;
    a callable is called with each message.
    """
    if isinstance(progress, Progress):  # of a caller that goes on after it
        yield progress.update
    elif progress is False:
        yield lambda message, share=None: None
    elif callable(progress):
        yield lambda message, share=None: progress(message)
    elif progress is None or progress is True:
        with Progress(0.0 if progress else PATIENCE) as shown:
            yield shown.update
    else:
        raise TypeError(
            "progress must be True, False, None or a function of a message, got "
            f"{type(progress).__name__}."
        )


def report_compiling(name: str | None) -> None:
    """Tell whoever shows progress that a loop is compiled, or no longer."""
    for one in _active[-1:]:
        one.compiling(name)
