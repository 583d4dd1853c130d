"""A prepared fit is repeated on some of its rows, with the bins and the noise of all of them."""

import numpy as np
import pytest

from steadytree import StableTreeClassifier
from tests.data.row_sets import random_rows


@pytest.mark.parametrize("seed", range(10))
def test_a_prepared_fit_grows_what_fit_grows(seed):
    X, y = random_rows(np.random.default_rng(seed))
    model = StableTreeClassifier(epsilon=0.1, random_state=seed)
    prepared = model.prepare(X, y)
    assert prepared.n_rows == len(y)
    assert model.grow(prepared) == model.fit(X, y).tree_
    assert model.grow(prepared.take(np.arange(len(y)))) == model.tree_
    assert model.grow(prepared.take(np.ones(len(y), bool))) == model.tree_


def test_another_seed_is_another_fit():
    X, y = random_rows(np.random.default_rng(1), n=40, names=["real", "tenths"])
    model = StableTreeClassifier(epsilon=1, random_state=0)
    prepared = model.prepare(X, y)
    trees = [model.grow(prepared.with_seed(seed)) for seed in range(8)]
    fitted = [
        StableTreeClassifier(epsilon=1, random_state=seed).fit(X, y).tree_ for seed in range(8)
    ]
    assert trees == fitted
    assert len(set(trees)) > 1


def test_fewer_rows_keep_bins_rules_and_classes():
    X, y = random_rows(np.random.default_rng(2), n=40, n_classes=3, names=["real", "group"])
    prepared = StableTreeClassifier(random_state=0).prepare(X, y)
    part = prepared.take(np.flatnonzero(y != y[0]))
    assert part.space is prepared.space
    assert part.splits is prepared.splits
    assert part.sampling == prepared.sampling
    assert len(part.classes) == len(prepared.classes)
    assert part.binned.flags.c_contiguous
    np.testing.assert_array_equal(part.labels, prepared.labels[y != y[0]])


def test_weights_go_with_their_rows():
    X, y = random_rows(np.random.default_rng(3), n=20)
    weights = np.arange(1.0, 21.0)
    part = StableTreeClassifier(random_state=0).prepare(X, y, weights).take(np.arange(5, 9))
    np.testing.assert_array_equal(part.weights, weights[5:9])
