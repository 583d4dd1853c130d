"""Choose a rule at each open node: the best, or one drawn by the exponential mechanism."""

import numpy as np
from numba import njit

from steadytree.kernels.noise import hash_feature, hash_node, largest_uniform
from steadytree.kernels.scores import score_rules

LARGEST_GUMBEL = 37.0  # -log(-log(u)) of the largest u that noise.uniform_at can return is 36.7


@njit(cache=True, nogil=True)
def gumbel(u):
    """The Gumbel quantile of u."""
    return -np.log(-np.log(u))


@njit(cache=True, nogil=True)
def pick_rule(scores, table, sharpness, node_bits):
    """Return (rule, threshold) for one node, (-1, -1) where no rule is valid.

    A rule stands for the thresholds first..last, which divide the data alike. With sharpness 0
    the best score wins and ties fall to the largest hash. Otherwise a threshold is drawn with
    probability proportional to exp(sharpness / best * score), by the Gumbel-max trick on hashed
    noise: neighbouring data sets share the noise and so mostly the winner.
    """
    best = -1.0
    for rule in range(scores.shape[0]):
        best = max(best, scores[rule])
    winner, threshold, winning_key = -1, -1, -np.inf
    if best < 0.0:
        return winner, threshold
    slope = sharpness / best if best > 0.0 else 0.0
    feature_before, feature_bits = -1, np.uint64(0)
    for rule in range(scores.shape[0]):
        if scores[rule] < 0.0:
            continue
        loss = slope * (scores[rule] - best)
        if sharpness > 0.0 and loss + LARGEST_GUMBEL < winning_key:
            continue
        if sharpness <= 0.0 and scores[rule] < best:
            continue
        if table.feature[rule] != feature_before:
            feature_before = table.feature[rule]
            feature_bits = hash_feature(node_bits, feature_before)
        u, where = largest_uniform(
            feature_bits, table.first[rule], table.last[rule], table.missing_left[rule]
        )
        key = loss + gumbel(u) if sharpness > 0.0 else u
        if key > winning_key:
            winner, threshold, winning_key = rule, where, key
    return winner, threshold


@njit(cache=True, nogil=True)
def choose_rules(counts, positions, table, score, min_leaf, sharpness, seed):
    """Return (rule, threshold) of every open node from counts (n_nodes, n_bins, n_classes).

    positions (n_nodes,) are indices in the full binary tree. A node of one class gets -1.
    """
    n_nodes = counts.shape[0]
    rules = np.full(n_nodes, -1, dtype=np.int64)
    thresholds = np.full(n_nodes, -1, dtype=np.int64)
    scores = np.empty(table.feature.shape[0])
    for node in range(n_nodes):
        n_present = 0
        for class_ in range(counts.shape[2]):
            total = 0.0
            for bin_ in range(table.bin_offsets[0], table.bin_offsets[1]):
                total += counts[node, bin_, class_]
            n_present += total > 0
        if n_present < 2:
            continue
        score_rules(counts[node], table, score, min_leaf, scores)
        rules[node], thresholds[node] = pick_rule(
            scores, table, sharpness, hash_node(seed, positions[node])
        )
    return rules, thresholds
