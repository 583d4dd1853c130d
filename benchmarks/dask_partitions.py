"""How many bytes of counts does a Dask worker hold at most, and how many travel in a level?

    python benchmarks/dask_partitions.py 2000        # partitions; a few minutes

1,000 rows of 20 columns a partition, 500 thresholds, two classes, depth 6, two worker processes of
one thread. A plugin of the workers adds up the arrays of counts in memory. The tree must be
the one of the same rows in memory.
"""

import sys
import time

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, WorkerPlugin

from steadytree import StableTreeClassifier

N_ROWS, N_COLUMNS, DEPTH = 1_000, 20, 6


class Held(WorkerPlugin):
    """Bytes of counts in a worker's memory, now and at most."""

    name = "held"

    def setup(self, worker):
        self.worker, self.sizes, self.most, self.largest = worker, {}, 0, 0

    def transition(self, key, start, finish, **others):
        if finish == "memory":
            value = self.worker.data.get(key)
            if isinstance(value, np.ndarray) and value.ndim == 3:
                self.sizes[key] = value.nbytes
                self.largest = max(self.largest, value.nbytes)
                self.most = max(self.most, sum(self.sizes.values()))
        else:
            self.sizes.pop(key, None)


def rows_of(n_rows):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, N_COLUMNS))
    signal = X[:, 0] + X[:, 1] * X[:, 2] + np.sin(2 * X[:, 3])
    return X, (signal + rng.standard_normal(n_rows) > 0).astype(np.int64)


def read(dask_worker):
    plugin = dask_worker.plugins["held"]
    return plugin.most, plugin.largest


def main(n_partitions):
    X, y = rows_of(n_partitions * N_ROWS)
    model = StableTreeClassifier(max_depth=DEPTH, random_state=0)
    near = model.fit(X, y).tree_
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        client.register_plugin(Held())
        start = time.perf_counter()
        far = model.fit(*(da.from_array(part, chunks=(N_ROWS, -1)[: part.ndim]) for part in (X, y)))
        seconds = time.perf_counter() - start
        held = client.run(read)
    most, largest = (max(each[k] for each in held.values()) for k in range(2))
    print(
        f"{n_partitions} partitions: at most {most / 1e6:.1f} MB of counts on a worker, "
        f"{largest / 1e6:.1f} MB a level and partition; {seconds:.0f} s; "
        f"{'the same tree' if far.tree_ == near else 'ANOTHER TREE'}"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
