"""Measures of rows in files and on a cluster are those of the same rows in memory."""

import numpy as np
import pandas as pd
import pytest

from steadytree.data import blocks
from steadytree.metrics.accuracy import accuracy
from steadytree.metrics.calibration import calibration
from steadytree.metrics.groups import by_group
from steadytree.metrics.validation import validate
from steadytree.models.black_box import BlackBox
from steadytree.riskscore.risk_score import RiskScoreClassifier
from steadytree.stability.stable_tree import StableTreeClassifier

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def rows():
    rng = np.random.default_rng(4)
    X = pd.DataFrame({"a": rng.normal(size=300), "b": rng.integers(0, 5, 300).astype(float)})
    X.loc[::9, "b"] = np.nan
    X["site"] = rng.choice(["north", "south", "west"], 300)
    return X, np.where(X["a"] + rng.normal(size=300) > 0.4, "yes", "no")


@pytest.fixture
def folder(rows, tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 64)
    X, y = rows
    for k, part in enumerate(np.array_split(np.arange(len(y)), 3)):
        table = pa.Table.from_pandas(X.iloc[part].assign(label=y[part]), preserve_index=False)
        pq.write_table(table, tmp_path / f"part-{k}.parquet", row_group_size=30)
    return tmp_path


def models(X, y):
    tree = StableTreeClassifier(max_depth=4, random_state=0).fit(X, y)
    several = StableTreeClassifier(max_depth=3, random_state=0).fit(X, X["site"] + y)
    yield tree, y
    yield RiskScoreClassifier(random_state=0).fit(X[["a", "b"]], y), y
    yield several, (X["site"] + y).to_numpy()


def assert_same(found, expected):
    """Figures agree up to the order of summing."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for name in expected:
            assert_same(found[name], expected[name])
    elif isinstance(expected, list | tuple):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-15)
    else:
        assert found == expected


def check_measures(model, far, near, target):
    found, expected = accuracy(model, *far), accuracy(model, *near)
    np.testing.assert_array_equal(found.confusion, expected.confusion)
    assert found.labels == expected.labels
    assert found.auc == pytest.approx(expected.auc, rel=1e-12)
    assert_same(calibration(model, *far).to_dict(), calibration(model, *near).to_dict())
    assert_same(calibration(model, *far, 2).to_dict(), calibration(model, *near, 2).to_dict())
    expected = by_group(model, *near, near[0]["site"], "site").to_dict()
    assert_same(by_group(model, *far, "site").to_dict(), expected)


def test_measures_from_files_are_those_from_memory(rows, folder):
    X, y = rows
    for number, (model, labels) in enumerate(models(X, y)):
        if number == 2:
            for path in folder.glob("*.parquet"):
                table = pq.read_table(path).to_pandas()
                table["label"] = table["site"] + table["label"]
                pq.write_table(pa.Table.from_pandas(table, preserve_index=False), path)
        check_measures(model, (folder, "label"), (X, labels), "label")


def test_measures_from_dask_are_those_from_memory(rows):
    frames = pytest.importorskip("dask.dataframe")
    X, y = rows
    for model, labels in models(X, y):
        whole = frames.from_pandas(X.assign(label=labels), npartitions=4)
        far = whole[list(X.columns)], whole["label"]
        check_measures(model, far, (X, labels), "label")


def test_what_cannot_be_counted_is_refused(rows, folder):
    X, y = rows
    tree = StableTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    with pytest.raises(TypeError, match="y must name the target column where X is a path"):
        accuracy(tree, folder, y)
    with pytest.raises(TypeError, match="groups must name a column where rows lie in files"):
        by_group(tree, folder, "label", X["site"])
    with pytest.raises(ValueError, match="columns names 'colour', but the files have"):
        by_group(tree, folder, "label", "colour")
    with pytest.raises(ValueError, match=r"'a' holds .* different values.*50 groups"):
        by_group(tree, folder, "label", "a")
    with pytest.raises(TypeError, match="validate needs the rows in memory"):
        validate(tree, folder, "label")
    with pytest.raises(FileNotFoundError, match="there is no file or folder"):
        accuracy(tree, folder / "none", "label")
    boxed = BlackBox(type("Other", (), {"classes_": ["no", "yes"], "predict": None})(), "")
    with pytest.raises(TypeError, match="trees and risk scores alone, and this is BlackBox"):
        accuracy(boxed, folder, "label")
    other = StableTreeClassifier(max_depth=2, random_state=0).fit(X, np.where(y == "no", "n", "y"))
    with pytest.raises(ValueError, match="the model knows 'n', 'y'"):
        accuracy(other, folder, "label")


def test_as_many_groups_as_a_table_has_room_for(rows, folder, monkeypatch):
    tree = StableTreeClassifier(max_depth=2, random_state=0).fit(*rows)
    for most in (3, 2):  # there are three sites
        monkeypatch.setattr("steadytree.metrics.accuracy.MOST_GROUPS", most)
        if most == 3:
            assert len(by_group(tree, folder, "label", "site").groups) == 3
        else:
            with pytest.raises(ValueError, match=r"'site' holds .* different values.*2 groups"):
                by_group(tree, folder, "label", "site")


def test_wide_files_are_read_a_few_rows_at_a_time(folder, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_VALUES", 40)
    monkeypatch.setattr(blocks, "LEAST_ROWS", 2)
    files = blocks.DataFiles(folder, "label")
    assert files.block_rows == 10  # three columns and the target
    sizes = [table.n_rows for table, _ in files.blocks()]
    assert sizes == [10] * 30
