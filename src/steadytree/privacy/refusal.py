"""Refusals in the log: nobody should be able to try things unseen."""

import contextlib
import logging
from collections.abc import Iterator


@contextlib.contextmanager
def logged_refusal(log: logging.Logger, what: str) -> Iterator[None]:
    """Write a refusal, which must say nothing of rows, into the log on its way to the caller."""
    try:
        yield
    except (TypeError, ValueError) as error:
        log.warning("refused %s: %s", what, error)
        raise
