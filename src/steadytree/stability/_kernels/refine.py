"""Splits of a small tree chosen anew, each beside the others: numpy on compiled sums by bin."""

import numpy as np

from steadytree.stability._kernels.small_tree import (
    bin_orders,
    find_small_leaves,
    first_bins,
    is_in,
    roundest_splits,
    weigh_bins,
)
from steadytree.stability._kernels.steady import GROUPED, TIE

# shares of a split's gain that another threshold, or column, must add
KEEP, KEEP_COLUMN = 0.02, 0.2
N_ROUNDS = 3


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
    rows, known = (binned, targets, weights), (n_bins, kinds, directions, roundness)
    leaves, means, _ = leaf_means(*rows, feature, bins, left)
    n_moves, tried_at = 0, np.full(len(left), -1)
    for _ in range(N_ROUNDS):
        moved = False
        for node in np.flatnonzero(left >= 0):
            if directions[feature[node]] or tried_at[node] == n_moves:  # nothing changed since
                continue
            tried_at[node] = n_moves
            tree = feature, bins, left
            losses, heavy = side_losses(*rows, *tree, leaves, means, node, int(n_bins.max()))
            before = feature[node], bins[node]
            feature[node], bins[node] = ask_anew(losses, heavy, *known, *before, least, coarse)
            if before == (feature[node], bins[node]):
                continue
            new_leaves, new_means, mass = leaf_means(*rows, feature, bins, left)
            if mass[left < 0].min() < least:
                feature[node], bins[node] = before
            else:
                leaves, means, moved = new_leaves, new_means, True
                n_moves += 1
        if not moved:
            break
    return feature, bins


def leaf_means(binned, targets, weights, feature, bins, left):
    """Leaf of each row; mean targets and weight of each leaf's rows, 0 at other nodes."""
    leaves = find_small_leaves(binned, feature, bins, left, 0)
    mass = np.bincount(leaves, weights, len(left))
    sums = [np.bincount(leaves, weights * own, len(left)) for own in targets.T]
    return leaves, np.column_stack(sums) / np.where(mass > 0.0, mass, 1.0)[:, None], mass


def side_losses(binned, targets, weights, feature, bins, left, leaves, means, node, n_bins):
    """Squared error on the left less that on the right, and weight, by column and bin.

    Of the rows at a node.
    """
    below = np.zeros(len(left), bool)
    below[node] = True
    for parent in np.flatnonzero(left >= 0):  # children come later
        below[left[parent] : left[parent] + 2] |= below[parent]
    here = np.flatnonzero(below[leaves] & (weights > 0))
    one = find_small_leaves(binned, feature, bins, left, left[node], here)
    other = find_small_leaves(binned, feature, bins, left, left[node] + 1, here)
    loss, own = np.zeros(len(here)), targets[here]
    for k in range(targets.shape[1]):
        loss += (own[:, k] - means[one, k]) ** 2 - (own[:, k] - means[other, k]) ** 2
    loss_of = np.empty((len(targets), 1))
    loss_of[here, 0] = loss
    heavy, losses = weigh_bins(binned, loss_of, weights, here, n_bins)
    return losses[0], heavy


def ask_anew(losses, heavy, n_bins, kinds, directions, roundness, own, bins, least, coarse):
    """(column, bins that go left) of a node's better split, or of the one it has.

    Sending bins left costs their losses; all rows on the cheaper side is what a split of no
    worth would cost.
    """
    bins_there = np.arange(losses.shape[1])
    total, alone = heavy[own].cumsum()[-1], min(losses[own].cumsum()[-1], 0.0)
    best = np.where(is_in(bins, bins_there), losses[own], 0.0).cumsum()[-1]
    worth = max(alone - best, 0.0)
    column, chosen, ordered = own, bins, np.where(kinds == GROUPED, 0, kinds)
    columns, orders = bin_orders(heavy, heavy[None], n_bins, ordered, total)
    saved = split_savings(losses, heavy, columns, orders, n_bins, alone, least, total)
    saved, positions = roundest_splits(saved, columns, orders, roundness, np.array(coarse))
    bits_of = first_bins(orders, positions)
    costs, found = np.zeros(len(kinds)), np.zeros(len(kinds), np.uint64)
    for turn, tried in enumerate(columns):
        if saved[turn] > 0.0 and alone - saved[turn] < costs[tried] - TIE * total:
            costs[tried], found[tried] = alone - saved[turn], bits_of[turn]
    for tried in (own, *range(len(kinds))):  # its own column first
        if kinds[tried] == GROUPED:
            kept = KEEP * worth if tried == own else -1.0
            part = slice(0, n_bins[tried])
            costs[tried], found[tried] = part_groups(
                losses[tried, part], heavy[tried, part], bins, kept, least
            )
        must = KEEP if tried == own else KEEP_COLUMN
        better = costs[tried] < best - must * worth - TIE * total
        if found[tried] and better and not directions[tried]:
            best, column, chosen = costs[tried], tried, found[tried]
    return column, chosen


def part_groups(losses, heavy, bins, kept, least):
    """(cost, bins) of sending each category where it costs less; those that matter little stay."""
    bins_there = np.arange(len(losses))
    goes = np.where(np.abs(losses) <= kept, is_in(bins, bins_there), losses < 0.0)
    passed, rest = (np.where(side, heavy, 0.0).cumsum()[-1] for side in (goes, ~goes))
    if passed < least or rest < least:
        return 0.0, np.uint64(0)
    bits = np.uint64(sum(1 << code for code in bins_there[goes].tolist()))
    return np.where(goes, losses, 0.0).cumsum()[-1], bits


def split_savings(losses, heavy, columns, orders, n_bins, alone, least, total):
    """What the split after each bin of orders (m, bins) saves beside `alone`.

    0 where a side is too small.
    """
    mass = np.take_along_axis(heavy[columns], orders, 1)
    passed = mass.cumsum(axis=1)
    saved = alone - np.take_along_axis(losses[columns], orders, 1).cumsum(axis=1)
    fits = (mass > 0.0) & (np.arange(mass.shape[1]) < n_bins[columns, None] - 1)
    fits &= (passed >= least) & (total - passed >= least) & (saved > TIE * total)
    return np.where(fits, saved, 0.0)
