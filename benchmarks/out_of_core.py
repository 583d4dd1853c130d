"""How much memory and time does a tree need on more rows than memory should hold?

First `python benchmarks/out_of_core.py make FOLDER ROWS`, which writes Parquet files of 20 columns
(12 of floats, 8 of small whole numbers), then `python benchmarks/out_of_core.py fit FOLDER`, which
saves the tree, and with `report` or `certify` instead of `fit` that tree is measured on all rows.
The peak is that of the whole process, mapped pages included, as the operating system reports it.
"""

import pathlib
import resource
import sys
import time

import numpy as np

ROWS_AT_ONCE = 1_000_000
ROWS_IN_FILE = 10_000_000
DEPTH = 6


def rows(seed, n_rows):
    """Columns and labels; the label depends on a few of the columns, with noise."""
    rng = np.random.default_rng(seed)
    floats = {f"f{j}": rng.standard_normal(n_rows, dtype=np.float32) for j in range(12)}
    whole = {f"n{j}": rng.integers(0, 200, n_rows, dtype=np.int16) for j in range(8)}
    signal = floats["f0"] + floats["f1"] * floats["f2"] + (whole["n0"] - 100) / np.float32(60)
    signal += rng.standard_normal(n_rows, dtype=np.float32)
    return floats | whole | {"label": (signal > 0).astype(np.int8)}


def make(folder, n_rows):
    """Write the rows, a million a row group, ten million a file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    for first in range(0, n_rows, ROWS_IN_FILE):
        writer = None
        for start in range(first, min(first + ROWS_IN_FILE, n_rows), ROWS_AT_ONCE):
            table = pa.table(rows(start, min(ROWS_AT_ONCE, n_rows - start)))
            if writer is None:
                path = folder / f"part-{first // ROWS_IN_FILE:04d}.parquet"
                writer = pq.ParquetWriter(path, table.schema, compression="lz4")
            writer.write_table(table, row_group_size=ROWS_AT_ONCE)
        writer.close()
    size = sum(path.stat().st_size for path in folder.glob("*.parquet"))
    print(f"{n_rows:,} rows, {size / 1e9:.2f} GB of Parquet")


def fit(folder):
    """Fit once and print CPU seconds, seconds, and the peak of memory."""
    from steadytree import StableTreeClassifier

    model = StableTreeClassifier(max_depth=DEPTH, epsilon=0, random_state=0)
    start, cpu = time.perf_counter(), time.process_time()
    said = lambda text: print(f"{time.process_time() - cpu:8.1f} CPU s  {text}", flush=True)  # noqa: E731
    model.fit_files(folder, target="label", cache=folder / "map", progress=said)
    model.save(folder / "rows.tree.json")
    mapped = sum(path.stat().st_size for path in (folder / "map").iterdir())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024  # kilobytes on Linux
    print(
        f"{model.tree_.weight[0]:,.0f} rows, depth {model.tree_.depth}, {mapped / 1e9:.2f} GB map"
    )
    print(f"CPU {time.process_time() - cpu:.1f} s, wall {time.perf_counter() - start:.1f} s")
    print(f"peak memory {peak / 1e9:.2f} GB")


def measure(what, folder):
    """Report on the saved tree, or certify it, and print CPU seconds and the peak of memory."""
    import steadytree as st

    cpu, tree = time.process_time(), st.load(folder / "rows.tree.json")
    if what == "report":
        print(st.report(tree, folder, "label", folder / "page.html").data["headline"])
    else:
        print(st.certify(tree, folder, "label", st.Perturbation(radius={"f0": 0.1, "f1": 0.1})))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(f"CPU {time.process_time() - cpu:.1f} s, peak memory {peak / 1e9:.2f} GB")


if __name__ == "__main__":
    what, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    if what == "make":
        make(folder, int(sys.argv[3]))
    elif what == "fit":
        fit(folder)
    else:
        measure(what, folder)
