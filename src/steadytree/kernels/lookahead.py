"""The best tree of small depth below a split, by trying everything."""

import numpy as np
from numba import njit

from steadytree.kernels.grow_rows import count_labels, count_rows, split_rows
from steadytree.kernels.scores import COUNT, INVALID, score_rules


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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
