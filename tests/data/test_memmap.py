"""Fits that share a folder of binned rows, and folders that were damaged: no tree is wrong."""

import subprocess
import sys
import textwrap

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from steadytree.data import blocks as data_files
from steadytree.data import memmap
from steadytree.stability.stable_tree import StableTreeClassifier
from tests.data.row_sets import check_same_fit

pytest.importorskip("pyarrow")

from tests.data.test_blocks import contents, rows, write  # needs pyarrow

KEPT = {"map.json", "codes.bin", "labels.bin"}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(data_files, "BLOCK_ROWS", 64)


@pytest.mark.parametrize("moment", ["first reading", "binning", "pass 1", "pass 2"])
@pytest.mark.parametrize("other_grid", [False, True])
def test_fits_that_share_a_folder_grow_their_own_trees(tmp_path, moment, other_grid):
    X, y = rows(n=400)
    folder, cache = write(tmp_path / "rows", X, y), tmp_path / "kept"
    first = StableTreeClassifier(epsilon=0, random_state=0, max_depth=4)
    second = clone(first).set_params(**({"n_thresholds": 9} if other_grid else {}))
    inner = []

    def begin_another(text):
        if text.startswith(moment) and not inner:
            inner.append(clone(second))
            try:
                inner[0].fit_files(folder, "label", cache=cache)
            except ValueError as error:  # the first has its map there already
                inner[0] = str(error)

    far = clone(first).fit_files(folder, "label", cache=cache, progress=begin_another)
    check_same_fit(far, clone(first).fit(X, y))
    if other_grid and moment.startswith("pass"):
        assert "another grid" in inner[0]
    else:
        check_same_fit(inner[0], clone(second).fit(X, y))
    assert set(contents(cache)) == KEPT
    said = []  # what stays is whole, and of whom was first
    kept = second if other_grid and not moment.startswith("pass") else first
    again = clone(kept).fit_files(folder, "label", cache=cache, progress=said.append)
    assert all(text.startswith("pass ") for text in said)
    check_same_fit(again, clone(kept).fit(X, y))


FIT = """
    import sys
    from steadytree.stability.stable_tree import StableTreeClassifier
    from steadytree.data import blocks
    blocks.BLOCK_ROWS = 16
    model = StableTreeClassifier(epsilon=0, random_state=0)
    model.fit_files(sys.argv[1], "label", cache=sys.argv[2]).save(sys.argv[3])
"""


def test_processes_that_share_a_folder_grow_the_tree_of_one(tmp_path):
    X, y = rows(n=2000)
    folder, cache = write(tmp_path / "rows", X, y), tmp_path / "kept"
    trees = [tmp_path / f"{k}.tree.json" for k in range(2)]
    command = [sys.executable, "-c", textwrap.dedent(FIT), folder, cache]
    running = [subprocess.Popen([*command, tree]) for tree in trees]
    assert [process.wait() for process in running] == [0, 0]
    alone = StableTreeClassifier(epsilon=0, random_state=0).fit_files(folder, "label")
    alone.save(tmp_path / "alone.tree.json")
    for tree in trees:
        assert tree.read_text("utf-8") == (tmp_path / "alone.tree.json").read_text("utf-8")
    assert set(contents(cache)) == KEPT


@pytest.mark.parametrize("name", ["map.json", "codes.bin", "labels.bin"])
@pytest.mark.parametrize("harm", ["cut", "longer", "flipped", "emptied", "removed"])
def test_a_damaged_map_is_made_anew(tmp_path, name, harm):
    X, y = rows()
    folder, cache = write(tmp_path / "rows", X, y), tmp_path / "kept"
    model = StableTreeClassifier(epsilon=0, random_state=0)
    near = clone(model).fit_files(folder, "label", cache=cache)
    whole = contents(cache)
    rng = np.random.default_rng(0)
    for _ in range(10 if harm == "flipped" else 1):
        damaged = bytearray(whole[name])
        if harm == "flipped":
            damaged[rng.integers(len(damaged))] ^= 1 << rng.integers(8)
        changed = {
            "cut": whole[name][:-7],
            "longer": whole[name] + b"\0",
            "flipped": bytes(damaged),
            "emptied": b"",
        }
        (cache / name).unlink()
        if harm != "removed":
            (cache / name).write_bytes(changed[harm])
        said = []
        again = clone(model).fit_files(folder, "label", cache=cache, progress=said.append)
        check_same_fit(again, near)
        assert any(text.startswith("binning") for text in said)
        assert contents(cache) == whole


def test_what_a_killed_fit_left_is_removed_and_what_a_living_one_has_is_not(tmp_path):
    folder, cache = write(tmp_path / "rows", *rows()), tmp_path / "kept"
    cache.mkdir()
    for name in ("slots-a.bin", "codes-a.bin", "labels-b.bin"):
        (cache / name).write_bytes(b"half")
    living = memmap.MapFolder(cache)
    own = set(contents(cache))
    assert len(own) == 1
    StableTreeClassifier(epsilon=0).fit_files(folder, "label", cache=cache)
    assert set(contents(cache)) == KEPT | own
    living.close()
    assert set(contents(cache)) == KEPT


def test_ordered_categories_stay_so_in_a_map(tmp_path):
    rng = np.random.default_rng(0)
    code, folder, cache = rng.integers(0, 5, 600), tmp_path / "rows", tmp_path / "kept"
    folder.mkdir()
    X = pd.DataFrame({"grade": pd.Categorical.from_codes(code, list("vuxyz"), ordered=True)})
    y = rng.random(600) < code / 4
    X.assign(label=y.astype(int)).to_parquet(folder / "a.parquet")
    model = StableTreeClassifier(max_depth=2, epsilon=0, random_state=0)
    first, said = clone(model).fit_files(folder, "label", cache=cache), []
    again = clone(model).fit_files(folder, "label", cache=cache, progress=said.append)
    assert not any(text.startswith("binning") for text in said)
    assert again.tree_.space[0].ordered
    check_same_fit(again, first)
    np.testing.assert_array_equal(again.predict(X), model.fit(X, y.astype(int)).predict(X))
