import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

import steadytree as st
from steadytree.data import blocks
from steadytree.data.parts import Parts, is_parted, sample_part
from steadytree.data.table import Table

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def write(folder, frame, n_files=3):
    for k, rows in enumerate(np.array_split(np.arange(len(frame)), n_files)):
        part = pa.Table.from_pandas(frame.iloc[rows], preserve_index=False)
        pq.write_table(part, folder / f"part-{k}.parquet")
    return folder


@pytest.fixture
def frame():
    n = 200
    text = [None if k % 7 == 0 else "abc"[k % 3] for k in range(n)]
    return pd.DataFrame({"x": np.arange(n) * 1.0, "text": text, "y": np.arange(n) % 2})


def same_rows(table, frame):
    np.testing.assert_array_equal(table.columns[0], frame["x"])
    expected = [None if value != value else value for value in frame["text"].tolist()]
    assert table.columns[1].tolist() == expected


@pytest.mark.parametrize("block", [7, 64, 1_000])
def test_a_sample_depends_on_the_seed_and_not_on_blocks(frame, tmp_path, monkeypatch, block):
    monkeypatch.setattr(blocks, "BLOCK_ROWS", block)
    parts = Parts(write(tmp_path, frame), "y")
    found = parts.sample(50, seed=3)
    # the rows of the 50 smallest keys of one stream, in their order
    kept = np.sort(np.argsort(np.random.default_rng(3).random(200))[:50])
    same_rows(found.table, frame.iloc[kept])
    np.testing.assert_array_equal(found.labels, frame["y"].iloc[kept])
    assert (found.n_all, found.note) == (200, "50 of 200 rows, drawn by chance")
    whole = parts.sample(200)
    same_rows(whole.table, frame)
    assert whole.note == ""


def test_every_row_is_as_likely_as_any_other():
    # 4,000 samples of 3 of 10 rows in two parts: 1,200 of each row, sd 29; beyond 5 sd once in
    # 170,000 runs of ten rows
    counts = np.zeros(10)
    for seed in range(4_000):
        one = sample_part(np.arange(6.0)[:, None], np.zeros(6), 0, 3, seed)
        two = sample_part(np.arange(6.0, 10.0)[:, None], np.zeros(4), 1, 3, seed)
        counts[(one + two).table.columns[0].astype(int)] += 1
    assert np.abs(counts - 1_200).max() < 5 * np.sqrt(4_000 * 0.3 * 0.7)


def test_a_part_without_rows_adds_nothing():
    none = sample_part(np.empty((0, 1)), np.empty(0), 0, 3, 0)
    some = sample_part(np.ones((2, 1)), np.zeros(2), 1, 3, 0)
    for both in (none + some, some + none):
        assert (both.table.n_rows, both.n_all) == (2, 2)


def test_samples_and_sums_of_dask_are_of_all_partitions(frame):
    dask = pytest.importorskip("dask.dataframe")
    far = dask.from_pandas(frame, npartitions=4)
    parts = Parts(far[["x", "text"]], far["y"])
    whole = parts.sample(1_000)
    same_rows(whole.table, frame)
    few = parts.sample(20, seed=1)
    assert (few.table.n_rows, few.n_all) == (20, 200)
    assert len(np.unique(few.table.columns[0])) == 20
    np.testing.assert_array_equal(few.table.columns[0] % 2, few.labels)
    assert parts.add_up(lambda X, y: int(y.sum())) == 100


def test_text_of_one_part_and_nothing_of_another_are_text():
    known, empty = Table(("a",), [np.array(["u", None], object)], {}), np.full(2, np.nan)
    both = Table.stack([Table(("a",), [empty], {}), known])
    assert both.columns[0].tolist() == [None, None, "u", None]


def test_files_that_change_while_they_are_read_are_refused(frame, tmp_path):
    parts = Parts(write(tmp_path, frame), "y")

    def meddle(X, y):
        write(tmp_path, frame.iloc[: 200 - len(y) // 2])
        return 1

    with pytest.raises(ValueError, match="changed while they were read"):
        parts.add_up(meddle)


def test_what_is_no_path_or_lacks_a_target_is_refused(tmp_path, frame):
    assert [is_parted(one) for one in ("rows", tmp_path, [[1.0]])] == [True, True, False]
    with pytest.raises(TypeError, match="y must name the target column"):
        Parts(write(tmp_path, frame), frame["y"])
    with pytest.raises(TypeError, match="rows in memory are needed here: read the file first"):
        Table.read("rows.parquet")


SCHEMA = st.Schema({"x": (0, 9)}, {}, ["0", "1"])
MEASURES = {  # what needs all rows at once
    "average_sensitivity": lambda X, y: st.average_sensitivity(st.StableTreeClassifier(), X, y),
    "refits": lambda X, y: st.refits(st.StableTreeClassifier(), X, y),
    "stability_curve": lambda X, y: st.stability_curve(st.StableTreeClassifier(), X, y),
    "distributional": lambda X, y: st.distributional_sensitivity(st.StableTreeClassifier(), X, y),
    "separation": st.separation,
    "compare": lambda X, y: st.compare(["cart"], X, y),
    "diff": lambda X, y: st.diff(small_tree(), small_tree(), X, y),
    "shift_accuracy": lambda X, y: st.shift_accuracy(small_tree(), X, y, 0.9),
    "pareto": lambda X, y: st.ParetoTreeClassifier().fit(X, y),
    "retrained": lambda X, y: st.RetrainedTreeClassifier(small_tree()).fit(X, y),
    "robust": lambda X, y: st.RobustTreeClassifier(2).fit(X, y),
    "private": lambda X, y: st.PrivateTreeClassifier(schema=SCHEMA).fit(X, y),
}


def small_tree():
    return st.as_tree(DecisionTreeClassifier().fit([[0.0], [1.0]], [0, 1]))


@pytest.mark.parametrize("name", MEASURES)
def test_what_needs_all_rows_refuses_a_path_and_says_who_takes_one(name):
    with pytest.raises(TypeError, match="X is the path 'rows/', and rows in memory are needed"):
        MEASURES[name]("rows/", "outcome")


@pytest.mark.parametrize("name", sorted({*MEASURES} - {"private"}))
def test_what_needs_all_rows_refuses_a_dask_collection(name):
    rows = pytest.importorskip("dask.array").zeros((9, 1), chunks=3)
    with pytest.raises(TypeError, match="X is a Dask collection, which is not taken here: load"):
        MEASURES[name](rows, rows[:, 0])
