"""Twins of the kernels that grow, compare and regrow trees on rows; and what to call them with.

A sub-tree is (key, left, right) or a leaf's label: recursion on rows, one tree at a time.
"""

import itertools

import numpy as np

from steadytree.data.column import Column
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.splits import SplitTable
from steadytree.data.wide_rows import WideRows, block_of
from steadytree.models._kernels import FlatTree
from steadytree.stability._kernels.choose import GUMBEL, REJECTION, SplitSampling
from tests.data.reference import (
    WORD,
    hash_node,
    mix,
    pick_split,
    score_splits,
    split_goes_left,
    uniform_at,
)

COUPLINGS = (GUMBEL, REJECTION)
assert len(set(COUPLINGS)) == 2  # or one of both ways would be drawn, whatever is asked for
PLAIN = Column("a", "numeric", 0.0, 9.0, thresholds=np.arange(3.0))


# ---- drawing ----
def find_candidate(candidate, table):
    listed = []
    for j in range(len(table.bin_sizes)):
        n = table.candidate_offsets[j + 1] - table.candidate_offsets[j]
        has_missing = table.bin_offsets[j + 1] - table.bin_offsets[j] > table.bin_sizes[j]
        sides = 2 if has_missing else 1
        listed += [(j, k // sides, k % sides) for k in range(n - has_missing)]
        if has_missing:  # the last one asks for presence, beyond all thresholds
            listed.append((j, max(table.last[table.feature == j]), 0))
    j, threshold, side = listed[candidate]
    for r in range(len(table.feature)):
        stands_for = table.first[r] <= threshold <= table.last[r]
        if table.feature[r] == j and stands_for and table.missing_left[r] == bool(side):
            return r, threshold
    return -1, threshold


def reject_split(scores, table, sharpness, node_bits):
    best = max(scores, default=-1.0)
    if best < 0:
        return -1, -1
    n, slope = int(table.candidate_offsets[-1]), sharpness / best if best > 0 else 0.0
    splits = [find_candidate(c, table) for c in range(n)]
    heights = [
        np.exp(slope * (scores[r] - best)) if r >= 0 and scores[r] >= 0 else 0.0 for r, _ in splits
    ]
    for proposal in range(60 * n):
        index = int(uniform_at(node_bits, 2 * proposal) * n)
        if heights[index] > uniform_at(node_bits, 2 * proposal + 1) * sum(heights):
            return splits[index]
    return pick_split(scores, table, sharpness, node_bits)


def sample_split(scores, table, sampling, position):
    bits = hash_node(sampling.seed, position)
    rejects = sampling.coupling == REJECTION and sampling.sharpness > 0
    return (reject_split if rejects else pick_split)(scores, table, sampling.sharpness, bits)


def choose_splits(counts, positions, table, sampling):
    picked, scores = [], np.full((len(counts), len(table.feature)), -1.0)
    for node, position in enumerate(positions):
        if (counts[node, : table.bin_offsets[1]].sum(axis=0) > 0).sum() < 2:
            picked.append((-1, -1))
            continue
        score_splits(counts[node], table, sampling.score, sampling.min_leaf, scores[node])
        picked.append(sample_split(scores[node], table, sampling, position))
    return (*(np.array([pair[k] for pair in picked], dtype=np.int64) for k in (0, 1)), scores)


def choose_by_column(counts, positions, sampling, scores):
    whole = np.concatenate([counts.count(block) for block in counts.blocks], axis=1)
    *chosen, found = choose_splits(whole, positions, counts.splits.table, sampling)
    scores[:] = found[: len(scores)]
    return tuple(chosen)


# ---- growing ----
def count_node(binned, labels, n_classes, table, rows):
    counts = np.zeros((table.bin_offsets[-1], n_classes), dtype=np.int64)
    for row in rows:
        for j in range(len(binned)):
            counts[table.bin_offsets[j] + binned[j, row], labels[row]] += 1
    return counts


def row_goes_left(binned, table, split, row):
    return split_goes_left(int(binned[table.feature[split], row]), table, split)


def subtree(binned, labels, n_classes, table, sampling, rows, position, levels):
    """Nested tuples, not merged."""
    totals = np.bincount(labels[rows], minlength=n_classes)
    if levels == 0 or (totals > 0).sum() < 2:
        return int(totals.argmax())
    counts = count_node(binned, labels, n_classes, table, rows)
    splits, thresholds, _ = choose_splits(counts[None], [position], table, sampling)
    r = int(splits[0])
    if r < 0:
        return int(totals.argmax())
    side = [row_goes_left(binned, table, r, row) for row in rows]
    key = (int(table.feature[r]) << 32) + 2 * int(thresholds[0]) + int(table.missing_left[r])
    shared = (binned, labels, n_classes, table, sampling)
    left = [row for row, is_left in zip(rows, side, strict=True) if is_left]
    right = [row for row, is_left in zip(rows, side, strict=True) if not is_left]
    return (
        key,
        subtree(*shared, np.array(left), 2 * int(position) + 1, levels - 1),
        subtree(*shared, np.array(right), 2 * int(position) + 2, levels - 1),
    )


def merged(tree, merge=True):
    if isinstance(tree, int) or not merge:
        return tree
    key, left, right = tree[0], merged(tree[1]), merged(tree[2])
    return left if isinstance(left, int) and left == right else (key, left, right)


def size_of(tree):
    return 1 if isinstance(tree, int) else 1 + size_of(tree[1]) + size_of(tree[2])


def tag_of(tree):
    if isinstance(tree, int):
        return mix((tree + 0x5851F42D4C957F2D) % WORD)
    bits = mix(tree[0] ^ 0x2545F4914F6CDD1D)
    bits = mix(bits ^ mix((tag_of(tree[1]) + 1) % WORD))
    return mix((bits + 3 * mix(tag_of(tree[2]))) % WORD)


def distance_of(a, b):
    if isinstance(a, int) and isinstance(b, int):
        return 0 if a == b else 2
    if isinstance(a, int) or isinstance(b, int) or a[0] != b[0]:
        return size_of(a) + size_of(b)
    return distance_of(a[1], b[1]) + distance_of(a[2], b[2])


def unflatten(key, left, right, label, node=0):
    if left[node] < 0:
        return int(label[node])
    parts = (unflatten(key, left, right, label, child) for child in (left[node], right[node]))
    return (int(key[node]), *parts)


def flatten(key, left, right, label, merge):
    shown = []
    for node in range(len(key)):
        tree = unflatten(key, left, right, label, node)
        tree = merged(tree) if merge else tree
        shown.append((tree if isinstance(tree, int) else -1, size_of(tree), tag_of(tree)))
    types = (np.int64, np.int64, np.uint64)
    arrays = (np.array([row[k] for row in shown], dtype=types[k]) for k in range(3))
    return FlatTree(key, left, right, *arrays)


def grow_rows(binned, labels, n_classes, table, sampling, rows, max_depth):
    tree = subtree(binned, labels, n_classes, table, sampling, rows, 0, max_depth)
    nodes = []

    def add(part):
        node = len(nodes)
        nodes.append(None)
        if isinstance(part, int):
            nodes[node] = (-1, -1, -1, part)
        else:
            left, right = add(part[1]), add(part[2])
            nodes[node] = (part[0], left, right, -1)
        return node

    add(tree)
    key, left, right, label = np.array(nodes, dtype=np.int64).T
    return flatten(key, left, right, label, sampling.merge)


def regrow_without(binned, labels, n_classes, table, sampling, removed, max_depth):
    every = np.arange(len(labels))
    shared = (binned, labels, n_classes, table, sampling)
    parts = [every, *(np.setdiff1d(every, part) for part in removed)]
    whole, *others = [merged(subtree(*shared, p, 0, max_depth), sampling.merge) for p in parts]
    return (
        grow_rows(binned, labels, n_classes, table, sampling, every, max_depth),
        np.array([distance_of(whole, other) for other in others], dtype=np.int64),
        np.array([tag_of(other) for other in others], dtype=np.uint64),
    )


def leave_out(binned, labels, n_classes, table, sampling, rows, removed, position, levels, out):
    shared = (binned, labels, n_classes, table, sampling)
    at = int(position), levels
    whole = merged(subtree(*shared, rows, *at), sampling.merge)
    for row in removed:
        other = merged(subtree(*shared, rows[rows != row], *at), sampling.merge)
        out[0][row] = other if isinstance(other, int) else -1
        out[1][row], out[2][row] = size_of(other), tag_of(other)
        out[3][row] = distance_of(whole, other)
    return (whole if isinstance(whole, int) else -1), size_of(whole), tag_of(whole)


# ---- comparing ----
def node_distance(a, b):
    pairs, distance = [], 0

    def compare(one, other):
        nonlocal distance
        label, other_label = a.label[one], b.label[other]
        if label >= 0 and label == other_label:
            return
        if label < 0 and other_label < 0 and a.key[one] == b.key[other]:
            compare(a.left[one], b.left[other])
            compare(a.right[one], b.right[other])
            return
        pairs.append((one, other))
        distance += a.size[one] + b.size[other]

    compare(0, 0)
    return distance, np.array(pairs, dtype=np.int64).reshape(-1, 2)


# ---- looking ahead ----
def best_hits(binned, labels, n_classes, table, rows, levels, min_leaf):
    most = float(np.bincount(labels[rows], minlength=1).max()) if len(rows) else 0.0
    if levels == 0:
        return most
    for r in range(len(table.feature)):
        side = np.array([row_goes_left(binned, table, r, row) for row in rows], dtype=bool)
        least = min(side.sum(), (~side).sum())
        if least >= max(min_leaf, 1):
            hits = [
                best_hits(binned, labels, n_classes, table, part, levels - 1, min_leaf)
                for part in (rows[side], rows[~side])
            ]
            most = max(most, sum(hits))
    return most


def score_ahead(binned, labels, n_classes, table, rows, levels, min_leaf):
    scores = np.full(len(table.feature), -1.0)
    for r in range(len(scores)):
        side = np.array([row_goes_left(binned, table, r, row) for row in rows], dtype=bool)
        if min(side.sum(), (~side).sum()) >= max(min_leaf, 1):
            scores[r] = sum(
                best_hits(binned, labels, n_classes, table, part, levels - 1, min_leaf)
                for part in (rows[side], rows[~side])
            )
    return scores


# ---- what to call them with ----
def random_draw(rng, coupling=None):
    return SplitSampling(
        int(rng.integers(2)),
        float(rng.integers(1, 3)),
        float(rng.choice([0.0, 0.5, 5.0, 50.0])),
        int(rng.choice(COUPLINGS)) if coupling is None else coupling,
        int(rng.integers(99)),
        bool(rng.integers(2)),
    )


def flat_case(case):
    left, right, label = case.shape()
    key = np.where(left < 0, -1, case.rng.integers(0, 2, len(left)))
    return key, left, right, label


def node_scores(case):
    return case.rng.integers(-1, 4, len(case.table.feature)).astype(float)


def row_case(case):
    """A few rows only: twins are slow."""
    return case.binned[:, :12], case.labels[:12], case.n_classes, case.table


def leave_out_case(case):
    binned, labels, n_classes, table = row_case(case)
    n = len(labels)
    out = tuple(np.zeros(n, t) for t in (np.int64, np.int64, np.uint64, np.int64))
    sampling = random_draw(case.rng, coupling=GUMBEL)
    removed = np.arange(n) if n > 1 else np.arange(0)
    levels, position = int(case.rng.integers(0, 4)), np.uint64(case.rng.integers(3))
    return binned, labels, n_classes, table, sampling, np.arange(n), removed, position, levels, out


def regrow_case(case):
    binned, labels, n_classes, table = row_case(case)
    n = len(labels)
    removed = [case.rng.choice(n, 1 + (n > 2), replace=False) for _ in range(3)] if n > 1 else []
    removed = np.array(removed, dtype=np.int64).reshape(-1, 1 + (n > 2))
    return binned, labels, n_classes, table, random_draw(case.rng), removed, 2


def asking(case):
    """A table that has candidates."""
    return (
        case.table
        if case.table.candidate_offsets[-1]
        else SplitTable.of(FeatureSpace((PLAIN,))).table
    )


def counts_by_column(case):
    """Counts of three nodes, a column or a few at a time."""
    source = WideRows(case.binned, case.labels, case.rules, case.n_classes)
    ends = np.append(np.arange(0, len(case.binned), case.rng.integers(1, 4)), len(case.binned))
    source._blocks = tuple(block_of(case.rules, *pair) for pair in itertools.pairwise(ends))
    source._nodes = case.slots
    return source.count(0, 3)


CASES = {
    "find_candidate": lambda case: (
        int(case.rng.integers(asking(case).candidate_offsets[-1])),
        asking(case),
    ),
    "reject_split": lambda case: (
        node_scores(case),
        case.table,
        float(case.rng.choice([0.1, 5.0, 50.0])),
        np.uint64(case.rng.integers(99)),
    ),
    "sample_split": lambda case: (
        node_scores(case),
        case.table,
        random_draw(case.rng),
        int(case.rng.integers(9)),
    ),
    "choose_splits": lambda case: (
        case.counts() * float(case.rng.choice([1.0, 0.25, 1e-7])),  # of rows with weights, too
        np.arange(3, dtype=np.uint64),
        case.table,
        random_draw(case.rng),
    ),
    "choose_by_column": lambda case: (
        counts_by_column(case),
        np.arange(3, dtype=np.uint64),
        random_draw(case.rng)._replace(coupling=GUMBEL),
        np.full((3 * case.rng.integers(2), len(case.table.feature)), -1.0),
    ),
    "flatten": lambda case: (*flat_case(case), bool(case.rng.integers(2))),
    "node_distance": lambda case: (
        flatten(*flat_case(case), False),
        flatten(*flat_case(case), False),
    ),
    "grow_rows": lambda case: (
        *row_case(case),
        random_draw(case.rng),
        np.arange(min(case.n, 12)),
        3,
    ),
    "regrow_without": regrow_case,
    "leave_out": leave_out_case,
    "best_hits": lambda case: (*row_case(case), np.arange(min(case.n, 9)), 2, 1.0),
    "score_ahead": lambda case: (*row_case(case), np.arange(min(case.n, 9)), 2, 1.0),
}
