"""Numbers that look random and depend on nothing but where in the tree a rule stands.

A rule's number is a hash of (seed, position in the full binary tree, feature, threshold), so two
runs on slightly different data share it: no stream is used up by one and not by the other.
It breaks ties and steadies trees; it is no source of privacy.
"""

import numpy as np
from numba import njit

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST = np.uint64(0xBF58476D1CE4E5B9)
SECOND = np.uint64(0x94D049BB133111EB)
UNIT = 1.0 / 4503599627370496.0  # 2 ** -52; with the half below, never 0 and never 1


@njit(cache=True, nogil=True)
def mix(z):
    """Scramble 64 bits (the SplitMix64 finaliser)."""
    z = np.uint64(z)
    z = (z ^ (z >> np.uint64(30))) * FIRST
    z = (z ^ (z >> np.uint64(27))) * SECOND
    return z ^ (z >> np.uint64(31))


@njit(cache=True, nogil=True)
def hash_node(seed, position):
    """64 bits for a node: position is its index in the full binary tree, the root's being 0."""
    return mix(mix(np.uint64(seed) + GOLDEN) + (np.uint64(position) + np.uint64(1)) * GOLDEN)


@njit(cache=True, nogil=True)
def hash_feature(node_bits, feature):
    """64 bits for a feature asked at a node."""
    return mix(np.uint64(node_bits) ^ mix((np.uint64(feature) + np.uint64(1)) * SECOND))


@njit(cache=True, nogil=True)
def uniform_at(feature_bits, threshold):
    """A number strictly inside (0, 1) for one threshold of a feature asked at a node."""
    bits = mix(np.uint64(feature_bits) + (np.uint64(threshold) + np.uint64(1)) * GOLDEN)
    return (np.float64(bits >> np.uint64(12)) + 0.5) * UNIT


@njit(cache=True, nogil=True)
def largest_uniform(feature_bits, first, last, side):
    """The largest number among thresholds first..last with one missing side, and whose it is."""
    best, where = -1.0, first
    for threshold in range(first, last + 1):
        u = uniform_at(feature_bits, 2 * threshold + side)
        if u > best:
            best, where = u, threshold
    return best, where
