"""Grids of thresholds, and the bins between them."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadytree.data.binning import (
    FEW_ROWS,
    MAX_THRESHOLDS,
    between,
    bin_index_type,
    column_blocks,
    encode_bins,
    equidistant_thresholds,
    even_bins,
    even_cells,
    midpoint_thresholds,
    quantile_thresholds,
)
from steadytree.data.column import Column
from steadytree.data.feature_space import FeatureSpace


def test_a_bin_is_left_of_a_threshold_exactly_if_its_values_are_at_most_the_threshold():
    rng = np.random.default_rng(0)
    X = rng.choice([0.0, 0.1, 0.25, 0.5, 3.0, np.nan], (200, 3))
    for grid in ("equidistant", "quantile", "midpoint"):
        space = FeatureSpace.observe(X).with_thresholds(X, grid, 7)
        binned = space.binned(X)
        for j, column in enumerate(space):
            present = ~np.isnan(X[:, j])
            for q, threshold in enumerate(column.thresholds):
                np.testing.assert_array_equal(
                    binned[j, present] <= q,
                    X[present, j] <= threshold,
                    err_msg=f"{grid} {threshold}",
                )
            assert (binned[j, ~present] == column.n_bins).all()


def test_bins_of_many_rows_take_one_byte_if_they_fit():
    X = np.random.default_rng(0).random((FEW_ROWS, 1))
    for n_thresholds, rows, dtype in (
        (200, X, np.uint8),
        (500, X, np.uint16),
        (200, X[1:], np.uint16),
    ):
        space = FeatureSpace.observe(X).with_thresholds(X, n_thresholds=n_thresholds)
        assert space.binned(rows).dtype == dtype


def test_equidistant_thresholds_span_the_bounds_and_integers_get_integers():
    X = np.array([[0.0, 1.0, 0.0, 7.0], [2.5, 4.0, 1.0, 7.0]])
    space = FeatureSpace.observe(X).with_thresholds(X, n_thresholds=11)
    np.testing.assert_allclose(space[0].thresholds, np.linspace(0, 2.5, 11), rtol=1e-7)
    np.testing.assert_array_equal(space[1].thresholds, [1, 2, 3])
    np.testing.assert_array_equal(space[2].thresholds, [0.5])
    assert len(space[3].thresholds) == 0


def test_integers_that_are_equal_as_floats_have_one_threshold():
    low = 2.0**53
    column = Column("id", "integer", low, low + 6)
    (found,) = equidistant_thresholds([column], 20)
    assert found.tolist() == even_bins(column, 20).tolist() == [low, low + 2, low + 4]


@pytest.mark.parametrize("low", [-2.0, -0.5, 0.0, 0.25])
@pytest.mark.parametrize("high", [0.5, 1.0, 2.75, 3.0])
def test_whole_numbers_between_bounds_that_are_none(low, high):
    """Bounds may be declared: every whole number below the upper bound divides what lies there."""
    column = Column("n", "integer", low, high)
    expected = [k for k in range(-9, 9) if low <= k < high]
    assert even_bins(column, 20).tolist() == expected
    assert equidistant_thresholds([column], 20)[0].tolist() == expected


def test_thresholds_are_float32_numbers_where_that_changes_no_split():
    X = np.linspace(0, 1, 41)[:, None]
    for grid in ("equidistant", "quantile", "midpoint"):
        thresholds = FeatureSpace.observe(X).with_thresholds(X, grid, 500)[0].thresholds
        np.testing.assert_array_equal(thresholds, thresholds.astype(np.float32))
    close = 1e9 + np.arange(5.0)[:, None] / 4  # float32 cannot tell these apart
    thresholds = FeatureSpace.observe(close).with_thresholds(close, "midpoint")[0].thresholds
    np.testing.assert_array_equal(thresholds, (close[1:, 0] + close[:-1, 0]) / 2)


@given(st.lists(st.floats(-1e300, 1e300), min_size=2, max_size=30))
def test_midpoints_divide_every_pair_of_neighbours(values):
    distinct = np.unique(np.array(values))
    thresholds = midpoint_thresholds("x", np.array(values))
    assert len(thresholds) == len(distinct) - 1
    assert ((distinct[:-1] <= thresholds) & (thresholds < distinct[1:])).all()


@pytest.mark.parametrize("n_distinct", [4, 5, 6])
def test_as_many_midpoints_as_codes_have_room_for(n_distinct, monkeypatch):
    monkeypatch.setattr("steadytree.data.binning.MAX_THRESHOLDS", 4)
    values = np.arange(float(n_distinct))
    if n_distinct <= 5:
        assert len(midpoint_thresholds("x", values)) == n_distinct - 1
    else:
        with pytest.raises(ValueError, match="6 distinct values, more than the 4 that"):
            midpoint_thresholds("x", values)


@pytest.mark.parametrize(
    ("width", "steps", "moves"), [(18, 4, 1), (18, 5, 0), (6, 1, 1), (3, 1, 0)]
)
def test_points_move_by_at_most_a_quarter_of_their_distance(width, steps, moves):
    low = 2.0**24 + 1  # odd, and from here on only even numbers are float32
    found = equidistant_thresholds([Column("x", "numeric", low, low + width)], steps + 1)[0]
    points = [low + width * k / steps for k in range(steps + 1)]
    assert np.abs(found - points).max() <= width / steps / 4 + 1e-6
    assert abs(found[0] - low) == moves  # a quarter of the distance is more than 1, or less


def test_no_two_even_thresholds_share_a_cell():
    """Else a bin is searched for among several, which takes longer and gives the same."""
    n_thresholds = 100
    for low in (-7.0, 0.0, 5.0, 1e6):
        thresholds = np.linspace(low, low + 1, n_thresholds)
        _, _, below, cell_ends, *_, most = even_cells(thresholds, np.array([0, n_thresholds]))
        assert cell_ends.tolist() == [0, 2 * n_thresholds + 2]  # two a threshold, and the ends
        assert most.tolist() == [np.diff(below.astype(int)).max()] == [1]
        assert below[-1] == n_thresholds


def test_quantile_thresholds_lie_halfway_between_neighbours():
    values = np.random.default_rng(3).integers(0, 60, 400) * 2.0
    distinct = sorted(set(values))
    halfway = [(low + high) / 2 for low, high in itertools.pairwise(distinct)]
    assert quantile_thresholds(values, len(halfway)).tolist() == halfway  # all of them
    for n_thresholds in (3, 10, 40):
        found = quantile_thresholds(values, n_thresholds).tolist()
        assert len(found) == n_thresholds
        assert set(found) <= set(halfway)
        # as many rows below each as an even share, up to those that are equal
        for k, threshold in enumerate(found, 1):
            share = k / (n_thresholds + 1)
            assert np.mean(values < threshold) >= share - 1e-9
            assert np.mean(values < threshold - 2) < share


def test_quantiles_of_weights_and_of_repeated_rows_agree():
    rng = np.random.default_rng(1)
    values, weights = rng.normal(size=300), rng.integers(1, 5, 300)
    by_weight = quantile_thresholds(values, 20, weights.astype(float))
    np.testing.assert_array_equal(by_weight, quantile_thresholds(np.repeat(values, weights), 20))
    assert len(by_weight) == 20


def test_even_bins_of_declared_columns():
    np.testing.assert_array_equal(even_bins(Column("a", "numeric", 0.0, 1.0), 4), [0.25, 0.5, 0.75])
    np.testing.assert_array_equal(even_bins(Column("a", "integer", 0.0, 3.0), 8), [0, 1, 2])
    np.testing.assert_array_equal(even_bins(Column("a", "integer", 0.0, 10.0), 4), [2, 5, 7])
    thresholds = even_bins(Column("a", "numeric", 0.0, 0.7), 7)
    np.testing.assert_array_equal(thresholds, thresholds.astype(np.float32))
    close = even_bins(Column("a", "numeric", 1e9, 1e9 + 1), 4)  # float32 cannot tell these apart
    np.testing.assert_array_equal(close, 1e9 + np.array([0.25, 0.5, 0.75]))


def hard_thresholds(rng):
    """Rising thresholds that even cells divide badly: clusters, one, none, ends of the floats."""
    middle = float(rng.normal() * 10.0 ** rng.integers(-5, 6))
    yield np.empty(0)
    yield np.array([middle])
    yield np.array([middle, np.nextafter(middle, np.inf)])
    yield np.array([-1.7e308, middle, 1.7e308])
    yield np.unique(np.exp(rng.normal(size=40) * 8))
    yield np.append(np.linspace(0, 1e-9, 30), 1e9)
    yield np.append(-1e300, np.linspace(-1, 1, 50))
    yield np.append(-1e9, np.linspace(0, 1e-9, 30))  # nearly all in the last cell
    yield np.array([0.0, 5e-324, 1e-323])
    yield np.unique(rng.integers(-50, 50, 30) / 3)


def test_bins_are_exact_at_thresholds_and_their_neighbours():
    rng = np.random.default_rng(0)
    for thresholds in (t for _ in range(30) for t in hard_thresholds(rng)):
        below, above = np.nextafter(thresholds, -np.inf), np.nextafter(thresholds, np.inf)
        ends = [-np.inf, np.inf, np.nan, 0.0, rng.normal()]
        values = np.concatenate([thresholds, below, above, ends])[:, None]
        column = (thresholds, np.array([0, len(thresholds)]), np.array([0]))
        binned = encode_bins(values, *column, np.zeros((1, len(values)), np.uint16))
        expected = [
            np.where(np.isnan(x), len(thresholds) + 1, (thresholds < x).sum()) for x in values
        ]
        np.testing.assert_array_equal(binned[0], np.ravel(expected))


def test_the_cells_of_a_column_hold_its_thresholds_whatever_columns_stand_beside_it():
    rng = np.random.default_rng(1)
    several = list(hard_thresholds(rng))
    offsets = np.cumsum([0, *map(len, several)])
    *_, below, cell_ends, low, scale, most = even_cells(np.concatenate(several), offsets)
    for j, own in enumerate(several):
        alone = even_cells(own, np.array([0, len(own)]))
        np.testing.assert_array_equal(below[cell_ends[j] : cell_ends[j + 1]], alone[2])
        assert below[cell_ends[j + 1] - 1] == len(own) + 1 - most[j]
        assert (low[j], scale[j], most[j]) == (alone[4][0], alone[5][0], alone[6][0])


@pytest.mark.parametrize("kind", [np.uint8, np.uint16])
def test_columns_side_by_side_have_the_bins_that_a_search_finds(kind):
    rng = np.random.default_rng(2)
    several = [*hard_thresholds(rng), *hard_thresholds(rng)]
    offsets = np.cumsum([0, *map(len, several)])
    every = np.concatenate(several)
    n = len(several)
    values = rng.choice([*every, *np.nextafter(every, np.inf), np.nan, np.inf, -np.inf], (900, n))
    values[:300] = rng.normal(size=(300, n))
    sizes = np.zeros(n, np.int64)
    binned = encode_bins(values, every, offsets, sizes, np.zeros((n, 900), kind))
    for own, column, bins in zip(several, values.T, binned, strict=True):
        missing = np.isnan(column)
        np.testing.assert_array_equal(bins[missing], len(own) + 1)
        np.testing.assert_array_equal(bins[~missing], np.searchsorted(own, column[~missing]))


def test_more_rows_than_a_block_are_binned():
    values = np.random.default_rng(0).normal(size=(1_500, 2))
    column = (np.array([-1.0, 0.0, 0.5, 0.2]), np.array([0, 3, 4]), np.array([0, 0]))
    binned = encode_bins(values, *column, np.zeros((2, 1_500), np.uint8))
    expected = [(values[:, [0]] > column[0][:3]).sum(axis=1), values[:, 1] > 0.2]
    np.testing.assert_array_equal(binned, expected)


def float32_or(points, room):
    """Each point as the nearest float32 number, if that is at most so far away."""
    with np.errstate(over="ignore"):
        single = [float(np.float32(point)) for point in points]
    return [s if abs(s - p) <= room else p for s, p in zip(single, points, strict=True)]


ENDS = [(0.0, 1.0), (-3.0, 5.5), (1e6 + 0.1, 1e6 + 0.9), (2.0**24 + 1, 2.0**24 + 40), (-7e5, 0.3)]


@pytest.mark.parametrize("n", [1, 2, 3, 5, 12])
@pytest.mark.parametrize(("low", "high"), ENDS)
def test_even_points_and_even_bins_point_by_point(low, high, n):
    """Also where float32 numbers lie farther apart than a quarter of a step."""
    column, other = Column("a", "numeric", low, high), Column("b", "numeric", 2 * low, 3 * high)
    for own, found in zip((column, other), equidistant_thresholds([column, other], n), strict=True):
        share = [k / (n - 1) for k in range(n)] if n > 1 else [0.5]
        points = [own.low * (1 - s) + own.high * s for s in share]
        room = (own.high - own.low) / max(n - 1, 1) / 4
        assert found == pytest.approx(float32_or(points, room), rel=0, abs=1e-9)
    inner = [low * (1 - k / n) + high * (k / n) for k in range(1, n)]
    expected = float32_or(inner, (high - low) / n / 4)
    assert even_bins(column, n) == pytest.approx(expected, rel=0, abs=1e-9)
    whole = Column("n", "integer", np.floor(low), np.ceil(high))
    if whole.high - whole.low >= n:
        inner = [np.floor(whole.low + (whole.high - whole.low) * k / n) for k in range(1, n)]
        expected = float32_or(inner, (whole.high - whole.low) / n / 4)
        assert even_bins(whole, n).tolist() == sorted(set(expected))


@pytest.mark.parametrize("n_points", [2, 3, 10])
def test_a_range_that_holds_fewer_floats_than_points_has_what_it_holds(n_points):
    low = 1e9
    narrow = Column("a", "numeric", low, np.nextafter(low, np.inf))
    point, wide = Column("b", "numeric", 3.0, 3.0), Column("c", "numeric", 0.0, 1.0)
    found = equidistant_thresholds([narrow, point, wide], n_points)
    assert found[0].tolist() == [narrow.low, narrow.high]
    assert found[1].tolist() == []
    assert len(found[2]) == n_points
    assert equidistant_thresholds([point], 1)[0].tolist() == [3.0]  # the one that is asked for


@pytest.mark.parametrize("n_bins", [254, 255, 256])
@pytest.mark.parametrize("n_rows", [FEW_ROWS - 1, FEW_ROWS, FEW_ROWS + 1])
def test_bins_take_one_byte_where_all_of_them_and_the_missing_one_fit(n_bins, n_rows):
    largest = np.array([n_bins], bin_index_type(n_bins, n_rows))[0]
    assert largest == n_bins
    assert largest.nbytes == (1 if n_bins < 256 and n_rows >= FEW_ROWS else 2)
    assert FEW_ROWS == 20_000
    assert MAX_THRESHOLDS + 2 <= 2**16 < 2 * MAX_THRESHOLDS  # bins and the missing one


def slow_cells(several):
    """Thresholds before each cell of every column, a cell's low end and scale, and the most."""
    below, ends, cell_ends, about = [], [0], [0], []
    for own in several:
        n_cells = 2 * len(own) + 1
        low, high = (own[0], own[-1]) if len(own) else (0.0, 0.0)
        with np.errstate(over="ignore", divide="ignore"):
            scale = 1 / (high / n_cells - low / n_cells) if high > low else 0.0
        scale = 0.0 if not 0 < scale < np.inf else scale
        with np.errstate(over="ignore", invalid="ignore"):
            places = [(t - low) * scale for t in own]
        cells = [int(min(p if p > 0 else 0, n_cells - 1)) for p in places]
        most = max([1, *(cells.count(cell) for cell in cells)])
        before = [sum(cell < k for cell in cells) for k in range(n_cells + 1)]
        below += [min(n, len(own) + 1 - most) for n in before]
        ends.append(ends[-1] + len(own) + 1)
        cell_ends.append(len(below))
        about.append((low, scale, most))
    return ends, below, cell_ends, *map(list, zip(*about, strict=True))


@pytest.mark.parametrize("seed", range(8))
def test_cells_are_those_that_are_counted_one_by_one(seed):
    rng = np.random.default_rng(seed)
    several = list(hard_thresholds(rng))
    several += [np.sort(rng.normal(size=rng.integers(1, 30))) for _ in range(5)]
    several = [several[k] for k in rng.permutation(len(several))[: rng.integers(1, 16)]]
    offsets = np.cumsum([0, *map(len, several)])
    ended, *found = even_cells(np.concatenate(several), offsets)
    assert ended.tolist() == [t for own in several for t in (*own, np.inf)]
    for one, expected in zip(found, slow_cells(several), strict=True):
        np.testing.assert_allclose(one, expected, rtol=1e-15)


def slow_quantiles(values, weights, n_thresholds):
    """Between the value that first reaches each level of the weight and the next one."""
    known = sorted({v for v in values if v == v})
    total = sum(w for v, w in zip(values, weights, strict=True) if v == v)
    if len(known) - 1 > n_thresholds:
        kept = set()
        for k in range(1, n_thresholds + 1):
            level = total * k / (n_thresholds + 1) - 1e-9
            reached = [
                sum(w for v, w in zip(values, weights, strict=True) if v <= t) >= level
                for t in known
            ]
            kept.add(min(reached.index(True), len(known) - 2))
    else:
        kept = range(len(known) - 1)
    return [(known[k] + known[k + 1]) / 2 for k in sorted(kept)]


@pytest.mark.parametrize("seed", range(12))
def test_quantiles_value_by_value(seed):
    """With missing values, few distinct ones, and a value that most of the weight has."""
    rng = np.random.default_rng(seed)
    values = rng.choice([0.0, 2.0, 4.0, 8.0, 8.0, 8.0, 16.0, 32.0, 64.0, np.nan], 60)
    weights = rng.integers(1, 4, 60).astype(float)
    weights[values == 64] *= 50 * rng.integers(2)
    for n_thresholds in range(1, 9):
        ones = quantile_thresholds(values, n_thresholds)
        assert ones.tolist() == slow_quantiles(values, np.ones(60), n_thresholds)
        found = quantile_thresholds(values, n_thresholds, weights)
        assert found.tolist() == slow_quantiles(values, weights, n_thresholds)


@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e7, 1e9, 3e38, 1e300])
def test_a_point_between_is_the_middle_or_a_float32_number_that_parts_as_well(scale):
    rng = np.random.default_rng(0)
    below = np.append(rng.normal(size=200) * scale, [0.0, 2.0**24, 2.0**24 + 1])
    steps = np.append(rng.choice([0, 1, 2, 2**20, 2**30, 2**40], 200), [1, 1, 1])
    above = below.copy()
    for k, n in enumerate(steps):
        above[k] += max(n, 1) * np.spacing(abs(below[k]))
    for low, high, point in zip(below, above, between(below, above), strict=True):
        middle = low + (high / 2 - low / 2)
        middle = middle if middle < high else low
        with np.errstate(over="ignore"):
            single, *seen = (float(np.float32(each)) for each in (middle, low, high))
        fits = np.isfinite(single) and low <= single < high and seen[0] <= single < seen[1]
        assert point == (single if fits else middle)
        assert low <= point < high


def test_blocks_of_columns_have_few_bins_or_one_column():
    assert column_blocks(np.array([0, 10, 20, 30, 31]), 5) == [(0, 1), (1, 2), (2, 3), (3, 4)]
    for seed in range(50):
        rng = np.random.default_rng(seed)
        offsets, most = 7 + np.cumsum([0, *rng.integers(1, 9, rng.integers(1, 12))]), 10
        blocks = column_blocks(offsets, most)
        assert [first for first, _ in blocks] == [0, *(last for _, last in blocks[:-1])]
        assert blocks[-1][1] == len(offsets) - 1
        for first, last in blocks:
            assert last - first == 1 or offsets[last] - offsets[first] <= most
            more = last + 1 < len(offsets) and offsets[last + 1] - offsets[first] <= most
            assert not more
