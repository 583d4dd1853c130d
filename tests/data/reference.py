"""Slow, obvious twins of every kernel. Same name, same arguments, no tricks."""

import itertools
import math

import numpy as np

WORD = 2**64


# ---- walk ----
def find_leaves(X, walk, depth, leaves):
    def leaf_of(x, node=0):
        split = int(walk.split[node])
        feature, missing_right, by_value = split % 2**24, split >> 24 & 1, split >> 25 & 1
        left, value = split >> 32, float(x[feature])
        if left == node:
            return walk.number[node]
        known = not math.isnan(value)
        if by_value:
            known = known and 0 <= int(value) < walk.subset.shape[1]
        right = missing_right
        if known and by_value:
            right = not walk.subset[node, int(value)]
        elif known:
            right = value > walk.threshold[node]
        return leaf_of(x, left + int(right))

    leaves[:] = [leaf_of(x) for x in X]


# ---- columns and bins ----
def summarise_columns(X):
    rows = []
    for column in np.asarray(X, dtype=float).T:
        finite = column[np.isfinite(column)]
        rows.append(
            (
                finite.min(initial=np.inf),
                finite.max(initial=-np.inf),
                np.isnan(column).sum(),
                np.isinf(column).sum(),
                all(float(x).is_integer() for x in finite),
            )
        )
    types = (float, float, np.int64, np.int64, bool)
    return tuple(np.array([row[k] for row in rows], dtype=types[k]) for k in range(5))


def fill_bins(
    X, at, thresholds, ends, below, cell_ends, low, scale, most, n_categories, binned, start, end
):
    for j in range(len(binned)):
        own = thresholds[ends[j] : ends[j + 1] - 1]
        for i, x in enumerate(X[start:end, at + j], start):
            if n_categories[j]:
                binned[j, i] = int(x) if 0 <= x < n_categories[j] else n_categories[j]
            else:
                binned[j, i] = len(own) + 1 if math.isnan(x) else sum(own < x)


def merge_bins(binned, bin_offsets, merged_bin, merged):
    for j, row in enumerate(binned):
        merged[j] = [merged_bin[bin_offsets[j] + bin_index] for bin_index in row]
    return merged


# ---- rules ----
def list_splits(occupied, full_offsets, n_categories, has_missing, order, grouped):
    bin_sizes, n_splits, merged_bin, splits = [], [], [], []
    for j, n in enumerate(n_categories):
        own = slice(full_offsets[j], full_offsets[j + 1] - 1)
        there, ranked = occupied[own], order[own].tolist()
        kept = [bin_index for bin_index in ranked if there[bin_index]]
        if n:
            asked = [c for c in range(n if n > 2 else n - 1) if there[c]]
            listed_splits = [(kept.index(c), c, c, True) for c in asked]
            groups = range(2, len(kept) - 1) if grouped[j] else ()  # two and more on both sides
            listed_splits += [(k - 1, n + k - 2, n + k - 2, False) for k in groups]
            past = n + (n - 3 if grouped[j] and n > 3 else 0)
            presence = (-1, past, past)
        else:
            pairs = enumerate(itertools.pairwise(kept))
            listed_splits = [(k, low, high - 1, False) for k, (low, high) in pairs]
            presence = (len(kept) - 1, len(there) - 1, len(there) - 1)
        sides = (False, True) if has_missing[j] else (False,)
        listed = [(b, side, *rest) for b, *rest in listed_splits for side in sides]
        if has_missing[j]:
            listed.append((presence[0], False, *presence[1:], False))
        splits += listed
        bin_sizes.append(len(kept))
        n_splits.append(len(listed))
        reached = {b: sum(there[c] for c in ranked[: k + 1]) for k, b in enumerate(ranked)}
        merged_bin += [max(reached[b] - 1, 0) for b in range(len(there))] + [len(kept)]
    types = (np.int32, bool, np.uint16, np.uint16, bool)
    columns = tuple(np.array([split[k] for split in splits], dtype=types[k]) for k in range(5))
    sizes = np.array(bin_sizes, dtype=np.int64), np.array(n_splits, dtype=np.int64)
    return (*sizes, np.array(merged_bin, dtype=np.uint16), columns)


def split_goes_left(bin_index, table, split):
    j = table.feature[split]
    if bin_index >= table.bin_sizes[j]:
        return bool(table.missing_left[split])
    if table.bin[split] < 0:
        return True
    limit = table.bin[split]
    return bool(bin_index == limit if table.by_value[split] else bin_index <= limit)


# ---- counts ----
def add_counts(binned, rows, labels, node_of_row, weights, bin_offsets, counts, first, last):
    for k, i in enumerate(rows if len(rows) else range(len(labels))):
        for j in range(first, last):
            own = weights[k] if len(weights) else 1
            counts[node_of_row[k], bin_offsets[j] + binned[j, i], labels[k]] += own


def weigh_classes(binned, labels, node_of_row, weights, n_nodes, bin_offsets, n_classes):
    counts = np.zeros((n_nodes, bin_offsets[-1], n_classes))
    for i, node in enumerate(node_of_row):
        for j in range(len(binned)):
            if node >= 0:
                counts[node, bin_offsets[j] + binned[j, i], labels[i]] += weights[i]
    return counts


def count_classes(binned, labels, node_of_row, n_nodes, bin_offsets, n_classes):
    ones = np.ones(len(labels))
    counts = weigh_classes(binned, labels, node_of_row, ones, n_nodes, bin_offsets, n_classes)
    return counts.astype(np.int64)


def move_rows(binned, node_of_row, table, split, left_node, right_node):
    for i, node in enumerate(node_of_row):
        if node >= 0:
            r = split[node]
            if r < 0:
                node_of_row[i] = -1
            else:
                left = split_goes_left(binned[table.feature[r], i], table, r)
                node_of_row[i] = left_node[node] if left else right_node[node]


def order_rows(bins, starts, table, split, left_node, right_node):
    children = [[] for _ in range(max(*left_node, *right_node) + 1)]
    for node, r in enumerate(split):
        for i in range(starts[node], starts[node + 1]) if r >= 0 else ():
            is_left = split_goes_left(bins[i, table.feature[r]], table, r)
            child = left_node[node] if is_left else right_node[node]
            if child >= 0:
                children[child].append(i)
    order = np.array([i for child in children for i in child], np.uint32)
    return order, np.cumsum([0, *map(len, children)])


def count_nodes(bins, labels, weights, starts, bin_offsets, n_classes, counts, first, last):
    for node in range(len(starts) - 1):
        for i in range(starts[node], starts[node + 1]):
            for j in range(first, last):
                bin_index = bins[i, j]
                at = (bin_offsets[j] + bin_index) * n_classes + labels[i]
                counts[node, at] += weights[i] if len(weights) else 1


def child_counts(counts, table, split):
    totals = counts[:, : table.bin_offsets[1]].sum(axis=1)
    children = np.zeros((2, *totals.shape), dtype=totals.dtype)
    for node, r in enumerate(split):
        if r >= 0:
            j = table.feature[r]
            own = counts[node, table.bin_offsets[j] : table.bin_offsets[j + 1]]
            for bin_index, row in enumerate(own):
                children[0 if split_goes_left(bin_index, table, r) else 1, node] += row
    return totals, children


# ---- scores ----
def add_class(sum_, count, score):
    return max(sum_, count) if score == 0 else sum_ + count**2


def side_score(sum_, size, score):
    return 0.0 if size <= 0 else float({0: sum_, 1: sum_ / size}[score])


def split_score(n_left, n_right, sum_left, sum_right, sum_both, score, min_leaf):
    size = n_left + n_right
    if min(n_left, n_right) <= 1e-10 * size or (1 < min_leaf > min(n_left, n_right)):
        return -1.0
    after = side_score(sum_left, n_left, score) + side_score(sum_right, n_right, score)
    gain = after - side_score(sum_both, size, score)
    return after if score == 0 else (gain if gain > 1e-12 * size else 0.0)


def purity(counts):
    """Rows times one minus Gini impurity; rounded as the kernel rounds it, for equal ties."""
    return (counts**2).sum() / counts.sum()


def score_splits(counts, table, score, min_leaf, scores):
    for r in range(len(scores)):
        totals, children = child_counts(counts[None].astype(float), table, np.array([r]))
        sides = children[:, 0]
        least = min(side.sum() for side in sides)
        if least <= 1e-10 * totals.sum() or (min_leaf > 1 and least < min_leaf):
            scores[r] = -1.0
        elif score == 0:
            scores[r] = sum(side.max() for side in sides)
        else:
            gain = purity(sides[0]) + purity(sides[1]) - purity(totals[0])
            scores[r] = gain if gain > 1e-12 * totals.sum() else 0.0
    return scores


# ---- noise ----
def mix(z):
    z = int(z)
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % WORD
    return z ^ (z >> 31)


def hash_node(seed, position):
    golden = 0x9E3779B97F4A7C15
    start = mix((int(seed) + golden) % WORD)
    return mix((start + (int(position) + 1) * golden) % WORD)


def hash_feature(node_bits, feature):
    return mix(int(node_bits) ^ mix(((int(feature) + 1) * 0x94D049BB133111EB) % WORD))


def uniform_at(feature_bits, threshold):
    bits = mix((int(feature_bits) + (int(threshold) + 1) * 0x9E3779B97F4A7C15) % WORD)
    return ((bits >> 12) + 0.5) / 2**52


def mix_all(z):
    return np.array([mix(one) for one in z], np.uint64)


def hash_all(bits, features):
    pairs = zip(bits, features, strict=True)
    return np.array([hash_feature(one, feature) for one, feature in pairs], np.uint64)


def uniform_all(bits, threshold):
    return np.array([uniform_at(one, threshold) for one in bits], float)


def largest_uniform(feature_bits, first, last, side):
    return max((uniform_at(feature_bits, 2 * t + side), t) for t in range(first, last + 1))


# ---- choose ----
def gumbel(u):
    return -math.log(-math.log(u))


def surely_below(u, needed):
    return gumbel(u) < needed


def implies(found, expected):
    """What is not known to be below may be below all the same."""
    assert expected or not found


COMPARE = {"surely_below": implies}


def pick_split(scores, table, sharpness, node_bits):
    """Every threshold of every valid rule with its own key; no rule is skipped."""
    best, candidates = max(scores, default=-1.0), []
    if best < 0:
        return -1, -1
    for r, score in enumerate(scores):
        bits = hash_feature(node_bits, table.feature[r])
        for t in range(table.first[r], table.last[r] + 1):
            u = uniform_at(bits, 2 * t + int(table.missing_left[r]))
            if sharpness > 0 and score >= 0:
                slope = sharpness / best if best > 0 else 0.0
                candidates.append((slope * (score - best) + gumbel(u), r, t))
            elif score == best:
                candidates.append((u, r, t))
    return max(candidates)[1:]


# ---- shape ----
def preorder_nodes(left, right):
    def visit(node):
        if left[node] < 0:
            return [node]
        return [node, *visit(left[node]), *visit(right[node])]

    return np.array(visit(0), dtype=np.int64)


def prune_to(left, right, pruned):
    kept = []

    def visit(node):
        kept.append(node)
        if left[node] >= 0 and not pruned[node]:
            visit(left[node])
            visit(right[node])

    visit(0)
    kept.sort()
    place = {node: k for k, node in enumerate(kept)}
    leaf = [left[node] < 0 or pruned[node] for node in kept]
    children = [
        [-1 if is_leaf else place[side[node]] for node, is_leaf in zip(kept, leaf, strict=True)]
        for side in (left, right)
    ]
    return tuple(np.array(part, dtype=np.int64) for part in (kept, *children))


def uniform_nodes(left, right, label):
    def labels_under(node):
        if left[node] < 0:
            return {int(label[node])}
        return labels_under(left[node]) | labels_under(right[node])

    return np.array([left[k] >= 0 and len(labels_under(k)) == 1 for k in range(len(left))])


# ---- levels ----
def split_level(split, counts, positions, last_level):
    children, which, below = [], [], []
    next_node = np.full((2, len(split)), -1, dtype=np.int64)
    for node in range(len(split)):
        if split[node] < 0:
            continue
        for side in (0, 1):
            own = counts[side, node]
            if (own > 0).sum() > 1 and not last_level:
                next_node[side, node] = len(which)
                which.append(len(children))
                below.append(2 * int(positions[node]) + 1 + side)
            children.append(own)
    shape = (-1, counts.shape[2])
    return (
        np.array(children, dtype=counts.dtype).reshape(shape),
        next_node[0],
        next_node[1],
        np.array(which, dtype=np.int64),
        np.array(below, dtype=np.uint64),
    )
