"""Certificates of rows in files and on a cluster are those of the same rows in memory."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from steadytree.data import blocks
from steadytree.robustness import part_certificate
from steadytree.robustness.certify import certify
from steadytree.robustness.perturbation import Perturbation
from steadytree.stability.steady_tree import SteadyTreeClassifier

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(4)
    X = pd.DataFrame({"a": rng.normal(size=300), "b": rng.integers(0, 5, 300).astype(float)})
    X.loc[::9, "b"] = np.nan
    X["site"] = rng.choice(["north", "south", "west"], 300)
    y = np.where(X["a"] + rng.normal(size=300) > 0.4, "yes", "no")
    return X, y, SteadyTreeClassifier(random_state=0).fit(X, y).tree_


@pytest.fixture
def folder(rows, tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 64)
    X, y, _ = rows
    for k, part in enumerate(np.array_split(np.arange(len(y)), 3)):
        table = pa.Table.from_pandas(X.iloc[part].assign(label=y[part]), preserve_index=False)
        pq.write_table(table, tmp_path / f"part-{k}.parquet")
    return tmp_path


NOISES = [
    Perturbation(radius={"a": 0.2, "b": 1.0}),
    Perturbation(step_cost={"a": 2.0, "b": 1.0}, budget=5.0, scope="total"),
]


def assert_same(found, expected):
    one, other = found.to_dict(), expected.to_dict()
    for name in ("readings", "notes", "unused", "counterexamples"):
        assert one[name] == other[name]
    np.testing.assert_array_equal(one["curve"]["size"], other["curve"]["size"])
    shares = "certified_accuracy"
    np.testing.assert_allclose(one["curve"][shares], other["curve"][shares], rtol=1e-12)
    assert found.weight.sum() == len(expected.truth)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("most_shown", [1_000, 12])
def test_a_folder_gives_the_certificate_of_its_rows(rows, folder, monkeypatch, noise, most_shown):
    monkeypatch.setattr(part_certificate, "MOST_SHOWN", most_shown)
    X, y, tree = rows
    X = X.copy()
    found = certify(tree, folder, "label", noise)
    assert_same(found, certify(tree, X, y, noise))
    assert len(found.truth) <= len(y)


def test_unknown_categories_are_named_as_in_memory(rows, folder):
    tree = rows[2]
    for path in folder.glob("*.parquet"):
        table = pq.read_table(path).to_pandas()
        table.loc[:1, "site"] = "east"
        pq.write_table(pa.Table.from_pandas(table, preserve_index=False), path)
    every = pd.concat([pd.read_parquet(path) for path in sorted(folder.glob("*.parquet"))])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = certify(tree, folder, "label", NOISES[0])
        expected = certify(tree, every[["a", "b", "site"]], every["label"].to_numpy(), NOISES[0])
    assert any("'east' (6 row(s))" in note for note in expected.notes) or not expected.notes
    assert_same(found, expected)


def test_dask_gives_the_certificate_of_its_rows(rows):
    dask = pytest.importorskip("dask.dataframe")
    X, y, tree = rows
    far = dask.from_pandas(X.assign(label=y), npartitions=3)
    found = certify(tree, far[["a", "b", "site"]], far["label"], NOISES[0])
    assert_same(found, certify(tree, X, y, NOISES[0]))


def test_many_distances_are_rounded_down(rows, folder, monkeypatch):
    monkeypatch.setattr(part_certificate, "MOST_ENTRIES", 50)
    monkeypatch.setattr(part_certificate, "MOST_SHOWN", 3)
    X, y, tree = rows
    with pytest.warns(UserWarning, match="rounded down"):
        found = certify(tree, folder, "label", NOISES[0])
    exact = certify(tree, X, y, NOISES[0])
    for size in np.linspace(0, 3, 40):
        below = exact.certified_accuracy(size) - found.certified_accuracy(size)
        assert (
            0
            <= below
            <= exact.certified_accuracy(size) - exact.certified_accuracy(size * (1 + 2**-11))
        )


def test_other_models_and_weights_are_refused(rows, folder):
    X, y, tree = rows
    other = DecisionTreeClassifier(max_depth=2).fit(X[["a"]], y)
    with pytest.raises(TypeError, match="trees and risk scores of this package alone"):
        certify(other, folder, "label", NOISES[0])
    with pytest.raises(ValueError, match="sample_weight needs the rows in memory"):
        certify(tree, folder, "label", NOISES[0], np.ones(300))
