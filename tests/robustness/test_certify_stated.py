"""Certificates of fitted models under noise as people state it equal a slow, obvious one."""

import numpy as np
import pytest

from steadytree.robustness.certify import certificate_of
from tests.robustness.brute_force import frame_of, least_move
from tests.robustness.stated_cases import ASKED, MODELS, learned_case
from tests.robustness.test_nearest import dicts

# labels are noisy: now and then no condition is worth its points
pytestmark = pytest.mark.filterwarnings("ignore:no condition was kept")


def same_noise(noise, units):
    """Both say the same of every column, up to rounding."""
    for parameter in ("radius", "step_cost", "change_cost"):
        one, other = getattr(noise, parameter), getattr(units, parameter)
        assert one == pytest.approx(other, rel=1e-12) if other is not None else one is None
    assert noise.budget == pytest.approx(units.budget)
    assert noise.scope == units.scope


def check_case(name, seed):
    """Distances by brute force, each row alone as in the batch, and what follows from them."""
    rng = np.random.default_rng(seed)
    model, asked, raws, noise, units = learned_case(rng, name)
    same_noise(noise, units)
    predicted = np.asarray(model.predict(frame_of(asked.astype(object), raws)))
    truth = np.where(rng.random(ASKED) < 0.2, model.classes_[0], predicted)
    found = certificate_of(model, asked, truth, noise)
    np.testing.assert_array_equal(found.classes[found.answer], predicted)
    expected = np.array([least_move(model, row, raws, noise) for row in dicts(asked)])
    np.testing.assert_allclose(found.distance, expected, rtol=1e-9, atol=1e-9)
    if noise.scope == "row":
        kept = (truth == predicted) & (expected > noise.budget * (1 + 1e-9) + 1e-9)
        assert found.worst_case_accuracy == kept.mean()
    order = rng.permutation(ASKED)
    for rows in (*([row] for row in range(ASKED)), order[:3], order):
        some = certificate_of(model, asked.iloc[rows], truth[rows], noise)
        np.testing.assert_array_equal(some.distance, found.distance[rows])
        np.testing.assert_array_equal(some.witness, found.witness[rows])
    return ASKED


@pytest.mark.parametrize("name", MODELS)
def test_stated_noise_equals_brute_force(name):
    assert sum(check_case(name, seed) for seed in range(3)) == 3 * ASKED


@pytest.mark.heavy
@pytest.mark.parametrize(("name", "block"), [(name, k) for name in MODELS for k in range(25)])
def test_20_000_certificates_under_stated_noise(name, block):
    for seed in range(1000 + 25 * block, 1025 + 25 * block):
        check_case(name, seed)
