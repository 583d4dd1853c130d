"""Bins of columns for bands: round thresholds that divide the weight, rare categories pooled."""

import numpy as np
import pytest

from steadytree.data.column import Column
from steadytree.riskscore.band_bins import MOST_BINS, ColumnBins, round_thresholds


@pytest.mark.parametrize("seed", range(8))
def test_many_values_are_divided_into_bins_of_about_equal_weight(seed):
    rng = np.random.default_rng(seed)
    x = rng.lognormal(3, 1, 5000)
    weights = rng.integers(1, 4, 5000).astype(float)
    at = round_thresholds(x, weights)
    assert MOST_BINS / 2 < len(at) < MOST_BINS
    assert (np.diff(at) > 0).all()
    inside = np.bincount(np.searchsorted(at, x, side="right"), weights)
    assert inside.max() <= 2.1 * weights.sum() / MOST_BINS
    assert max(len(f"{t:g}") for t in at) <= 5  # 5,000 random numbers have 16 digits


def test_few_values_are_all_told_apart_by_the_roundest_numbers():
    x = np.array([18.0, 33.0, 38.0, 62.0, 99.0, 101.0])
    at = round_thresholds(x, np.ones(6), "integer")
    np.testing.assert_array_equal(at, [20, 35, 50, 80, 100])
    np.testing.assert_array_equal(np.searchsorted(at, x, side="right"), np.arange(6))
    assert round_thresholds(np.array([3.0, 3.0]), np.ones(2)).tolist() == []
    one = np.array([0.0, 1.0])
    assert round_thresholds(one, np.ones(2), "binary").tolist() == [0.5]
    assert round_thresholds(one, np.ones(2), "integer").tolist() == [1]


@pytest.mark.parametrize("seed", range(5))
def test_thresholds_between_few_fractions_keep_their_distance(seed):
    x = np.unique(np.random.default_rng(seed).random(30).round(3))
    at = round_thresholds(x, np.ones(len(x)))
    gaps = np.diff(x)
    assert (at - x[:-1] >= gaps / 4 - 1e-12).all()
    assert (x[1:] - at >= gaps / 4 - 1e-12).all()
    close = np.array([1.0, np.nextafter(1.0, 2)])
    assert round_thresholds(close, np.ones(2)).tolist() == [close[1]]


def test_a_frequent_value_has_a_bin_of_its_own():
    x = np.concatenate([np.zeros(500), np.random.default_rng(0).random(1500) * 10 + 0.1])
    at = round_thresholds(x, np.ones(2000))
    binned = np.searchsorted(at, x, side="right")
    assert set(binned[500:]) & set(binned[:500]) == set()


def test_weights_count_as_repeated_values():
    rng = np.random.default_rng(1)
    x, weights = rng.normal(size=900).round(3), rng.integers(1, 4, 900)
    at = round_thresholds(x, weights.astype(float))
    np.testing.assert_array_equal(
        at, round_thresholds(np.repeat(x, weights), np.ones(weights.sum()))
    )


def test_rare_categories_share_a_bin_and_missing_has_its_own():
    column = Column("site", "categorical", categories=("a", "b", "c", "d"), missing=True)
    values = np.repeat([0.0, 1.0, 2.0, 3.0, np.nan], [30, 2, 20, 3, 5])
    bins = ColumnBins.of(column, values, np.ones(60), least=10)
    assert bins.bin_of_category.tolist() == [0, 2, 1, 2]
    assert bins.pools
    assert bins.binned(np.array([0, 1, 2, 3, np.nan])).tolist() == [0, 2, 1, 2, 3]
    assert not ColumnBins.of(column, values, np.ones(60), least=1).pools


def test_a_value_on_a_threshold_is_in_the_upper_bin():
    column = Column("age", "integer", 18, 90)
    bins = ColumnBins.of(column, np.arange(18.0, 90.0), np.ones(72), 1)
    at = bins.thresholds[5]
    assert bins.binned(np.array([np.nextafter(at, 0), at, np.nan])).tolist() == [5, 6, bins.size]
