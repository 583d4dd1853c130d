"""Grow a whole tree on rows in memory in one call: for the many refits of a stability study."""

import numpy as np
from numba import njit

from steadytree.kernels.choose import draw_rule
from steadytree.kernels.counts import rule_goes_left
from steadytree.kernels.flat_tree import flatten
from steadytree.kernels.node_distance import node_distance
from steadytree.kernels.scores import score_rules

FEATURE_BITS = 32  # a question's number is its feature above these bits, the rest below


@njit(cache=True, nogil=True)
def count_rows(codes, labels, rows, table, counts):
    """Fill counts (n_bins, n_classes) with those of the given rows."""
    counts[:] = 0
    own_labels = labels[rows]  # looked up once, not once a feature
    for feature in range(codes.shape[0]):
        start = table.bin_offsets[feature]
        for place in range(rows.shape[0]):
            counts[start + codes[feature, rows[place]], own_labels[place]] += 1
    return counts


@njit(cache=True, nogil=True)
def count_children(codes, labels, to_left, to_right, table, counts):
    """Counts of the rows on the left and on the right of a split, counts being those of both.

    Only the smaller side is counted where to subtract it costs less than to count the other.
    """
    left, right = np.empty_like(counts), np.empty_like(counts)
    left_is_small = to_left.shape[0] <= to_right.shape[0]
    small, large = (left, right) if left_is_small else (right, left)
    count_rows(codes, labels, to_left if left_is_small else to_right, table, small)
    if max(to_left.shape[0], to_right.shape[0]) * codes.shape[0] > counts.size:
        for bin_ in range(counts.shape[0]):
            for class_ in range(counts.shape[1]):
                large[bin_, class_] = counts[bin_, class_] - small[bin_, class_]
    else:
        count_rows(codes, labels, to_right if left_is_small else to_left, table, large)
    return left, right


@njit(cache=True, nogil=True)
def count_labels(labels, rows, n_classes):
    """Rows of each class among the given rows."""
    totals = np.zeros(n_classes, dtype=np.int64)
    for place in range(rows.shape[0]):
        totals[labels[rows[place]]] += 1
    return totals


@njit(cache=True, nogil=True)
def count_present(totals):
    """Number of classes that have rows."""
    n_present = 0
    for class_ in range(totals.shape[0]):
        n_present += totals[class_] > 0
    return n_present


@njit(cache=True, nogil=True)
def majority(totals):
    """The class with most rows, the first one on ties."""
    label = 0
    for class_ in range(totals.shape[0]):
        if totals[class_] > totals[label]:
            label = class_
    return label


@njit(cache=True, nogil=True)
def split_rows(codes, rows, table, rule):
    """The rows that go left by a rule, and those that go right, in order."""
    feature = table.feature[rule]
    left, right = np.empty_like(rows), np.empty_like(rows)
    n_left, n_right = 0, 0
    for place in range(rows.shape[0]):
        row = rows[place]
        if rule_goes_left(codes[feature, row], table, rule):
            left[n_left] = row
            n_left += 1
        else:
            right[n_right] = row
            n_right += 1
    return left[:n_left], right[:n_right]


@njit(cache=True, nogil=True)
def rule_key(table, rule, threshold):
    """One number for a question: feature, threshold, and the side of missing values."""
    side = 1 if table.missing_left[rule] else 0
    return (table.feature[rule] << FEATURE_BITS) | (threshold << 1) | side


@njit(cache=True, nogil=True)
def grow_rows(codes, labels, n_classes, table, draw, rows, max_depth):
    """Grow the tree that level-wise growth gives on the same rows, as a FlatTree.

    Keys are those of `rule_key`, -1 at leaves; nodes come in the order root, left sub-tree, right
    sub-tree, and equal siblings are merged.
    """
    most = min(2 * rows.shape[0] + 1, 2 ** min(max_depth + 1, 40))
    key, label = np.full(most, -1, np.int64), np.zeros(most, np.int64)
    left, right = np.full(most, -1, np.int64), np.full(most, -1, np.int64)
    counts = np.empty((table.bin_offsets[-1], n_classes), dtype=np.int64)
    scores = np.empty(table.feature.shape[0])
    stack = [(rows, np.uint64(0), 0, -1)]  # rows, position, depth, parent whose right child it is
    n_nodes = 0
    while len(stack) > 0:
        own, position, depth, parent = stack.pop()
        node = n_nodes
        n_nodes += 1
        if parent >= 0:
            right[parent] = node
        totals = count_labels(labels, own, n_classes)
        label[node] = majority(totals)
        if depth == max_depth or count_present(totals) < 2:
            continue
        count_rows(codes, labels, own, table, counts)
        score_rules(counts, table, draw.score, draw.min_leaf, scores)
        rule, threshold = draw_rule(scores, table, draw, position)
        if rule < 0:
            continue
        key[node], left[node] = rule_key(table, rule, threshold), node + 1
        below = np.uint64(2) * position
        to_left, to_right = split_rows(codes, own, table, rule)
        stack.append((to_right, below + np.uint64(2), depth + 1, node))
        stack.append((to_left, below + np.uint64(1), depth + 1, -1))
    return flatten(key[:n_nodes], left[:n_nodes], right[:n_nodes], label[:n_nodes], True)


@njit(cache=True, nogil=True)
def regrow_without(codes, labels, n_classes, table, draw, removed, max_depth):
    """Grow a tree without each set of rows in turn.

    removed (n_sets, n_removed) holds row numbers. Returns the whole tree's FlatTree, and the node
    distance to it and the tag of each other tree, both (n_sets,).
    """
    every = np.arange(labels.shape[0])
    whole = grow_rows(codes, labels, n_classes, table, draw, every, max_depth)
    distances = np.empty(removed.shape[0], dtype=np.int64)
    tags = np.empty(removed.shape[0], dtype=np.uint64)
    kept = np.ones(labels.shape[0], dtype=np.bool_)
    for place in range(removed.shape[0]):
        kept[:] = True
        for k in range(removed.shape[1]):
            kept[removed[place, k]] = False
        other = grow_rows(codes, labels, n_classes, table, draw, every[kept], max_depth)
        distances[place] = node_distance(whole, other)[0]
        tags[place] = other.tag[0]
    return whole, distances, tags
