"""Sub-trees that others can stand in for: equal ones, and ones that are worse for every row."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def plain_cost(cost, limit, shared):
    """A cost as far as it matters: beyond the limit nothing is lost; per row, within it all is."""
    if cost > limit:
        return np.inf
    return cost if shared else 0.0


@njit(cache=True, nogil=True)
def hash_costs(costs, limit, shared):
    """Two 64-bit hashes of each row of costs (m, n) as far as they matter.

    Rows that differ share both with a probability of about 2 ** -128.
    """
    m, n = costs.shape
    found, word = np.empty((m, 2), dtype=np.uint64), np.empty(1)
    bits = word.view(np.uint64)
    for row in range(m):
        one, other = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
        for place in range(n):
            word[0] = plain_cost(costs[row, place], limit, shared)
            one = (one ^ bits[0]) * np.uint64(0xFF51AFD7ED558CCD)
            one ^= one >> np.uint64(32)
            other = (other + bits[0]) * np.uint64(0xC4CEB9FE1A85EC53)
            other ^= other >> np.uint64(29)
        found[row, 0], found[row, 1] = one, other
    return found


@njit(cache=True, nogil=True)
def undominated(costs, splits, limit, shared, window):
    """Flags of the sub-trees for which none of the first `window` flagged ones can stand in.

    One can stand in for another that comes later if no row costs less in it, as far as costs
    matter, and it has no more questions.
    """
    m, n = costs.shape
    flags = np.zeros(m, dtype=np.bool_)
    kept, n_kept = np.empty(window, dtype=np.int64), 0
    for item in range(m):
        beaten = False
        for place in range(n_kept):
            other = kept[place]
            if splits[other] > splits[item]:
                continue
            beaten = True
            for row in range(n):
                if plain_cost(costs[other, row], limit, shared) < plain_cost(
                    costs[item, row], limit, shared
                ):
                    beaten = False
                    break
            if beaten:
                break
        if not beaten:
            flags[item] = True
            if n_kept < window:
                kept[n_kept] = item
                n_kept += 1
    return flags


@njit(cache=True, nogil=True)
def strongest_first(costs, limit):
    """Order of sub-trees by how much their rows cost, as far as that may matter, dearest first."""
    strength = np.zeros(costs.shape[0])
    for item in range(costs.shape[0]):
        for row in range(costs.shape[1]):
            strength[item] -= min(costs[item, row], 2.0 * limit)
    return np.argsort(strength, kind="mergesort")
