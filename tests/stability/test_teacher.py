import numpy as np
import pytest

from steadytree.data.feature_space import FeatureSpace
from steadytree.stability.grouped_bins import GroupedBins
from steadytree.stability.teacher import BinnedRows, Teacher, fit_ridge


def binned(X, y, weights=None):
    space = FeatureSpace.observe(X)
    values, targets = space.encode(X), y[:, None].astype(float)
    weights = np.ones(len(y)) if weights is None else weights
    bins = GroupedBins.of(space, values, targets, weights)
    hashes = np.random.default_rng(9).integers(0, 2**63, len(y)).astype(np.uint64)
    return BinnedRows(bins.binned(values), targets, weights, hashes, bins.n_bins, bins.kinds)


def test_the_teacher_does_not_know_the_labels_of_rows_it_answers_for():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 5))
    p = 1 / (1 + np.exp(-2 * X[:, 0]))
    y = (rng.random(500) < p).astype(int)
    rows = binned(X, y)
    teacher = Teacher(rows, seed=1)
    luck = y - p  # what no other row can tell; a correlation at level 1e-4:
    by_chance = 3.9 / np.sqrt(500)
    assert np.corrcoef(teacher.predict(rows.binned)[:, 0], luck)[0, 1] > by_chance
    assert np.corrcoef(teacher.unseen[:, 0], luck)[0, 1] < by_chance


def test_leave_one_out_chances_are_those_of_fits_without_the_row():
    rng = np.random.default_rng(0)
    Z = np.column_stack([np.ones(60), rng.normal(size=(60, 3))])
    y = (Z[:, 1] + rng.normal(size=60) > 0).astype(float)
    ones, start = np.ones(60), np.zeros(4)
    _, found = fit_ridge(Z, y, ones, ones, 2.0, start)
    for row in range(60):
        weights = ones.copy()
        weights[row] = 0
        beta, _ = fit_ridge(Z, y, weights, ones, 2.0, start)
        assert found[row] == pytest.approx(1 / (1 + np.exp(-Z[row] @ beta)), abs=0.03)
