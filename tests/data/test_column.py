"""Figures of columns: ranges, missing and infinite values, whole numbers."""

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config

from steadytree._base import parallel
from steadytree.data import column
from steadytree.data.column import row_numbers, summarise_columns
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.table import Table
from tests.data import reference


@pytest.mark.parametrize("n_together", [1, 3, 1_000])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.uint8, np.bool_])
def test_figures_of_columns_equal_those_taken_value_by_value(monkeypatch, dtype, n_together):
    rng = np.random.default_rng(3)
    for n in (0, 1, 2, 17, 100):
        X = rng.choice([0.0, 1.0, 2.0, 1.5, 250.0], (n, 4))
        X[:, 3] = np.round(X[:, 3])
        if np.dtype(dtype).kind == "f":
            X[rng.random(X.shape) < 0.2] = np.nan
            X[rng.random(X.shape) < 0.1] = rng.choice([np.inf, -np.inf])
            X[:, 1] = rng.choice([1e38, 3e38, -3e38], n)  # sums of two are past the largest
        X = np.asfortranarray(X.astype(dtype)) if n % 2 else X.astype(dtype)
        monkeypatch.setattr(column, "BLOCK", 4 * n_together)
        found, expected = summarise_columns(X), reference.summarise_columns(X)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)
            assert one.dtype == other.dtype


def test_threads_summarise_as_one_does(monkeypatch):
    X = np.random.default_rng(4).integers(-3, 4, (501, 4)) * np.array([1.0, 0.5, 1.0, 2.0])
    X[7, 0], X[400, 0], X[499, 2] = np.nan, np.inf, 0.25
    alone = summarise_columns(X)
    monkeypatch.setattr(parallel, "LEAST_WORK", 1)
    with parallel_config(backend="threading", n_jobs=3):
        together = summarise_columns(X)
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, other, strict=True)


@pytest.mark.parametrize(
    ("texts", "advice"),
    [
        ([f"{k / 8}" for k in range(1_100)] + ["-"], "numbers but for texts such as '-', so mark"),
        (pd.date_range("2020-01-01", periods=1_100).astype(str), "they are dates, so turn them"),
        ([f"C{k}" for k in range(1_100)], "group them, or drop the column"),
    ],
)
def test_too_many_categories_are_refused_with_what_to_do(texts, advice):
    with pytest.raises(ValueError, match=f"more than the 1,000 a readable .* on: .*{advice}"):
        FeatureSpace.observe(pd.DataFrame({"a": texts}))


SCATTERED = np.random.default_rng(0).permutation(5_000)[:60].astype(float)


def table_of(name, column):
    return Table((name,), [np.asarray(column)], {})


@pytest.mark.parametrize(
    "name", ["id", "Unnamed: 0", "ID", "patient_id", "patientID", "Case No", "row"]
)
def test_columns_called_so_number_rows_if_no_number_stands_twice(name):
    assert row_numbers(table_of(name, SCATTERED)) == [name]
    assert row_numbers(table_of(name, np.r_[SCATTERED[:-1], SCATTERED[0]])) == []
    assert row_numbers(table_of(name, SCATTERED + 0.5)) == []


@pytest.mark.parametrize("name", ["paid", "income", "piano", "tomorrow"])
def test_other_columns_number_rows_only_if_they_count_on(name):
    assert row_numbers(table_of(name, SCATTERED)) == []
    counted = np.random.default_rng(1).permutation(60) + 7.0
    assert row_numbers(table_of(name, counted)) == [name]
    assert row_numbers(table_of(name, counted[:20])) == []  # few rows may well be all different


@pytest.mark.parametrize("least", [-1e308, -1.7e308])
def test_columns_that_reach_further_than_numbers_go_are_refused(least):
    rows = pd.DataFrame({"far": [least, 1e308], "near": [0.0, 1.0]})
    with pytest.raises(ValueError, match=r"column 'far' reaches .* divide its values") as caught:
        FeatureSpace.observe(rows)
    assert "\n" not in str(caught.value)
    assert FeatureSpace.observe(rows / 4)[0].high == 2.5e307
