"""Twins of the kernels that private trees need: rows as lists, trees by recursion; and cases."""

import numpy as np

WORD = 64


# ---- rows as bits ----
def order_by_class(labels, rows, n_classes):
    ordered, offsets = [], [0]
    for class_ in range(n_classes):
        members = [int(row) for row in rows if labels[row] == class_]
        members += [-1] * (-len(members) % WORD)
        ordered += members
        offsets.append(len(ordered) // WORD)
    return np.array(ordered, np.int64), np.array(offsets, np.int64)


def says_yes(code, bin_, by_value):
    return code == bin_ if by_value else code <= bin_


def pack_sides(binned, ordered, feature, bin_, by_value):
    bits = np.zeros((len(feature), len(ordered) // WORD), np.uint64)
    for k in range(len(feature)):
        for place, row in enumerate(ordered):
            if row >= 0 and says_yes(int(binned[feature[k], row]), bin_[k], by_value[k]):
                bits[k, place // WORD] |= np.uint64(1 << (place % WORD))
    return bits


def count_common(bits, mask, word_offsets, counts):
    for k in range(len(bits)):
        for c in range(len(word_offsets) - 1):
            words = range(word_offsets[c], word_offsets[c + 1])
            counts[k, c] = sum(bin(int(bits[k, w]) & int(mask[w])).count("1") for w in words)
    return counts


# ---- sums over trees ----
def leaf_log_weight(counts, rates, utility):
    """Rates are one number, or one a class."""
    counts = np.asarray(counts, float) * rates
    if utility == 0:
        return float(np.logaddexp.reduce(counts) - np.log(len(counts)))
    size = counts.sum()
    return 0.0 if size == 0 else float(-(size - (counts**2).sum() / size) / 2)


def all_trees(answers, labels, n_classes, depth, prior):
    """Summed weight (not its log) of all trees on rows, and by the first question."""
    log_prior, stop, rates, utility = prior
    counts = np.bincount(labels, minlength=n_classes)
    leaf = leaf_log_weight(counts, rates, utility)
    if depth == 0:
        return leaf, None
    terms = []
    for k in range(len(answers)):
        yes = answers[k]
        below = [
            all_trees(answers[:, side], labels[side], n_classes, depth - 1, prior)[0]
            for side in (yes, ~yes)
        ]
        terms.append(np.log(1 - stop) + log_prior[k] + below[0] + below[1])
    terms.append(np.log(stop) + leaf)
    return float(np.logaddexp.reduce(terms)), np.array(terms)


def root_terms(bits, word_offsets, within, log_prior, stop, rates, utility, depth):
    labels, answers = [], []
    for c in range(len(within)):
        for place in range(within[c]):
            word = word_offsets[c] + place // WORD
            labels.append(c)
            answers.append(
                [bool(int(bits[k, word]) >> (place % WORD) & 1) for k in range(len(bits))]
            )
    answers = np.array(answers, bool).reshape(len(labels), len(bits)).T
    prior = (log_prior, stop, rates, utility)
    return all_trees(answers, np.array(labels, np.int64), len(within), depth, prior)[1]


# ---- scores ----
def impurity_scores(counts, bin_offsets, feature, bin_, by_value, entropy):
    scores = np.empty((len(counts), len(feature)))
    for node in range(len(counts)):
        for k in range(len(feature)):
            cells = counts[node, bin_offsets[feature[k]] : bin_offsets[feature[k] + 1]]
            yes = np.array([says_yes(b, bin_[k], by_value[k]) for b in range(len(cells))])
            sides = cells[yes].sum(axis=0), cells[~yes].sum(axis=0)
            scores[node, k] = -sum(impurity(side, entropy) for side in sides)
    return scores


def impurity(counts, entropy):
    size = counts.sum()
    share = counts[counts > 0] / max(size, 1)
    if entropy:
        return float(-size * (share * np.log2(share)).sum())
    return float(size * (1 - (share**2).sum())) if size else 0.0


# ---- cases ----
def questions(case, most=5):
    """Questions about the case's full codes, as SplitTable lists them."""
    listed = []
    for j, column in enumerate(case.columns):
        if column.is_categorical:
            listed += [(j, b, True) for b in range(column.n_bins)]
        else:
            listed += [(j, b, False) for b in range(column.n_bins - 1)]
        listed += [(j, column.n_bins - 1, False)] if column.missing else []
    listed = listed or [(0, 0, False)]
    kept = sorted(case.rng.choice(len(listed), min(most, len(listed)), False))
    feature, bin_, by_value = zip(*(listed[k] for k in kept), strict=True)
    return np.array(feature), np.array(bin_), np.array(by_value)


def many_rows(case):
    """Rows and labels, which fill several words of a class in some cases."""
    times = int(case.rng.choice([1, 1, 6]))
    return np.tile(case.full, (1, times)), np.tile(case.labels, times)


def packed(case, most=5):
    asked, (full, labels) = questions(case, most), many_rows(case)
    rows = case.rng.permutation(len(labels))[: case.rng.integers(0, len(labels) + 1)]
    ordered, offsets = order_by_class(labels, rows, case.n_classes)
    within = np.bincount(labels[rows], minlength=case.n_classes)
    return pack_sides(full, ordered, *asked), offsets, within


def case_of_order(case):
    labels = many_rows(case)[1]
    return labels, case.rng.permutation(len(labels)), case.n_classes


def case_of_sides(case):
    full, labels = many_rows(case)
    ordered, _ = order_by_class(labels, np.arange(len(labels)), case.n_classes)
    return full, ordered, *questions(case)


def case_of_roots(case):
    bits, offsets, within = packed(case, most=4)
    prior = np.log(case.rng.dirichlet(np.ones(len(bits))))
    rng = case.rng
    rates = rng.choice([0.1, 2.0]) * rng.choice([0.0, 0.25, 1.0], len(within))
    if rng.integers(2):  # exp of one row overflows
        rates = np.full(len(within), 900.0)
    numbers = (float(rng.choice([0.05, 0.3])), rates, int(rng.integers(2)))
    return bits, offsets, within, prior, *numbers, int(rng.integers(1, 4))


def case_of_common(case):
    bits, offsets, _ = packed(case)
    mask = case.rng.integers(0, 2**64, bits.shape[1], dtype=np.uint64)
    return bits, mask, offsets, np.zeros((len(bits), case.n_classes), np.int64)


CASES = {
    "order_by_class": case_of_order,
    "pack_sides": case_of_sides,
    "count_common": case_of_common,
    "root_terms": case_of_roots,
    "impurity_scores": lambda case: (
        case.rng.integers(0, 4, (3, case.offsets[-1], case.n_classes)),
        case.offsets,
        *questions(case, 20),
        bool(case.rng.integers(2)),
    ),
}


def close(found, expected):
    """Sums in another order: equal to rounding."""
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


COMPARE = {"root_terms": close, "impurity_scores": close}
