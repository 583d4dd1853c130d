"""What would a level cost with 10,000,000,000 rows, or with 1,000 holders?

`python benchmarks/past_one_machine.py` measures the prices that a cost model needs (CPU of a cell
counted, moved and binned; of a counter added; of a task of the scheduler's), holds the model
against runs that were measured, and prints what it says of sizes that no one machine has. CPU only:
prices hold on a busy machine, seconds do not.
"""

import sys
import time

import numpy as np
import psutil
from dask_level import QUIET, cpu_of, on_cluster, rules

from steadytree.data.feature_space import FeatureSpace
from steadytree.data.sources import LevelSplits, Rows
from steadytree.data.splits import SplitTable
from steadytree.data.table import Table

N_ROWS, N_FEATURES, REPEATS = 2_000_000, 20, 5


def cpu_seconds(action, repeats=REPEATS):
    """Least CPU seconds of an action in this process."""
    taken = []
    for _ in range(repeats):
        start = time.process_time()
        action()
        taken.append(time.process_time() - start)
    return min(taken)


def count_and_move(n_bins):
    """Nanoseconds to count a cell, all rows or half of them, and to move a row."""
    rng = np.random.default_rng(0)
    values = np.linspace(0, 1, n_bins)[:, None] * np.ones(N_FEATURES)
    grid = SplitTable.of(FeatureSpace.observe(values).with_thresholds(values, "midpoint"))
    dtype = np.uint8 if n_bins < 256 else np.uint16
    codes = rng.integers(0, n_bins, (N_FEATURES, N_ROWS), dtype=dtype)
    labels = rng.integers(0, 2, N_ROWS, dtype=np.int32)
    source = Rows(codes, labels, grid, 2)
    source.start()
    source.count(0, 1)
    counted = cpu_seconds(lambda: source.count(0, 1))
    split = LevelSplits(np.array([n_bins // 2]), np.array([0]), np.array([1]))

    def move():
        source.start()
        source.advance(split)

    move()
    n_cells = len(source.rows_in(0)) * N_FEATURES
    half = cpu_seconds(lambda: source.count(0, 1))
    moved = cpu_seconds(move) - cpu_seconds(source.start)
    return counted / codes.size * 1e9, half / n_cells * 1e9, moved / N_ROWS * 1e9


def bin_cells():
    """Nanoseconds to bin a cell of a table of floats; reading files comes on top."""
    rng = np.random.default_rng(0)
    table = Table.read(rng.standard_normal((N_ROWS // 4, N_FEATURES)).astype(np.float32))
    space = FeatureSpace.observe(table).with_thresholds(table.matrix, n_thresholds=500)
    space.bin_table(table)
    return cpu_seconds(lambda: space.bin_table(table)) / table.matrix.size * 1e9


def add_counters():
    """Nanoseconds to add one counter of one answer to the sum of others."""
    total, one = np.zeros(4_000_000, np.int64), np.ones(4_000_000, np.int64)
    return cpu_seconds(lambda: np.add(total, one, out=total)) / total.size * 1e9


def price_of_a_partition(few=8, many=128):
    """Milliseconds of CPU that a partition costs a level beside its rows: scheduler, workers."""
    import dask
    from distributed import Client, LocalCluster

    dask.config.set(QUIET)
    here = psutil.Process()
    cluster = LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=":0"
    )
    with cluster, Client(cluster) as client:
        apart = [[here], here.children(recursive=True)]
        found = [_level_of_tasks(client, n_parts, apart) for n_parts in (few, many)]
    return [(two - one) / (many - few) * 1e3 for one, two in zip(*found, strict=True)]


def _level_of_tasks(client, n_parts, apart):
    """CPU seconds of one level of almost no rows, here and in the workers."""
    source = on_cluster(client, 100 * n_parts, n_parts, rules())
    source.start()
    source.count(0, 1)
    taken = []
    for _ in range(3):
        source._parents = None
        before = [cpu_of(each) for each in apart]
        source.count(0, 1)
        taken.append([cpu_of(each) - was for each, was in zip(apart, before, strict=True)])
    return np.min(taken, axis=0)


def later_level(n_rows, price):
    """CPU seconds of a level below the first: all rows are moved, the smaller half is counted."""
    return n_rows * (N_FEATURES * price[1] / 2 + price[2]) / 1e9


def level_bytes(n_nodes, n_features=20, n_bins=501, n_classes=2):
    """Bytes of the counts of a level that one part answers with."""
    return n_nodes * n_features * n_bins * n_classes * 8


def main():
    """Prices, the model beside measured runs, and what it says of larger ones."""
    small, large = count_and_move(64), count_and_move(501)
    binned, added = bin_cells(), add_counters()
    print("prices")
    for n_bins, price in ((64, small), (501, large)):
        print(
            f"  {n_bins:3d} bins: count a cell {price[0]:.2f} ns, in half the rows {price[1]:.2f},"
        )
        print(f"            move a row {price[2]:.2f} ns")
    print(f"  bin a cell     {binned:.2f} ns")
    print(f"  add a counter  {added:.2f} ns")
    for n_rows, price, n_levels in ((1e7, small, 1), (1e8, large, 6)):
        cpu = n_rows * N_FEATURES * price[0] / 1e9 + (n_levels - 1) * later_level(n_rows, price)
        print(f"model: {n_rows:,.0f} rows, {n_levels} level(s): {cpu:.1f} CPU s of counting")
    if "--no-cluster" not in sys.argv:
        scheduler, workers = price_of_a_partition()
        print(
            f"  a partition    {scheduler:.1f} ms of scheduler and client, {workers:.1f} of workers"
        )
    extrapolate(large, binned, added)


def extrapolate(price, binned, added):
    """10^10 rows in partitions of 10^7; 1,000 holders."""
    n_rows, n_parts = 1e10, 1_000
    level = later_level(n_rows, price)
    print(f"10^10 rows: bin {n_rows * N_FEATURES * binned / 1e9:,.0f} CPU s,", end=" ")
    print(f"a level {level:,.0f} CPU s, codes {n_rows * N_FEATURES * 2 / 1e9:,.0f} GB,", end=" ")
    print(f"other {n_rows * 8 / 1e9:,.0f} GB")
    for n_nodes in (1, 16, 32):
        answer = level_bytes(n_nodes)
        total = answer * n_parts
        cpu = total / 8 * added / 1e9
        print(
            f"{n_nodes:2d} nodes counted: {answer / 1e6:.2f} MB an answer; 1,000 answers are "
            f"{total / 1e9:.2f} GB, {cpu:.1f} CPU s to add, {total / 1.25e8:.0f} s at 1 Gbit/s"
        )


if __name__ == "__main__":
    main()
