"""Noise: samples of the right size and type."""

import numpy as np
import pytest

from steadytree.privacy.noise import SecureNoise


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_counts_beyond_32_bits_keep_their_size(kind):
    pytest.importorskip("opendp")
    large = np.array([2**33, -(2**33)])
    assert np.abs(getattr(SecureNoise(), kind)(large, 2.0) - large).max() < 1_000
