"""Kernels that choose the splits of a small tree anew, each beside the others."""

import numpy as np

from steadytree._base.jit import kernel
from steadytree.stability._kernels.small_tree import (
    MOST_BINS,
    bin_orders,
    first_bins,
    is_in,
    roundest_split,
)
from steadytree.stability._kernels.steady import GROUPED, TIE

# shares of a split's gain that another threshold, or column, must add
KEEP, KEEP_COLUMN = 0.02, 0.2
N_ROUNDS = 3


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
            if smallest_leaf(mass, left) < least:
                feature[node], bins[node] = before
            else:
                means, moved = new_means, True
        if not moved:
            break
    return feature, bins


@kernel
def smallest_leaf(mass, left):
    """Least weight of a leaf."""
    least = np.inf
    for node in range(left.shape[0]):
        if left[node] < 0:
            least = min(least, mass[node])
    return least


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
        for k in range(targets.shape[1]):
            means[node, k] /= mass[node] if mass[node] > 0.0 else 1.0
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
    total, alone, now = 0.0, 0.0, 0.0
    for bin_ in range(MOST_BINS):
        total += heavy[own, bin_]
        alone += losses[own, bin_]
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
