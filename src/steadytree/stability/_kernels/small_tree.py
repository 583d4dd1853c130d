"""Kernels of the small tree: grown best first on taught rows, and its leaves.

Of splits that are nearly as good, the first column and the roundest threshold are taken.
"""

import numpy as np

from steadytree._base.jit import kernel
from steadytree.stability._kernels.steady import (
    GROUPED,
    ORDERED,
    TIE,
    WITH_MISSING,
)

MOST_BINS = 64


@kernel
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
):
    """A tree of at most `n_leaves` and `deepest` levels, the node of largest gain first.

    Of all columns' best splits a node gets the first, in the order of columns, whose gain is
    within a share `near` of the best; `root` names the column of the first split, -1 any.
    `roundness` and `coarse` are those of `best_splits`. Returns column, bins that go left as
    bits, left child, and the gain of each column at the root.
    """
    most, n_nodes, total, n_rows = 2 * n_leaves - 1, 1, 0.0, 0
    nodes, gain = np.full((6, most), -1), np.zeros(most)
    feature, left, chosen, depth, first, last = nodes
    bins, at_root = np.zeros(most, np.uint64), np.zeros(binned.shape[1])
    rows, spare = np.full((2, weights.shape[0]), 0)
    for row in range(weights.shape[0]):
        total += weights[row]
        rows[n_rows] = row
        n_rows += weights[row] > 0.0
    first[0], last[0], depth[0] = 0, n_rows, 0
    for _ in range(n_leaves - 1):
        for node in range(n_nodes - 2 if n_nodes > 2 else 0, n_nodes):
            gains, found = best_splits(
                binned,
                targets,
                weights,
                n_bins,
                kinds,
                directions,
                roundness,
                rows[first[node] : last[node]],
                least,
                coarse,
            )
            if node == 0:
                at_root = gains
            chosen[node] = root if root >= 0 and node == 0 else first_near(gains, near)
            gain[node], bins[node] = gains[chosen[node]], found[chosen[node]]
            if gain[node] <= TIE * total or depth[node] == deepest:
                gain[node] = 0.0
        node = first_near(gain[:n_nodes], 0.0)
        if gain[node] <= 0.0:
            break
        feature[node], left[node], gain[node] = chosen[node], n_nodes, 0.0
        here = rows[first[node] : last[node]]
        middle = first[node] + part_by_bins(binned, feature[node], bins[node], here, spare)
        for side in range(2):
            child = n_nodes + side
            depth[child] = depth[node] + 1
            first[child] = middle if side else first[node]
            last[child] = last[node] if side else middle
        n_nodes += 2
    for node in range(n_nodes):
        if left[node] < 0:
            bins[node] = 0
    return feature[:n_nodes], bins[:n_nodes], left[:n_nodes], at_root


@kernel
def first_near(gains, near):
    """The first position whose gain is within a share `near` of the best."""
    best, position = 0.0, 0
    for gain in gains:
        best = gain if gain > best else best
    while gains[position] < (1 - near) * (1 - TIE) * best:
        position += 1
    return position


@kernel
def part_by_bins(binned, column, bins, here, spare):
    """Put rows whose bin is among the set ones first, in their order; how many there are."""
    n_left, n_right = 0, 0
    for row in here:
        if is_in(bins, binned[row, column]):
            here[n_left] = row
            n_left += 1
        else:
            spare[n_right] = row
            n_right += 1
    for position in range(n_right):
        here[n_left + position] = spare[position]
    return n_left


@kernel
def best_splits(
    binned, targets, weights, n_bins, kinds, directions, roundness, rows, least, coarse
):
    """Gain of each column's split of some rows, 0 where there is none, and the bins that go left.

    Of a numeric column's thresholds whose gains are within a share `coarse` of the best, the one
    of largest `roundness` (d, bins), that of the threshold above each bin, is taken.
    """
    n_columns = binned.shape[1]
    gains, bins = np.zeros(n_columns), np.zeros(n_columns, np.uint64)
    masses, planes = weigh_bins(binned, targets, weights, rows)
    sums, total = np.empty((MOST_BINS, targets.shape[1])), 0.0
    for row in range(weights.shape[0]):
        total += weights[row]
    for column in range(n_columns):
        mass = masses[column]
        for bin_ in range(MOST_BINS):
            for k in range(targets.shape[1]):
                sums[bin_, k] = planes[k, column, bin_]
        orders, n_orders = bin_orders(mass[: n_bins[column]], sums, kinds[column], total)
        share = 0.0 if kinds[column] == GROUPED else coarse
        for turn in range(n_orders):
            falls = split_gains(mass, sums, orders[turn], directions[column], least)
            gain, position = roundest_split(falls, orders[turn], roundness[column], share)
            if gain > gains[column] * (1 + TIE):
                gains[column], bins[column] = gain, first_bins(orders[turn], position)
    return gains, bins


@kernel
def weigh_bins(binned, targets, weights, rows):
    """Weights (d, bins) and weighted targets (k, d, bins) of some rows, by column and bin."""
    n_columns, n_targets = binned.shape[1], targets.shape[1]
    mass, sums = np.zeros((n_columns, MOST_BINS)), np.zeros((n_targets, n_columns, MOST_BINS))
    for row in rows:
        own = binned[row]
        for column in range(n_columns):
            mass[column, own[column]] += weights[row]
        for k in range(n_targets):
            plane, weighted = sums[k], weights[row] * targets[row, k]
            for column in range(n_columns):
                plane[column, own[column]] += weighted
    return mass, sums


@kernel
def split_gain(passed, below, total, totals):
    """Fall of the squared error where (passed, below) of (total, totals) go left."""
    rest, gain = total - passed, 0.0
    if passed <= TIE * total or rest <= TIE * total:  # weights do not add up exactly
        return -1.0
    for k in range(totals.shape[0]):
        over = totals[k] - below[k]
        alone = totals[k] * totals[k] / total
        gain += below[k] * below[k] / passed + over * over / rest - alone
    return gain


@kernel
def split_gains(mass, sums, order, direction, least):
    """Gain of the split after each bin of an order; 0 where a side is too small or empty.

    With a direction the mean target must not move against it, from the left to the right side.
    """
    n_targets = sums.shape[1]
    total, totals = 0.0, np.zeros(n_targets)
    for bin_ in order:
        total += mass[bin_]
        for k in range(n_targets):
            totals[k] += sums[bin_, k]
    passed, below, gains = 0.0, np.zeros(n_targets), np.zeros(order.shape[0])
    for position in range(order.shape[0] - 1):
        bin_ = order[position]
        if mass[bin_] == 0.0:
            continue
        passed += mass[bin_]
        for k in range(n_targets):
            below[k] += sums[bin_, k]
        rest = total - passed
        if passed < least or rest < least:
            continue
        if direction and direction * ((totals[0] - below[0]) * passed - below[0] * rest) < 0.0:
            continue
        gain = split_gain(passed, below, total, totals)
        gains[position] = gain if gain > TIE * total else 0.0
    return gains


@kernel
def roundest_split(gains, order, roundness, coarse):
    """(gain, position) of the roundest split within a share `coarse` of the best; then the best."""
    best, chosen = 0.0, 0
    for gain in gains:
        best = gain if gain > best else best
    for position in range(gains.shape[0]):
        if gains[position] <= 0.0 or gains[position] < (1 - coarse) * (1 - TIE) * best:
            continue
        ours, theirs = roundness[order[position]], roundness[order[chosen]]
        better = gains[position] > gains[chosen] * (1 + TIE)
        # the first position that is near enough replaces position 0, which may not be
        unfit = gains[chosen] < (1 - coarse) * (1 - TIE) * best
        if unfit or ours > theirs or (ours == theirs and better):
            chosen = position
    return gains[chosen], chosen


@kernel
def first_bins(order, position):
    """Bits of the bins of an order up to a position."""
    bins = np.uint64(0)
    for bin_ in order[: position + 1]:
        bins |= np.uint64(1) << np.uint64(bin_)
    return bins


@kernel
def bin_orders(mass, sums, kind, total):
    """Orders (2, n_bins) in which bins may be split, and how many of the two count.

    Numbers come in their order, missing ones at either end; categories by their mean target.
    """
    n_bins = mass.shape[0]
    orders = np.empty((2, n_bins), np.int64)
    for position in range(n_bins):
        orders[0, position] = position
        orders[1, position] = position - 1 if position else n_bins - 1
    if kind == ORDERED:
        return orders, 1
    if kind == WITH_MISSING:
        return orders, 2
    widest, heavy, key, found = -1.0, 0.0, np.zeros(n_bins), np.zeros(n_bins)
    for bin_ in range(n_bins):
        heavy += mass[bin_]
    for k in range(sums.shape[1]):  # of several classes, the one whose means vary most
        mean, spread = 0.0, 0.0
        for bin_ in range(n_bins):
            mean += sums[bin_, k]
        mean /= max(heavy, TIE * total)
        for bin_ in range(n_bins):
            # hardly pulled to the node's mean: this only places categories that have no row here
            found[bin_] = (sums[bin_, k] + 1e-6 * total * mean) / (mass[bin_] + 1e-6 * total)
            spread += mass[bin_] * (found[bin_] - mean) ** 2
        if spread > widest * (1 + TIE):
            widest = spread
            key, found = found, key
    for bin_ in range(n_bins):  # sorted by insertion, equal ones in their order
        position = bin_
        while position and key[orders[0, position - 1]] > key[bin_]:
            orders[0, position] = orders[0, position - 1]
            position -= 1
        orders[0, position] = bin_
    return orders, 1


@kernel
def is_in(bins, bin_):
    """Whether a bin is among those whose bits are set."""
    return (bins >> np.uint64(bin_)) & np.uint64(1) == np.uint64(1)


@kernel
def find_small_leaves(binned, feature, bins, left):
    """Leaf of each row in a tree of `grow_small`."""
    leaves = np.zeros(binned.shape[0], np.int64)
    for row in range(binned.shape[0]):
        node = 0
        while left[node] >= 0:
            node = left[node] + (not is_in(bins[node], binned[row, feature[node]]))
        leaves[row] = node
    return leaves
