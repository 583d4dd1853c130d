"""Kernels of the small tree: grown best first on taught rows, its splits chosen anew, its leaves.

Of splits that are nearly as good, the first column and the roundest threshold are taken.
"""

import numpy as np

from steadytree._base.jit import kernel
from steadytree.stability._kernels.steady import (
    GROUPED,
    ORDERED,
    TIE,
    WITH_MISSING,
)

MOST_BINS = 64
KEEP, KEEP_COLUMN = (
    0.02,
    0.2,
)  # shares of a split's gain that another threshold, or column, must add
N_ROUNDS = 3


@kernel
def grow_small(
    binned,
    targets,
    weights,
    n_bins,
    kinds,
    directions,
    roundness,
    n_leaves,
    least,
    near,
    coarse,
    root,
    deepest,
):
    """A tree of at most `n_leaves` and `deepest` levels, the node of largest gain first.

    Of all columns' best splits a node gets the first, in the order of columns, whose gain is
    within a share `near` of the best; `root` names the column of the first split, -1 any.
    `roundness` and `coarse` are those of `best_splits`. Returns column, bins that go left as
    bits, and left child.
    """
    most = 2 * n_leaves - 1
    feature, left, bins = np.full(most, -1), np.full(most, -1), np.zeros(most, np.uint64)
    gain, chosen, n_nodes = np.zeros(most), np.zeros(most, np.int64), 1
    depth = np.zeros(most, np.int64)
    inside = [np.flatnonzero(weights > 0.0)]
    total = weights.sum()
    for _ in range(n_leaves - 1):
        for node in range(max(n_nodes - 2, 0), n_nodes):
            gains, found = best_splits(
                binned,
                targets,
                weights,
                n_bins,
                kinds,
                directions,
                roundness,
                inside[node],
                least,
                coarse,
            )
            chosen[node] = root
            if node or root < 0:
                chosen[node] = np.argmax(gains >= (1 - near) * (1 - TIE) * gains.max())
            gain[node], bins[node] = gains[chosen[node]], found[chosen[node]]
            if gain[node] <= TIE * total or depth[node] == deepest:
                gain[node] = 0.0
        best, node = gain[:n_nodes].max(), 0
        if best <= 0.0:
            break
        while gain[node] < best * (1 - TIE):
            node += 1
        feature[node], left[node], gain[node] = chosen[node], n_nodes, 0.0
        depth[n_nodes : n_nodes + 2] = depth[node] + 1
        rows = inside[node]
        goes = np.zeros(rows.shape[0], np.bool_)
        for position in range(rows.shape[0]):
            goes[position] = is_in(bins[node], binned[rows[position], feature[node]])
        inside.append(rows[goes])
        inside.append(rows[~goes])
        n_nodes += 2
    bins[:n_nodes] *= (left[:n_nodes] >= 0).astype(np.uint64)
    return feature[:n_nodes], bins[:n_nodes], left[:n_nodes]


@kernel
def best_splits(
    binned, targets, weights, n_bins, kinds, directions, roundness, rows, least, coarse
):
    """Gain of each column's split of some rows, 0 where there is none, and the bins that go left.

    Of a numeric column's thresholds whose gains are within a share `coarse` of the best, the one
    of largest `roundness` (d, bins), that of the threshold above each bin, is taken.
    """
    n_columns = binned.shape[1]
    gains, bins = np.zeros(n_columns), np.zeros(n_columns, np.uint64)
    masses, planes = count_bins(binned, targets, weights, rows)
    total = weights.sum()
    for column in range(n_columns):
        mass, sums = masses[column], np.ascontiguousarray(planes[:, column].T)
        orders, n_orders = bin_orders(mass[: n_bins[column]], sums, kinds[column], total)
        share = 0.0 if kinds[column] == GROUPED else coarse
        for turn in range(n_orders):
            falls = split_gains(mass, sums, orders[turn], directions[column], least)
            gain, position = roundest_split(falls, orders[turn], roundness[column], share)
            if gain > gains[column] * (1 + TIE):
                gains[column], bins[column] = gain, first_bins(orders[turn], position)
    return gains, bins


@kernel
def count_bins(binned, targets, weights, rows):
    """Weights (d, bins) and weighted targets (k, d, bins) of some rows, by column and bin."""
    n_columns, n_targets = binned.shape[1], targets.shape[1]
    mass, sums = np.zeros((n_columns, MOST_BINS)), np.zeros((n_targets, n_columns, MOST_BINS))
    for row in rows:
        own = binned[row]
        for column in range(n_columns):
            mass[column, own[column]] += weights[row]
        for k in range(n_targets):
            plane, weighted = sums[k], weights[row] * targets[row, k]
            for column in range(n_columns):
                plane[column, own[column]] += weighted
    return mass, sums


@kernel
def split_gain(passed, below, total, totals):
    """Fall of the squared error where (passed, below) of (total, totals) go left."""
    rest, gain = total - passed, 0.0
    if passed <= TIE * total or rest <= TIE * total:  # weights do not add up exactly
        return -1.0
    for k in range(totals.shape[0]):
        over = totals[k] - below[k]
        gain += below[k] ** 2 / passed + over**2 / rest - totals[k] ** 2 / total
    return gain


@kernel
def split_gains(mass, sums, order, direction, least):
    """Gain of the split after each bin of an order; 0 where a side is too small or empty.

    With a direction the mean target must not move against it, from the left to the right side.
    """
    n_targets = sums.shape[1]
    total, totals = 0.0, np.zeros(n_targets)
    for bin_ in order:
        total += mass[bin_]
        totals += sums[bin_]
    passed, below, gains = 0.0, np.zeros(n_targets), np.zeros(order.shape[0])
    for position in range(order.shape[0] - 1):
        bin_ = order[position]
        if mass[bin_] == 0.0:
            continue
        passed += mass[bin_]
        below += sums[bin_]
        rest = total - passed
        if passed < least or rest < least:
            continue
        if direction and direction * ((totals[0] - below[0]) * passed - below[0] * rest) < 0.0:
            continue
        gain = split_gain(passed, below, total, totals)
        gains[position] = gain if gain > TIE * total else 0.0
    return gains


@kernel
def roundest_split(gains, order, roundness, coarse):
    """(gain, position) of the roundest split within a share `coarse` of the best; then the best."""
    best, chosen = gains.max(), 0
    for position in range(gains.shape[0]):
        if gains[position] <= 0.0 or gains[position] < (1 - coarse) * (1 - TIE) * best:
            continue
        ours, theirs = roundness[order[position]], roundness[order[chosen]]
        better = gains[position] > gains[chosen] * (1 + TIE)
        # the first place that is near enough replaces place 0, which may not be
        unfit = gains[chosen] < (1 - coarse) * (1 - TIE) * best
        if unfit or ours > theirs or (ours == theirs and better):
            chosen = position
    return gains[chosen], chosen


@kernel
def first_bins(order, position):
    """Bits of the bins of an order up to a place."""
    bins = np.uint64(0)
    for bin_ in order[: position + 1]:
        bins |= np.uint64(1) << np.uint64(bin_)
    return bins


@kernel
def bin_orders(mass, sums, kind, total):
    """Orders (2, n_bins) in which bins may be split, and how many of the two count.

    Numbers come in their order, missing ones at either end; categories by their mean target.
    """
    n_bins = mass.shape[0]
    orders = np.empty((2, n_bins), np.int64)
    for position in range(n_bins):
        orders[0, position] = position
        orders[1, position] = position - 1 if position else n_bins - 1
    if kind == ORDERED:
        return orders, 1
    if kind == WITH_MISSING:
        return orders, 2
    means = np.zeros(sums.shape[1])
    for k in range(sums.shape[1]):
        means[k] = sums[:n_bins, k].sum() / max(mass.sum(), TIE * total)
    widest, key = -1.0, np.zeros(n_bins)
    for k in range(sums.shape[1]):  # of several classes, the one whose means vary most
        # hardly pulled to the node's mean: this only places categories that have no row here
        found = (sums[:n_bins, k] + 1e-6 * total * means[k]) / (mass + 1e-6 * total)
        spread = (mass * (found - means[k]) ** 2).sum()
        if spread > widest * (1 + TIE):
            widest, key = spread, found
    orders[0] = np.argsort(key, kind="mergesort")
    return orders, 1


@kernel
def refine_small(
    binned,
    targets,
    weights,
    n_bins,
    kinds,
    directions,
    roundness,
    feature,
    bins,
    left,
    least,
    coarse,
):
    """Splits of a small tree chosen anew, each with all others as they are.

    Each row at a node would lose something in the leaf on the left and something in the one on
    the right; another split sends rows where they lose less. A threshold of the same column must
    win KEEP of what the split is worth, another column KEEP_COLUMN, and no leaf gets less
    than `least`. Nodes and columns with a direction stay out. Returns column and bins.
    """
    feature, bins = feature.copy(), bins.copy()
    means, mass = leaf_means(binned, targets, weights, feature, bins, left)
    for _ in range(N_ROUNDS):
        moved = False
        for node in range(left.shape[0]):
            if left[node] < 0 or directions[feature[node]]:
                continue
            losses, heavy = side_losses(binned, targets, weights, feature, bins, left, means, node)
            column, chosen = ask_anew(
                losses,
                heavy,
                n_bins,
                kinds,
                directions,
                roundness,
                feature[node],
                bins[node],
                least,
                coarse,
            )
            if column == feature[node] and chosen == bins[node]:
                continue
            before = feature[node], bins[node]
            feature[node], bins[node] = column, chosen
            new_means, mass = leaf_means(binned, targets, weights, feature, bins, left)
            if mass[left < 0].min() < least:
                feature[node], bins[node] = before
            else:
                means, moved = new_means, True
        if not moved:
            break
    return feature, bins


@kernel
def leaf_means(binned, targets, weights, feature, bins, left):
    """Mean targets and weight of each leaf's rows; 0 at other nodes."""
    means, mass = np.zeros((left.shape[0], targets.shape[1])), np.zeros(left.shape[0])
    for row in range(binned.shape[0]):
        leaf = walk_from(0, binned[row], feature, bins, left)
        mass[leaf] += weights[row]
        for k in range(targets.shape[1]):
            means[leaf, k] += weights[row] * targets[row, k]
    for node in range(left.shape[0]):
        if mass[node] > 0.0:
            means[node] /= mass[node]
    return means, mass


@kernel
def walk_from(node, row, feature, bins, left):
    """Leaf below a node that a row of bins falls in."""
    while left[node] >= 0:
        node = left[node] + (not is_in(bins[node], row[feature[node]]))
    return node


@kernel
def side_losses(binned, targets, weights, feature, bins, left, means, node):
    """Squared error on the left less that on the right, and weight, by column and bin.

    Of the rows at a node.
    """
    losses = np.zeros((binned.shape[1], MOST_BINS))
    heavy = np.zeros((binned.shape[1], MOST_BINS))
    for row in range(binned.shape[0]):
        at = 0
        while at < node and left[at] >= 0:  # children come later
            at = left[at] + (not is_in(bins[at], binned[row, feature[at]]))
        if at != node or weights[row] == 0.0:
            continue
        one = walk_from(left[node], binned[row], feature, bins, left)
        other = walk_from(left[node] + 1, binned[row], feature, bins, left)
        loss = 0.0
        for k in range(targets.shape[1]):
            loss += (targets[row, k] - means[one, k]) ** 2 - (
                targets[row, k] - means[other, k]
            ) ** 2
        for column in range(binned.shape[1]):
            losses[column, binned[row, column]] += weights[row] * loss
            heavy[column, binned[row, column]] += weights[row]
    return losses, heavy


@kernel
def ask_anew(losses, heavy, n_bins, kinds, directions, roundness, own, bins, least, coarse):
    """(column, bins that go left) of a node's better split, or of the one it has.

    Sending bins left costs their losses; all rows on the cheaper side is what a split of no
    worth would cost.
    """
    total, alone, now = heavy[own].sum(), losses[own].sum(), 0.0
    for bin_ in range(n_bins[own]):
        if is_in(bins, bin_):
            now += losses[own, bin_]
    alone = min(alone, 0.0)
    worth = max(alone - now, 0.0)
    best, column, chosen = now, own, bins
    for turn in range(-1, losses.shape[0]):
        tried = own if turn < 0 else turn  # its own column first
        if turn == own or directions[tried]:
            continue
        cost, found = 0.0, np.uint64(0)
        if kinds[tried] == GROUPED:
            kept = KEEP * worth if tried == own else -1.0
            cost, found = part_groups(
                losses[tried, : n_bins[tried]], heavy[tried], bins, kept, least
            )
        else:
            orders, n_orders = bin_orders(heavy[tried, : n_bins[tried]], heavy, kinds[tried], total)
            for side in range(n_orders):
                falls = split_savings(
                    losses[tried], heavy[tried], orders[side], alone, least, total
                )
                saved, position = roundest_split(falls, orders[side], roundness[tried], coarse)
                if saved > 0.0 and alone - saved < cost - TIE * total:
                    cost, found = alone - saved, first_bins(orders[side], position)
        must = KEEP if tried == own else KEEP_COLUMN
        if found and cost < best - must * worth - TIE * total:
            best, column, chosen = cost, tried, found
    return column, chosen


@kernel
def part_groups(losses, heavy, bins, kept, least):
    """(cost, bins) of sending each category where it costs less; those that matter little stay."""
    cost, passed, rest, found = 0.0, 0.0, 0.0, np.uint64(0)
    for bin_ in range(losses.shape[0]):
        stays = abs(losses[bin_]) <= kept
        if is_in(bins, bin_) if stays else losses[bin_] < 0.0:
            found |= np.uint64(1) << np.uint64(bin_)
            cost += losses[bin_]
            passed += heavy[bin_]
        else:
            rest += heavy[bin_]
    if passed < least or rest < least:
        return 0.0, np.uint64(0)
    return cost, found


@kernel
def split_savings(losses, heavy, order, alone, least, total):
    """What the split after each bin saves beside `alone`; 0 where a side is too small."""
    saved, cost, passed = np.zeros(order.shape[0]), 0.0, 0.0
    for position in range(order.shape[0] - 1):
        bin_ = order[position]
        cost += losses[bin_]
        passed += heavy[bin_]
        if heavy[bin_] > 0.0 and passed >= least and total - passed >= least:
            saved[position] = alone - cost if alone - cost > TIE * total else 0.0
    return saved


@kernel
def is_in(bins, bin_):
    """Whether a bin is among those whose bits are set."""
    return (bins >> np.uint64(bin_)) & np.uint64(1) == np.uint64(1)


@kernel
def find_small_leaves(binned, feature, bins, left):
    """Leaf of each row in a tree of `grow_small`."""
    leaves = np.zeros(binned.shape[0], np.int64)
    for row in range(binned.shape[0]):
        node = 0
        while left[node] >= 0:
            node = left[node] + (not is_in(bins[node], binned[row, feature[node]]))
        leaves[row] = node
    return leaves
