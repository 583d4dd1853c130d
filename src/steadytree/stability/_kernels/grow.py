"""Grow trees from binned rows, on all rows or some; exhaustive look-ahead."""

import numpy as np

from steadytree._base.jit import kernel
from steadytree.data._kernels.counts import split_goes_left
from steadytree.distance._kernels import node_distance
from steadytree.models._kernels import flatten
from steadytree.stability._kernels.choose import COUNT, INVALID, sample_split, score_splits

FEATURE_BITS = 32  # the key of a split is its feature above these bits, the rest below


@kernel
def count_rows(binned, labels, rows, table, counts):
    """Fill counts (n_bins, n_classes) with those of the given rows."""
    counts[:] = 0
    own_labels = labels[rows]
    for feature in range(binned.shape[0]):
        start = table.bin_offsets[feature]
        for index in range(rows.shape[0]):
            counts[start + binned[feature, rows[index]], own_labels[index]] += 1
    return counts


@kernel
def count_children(binned, labels, to_left, to_right, table, counts):
    """Counts of the rows on the left and on the right of a split, counts being those of both.

    Only the smaller side is counted where subtracting it is cheaper than counting the other.
    """
    left, right = np.empty_like(counts), np.empty_like(counts)
    left_is_small = to_left.shape[0] <= to_right.shape[0]
    small, large = (left, right) if left_is_small else (right, left)
    count_rows(binned, labels, to_left if left_is_small else to_right, table, small)
    if max(to_left.shape[0], to_right.shape[0]) * binned.shape[0] > counts.size:
        for bin_ in range(counts.shape[0]):
            for class_ in range(counts.shape[1]):
                large[bin_, class_] = counts[bin_, class_] - small[bin_, class_]
    else:
        count_rows(binned, labels, to_right if left_is_small else to_left, table, large)
    return left, right


@kernel
def count_labels(labels, rows, n_classes):
    """Rows of each class among the given rows."""
    totals = np.zeros(n_classes, dtype=np.int64)
    for index in range(rows.shape[0]):
        totals[labels[rows[index]]] += 1
    return totals


@kernel
def count_observed(totals):
    """Number of classes that have rows."""
    n_observed = 0
    for class_ in range(totals.shape[0]):
        n_observed += totals[class_] > 0
    return n_observed


@kernel
def majority(totals):
    """The class with most rows, the first one on ties."""
    label = 0
    for class_ in range(totals.shape[0]):
        if totals[class_] > totals[label]:
            label = class_
    return label


@kernel
def partition_rows(binned, rows, table, split):
    """The rows that a split sends left, and those that it sends right, in order."""
    feature = table.feature[split]
    left, right = np.empty_like(rows), np.empty_like(rows)
    n_left, n_right = 0, 0
    for index in range(rows.shape[0]):
        row = rows[index]
        if split_goes_left(np.int64(binned[feature, row]), table, split):
            left[n_left] = row
            n_left += 1
        else:
            right[n_right] = row
            n_right += 1
    return left[:n_left], right[:n_right]


@kernel
def split_key(table, split, threshold):
    """One number for a split: feature, threshold, and the side of missing values."""
    side = 1 if table.missing_left[split] else 0
    return (table.feature[split] << FEATURE_BITS) | (threshold << 1) | side


@kernel
def grow_rows(binned, labels, n_classes, table, sampling, rows, max_depth):
    """Grow the tree that level-wise growth gives on the same rows, as a FlatTree.

    Keys are those of `split_key`, -1 at leaves; nodes come in the order root, left sub-tree, right
    sub-tree.
    """
    most = min(2 * rows.shape[0] + 1, 2 ** min(max_depth + 1, 40))
    key, label = np.full(most, -1, np.int64), np.zeros(most, np.int64)
    left, right = np.full(most, -1, np.int64), np.full(most, -1, np.int64)
    counts = np.empty((table.bin_offsets[-1], n_classes), dtype=np.int64)
    scores = np.empty(table.feature.shape[0])
    stack = [(rows, np.uint64(0), 0, -1)]  # rows, position, depth, parent of a right child
    n_nodes = 0
    while len(stack) > 0:
        own, position, depth, parent = stack.pop()
        node = n_nodes
        n_nodes += 1
        if parent >= 0:
            right[parent] = node
        totals = count_labels(labels, own, n_classes)
        label[node] = majority(totals)
        if depth == max_depth or count_observed(totals) < 2:
            continue
        count_rows(binned, labels, own, table, counts)
        score_splits(counts, table, sampling.score, sampling.min_leaf, scores)
        split, threshold = sample_split(scores, table, sampling, position)
        if split < 0:
            continue
        key[node], left[node] = split_key(table, split, threshold), node + 1
        below = np.uint64(2) * position
        to_left, to_right = partition_rows(binned, own, table, split)
        stack.append((to_right, below + np.uint64(2), depth + 1, node))
        stack.append((to_left, below + np.uint64(1), depth + 1, -1))
    return flatten(key[:n_nodes], left[:n_nodes], right[:n_nodes], label[:n_nodes], sampling.merge)


@kernel
def regrow_without(binned, labels, n_classes, table, sampling, removed, max_depth):
    """Grow a tree without each set of rows in turn.

    removed (n_sets, n_removed) holds row numbers. Returns the whole tree's FlatTree, and the node
    distance to it and the tag of each other tree, both (n_sets,).
    """
    every = np.arange(labels.shape[0])
    whole = grow_rows(binned, labels, n_classes, table, sampling, every, max_depth)
    distances = np.empty(removed.shape[0], dtype=np.int64)
    tags = np.empty(removed.shape[0], dtype=np.uint64)
    kept = np.ones(labels.shape[0], dtype=np.bool_)
    for index in range(removed.shape[0]):
        kept[:] = True
        for k in range(removed.shape[1]):
            kept[removed[index, k]] = False
        other = grow_rows(binned, labels, n_classes, table, sampling, every[kept], max_depth)
        distances[index] = node_distance(whole, other)[0]
        tags[index] = other.tag[0]
    return whole, distances, tags


@kernel
def best_hits(binned, labels, n_classes, table, rows, levels, min_leaf):
    """Most rows that a tree of at most `levels` levels classifies correctly."""
    totals = count_labels(labels, rows, n_classes)
    most = totals.max()
    if levels == 0 or most == rows.shape[0]:
        return np.float64(most)
    counts = np.empty((table.bin_offsets[-1], n_classes), dtype=np.int64)
    count_rows(binned, labels, rows, table, counts)
    scores = np.empty(table.feature.shape[0])
    score_splits(counts, table, COUNT, min_leaf, scores)
    best = max(np.float64(most), scores.max() if scores.shape[0] > 0 else INVALID)
    if levels == 1:
        return best
    for split in range(scores.shape[0]):
        if scores[split] < 0.0:
            continue
        left, right = partition_rows(binned, rows, table, split)
        below = best_hits(binned, labels, n_classes, table, left, levels - 1, min_leaf)
        if below + right.shape[0] > best:  # else not even a perfect right side would help
            below += best_hits(binned, labels, n_classes, table, right, levels - 1, min_leaf)
            best = max(best, below)
        if best == rows.shape[0]:
            break
    return best


@kernel
def score_ahead(binned, labels, n_classes, table, rows, levels, min_leaf):
    """Score of every split: correct rows of the best tree of that depth that starts with it."""
    counts = np.empty((table.bin_offsets[-1], n_classes), dtype=np.int64)
    count_rows(binned, labels, rows, table, counts)
    scores = np.empty(table.feature.shape[0])
    score_splits(counts, table, COUNT, min_leaf, scores)
    if levels > 1:
        for split in range(scores.shape[0]):
            if scores[split] >= 0.0:
                left, right = partition_rows(binned, rows, table, split)
                scores[split] = best_hits(
                    binned, labels, n_classes, table, left, levels - 1, min_leaf
                )
                scores[split] += best_hits(
                    binned, labels, n_classes, table, right, levels - 1, min_leaf
                )
    return scores
