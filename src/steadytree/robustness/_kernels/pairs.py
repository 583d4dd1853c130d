"""Pairs out of two lists of sub-trees, most of them being skipped in groups."""

import numpy as np

from steadytree._base.jit import kernel
from steadytree.robustness._kernels.arrays import sort_by
from steadytree.robustness._kernels.cost import robust_loss


@kernel
def plain_cost(cost, limit, shared):
    """A cost as far as it matters: beyond the limit nothing is lost; per row, within it all is."""
    if cost > limit:
        return np.inf
    return cost if shared else 0.0


@kernel
def hash_costs(costs, limit, shared):
    """Two 64-bit hashes of each row of costs (m, n) as far as they matter."""
    # rows that differ share both with a probability of about 2 ** -128
    m, n = costs.shape
    found, word = np.empty((m, 2), dtype=np.uint64), np.empty(1)
    bits = word.view(np.uint64)
    for row in range(m):
        one, other = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
        for index in range(n):
            word[0] = plain_cost(costs[row, index], limit, shared)
            one = (one ^ bits[0]) * np.uint64(0xFF51AFD7ED558CCD)
            one ^= one >> np.uint64(32)
            other = (other + bits[0]) * np.uint64(0xC4CEB9FE1A85EC53)
            other ^= other >> np.uint64(29)
        found[row, 0], found[row, 1] = one, other
    return found


@kernel
def undominated(costs, split_counts, limit, shared, window):
    """Flags of the sub-trees for which none of the first `window` flagged ones can stand in."""
    # one can stand in for another that comes later if no row costs less in it, as far as costs
    # matter, and it has no more splits
    m, n = costs.shape
    flags = np.zeros(m, dtype=np.bool_)
    kept, n_kept = np.empty(window, dtype=np.int64), 0
    for item in range(m):
        beaten = False
        for index in range(n_kept):
            other = kept[index]
            if split_counts[other] > split_counts[item]:
                continue
            beaten = True
            for row in range(n):
                least = plain_cost(costs[item, row], limit, shared)
                if plain_cost(costs[other, row], limit, shared) < least:
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


@kernel
def strongest_first(costs, limit):
    """Order of sub-trees by the summed costs of their rows, capped at 2 limit; highest first."""
    strength, order = np.zeros(costs.shape[0]), np.empty(costs.shape[0], np.int64)
    for item in range(costs.shape[0]):
        order[item] = item
        for row in range(costs.shape[1]):
            strength[item] -= min(costs[item, row], 2.0 * limit)
    sort_by(strength, order, costs.shape[0])
    return order


GROUP = 32


@kernel(fastmath={"reassoc", "contract", "nsz"})
def pair_total(left_costs, a, right_costs, b, weights, region, slope):
    """Summed losses of a region's rows at one price when both sub-trees threaten them."""
    # weights (n_regions, n) are 0 outside a region. Sums may be taken in any order, which lets them
    # run in parallel lanes; infinities count.
    total = 0.0
    for row in range(weights.shape[1]):
        cost = min(left_costs[a, row], right_costs[b, row])
        total += weights[region, row] * max(0.0, 1.0 - slope * cost)
    return total


@kernel
def pair_lost(left_costs, a, right_costs, b, weights, region, limit):
    """Weight of a region's rows that cost at most the limit when both sub-trees threaten them."""
    total = 0.0
    for row in range(weights.shape[1]):
        if min(left_costs[a, row], right_costs[b, row]) <= limit:
            total += weights[region, row]
    return total


@kernel
def group_bests(costs, losses):
    """What the best of each group of neighbours in a list could be: largest costs, least losses."""
    n_groups = (costs.shape[0] + GROUP - 1) // GROUP
    largest = np.zeros((n_groups, costs.shape[1]))
    least = np.full((n_groups, losses.shape[1]), np.inf)
    for item in range(costs.shape[0]):
        group = item // GROUP
        for row in range(costs.shape[1]):
            largest[group, row] = max(largest[group, row], costs[item, row])
        for interval in range(losses.shape[1]):
            least[group, interval] = min(least[group, interval], losses[item, interval])
    return largest, least


@kernel
def region_weights(region, weight, n_regions):
    """Weights (n_regions, n) of the rows of each region, 0 elsewhere."""
    weights = np.zeros((n_regions, region.shape[0]))
    for row in range(region.shape[0]):
        weights[region[row], row] = weight[row]
    return weights


@kernel
def may_beat(left, a, right, b, around, intervals, room):
    """Whether two sub-trees, or the best of two groups, stay below `room` in some interval.

    left and right are (costs, losses), of which those of a and b count. around is (weights, bounds)
    of the regions, both (n_regions, ...): first is the sub-trees' own, the others must lose at
    least their bounds. The sides' own losses are looked at first, then what all rows lose to both.
    """
    weights, bounds = around
    left_costs, left_losses = left
    right_costs, right_losses = right
    for interval in range(intervals.offset.shape[0]):
        rest = room - intervals.offset[interval]
        total = left_losses[a, interval] + right_losses[b, interval]
        for region in range(1, bounds.shape[0]):
            total += bounds[region, interval]
        if total >= rest:
            continue
        total = 0.0
        for region in range(bounds.shape[0]):
            if intervals.shared:
                slope = intervals.slope[interval]
                own = pair_total(left_costs, a, right_costs, b, weights, region, slope)
            else:
                own = pair_lost(left_costs, a, right_costs, b, weights, region, intervals.limit)
            total += own if region == 0 else max(own, bounds[region, interval])
        if total < rest:
            return True
    return False


@kernel
def promising_pairs(left, right, around, intervals, room, pairs):
    """Fill pairs (m, 2) with the indices of sub-trees that together may stay below `room`."""
    # left and right are (costs, losses), similar sub-trees next to each other, so that whole groups
    # can be skipped. Returns their number, -1 where there are more than m.
    n_left, n_right, n_pairs = left[0].shape[0], right[0].shape[0], 0
    left_best, right_best = group_bests(left[0], left[1]), group_bests(right[0], right[1])
    for one in range(left_best[0].shape[0]):
        for other in range(right_best[0].shape[0]):
            if not may_beat(left_best, one, right_best, other, around, intervals, room):
                continue
            for a in range(GROUP * one, min(GROUP * (one + 1), n_left)):
                if not may_beat(left, a, right_best, other, around, intervals, room):
                    continue
                for b in range(GROUP * other, min(GROUP * (other + 1), n_right)):
                    if may_beat(left, a, right, b, around, intervals, room):
                        if n_pairs == pairs.shape[0]:
                            return -1
                        pairs[n_pairs, 0], pairs[n_pairs, 1] = a, b
                        n_pairs += 1
    return n_pairs


@kernel
def best_pair(left, right, pairs, weight, penalty, most_splits, spending):
    """The pair that loses least, with fewest splits: its index among the pairs, and its value."""
    # left, right are (costs, losses, split_counts), spending is (limit, shared, integer); the index
    # is -1 where every pair has more than `most_splits` splits
    left_costs, _, left_splits = left
    right_costs, _, right_splits = right
    limit, shared, integer = spending
    cost = np.empty(weight.shape[0])
    best, least, fewest = -1, np.inf, most_splits + 1
    for index in range(pairs.shape[0]):
        a, b = pairs[index, 0], pairs[index, 1]
        n_splits = left_splits[a] + right_splits[b] + 1
        if n_splits > most_splits:
            continue
        for row in range(cost.shape[0]):
            cost[row] = min(left_costs[a, row], right_costs[b, row])
        value = robust_loss(cost, weight, limit, shared, integer) + penalty * n_splits
        if value < least - 1e-9 or (value < least + 1e-9 and n_splits < fewest):
            best, least, fewest = index, value, n_splits
    return best, least
