"""Grow trees from binned rows, on all rows or some; exhaustive look-ahead."""

import numpy as np

from steadytree._base.jit import kernel
from steadytree.data._kernels.counts import add_children, split_goes_left
from steadytree.distance._kernels import node_distance
from steadytree.models._kernels import flatten, set_all
from steadytree.stability._kernels.choose import (
    COUNT,
    INVALID,
    pick_splits,
    sample_split,
    score_splits,
)

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
    return (np.int64(table.feature[split]) << FEATURE_BITS) | (threshold << 1) | side


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


SPLIT, THRESHOLD, LEFT, FIRST, LAST, LEVEL, IS_OPEN, POSITION = range(8)  # rows of `nodes`


@kernel
def grow_by_level(data, table, sampling, max_depth, nodes, totals, rows, kept, counts, work):
    """As `models.builder.grow` with `choose_splits` and Gumbel noise, in one call; for few rows.

    data = (binned (p, n), labels, weights), weights empty where each row counts once. Filled are
    nodes (8, most), totals (most, n_classes), and kept (n_kept, n_splits) with the scores of the
    first nodes whose position in the full tree is below n_positions. rows (2, n),
    counts (1, n_bins, n_classes) and work are scratch. Returns the number of nodes and of kept
    scores.
    """
    binned, labels, weights = data
    scores, n_positions = kept
    found, of_node, spare, pick_work, position = work
    for row in range(labels.shape[0]):
        rows[0, row] = row
    n_nodes, n_kept, node = 1, 0, 0
    nodes[SPLIT, 0], nodes[LEFT, 0], nodes[FIRST, 0], nodes[LAST, 0] = -1, -1, 0, labels.shape[0]
    nodes[LEVEL, 0], nodes[IS_OPEN, 0], nodes[POSITION, 0] = 0, 1, 0
    while node < n_nodes:
        if nodes[IS_OPEN, node]:
            here = rows[0, nodes[FIRST, node] : nodes[LAST, node]]
            count_here(binned, labels, weights, here, table, counts[0])
            own = spare
            if nodes[POSITION, node] < n_positions:
                own = scores[n_kept : n_kept + 1]
                n_kept += 1
            if node == 0:  # alone it may be of one class, and get no scores
                set_all(own[0], INVALID)
            position[0] = np.uint64(nodes[POSITION, node])
            of_node[0, 0], of_node[1, 0] = -1, -1
            pick_splits(counts, position, table, sampling, of_node[0], of_node[1], own, pick_work)
            nodes[SPLIT, node], nodes[THRESHOLD, node] = of_node[0, 0], of_node[1, 0]
            for part in range(3):
                set_all(found[part, 0], 0)
            add_children(counts, table, of_node[0], found)
            if node == 0:
                for class_ in range(totals.shape[1]):
                    totals[0, class_] = found[0, 0, class_]
            if of_node[0, 0] >= 0:
                add_nodes(nodes, node, n_nodes, found, totals, max_depth)
                n_left = part_here(binned, here, rows[1], table, of_node[0, 0])
                nodes[FIRST, n_nodes], nodes[LAST, n_nodes + 1] = (
                    nodes[FIRST, node],
                    nodes[LAST, node],
                )
                nodes[LAST, n_nodes] = nodes[FIRST, node] + n_left
                nodes[FIRST, n_nodes + 1] = nodes[LAST, n_nodes]
                n_nodes += 2
        node += 1
    return n_nodes, n_kept


@kernel
def count_here(binned, labels, weights, here, table, counts):
    """Fill counts (n_bins, n_classes) with those of some rows."""
    one, weighed = weights.dtype.type(1), weights.shape[0] > 0
    for bin_ in range(counts.shape[0]):
        for class_ in range(counts.shape[1]):
            counts[bin_, class_] = 0
    for feature in range(binned.shape[0]):
        own = counts[table.bin_offsets[feature] : table.bin_offsets[feature + 1]]
        for row in here:
            own[binned[feature, row], labels[row]] += weights[row] if weighed else one


@kernel
def add_nodes(nodes, node, n_nodes, found, totals, max_depth):
    """Add the two children of a node; those of one class, or of the last level, are closed."""
    nodes[LEFT, node] = n_nodes
    for side in range(2):
        child, n_observed = n_nodes + side, 0
        for class_ in range(totals.shape[1]):
            totals[child, class_] = found[1 + side, 0, class_]
            n_observed += found[1 + side, 0, class_] > 0
        nodes[SPLIT, child], nodes[LEFT, child] = -1, -1
        nodes[LEVEL, child] = nodes[LEVEL, node] + 1
        nodes[IS_OPEN, child] = n_observed > 1 and nodes[LEVEL, child] < max_depth
        nodes[POSITION, child] = 2 * nodes[POSITION, node] + 1 + side


@kernel
def part_here(binned, here, spare, table, split):
    """Put the rows that go left first, all in their order; how many they are."""
    own, n_left, n_right = binned[table.feature[split]], 0, 0
    for index in range(here.shape[0]):
        row = here[index]
        if split_goes_left(np.int64(own[row]), table, split):
            here[n_left] = row
            n_left += 1
        else:
            spare[n_right] = row
            n_right += 1
    for index in range(n_right):
        here[n_left + index] = spare[index]
    return n_left
