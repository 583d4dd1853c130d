import numpy as np
import pytest

import steadytree.stability.teacher
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


def design_of(rows):
    """Standardised columns of the regression, each row written out as often as it weighs."""
    whole = rows.binned.repeat(rows.weights.astype(int), axis=0).astype(float)
    columns = [[bins, rows.binned[:, j].astype(float)] for j, bins in enumerate(whole.T)]
    for j, (bins, own) in enumerate(columns[:]):
        if rows.n_bins[j] > 3:
            at = np.quantile(bins, [0.25, 0.5, 0.75], method="inverted_cdf")
            columns += [[abs(bins - knot), abs(own - knot)] for knot in np.unique(at)]
    return np.column_stack([(own - all_.mean()) / all_.std() for all_, own in columns])


def test_the_regression_bends_at_the_quartiles_of_numbers_with_four_bins():
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.normal(size=80), rng.integers(0, 3, 80), rng.integers(0, 5, 80)])
    rows = binned(X, rng.integers(0, 2, 80), rng.integers(1, 4, 80).astype(float))
    found = Teacher(rows, seed=0)._design(rows.binned)
    np.testing.assert_allclose(found[:, 1:], design_of(rows), atol=1e-12)
    assert found.shape[1] == 1 + 3 + 3 + 3


def test_the_regression_is_straight_where_it_would_bend_too_often(monkeypatch):
    monkeypatch.setattr(steadytree.stability.teacher, "MOST_BENDS", 5)
    rng = np.random.default_rng(3)
    rows = binned(rng.normal(size=(60, 2)), rng.integers(0, 2, 60))
    assert Teacher(rows, seed=0)._design(rows.binned).shape[1] == 3


def test_a_missing_number_lies_at_the_mean_of_its_bends():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 1))
    X[::5] = np.nan
    rows = binned(X, rng.integers(0, 2, 60))
    found = Teacher(rows, seed=0)._design(rows.binned)
    missing = rows.binned[:, 0] == rows.n_bins[0] - 1
    assert (found[missing] == [1, 0, 0, 0, 0, 1]).all()
    np.testing.assert_allclose(found[~missing, 1:-1].mean(axis=0), 0, atol=1e-12)


def test_the_teacher_follows_a_number_that_matters_at_both_ends():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(400, 3))
    y = (np.abs(X[:, 0]) + 0.3 * rng.normal(size=400) > 0.8).astype(int)
    rows = binned(X, y)
    design = Teacher(rows, seed=0)._design(rows.binned)
    ones, start = np.ones(400), np.zeros(design.shape[1])
    for columns, least, most in ((slice(0, 4), 0.4, 0.75), (slice(None), 0.85, 1.0)):
        Z = design[:, columns]
        _, unseen = fit_ridge(Z, y, ones, ones, 10.0, start[: Z.shape[1]])
        assert least < np.mean((unseen > 0.5) == y) < most
