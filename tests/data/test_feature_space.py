import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadytree.data.binning import midpoint_cuts, quantile_cuts
from steadytree.data.column import Column
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.splits import SplitTable
from steadytree.data.table import Table

MIXED = {
    "age": [31.5, 47.0, None, 60.25],
    "visits": [1, 2, 3, 4],
    "smoker": [True, False, True, None],
    "site": ["north", None, "south", "north"],
}


def frames():
    return [pd.DataFrame(MIXED), pl.DataFrame(MIXED), pl.DataFrame(MIXED).to_arrow()]


@pytest.mark.parametrize("frame", frames(), ids=["pandas", "polars", "pyarrow"])
def test_frames_are_read_alike(frame):
    space = FeatureSpace.observe(frame)
    assert space.names == tuple(MIXED)
    assert [column.kind for column in space] == ["numeric", "integer", "binary", "categorical"]
    assert [column.missing for column in space] == [True, False, True, True]
    assert (space[0].low, space[0].high) == (31.5, 60.25)
    assert space[3].categories == ("north", "south")
    expected = [[31.5, 1, 1, 0], [47, 2, 0, np.nan], [np.nan, 3, 1, 1], [60.25, 4, np.nan, 0]]
    np.testing.assert_array_equal(space.encode(frame), expected)


def test_nullable_and_categorical_pandas_columns():
    frame = pd.DataFrame(
        {
            "count": pd.array([1, None, 3], dtype="Int64"),
            "grade": pd.Categorical(["b", "a", None], categories=["c", "b", "a"]),
            "small": np.array([1, 2, 3], np.int8),
            "words": pd.array(["x", None, "y"], dtype="string"),
        }
    )
    space = FeatureSpace.observe(frame)
    assert [column.kind for column in space] == ["integer", "categorical", "integer", "categorical"]
    assert space[1].categories == ("c", "b", "a")  # the type's own, in its order, seen or not
    expected = [[1, 1, 1, 0], [np.nan, 2, 2, np.nan], [3, np.nan, 3, 1]]
    np.testing.assert_array_equal(space.encode(frame), expected)


def test_an_unknown_category_is_missing():
    space = FeatureSpace.observe(pd.DataFrame({"site": ["a", "b"]}))
    codes = space.encode(pd.DataFrame({"site": ["b", "elsewhere", None]}))
    np.testing.assert_array_equal(codes[:, 0], [1, np.nan, np.nan])


def test_frames_are_read_by_name_and_may_hold_more():
    space = FeatureSpace.observe(pd.DataFrame({"a": [1.5, 2], "b": [3, 4.5]}))
    values = space.encode(pd.DataFrame({"z": [0], "b": [9.5], "a": [8.5]}))
    np.testing.assert_array_equal(values, [[8.5, 9.5]])
    with pytest.raises(ValueError, match=r"lacks the column\(s\) 'b'"):
        space.encode(pd.DataFrame({"a": [1.0]}))


def test_declared_bounds_and_categories_take_the_place_of_observed_ones():
    frame = pd.DataFrame({"age": [30, 40], "code": [1, 2]})
    space = FeatureSpace.observe(frame, bounds={"age": (0, 120)}, categories={"code": [2, 1, 7]})
    assert (space[0].low, space[0].high) == (0, 120)
    assert space[1].categories == ("2", "1", "7")
    np.testing.assert_array_equal(space.encode(frame)[:, 1], [1, 0])
    with pytest.raises(ValueError, match="bounds names 'agee'"):
        FeatureSpace.observe(frame, bounds={"agee": (0, 1)})


def test_a_declared_space_looks_at_no_data():
    space = FeatureSpace.declare({"age": (0, 120)}, {"site": ["a", "b"]}, {"age": "integer"})
    assert [(c.name, c.kind, c.missing) for c in space] == [
        ("age", "integer", True),
        ("site", "categorical", True),
    ]
    assert len(space.with_cuts(np.empty((0, 2)))[0].cuts) == 120


def test_codes_put_a_value_left_of_a_cut_just_when_it_is_at_most_the_cut():
    rng = np.random.default_rng(0)
    X = rng.choice([0.0, 0.1, 0.25, 0.5, 3.0, np.nan], (200, 3))
    for grid in ("equidistant", "quantile", "midpoint"):
        space = FeatureSpace.observe(X).with_cuts(X, grid, 7)
        codes = space.codes(X)
        for j, column in enumerate(space):
            present = ~np.isnan(X[:, j])
            for q, cut in enumerate(column.cuts):
                np.testing.assert_array_equal(
                    codes[j, present] <= q, X[present, j] <= cut, err_msg=f"{grid} {cut}"
                )
            assert (codes[j, ~present] == column.n_bins).all()


def test_codes_take_one_byte_where_they_can():
    X = np.random.default_rng(0).random((300, 1))
    assert FeatureSpace.observe(X).with_cuts(X, n_cuts=200).codes(X).dtype == np.uint8
    assert FeatureSpace.observe(X).with_cuts(X, n_cuts=500).codes(X).dtype == np.uint16


def test_equidistant_cuts_span_the_bounds_and_whole_numbers_get_whole_cuts():
    X = np.array([[0.0, 1.0, 0.0, 7.0], [2.5, 4.0, 1.0, 7.0]])
    space = FeatureSpace.observe(X).with_cuts(X, n_cuts=11)
    np.testing.assert_allclose(space[0].cuts, np.linspace(0, 2.5, 11), rtol=1e-7)
    np.testing.assert_array_equal(space[1].cuts, [1, 2, 3])
    np.testing.assert_array_equal(space[2].cuts, [0.5])
    assert len(space[3].cuts) == 0


def test_cuts_are_float32_numbers_where_that_changes_no_split():
    X = np.linspace(0, 1, 41)[:, None]
    for grid in ("equidistant", "quantile", "midpoint"):
        cuts = FeatureSpace.observe(X).with_cuts(X, grid, 500)[0].cuts
        np.testing.assert_array_equal(cuts, cuts.astype(np.float32))
    close = 1e9 + np.arange(5.0)[:, None] / 4  # float32 cannot tell these apart
    cuts = FeatureSpace.observe(close).with_cuts(close, "midpoint")[0].cuts
    np.testing.assert_array_equal(cuts, (close[1:, 0] + close[:-1, 0]) / 2)


@given(st.lists(st.floats(-1e300, 1e300), min_size=2, max_size=30))
def test_midpoints_divide_every_pair_of_neighbours(values):
    distinct = np.unique(np.array(values))
    cuts = midpoint_cuts("x", np.array(values))
    assert len(cuts) == len(distinct) - 1
    assert ((distinct[:-1] <= cuts) & (cuts < distinct[1:])).all()


def test_quantiles_of_weights_and_of_repeated_rows_agree():
    rng = np.random.default_rng(1)
    values, weights = rng.normal(size=300), rng.integers(1, 5, 300)
    by_weight = quantile_cuts(values, 20, weights.astype(float))
    np.testing.assert_array_equal(by_weight, quantile_cuts(np.repeat(values, weights), 20))
    assert len(by_weight) == 20


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (np.empty((0, 3)), ValueError, r"0 sample\(s\)"),
        (np.empty((3, 0)), ValueError, r"0 feature\(s\)"),
        (np.zeros(3), ValueError, "Reshape your data"),
        ([[1.0, np.inf]], ValueError, r"'x1' hold infinity"),
        ([[np.nan], [np.nan]], ValueError, "'x0' holds no value at all"),
        (pd.DataFrame({"a": [None, None]}, dtype=object), ValueError, "'a' holds no value"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), ValueError, "'a' stand more than once"),
        (pd.DataFrame({"id": [f"p{k}" for k in range(10_000)]}), ValueError, "10,000 categories"),
        (pd.DataFrame({"d": pd.to_datetime(["2020-01-01"])}), TypeError, "'d' holds Datetime"),
        ([[1j]], ValueError, "Complex data"),
    ],
)
def test_bad_tables_are_refused(X, error, message):
    with pytest.raises(error, match=message):
        FeatureSpace.observe(X)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a", "number"), "kind must be one of"),
        (("a", "numeric", 2.0, 1.0), "finite and in order"),
        (("a", "numeric", 0.0, 1.0, ("x",)), "only a categorical column"),
        (("a", "categorical"), "needs its categories"),
        (("a", "categorical", np.nan, np.nan, ("x", "x")), "stands twice"),
        (("a", "numeric", 0.0, 1.0, (), False, np.array([1.0, 0.5])), "finite and rise"),
        (("a", "numeric", 0.0, 1.0, (), False, np.array([0.5, np.inf])), "finite and rise"),
        (("a", "numeric", 0.0, 1.0, (), False, np.array([np.nan])), "finite and rise"),
    ],
)
def test_bad_columns_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Column(*arguments)


def test_merged_rules_keep_their_thresholds_and_their_number():
    X = np.array([[0.0], [0.0], [10.0], [2.5]])
    space = FeatureSpace.observe(X).with_cuts(X, n_cuts=21)
    codes = space.codes(X)
    rules = SplitTable.of(space, space.occupied(codes))
    assert rules.n_candidates == 21
    assert list(zip(rules.table.first, rules.table.last, strict=True)) == [(0, 4), (5, 19)]
    np.testing.assert_array_equal(rules.recode(codes), [[0, 0, 2, 1]])


def test_a_table_is_not_copied():
    X = np.random.default_rng(0).random((5, 2))
    assert np.shares_memory(Table.read(X).matrix, X)
    assert np.shares_memory(FeatureSpace.observe(X).encode(X), X)
