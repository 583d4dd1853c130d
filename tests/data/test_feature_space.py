import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from steadytree.data.column import Column, Summary
from steadytree.data.feature_space import FeatureSpace
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
    binned = space.encode(pd.DataFrame({"site": ["b", "elsewhere", None]}))
    np.testing.assert_array_equal(binned[:, 0], [1, np.nan, np.nan])


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
    assert len(space.with_thresholds(np.empty((0, 2)))[0].thresholds) == 120


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (np.empty((0, 3)), ValueError, r"0 sample\(s\)"),
        (np.empty((3, 0)), ValueError, r"0 feature\(s\)"),
        (np.zeros(3), ValueError, "Reshape your data"),
        ([[1.0, np.inf]], ValueError, r"'x1' hold infinity"),
        ([[np.nan], [np.nan]], ValueError, "'x0' holds no value at all"),
        (pd.DataFrame({"a": [None, None]}, dtype=object), ValueError, "'a' holds no value"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), ValueError, "'a' appear more than once"),
        (pd.DataFrame({"id": [f"p{k}" for k in range(10_000)]}), ValueError, "10,000 categories"),
        (pd.DataFrame({"d": pd.to_datetime(["2020-01-01"])}), TypeError, "'d' holds dates"),
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
        (("a", "categorical", np.nan, np.nan, ("x", "x")), "appears twice"),
        (("a", "numeric", 0.0, 1.0, (), False, np.array([1.0, 0.5])), "finite and increasing"),
        (("a", "numeric", 0.0, 1.0, (), False, np.array([0.5, np.inf])), "finite and increasing"),
        (("a", "numeric", 0.0, 1.0, (), False, np.array([np.nan])), "finite and increasing"),
    ],
)
def test_bad_columns_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Column(*arguments)


def test_summaries_of_parts_add_up():
    parts = [Summary.of(Table.read(rows)) for rows in ([[1, 0.5]], [[4, None]])]
    columns = (parts[0] + parts[1]).columns()
    found = [(column.kind, column.low, column.high) for column in columns]
    assert found == [("integer", 1.0, 4.0), ("numeric", 0.5, 0.5)]


def test_text_in_a_column_of_numbers_is_named():
    space = FeatureSpace.observe(pd.DataFrame({"age": [1.0, 2.0]}))
    with pytest.raises(ValueError, match=r"'age' was numbers .* now holds text such as 'forty'"):
        space.encode(pd.DataFrame({"age": ["41", "forty"]}))


def test_bools_are_known_by_their_names_and_as_numbers():
    """A csv file holds True where a frame holds a bool; either way a model finds it."""
    flags, texts = [[True], [False], [True]], np.array([["True"], ["False"], [None]], object)
    of_numbers = FeatureSpace.observe(np.array(flags))
    np.testing.assert_array_equal(of_numbers.encode(texts)[:, 0], [1, 0, np.nan])
    of_texts = FeatureSpace.observe(texts)
    assert of_texts[0].categories == ("False", "True")
    np.testing.assert_array_equal(of_texts.encode(np.array(flags))[:, 0], [1, 0, 1])
    with pytest.raises(ValueError, match="text such as 'perhaps'"):
        of_numbers.encode(np.array([["True"], ["perhaps"]], object))


def test_columns_that_cannot_be_used_are_named_at_once():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [np.nan, np.nan], "c": [None, None]})
    wrong = frame.assign(d=np.inf, e=[1.0, -np.inf])
    both = "'d', 'e' hold infinity.* columns 'b', 'c' hold no value at all"
    with pytest.raises(ValueError, match=both):
        FeatureSpace.observe(wrong)
    with pytest.raises(ValueError, match=r"^column 'b' holds no value at all"):
        FeatureSpace.observe(frame[["a", "b"]])
    day = datetime.date(2026, 1, 2)
    dates = frame.assign(f=pd.Timestamp(day), g=pd.Timestamp(day), h=[day, None], k=pd.Timedelta(1))
    text = "'f', 'g' hold dates.*'k' holds durations.*'h' holds dates, which a tree cannot split on"
    with pytest.raises(TypeError, match=text):
        FeatureSpace.observe(dates)


def test_the_order_of_a_categorical_is_known():
    levels = ["none", "mild", "severe"]
    ordered = pd.Categorical(["mild", "none", None], categories=levels, ordered=True)
    frame = pd.DataFrame({"a": ordered, "b": pd.Categorical(ordered, ordered=False)})
    space = FeatureSpace.observe(frame)
    assert [column.ordered for column in space] == [True, False]
    assert space[0].categories == tuple(levels)
    assert space[0].ranks.tolist() == [0, 1, 2]
    assert space[1].ranks is None
    assert space[0] != space[1]
    arrow = pa.table({"a": pa.array(ordered)})
    assert FeatureSpace.observe(arrow)[0].ordered
    enumeration = pl.DataFrame({"a": pl.Series(["mild"], dtype=pl.Enum(levels))})
    assert not FeatureSpace.observe(enumeration)[0].ordered
    assert not FeatureSpace.observe(frame, categories={"a": levels})[0].ordered
    parts = Summary.of(Table.read(frame)) + Summary.of(Table.read(frame[:1]))
    assert parts.columns()[0].ordered
    other = frame.assign(a=frame["a"].cat.reorder_categories(levels[::-1]))
    assert not (Summary.of(Table.read(frame)) + Summary.of(Table.read(other))).columns()[0].ordered
    with pytest.raises(ValueError, match="only a categorical column may be ordered"):
        Column("a", "numeric", 0.0, 1.0, ordered=True)
