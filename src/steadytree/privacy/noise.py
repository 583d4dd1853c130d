"""Noise: samples from OpenDP's mechanisms; or from a seeded generator, for tests, not private."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from steadytree._base.optional import require

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
NOT_PRIVATE = "NOT PRIVATE (testing seed)"


class Noise(Protocol):
    """A source of noise; `private` is False for seeded noise, which protects nobody."""

    @property
    def private(self) -> bool: ...

    def laplace(self, values: Integers, scale: float) -> Integers:
        """Integers plus discrete Laplace noise: P(z) proportional to exp(-|z| / scale)."""

    def gaussian(self, values: Integers, scale: float) -> Integers:
        """Integers plus discrete Gaussian noise: P(z) proportional to exp(-z^2 / (2 scale^2))."""

    def highest(self, scores: Floats, scale: float) -> int:
        """Index of the highest score plus exponential noise (permute-and-flip)."""

    def sample_index(self, log_weights: Floats) -> int:
        """An index, sampled with probability proportional to exp(log_weights)."""


class SecureNoise:
    """OpenDP's samplers: exact arithmetic on bits of the operating system's generator.

    `sample_index` adds Gumbel noise, sampled to as many bits as the comparison needs: the sample
    follows the given floating-point numbers exactly, also far out in the tails.
    """

    private = True

    def __init__(self) -> None:
        _library()

    def laplace(self, values: Integers, scale: float) -> Integers:
        return _noised(_laplace(float(scale)), values)

    def gaussian(self, values: Integers, scale: float) -> Integers:
        return _noised(_gaussian(float(scale)), values)

    def highest(self, scores: Floats, scale: float) -> int:
        return int(_highest(float(scale))(np.asarray(scores, float).tolist()))

    def sample_index(self, log_weights: Floats) -> int:
        return int(_gumbel()(np.asarray(log_weights, float).tolist()))


class SeededNoise:
    """The same distributions from a seeded generator: repeatable, for tests, and not private."""

    private = False

    def __init__(self, seed: int | Sequence[int]) -> None:
        self._generator = np.random.default_rng(seed)

    def laplace(self, values: Integers, scale: float) -> Integers:
        chance = -np.expm1(-1.0 / scale)
        geometric = self._generator.geometric
        return values + geometric(chance, values.shape) - geometric(chance, values.shape)

    def gaussian(self, values: Integers, scale: float) -> Integers:
        reach = int(np.ceil(12 * scale)) + 1
        support = np.arange(-reach, reach + 1)
        weights = np.exp(-0.5 * (support / scale) ** 2)
        return values + self._generator.choice(support, values.shape, p=weights / weights.sum())

    def highest(self, scores: Floats, scale: float) -> int:
        noise = self._generator.exponential(scale, len(scores))
        return int(np.argmax(np.asarray(scores) + noise))

    def sample_index(self, log_weights: Floats) -> int:
        noise = self._generator.gumbel(size=len(log_weights))
        return int(np.argmax(np.asarray(log_weights) + noise))


def make_noise(testing_seed: int | None = None) -> Noise:
    """Secure noise; seeded noise, which is not private, if a test gives a seed."""
    return SecureNoise() if testing_seed is None else SeededNoise(testing_seed)


def ledger_mark(noise: Noise, mechanism: str) -> str:
    """The mechanism's name in a ledger, which shows seeded noise as not private."""
    return mechanism if noise.private else NOT_PRIVATE


@lru_cache(maxsize=1)
def _library() -> Any:
    library = require("opendp.prelude", extra="private", purpose="private learning")
    library.enable_features("contrib", "honest-but-curious")
    return library


def _noised(measurement: Any, values: Integers) -> Integers:
    flat = np.asarray(values, np.int64)
    noisy = measurement(flat.ravel().tolist()) if flat.size else []
    return np.array(noisy, np.int64).reshape(flat.shape)


@lru_cache(maxsize=256)
def _laplace(scale: float) -> Any:
    dp = _library()
    space = dp.vector_domain(dp.atom_domain(T=dp.i64)), dp.l1_distance(T=dp.i64)
    return space >> dp.m.then_laplace(scale=scale)


@lru_cache(maxsize=256)
def _gaussian(scale: float) -> Any:
    dp = _library()
    space = dp.vector_domain(dp.atom_domain(T=dp.i64)), dp.l2_distance(T=float)
    return space >> dp.m.then_gaussian(scale=scale)


def _scores(dp: Any) -> Any:
    return dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.linf_distance(T=float)


@lru_cache(maxsize=256)
def _highest(scale: float) -> Any:
    dp = _library()
    return _scores(dp) >> dp.m.then_noisy_max(dp.max_divergence(), scale=scale)


@lru_cache(maxsize=1)
def _gumbel() -> Any:
    dp = _library()
    return _scores(dp) >> dp.m.then_noisy_max(dp.zero_concentrated_divergence(), scale=1.0)
