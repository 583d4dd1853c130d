"""Trees from files are those of the same rows in memory, and nothing is left behind."""

import errno
import json
import os
import tempfile

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from steadytree.data import blocks as data_files
from steadytree.data import memmap
from steadytree.stability.stable_tree import StableTreeClassifier
from tests.data.row_sets import check_same_fit, random_rows

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

ALL = ["few", "tenths", "real", "constant", "flag", "group", "side"]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(data_files, "BLOCK_ROWS", 64)


@pytest.fixture
def own_temporary_folder(tmp_path, monkeypatch):
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def rows(seed=0, n=300):
    return random_rows(np.random.default_rng(seed), n, 3, names=ALL)


def write(folder, X, y, n_files=1, ending="parquet"):
    folder.mkdir(exist_ok=True)
    whole = pa.Table.from_pandas(X.assign(label=y), preserve_index=False)
    for k, part in enumerate(np.array_split(np.arange(len(y)), n_files)):
        write_one(whole.slice(part[0], len(part)), folder / f"part-{k}.{ending}")
    return folder


def write_one(table, path):
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=50)
    elif path.suffix == ".feather":  # with its table of contents
        with pa.ipc.new_file(str(path), table.schema) as writer:
            writer.write_table(table, max_chunksize=50)
    else:
        with pa.ipc.new_stream(str(path), table.schema) as writer:
            writer.write_table(table, max_chunksize=500)


@pytest.mark.parametrize("ending", ["parquet", "feather", "arrow"])
@pytest.mark.parametrize(
    "changes",
    [
        {"epsilon": 0},
        {"epsilon": 0.2, "n_thresholds": 300},
        {"epsilon": 0, "criterion": "gini", "grid": "quantile", "n_thresholds": 20},
        {"epsilon": 0.1, "grid": "midpoint", "min_samples_leaf": 4},
    ],
)
def test_files_give_the_tree_of_rows_in_memory(changes, ending, tmp_path):
    X, y = rows()
    folder = write(tmp_path / "rows", X, y, 3, ending)
    model = StableTreeClassifier(random_state=0, **changes)
    far = clone(model).fit_files(folder, "label")
    check_same_fit(far, model.fit(X, y))
    assert far.feature_names_in_.tolist() == ALL
    assert far.n_features_in_ == len(ALL)
    np.testing.assert_array_equal(far.predict(X), model.predict(X))


def test_whole_numbers_flags_and_declared_categories_come_through(tmp_path):
    X, y = rows(3)
    X = X.assign(
        few=X["few"].astype("Int16"),
        flag=X["flag"] == 1,
        real=X["real"].astype(np.float32),
        group=pd.Categorical(X["group"], categories=["x", "w", "v", "u"]),
    )
    labels = (y == "no").astype(np.int8)
    folder = write(tmp_path / "rows", X, labels, 2)
    model = StableTreeClassifier(random_state=0, epsilon=0)
    far = clone(model).fit_files(folder, "label")
    near = model.fit(pd.read_parquet(folder).drop(columns="label"), labels)
    check_same_fit(far, near)
    assert far.classes_.dtype.kind == "i"


def test_some_columns_of_a_list_of_files(tmp_path):
    X, y = rows()
    folder = write(tmp_path / "rows", X, y, 2)
    model = StableTreeClassifier(random_state=0, epsilon=0)
    listed = [folder / "part-1.parquet", str(folder / "part-0.parquet")]  # the order is no matter
    far = clone(model).fit_files(listed, "label", columns=["real", "few"])
    check_same_fit(far, model.fit(X[["real", "few"]], y))


# ---- the folder of binned rows ----
def test_a_temporary_map_has_no_name_that_a_killed_process_could_leave_behind(
    tmp_path, own_temporary_folder
):
    X, y = rows()
    folder = write(tmp_path / "rows", X, y)
    steps, seen = [], []

    def look(text):
        steps.append(text)
        seen.extend(path.name for path in own_temporary_folder.iterdir())

    StableTreeClassifier(epsilon=0).fit_files(folder, "label", progress=look)
    assert any(step.startswith("pass 2") for step in steps)
    assert not seen


def test_the_temporary_folder_is_removed_after_a_failure(tmp_path, own_temporary_folder):
    X, y = rows()
    folder = write(tmp_path / "rows", X.assign(real=np.inf), y)
    with pytest.raises(ValueError, match="hold infinity"):
        StableTreeClassifier(epsilon=0).fit_files(folder, "label")
    assert not list(own_temporary_folder.iterdir())


def test_a_kept_folder_is_used_again(tmp_path):
    X, y = rows()
    folder = write(tmp_path / "rows", X, y)
    cache = tmp_path / "kept"
    said = []
    first = StableTreeClassifier(epsilon=0, random_state=0)
    first.fit_files(folder, "label", cache=cache, progress=said.append)
    assert {text.split(":")[0] for text in said} >= {"first reading", "binning", "pass 1"}
    assert {path.name for path in cache.iterdir()} == {"map.json", "codes.bin", "labels.bin"}
    said.clear()
    other = StableTreeClassifier(max_depth=3, epsilon=0.1, random_state=1)
    far = clone(other).fit_files(folder, "label", cache=cache, progress=said.append)
    assert all(text.startswith("pass ") for text in said)
    check_same_fit(far, other.fit(X, y))


@pytest.mark.parametrize("changes", [{"n_thresholds": 7}, {"grid": "quantile"}])
def test_a_folder_of_another_grid_is_refused(changes, tmp_path):
    X, y = rows()
    folder, cache = write(tmp_path / "rows", X, y), tmp_path / "kept"
    StableTreeClassifier(epsilon=0).fit_files(folder, "label", cache=cache)
    with pytest.raises(ValueError, match="holds the map of other files, columns or another grid"):
        StableTreeClassifier(epsilon=0, **changes).fit_files(folder, "label", cache=cache)


def test_a_folder_of_files_that_changed_is_refused(tmp_path):
    X, y = rows()
    folder, cache = write(tmp_path / "rows", X, y), tmp_path / "kept"
    StableTreeClassifier(epsilon=0).fit_files(folder, "label", cache=cache)
    write(folder, X[:200], y[:200])
    with pytest.raises(ValueError, match="name another folder, or delete it"):
        StableTreeClassifier(epsilon=0).fit_files(folder, "label", cache=cache)


def test_half_a_map_is_made_anew(tmp_path):
    X, y = rows()
    folder, cache = write(tmp_path / "rows", X, y), tmp_path / "kept"
    model = StableTreeClassifier(epsilon=0, random_state=0)
    clone(model).fit_files(folder, "label", cache=cache)
    (cache / "map.json").unlink()  # which is written last
    (cache / "codes.bin").write_bytes(b"half")
    check_same_fit(clone(model).fit_files(folder, "label", cache=cache), model.fit(X, y))


def test_a_folder_with_other_files_is_refused(tmp_path):
    X, y = rows()
    folder = write(tmp_path / "rows", X, y)
    with pytest.raises(ValueError, match=r"holds other files, such as '.*part-0\.parquet'"):
        StableTreeClassifier().fit_files(folder, "label", cache=folder)
    with pytest.raises(ValueError, match="the same as paths"):
        StableTreeClassifier().fit_files(folder, "label", cache=folder / "part-0.parquet")
    (tmp_path / "notes.txt").write_text("notes", "utf-8")
    with pytest.raises(NotADirectoryError, match="is a file: name a folder"):
        StableTreeClassifier().fit_files(folder, "label", cache=tmp_path / "notes.txt")


def test_a_full_disk_is_seen_before_binning(tmp_path, monkeypatch):
    X, y = rows()
    folder = write(tmp_path / "rows", X, y)
    usage = memmap.shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr(memmap.shutil, "disk_usage", lambda path: usage)
    with pytest.raises(OSError, match=r"the binned rows need .* GB left: name a folder on another"):
        StableTreeClassifier().fit_files(folder, "label")


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def full(*_):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_disk_that_fills_up_is_an_error_and_leaves_nothing(
    tmp_path, own_temporary_folder, monkeypatch
):
    folder = write(tmp_path / "rows", *rows())
    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    for cache in (None, tmp_path / "kept"):
        with pytest.raises(
            OSError, match=r"^the binned rows need .* GB, and .* GB left: name"
        ) as e:
            StableTreeClassifier(epsilon=0).fit_files(folder, "label", cache=cache)
        assert "\n" not in str(e.value)
        assert not list(own_temporary_folder.iterdir())
        assert not (tmp_path / "kept").exists()


def test_a_disk_without_room_for_the_table_of_contents_leaves_nothing(tmp_path, monkeypatch):
    folder, cache = write(tmp_path / "rows", *rows()), tmp_path / "kept"
    monkeypatch.setattr(memmap, "write_text_atomically", full)
    with pytest.raises(OSError, match="No space left"):
        StableTreeClassifier(epsilon=0).fit_files(folder, "label", cache=cache)
    assert not cache.exists()


def test_a_disk_that_fills_up_before_a_kept_map_is_counted_keeps_it(tmp_path, monkeypatch):
    folder, cache = write(tmp_path / "rows", *rows()), tmp_path / "kept"
    model = StableTreeClassifier(epsilon=0, random_state=0)
    model.fit_files(folder, "label", cache=cache)
    before = contents(cache)
    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", full, raising=False)
        with pytest.raises(OSError, match="the binned rows need"):
            clone(model).fit_files(folder, "label", cache=cache)
    assert contents(cache) == before


def test_room_is_reserved_where_the_system_has_no_call_for_it(tmp_path, monkeypatch):
    X, y = rows()
    folder = write(tmp_path / "rows", X, y)
    monkeypatch.delattr(os, "posix_fallocate", raising=False)
    model = StableTreeClassifier(epsilon=0, random_state=0)
    check_same_fit(clone(model).fit_files(folder, "label"), model.fit(X, y))
    with (tmp_path / "file").open("x+b") as file:
        memmap.reserve({file: 3_000_000}, tmp_path)
        assert os.fstat(file.fileno()).st_size == 3_000_000
        assert file.tell() == 0


def test_the_map_holds_exact_cuts(tmp_path):
    X, y = rows()
    folder, cache = write(tmp_path / "rows", X, y), tmp_path / "kept"
    fitted = StableTreeClassifier(epsilon=0).fit_files(folder, "label", cache=cache)
    columns = json.loads((cache / "map.json").read_text("utf-8"))["columns"]
    assert [each["cuts"] for each in columns] == [c.thresholds.tolist() for c in fitted.space_]


# ---- what is refused ----
def test_paths_that_are_no_data_are_refused(tmp_path):
    fit = StableTreeClassifier().fit_files
    with pytest.raises(FileNotFoundError, match="there is no file or folder 'nowhere"):
        fit("nowhere.parquet", "label")
    with pytest.raises(ValueError, match="holds no file that ends in"):
        fit(tmp_path, "label")
    with pytest.raises(ValueError, match="paths is empty"):
        fit([], "label")
    (tmp_path / "a.csv").write_text("a,b\n1,2\n", "utf-8")
    with pytest.raises(ValueError, match=r"ends in '\.csv': pass files that end in"):
        fit(tmp_path / "a.csv", "b")
    for name in ("a.parquet", "a.arrow"):
        (tmp_path / name).write_bytes(b"no such thing")
        with pytest.raises(ValueError, match="is not a Parquet or Arrow file, or is damaged"):
            fit(tmp_path / name, "b")


def test_columns_that_are_not_there_are_refused(tmp_path):
    folder = write(tmp_path / "rows", *rows())
    fit = StableTreeClassifier().fit_files
    with pytest.raises(
        ValueError, match="target 'outcome' is not a column of the files: they have"
    ):
        fit(folder, "outcome")
    with pytest.raises(ValueError, match="columns names 'age', but the files have"):
        fit(folder, "label", columns=["age"])
    with pytest.raises(ValueError, match="both the target and in columns"):
        fit(folder, "label", columns=["label", "few"])
    with pytest.raises(ValueError, match="no column to learn from"):
        fit(folder, "label", columns=[])


def test_files_that_differ_are_refused(tmp_path):
    X, y = rows()
    folder = write(tmp_path / "rows", X, y)
    pq.write_table(pa.table({"few": [1.0], "label": ["no"]}), folder / "part-1.parquet")
    with pytest.raises(ValueError, match=r"files differ: .*part-0.* has a column .*part-1"):
        StableTreeClassifier().fit_files(folder, "label")
    text = pa.Table.from_pandas(X.assign(few="many", label=y), preserve_index=False)
    pq.write_table(text, folder / "part-1.parquet")
    with pytest.raises(ValueError, match=r"column 'few' is double in .* and (large_)?string in"):
        StableTreeClassifier().fit_files(folder, "label")


def test_missing_labels_are_refused(tmp_path):
    X, y = rows()
    labels = y.astype(object)
    labels[7] = None
    folder = write(tmp_path / "rows", X, labels)
    with pytest.raises(ValueError, match=r"target 'label' has 1 missing label\(s\)"):
        StableTreeClassifier().fit_files(folder, "label")


def test_files_without_rows_are_refused(tmp_path):
    empty = pa.table({"a": pa.array([], pa.float64()), "y": pa.array([], pa.int8())})
    pq.write_table(empty, tmp_path / "a.parquet")
    with pytest.raises(ValueError, match="the files hold no rows"):
        StableTreeClassifier().fit_files(tmp_path, "y")


def test_what_needs_all_rows_is_refused(tmp_path):
    with pytest.raises(ValueError, match="lookahead above 1 needs the rows in memory"):
        StableTreeClassifier(lookahead=2, criterion="count").fit_files(tmp_path, "y")


def test_without_pyarrow_it_says_what_to_install(tmp_path, monkeypatch):
    folder = write(tmp_path / "rows", *rows())
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    expected = (
        r"^reading Parquet or Arrow files needs pyarrow: pip install 'steadytree\[parquet\]'$"
    )
    with pytest.raises(ImportError, match=expected):
        StableTreeClassifier().fit_files(folder, "label")


def test_folders_of_partitions_are_refused(tmp_path):
    (tmp_path / "site=north").mkdir()
    (tmp_path / "_temporary").mkdir()
    with pytest.raises(ValueError, match="holds the folder 'site=north', whose files are not read"):
        data_files.list_files(tmp_path)
