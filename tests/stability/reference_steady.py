"""Twins of the steady tree's kernels, row by row and cut by cut; and what to call them with."""

import math

import numpy as np

from tests.data.reference import hash_feature, uniform_at

TIE = 1e-9


def hash_rows(bits):
    hashes = []
    for row in bits:
        value = 0
        for word in row:
            value = hash_feature(value, int(word) % 2**64)
        hashes.append(value)
    return np.array(hashes, np.uint64)


def draw_bag(hashes, means, bits):
    counts = []
    for one, mean in zip(hashes, means, strict=True):
        own, parts, drawn = hash_feature(bits, one), max(1, math.ceil(mean / 16)), 0
        for part in range(parts):
            u, count = uniform_at(own, part), 0
            while u > sum(poisson(mean / parts, k) for k in range(count + 1)):
                count += 1
            drawn += count
        counts.append(drawn)
    return np.array(counts)


def poisson(mean, count):
    return math.exp(-mean) * mean**count / math.factorial(count)


def squared_error(targets, weights, rows):
    """Of the weighted mean, summed over targets."""
    if not rows:
        return 0.0
    w, t = weights[rows], targets[rows]
    return float((w[:, None] * (t - w @ t / w.sum()) ** 2).sum())


def gain_by(targets, weights, left, right):
    whole = squared_error(targets, weights, left + right)
    parts = squared_error(targets, weights, left) + squared_error(targets, weights, right)
    return whole - parts


# ---- the forest ----
def grow_deep(codes, targets, weights, n_tried, bits):
    feature, cut, left, value = [-1], [0], [-1], [np.zeros(targets.shape[1])]
    waiting = [(0, [r for r in range(len(codes)) if weights[r] > 0], int(bits))]
    while waiting:
        node, rows, path = waiting.pop()
        if rows:
            value[node] = weights[rows] @ targets[rows] / weights[rows].sum()
        if all(v < TIE or v > 1 - TIE for v in value[node]):
            continue
        found = deep_split(codes, targets, weights, n_tried, rows, path)
        if found is None:
            continue
        feature[node], cut[node], left[node] = *found, len(left)
        for side in (0, 1):
            part = [r for r in rows if (codes[r, found[0]] > found[1]) == side]
            waiting.append((len(left), part, hash_feature(path, side)))
            feature, cut, left = [*feature, -1], [*cut, 0], [*left, -1]
            value.append(np.zeros(targets.shape[1]))
    return np.array(feature), np.array(cut), np.array(left), np.array(value)


def deep_split(codes, targets, weights, n_tried, rows, path):
    columns, tried = list(range(codes.shape[1])), 0
    best, found = TIE * weights[rows].sum(), None
    for turn in range(len(columns)):
        place = turn + int(uniform_at(path, turn) * (len(columns) - turn))
        columns[turn], columns[place] = columns[place], columns[turn]
        column = columns[turn]
        bins = sorted({int(codes[r, column]) for r in rows})
        for bin_ in bins[:-1]:
            low = [r for r in rows if codes[r, column] <= bin_]
            gain = gain_by(targets, weights, low, [r for r in rows if codes[r, column] > bin_])
            if gain > best * (1 + TIE):
                best, found = gain, (column, bin_)
        tried += len(bins) > 1
        if tried == n_tried:
            break
    return found


def find_deep_leaves(codes, feature, cut, left):
    def walk(row, node=0):
        if left[node] < 0:
            return node
        return walk(row, left[node] + int(row[feature[node]] > cut[node]))

    return np.array([walk(row) for row in codes], np.int64)


# ---- made-up rows ----
def swap_values(codes, hashes, n_copies, rate, quantiles, seed):
    made = []
    for row, one in zip(codes, hashes, strict=True):
        for copy in range(n_copies):
            bits, new = hash_feature(hash_feature(one, seed), copy), row.copy()
            for j in range(len(row)):
                if uniform_at(bits, 2 * j) < rate:
                    new[j] = quantiles[j][int(uniform_at(bits, 2 * j + 1) * len(quantiles[j]))]
            made.append(new)
    return np.array(made, codes.dtype).reshape(-1, codes.shape[1])


# ---- the small tree ----
def grow_small(codes, targets, weights, n_bins, kinds, directions, n_leaves, least, near):
    data = codes, targets, weights, n_bins, kinds, directions
    inside = [[r for r in range(len(codes)) if weights[r] > 0]]
    feature, bins, left, open_ = [-1], [0], [-1], {0: small_split(*data, inside[0], least, near)}
    while len(open_) < n_leaves:
        best = max(gain for gain, _, _ in open_.values())
        if best <= 0:
            break
        node = min(v for v, (gain, _, _) in open_.items() if gain >= best * (1 - TIE))
        _, feature[node], chosen = open_.pop(node)
        bins[node], left[node] = sum(1 << b for b in chosen), len(left)
        for side in (True, False):
            rows = [r for r in inside[node] if (codes[r, feature[node]] in chosen) == side]
            inside.append(rows)
            open_[len(left)] = small_split(*data, rows, least, near)
            feature, bins, left = [*feature, -1], [*bins, 0], [*left, -1]
    return np.array(feature), np.array(bins, np.uint64), np.array(left)


def small_split(codes, targets, weights, n_bins, kinds, directions, rows, least, near):
    """(gain, column, bins that go left)."""
    total, gains = weights.sum(), []
    for j in range(codes.shape[1]):
        best, chosen = 0.0, ()
        for order in cut_orders(codes[:, j], targets, weights, n_bins[j], kinds[j], rows, total):
            for size in range(1, len(order)):
                left = [r for r in rows if codes[r, j] in order[:size]]
                right = [r for r in rows if codes[r, j] not in order[:size]]
                if min(weights[left].sum(), weights[right].sum()) < least:
                    continue
                if not left or not right or wrong_way(targets, weights, left, right, directions[j]):
                    continue
                gain = gain_by(targets, weights, left, right)
                if gain > best * (1 + TIE):
                    best, chosen = gain, tuple(order[:size])
        gains.append((best, j, chosen))
    best = max(gain for gain, _, _ in gains)
    if best <= TIE * total:
        return 0.0, 0, ()
    return next(found for found in gains if found[0] >= (1 - near) * (1 - TIE) * best)


def wrong_way(targets, weights, left, right, direction):
    means = [weights[side] @ targets[side, 0] / weights[side].sum() for side in (left, right)]
    return direction * (means[1] - means[0]) < -1e-12


def cut_orders(column, targets, weights, n_bins, kind, rows, total):
    plain = list(range(n_bins))
    if kind == 0:
        return [plain]
    if kind == 1:
        return [plain, [plain[-1], *plain[:-1]]]
    mass, sums = np.zeros(n_bins), np.zeros((n_bins, targets.shape[1]))
    for r in rows:
        mass[column[r]] += weights[r]
        sums[column[r]] += weights[r] * targets[r]
    means = sums.sum(axis=0) / max(mass.sum(), TIE * total)
    keys = (sums + 1e-6 * total * means) / (mass + 1e-6 * total)[:, None]
    spreads = mass @ (keys - means) ** 2
    widest = next(k for k, s in enumerate(spreads) if s >= spreads.max() * (1 - TIE))
    return [sorted(plain, key=lambda b: (keys[b, widest], b))]


def find_small_leaves(codes, feature, bins, left):
    def walk(row, node=0):
        if left[node] < 0:
            return node
        inside = int(bins[node]) >> int(row[feature[node]]) & 1
        return walk(row, left[node] + 1 - inside)

    return np.array([walk(row) for row in codes], np.int64)


# ---- what to call them with: few values, so that ties and empty bins abound ----
def rows_for(case):
    rng, n = case.rng, case.n
    codes = rng.integers(0, 5, (n, 3)).astype(np.uint8)
    targets = rng.integers(0, 9, (n, int(rng.choice([1, 3])))) / 8
    return codes, targets, rng.choice([0.0, 0.5, 1.0, 2.0], n)


def deep_case(case):
    codes, targets, weights = rows_for(case)
    if case.n == 0:  # a forest has rows
        codes, targets, weights = np.zeros((1, 3), np.uint8), np.zeros((1, 1)), np.ones(1)
    bits = np.uint64(case.rng.integers(2**63))
    return codes, np.round(targets), weights, int(case.rng.integers(1, 4)), bits


def small_case(case):
    codes, targets, weights = rows_for(case)
    if not weights.any():  # a tree has rows
        codes, targets, weights = np.zeros((1, 3), np.uint8), np.zeros((1, 1)), np.ones(1)
    directions = case.rng.integers(-1, 2, 3) if targets.shape[1] == 1 else np.zeros(3, np.int64)
    n_leaves, least = int(case.rng.integers(2, 6)), float(case.rng.choice([0.5, 2.0]))
    kinds, near = case.rng.integers(0, 3, 3), float(case.rng.choice([0.0, 0.3]))
    return codes, targets, weights, np.full(3, 5), kinds, directions, n_leaves, least, near


def tree_case(case, bins):
    shape = case.shape()[0]
    feature = np.where(shape < 0, -1, case.rng.integers(0, 3, len(shape)))
    return rows_for(case)[0], feature, bins(case.rng, len(shape)), shape


def hashes_for(case):
    return case.rng.integers(0, 2**63, case.n).astype(np.uint64)


CASES = {
    "hash_rows": lambda case: (case.rng.integers(0, 2**63, (case.n, 3)).astype(np.uint64),),
    "draw_bag": lambda case: (
        hashes_for(case),
        case.rng.choice([0.2, 1.0, 3.5, 40.0], case.n),
        np.uint64(case.rng.integers(2**63)),
    ),
    "grow_deep": deep_case,
    "find_deep_leaves": lambda case: tree_case(case, lambda rng, n: rng.integers(0, 4, n)),
    "swap_values": lambda case: (
        rows_for(case)[0],
        hashes_for(case),
        int(case.rng.integers(1, 4)),
        float(case.rng.choice([0.0, 0.3, 1.0])),
        case.rng.integers(0, 5, (3, 8)).astype(np.uint8),
        np.uint64(case.rng.integers(99)),
    ),
    "grow_small": small_case,
    "find_small_leaves": lambda case: tree_case(
        case, lambda rng, n: rng.integers(0, 32, n).astype(np.uint64)
    ),
}
COMPARE = {
    "grow_deep": lambda found, expected: [
        np.testing.assert_allclose(one, other, rtol=1e-12)
        for one, other in zip(found, expected, strict=True)
    ],
}
