"""Summaries and looks at parts of the rows add up to those of all rows."""

import functools
import operator

import numpy as np
import pandas as pd
import pytest

from steadytree.data import out_of_core as look_module
from steadytree.data.binning import bin_index_type
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.out_of_core import DataSummary, class_indices
from steadytree.data.table import Table
from tests.data.row_sets import random_rows

GRIDS = ["equidistant", "quantile", "midpoint"]


def looks(frame, y, n_parts, grid="equidistant"):
    parts = np.array_split(np.arange(len(y)), n_parts)
    found = [DataSummary.at(frame.iloc[rows], y[rows], grid) for rows in parts]
    return functools.reduce(operator.add, found)


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("seed", range(20))
def test_parts_give_the_space_of_all_rows(seed, grid):
    rng = np.random.default_rng(seed)
    frame, y = random_rows(rng)
    n_parts = int(rng.integers(1, len(y) + 3))  # some of them without rows
    whole = FeatureSpace.observe(frame)
    whole = whole.with_thresholds(whole.encode(frame), grid, 7)
    together = looks(frame, y, n_parts, grid)
    space = together.space(grid, 7)
    assert space == whole
    assert together.labels.tolist() == np.unique(y).tolist()
    binned = whole.binned(whole.encode(frame))
    found = space.bin_table(Table.read(frame))
    np.testing.assert_array_equal(found, binned)
    assert found.dtype == bin_index_type(max(column.n_bins for column in space))


def test_declared_categories_unite_in_order_of_appearance():
    parts = [pd.DataFrame({"a": pd.Categorical(list(text))}) for text in ("ba", "ca")]
    one, two = (DataSummary.at(part, [0, 1]) for part in parts)
    assert (one + two).space("equidistant", 5)[0].categories == ("a", "b", "c")


def test_part_without_values_goes_with_text_and_with_numbers():
    empty = DataSummary.at(pd.DataFrame({"a": [None, None]}, dtype=object), [0, 1])
    text = DataSummary.at(pd.DataFrame({"a": ["u", "v"]}), [0, 1])
    number = DataSummary.at(pd.DataFrame({"a": [1.0, 2.5]}), [0, 1])
    assert (empty + text).space("equidistant", 5)[0].categories == ("u", "v")
    assert (text + empty).space("equidistant", 5)[0].missing
    assert (number + empty).space("equidistant", 5)[0].kind == "numeric"
    with pytest.raises(ValueError, match=r"'a' holds text in some parts .* numbers in others"):
        text + number


def test_parts_with_other_columns_are_refused():
    one, two = (DataSummary.at(pd.DataFrame({"a": [1], name: [2]}), [0]) for name in "bc")
    with pytest.raises(ValueError, match="different columns: 'b', 'c' only in some"):
        one + two


def test_infinity_is_refused_by_name():
    one = DataSummary.at(pd.DataFrame({"a": [1.0], "b": [np.inf]}), [0])
    with pytest.raises(ValueError, match=r"column\(s\) 'b' hold infinity"):
        one.space("equidistant", 5)


def test_too_many_distinct_values_are_refused(monkeypatch):
    monkeypatch.setattr(look_module, "MOST_DISTINCT", 3)
    one, two = (DataSummary.at([[1.0], [k]], [0, 1], "quantile") for k in (3, 5))
    three = DataSummary.at([[7.0], [9.0]], [0, 1], "quantile")
    with pytest.raises(ValueError, match=r"'x0' has more than 3 .* use grid='equidistant'"):
        one + two + three


def test_labels_of_two_kinds_are_refused():
    one, two = DataSummary.at([[1]], ["a"]), DataSummary.at([[1]], [3])
    with pytest.raises(TypeError, match="mixes text and numbers"):
        one + two


def test_label_that_was_not_there_before_is_refused():
    with pytest.raises(ValueError, match="must not change between"):
        class_indices(["a", "c"], 2, np.array(["a", "b"]))
