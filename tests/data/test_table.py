"""Table: data in every form, read into plain columns."""

import numpy as np
import pandas as pd
import pytest

from steadytree.data.feature_space import FeatureSpace
from steadytree.data.table import Table
from steadytree.stability.stable_tree import StableTreeClassifier


def test_a_table_is_not_copied():
    X = np.random.default_rng(0).random((5, 2))
    assert np.shares_memory(Table.read(X).matrix, X)
    assert np.shares_memory(FeatureSpace.observe(X).encode(X), X)


@pytest.mark.parametrize("values", [["b", None, "a", "b"], [2.0, np.nan, 0.5, 2.0]])
def test_text_of_a_column_and_of_its_subsets(values):
    texts = ["b", None, "a", "b"] if values[0] == "b" else ["2", None, "0.5", "2"]
    table = Table.read(pd.DataFrame({"x": values}))
    for kept in (np.arange(4), np.array([3, 1]), np.array([True, False, True, False])):
        found = table.take(kept).text(0)
        listed = [None if k < 0 else found.values[k] for k in found.of_row]
        assert listed == np.array(texts, object)[kept].tolist()


MASKED = np.ma.masked_array([[1.0], [2.0]], mask=[[False], [True]])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"a": [1, 2]}, "X is a dict, not a table.* pandas.DataFrame"),
        (MASKED, r"X is a masked array.* X.astype\(float\).filled"),
        (pd.DataFrame({"a": [b"u", b"v"]}), "column 'a': .* string or a number, got bytes"),
        (pd.DataFrame({"a": [b"u", 1]}), "column 'a': .* string or a number, got bytes"),
        (np.array([[b"u"]]), "column 'x0': .* string or a number, got bytes"),
    ],
    ids=["dict", "masked", "bytes", "bytes and numbers", "array of bytes"],
)
def test_a_form_that_would_be_misread_is_refused(data, message):
    for read in (Table.read, lambda X: StableTreeClassifier().fit(X, [0, 1])):
        with pytest.raises(TypeError, match=message):
            read(data)
    with pytest.raises(TypeError):
        FeatureSpace.observe([[0.0], [1.0]]).encode(data)


def test_columns_of_equal_values_are_not_taken_for_names():
    read = Table.read(pd.DataFrame({"a": np.ones(40), "b": np.ones(40)}))
    y = np.arange(40) % 2
    assert StableTreeClassifier(2).fit(read, y).tree_.space.names == ("a", "b")


def test_a_mask_that_hides_nothing_is_taken():
    assert Table.read(np.ma.masked_array([[1.0], [2.0]])).columns[0].tolist() == [1.0, 2.0]


def test_rows_of_tables_are_in_order_where_all_declare_the_same_one():
    def graded(names):
        return Table.read(pd.DataFrame({"a": pd.Categorical(["v"], list(names), ordered=True)}))

    assert Table.stack([graded("uv"), graded("uv")]).ordered == {"a"}
    assert Table.stack([graded("uv"), graded("vu")]).ordered == frozenset()
