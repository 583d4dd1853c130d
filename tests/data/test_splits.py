"""SplitTable: candidate splits of observed and of declared columns."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from steadytree._base import parallel
from steadytree.data._kernels.counts import split_goes_left
from steadytree.data.column import Column
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.schema import Schema
from steadytree.data.splits import Bins, SplitTable, category_order
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
    splits = SplitTable.of(space, space.count_bins(binned, np.zeros(4, np.int32), 1))
    assert splits.n_candidates == 21
    assert list(zip(splits.table.first, splits.table.last, strict=True)) == [(0, 4), (5, 19)]
    np.testing.assert_array_equal(splits.merge_bins(binned), [[0, 0, 2, 1]])


def test_threads_merge_the_bins_of_their_own_columns(monkeypatch):
    monkeypatch.setattr(parallel, "LEAST_WORK", 1)
    X = np.random.default_rng(0).choice(
        [0.0, 1.0, 2.5, 7.0, 10.0], (60, 4), p=[0.5, 0.3, 0.1, 0.05, 0.05]
    )
    X[:, 1] = X[:, 1] > 2  # columns differ in their bins
    X[:, 2] = np.minimum(X[:, 2], 2.5)
    space = FeatureSpace.observe(X).with_thresholds(X, n_thresholds=21)
    binned = space.binned(X)
    splits = SplitTable.of(space, space.count_bins(binned, np.zeros(60, np.int32), 1))
    merged = splits.merge_bins(binned)
    # merged bins number the values of a column in their order
    np.testing.assert_array_equal(merged, [np.unique(x, return_inverse=True)[1] for x in X.T])
    with parallel.allow_threads(3):
        np.testing.assert_array_equal(splits.merge_bins(binned), merged)


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


@pytest.mark.parametrize("seed", range(20))
def test_the_best_of_all_groups_begins_the_order(seed):
    """Brute force over all divisions of six categories in two groups, by Gini's impurity."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(200, 900, (6, 2))  # many rows, so that the prior moves no category
    order = category_order(counts).tolist()

    def purity(group):
        sides = counts[list(group)].sum(axis=0), counts[[*set(range(6)) - set(group)]].sum(axis=0)
        return sum((side**2).sum() / side.sum() for side in sides)

    groups = [g for size in range(1, 6) for g in itertools.combinations(range(6), size)]
    best = max(purity(group) for group in groups)
    assert best == pytest.approx(max(purity(order[:k]) for k in range(1, 6)))


def test_several_classes_are_ordered_by_the_one_that_varies_most():
    counts = np.array([[50, 9, 41], [10, 11, 79], [90, 10, 0], [30, 10, 60]])
    assert category_order(counts).tolist() in ([1, 3, 0, 2], [2, 0, 3, 1])
    assert category_order(np.zeros((3, 1))).tolist() == [0, 1, 2]


def test_groups_need_rows():
    for n_rows, n_splits in ((29, 5), (30, 7)):
        X = np.repeat(list("abcde"), n_rows)[:, None].astype(object)
        space = FeatureSpace.observe(X)
        counts = space.count_bins(space.binned(space.encode(X)), np.zeros(len(X), np.int32), 1)
        assert len(SplitTable.of(space, counts)) == n_splits


def test_kept_bins_go_before_what_new_rows_show():
    """Known columns keep order and groups, new categories come last, new columns are their own."""
    kept_space = FeatureSpace.declare(categories={"a": list("uvwx"), "b": list("pqrst")})
    kept = Bins(kept_space, {"a": ("x", "u", "w", "v")}, seed=1)
    names = {"a": list("uvwxyz"), "b": list("pqrst"), "c": list("klmno")}
    space = FeatureSpace.declare(categories=names)
    counts = np.zeros((space.bin_offsets[-1], 2))
    for j, sizes in enumerate(([6, 1, 5, 2, 4, 3], [1, 2, 3, 4, 5], [2, 1, 4, 5, 3])):
        own = slice(space.bin_offsets[j], space.bin_offsets[j] + len(sizes))
        counts[own] = np.column_stack([1000 - 100 * np.array(sizes), 100 * np.array(sizes)])
    splits = SplitTable.of(space, counts, kept)
    # "b" had no groups when the bins were made, so it gets none
    assert splits.order == {"a": ("x", "u", "w", "v", "y", "z"), "c": ("l", "k", "o", "m", "n")}
    listed = [6 + 3, 5, 5 + 2]  # each twice for missing values, which are asked for too
    assert np.bincount(splits.table.feature).tolist() == [2 * n + 1 for n in listed]
    assert SplitTable.of(space, counts).order["a"] == ("v", "x", "z", "y", "w", "u")


@pytest.mark.parametrize(("values", "kind"), [([0.0, 7.0], "integer"), ([0.5, 7.0], "numeric")])
def test_columns_of_kept_bins_hold_old_and_new_values(values, kind):
    old = FeatureSpace.observe(np.array([[0.0], [3.0], [5.0]]))
    old = old.with_thresholds(np.array([[0.0], [3.0], [5.0]]), n_thresholds=2)
    new = FeatureSpace.observe(np.array([[values[0]], [2.0], [values[1]]]))
    (column,) = Bins(old, {}, seed=0).over(new)
    assert (column.kind, column.low, column.high) == (kind, 0.0, 7.0)
    np.testing.assert_array_equal(column.thresholds, old[0].thresholds)


@pytest.mark.parametrize(
    ("categories", "ordered", "after", "stays"),
    [
        ("abc", True, "abc", True),
        ("cba", True, "abc", True),
        ("ab", False, "abc", True),
        ("abcd", True, "abcd", True),
        ("abcd", False, "abcd", False),
        ("abdc", True, "abcd", False),
    ],
)
def test_categories_of_kept_bins_stay_in_order_where_it_is_known(categories, ordered, after, stays):
    old, new = (
        FeatureSpace((Column("a", "categorical", categories=tuple(names), ordered=flag),))
        for names, flag in (("abc", True), (categories, ordered))
    )
    (column,) = Bins(old, {}, seed=0).over(new)
    assert (column.categories, column.ordered) == (tuple(after), stays)


def test_ordered_categories_have_a_candidate_between_each_two():
    column = Column("a", "categorical", categories=tuple("abcde"), ordered=True)
    for missing, most in ((False, 4), (True, 9)):
        space = FeatureSpace((replace(column, missing=missing),))
        every = np.ones((space.bin_offsets[-1], 2))
        splits = SplitTable.of(space, every)
        assert splits.n_candidates == len(splits) == most
        every[[1, 3]] = 0
        fewer = SplitTable.of(space, every)
        assert fewer.n_candidates == most
        assert len(fewer) == most - (4 if missing else 2)
