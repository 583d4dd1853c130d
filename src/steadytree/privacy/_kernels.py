"""Scores of every question at a node, in rows: what one row more changes is bounded."""

import numpy as np
from numba import types
from numba.extending import intrinsic

from steadytree._base.jit import kernel

WORD_BITS = 64


@intrinsic
def popcount(typing_context, word):
    """Number of ones of a 64-bit word, by the processor's own instruction."""

    def generate(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@kernel
def order_by_class(labels, rows, n_classes):
    """Rows sorted by class, each class filled up with -1 to whole words.

    labels (n,) int32 in [0, n_classes); rows int64. Returns ordered, and word_offsets
    (n_classes + 1,): where the words of each class begin.
    """
    sizes = np.zeros(n_classes, dtype=np.int64)
    for row in rows:
        sizes[labels[row]] += 1
    word_offsets = np.zeros(n_classes + 1, dtype=np.int64)
    for class_ in range(n_classes):
        n_words = (sizes[class_] + WORD_BITS - 1) // WORD_BITS
        word_offsets[class_ + 1] = word_offsets[class_] + n_words
    ordered = np.full(word_offsets[-1] * WORD_BITS, -1, dtype=np.int64)
    place = word_offsets[:-1] * WORD_BITS
    for row in rows:
        ordered[place[labels[row]]] = row
        place[labels[row]] += 1
    return ordered, word_offsets


@kernel
def pack_answers(codes, ordered, feature, bin_, by_value):
    """Answers of the ordered rows to every question, as words (m, W); a place of -1 says no."""
    n_words = ordered.shape[0] // WORD_BITS
    bits = np.zeros((feature.shape[0], n_words), dtype=np.uint64)
    for question in range(feature.shape[0]):
        column, asked, exact = codes[feature[question]], bin_[question], by_value[question]
        for word in range(n_words):
            packed = np.uint64(0)
            for place in range(WORD_BITS):
                row = ordered[word * WORD_BITS + place]
                if row >= 0:
                    code = np.int64(column[row])
                    if code == asked or (not exact and code < asked):
                        packed |= np.uint64(1) << np.uint64(place)
            bits[question, word] = packed
    return bits


@kernel
def count_common(bits, mask, word_offsets, counts):
    """Fill counts (m, n_classes) with the rows of each class in both a question's set and mask."""
    for question in range(bits.shape[0]):
        words = bits[question]
        for class_ in range(word_offsets.shape[0] - 1):
            total = np.uint64(0)
            for word in range(word_offsets[class_], word_offsets[class_ + 1]):
                total += popcount(words[word] & mask[word])  # type: ignore[call-arg]
            counts[question, class_] = np.int64(total)
    return counts


RIGHT, PURE = 0, 1  # a leaf's utility: rows of its label, or minus rows times Gini impurity


@kernel
def log_sum(values):
    """log(sum(exp(values))), without overflow."""
    top = values.max()
    total = 0.0
    for value in values:
        total += np.exp(value - top)
    return top + np.log(total)


@kernel
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


@kernel
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


@kernel
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


@kernel
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


@kernel
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


@kernel
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


@kernel
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


@kernel
def side_impurity(counts, entropy):
    """Rows times Gini impurity, or rows times entropy in bits; 0 for an empty side."""
    size, total = 0.0, 0.0
    for count in counts:
        if count > 0:
            size += count
            total += count * np.log2(count) if entropy else count * count
    if size == 0.0:
        return 0.0
    return size * np.log2(size) - total if entropy else size - total / size


@kernel
def impurity_scores(counts, bin_offsets, feature, bin_, by_value, entropy):
    """Minus the summed impurity of both sides of every question, for every node: (n_nodes, m).

    counts (n_nodes, n_bins, n_classes) as `count_classes` gives them, a feature's missing bin last;
    questions of a feature come by rising bin. Empty sides score like any other.
    """
    n_nodes, n_classes = counts.shape[0], counts.shape[2]
    scores = np.empty((n_nodes, feature.shape[0]))
    whole, yes = np.empty(n_classes), np.empty(n_classes)
    for node in range(n_nodes):
        for question in range(feature.shape[0]):
            start, end = bin_offsets[feature[question]], bin_offsets[feature[question] + 1]
            if question == 0 or feature[question] != feature[question - 1]:
                running, below = np.zeros(n_classes), 0
                for class_ in range(n_classes):
                    whole[class_] = counts[node, start:end, class_].sum()
            asked = bin_[question]
            for class_ in range(n_classes):
                if by_value[question]:
                    yes[class_] = counts[node, start + asked, class_]
                else:
                    for each in range(start + below, start + asked + 1):
                        running[class_] += counts[node, each, class_]
                    yes[class_] = running[class_]
            if not by_value[question]:
                below = asked + 1
            no = whole - yes
            scores[node, question] = -(side_impurity(yes, entropy) + side_impurity(no, entropy))
    return scores
