"""Figures of columns: ranges, missing and infinite values, whole numbers."""

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config

from steadytree._base import parallel
from steadytree.data import column
from steadytree.data.column import summarise_columns
from steadytree.data.feature_space import FeatureSpace
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
