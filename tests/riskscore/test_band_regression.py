"""The prior of a risk score's log odds: its variance is estimated from them."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from steadytree.riskscore.band_regression import (
    AROUND_ONE,
    KNOWN,
    LEAST_RIDGE,
    RIDGE,
    Bands,
    held_out_slope,
    refit,
    with_own_prior,
)


def bands_of(effect, n_variables, n_rows, seed=0):
    """Bands of 0/1 columns with log odds of +-effect, one pattern a row."""
    rng = np.random.default_rng(seed)
    held = rng.integers(0, 2, (n_rows, n_variables))
    level = effect * (2 * held - 1) @ rng.choice([-1, 1], n_variables)
    y = (rng.random(n_rows) < 1 / (1 + np.exp(-level))).astype(float)
    band = np.tile([0, 1], (n_variables, 1))
    shared = band, np.zeros(band.shape), 0.0, tuple(range(n_variables)), np.arange(n_rows), held
    return Bands(*shared, np.ones(n_rows), y, 0.0, 0.0, 0.0)


def refit_of(*given):
    return refit(bands_of(*given))


def one_step(bands):
    """The next ridge, all by rows: coefficients that are determined, by their squares."""
    held = bands.members
    design = np.column_stack([np.ones(len(held)), *(held[:, [k]] == [0, 1] for k in bands.used)])
    penalty = np.append(0.0, np.full(design.shape[1] - 1, RIDGE))

    def loss(at):
        level = design @ at
        return np.logaddexp(0, level).sum() - bands.events @ level + penalty @ at**2 / 2

    theta = minimize(loss, np.zeros(design.shape[1]), method="BFGS", options={"gtol": 1e-7}).x
    risk = 1 / (1 + np.exp(-design @ theta))
    hessian = sum(p * (1 - p) * np.outer(x, x) for p, x in zip(risk, design, strict=True))
    variance = np.diag(np.linalg.inv(hessian + np.diag(penalty + 1e-9)))[1:]
    determined = (1 - RIDGE * variance).sum()
    return (determined + KNOWN) / ((theta[1:] ** 2).sum() + KNOWN / RIDGE)


@pytest.mark.parametrize(("effect", "n_variables"), [(1.2, 6), (1.5, 4), (0.9, 10)])
def test_the_ridge_is_one_step_towards_the_largest_evidence(effect, n_variables):
    bands = refit_of(effect, n_variables, 400)
    expected = one_step(bands)
    assert LEAST_RIDGE < expected < 0.9 * RIDGE
    assert with_own_prior(bands).ridge == pytest.approx(expected, rel=1e-4)


def test_weak_effects_keep_the_prior_of_the_search_and_few_say_little_about_it():
    assert with_own_prior(refit_of(0.1, 6, 400)).ridge == RIDGE
    few, many = (with_own_prior(refit_of(1.5, p, 2000)).ridge for p in (1, 8))
    assert LEAST_RIDGE < many < few < RIDGE


def test_the_fit_is_that_of_the_ridge_found():
    found = with_own_prior(refit_of(1.2, 6, 400))
    assert refit(found).loss == pytest.approx(found.loss, rel=1e-9)
    assert found.loss > found.plain_loss > 0


def slope_of_left_out_rows(bands):
    """The same with a fit for each row that is left out, instead of to second order."""
    n = len(bands.weight)
    left_out = np.empty(n)
    for row in range(n):
        fitted = refit(replace(bands, weight=bands.weight - (np.arange(n) == row),
                               events=bands.events * (np.arange(n) != row)))  # fmt: skip
        left_out[row] = fitted.levels()[row]

    def loss(at):
        level = at[0] + at[1] * left_out
        plain = np.logaddexp(0, level).sum() - bands.events @ level
        return plain + AROUND_ONE * (at[1] - 1) ** 2 / 2

    return minimize(loss, [0.0, 1.0], method="BFGS").x[1]


@pytest.mark.parametrize(("effect", "n_variables"), [(1.5, 3), (0.6, 4), (0.1, 6)])
@pytest.mark.parametrize("ridge", [0.3, 8.0])
def test_the_slope_is_that_of_rows_left_out_one_by_one(effect, n_variables, ridge):
    bands = refit(replace(bands_of(effect, n_variables, 60), ridge=ridge))
    assert held_out_slope(bands) == pytest.approx(slope_of_left_out_rows(bands), abs=0.01)


def test_the_slope_makes_up_for_a_prior_that_shrinks_too_much_or_too_little():
    strong, noise = bands_of(1.5, 4, 200), bands_of(0.0, 10, 60)
    assert held_out_slope(refit(replace(strong, ridge=20.0))) > 1.3
    assert held_out_slope(refit(replace(noise, ridge=0.1))) < 0.7
    assert held_out_slope(replace(strong, used=())) == 1.0


def test_rows_with_the_same_bands_may_be_one_row_of_more_weight():
    bands = refit(bands_of(1.0, 2, 60))
    shared, of = np.unique(bands.members, axis=0, return_inverse=True)
    sums = (np.bincount(of.ravel(), each) for each in (bands.weight, bands.events))
    weight, events = sums
    joined = refit(replace(bands, members=shared, weight=weight, events=events))
    assert held_out_slope(joined) == pytest.approx(held_out_slope(bands), rel=1e-4)
