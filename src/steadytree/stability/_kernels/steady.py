"""Kernels of the steady tree's teacher: bags of rows, deep trees on bins, swapped rows.

Every draw is a hash of a row's content or of a node's path, never of a row's position.
"""

import numpy as np

from steadytree._base.jit import kernel
from steadytree.models._kernels import hash_all, hash_feature, uniform_all, uniform_at

ORDERED, WITH_MISSING, GROUPED = 0, 1, 2  # kinds of columns; missing is the last bin
PART = 16.0  # exp(-PART) is far from underflow
TIE = 1e-9
N_BINS = 256
TOGETHER = 64  # rows
FEW = 16  # rows up to which their bins are listed one by one
HIGH, MIDDLE, LOW_BITS = np.uint64(32), np.uint64(16), np.uint64(0xFFFF)  # parts of a packed node


def hash_rows(bits):
    """64 bits for each row of 64-bit words (n, m)."""
    hashes = np.zeros(len(bits), np.uint64)
    for words in bits.T:
        hashes = hash_all(hashes, words)
    return hashes


@kernel
def sample_poisson(bits, mean):
    """A Poisson number by inversion, as the sum of parts whose means are at most PART."""
    n_parts, sampled = 1, 0
    while n_parts * PART < mean:
        n_parts += 1
    for part in range(n_parts):
        chance = np.exp(-mean / n_parts)
        u, reached, count = uniform_at(bits, part), chance, 0
        while u > reached and chance > 0.0:
            count += 1
            chance *= mean / n_parts / count
            reached += chance
        sampled += count
    return sampled


def sample_bag(hashes, means, bits):
    """How often each row is in a tree's bag."""
    counts = np.empty(len(hashes), np.int64)
    fill_bag(hashes, means, bits, counts)
    return counts


# arrays are made outside of loops: each kind of them is compiled apart
@kernel
def fill_bag(hashes, means, bits, counts):
    """As `sample_bag`, into counts (n,)."""
    for row in range(hashes.shape[0]):
        counts[row] = sample_poisson(hash_feature(bits, hashes[row]), means[row])


def grow_deep(columns_of, sums_of, mass_of, n_tried, bits):
    """A tree grown until its leaves are pure, on the squared error of targets.

    columns_of (d, m) are the bins of rows, sums_of (k, m) their weighted targets, mass_of (m,)
    their weights. At each node `n_tried` columns that vary there are tried, drawn by the node's
    path. Returns column, last bin that goes left, left child (the right one follows; -1 at leaves)
    and value.
    """
    most, n_targets = max(2 * columns_of.shape[1] - 1, 1), len(sums_of)
    nodes, value = np.full((7, most), -1), np.zeros((most, n_targets))
    lists = np.zeros((4, max(*columns_of.shape, N_BINS)), np.int64)
    work = np.zeros((n_targets + 2, N_BINS))
    given = columns_of, sums_of, mass_of, n_tried, bits
    n_nodes = fill_deep(*given, nodes, value, lists, work)
    return nodes[0, :n_nodes], nodes[1, :n_nodes], nodes[2, :n_nodes], value[:n_nodes]


@kernel
def fill_deep(columns_of, sums_of, mass_of, n_tried, bits, nodes, value, lists, work):
    """As `grow_deep`, into nodes (7, most) of -1 and value (most, k); how many nodes there are."""
    n_columns, n_rows = columns_of.shape
    feature, last_left, left, first = nodes[0], nodes[1], nodes[2], nodes[3]
    last, path, waiting = nodes[4], nodes[5], nodes[6]
    rows, spare, columns, used = lists[0], lists[1], lists[2], lists[3]
    mass, gains, sums = work[0], work[1], work[2:]
    for row in range(n_rows):
        rows[row] = row
    first[0], last[0], path[0], waiting[0], last_left[0] = 0, n_rows, np.int64(bits), 0, 0
    n_nodes, n_waiting = 1, 1
    while n_waiting:
        n_waiting -= 1
        node = waiting[n_waiting]
        here = rows[first[node] : last[node]]
        best, seen = TIE * mixed_weight(mass_of, sums_of, here, value[node]), 0
        if best == 0.0:
            continue
        for turn in range(n_columns):
            columns[turn] = turn
        for turn in range(n_columns):
            u = uniform_at(np.uint64(path[node]), turn)
            position = turn + np.int64(u * (n_columns - turn))
            columns[turn], columns[position] = columns[position], columns[turn]
            column = columns[turn]
            n_used = add_bins(columns_of, column, mass_of, sums_of, here, mass, sums, used)
            if n_used > 1:  # constant here: does not count as tried
                gain, where = best_threshold(mass, sums, used, n_used, gains)
                if gain > best * (1 + TIE):
                    best, feature[node], last_left[node] = gain, column, where
                seen += 1
            empty_bins(mass, sums, used, n_used)
            if seen == n_tried:
                break
        if feature[node] < 0:
            continue
        own = columns_of[feature[node]]
        middle = part_rows(own, last_left[node], here, spare) + first[node]
        left[node] = n_nodes
        for side in range(2):
            child = n_nodes + side
            first[child] = middle if side else first[node]
            last[child] = last[node] if side else middle
            bits = hash_feature(np.uint64(path[node]), np.uint64(side))
            path[child], last_left[child] = np.int64(bits), 0
            waiting[n_waiting + side] = child
        n_waiting, n_nodes = n_waiting + 2, n_nodes + 2
    return n_nodes


@kernel
def mixed_weight(mass_of, sums_of, here, value):
    """Fill the mean target of some rows; their weight, 0 where all targets are 0 or all 1."""
    total, mixed = 0.0, False
    for row in here:
        total += mass_of[row]
    for k in range(value.shape[0]):
        value[k] = 0.0
        for row in here:
            value[k] += sums_of[k, row]
        value[k] = value[k] / total if total > 0.0 else 0.0
        mixed = mixed or TIE < value[k] < 1 - TIE
    return total if mixed else 0.0


@kernel
def add_bins(columns_of, column, mass_of, sums_of, here, mass, sums, used):
    """Add weights and weighted targets of some rows to their bins; how many bins are `used`.

    Those are listed in their order. One target at a time: a loop over targets inside that over
    rows takes three times as long.
    """
    low, high, n_used = np.int64(mass.shape[0] - 1), np.int64(0), 0
    few = here.shape[0] < FEW
    for row in here:
        bin_ = np.int64(columns_of[column, row])
        if few and mass[bin_] == 0.0:
            position = n_used
            while position and used[position - 1] > bin_:
                used[position] = used[position - 1]
                position -= 1
            used[position] = bin_
            n_used += 1
        mass[bin_] += mass_of[row]
        sums[0, bin_] += sums_of[0, row]
        low = bin_ if bin_ < low else low
        high = bin_ if bin_ > high else high
    for k in range(1, sums.shape[0]):
        for row in here:
            sums[k, columns_of[column, row]] += sums_of[k, row]
    if not few:
        for position in range(low, high + 1):
            used[n_used] = position
            n_used += mass[position] > 0.0
    return n_used


@kernel
def empty_bins(mass, sums, used, n_used):
    """Set weights and sums of the first `n_used` bins that are listed to 0, as they were."""
    for position in range(n_used):
        mass[used[position]] = 0.0
        for k in range(sums.shape[0]):
            sums[k, used[position]] = 0.0


@kernel(error_model="numpy")  # no division below is by 0
def best_threshold(mass, sums, used, n_used, gains):
    """Largest fall of squared error by a split between bins, and its last bin left.

    The first `n_used` of `used` are the bins that have rows, in their order; `gains` of positions
    among them are written over.
    """
    total, best, where = 0.0, 0.0, np.int64(-1)
    for position in range(n_used):
        total += mass[used[position]]
        gains[position] = 0.0
    for k in range(sums.shape[0]):
        whole, passed, below = 0.0, 0.0, 0.0
        for position in range(n_used):
            whole += sums[k, used[position]]
        alone = whole * whole / total
        for position in range(n_used - 1):
            passed += mass[used[position]]
            below += sums[k, used[position]]
            rest, over = total - passed, whole - below
            if passed > TIE * total and rest > TIE * total:  # weights do not add up exactly
                gains[position] += below * below / passed + over * over / rest - alone
    for position in range(n_used - 1):
        if gains[position] > best * (1 + TIE):
            best, where = gains[position], used[position]
    return best, where


@kernel
def part_rows(column, last_left, here, spare):
    """Put rows up to bin `last_left` first, both sides in their order; how many there are."""
    n_left, n_right = 0, 0
    for row in here:
        if column[row] <= last_left:
            here[n_left] = row
            n_left += 1
        else:
            spare[n_right] = row
            n_right += 1
    for position in range(n_right):
        here[n_left + position] = spare[position]
    return n_left


def find_deep_leaves(binned, feature, last_left, left):
    """Leaf of each row in a tree of `grow_deep`."""
    leaves = np.zeros(len(binned), np.int64)
    walk_together(
        binned, pack_nodes(feature, last_left, left), leaves, np.empty((2, TOGETHER), np.uint64)
    )
    return leaves


@kernel
def walk_together(binned, nodes, leaves, work):
    """Fill leaves (n,) with the leaf of each row; nodes are those of `pack_nodes`."""
    n_rows, moving, at = binned.shape[0], work[0], work[1]
    # rows take a step in turn, so that the processor need not wait for each to arrive; those that
    # stand still drop out
    for start in range(0, n_rows, TOGETHER):
        n_moving = TOGETHER if n_rows - start > TOGETHER else n_rows - start
        for position in range(n_moving):
            moving[position], at[position] = start + position, 0
        while n_moving:
            n_left = np.uint64(0)
            for position in range(np.uint64(n_moving)):
                row, node = moving[position], at[position]
                word = nodes[node]
                bin_ = np.uint64(binned[row, word & LOW_BITS])
                to = (word >> HIGH) + np.uint64(bin_ > (word >> MIDDLE & LOW_BITS))
                leaves[row] = to
                moving[n_left], at[n_left] = row, to
                n_left += np.uint64(to != node)
            n_moving = np.int64(n_left)


def pack_nodes(feature, last_left, left):
    """A node in one word: left child, last bin that goes left, column. A leaf leads to itself."""
    inner = left >= 0
    to = np.where(inner, left, np.arange(len(left))).astype(np.uint64)
    last = np.where(inner, last_left, np.int64(LOW_BITS)).astype(np.uint64)
    return to << HIGH | last << MIDDLE | np.where(inner, feature, 0).astype(np.uint64)


def swap_values(binned, hashes, n_copies, rate, quantiles, seed):
    """Copies of each row (n * n_copies, d), values swapped at a rate for draws from their column.

    `quantiles` (d, m) are bins at equal steps of a column's distribution.
    """
    swapped = np.repeat(binned, n_copies, axis=0)
    copies = np.arange(n_copies, dtype=np.uint64)
    bits = hash_all(hash_all(hashes, np.array([seed], np.uint64))[:, None], copies).ravel()
    for column, own in enumerate(quantiles):
        chosen = np.flatnonzero(uniform_all(bits, 2 * column) < rate)
        positions = uniform_all(bits[chosen], 2 * column + 1) * len(own)
        swapped[chosen, column] = own[positions.astype(np.int64)]
    return swapped
