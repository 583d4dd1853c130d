"""The small tree: grown best first on taught rows, and its leaves.

Of splits that are nearly as good, the first column and the roundest threshold are taken. Loops over
rows are compiled; what is chosen from their sums by bin is plain numpy.
"""

import numpy as np

from steadytree._base.jit import kernel
from steadytree.stability._kernels.steady import GROUPED, TIE, WITH_MISSING

MOST_BINS = 64


def grow_small(
    binned,
    targets,
    weights,
    n_bins,
    kinds,
    directions,
    roundness,
    n_leaves,
    least,
    near,
    coarse,
    root,
    deepest,
    splits_of_all=None,
):
    """A tree of at most `n_leaves` and `deepest` levels, the node of largest gain first.

    Of all columns' best splits a node gets the first, in the order of columns, whose gain is
    within a share `near` of the best; `root` names the column of the first split, -1 any.
    `roundness` and `coarse` are those of `best_splits`, and `splits_of_all` is what that returns
    for all rows, where it is known. Returns column, bins that go left as bits, left child, and
    the splits of all rows.
    """
    data = binned, targets, weights, n_bins, kinds, directions, roundness
    total = weights.sum()
    feature, bins, left, depth = [-1], [0], [-1], [0]
    gain: list[float] = []
    chosen: list[tuple[int, int]] = []
    inside = [np.flatnonzero(weights > 0)]
    while len(left) < 2 * n_leaves - 1:
        for node in range(len(gain), len(left)):
            if node == 0 and splits_of_all is not None:
                gains, found = splits_of_all
            else:
                gains, found = best_splits(*data, inside[node], least, coarse)
            splits_of_all = splits_of_all or (gains, found)
            column = root if root >= 0 and node == 0 else first_near(gains, near)
            chosen.append((column, int(found[column])))
            fits = gains[column] > TIE * total and depth[node] != deepest
            gain.append(float(gains[column]) if fits else 0.0)
        node = first_near(np.array(gain), 0.0)
        if gain[node] <= 0.0:
            break
        feature[node], bins[node] = chosen[node]
        left[node], gain[node] = len(left), 0.0
        here = inside[node]
        goes = is_in(bins[node], binned[here, feature[node]])
        inside += [here[goes], here[~goes]]
        feature, bins, left = [*feature, -1, -1], [*bins, 0, 0], [*left, -1, -1]
        depth += [depth[node] + 1] * 2
    return np.array(feature), np.array(bins, np.uint64), np.array(left), splits_of_all


def first_near(gains, near):
    """The first position whose gain is within a share `near` of the best."""
    return int(np.argmax(gains >= (1 - near) * (1 - TIE) * max(gains.max(), 0.0)))


def best_splits(
    binned, targets, weights, n_bins, kinds, directions, roundness, rows, least, coarse
):
    """Gain of each column's split of some rows, 0 where there is none, and the bins that go left.

    Of a numeric column's thresholds whose gains are within a share `coarse` of the best, the one
    of largest `roundness` (d, bins), that of the threshold above each bin, is taken.
    """
    mass, sums = weigh_bins(binned, targets, weights, rows, int(n_bins.max()))
    columns, orders = bin_orders(mass, sums, n_bins, kinds, weights.sum())
    gains = split_gains(
        np.take_along_axis(mass[columns], orders, 1),
        np.take_along_axis(sums[:, columns], orders[None], 2),
        n_bins[columns],
        directions[columns],
        least,
    )
    share = np.where(kinds == GROUPED, 0.0, coarse)[columns]
    best, positions = roundest_splits(gains, columns, orders, roundness, share)
    bins = first_bins(orders, positions)
    d = len(kinds)
    for turn in range(d, len(columns)):  # missing values at the other end
        column = columns[turn]
        if best[turn] > best[column] * (1 + TIE):
            best[column], bins[column] = best[turn], bins[turn]
    return best[:d], np.where(best[:d] > 0.0, bins[:d], np.uint64(0))


def weigh_bins(binned, targets, weights, rows, n_bins):
    """Weights (d, bins) and weighted targets (k, d, bins) of some rows, by column and bin."""
    sums = np.zeros((targets.shape[1] + 1, binned.shape[1], n_bins))
    add_rows(binned, targets, weights, rows, sums)
    return sums[0], sums[1:]


@kernel
def add_rows(binned, targets, weights, rows, sums):
    """Add weights to sums[0] and weighted targets to sums[1:] (k, d, bins)."""
    n_columns, n_targets = binned.shape[1], targets.shape[1]
    for row in rows:
        own = binned[row]
        for k in range(n_targets + 1):
            plane, weighted = sums[k], weights[row]
            if k > 0:
                weighted *= targets[row, k - 1]
            for column in range(n_columns):
                plane[column, own[column]] += weighted


def split_gains(mass, sums, n_bins, directions, least):
    """Gain of the split after each bin of orders (m, bins); 0 where a side is too small or empty.

    mass (m, bins) and sums (k, m, bins) are in the order. With a direction the mean target must
    not move against it, from the left to the right side.
    """
    passed, below = mass.cumsum(axis=1), sums.cumsum(axis=2)
    total, totals = passed[:, -1:], below[:, :, -1:]
    rest = total - passed
    fits = (mass != 0.0) & (np.arange(mass.shape[1]) < n_bins[:, None] - 1)
    fits &= (passed >= least) & (rest >= least)
    fits &= (passed > TIE * total) & (rest > TIE * total)  # weights do not add up exactly
    if directions.any():
        rise = (totals[0] - below[0]) * passed - below[0] * rest
        fits &= ~(directions[:, None] * rise < 0.0)
    gain, one, other = 0.0, np.where(fits, passed, 1.0), np.where(fits, rest, 1.0)
    whole = np.where(total > 0.0, total, 1.0)
    for left, both in zip(below, totals, strict=True):
        over = both - left
        gain = gain + (left * left / one + over * over / other - both * both / whole)
    return np.where(fits & (gain > TIE * total), gain, 0.0)


def roundest_splits(gains, columns, orders, roundness, coarse):
    """(gain, position) of the roundest split within a share `coarse` of the best; then the best.

    Of each order (m, bins); position 0 and no gain where there is none.
    """
    least = ((1 - coarse) * (1 - TIE) * gains.max(axis=1))[:, None]
    near = (gains > 0.0) & (gains >= least)
    rounds = np.where(near, np.take_along_axis(roundness[columns], orders, 1), -np.inf)
    near &= rounds == rounds.max(axis=1, keepdims=True)
    best, positions = [0.0] * len(gains), [0] * len(gains)
    for turn, position in zip(*(found.tolist() for found in np.nonzero(near)), strict=True):
        if gains[turn, position] > best[turn] * (1 + TIE):
            best[turn], positions[turn] = float(gains[turn, position]), position
    return np.array(best), np.array(positions)


def first_bins(orders, positions):
    """Bits of the bins of each order (m, bins) up to its position."""
    bits = np.uint64(1) << orders.astype(np.uint64)
    wanted = np.arange(orders.shape[1]) <= positions[:, None]
    return np.bitwise_or.reduce(np.where(wanted, bits, np.uint64(0)), axis=1)


def bin_orders(mass, sums, n_bins, kinds, total):
    """Orders (m, bins) in which bins may be split, and the columns (m,) that they are of.

    Numbers come in their order, missing ones at either end: columns that have some come once more
    after all others. Categories come by their mean target.
    """
    columns = np.concatenate([np.arange(len(kinds)), np.flatnonzero(kinds == WITH_MISSING)])
    orders = np.tile(np.arange(mass.shape[1]), (len(columns), 1))
    last = n_bins[columns[len(kinds) :], None] - 1
    turned = orders[len(kinds) :]
    turned -= turned <= last
    turned[:, :1] = last
    grouped = np.flatnonzero(kinds == GROUPED)
    if len(grouped):
        keys = category_keys(mass[grouped], sums[:, grouped], total)
        keys[np.arange(mass.shape[1]) >= n_bins[grouped, None]] = np.inf
        orders[grouped] = np.argsort(keys, axis=1, kind="stable")
    return columns, orders


def category_keys(mass, sums, total):
    """Mean target (m, bins) of each category; of several classes, the one that varies most."""
    heavy = np.maximum(mass.cumsum(axis=1)[:, -1:], TIE * total)
    widest, keys = np.full((len(mass), 1), -1.0), np.zeros(mass.shape)
    for own in sums:
        mean = own.cumsum(axis=1)[:, -1:] / heavy
        # hardly pulled to the node's mean: this only places categories that have no row here
        found = (own + 1e-6 * total * mean) / (mass + 1e-6 * total)
        spread = (mass * (found - mean) ** 2).cumsum(axis=1)[:, -1:]
        wider = spread > widest * (1 + TIE)
        widest, keys = np.where(wider, spread, widest), np.where(wider, found, keys)
    return keys


def is_in(bins, own):
    """Whether bins (n,) are among those whose bits are set."""
    return np.uint64(bins) >> own.astype(np.uint64) & np.uint64(1) == 1


def find_small_leaves(binned, feature, bins, left, start, rows=None):
    """Leaf below node `start` of each row, or of some, in a tree of `grow_small`."""
    rows = np.arange(len(binned)) if rows is None else rows
    leaves = np.empty(len(rows), np.int64)
    walk_rows(binned, feature, bins, left, start, rows, leaves)
    return leaves


@kernel
def walk_rows(binned, feature, bins, left, start, rows, leaves):
    """As `find_small_leaves`, into leaves (n,)."""
    for index in range(rows.shape[0]):
        node, row = start, rows[index]
        while left[node] >= 0:
            bit = bins[node] >> np.uint64(binned[row, feature[node]]) & np.uint64(1)
            node = left[node] + 1 - np.int64(bit)
        leaves[index] = node
