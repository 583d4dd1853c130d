"""Kernels of the steady tree's teacher: bags of rows, deep trees on bins, swapped rows.

Every draw is a hash of a row's content or of a node's path, never of a row's place.
"""

import numpy as np

from steadytree._base.jit import kernel
from steadytree.models._kernels import hash_feature, uniform_at

ORDERED, WITH_MISSING, GROUPED = 0, 1, 2  # kinds of columns; missing is the last bin
PART = 16.0  # exp(-PART) is far from underflow
TIE = 1e-9
TOGETHER = 8  # rows


@kernel
def hash_rows(bits):
    """64 bits for each row of 64-bit words (n, m)."""
    hashes = np.empty(bits.shape[0], np.uint64)
    for row in range(bits.shape[0]):
        value = np.uint64(0)
        for word in range(bits.shape[1]):
            value = hash_feature(value, bits[row, word])
        hashes[row] = value
    return hashes


@kernel
def sample_poisson(bits, mean):
    """A Poisson number by inversion, as the sum of parts whose means are at most PART."""
    n_parts = max(1, int(np.ceil(mean / PART)))
    sampled = 0
    for part in range(n_parts):
        chance = np.exp(-mean / n_parts)
        u, reached, count = uniform_at(bits, part), chance, 0
        while u > reached and chance > 0.0:
            count += 1
            chance *= mean / n_parts / count
            reached += chance
        sampled += count
    return sampled


@kernel
def sample_bag(hashes, means, bits):
    """How often each row is in a tree's bag."""
    counts = np.empty(hashes.shape[0], np.int64)
    for row in range(hashes.shape[0]):
        counts[row] = sample_poisson(hash_feature(bits, hashes[row]), means[row])
    return counts


@kernel
def grow_deep(binned, targets, weights, n_tried, bits):
    """A tree grown until its leaves are pure, on the squared error of targets (n, k).

    At each node `n_tried` columns that vary there are tried, drawn by the node's path. Returns
    column, last bin that goes left, left child (the right one follows; -1 at leaves) and value.
    """
    n_columns, n_targets = binned.shape[1], targets.shape[1]
    rows = np.flatnonzero(weights > 0.0)
    most = max(2 * rows.shape[0] - 1, 1)
    feature, last_left, left = np.full(most, -1), np.zeros(most, np.int64), np.full(most, -1)
    value, spare = np.zeros((most, n_targets)), np.empty_like(rows)
    first, last, path = (
        np.zeros(most, np.int64),
        np.zeros(most, np.int64),
        np.zeros(most, np.uint64),
    )
    mass, sums = np.zeros(256), np.zeros((256, n_targets))
    columns, waiting = np.arange(n_columns), np.zeros(most, np.int64)
    last[0], path[0], n_nodes, n_waiting = rows.shape[0], bits, 1, 1
    while n_waiting:
        n_waiting -= 1
        node = waiting[n_waiting]
        here = rows[first[node] : last[node]]
        best, seen = TIE * mixed_weight(targets, weights, here, value[node]), 0
        if best == 0.0:
            continue
        columns[:] = np.arange(n_columns)
        for turn in range(n_columns):
            position = turn + int(uniform_at(path[node], turn) * (n_columns - turn))
            columns[turn], columns[position] = columns[position], columns[turn]
            column = columns[turn]
            low, high = fill_bins(binned, targets, weights, here, column, mass, sums)
            if low == high:
                continue  # constant here: does not count as tried
            gain, where = best_threshold(mass, sums, low, high)
            if gain > best * (1 + TIE):
                best, feature[node], last_left[node] = gain, column, where
            seen += 1
            if seen == n_tried:
                break
        if feature[node] < 0:
            continue
        middle = part_rows(binned, feature[node], last_left[node], here, spare) + first[node]
        left[node] = n_nodes
        for side in range(2):
            child = n_nodes + side
            first[child] = middle if side else first[node]
            last[child] = last[node] if side else middle
            path[child] = hash_feature(path[node], side)
            waiting[n_waiting + side] = child
        n_waiting, n_nodes = n_waiting + 2, n_nodes + 2
    return feature[:n_nodes], last_left[:n_nodes], left[:n_nodes], value[:n_nodes]


@kernel
def mixed_weight(targets, weights, here, value):
    """Fill the mean target of some rows; their weight, 0 where all targets are 0 or all 1."""
    total = 0.0
    value[:] = 0.0
    for row in here:
        total += weights[row]
        for k in range(value.shape[0]):
            value[k] += weights[row] * targets[row, k]
    mixed = False
    for k in range(value.shape[0]):
        value[k] = value[k] / total if total > 0.0 else 0.0
        mixed = mixed or TIE < value[k] < 1 - TIE
    return total if mixed else 0.0


@kernel
def fill_bins(binned, targets, weights, here, column, mass, sums):
    """Fill weights and target sums of a column's bins for some rows; least and greatest bin."""
    low, high = mass.shape[0] - 1, 0
    mass[:] = 0.0
    sums[:] = 0.0
    for row in here:
        bin_ = binned[row, column]
        mass[bin_] += weights[row]
        for k in range(sums.shape[1]):
            sums[bin_, k] += weights[row] * targets[row, k]
        low, high = min(low, bin_), max(high, bin_)
    return low, high


@kernel
def best_threshold(mass, sums, low, high):
    """Largest fall of squared error by a split between bins low..high, and its last bin left."""
    total, best, where = mass[low : high + 1].sum(), 0.0, -1
    n_targets = sums.shape[1]
    totals, below = np.zeros(n_targets), np.zeros(n_targets)
    for bin_ in range(low, high + 1):
        totals += sums[bin_]
    passed = 0.0
    for bin_ in range(low, high):
        if mass[bin_] == 0.0:
            continue
        passed += mass[bin_]
        below += sums[bin_]
        gain = split_gain(passed, below, total, totals)
        if gain > best * (1 + TIE):
            best, where = gain, bin_
    return best, where


@kernel
def split_gain(passed, below, total, totals):
    """Fall of the squared error where (passed, below) of (total, totals) go left."""
    rest, gain = total - passed, 0.0
    if passed <= TIE * total or rest <= TIE * total:  # weights do not add up exactly
        return -1.0
    for k in range(totals.shape[0]):
        over = totals[k] - below[k]
        gain += below[k] ** 2 / passed + over**2 / rest - totals[k] ** 2 / total
    return gain


@kernel
def part_rows(binned, column, last_left, here, spare):
    """Put rows up to bin `last_left` first, both sides in their order; how many there are."""
    n_left, n_right = 0, 0
    for row in here:
        if binned[row, column] <= last_left:
            here[n_left] = row
            n_left += 1
        else:
            spare[n_right] = row
            n_right += 1
    here[n_left:] = spare[:n_right]
    return n_left


@kernel
def find_deep_leaves(binned, feature, last_left, left):
    """Leaf of each row in a tree of `grow_deep`."""
    leaves = np.zeros(binned.shape[0], np.int64)
    # several rows take a step in turn, so that the processor need not wait for each to arrive
    for start in range(0, binned.shape[0], TOGETHER):
        moved = True
        while moved:
            moved = False
            for row in range(start, min(start + TOGETHER, binned.shape[0])):
                node = leaves[row]
                if left[node] >= 0:
                    leaves[row] = left[node] + (binned[row, feature[node]] > last_left[node])
                    moved = True
    return leaves


@kernel
def swap_values(binned, hashes, n_copies, rate, quantiles, seed):
    """Copies of each row (n * n_copies, d), values swapped at a rate for draws from their column.

    `quantiles` (d, m) are bins at equal steps of a column's distribution.
    """
    n_rows, n_columns = binned.shape
    swapped = np.empty((n_rows * n_copies, n_columns), binned.dtype)
    for row in range(n_rows):
        for copy in range(n_copies):
            bits = hash_feature(hash_feature(hashes[row], seed), copy)
            for column in range(n_columns):
                bin_ = binned[row, column]
                if uniform_at(bits, 2 * column) < rate:
                    position = uniform_at(bits, 2 * column + 1) * quantiles.shape[1]
                    bin_ = quantiles[column, int(position)]
                swapped[row * n_copies + copy, column] = bin_
    return swapped
