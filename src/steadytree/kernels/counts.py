"""Class counts per open node, feature and bin: all that a split needs to know of the data."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def rule_goes_left(code, table, rule):
    """Answer one rule of a RuleTable for one code of its feature."""
    feature = table.feature[rule]
    if np.int64(code) >= table.bin_sizes[feature]:
        return table.missing_left[rule]
    if table.bin[rule] < 0:
        return True
    if table.by_value[feature]:
        return np.int64(code) == table.bin[rule]
    return np.int64(code) <= table.bin[rule]


@njit(cache=True, nogil=True)
def kept_rows(slots):
    """Numbers of the rows whose slot is not negative."""
    n_kept = 0
    for row in range(slots.shape[0]):
        n_kept += slots[row] >= 0
    rows = np.empty(n_kept, dtype=np.uint32)
    place = 0
    for row in range(slots.shape[0]):
        if slots[row] >= 0:
            rows[place] = row
            place += 1
    return rows


@njit(cache=True, nogil=True)
def count_classes(codes, labels, slots, n_slots, bin_offsets, n_classes):
    """Count rows per slot, bin and class.

    codes (p, n) unsigned, feature by feature so that one feature's counters stay in the cache;
    labels (n,) and slots (n,) integers; a negative slot leaves the row out. Rows that count are
    listed first: asked for each row of each feature, a processor guesses wrong half of the time.
    Returns (n_slots, n_bins, n_classes) int64. Callers check ranges; this loop does not.
    """
    counts = np.zeros((n_slots, bin_offsets[-1], n_classes), dtype=np.int64)
    rows = kept_rows(slots)
    if rows.shape[0] == slots.shape[0]:
        for feature in range(codes.shape[0]):
            start = bin_offsets[feature]
            for row in range(codes.shape[1]):
                counts[slots[row], start + codes[feature, row], labels[row]] += 1
        return counts
    own_slots, own_labels = slots[rows], labels[rows]
    for feature in range(codes.shape[0]):
        start = bin_offsets[feature]
        for place in range(rows.shape[0]):
            counts[own_slots[place], start + codes[feature, rows[place]], own_labels[place]] += 1
    return counts


@njit(cache=True, nogil=True)
def weigh_classes(codes, labels, slots, weights, n_slots, bin_offsets, n_classes):
    """As `count_classes`, each row counting as its weight. Returns float64."""
    counts = np.zeros((n_slots, bin_offsets[-1], n_classes), dtype=np.float64)
    rows = kept_rows(slots)
    own_slots, own_labels, own_weights = slots[rows], labels[rows], weights[rows]
    for feature in range(codes.shape[0]):
        start = bin_offsets[feature]
        for place in range(rows.shape[0]):
            code = codes[feature, rows[place]]
            counts[own_slots[place], start + code, own_labels[place]] += own_weights[place]
    return counts


@njit(cache=True, nogil=True)
def move_rows(codes, slots, table, rule, left_slot, right_slot):
    """Send every row of the last level to its slot in the next one, in place.

    rule, left_slot and right_slot are per slot of the last level; rule -1 closes the slot, and
    its rows get slot -1.
    """
    for row in range(slots.shape[0]):
        slot = slots[row]
        if slot < 0:
            continue
        asked = rule[slot]
        if asked < 0:
            slots[row] = -1
            continue
        left = rule_goes_left(codes[table.feature[asked], row], table, asked)
        slots[row] = left_slot[slot] if left else right_slot[slot]


@njit(cache=True, nogil=True)
def child_counts(counts, table, rule):
    """Class counts (n_nodes, n_classes) of each node, and (2, n_nodes, n_classes) of its children.

    counts (n_nodes, n_bins, n_classes); rule (n_nodes,) into the table, -1 leaving the children
    at zero. Any feature's bins hold all rows of a node, so the first one's give the node's. Both
    children are summed, since weights subtracted would leave crumbs.
    """
    n_nodes, _, n_classes = counts.shape
    totals = np.zeros((n_nodes, n_classes), dtype=counts.dtype)
    children = np.zeros((2, n_nodes, n_classes), dtype=counts.dtype)
    for node in range(n_nodes):
        for bin_ in range(table.bin_offsets[1]):
            for class_ in range(n_classes):
                totals[node, class_] += counts[node, bin_, class_]
        asked = rule[node]
        if asked < 0:
            continue
        feature = table.feature[asked]
        start = table.bin_offsets[feature]
        for code in range(table.bin_offsets[feature + 1] - start):
            side = 0 if rule_goes_left(code, table, asked) else 1
            for class_ in range(n_classes):
                children[side, node, class_] += counts[node, start + code, class_]
    return totals, children
