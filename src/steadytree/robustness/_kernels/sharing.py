"""The least loss of two levels of splits in a region, to rows that count there in part.

A row is lost if one of the regions of a tree loses it, so its loss is at least any average of what
the regions would lose of it. Give each region a share of the row's weight, shares adding up to the
whole: the regions' least losses add up to a bound, and each can be found on its own.
"""

import numpy as np

from steadytree._base.jit import kernel
from steadytree.robustness._kernels.cost import box_costs
from steadytree.robustness._kernels.lists import open_splits


@kernel
def loss_rate(cost, price, limit, shared):
    """Part of a row that is lost at a cost."""
    if shared:
        return max(0.0, 1.0 - price * cost)
    return 1.0 if cost <= limit else 0.0


@kernel
def beyond(more, paid, joint):
    """What a row pays for one more side; `joint` where only the larger of both costs counts."""
    return max(0.0, more - paid) if joint and more < np.inf else more


@kernel
def extra_costs(path, base, rows, wanted, table):
    """What going to either side of the wanted splits costs rows beyond `base`.

    The array is (2, n_candidates, m), with infinity for the others.
    """
    splits, sides = path
    n_candidates, size = table.feature.shape[0], rows.shape[0]
    extra, paid = np.full((2, n_candidates, size), np.inf), np.empty(size)
    for split in wanted:
        paid[:] = 0.0
        if table.largest:
            paid[:] = base[rows]
        for above in range(0 if table.largest else sides[-1]):
            if table.feature[splits[above]] == table.feature[split]:
                way = table.left_cost if sides[above] == 0 else table.right_cost
                for index in range(size):  # within a column the most expensive split counts
                    paid[index] = max(paid[index], way[splits[above], rows[index]])
        for side in range(2):
            prices = table.left_cost[split] if side == 0 else table.right_cost[split]
            for index in range(size):
                extra[side, split, index] = beyond(prices[rows[index]], paid[index], True)
    return extra


@kernel
def crossing_losses(start, order, worth, drop, paid, extra, joint, spending, crossed):
    """Fill crossed (2, m) with what groups of rows lose on either side of a split.

    Group k is order[start[k] : start[k + 1]]; its rows, one after another, lose `worth` before they
    pay for the split, and `drop` less for every unit; `paid` is what they paid so far.
    """
    limit, shared = spending[1], spending[2]
    for way in range(2):
        for group in range(start.shape[0] - 1):
            total = 0.0
            for at in range(start[group], start[group + 1]):
                cost = beyond(extra[way, order[at]], paid[at], joint)
                if shared:
                    total += max(0.0, worth[at] - drop[at] * cost)
                elif drop[at] + cost <= limit:
                    total += worth[at]
            crossed[way, group] = total


@kernel
def all_crossing_losses(start, order, worth, drop, by_row, spending, across):
    """Fill across (2, n_groups, n_candidates) with `crossing_losses` of all splits at once.

    by_row (2, m, n_candidates) holds what both sides of each split cost, whatever was paid before.
    """
    limit, shared = spending[1], spending[2]
    across[:] = 0.0
    for way in range(2):
        for group in range(start.shape[0] - 1):
            total = across[way, group]
            for at in range(start[group], start[group + 1]):
                extra, most, less = by_row[way, order[at]], worth[at], drop[at]
                if shared:
                    for split in range(extra.shape[0]):
                        total[split] += max(0.0, most - less * extra[split])
                else:
                    for split in range(extra.shape[0]):
                        total[split] += most if less + extra[split] <= limit else 0.0


@kernel
def grouped(keys, n_groups):
    """Rows in the order of their groups, and where each group starts."""
    start = np.zeros(n_groups + 1, np.int64)
    for key in keys:
        start[key + 1] += 1
    start, order = np.cumsum(start), np.empty(keys.shape[0], np.int64)
    at = start.copy()
    for index in range(keys.shape[0]):
        order[at[keys[index]]] = index
        at[keys[index]] += 1
    return start, order


@kernel
def below_first(first, home, region, allowed, table, options, losses, found):
    """Fill options (2, m, 3) and losses (2, m) with leaves and splits below a first split.

    Each row counts on its own side of it alone. region is (base, extra, label, weight, spending);
    found (2,) becomes their numbers. Returns the least loss of each side.
    """
    base, extra, by_row, label, weight, spending = region
    price, limit, shared, penalty = spending
    n_classes, n, n_candidates = table.n_classes, base.shape[0], extra.shape[1]
    start, order = grouped(home * n_classes + label, 2 * n_classes)
    worth, drop, paid = np.empty(n), np.empty(n), np.empty(n)
    lost, crossed = np.zeros(2 * n_classes), np.empty((2, 2 * n_classes))
    across = np.empty((2, 2 * n_classes, n_candidates))
    for at in range(n):
        index = order[at]
        paid[at] = extra[home[index], first, index]
        cost = base[index] + paid[at]
        worth[at] = weight[index] * loss_rate(cost, price, limit, shared)
        drop[at] = weight[index] * price if shared else cost
        lost[home[index] * n_classes + label[index]] += worth[at]
    found[:] = n_classes
    for side in range(2):
        total = lost[side * n_classes : (side + 1) * n_classes].sum()
        for one in range(n_classes):
            options[side, one, 0], options[side, one, 1], options[side, one, 2] = -1, one, one
            losses[side, one] = total - lost[side * n_classes + one]
    if not table.largest:
        all_crossing_losses(start, order, worth, drop, by_row, spending, across)
    for split in np.flatnonzero(allowed[0] | allowed[1]):
        if table.largest or table.feature[first] == table.feature[split]:
            own = extra[:, split]
            crossing_losses(start, order, worth, drop, paid, own, True, spending, crossed)
        else:
            crossed[:] = across[:, :, split]
        for side in range(2):
            begin = side * n_classes
            total = penalty + lost[begin : begin + n_classes].sum()
            for one in range(n_classes):
                for two in range(n_classes):
                    if one == two or not allowed[side, split]:
                        continue
                    at = found[side]
                    loss = total - lost[begin + one] - lost[begin + two]
                    losses[side, at] = loss + crossed[1, begin + one] + crossed[0, begin + two]
                    options[side, at, 0] = split
                    options[side, at, 1], options[side, at, 2] = one, two
                    found[side] += 1
    return losses[0, : found[0]].min(), losses[1, : found[1]].min()


@kernel
def add_option(option, extra, first, side, label, joint, costs):
    """Lower costs (n,), beyond the region's base, to those of a wrong leaf below one side."""
    split, left, right = option[0], option[1], option[2]
    for index in range(costs.shape[0]):
        paid = extra[side, first, index]
        if split < 0 and label[index] != left:
            costs[index] = min(costs[index], paid)
        if split >= 0 and label[index] != left:
            more = beyond(extra[0, split, index], paid, joint)
            costs[index] = min(costs[index], paid + more)
        if split >= 0 and label[index] != right:
            more = beyond(extra[1, split, index], paid, joint)
            costs[index] = min(costs[index], paid + more)


@kernel
def best_below(first, region, table, options, losses, found, least, best, winner):
    """The least loss of pairs of options below a first split, where it is less than `best`."""
    # of a pair below `best` each option's own loss and the least on the other side are below it
    base, extra, _, label, weight, (price, limit, shared, penalty) = region
    n = base.shape[0]
    kept = np.empty((2, losses.shape[1]), np.int64)
    n_kept = np.zeros(2, np.int64)
    for side in range(2):
        near = np.flatnonzero(penalty + losses[side, : found[side]] + least[1 - side] < best)
        n_kept[side] = near.shape[0]
        kept[side, : near.shape[0]] = near[np.argsort(losses[side][near])]
    lost = np.empty((2, n_kept.max(), n))
    for side in range(2):
        for at in range(n_kept[side]):
            option = options[side, kept[side, at]]
            joint = table.largest or table.feature[first] == table.feature[option[0]]
            lost[side, at] = np.inf
            add_option(option, extra, first, side, label, joint, lost[side, at])
            for index in range(n):
                cost = base[index] + lost[side, at, index]
                lost[side, at, index] = weight[index] * loss_rate(cost, price, limit, shared)
    for one in range(n_kept[0]):
        left = kept[0, one]
        for two in range(n_kept[1]):
            right = kept[1, two]
            if penalty + losses[0, left] + losses[1, right] >= best:
                break
            total = penalty * (1 + (options[0, left, 0] >= 0) + (options[1, right, 0] >= 0))
            for index in range(n):
                total += max(lost[0, one, index], lost[1, two, index])
            if total < best:
                best, winner[0] = total, first
                winner[1:4], winner[4:] = options[0, left], options[1, right]
    return best


@kernel
def tree_rates(winner, base, extra, spending, table, rates):
    """Fill rates (n,) with the part of each row that the winning sub-tree loses."""
    price, limit, shared, _ = spending
    rates[:] = np.inf
    if winner[0] < 0:
        rates[table.label != winner[1]] = 0.0
    else:
        for side in range(2):
            option = winner[1 + 3 * side : 4 + 3 * side]
            joint = table.largest or table.feature[winner[0]] == table.feature[option[0]]
            add_option(option, extra, winner[0], side, table.label, joint, rates)
    for row in range(base.shape[0]):
        rates[row] = loss_rate(base[row] + rates[row], price, limit, shared)


@kernel
def least_two_levels(path, table, weight, spending, rates):
    """Least loss of at most two levels of splits in a region, of rows with these weights.

    path is (splits, sides) with room for one more, its last entry of sides their number; all rows
    count, those outside with the cost of getting in. spending is (price, limit, shared, penalty of
    a split). rates (n,) becomes the part of each row that the best sub-tree loses.
    """
    price, limit, shared, penalty = spending
    splits, sides = path
    n, n_classes, depth = table.label.shape[0], table.n_classes, sides[-1]
    base, counts = np.empty(n), np.zeros(n)
    box_costs(splits, sides, depth, table, base)
    totals = np.zeros(n_classes)
    for row in range(n):
        counts[row] = weight[row] * loss_rate(base[row], price, limit, shared)
        totals[table.label[row]] += counts[row]
    winner = np.full(7, -1)
    winner[1] = np.argmax(totals)
    best = totals.sum() - totals.max()
    rows = np.flatnonzero(counts > 0.0)
    wanted = np.flatnonzero(open_splits(splits, sides, depth, table))
    extra = extra_costs(path, base, rows, wanted, table)
    by_row = np.ascontiguousarray(extra.transpose((0, 2, 1)))
    region = base[rows], extra, by_row, table.label[rows], weight[rows], spending
    room = table.feature.shape[0] * n_classes * (n_classes - 1) + n_classes
    options, losses = np.empty((2, room, 3), np.int64), np.empty((2, room))
    found, home = np.empty(2, np.int64), np.empty(rows.shape[0], np.int64)
    allowed = np.empty((2, table.feature.shape[0]), np.bool_)
    for first in wanted:
        for side in range(2):
            splits[depth], sides[depth] = first, side
            allowed[side] = open_splits(splits, sides, depth + 1, table)
        for index in range(rows.shape[0]):
            home[index] = 0 if extra[0, first, index] <= extra[1, first, index] else 1
        least = below_first(first, home, region, allowed, table, options, losses, found)
        if penalty + least[0] + least[1] < best:
            best = best_below(first, region, table, options, losses, found, least, best, winner)
    if winner[0] >= 0:
        wanted = np.unique(np.array([winner[0], max(winner[1], 0), max(winner[4], 0)]))
    extra = extra_costs(path, base, np.arange(n), wanted, table)
    tree_rates(winner, base, extra, spending, table, rates)
    return best
