"""Many small calls in parallel processes, through joblib; one large loop in several threads."""

import contextlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from joblib import Parallel, delayed, effective_n_jobs, parallel_config

from steadytree._base.progress import OnProgress

LARGEST_BATCH = 25  # calls: enough to hide a scheduler's overhead, few enough to balance the load
BATCHES_A_WORKER = 4


def check_jobs(n_jobs: int | None) -> None:
    """Refuse no worker at all."""
    if n_jobs == 0:
        raise ValueError("n_jobs must be None, -1 or a number of workers, got 0.")


class Shared:
    """Arguments of every call; reports a large size, so that Dask sends it to a worker once."""

    def __init__(self, values: tuple[Any, ...]) -> None:
        self.values = values

    def __sizeof__(self) -> int:
        return 10_000_000


def fan_out(
    function: Callable[..., Any],
    items: Sequence[Any],
    *shared: Any,
    n_jobs: int | None = None,
    verbose: int = 0,
    on_progress: OnProgress | None = None,
) -> list[Any]:
    """``[function(item, *shared) for item in items]``, on as many processes as joblib has.

    Inside ``joblib.parallel_config("dask")`` that is a cluster; results do not depend on it. The
    function must be defined in a module, so that it can be pickled. `on_progress` hears of each
    batch that is done.
    """
    check_jobs(n_jobs)
    n_workers = effective_n_jobs(n_jobs)
    size = min(LARGEST_BATCH, -(-len(items) // (BATCHES_A_WORKER * n_workers))) or 1
    batches = [items[first : first + size] for first in range(0, len(items), size)]
    given = Shared(shared)
    jobs = (delayed(_run)(function, batch, given) for batch in batches)
    if on_progress is None:
        done = Parallel(n_jobs=n_jobs, verbose=verbose)(jobs)
        return [result for batch in done for result in batch]
    found: list[Any] = []
    for batch in Parallel(n_jobs=n_jobs, verbose=verbose, return_as="generator")(jobs):
        found += batch
        on_progress(f"refit {len(found)} of {len(items)}", len(found) / len(items))
    return found


def _run(function: Callable[..., Any], batch: Sequence[Any], given: Shared) -> list[Any]:
    return [function(item, *given.values) for item in batch]


LEAST_WORK = 1_000_000  # values; a thread for fewer costs more than it saves


def allow_threads(n_jobs: int | None) -> contextlib.AbstractContextManager[Any]:
    """Let `in_threads` use `n_jobs` threads; None leaves it to ``joblib.parallel_config``."""
    check_jobs(n_jobs)
    if n_jobs is None:
        return contextlib.nullcontext()
    return parallel_config(backend="threading", n_jobs=n_jobs)


def in_threads(
    work: Callable[[int, int], Any], n: int, n_values: int, n_ranges: int = 1
) -> list[Any]:
    """``work(first, last)`` over ranges that make up 0..n; the results in order.

    There are `n_ranges` for each thread of joblib's ``n_jobs``, more than one where some may take
    longer; one thread unless a caller asked for more. `n_values` is what all of the work reads.
    The work must release the GIL, as kernels do, and runs what it calls itself in its own thread.
    """
    n_threads = min(n, n_values // LEAST_WORK)
    n_threads = min(n_threads, effective_n_jobs(None)) if n_threads > 1 else 1
    if n_threads < 2:
        return [work(0, n)]
    n_ranges = min(n, n_threads * n_ranges)
    ends = [n * k // n_ranges for k in range(n_ranges + 1)]
    with ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(work, ends[:-1], ends[1:]))
