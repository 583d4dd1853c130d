"""Table: data in every form, read into plain columns."""

import numpy as np
import pandas as pd
import pytest

from steadytree.data.feature_space import FeatureSpace
from steadytree.data.table import Table


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
