import numpy as np
import pandas as pd
import pytest

from steadytree.data.feature_space import FeatureSpace
from steadytree.stability.grouped_bins import (
    GroupedBins,
    rounded_thresholds,
    roundest_number,
    step_of,
)


def test_rare_categories_share_a_bin_and_unseen_ones_follow_the_larger_side():
    names = np.array(["a"] * 60 + ["b"] * 38 + ["r", "s"], dtype=object)
    X = pd.DataFrame({"c": pd.Categorical(names, categories=list("abrsz"))})
    y = np.array([0] * 60 + [1] * 40)
    space = FeatureSpace.observe(X)
    values, targets = space.encode(X), y[:, None].astype(float)
    bins = GroupedBins.of(space, values, targets, np.ones(100))
    a, b, r, s, z, missing = bins.groups[0]
    assert a == 0
    assert r == s
    assert {b, r} == {1, 2}
    assert z == missing == -1
    larger = bins.split_at(0, 1 << a, larger_left=True)
    assert larger.subset.tolist() == [True, False, False, False, True]
    assert larger.missing_left
    assert not bins.split_at(0, 1 << a, larger_left=False).subset[4]


@pytest.mark.parametrize(
    ("sizes", "n_bins"),
    [
        ((4900, 60, 40), 3),  # few of all, but 25 rows and more
        ((460, 20, 20), 3),  # fewer than 25 rows, but more than a fiftieth of all
        ((1960, 20, 20), 2),  # both
    ],
)
def test_rare_is_what_is_few_in_number_and_in_share(sizes, n_bins):
    names = np.repeat(["a", "b", "c"], sizes)
    X, y = pd.DataFrame({"c": names}), (np.arange(len(names)) % 2).astype(float)
    y[names == "c"] = 1.0
    space = FeatureSpace.observe(X)
    bins = GroupedBins.of(space, space.encode(X), y[:, None], np.ones(len(y)))
    assert bins.n_bins.tolist() == [n_bins]


def test_of_very_many_categories_neighbours_share_a_bin():
    names = np.repeat([f"c{k:02}" for k in range(50)], 100)
    y = (np.tile(np.arange(100), 50) < 2 * np.repeat(np.arange(50), 100)).astype(float)
    space = FeatureSpace.observe(pd.DataFrame({"c": names}))
    values = space.encode(pd.DataFrame({"c": names}))
    bins = GroupedBins.of(space, values, y[:, None], np.ones(len(y)))
    group = bins.groups[0][:-1]
    assert (np.diff(group) >= 0).all()  # in order of their shares
    np.testing.assert_array_equal(np.unique(group), np.arange(32))
    assert bins.n_bins.tolist() == [32]


@pytest.mark.parametrize("missing", [False, True])
def test_questions_send_rows_where_their_bins_go(missing):
    values = np.repeat(np.arange(5.0), 20)[:, None]
    if missing:
        values[::7] = np.nan
    space = FeatureSpace.observe(values)
    bins = GroupedBins.of(space, values, values[:, :1] > 2, np.ones(100))
    binned, n = bins.binned(values)[:, 0], bins.space[0].n_bins
    assert n == 5
    listed = [(1 << k) - 1 for k in range(1, n)]
    if missing:  # with the missing values, or these alone
        listed += [low | 1 << n for low in [0, *listed]] + [(1 << n) - 1]
    for asked in listed:
        for larger_left in (False, True):
            split_at = bins.split_at(0, asked, larger_left)
            gone = np.isnan(values[:, 0])
            left = np.where(gone, split_at.missing_left, values[:, 0] <= split_at.threshold)
            np.testing.assert_array_equal(left != split_at.swapped, asked >> binned & 1 == 1)
            if not missing:
                assert split_at.missing_left == larger_left


@pytest.mark.parametrize("scale", [1e-12, 1e-3, 1.0, 1e9])
def test_cuts_are_few_rise_and_part_numbers_as_single_precision_does(scale):
    rng = np.random.default_rng(0)
    x = rng.normal(3, 2, 1000).round(2) * scale
    thresholds = rounded_thresholds(x, np.ones(1000))
    assert 16 < len(thresholds) <= 32
    assert (np.diff(thresholds) > 0).all()
    single = x.astype(np.float32)
    for threshold in thresholds:
        assert ((x <= threshold) == (single <= threshold)).all()
        assert 0 < (x <= threshold).sum() < 1000


def test_cuts_stay_when_a_tenth_of_the_rows_goes():
    rng = np.random.default_rng(0)
    x = rng.normal(50, 10, 3000)
    whole = rounded_thresholds(x, np.ones(3000))
    part = rounded_thresholds(x[300:], np.ones(2700))
    assert len(np.intersect1d(whole, part)) >= 0.6 * len(whole)


def test_the_tail_of_a_column_with_many_equal_values_has_cuts():
    rng = np.random.default_rng(0)
    x = np.where(rng.random(2000) < 0.92, 0.0, rng.exponential(5000, 2000).round())
    thresholds = rounded_thresholds(x, np.ones(2000))
    assert thresholds[0] == 0
    assert (thresholds > 0).sum() >= 8
    counts = np.bincount(np.searchsorted(thresholds, x))
    assert counts[1:].min() >= 5


def test_an_offset_does_not_take_the_cuts_away():
    x = np.random.default_rng(0).normal(1012, 10, 2000).round(1)
    thresholds = rounded_thresholds(x, np.ones(2000))
    assert len(thresholds) >= 24
    assert {1000, 1010, 1020} <= set(thresholds)


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        ((-0.1, 0.02, 0.3), 0.0),
        ((0.13, 0.17, 0.26), 0.2),
        ((12.0, 13.0, 14.0), 12.0),
        ((97.0, 98.0, 104.0), 100.0),
        ((-7.3, -6.1, -5.2), -6.0),
        ((5119.0, 5160.0, 5200.0), 5150.0),
    ],
)
def test_the_roundest_number_between_two(interval, expected):
    low, _, high = interval
    found = roundest_number(*interval)
    assert found == pytest.approx(expected)
    assert low <= found < high
    assert step_of(found) >= max(map(step_of, np.linspace(low, high, 8)[:-1]))


def test_how_round_a_number_is():
    numbers = [0.0, 300.0, 50.0, 20.0, 7.0, 2.5, 0.3, float(np.float32(0.1)), 1012.5]
    steps = [np.inf, 100.0, 50.0, 20.0, 1.0, 0.5, 0.1, 0.1, 0.5]
    assert [step_of(number) for number in numbers] == pytest.approx(steps)


@pytest.mark.parametrize("missing", [False, True])
def test_ordered_categories_without_rows_join_the_lower_ones(missing):
    codes = np.array([1, 1, 3, 4, 4, -1 if missing else 4])
    X = pd.DataFrame({"c": pd.Categorical.from_codes(codes, list("uvwxyz"), ordered=True)})
    space = FeatureSpace.observe(X)
    values = space.encode(X)
    bins = GroupedBins.of(space, values, np.zeros((6, 1)), np.ones(6))
    assert bins.groups[0].tolist() == [0, 0, 0, 1, 2, 2, 3 if missing else -1]
    assert bins.n_bins.tolist() == [4 if missing else 3]
    assert bins.binned(values)[:, 0].tolist() == [0, 0, 1, 2, 2, 3 if missing else 2]
