"""Twins of the steady tree's kernels, row by row and cut by cut; and what to call them with."""

import math

import numpy as np

from steadytree.stability.teacher import take_bag
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


def sample_bag(hashes, means, bits):
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
def grow_deep(columns_of, sums_of, mass_of, n_tried, bits):
    binned, targets, weights = columns_of.T, (sums_of / mass_of).T, mass_of
    feature, threshold, left, value = [-1], [0], [-1], [np.zeros(targets.shape[1])]
    waiting = [(0, [r for r in range(len(binned)) if weights[r] > 0], int(bits))]
    while waiting:
        node, rows, path = waiting.pop()
        if rows:
            value[node] = weights[rows] @ targets[rows] / weights[rows].sum()
        if all(v < TIE or v > 1 - TIE for v in value[node]):
            continue
        found = deep_split(binned, targets, weights, n_tried, rows, path)
        if found is None:
            continue
        feature[node], threshold[node], left[node] = *found, len(left)
        for side in (0, 1):
            part = [r for r in rows if (binned[r, found[0]] > found[1]) == side]
            waiting.append((len(left), part, hash_feature(path, side)))
            feature, threshold, left = [*feature, -1], [*threshold, 0], [*left, -1]
            value.append(np.zeros(targets.shape[1]))
    return np.array(feature), np.array(threshold), np.array(left), np.array(value)


def deep_split(binned, targets, weights, n_tried, rows, path):
    columns, tried = list(range(binned.shape[1])), 0
    best, found = TIE * weights[rows].sum(), None
    for turn in range(len(columns)):
        place = turn + int(uniform_at(path, turn) * (len(columns) - turn))
        columns[turn], columns[place] = columns[place], columns[turn]
        column = columns[turn]
        bins = sorted({int(binned[r, column]) for r in rows})
        for bin_ in bins[:-1]:
            low = [r for r in rows if binned[r, column] <= bin_]
            gain = gain_by(targets, weights, low, [r for r in rows if binned[r, column] > bin_])
            if gain > best * (1 + TIE):
                best, found = gain, (column, bin_)
        tried += len(bins) > 1
        if tried == n_tried:
            break
    return found


def find_deep_leaves(binned, feature, last_left, left):
    def walk(row, node=0):
        if left[node] < 0:
            return node
        return walk(row, left[node] + int(row[feature[node]] > last_left[node]))

    return np.array([walk(row) for row in binned], np.int64)


# ---- made-up rows ----
def swap_values(binned, hashes, n_copies, rate, quantiles, seed):
    made = []
    for row, one in zip(binned, hashes, strict=True):
        for copy in range(n_copies):
            bits, new = hash_feature(hash_feature(one, seed), copy), row.copy()
            for j in range(len(row)):
                if uniform_at(bits, 2 * j) < rate:
                    new[j] = quantiles[j][int(uniform_at(bits, 2 * j + 1) * len(quantiles[j]))]
            made.append(new)
    return np.array(made, binned.dtype).reshape(-1, binned.shape[1])


# ---- the small tree ----
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
    data = binned, targets, weights, n_bins, kinds, directions, roundness

    def small_split(rows, only):
        gains, bins = best_splits(*data, rows, least, coarse)
        best = gains.max()
        j = next(j for j, g in enumerate(gains) if g >= (1 - near) * (1 - TIE) * best)
        j = only if only >= 0 else j
        return (gains[j] if gains[j] > TIE * weights.sum() else 0.0), j, int(bins[j])

    inside, depth = [[r for r in range(len(binned)) if weights[r] > 0]], [0]
    feature, bins, left, open_ = [-1], [0], [-1], {0: small_split(inside[0], root)}
    while len(open_) < n_leaves:
        best = max(gain for gain, _, _ in open_.values())
        if best <= 0:
            break
        node = min(v for v, (gain, _, _) in open_.items() if gain >= best * (1 - TIE))
        _, feature[node], bins[node] = open_.pop(node)
        left[node] = len(left)
        for side in (1, 0):
            rows = [r for r in inside[node] if bins[node] >> binned[r, feature[node]] & 1 == side]
            inside.append(rows)
            depth.append(depth[node] + 1)
            nothing = 0.0, 0, 0
            open_[len(left)] = small_split(rows, -1) if depth[-1] < deepest else nothing
            feature, bins, left = [*feature, -1], [*bins, 0], [*left, -1]
    of_all = best_splits(*data, inside[0], least, coarse)
    return np.array(feature), np.array(bins, np.uint64), np.array(left), of_all


def best_splits(
    binned, targets, weights, n_bins, kinds, directions, roundness, rows, least, coarse
):
    total, found = weights.sum(), []
    for j in range(binned.shape[1]):
        best = 0.0, ()
        for order in cut_orders(binned[:, j], targets, weights, n_bins[j], kinds[j], rows, total):
            thresholds = []
            for size in range(1, len(order)):
                left = [r for r in rows if binned[r, j] in order[:size]]
                right = [r for r in rows if binned[r, j] not in order[:size]]
                if min(weights[left].sum(), weights[right].sum()) < least:
                    continue
                if not left or not right or wrong_way(targets, weights, left, right, directions[j]):
                    continue
                if not weights[[r for r in rows if binned[r, j] == order[size - 1]]].any():
                    continue  # the same cut as the one before
                gain = gain_by(targets, weights, left, right)
                thresholds.append((gain, roundness[j, order[size - 1]], tuple(order[:size])))
            share = 0.0 if kinds[j] == 2 else coarse
            gain, chosen = roundest_of(thresholds, share, weights[rows].sum())
            if gain > best[0] * (1 + TIE):
                best = gain, chosen
        found.append(best)
    return np.array([gain for gain, _ in found]), np.array(
        [sum(1 << b for b in chosen) for _, chosen in found], np.uint64
    )


def roundest_of(thresholds, coarse, weight):
    """(gain, bins) of (gain, roundness, bins): the roundest of those near the best."""
    best = max((gain for gain, _, _ in thresholds), default=0.0)
    near = [
        c for c in thresholds if c[0] > TIE * weight and c[0] >= (1 - coarse) * (1 - TIE) * best
    ]
    top = max((round_ for _, round_, _ in near), default=0.0)
    level = [c for c in near if c[1] == top]
    best = max((gain for gain, _, _ in level), default=0.0)
    return next(((g, bins) for g, _, bins in level if g >= best * (1 - TIE)), (0.0, ()))


def refine_small(
    binned,
    targets,
    weights,
    n_bins,
    kinds,
    directions,
    roundness,
    feature,
    bins,
    left,
    least,
    coarse,
):
    feature, bins = feature.copy(), [int(b) for b in bins]
    tree, moved = (feature, bins, left), True
    for _ in range(3):
        if not moved:
            break
        moved = False
        for node in range(len(left)):
            if left[node] < 0 or directions[feature[node]]:
                continue
            cost = side_costs(binned, targets, weights, tree, node)
            data = binned, weights, n_bins, kinds, directions, roundness, list(cost), cost
            before = feature[node], bins[node]
            asked = better_question(*data, *before, least, coarse, weights.sum())
            feature[node], bins[node] = asked
            if min(weights[rows].sum() for rows in members(binned, tree).values()) < least:
                feature[node], bins[node] = before
            moved = moved or (feature[node], bins[node]) != before
    return feature, np.array(bins, np.uint64)


def side_costs(binned, targets, weights, tree, node):
    """Of rows at a node: what the left side loses more than the right one."""
    left, cost = tree[2], {}
    means = {
        leaf: weights[rows] @ targets[rows] / weights[rows].sum() if weights[rows].any() else 0.0
        for leaf, rows in members(binned, tree).items()
    }
    for r, row in enumerate(binned):
        if weights[r] > 0 and node in walk(0, row, *tree):
            sides = [means[walk(left[node] + side, row, *tree)[-1]] for side in (0, 1)]
            losses = [((targets[r] - m) ** 2).sum() for m in sides]
            cost[r] = weights[r] * (losses[0] - losses[1])
    return cost


def walk(node, row, feature, bins, left):
    """Nodes from a node to the row's leaf."""
    path = [node]
    while left[path[-1]] >= 0:
        inside = int(bins[path[-1]]) >> int(row[feature[path[-1]]]) & 1
        path.append(left[path[-1]] + 1 - inside)
    return path


def members(binned, tree):
    """Rows of each leaf."""
    found = [walk(0, row, *tree)[-1] for row in binned]
    return {
        v: [r for r, leaf in enumerate(found) if leaf == v]
        for v, child in enumerate(tree[2])
        if child < 0
    }


def better_question(
    binned,
    weights,
    n_bins,
    kinds,
    directions,
    roundness,
    here,
    cost,
    own,
    bins,
    least,
    coarse,
    total,
):
    whole = weights[here].sum()

    def price(j, chosen):
        return sum(cost[r] for r in here if binned[r, j] in chosen)

    def weight(j, chosen):
        return sum(weights[r] for r in here if binned[r, j] in chosen)

    current = [b for b in range(n_bins[own]) if bins >> b & 1]
    now, alone = price(own, current), min(sum(cost.values()), 0.0)
    worth, best, asked = max(alone - now, 0.0), now, (own, bins)
    for j in (own, *(j for j in range(binned.shape[1]) if j != own)):
        if directions[j]:
            continue
        if kinds[j] == 2:
            kept = 0.02 * worth if j == own else -1.0
            chosen = [
                b
                for b in range(n_bins[j])
                if (bins >> b & 1 if abs(price(j, [b])) <= kept else price(j, [b]) < 0)
            ]
        else:
            found = []
            for order in cut_orders(binned[:, j], None, weights, n_bins[j], kinds[j], here, total):
                thresholds = [
                    (alone - price(j, order[:size]), roundness[j, order[size - 1]], order[:size])
                    for size in range(1, len(order))
                    if weight(j, [order[size - 1]]) > 0
                    and min(weight(j, order[:size]), whole - weight(j, order[:size])) >= least
                ]
                found.append(roundest_of(thresholds, coarse, whole))
            chosen = found[-1][1] if found[-1][0] > found[0][0] + TIE * whole else found[0][1]
        if not chosen or min(weight(j, chosen), whole - weight(j, chosen)) < least:
            continue
        must = 0.02 if j == own else 0.2
        if price(j, chosen) < best - must * worth - TIE * whole:
            best, asked = price(j, chosen), (j, sum(1 << b for b in chosen))
    return asked


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


def find_small_leaves(binned, feature, bins, left, start=0, rows=None):
    chosen = binned if rows is None else binned[rows]
    return np.array([walk(start, row, feature, bins, left)[-1] for row in chosen], np.int64)


# ---- what to call them with: few values, so that ties and empty bins abound ----
def rows_for(case):
    rng, n = case.rng, case.n
    binned = rng.integers(0, 5, (n, 3)).astype(np.uint8)
    targets = rng.integers(0, 9, (n, int(rng.choice([1, 3])))) / 8
    return binned, targets, rng.choice([0.0, 0.5, 1.0, 2.0], n)


def deep_case(case):
    binned, targets, weights = rows_for(case)
    if case.n == 0:  # a forest has rows
        binned, targets, weights = np.zeros((1, 3), np.uint8), np.zeros((1, 1)), np.ones(1)
    bits = np.uint64(case.rng.integers(2**63))
    bag = take_bag(binned, np.round(targets), weights)
    return *bag, int(case.rng.integers(1, 4)), bits


def small_case(case):
    binned, targets, weights = rows_for(case)
    if not weights.any():  # a tree has rows
        binned, targets, weights = np.zeros((1, 3), np.uint8), np.zeros((1, 1)), np.ones(1)
    directions = case.rng.integers(-1, 2, 3) if targets.shape[1] == 1 else np.zeros(3, np.int64)
    n_leaves, least = int(case.rng.integers(2, 6)), float(case.rng.choice([0.5, 2.0]))
    kinds, near, coarse = case.rng.integers(0, 3, 3), *case.rng.choice([0.0, 0.3], 2).tolist()
    roundness = case.rng.choice([0.0, 0.5, 1.0, np.inf], (3, 64))
    columns = np.full(3, 5), kinds, directions, roundness
    return (binned, targets, weights, *columns), n_leaves, least, near, coarse


def grow_case(case):
    data, *sizes = small_case(case)
    return *data, *sizes, int(case.rng.integers(-1, 3)), int(case.rng.integers(1, 6))


def splits_case(case):
    data, _, least, _, coarse = small_case(case)
    rows = np.flatnonzero(data[2] > 0)
    return *data, rows, least, coarse


def refine_case(case):
    """A tree that is not the best: its bins are drawn, its leaves are not empty."""
    case.n = 25  # fewer rows have nothing to ask anew
    data, n_leaves, least, near, coarse = small_case(case)
    feature, bins, left, _ = grow_small(*data, n_leaves, least, near, coarse, -1, n_leaves)
    for node in np.flatnonzero(left >= 0):
        tried = bins.copy()
        tried[node] = case.rng.integers(1, 31)
        leaves = find_small_leaves(data[0], feature, tried, left)
        if np.bincount(leaves, data[2], len(left))[left < 0].min() >= least:
            bins = tried
    return *data, feature, bins, left, least, coarse


def tree_case(case, bins):
    shape = case.shape()[0]
    feature = np.where(shape < 0, -1, case.rng.integers(0, 3, len(shape)))
    return rows_for(case)[0], feature, bins(case.rng, len(shape)), shape


def hashes_for(case):
    return case.rng.integers(0, 2**63, case.n).astype(np.uint64)


def with_start(case, *tree):
    rows = None if case.rng.random() < 0.5 else np.flatnonzero(case.rng.random(case.n) < 0.5)
    return *tree, int(case.rng.integers(len(tree[-1]))), rows


CASES = {
    "hash_rows": lambda case: (case.rng.integers(0, 2**63, (case.n, 3)).astype(np.uint64),),
    "sample_bag": lambda case: (
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
    "grow_small": grow_case,
    "best_splits": splits_case,
    "refine_small": refine_case,
    "find_small_leaves": lambda case: with_start(
        case, *tree_case(case, lambda rng, n: rng.integers(0, 32, n).astype(np.uint64))
    ),
}


def alike(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


COMPARE = {
    "best_splits": alike,
    "grow_small": alike,
    "grow_deep": lambda found, expected: [
        np.testing.assert_allclose(one, other, rtol=1e-12)
        for one, other in zip(found, expected, strict=True)
    ],
}
