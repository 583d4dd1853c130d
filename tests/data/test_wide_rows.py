"""Rows of many columns: trees and scores are those of rows that are counted all at once."""

import numpy as np
import pandas as pd
import pytest

from steadytree import StableTreeClassifier
from steadytree.data import wide_rows
from steadytree.data.wide_rows import WideRows, block_of
from steadytree.stability import split_sampling


def rows_of(seed, kind, n=400, p=9, n_classes=3):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    signal = X[:, 0] + X[:, 4] * X[:, 8] + rng.standard_normal(n)
    y = np.searchsorted(np.quantile(signal, np.arange(1, n_classes) / n_classes), signal)
    if kind == "numbers":
        return X, y
    X[rng.random(X.shape) < 0.1] = np.nan
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(p)])
    for j in (1, 4, 5):
        frame[f"c{j}"] = rng.choice(["a", "b", "c", "d", "e", None], n)
    return frame, np.where(frame["c4"] == "b", 0, y)


def fit_both(monkeypatch, X, y, weights=None, together=700, **options):
    """Models that count all columns at once, and some of them at a time."""
    monkeypatch.setattr(split_sampling, "LEAST_WORK", 0)
    usual = StableTreeClassifier(random_state=3, **options).fit(X, y, weights)
    monkeypatch.setattr(split_sampling, "MANY_COUNTERS", 0)
    monkeypatch.setattr(wide_rows, "TOGETHER", together)
    assert isinstance(StableTreeClassifier(**options).prepare(X, y, weights).source(), WideRows)
    return usual, StableTreeClassifier(random_state=3, **options).fit(X, y, weights)


@pytest.mark.parametrize("kind", ["numbers", "mixed"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("epsilon", [0, 0.1, 0.6])
def test_trees_and_scores_are_the_usual_ones(monkeypatch, kind, weighted, epsilon):
    for seed in range(3):
        X, y = rows_of(seed, kind)
        weights = np.random.default_rng(seed).random(len(y)) * 3 if weighted else None
        usual, wide = fit_both(monkeypatch, X, y, weights, epsilon=epsilon, max_depth=6)
        assert wide.tree_ == usual.tree_
        assert wide.tree_.value.tobytes() == usual.tree_.value.tobytes()
        assert wide.split_probabilities(0) == usual.split_probabilities(0)


@pytest.mark.parametrize("together", [1, 10**9])
def test_blocks_of_any_size_give_one_tree(monkeypatch, together):
    X, y = rows_of(7, "mixed")
    usual, wide = fit_both(monkeypatch, X, y, together=together, criterion="count", epsilon=0.3)
    assert wide.tree_ == usual.tree_
    assert wide.score_bound_ == usual.score_bound_


def test_trees_are_the_usual_ones_where_no_scores_are_kept(monkeypatch):
    monkeypatch.setattr(split_sampling, "MAX_SCORES", 0)
    X, y = rows_of(8, "mixed")
    usual, wide = fit_both(monkeypatch, X, y, min_samples_leaf=9)
    assert wide.tree_ == usual.tree_


def test_equal_columns_go_to_the_same_of_them(monkeypatch):
    X, y = rows_of(9, "numbers")
    X = np.tile(X[:, [0, 4, 8]], 4)
    for epsilon in (0, 0.2):
        usual, wide = fit_both(monkeypatch, X, y, epsilon=epsilon)
        assert wide.tree_ == usual.tree_


def test_one_class_is_a_single_leaf(monkeypatch):
    X, y = rows_of(10, "numbers")
    usual, wide = fit_both(monkeypatch, X, np.zeros(len(y)))
    assert wide.tree_ == usual.tree_
    assert wide.tree_.n_nodes == 1


def test_a_block_numbers_its_splits_anew():
    X, y = rows_of(11, "mixed")
    splits = StableTreeClassifier().prepare(X, y).splits
    block = block_of(splits, 3, 6)
    own = (splits.table.feature >= 3) & (splits.table.feature < 6)
    assert block.first_split == np.flatnonzero(own)[0]
    np.testing.assert_array_equal(block.table.feature, splits.table.feature[own] - 3)
    np.testing.assert_array_equal(block.table.bin, splits.table.bin[own])
    np.testing.assert_array_equal(block.table.bin_sizes, splits.table.bin_sizes[3:6])
