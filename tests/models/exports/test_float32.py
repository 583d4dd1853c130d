"""Trees whose decisions change when inputs are rounded to float32."""

import warnings

import numpy as np
import pandas as pd
import pytest

from steadytree.data.column import Column
from steadytree.data.feature_space import FeatureSpace
from steadytree.models.exports.float32 import coarse_nodes
from steadytree.models.sklearn import from_sklearn, to_sklearn
from steadytree.models.tree import Tree
from tests.models.trees import random_tree

TIME = 1.7e9 + 0.5


def stump(kind, low, high, at):
    space = FeatureSpace((Column("time", kind, low, high),))
    nodes = ([0, -1, -1], [at, np.nan, np.nan], [1, -1, -1], [2, -1, -1])
    return Tree(space, ["no", "yes"], *nodes, [[0.5, 0.5], [1, 0], [0, 1]], [2, 1, 1])


def times():
    return np.arange(1.7e9 - 300, 1.7e9 + 300)[:, None]


def by_brute_force(tree, X):
    """Rows whose float32 form is on the other side of the only threshold."""
    return int(((tree.threshold[0] >= X) != (X.astype(np.float32) <= tree.threshold[0])).sum())


def test_the_warning_counts_rows_and_names_the_forms_that_agree():
    tree, X = stump("integer", 1.6e9, 1.8e9, TIME), times()
    n = by_brute_force(tree, X)
    assert n > 20
    with pytest.warns(UserWarning, match=rf"float32, and {n} of the 600 rows.*to_onnx\(\), to_so"):
        exported = to_sklearn(tree, X)
    frame = pd.DataFrame({"time": X[:, 0]})
    assert (exported.predict(frame) != tree.predict(frame)).sum() == n
    with pytest.warns(UserWarning, match=r"1 of 1 thresholds .*'time' near 1700000000.5: use"):
        to_sklearn(tree)
    assert "1700000000.5" in tree.to_source()  # which compares in float64, and was compared


@pytest.mark.parametrize(
    ("kind", "low", "high", "at", "is_coarse"),
    [
        ("integer", 0, 120, 40.5, False),
        ("integer", 0, 2**24, 2**23 + 0.5, False),
        ("integer", 0, 2**26, 2**25 + 0.5, True),
        ("numeric", 0, 2**26, 2**25 + 0.5, False),  # 6e-8 of the range
        ("numeric", 1.7e9, 1.7e9 + 1e6, TIME, True),
        ("numeric", 0, 1, 0.1, False),
        ("binary", 0, 1, 0.5, False),
        ("numeric", 5, 5, 5.0, False),
    ],
)
def test_which_thresholds_are_coarse(kind, low, high, at, is_coarse):
    tree = stump(kind, low, high, at)
    assert len(coarse_nodes(tree)) == is_coarse
    if kind == "integer":  # brute force over the integers around
        near = np.arange(np.floor(at) - 300, np.floor(at) + 300)[:, None]
        assert (by_brute_force(tree, near) > 0) == is_coarse


def test_no_warning_where_rows_agree_or_the_tree_rounds_itself():
    tree = stump("integer", 1.6e9, 1.8e9, TIME)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        to_sklearn(tree, np.array([[1.6e9], [1.8e9]]))
        rounding = from_sklearn(to_sklearn(stump("integer", 0, 9, 4.5)))
        to_sklearn(rounding)
        for seed in range(5):
            to_sklearn(random_tree(np.random.default_rng(seed), single_precision=True))
