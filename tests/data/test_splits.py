"""SplitTable: candidate splits of observed and of declared columns."""

import numpy as np
import pytest

from steadytree.data._kernels import split_goes_left
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.schema import Schema
from steadytree.data.splits import SplitTable
from steadytree.models.builder import TreeBuilder

SCHEMA = Schema(
    bounds={"age": (0, 100), "pay": (-1.5, 1.5)},
    categories={"ward": ["A", "B", "7"]},
    classes=["home", "stays"],
    kinds={"age": "integer"},
    missing=["ward", "pay"],
    names=["ward", "age", "pay"],
)


def test_merged_splits_keep_their_thresholds_and_their_number():
    X = np.array([[0.0], [0.0], [10.0], [2.5]])
    space = FeatureSpace.observe(X).with_thresholds(X, n_thresholds=21)
    binned = space.binned(X)
    splits = SplitTable.of(space, space.occupied(binned))
    assert splits.n_candidates == 21
    assert list(zip(splits.table.first, splits.table.last, strict=True)) == [(0, 4), (5, 19)]
    np.testing.assert_array_equal(splits.merge_bins(binned), [[0, 0, 2, 1]])


def test_declared_splits_come_from_the_schema_alone():
    candidates = SplitTable.declared(SCHEMA.space, 4)
    asked = [(SCHEMA.names[f], int(b), bool(v)) for f, b, v in zip(*candidates.arrays, strict=True)]
    assert asked == [
        *(("ward", b, True) for b in range(3)),
        ("ward", 2, False),  # is it there?
        *(("age", b, False) for b in range(3)),
        *(("pay", b, False) for b in range(3)),
        ("pay", 3, False),
    ]
    assert np.exp(candidates.log_prior).sum() == pytest.approx(1.0)
    assert len(SplitTable.at_most(SCHEMA.space, 64, 20)) <= 20


def test_declared_splits_agree_with_kernels_and_trees():
    candidates = SplitTable.declared(SCHEMA.space, 4)
    values = SCHEMA.encode([["A", 25, 0.0], ["B", 26, None], ["x", 100, 1.5], [7, 0, -1.5]])
    binned = candidates.space.binned(values)
    builder = TreeBuilder(candidates, np.array(["no", "yes"]))
    for k in range(len(candidates)):
        split, left, right = np.array([[k, -1, -1], [1, -1, -1], [2, -1, -1]])
        totals = np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
        tree = builder.build(split, left, right, totals, missing_right=True)
        goes_left = tree.apply_encoded(values) == 1
        np.testing.assert_array_equal(candidates.goes_left(binned, k), goes_left)
        np.testing.assert_array_equal(
            [
                split_goes_left(bin_index, candidates.table, k)
                for bin_index in binned[tree.feature[0]]
            ],
            goes_left,
        )
