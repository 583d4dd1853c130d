import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadytree.core.candidates import Candidates
from steadytree.core.schema import Schema, check_schema
from steadytree.core.schema_file import template

SCHEMA = Schema(
    bounds={"age": (0, 100), "pay": (-1.5, 1.5)},
    categories={"ward": ["A", "B", "7"]},
    classes=["home", "stays"],
    kinds={"age": "integer"},
    missing=["ward", "pay"],
    names=["ward", "age", "pay"],
)


@pytest.mark.parametrize("name", ["s.toml", "s.json"])
def test_a_schema_comes_back_from_its_file(tmp_path, name):
    SCHEMA.save(tmp_path / name)
    again = Schema.load(tmp_path / name)
    assert again == SCHEMA
    assert hash(again) == hash(SCHEMA)
    assert again.names == ("ward", "age", "pay")
    assert check_schema(str(tmp_path / name)) == SCHEMA


def test_values_never_fail():
    odd = [["A", 300, None], ["?", float("inf"), "x"], [7, "12", {}], [7.0, True, float("nan")]]
    expected = [[0, 100, np.nan], [np.nan, 100, np.nan], [2, 12, np.nan], [2, 1, np.nan]]
    np.testing.assert_array_equal(SCHEMA.encode(odd), expected)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_are_read_by_name(frame):
    data = frame({"pay": [9.0, None], "age": [5, 6], "other": [0, 0], "ward": ["B", None]})
    np.testing.assert_array_equal(SCHEMA.encode(data), [[1, 5, 1.5], [np.nan, 6, np.nan]])


VALUES = st.sampled_from([1, 1.0, "1", "A", None, 2.5, "2.5", True, float("nan"), "B", 7, "7.0"])


@given(st.lists(st.tuples(VALUES, VALUES, VALUES), min_size=1, max_size=6), st.data())
def test_how_a_row_is_read_does_not_depend_on_the_others(rows, data):
    """Else one row more could change how all are read, and no sensitivity would hold."""
    place = data.draw(st.integers(0, len(rows) - 1))
    for form in (lambda r: np.array(r, dtype=object), lambda r: pd.DataFrame(r, dtype=object)):

        def read(listed, form=form):
            table = form(listed)
            if isinstance(table, pd.DataFrame):
                table.columns = list(SCHEMA.names)
            return SCHEMA.encode(table)

        np.testing.assert_array_equal(read(rows)[place], read([rows[place]])[0])


def test_labels_that_were_not_declared_have_no_place():
    assert SCHEMA.encode_labels(["stays", "other", None, "home"]).tolist() == [1, -1, -1, 0]
    numbers = Schema({"a": (0, 1)}, classes=[0, 1])
    assert numbers.encode_labels(np.array([1.0, 0.0, 2.0])).tolist() == [1, 0, -1]
    assert numbers.encode_labels(np.array([True, False])).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"bounds": {"a": (1, 0)}}, "low < high"),
        ({"bounds": {"a": (0, 0)}}, "low < high"),
        ({"bounds": {"a": (0, float("inf"))}}, "finite"),
        ({"bounds": {"a": ("fill in", 1)}}, "fill them in"),
        ({"bounds": {}}, "at least one column"),
        ({"classes": ["one"]}, "two or more"),
        ({"classes": [1, 1]}, "two or more"),
        ({"classes": [1, "a"]}, "mixes"),
        ({"kinds": {"z": "integer"}}, "'z', which is no column"),
        ({"missing": ["z"]}, "'z', which is no column"),
        ({"names": ["a", "b"]}, "names must list"),
        ({"categories": {"c": ["1", "1.0"]}}, "two forms"),
        ({"categories": {"a": ["x"]}}, "more than once"),
        ({"kinds": {"a": "categorical"}}, "disagrees"),
    ],
)
def test_wrong_schemas_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        Schema(**{"bounds": {"a": (0, 1)}, "classes": [0, 1], **wrong})


def test_learning_without_a_schema_is_refused():
    with pytest.raises(TypeError, match="steadytree private schema"):
        check_schema(None)


def test_a_template_shows_no_value_and_must_be_filled_in(tmp_path):
    frame = pd.DataFrame({"age": [41.0], "ward": ["secret"], "y": ["flu"]})
    text = template(frame, target="y")
    assert "41" not in text
    assert "secret" not in text
    assert "flu" not in text
    path = tmp_path / "s.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match="fill in"):
        Schema.load(path)


@pytest.mark.parametrize("text", ["[", "classes = 3", '{"a": 1}'])
def test_files_that_are_no_schema_are_refused(tmp_path, text):
    path = tmp_path / ("s.json" if text.startswith("{") else "s.toml")
    path.write_text(text)
    with pytest.raises(ValueError, match=r"schema"):
        Schema.load(path)
    assert json.dumps(text)


# ---- questions ----
def test_questions_come_from_the_schema_alone():
    candidates = Candidates.of(SCHEMA.space, 4)
    asked = [(SCHEMA.names[f], int(b), bool(v)) for f, b, v in zip(*candidates.arrays, strict=True)]
    assert asked == [
        *(("ward", b, True) for b in range(3)),
        ("ward", 2, False),  # is it there?
        *(("age", b, False) for b in range(3)),
        *(("pay", b, False) for b in range(3)),
        ("pay", 3, False),
    ]
    assert np.exp(candidates.log_prior).sum() == pytest.approx(1.0)
    assert len(Candidates.at_most(SCHEMA.space, 64, 20)) <= 20


def test_answers_and_thresholds_agree():
    candidates = Candidates.of(SCHEMA.space, 4)
    values = SCHEMA.encode([["A", 25, 0.0], ["B", 26, None], ["x", 100, 1.5], [7, 0, -1.5]])
    codes = candidates.codes(values)
    for k in range(len(candidates)):
        column, x = candidates.space[int(candidates.feature[k])], values[:, candidates.feature[k]]
        if column.is_categorical:
            subset = candidates.subset(k, 3)
            expected = [bool(v == v and subset[int(v)]) for v in x]
        else:
            expected = x <= candidates.threshold(k)
        np.testing.assert_array_equal(candidates.answers(codes, k), expected)
