"""What does one level's counting cost on a Dask cluster, beside the kernel in this process?

Run `python benchmarks/dask_level.py`: 10,000,000 rows of 20 columns in 64 bins, two classes, two
worker processes. CPU seconds are those of all processes, the scheduler's and the client's too, as
the operating system counts them. Dask's own profiler and monitors are turned off: what they use
depends on how long the machine's other work makes a level last, not on the level.
"""

import sys
import time

import numpy as np
import psutil

from steadytree.data.dask import DaskRows, Runner
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.sources import LevelSplits, Rows
from steadytree.data.splits import SplitTable

N_FEATURES, N_BINS, REPEATS = 20, 64, 9
QUIET = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "10 s",
    "distributed.admin.system-monitor.interval": "10 s",
    "distributed.admin.system-monitor.gil.enabled": False,
}


def make_part(seed, n_rows, table=None):
    """Codes and labels of one partition, drawn where they are needed."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, N_BINS, (N_FEATURES, n_rows), dtype=np.uint8)
    labels = (codes[0] + rng.integers(0, N_BINS, n_rows) > N_BINS).astype(np.int32)
    return (codes, labels) if table is None else (codes, labels, table)


def rules():
    """Every threshold between 64 bins of 20 columns."""
    values = np.tile(np.arange(N_BINS)[:, None] / 2, (1, N_FEATURES))
    space = FeatureSpace.observe(values + 0.25)
    return SplitTable.of(space.with_thresholds(values + 0.25, "midpoint"))


def split_all(source, asked):
    """Send all rows on by the first split of a column, for as many levels as there are columns."""
    table = source.splits.table
    for depth, feature in enumerate(asked):
        rule = int(table.offsets[feature]) + N_BINS // 2 - 1
        left = np.arange(0, 2 ** (depth + 1), 2)
        source.advance(LevelSplits(np.full(2**depth, rule), left, left + 1))
        source.count(0, 2 ** (depth + 1))


def cpu_of(processes):
    """CPU seconds that processes have used, threads and all."""
    return sum(sum(each.cpu_times()[:2]) for each in processes)


def measure(source, processes, depth):
    """Least CPU seconds and seconds of counting every row of one level."""
    source.start()
    split_all(source, range(1, depth + 1))
    cpu, wall = [], []
    for _ in range(REPEATS):
        source._parents = None  # so that all nodes are counted, not the smaller children alone
        before, start = cpu_of(processes), time.perf_counter()
        source.count(0, 2**depth)
        wall.append(time.perf_counter() - start)
        cpu.append(cpu_of(processes) - before)
    return min(cpu), min(wall)


def on_cluster(client, n_rows, n_parts, grid):
    """The rows as partitions on the workers."""
    run = Runner(client)
    table = run.share(grid.table)
    calls = [run.call(make_part, k, n_rows // n_parts, table) for k in range(n_parts)]
    return DaskRows(run.keep(calls), grid, 2, run)


def main(n_rows):
    """Print a line for each number of partitions."""
    import dask
    from distributed import Client, LocalCluster

    dask.config.set(QUIET)
    grid, here = rules(), psutil.Process()
    own = {}
    print(f"{n_rows:,} rows, {N_FEATURES} columns, {N_BINS} bins, 2 workers; least of {REPEATS}")
    for depth in (0, 6):
        own[depth] = measure(Rows(*make_part(0, n_rows), grid, 2), [here], depth)
        print(f"  {2**depth:2d} nodes, in process     : CPU {own[depth][0]:.2f} s")
    cluster = LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=":0"
    )
    with cluster, Client(cluster) as client:
        processes = [here, *here.children(recursive=True)]
        for n_parts in (2, 10):
            for depth in (0, 6):
                source = on_cluster(client, n_rows, n_parts, grid)
                cpu, wall = measure(source, processes, depth)
                ratio = cpu / own[depth][0]
                print(
                    f"  {2**depth:2d} nodes, {n_parts:3d} partitions: CPU {cpu:.2f} s "
                    f"({ratio:.2f} times the kernel's), wall {wall:.2f} s"
                )


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 10_000_000)
