"""Sums over all trees of a few levels, and impurity scores, with bounded sensitivity to one row.

The weight of a tree is its prior times the product of the weights of its leaves. The prior stops at
a node with probability `stop`, else splits by k with probability exp(log_prior[k]); at the last
level it stops with certainty. Sums over all trees follow from the counts of rows on the sides of up
to `depth` splits.
"""

import numpy as np
from numba import types
from numba.extending import intrinsic

from steadytree._base.jit import kernel

WORD_BITS = 64


@intrinsic
def popcount(typing_context, word):
    """Number of ones of a 64-bit word, by the processor's instruction."""

    def generate(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@kernel
def order_by_class(labels, rows, n_classes):
    """Rows sorted by class, each class padded with -1 to a multiple of 64.

    labels (n,) int32 in [0, n_classes); rows int64. Returns the rows, and the first word of each
    class, word_offsets (n_classes + 1,).
    """
    sizes = np.zeros(n_classes, dtype=np.int64)
    for row in rows:
        sizes[labels[row]] += 1
    word_offsets = np.zeros(n_classes + 1, dtype=np.int64)
    for class_ in range(n_classes):
        n_words = (sizes[class_] + WORD_BITS - 1) // WORD_BITS
        word_offsets[class_ + 1] = word_offsets[class_] + n_words
    ordered = np.full(word_offsets[-1] * WORD_BITS, -1, dtype=np.int64)
    next_index = word_offsets[:-1] * WORD_BITS
    for row in rows:
        ordered[next_index[labels[row]]] = row
        next_index[labels[row]] += 1
    return ordered, word_offsets


@kernel
def pack_sides(binned, ordered, feature, bin_, by_value):
    """One bit a row and split, as words (m, W): 1 on the split's yes side; 0 for padding."""
    n_words = ordered.shape[0] // WORD_BITS
    bits = np.zeros((feature.shape[0], n_words), dtype=np.uint64)
    for split in range(feature.shape[0]):
        column, last_bin, exact = binned[feature[split]], bin_[split], by_value[split]
        for word in range(n_words):
            packed = np.uint64(0)
            for bit in range(WORD_BITS):
                row = ordered[word * WORD_BITS + bit]
                if row >= 0:
                    bin_index = np.int64(column[row])
                    # no branch on a value, as its time would tell the value
                    yes = (bin_index == last_bin) | ((bin_index < last_bin) & (not exact))
                    packed |= np.uint64(yes) << np.uint64(bit)
            bits[split, word] = packed
    return bits


@kernel
def count_common(bits, mask, word_offsets, counts):
    """Fill counts (m, n_classes): rows of each class on a split's yes side and in the mask."""
    for split in range(bits.shape[0]):
        words = bits[split]
        for class_ in range(word_offsets.shape[0] - 1):
            total = np.uint64(0)
            for word in range(word_offsets[class_], word_offsets[class_ + 1]):
                total += popcount(words[word] & mask[word])  # type: ignore[call-arg]
            counts[split, class_] = np.int64(total)
    return counts


# a leaf's utility: rows that its label classifies correctly, or minus rows times Gini impurity
CORRECT, PURE = 0, 1


@kernel
def log_sum(values):
    """log(sum(exp(values))), without overflow."""
    top = values.max()
    total = 0.0
    for value in values:
        total += np.exp(value - top)
    return top + np.log(total)


@kernel
def leaf_weight(counts, within, flip, rates, utility):
    """Log-weight of a leaf with class counts `counts`, or `within - counts` if flip.

    rates (n_classes,) is epsilon times the weight of a row of each class. CORRECT: log of the mean
    over labels of exp(rate * rows of the label). PURE: -1/2 * rows * Gini impurity, every row
    counted as its rate; 0 for an empty leaf.
    """
    n_classes = counts.shape[0]
    if utility == CORRECT:
        most = 0.0
        for class_ in range(n_classes):
            count = within[class_] - counts[class_] if flip else counts[class_]
            most = max(most, rates[class_] * count)
        total = 0.0
        for class_ in range(n_classes):
            count = within[class_] - counts[class_] if flip else counts[class_]
            total += np.exp(rates[class_] * count - most)
        return most + np.log(total / n_classes)
    size, squares = 0.0, 0.0
    for class_ in range(n_classes):
        count = float(within[class_] - counts[class_] if flip else counts[class_])
        size += rates[class_] * count
        squares += (rates[class_] * count) ** 2
    # an empty leaf takes the same steps, so that its time is that of any other
    return -0.5 * (size - squares / (size + (size == 0.0)))


@kernel
def stump_terms(inside, within, log_prior, stop, rates, utility, terms):
    """Fill terms (m + 1,): log-weights of each split with two leaves, and of a single leaf last.

    inside (m, n_classes) counts the rows on each split's yes side, within (n_classes,) all rows.
    """
    m = inside.shape[0]
    for split in range(m):
        yes = leaf_weight(inside[split], within, False, rates, utility)
        no = leaf_weight(inside[split], within, True, rates, utility)
        terms[split] = np.log1p(-stop) + log_prior[split] + yes + no
    terms[m] = np.log(stop) + leaf_weight(within, within, False, rates, utility)
    return terms


@kernel
def pair_totals(bits, word_offsets, single, within, log_prior, stop, rates, utility):
    """log of the summed weight of all stumps on each side of each split: (m, 2), yes first."""
    m, n_classes = single.shape
    totals, terms = np.empty((m, 2)), np.empty(m + 1)
    common = np.empty((m, n_classes), np.int64)
    for split in range(m):
        count_common(bits, bits[split], word_offsets, common)
        stump_terms(common, single[split], log_prior, stop, rates, utility, terms)
        totals[split, 0] = log_sum(terms)
        rest, outside = single - common, within - single[split]
        stump_terms(rest, outside, log_prior, stop, rates, utility, terms)
        totals[split, 1] = log_sum(terms)
    return totals


@kernel
def triple_totals(bits, word_offsets, single, within, log_prior, stop, rates, utility):
    """log of the summed weight of all depth-2 trees on each side of each split: (m, 2).

    Stumps are summed in each quadrant of each pair of splits, once for both orders: yes/yes,
    yes/no, no/yes, no/no. Rows of a quadrant follow from those in both, in each, and in all.
    """
    m, n_classes = single.shape
    pairs = np.empty((m, m, n_classes), np.int64)
    for split in range(m):
        count_common(bits, bits[split], word_offsets, pairs[split])
    stumps = np.empty((4, m, m))
    both, terms = np.empty((m, n_classes), np.int64), np.empty(m + 1)
    for i in range(m):
        for j in range(i, m):
            count_common(bits, bits[i] & bits[j], word_offsets, both)
            first, second, pair = pairs[i], pairs[j], pairs[i, j]
            insides = (both, first - both, second - both, single - first - second + both)
            one, other = single[i], single[j]
            totals = (pair, one - pair, other - pair, within - one - other + pair)
            for quadrant in range(4):
                inside, total = insides[quadrant], totals[quadrant]
                stump_terms(inside, total, log_prior, stop, rates, utility, terms)
                swapped = quadrant if quadrant in (0, 3) else 3 - quadrant
                stumps[quadrant, i, j] = stumps[swapped, j, i] = log_sum(terms)
    return _below_each(stumps, single, within, log_prior, stop, rates, utility)


@kernel
def _below_each(stumps, single, within, log_prior, stop, rates, utility):
    """Depth-2 totals from stumps (4, m, m) in the quadrants of two splits."""
    m = single.shape[0]
    totals, terms = np.empty((m, 2)), np.empty(m + 1)
    for i in range(m):
        for side in range(2):
            for j in range(m):
                both = stumps[2 * side, i, j] + stumps[2 * side + 1, i, j]
                terms[j] = np.log1p(-stop) + log_prior[j] + both
            leaf = leaf_weight(single[i], within, side == 1, rates, utility)
            terms[m] = np.log(stop) + leaf
            totals[i, side] = log_sum(terms)
    return totals


@kernel
def root_terms(bits, word_offsets, within, log_prior, stop, rates, utility, depth):
    """Log-weights (m + 1,) of all trees by their root split; the last is a single leaf.

    bits (m, W) from `pack_sides`, within (n_classes,) int64, rates (n_classes,) epsilon times the
    weight of a row of each class, depth 1, 2 or 3.
    """
    m = bits.shape[0]
    everything = np.full(bits.shape[1], ~np.uint64(0), dtype=np.uint64)
    single, terms = np.empty((m, within.shape[0]), np.int64), np.empty(m + 1)
    count_common(bits, everything, word_offsets, single)
    stump_terms(single, within, log_prior, stop, rates, utility, terms)
    if depth == 1:
        return terms
    shared = (bits, word_offsets, single, within, log_prior, stop, rates, utility)
    totals = pair_totals(*shared) if depth == 2 else triple_totals(*shared)
    for split in range(m):
        both = totals[split, 0] + totals[split, 1]
        terms[split] = np.log1p(-stop) + log_prior[split] + both
    return terms


@kernel
def side_impurity(counts, entropy):
    """Rows times Gini impurity, or times entropy in bits; 0 for an empty side.

    What is empty takes the same steps, so that its time is that of any other.
    """
    size, total = 0.0, 0.0
    for count in counts:
        size += count
        total += count * np.log2(count + (count == 0.0)) if entropy else count * count
    some = size + (size == 0.0)
    return size * np.log2(some) - total if entropy else size - total / some


@kernel
def impurity_scores(counts, bin_offsets, feature, bin_, by_value, entropy):
    """Minus the summed impurity of both sides of every split, for every node: (n_nodes, m).

    counts (n_nodes, n_bins, n_classes) from `count_classes`, a feature's missing bin last; the
    splits of a feature are sorted by bin. Empty sides score like any other.
    """
    n_nodes, n_classes = counts.shape[0], counts.shape[2]
    scores = np.empty((n_nodes, feature.shape[0]))
    total, yes = np.empty(n_classes), np.empty(n_classes)
    for node in range(n_nodes):
        for split in range(feature.shape[0]):
            start, end = bin_offsets[feature[split]], bin_offsets[feature[split] + 1]
            if split == 0 or feature[split] != feature[split - 1]:
                running, below = np.zeros(n_classes), 0
                for class_ in range(n_classes):
                    total[class_] = counts[node, start:end, class_].sum()
            last_bin = bin_[split]
            for class_ in range(n_classes):
                if by_value[split]:
                    yes[class_] = counts[node, start + last_bin, class_]
                else:
                    for each in range(start + below, start + last_bin + 1):
                        running[class_] += counts[node, each, class_]
                    yes[class_] = running[class_]
            if not by_value[split]:
                below = last_bin + 1
            no = total - yes
            scores[node, split] = -(side_impurity(yes, entropy) + side_impurity(no, entropy))
    return scores
