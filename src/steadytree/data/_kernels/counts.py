"""Loops over binned rows: candidate splits, class counts, and rows that go to their nodes."""

from typing import NamedTuple

import numpy as np

from steadytree._base.jit import kernel


@kernel
def split_goes_left(bin_index, table, split):
    """Whether a split sends a value of its feature, given by its bin (int64), to the left."""
    feature = table.feature[split]
    if np.int64(bin_index) >= table.bin_sizes[feature]:
        return table.missing_left[split]
    if table.bin[split] < 0:
        return True
    if table.by_value[split]:
        return np.int64(bin_index) == table.bin[split]
    return np.int64(bin_index) <= table.bin[split]


def count_classes(binned, labels, node_of_row, n_nodes, bin_offsets, n_classes):
    """Count rows per node, bin and class.

    binned (p, n) unsigned, feature by feature so that one feature's counters stay in the cache;
    labels (n,) and node_of_row (n,) integers; a negative node leaves the row out.
    Returns (n_nodes, n_bins, n_classes) int64. Callers check ranges; the loop does not.
    """
    weights = np.empty(0, np.int64)
    return weigh_classes(binned, labels, node_of_row, weights, n_nodes, bin_offsets, n_classes)


def weigh_classes(binned, labels, node_of_row, weights, n_nodes, bin_offsets, n_classes):
    """As `count_classes`, each row counting as its weight, if there are any; of their type.

    Rows that count are listed first where some do not, since a branch for each row of each
    feature is mispredicted half of the time.
    """
    counts = np.zeros((n_nodes, bin_offsets[-1], n_classes), weights.dtype)
    counted, rows = node_of_row >= 0, np.empty(0, np.uint32)
    if not counted.all():
        rows = np.flatnonzero(counted).astype(np.uint32)
        labels, node_of_row = labels[rows], node_of_row[rows]
        weights = weights[rows] if len(weights) else weights
    given = binned, rows, labels, node_of_row, weights, bin_offsets, counts
    add_counts(*given, 0, len(binned))
    return counts


@kernel
def add_counts(binned, rows, labels, node_of_row, weights, bin_offsets, counts, first, last):
    """Add to counts what `weigh_classes` returns, for features first up to last.

    Labels, nodes and weights are of the given rows; no rows stand for all.
    """
    one, listed, weighed = weights.dtype.type(1), rows.shape[0] > 0, weights.shape[0] > 0
    for feature in range(first, last):
        start = bin_offsets[feature]
        for index in range(labels.shape[0]):
            row = np.int64(rows[index]) if listed else index
            weight = weights[index] if weighed else one
            counts[node_of_row[index], start + binned[feature, row], labels[index]] += weight


@kernel
def move_rows(binned, node_of_row, table, split, left_node, right_node):
    """Send every row of the last level to its node in the next one, in place.

    split, left_node and right_node are per node of the last level; a split of -1 closes the node,
    and its rows get node -1.
    """
    for row in range(node_of_row.shape[0]):
        node = node_of_row[row]
        if node < 0:
            continue
        chosen = split[node]
        if chosen < 0:
            node_of_row[row] = -1
            continue
        left = split_goes_left(np.int64(binned[table.feature[chosen], row]), table, chosen)
        node_of_row[row] = left_node[node] if left else right_node[node]


def order_rows(bins, starts, table, split, left_node, right_node):
    """The rows in the order of the next level's nodes, and where each of these nodes starts.

    bins (n, p) are in the order of the last level's nodes, node k having starts[k]:starts[k + 1].
    Rows of a node keep their order; those of closed nodes are left out. For split, left_node and
    right_node see `move_rows`; open nodes must be numbered by parent, left before right.
    """
    order = np.empty((2, starts[-1] - starts[0]), np.uint32)
    ends = np.zeros(max(left_node.max(initial=-1), right_node.max(initial=-1)) + 2, np.int64)
    fill_order(bins, starts, table, split, left_node, right_node, order, ends)
    return order[0, : ends[-1]], ends


@kernel
def fill_order(bins, starts, table, split, left_node, right_node, order, ends):
    """As `order_rows`, into order (2, n_rows), whose second row is scratch, and ends."""
    filled = 0
    for node in range(split.shape[0]):
        if split[node] < 0:
            continue
        feature, n_right = table.feature[split[node]], 0
        keep_left, keep_right = left_node[node] >= 0, right_node[node] >= 0
        for row in range(starts[node], starts[node + 1]):  # written, and kept if on that side
            is_left = split_goes_left(np.int64(bins[row, feature]), table, split[node])
            order[0, filled], order[1, n_right] = row, row
            filled += is_left and keep_left
            n_right += not is_left and keep_right
        if keep_left:
            ends[left_node[node] + 1] = filled
        for index in range(n_right):
            order[0, filled + index] = order[1, index]
        filled += n_right
        if keep_right:
            ends[right_node[node] + 1] = filled


@kernel
def count_nodes(bins, labels, weights, starts, bin_offsets, n_classes, counts, first, last):
    """Add each node's rows to counts (n_nodes, n_bins * n_classes), for features first up to last.

    Rows are in the order of nodes, as `order_rows` leaves them, so that one node's counters stay
    in the cache. Weights and counts are of one type, integers where rows have no weights.
    """
    one = weights.dtype.type(1)
    for node in range(starts.shape[0] - 1):
        own = counts[node]
        for row in range(starts[node], starts[node + 1]):
            weight, label = one, labels[row]
            if weights.shape[0] > 0:
                weight = weights[row]
            for feature in range(first, last):
                bin_index = bin_offsets[feature] + np.int64(bins[row, feature])
                own[bin_index * n_classes + label] += weight


def child_counts(counts, table, split):
    """Class counts (n_nodes, n_classes) of each node, and (2, n_nodes, n_classes) of its children.

    counts (n_nodes, n_bins, n_classes); split (n_nodes,) into the table, -1 leaving the children
    at zero. Any feature's bins hold all rows of a node, so the first one's give the node's. Both
    children are summed, since weights subtracted would leave crumbs.
    """
    found = np.zeros((3, len(counts), counts.shape[2]), counts.dtype)
    add_children(counts, table, split, found)
    return found[0], found[1:]


@kernel
def add_children(counts, table, split, found):
    """As `child_counts`: add nodes, left and right children to found (3, n_nodes, n_classes)."""
    for node in range(counts.shape[0]):
        for bin_ in range(table.bin_offsets[1]):
            for class_ in range(counts.shape[2]):
                found[0, node, class_] += counts[node, bin_, class_]
        chosen = split[node]
        if chosen < 0:
            continue
        feature = table.feature[chosen]
        start = table.bin_offsets[feature]
        for bin_index in range(table.bin_offsets[feature + 1] - start):
            side = 1 if split_goes_left(bin_index, table, chosen) else 2
            for class_ in range(counts.shape[2]):
                found[side, node, class_] += counts[node, start + bin_index, class_]


def split_level(split, counts, positions, last_level):
    """Class counts of all children in order, and which of them stay open.

    split (n_open,) is -1 for a leaf; counts (2, n_open, n_classes) are of the left and the right
    child; positions (n_open,) uint64. A child stays open unless this is the last level or its
    rows are of one class.

    Returns children (2 * n_split, n_classes), left first; the next node of the left and the
    right child (n_open,), -1 if closed; which (n_next,) child each is; positions (n_next,).
    """
    n_children = 2 * np.count_nonzero(split >= 0)
    children = np.empty((n_children, counts.shape[2]), counts.dtype)
    next_node, which = np.empty((2, len(split)), np.int64), np.empty(n_children, np.int64)
    below = np.empty(n_children, np.uint64)
    given = split, counts, positions, last_level
    n_next = fill_level(*given, children, next_node, which, below)
    return children, next_node[0], next_node[1], which[:n_next], below[:n_next]


@kernel
def fill_level(split, counts, positions, last_level, children, next_node, which, below):
    """Fill what `split_level` returns; how many children stay open."""
    child, n_next = 0, 0
    for node in range(split.shape[0]):
        for side in range(2):
            next_node[side, node] = -1
            if split[node] < 0:
                continue
            n_observed = 0
            for class_ in range(counts.shape[2]):
                children[child, class_] = counts[side, node, class_]
                n_observed += counts[side, node, class_] > 0
            if n_observed > 1 and not last_level:
                next_node[side, node] = n_next
                which[n_next] = child
                below[n_next] = np.uint64(2) * positions[node] + np.uint64(1 + side)
                n_next += 1
            child += 1
    return n_next


class SplitArrays(NamedTuple):
    """Bins of each feature, and the splits between them, by feature and rising threshold.

    Split s sends a value left if its bin is at most bin[s], or equal to it where by_value[s] (one
    category); bin -1 sends left every value that is not missing. Missing values go left where
    missing_left[s]. A split stands for the thresholds first[s]..last[s], which divide the rows
    alike. For a category that is its index; then come the groups of categories that begin an
    order, and one past the last threshold asks whether the value is missing.
    """

    bin_offsets: np.ndarray  # (p + 1,) int64: bins of feature j, the missing one last if there
    bin_sizes: np.ndarray  # (p,) int64: bins of feature j without the missing one
    offsets: np.ndarray  # (p + 1,) int64: splits of feature j
    feature: np.ndarray  # (n_splits,) int32
    bin: np.ndarray  # (n_splits,) int32
    missing_left: np.ndarray  # (n_splits,) bool
    first: np.ndarray  # (n_splits,) uint16
    last: np.ndarray  # (n_splits,) uint16
    by_value: np.ndarray  # (n_splits,) bool
    candidate_offsets: np.ndarray  # (p + 1,) int64: splits of feature j before merging


def list_splits(occupied, full_offsets, n_categories, has_missing, order, grouped):
    """Merge empty bins and list the splits that remain, by feature and rising threshold.

    occupied (n_full_bins,) bool, a feature's missing bin last; n_categories (p,) is 0 for numbers;
    order (n_full_bins,) lists the categories of each feature in the order of merged bins; it is not
    read for numbers. Two categories need one split, one category none. Where grouped (p,), two and
    more categories that begin the order get a split too, if two others are left. With missing
    values each split comes twice, missing on the right and on the left, and a last one asks
    whether the value is there: for numbers that is the last bin, for categories bin -1; its
    threshold is one past the others.

    Returns bin_sizes (p,), n_splits (p,), merged_bin (n_full_bins,), and bin, missing_left, first,
    last, by_value of each split.
    """
    p, n_bins = len(n_categories), len(occupied)
    sizes, merged_bin = np.zeros((2, p), np.int64), np.zeros(n_bins, np.uint16)
    there = np.add.reduceat(occupied, full_offsets[:-1], dtype=np.int64)
    at_most = np.where(n_categories > 0, 2 * np.diff(full_offsets), there)
    room = int(at_most @ (1 + has_missing)) + p  # at least as many splits as there are
    bins, ends = np.zeros(room, np.int32), np.zeros((2, room), np.uint16)
    splits = bins, ends, np.zeros((2, room), np.bool_)
    given = occupied, full_offsets, n_categories, has_missing, order, grouped
    total = fill_splits(*given, sizes, merged_bin, splits)
    (first, last), (missing_left, by_value) = (part[:, :total] for part in splits[1:])
    return sizes[0], sizes[1], merged_bin, (bins[:total], missing_left, first, last, by_value)


@kernel
def put_split(splits, total, bin_, first, last, by_value, n_sides):
    """Write a split for each side of missing values; return the new total."""
    for side in range(n_sides):
        bins, ends, sides = splits
        bins[total], ends[0, total], ends[1, total] = bin_, first, last
        sides[0, total], sides[1, total] = side > 0, by_value > 0
        total += 1
    return total


@kernel
def fill_splits(
    occupied, full_offsets, n_categories, has_missing, order, grouped, sizes, merged_bin, splits
):
    """As `list_splits`, into sizes (2, p), merged_bin and splits; how many there are.

    Splits are bin (room,), first and last (2, room), and missing_left and by_value (2, room).
    """
    zero, one = np.int64(0), np.int64(1)  # for numba, plain ones are types, and compiled apart
    total = zero
    for feature in range(n_categories.shape[0]):
        start, before, n_sides = full_offsets[feature], total, one + has_missing[feature]
        n_full = full_offsets[feature + 1] - start - 1
        is_text = n_categories[feature] > 0
        size, previous = zero, -one
        for position in range(n_full):
            bin_index = np.int64(order[start + position] if is_text else position)
            if occupied[start + bin_index]:
                if not is_text and size > 0:
                    ends = previous, bin_index - one
                    total = put_split(splits, total, size - one, *ends, zero, n_sides)
                previous = bin_index
                size += 1
            merged_bin[start + bin_index] = max(size - one, zero)
        merged_bin[start + n_full] = size
        if is_text:
            for category in range(n_full if n_full > 2 else n_full - 1):
                if occupied[start + category]:
                    own = np.int64(merged_bin[start + category])
                    total = put_split(splits, total, own, category, category, one, n_sides)
            for last in range(1, size - 2 if grouped[feature] else 0):
                group = n_full + last - 1
                total = put_split(splits, total, last, group, group, zero, n_sides)
        if has_missing[feature]:
            past = n_full - 1
            if is_text:
                past = n_full + (n_full - 3 if grouped[feature] and n_full > 3 else 0)
            here = -one if is_text else size - 1
            total = put_split(splits, total, here, past, past, zero, one)
        sizes[0, feature], sizes[1, feature] = size, total - before
    return total
