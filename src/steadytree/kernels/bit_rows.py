"""Rows as bits, one a row and question, class after class: counting is AND and popcount."""

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

WORD_BITS = 64


@intrinsic
def popcount(typing_context, word):
    """Number of ones of a 64-bit word, by the processor's own instruction."""

    def generate(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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
