"""Lay out the bins and rules of a feature space."""

from typing import NamedTuple

import numpy as np

from steadytree._base.jit import kernel


@kernel
def find_bin(x, cuts, uniform):
    """Number of cuts below x, so that `code <= q` is the same question as `x <= cuts[q]`.

    For evenly spaced cuts the place is guessed and then mended, which is exact and needs about
    one comparison instead of nine.
    """
    last = cuts.shape[0] - 1
    if last < 0 or x <= cuts[0]:
        return 0
    if x > cuts[last]:
        return last + 1
    if uniform:
        place = np.int64((x - cuts[0]) / (cuts[last] - cuts[0]) * last)
        while place <= last and cuts[place] < x:
            place += 1
        while place > 0 and cuts[place - 1] >= x:
            place -= 1
        return place
    low, high = 0, last
    while low < high:
        middle = (low + high) >> 1
        if cuts[middle] < x:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def is_uniform(cuts):
    """Whether cuts are evenly spaced to within half a step, so that a bin can be guessed."""
    last = cuts.shape[0] - 1
    if last < 2:
        return False
    step = (cuts[last] - cuts[0]) / last
    if not np.isfinite(step):
        return False
    worst = 0.0
    for place in range(last + 1):
        worst = max(worst, abs(cuts[place] - (cuts[0] + step * place)))
    return worst <= step / 2


@kernel
def encode_bins(X, cuts, cut_offsets, n_categories, codes):
    """Fill codes (p, n) with bin numbers; missing takes the code after a feature's last bin.

    Feature j owns cuts[cut_offsets[j]:cut_offsets[j + 1]]; n_categories[j] > 0 marks a
    categorical feature whose values are category numbers, anything else being missing.
    """
    for feature in range(X.shape[1]):
        own = cuts[cut_offsets[feature] : cut_offsets[feature + 1]]
        size, uniform = n_categories[feature], is_uniform(own)
        for row in range(X.shape[0]):
            x = np.float64(X[row, feature])
            if size > 0:
                known = x >= 0.0 and x < size
                codes[feature, row] = np.int64(x) if known else size
            elif np.isnan(x):
                codes[feature, row] = own.shape[0] + 1
            else:
                codes[feature, row] = find_bin(x, own, uniform)
    return codes


@kernel
def occupied_bins(codes, bin_offsets):
    """Tell for every bin whether any row is in it. codes (p, n); returns (n_bins,) bool."""
    occupied = np.zeros(bin_offsets[-1], dtype=np.bool_)
    for feature in range(codes.shape[0]):
        start = bin_offsets[feature]
        for row in range(codes.shape[1]):
            occupied[start + codes[feature, row]] = True
    return occupied


@kernel
def recode(codes, bin_offsets, new_code, recoded):
    """Fill recoded (p, n) with new_code[bin] of every code."""
    for feature in range(codes.shape[0]):
        start = bin_offsets[feature]
        for row in range(codes.shape[1]):
            recoded[feature, row] = new_code[start + codes[feature, row]]
    return recoded


@kernel
def summarise_columns(X):
    """Return per column: least and largest finite value, missing count, infinite count, whole.

    X (n, p) float. Columns without a finite value have low = inf, high = -inf. `whole` is True
    when every finite value is an integer.
    """
    n, p = X.shape
    low, high = np.full(p, np.inf), np.full(p, -np.inf)
    missing, infinite = np.zeros(p, dtype=np.int64), np.zeros(p, dtype=np.int64)
    whole = np.ones(p, dtype=np.bool_)
    for row in range(n):
        for column in range(p):
            x = np.float64(X[row, column])
            if np.isnan(x):
                missing[column] += 1
            elif np.isinf(x):
                infinite[column] += 1
            else:
                low[column] = min(low[column], x)
                high[column] = max(high[column], x)
                if whole[column] and x != np.floor(x):
                    whole[column] = False
    return low, high, missing, infinite, whole


@kernel
def rule_goes_left(code, table, rule):
    """Answer one rule of a SplitArrays for one code of its feature."""
    feature = table.feature[rule]
    if np.int64(code) >= table.bin_sizes[feature]:
        return table.missing_left[rule]
    if table.bin[rule] < 0:
        return True
    if table.by_value[feature]:
        return np.int64(code) == table.bin[rule]
    return np.int64(code) <= table.bin[rule]


@kernel
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


@kernel
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


@kernel
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


@kernel
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


@kernel
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


@kernel
def split_level(rule, counts, positions, last_level):
    """Class counts of all children in order, and which of them stay open.

    rule (n_open,) is -1 for a leaf; counts (2, n_open, n_classes) are of the left and the right
    child; positions (n_open,) uint64. A child stays open unless this is the last level or its
    rows are of one class.

    Returns children (2 * n_split, n_classes), left first; left_slot and right_slot (n_open,),
    -1 where closed; which (n_next,) child each next slot is; and its positions (n_next,).
    """
    _, n_open, n_classes = counts.shape
    n_split = 0
    for node in range(n_open):
        n_split += rule[node] >= 0
    children = np.empty((2 * n_split, n_classes), dtype=counts.dtype)
    slots = np.full((2, n_open), -1, dtype=np.int64)
    which = np.empty(2 * n_split, dtype=np.int64)
    below = np.empty(2 * n_split, dtype=np.uint64)
    child, n_next = 0, 0
    for node in range(n_open):
        if rule[node] < 0:
            continue
        for side in range(2):
            n_present = 0
            for class_ in range(n_classes):
                children[child, class_] = counts[side, node, class_]
                n_present += counts[side, node, class_] > 0
            if n_present > 1 and not last_level:
                slots[side, node] = n_next
                which[n_next] = child
                below[n_next] = np.uint64(2) * positions[node] + np.uint64(1 + side)
                n_next += 1
            child += 1
    return children, slots[0], slots[1], which[:n_next], below[:n_next]


MOST_DIGITS = 15


@kernel
def short_between(low, high):
    """The number with fewest decimals in the middle half between two values.

    Where no float lies between them it is the upper one, which ``x >= edge`` tells from the lower.
    """
    middle = low + (high - low) / 2
    if middle <= low:
        middle = high
    scale = 1.0
    for _ in range(MOST_DIGITS + 1):
        rounded = np.rint(middle * scale) / scale
        if abs(rounded - middle) <= (high - low) / 4 and low < rounded <= high:
            return rounded
        scale *= 10
    return middle


@kernel
def short_edges(values):
    """Short numbers between neighbours of rising values (n,): (n - 1,), none for fewer than two."""
    edges = np.empty(max(values.shape[0] - 1, 0))
    for k in range(edges.shape[0]):
        edges[k] = short_between(values[k], values[k + 1])
    return edges


class SplitArrays(NamedTuple):
    """Bins of each feature, and the rules between them, feature by feature, by rising bin.

    Rule r sends left what has `code <= bin[r]`, or `code == bin[r]` where the feature is by_value
    (categorical); bin -1 sends left whatever is there. Missing goes left where missing_left[r].
    It stands for the thresholds first[r]..last[r], which divide the data at hand alike.
    """

    bin_offsets: np.ndarray  # (p + 1,) int64: bins of feature j, the missing one last if there
    bin_sizes: np.ndarray  # (p,) int64: bins of feature j without the missing one
    by_value: np.ndarray  # (p,) bool
    offsets: np.ndarray  # (p + 1,) int64: rules of feature j
    feature: np.ndarray  # (n_rules,) int64
    bin: np.ndarray  # (n_rules,) int64
    missing_left: np.ndarray  # (n_rules,) bool
    first: np.ndarray  # (n_rules,) int64
    last: np.ndarray  # (n_rules,) int64
    candidate_offsets: np.ndarray  # (p + 1,) int64: rules of feature j before merging


@kernel
def list_rules(occupied, full_offsets, n_categories, has_missing):
    """Merge empty bins and list the rules that are left, feature by feature, by rising bin.

    occupied (n_full_bins,) bool, a feature's missing bin last; n_categories (p,) is 0 for numbers.
    Two categories need one rule, one category none. With missing values each rule comes twice,
    missing on the right and on the left, and a last one asks whether the value is there: for
    numbers that is the last bin, for categories bin -1; its threshold is one past the others.

    Returns bin_sizes (p,), n_rules (p,), new_code (n_full_bins,), and bin, missing_left, first,
    last of each rule.
    """
    p = n_categories.shape[0]
    bin_sizes, n_rules = np.zeros(p, np.int64), np.zeros(p, np.int64)
    new_code = np.zeros(occupied.shape[0], np.int64)
    room = 2 * occupied.shape[0] + p
    bin_, first, last = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    missing_left = np.zeros(room, np.bool_)
    total = 0
    for feature in range(p):
        start, before = full_offsets[feature], total
        n_full = full_offsets[feature + 1] - start - 1
        by_value = n_categories[feature] > 0
        asked = n_full if n_full > 2 else n_full - 1  # categories worth a rule of their own
        size, previous = 0, -1
        for code in range(n_full):
            if occupied[start + code]:
                bounds = (code, code) if by_value else (previous, code - 1)
                if (by_value and code < asked) or (not by_value and size > 0):
                    for side in range(1 + has_missing[feature]):
                        bin_[total] = size if by_value else size - 1
                        first[total], last[total] = bounds
                        missing_left[total] = side == 1
                        total += 1
                previous = code
                size += 1
            new_code[start + code] = max(size - 1, 0)
        new_code[start + n_full] = size
        if has_missing[feature]:
            bin_[total] = -1 if by_value else size - 1
            first[total] = last[total] = n_full if by_value else n_full - 1
            total += 1
        bin_sizes[feature], n_rules[feature] = size, total - before
    rules = (bin_[:total], missing_left[:total], first[:total], last[:total])
    return bin_sizes, n_rules, new_code, rules
