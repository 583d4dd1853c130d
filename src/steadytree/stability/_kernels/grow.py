"""The best tree of small depth below a split, by trying everything."""

import numpy as np

from steadytree._base.jit import kernel
from steadytree.data._kernels import split_goes_left
from steadytree.distance._kernels import node_distance
from steadytree.models._kernels import flatten
from steadytree.stability._kernels.choose import COUNT, INVALID, draw_rule, score_rules

FEATURE_BITS = 32  # a question's number is its feature above these bits, the rest below


@kernel
def count_rows(codes, labels, rows, table, counts):
    """Fill counts (n_bins, n_classes) with those of the given rows."""
    counts[:] = 0
    own_labels = labels[rows]  # looked up once, not once a feature
    for feature in range(codes.shape[0]):
        start = table.bin_offsets[feature]
        for place in range(rows.shape[0]):
            counts[start + codes[feature, rows[place]], own_labels[place]] += 1
    return counts


@kernel
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


@kernel
def count_labels(labels, rows, n_classes):
    """Rows of each class among the given rows."""
    totals = np.zeros(n_classes, dtype=np.int64)
    for place in range(rows.shape[0]):
        totals[labels[rows[place]]] += 1
    return totals


@kernel
def count_present(totals):
    """Number of classes that have rows."""
    n_present = 0
    for class_ in range(totals.shape[0]):
        n_present += totals[class_] > 0
    return n_present


@kernel
def majority(totals):
    """The class with most rows, the first one on ties."""
    label = 0
    for class_ in range(totals.shape[0]):
        if totals[class_] > totals[label]:
            label = class_
    return label


@kernel
def split_rows(codes, rows, table, rule):
    """The rows that go left by a rule, and those that go right, in order."""
    feature = table.feature[rule]
    left, right = np.empty_like(rows), np.empty_like(rows)
    n_left, n_right = 0, 0
    for place in range(rows.shape[0]):
        row = rows[place]
        if split_goes_left(codes[feature, row], table, rule):
            left[n_left] = row
            n_left += 1
        else:
            right[n_right] = row
            n_right += 1
    return left[:n_left], right[:n_right]


@kernel
def rule_key(table, rule, threshold):
    """One number for a question: feature, threshold, and the side of missing values."""
    side = 1 if table.missing_left[rule] else 0
    return (table.feature[rule] << FEATURE_BITS) | (threshold << 1) | side


@kernel
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


@kernel
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


@kernel
def best_hits(codes, labels, n_classes, table, rows, levels, min_leaf):
    """Most rows that a tree of at most `levels` levels gets right."""
    totals = count_labels(labels, rows, n_classes)
    most = totals.max()
    if levels == 0 or most == rows.shape[0]:
        return np.float64(most)
    counts = np.empty((table.bin_offsets[-1], n_classes), dtype=np.int64)
    count_rows(codes, labels, rows, table, counts)
    scores = np.empty(table.feature.shape[0])
    score_rules(counts, table, COUNT, min_leaf, scores)
    best = max(np.float64(most), scores.max() if scores.shape[0] > 0 else INVALID)
    if levels == 1:
        return best
    for rule in range(scores.shape[0]):
        if scores[rule] < 0.0:
            continue
        left, right = split_rows(codes, rows, table, rule)
        below = best_hits(codes, labels, n_classes, table, left, levels - 1, min_leaf)
        if below + right.shape[0] > best:  # else not even a perfect right side would help
            below += best_hits(codes, labels, n_classes, table, right, levels - 1, min_leaf)
            best = max(best, below)
        if best == rows.shape[0]:
            break
    return best


@kernel
def score_ahead(codes, labels, n_classes, table, rows, levels, min_leaf):
    """Score of every rule: hits of the best tree of `levels` levels that starts with it."""
    counts = np.empty((table.bin_offsets[-1], n_classes), dtype=np.int64)
    count_rows(codes, labels, rows, table, counts)
    scores = np.empty(table.feature.shape[0])
    score_rules(counts, table, COUNT, min_leaf, scores)
    if levels > 1:
        for rule in range(scores.shape[0]):
            if scores[rule] >= 0.0:
                left, right = split_rows(codes, rows, table, rule)
                scores[rule] = best_hits(
                    codes, labels, n_classes, table, left, levels - 1, min_leaf
                )
                scores[rule] += best_hits(
                    codes, labels, n_classes, table, right, levels - 1, min_leaf
                )
    return scores
