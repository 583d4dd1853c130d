"""Log-weights of all trees at once, by sum-product: what a whole-tree draw needs to know.

A tree of at most `depth` levels weighs prior times the product of its leaves' weights. The prior
stops at a node with chance `stop`, else asks question k with chance exp(log_prior[k]); at the last
level it stops for certain. Sums over all trees follow from counts of rows in up to `depth`
questions' answers.
"""

import numpy as np
from numba import njit

from steadytree.kernels.bit_rows import count_common

RIGHT, PURE = 0, 1  # a leaf's utility: rows of its label, or minus rows times Gini impurity


@njit(cache=True, nogil=True)
def log_sum(values):
    """log(sum(exp(values))), without overflow."""
    top = values.max()
    total = 0.0
    for value in values:
        total += np.exp(value - top)
    return top + np.log(total)


@njit(cache=True, nogil=True)
def leaf_weight(counts, within, flip, epsilon, utility):
    """Log-weight of a leaf with class counts `counts`, or `within - counts` where flip.

    RIGHT: log of the mean over labels of exp(epsilon * rows of the label). PURE:
    -epsilon / 2 * rows * Gini impurity, 0 for an empty leaf.
    """
    n_classes = counts.shape[0]
    if utility == RIGHT:
        most = 0.0
        for class_ in range(n_classes):
            count = within[class_] - counts[class_] if flip else counts[class_]
            most = max(most, float(count))
        total = 0.0
        for class_ in range(n_classes):
            count = within[class_] - counts[class_] if flip else counts[class_]
            total += np.exp(epsilon * (count - most))
        return epsilon * most + np.log(total / n_classes)
    size, squares = 0.0, 0.0
    for class_ in range(n_classes):
        count = float(within[class_] - counts[class_] if flip else counts[class_])
        size += count
        squares += count * count
    if size == 0.0:
        return 0.0
    return -0.5 * epsilon * (size - squares / size)


@njit(cache=True, nogil=True)
def stump_terms(inside, within, log_prior, stop, epsilon, utility, terms):
    """Fill terms (m + 1,): log-weights of one question and two leaves, and of one leaf alone.

    inside (m, n_classes) counts the rows that say yes to each question, within (n_classes,) all.
    """
    m = inside.shape[0]
    for question in range(m):
        yes = leaf_weight(inside[question], within, False, epsilon, utility)
        no = leaf_weight(inside[question], within, True, epsilon, utility)
        terms[question] = np.log1p(-stop) + log_prior[question] + yes + no
    terms[m] = np.log(stop) + leaf_weight(within, within, False, epsilon, utility)
    return terms


@njit(cache=True, nogil=True)
def pair_totals(bits, word_offsets, single, within, log_prior, stop, epsilon, utility):
    """log of the summed weight of all stumps below each answer: (m, 2), yes first."""
    m, n_classes = single.shape
    totals, terms = np.empty((m, 2)), np.empty(m + 1)
    common, rest = np.empty((m, n_classes), np.int64), np.empty((m, n_classes), np.int64)
    outside = np.empty(n_classes, np.int64)
    for question in range(m):
        count_common(bits, bits[question], word_offsets, common)
        stump_terms(common, single[question], log_prior, stop, epsilon, utility, terms)
        totals[question, 0] = log_sum(terms)
        for class_ in range(n_classes):
            outside[class_] = within[class_] - single[question, class_]
            for other in range(m):
                rest[other, class_] = single[other, class_] - common[other, class_]
        stump_terms(rest, outside, log_prior, stop, epsilon, utility, terms)
        totals[question, 1] = log_sum(terms)
    return totals


@njit(cache=True, nogil=True)
def cell_counts(pair, first, second, whole, cell):
    """Rows in one of four cells of two questions, from those in both, in each, and in all.

    cell 0 is yes/yes, 1 yes/no, 2 no/yes, 3 no/no.
    """
    if cell == 0:
        return pair
    if cell == 1:
        return first - pair
    if cell == 2:
        return second - pair
    return whole - first - second + pair


@njit(cache=True, nogil=True)
def triple_totals(bits, word_offsets, single, within, log_prior, stop, epsilon, utility):
    """log of the summed weight of all depth-2 trees below each answer to each question: (m, 2).

    Stumps are summed in every cell of every two questions, once for both orders.
    """
    m, n_classes = single.shape
    pairs = np.empty((m, m, n_classes), np.int64)
    for question in range(m):
        count_common(bits, bits[question], word_offsets, pairs[question])
    stumps = np.empty((4, m, m))
    triple, inside = np.empty((m, n_classes), np.int64), np.empty((m, n_classes), np.int64)
    cell_within, terms = np.empty(n_classes, np.int64), np.empty(m + 1)
    for i in range(m):
        for j in range(i, m):
            count_common(bits, bits[i] & bits[j], word_offsets, triple)
            for cell in range(4):
                for c in range(n_classes):
                    cell_within[c] = cell_counts(
                        pairs[i, j, c], single[i, c], single[j, c], within[c], cell
                    )
                    for k in range(m):
                        inside[k, c] = cell_counts(
                            triple[k, c], pairs[i, k, c], pairs[j, k, c], single[k, c], cell
                        )
                stump_terms(inside, cell_within, log_prior, stop, epsilon, utility, terms)
                swapped = cell if cell in (0, 3) else 3 - cell
                stumps[cell, i, j] = stumps[swapped, j, i] = log_sum(terms)
    return _below_each(stumps, single, within, log_prior, stop, epsilon, utility)


@njit(cache=True, nogil=True)
def _below_each(stumps, single, within, log_prior, stop, epsilon, utility):
    """Depth-2 totals from stumps (4, m, m) in the cells of two questions."""
    m = single.shape[0]
    totals, terms = np.empty((m, 2)), np.empty(m + 1)
    for i in range(m):
        for side in range(2):
            for j in range(m):
                both = stumps[2 * side, i, j] + stumps[2 * side + 1, i, j]
                terms[j] = np.log1p(-stop) + log_prior[j] + both
            leaf = leaf_weight(single[i], within, side == 1, epsilon, utility)
            terms[m] = np.log(stop) + leaf
            totals[i, side] = log_sum(terms)
    return totals


@njit(cache=True, nogil=True)
def root_terms(bits, word_offsets, within, log_prior, stop, epsilon, utility, depth):
    """Log-weights (m + 1,) of all trees by their first question; the last is the leaf alone.

    bits (m, W) as `pack_answers` gives them, within (n_classes,) int64, depth 1, 2 or 3.
    """
    m, n_classes = bits.shape[0], within.shape[0]
    everything = np.full(bits.shape[1], ~np.uint64(0), dtype=np.uint64)
    single = np.empty((m, n_classes), np.int64)
    count_common(bits, everything, word_offsets, single)
    terms = np.empty(m + 1)
    stump_terms(single, within, log_prior, stop, epsilon, utility, terms)
    if depth == 1:
        return terms
    shared = (bits, word_offsets, single, within, log_prior, stop, epsilon, utility)
    totals = pair_totals(*shared) if depth == 2 else triple_totals(*shared)
    for question in range(m):
        both = totals[question, 0] + totals[question, 1]
        terms[question] = np.log1p(-stop) + log_prior[question] + both
    return terms
