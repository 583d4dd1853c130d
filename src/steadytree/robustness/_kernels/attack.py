"""Least moves of rows to another prediction of a tree or scorecard, and where they end."""

from typing import Any, NamedTuple

import numpy as np

from steadytree._base.jit import kernel
from steadytree.models._kernels import copy_into, set_all

LOW, HIGH, LEAST, GREATEST = 0, 1, 2, 3
MISSING_STAYS, OPEN = 0, 1
UP, DOWN, APPEAR, ONCE, REACH = 0, 1, 2, 3, 4
NUMBER, CATEGORY, MISSING = 0, 1, 2


class NodeTable(NamedTuple):
    """A tree's nodes as boxes, each with the one column on which its parent splits."""

    left: Any
    right: Any
    parent: Any
    column: Any  # on which the parent splits, -1 at the root
    before: Any  # nearest node above with the same column, -1 if none
    box: Any  # (n_nodes, 4): a number stays if low < x <= high, or moves to [least, greatest]
    flags: Any  # (n_nodes, 2): whether missing values stay, and whether any value can move in
    allowed: Any  # (n_nodes, width): categories that stay
    only: Any  # the one label of all leaves under a node, -1 where they differ


class MoveTable(NamedTuple):
    """What moves cost."""

    # (p, 5): one unit up (or another category), one down, a missing value, a number's moving at
    # all; and how far a number moves at most
    price: Any
    categorical: Any  # (p,)
    largest: bool  # whether the largest price over columns counts, else their sum


def narrow_nodes(feature, threshold, left, right, missing_left, n_categories, subset):
    """What each node still allows of the column on which its parent splits.

    threshold is in float64, n_categories (p,) is 0 for columns of numbers.
    Returns parent, column, before, low, high, allowed and missing; see `NodeTable`.
    """
    n_nodes, width = subset.shape
    parent, column, before = np.full(n_nodes, -1), np.full(n_nodes, -1), np.full(n_nodes, -1)
    low, high = np.full(n_nodes, -np.inf), np.full(n_nodes, np.inf)
    allowed, missing = np.ones((n_nodes, width), bool), np.ones(n_nodes, bool)
    for node in np.flatnonzero(left >= 0):
        own, last = feature[node], node
        while last >= 0 and column[last] != own:
            last = parent[last]
        for child, yes in ((left[node], True), (right[node], False)):
            parent[child], column[child], before[child] = node, own, last
            allowed[child] = np.arange(width) < n_categories[own]
            if last >= 0:
                low[child], high[child], missing[child] = low[last], high[last], missing[last]
                allowed[child] = allowed[last]
            missing[child] &= missing_left[node] == yes
            if n_categories[own] > 0:
                allowed[child] &= subset[node] == yes
            elif yes:
                high[child] = min(high[child], threshold[node])
            else:
                low[child] = max(low[child], threshold[node])
    return parent, column, before, low, high, allowed, missing


def only_labels(left, right, label):
    """The label all leaves under each node share, -1 where they differ; parents come first."""
    only = label.copy()
    for node in np.flatnonzero(left >= 0)[::-1]:
        same = only[left[node]] == only[right[node]]
        only[node] = only[left[node]] if same else -1
    return only


@kernel
def number_cost(x, low, high, least, greatest, up, down, once, reach):
    """Cost of moving a number into ``low < x <= high``, ending between least and greatest."""
    if low < x <= high:
        return 0.0
    distance, unit = (x - greatest, down) if x > high else (least - x, up)
    if least > greatest or distance > reach:
        return np.inf
    return once + distance * unit


@kernel
def value_cost(x, node, column, nodes, moves):
    """Cost of bringing one value into a node, as far as the node's own column goes."""
    box, price = nodes.box, moves.price
    if np.isnan(x):
        stays, cost = nodes.flags[node, MISSING_STAYS], price[column, APPEAR]
    elif moves.categorical[column]:
        stays, cost = nodes.allowed[node, np.int64(x)], price[column, UP]
    else:
        a, b, c, d = box[node, LOW], box[node, HIGH], box[node, LEAST], box[node, GREATEST]
        up, down = price[column, UP], price[column, DOWN]
        return number_cost(x, a, b, c, d, up, down, price[column, ONCE], price[column, REACH])
    if stays:
        return 0.0
    return cost if nodes.flags[node, OPEN] else np.inf


@kernel
def nearest_change(X, own, nodes, moves):
    """For each row of X (n, p): the least cost of another label than own, and the node to go to.

    Depth first, cheaper child first; sub-trees whose leaves all have the own label, or that cost
    as much as the best found, are skipped. Infinity and -1 where no move leads to another label.
    """
    n = X.shape[0]
    left, right, before, only = nodes.left, nodes.right, nodes.before, nodes.only
    columns = nodes.column
    box, price, categorical, largest = nodes.box, moves.price, moves.categorical, moves.largest
    distance, where = np.empty(n), np.empty(n, np.int64)
    waiting, paid = np.empty(left.shape[0], np.int64), np.empty(left.shape[0])
    set_all(where, -1)
    for row in range(n):
        best, top, node, cost, label = np.inf, 0, 0, 0.0, own[row]
        while True:
            while only[node] == -1 and cost < best:
                near, far = left[node], right[node]
                column, last, so_far = columns[near], before[near], 0.0
                x = X[row, column]
                if last >= 0 and cost > 0.0 and not largest:
                    so_far = value_cost(x, last, column, nodes, moves)
                if x == x and not categorical[column]:
                    # numbers only, no array, is handed over here: counting references to arrays
                    # would take ten times as long as the rest of the loop
                    up, down = price[column, UP], price[column, DOWN]
                    once, reach = price[column, ONCE], price[column, REACH]
                    a, b = box[near, LOW], box[near, HIGH]
                    c, d = box[near, LEAST], box[near, GREATEST]
                    near_cost = number_cost(x, a, b, c, d, up, down, once, reach)
                    a, b = box[far, LOW], box[far, HIGH]
                    c, d = box[far, LEAST], box[far, GREATEST]
                    far_cost = number_cost(x, a, b, c, d, up, down, once, reach)
                else:
                    near_cost = value_cost(x, near, column, nodes, moves)
                    far_cost = value_cost(x, far, column, nodes, moves)
                if far_cost < near_cost:
                    near, far, near_cost, far_cost = far, near, far_cost, near_cost
                near_cost = max(cost, near_cost) if largest else cost + (near_cost - so_far)
                far_cost = max(cost, far_cost) if largest else cost + (far_cost - so_far)
                if far_cost < best and only[far] != label:
                    waiting[top], paid[top] = far, far_cost
                    top += 1
                node, cost = near, near_cost
            if cost < best and only[node] != label:
                best, where[row] = cost, node
            while top > 0 and paid[top - 1] >= best:
                top -= 1
            if top == 0:
                break
            top -= 1
            node, cost = waiting[top], paid[top]
        distance[row] = best
    return distance, where


def move_rows_into(X, where, nodes, moves):
    """Rows moved into the given nodes as little as can be, and what that costs."""
    # Costs are summed column by column, so that none of the rounding along a path is left. A row
    # whose node is -1 becomes nan and costs infinity.
    moved, distance = X.astype(np.float64), np.where(where < 0, np.inf, 0.0)
    moved[where < 0] = np.nan
    order = np.argsort(where, kind="stable")
    targets, starts = np.unique(where[order], return_index=True)
    for node, rows in zip(targets, np.split(order, starts[1:]), strict=True):
        seen = set()
        while node > 0:
            column = nodes.column[node]
            if column not in seen:  # else a deeper split on the column was tighter
                seen.add(column)
                cost, moved[rows, column] = value_moves(moved[rows, column], node, nodes, moves)
                own = distance[rows]
                distance[rows] = np.maximum(own, cost) if moves.largest else own + cost
            node = nodes.parent[node]
    return moved, distance


def value_moves(x, node, nodes, moves):
    """Costs of bringing values (n,) into a node, as `value_cost`, and the nearest values there."""
    column, missing = nodes.column[node], np.isnan(x)
    price, (missing_stays, is_open) = moves.price[column], nodes.flags[node]
    low, high, least, greatest = nodes.box[node]
    if moves.categorical[column]:
        known = nodes.allowed[node]
        stays = np.where(missing, missing_stays, known[np.where(missing, 0, x).astype(np.int64)])
        cost = np.where(missing, price[APPEAR], price[UP]) if is_open else np.inf
        return np.where(stays, 0.0, cost), np.where(stays, x, float(np.argmax(known)))
    with np.errstate(invalid="ignore"):
        far = np.where(x > high, x - greatest, least - x)
        unit = np.where(x > high, price[DOWN], price[UP])
        cost = np.where(far > price[REACH], np.inf, price[ONCE] + far * unit)
    cost = np.where((low < x) & (x <= high), 0.0, cost if least <= greatest else np.inf)
    stays = (missing & missing_stays) | ((low < x) & (x <= high))
    appears = 0.0 if missing_stays else price[APPEAR] if is_open else np.inf
    end = np.minimum(np.maximum(np.where(missing, 0.0, x), least), greatest)
    return np.where(missing, appears, cost), np.where(stays, x, end)


class BinTable(NamedTuple):
    """The values of a scorecard's columns in bins, within which no condition changes."""

    column: Any  # (n_columns,): the bins of entry k are start[k] to start[k + 1] - 1
    start: Any
    sort: Any  # (n_bins,): NUMBER, CATEGORY (its index in box[:, 0]) or MISSING
    box: Any  # (n_bins, 4), as in `NodeTable`
    points: Any  # (n_bins, n_classes): what a bin adds to each class
    offset: Any  # (n_classes,): what every row has


@kernel
def lies_in(x, sort, low, high):
    """Whether x lies in a bin; a category's code is its low."""
    if x != x or sort == MISSING:
        return x != x and sort == MISSING
    return x == low if sort == CATEGORY else low < x <= high


@kernel
def bin_cost(x, sort, box, price):
    """Cost of moving x into a bin, 0 where it lies in it; price (5,) as in `MoveTable`."""
    low, high, least, greatest = box[LOW], box[HIGH], box[LEAST], box[GREATEST]
    if lies_in(x, sort, low, high):
        return 0.0
    if sort == MISSING or (sort == NUMBER and least > greatest):
        return np.inf
    if x != x:
        return price[APPEAR]
    if sort == CATEGORY:
        return price[UP]
    up, down, once, reach = price[UP], price[DOWN], price[ONCE], price[REACH]
    return number_cost(x, low, high, least, greatest, up, down, once, reach)


@kernel
def bin_value(x, sort, box):
    """The value in a bin nearest to x; x itself where it lies in it."""
    if lies_in(x, sort, box[LOW], box[HIGH]):
        return x
    if sort == CATEGORY:
        return box[LOW]
    return min(max(0.0 if x != x else x, box[LEAST]), box[GREATEST])


@kernel
def row_costs(x, bins, price, cost, home):
    """Fill cost (n_bins,) with what each bin costs a row x (p,), home with its own bins."""
    for entry in range(bins.column.shape[0]):
        column = bins.column[entry]
        value = x[column]
        for bin_ in range(bins.start[entry], bins.start[entry + 1]):
            sort, box = bins.sort[bin_], bins.box[bin_]
            cost[bin_] = bin_cost(value, sort, box, price[column])
            if lies_in(value, sort, box[LOW], box[HIGH]):
                home[entry] = bin_


@kernel
def least_largest(gain, cost, entry_of, order, needed, n_columns):
    """Least size at which the columns' best gains within it add up to `needed`."""
    # gain, cost, entry_of (n_bins,); order lists the bins that gain, by cost. Returns the size and
    # the bins to go to (n_columns,), -1 where a column stays; those not needed stay.
    chosen = np.empty(n_columns, np.int64)
    set_all(chosen, -1)
    so_far, size = 0, np.inf
    for bin_ in order:
        entry = entry_of[bin_]
        before = gain[chosen[entry]] if chosen[entry] >= 0 else 0
        if gain[bin_] > before:
            so_far += gain[bin_] - before
            chosen[entry] = bin_
        if so_far >= needed:
            size = cost[bin_]
            break
    if size == np.inf:
        return size, chosen
    for entry in range(n_columns):
        if chosen[entry] >= 0 and so_far - gain[chosen[entry]] >= needed:
            so_far -= gain[chosen[entry]]
            chosen[entry] = -1
    return size, chosen


@kernel
def least_total(gain, cost, entry_of, order, needed, n_columns):
    """As `least_largest` for the sum of costs: the cheapest way to gain what is needed."""
    # best[g] is the least cost of gaining at least g with the columns seen so far, so the work goes
    # with the points needed, not with the number of subsets.
    best, chosen = np.empty(needed + 1), np.empty(n_columns, np.int64)
    set_all(best, np.inf)
    set_all(chosen, -1)
    best[0] = 0.0
    taken = np.empty((n_columns, needed + 1), np.int64)
    for entry in range(n_columns):
        set_all(taken[entry], -1)
        earlier = best.copy()
        for bin_ in order:
            if entry_of[bin_] != entry:
                continue
            for goal in range(1, needed + 1):
                total = earlier[max(goal - gain[bin_], 0)] + cost[bin_]
                if total < best[goal]:
                    best[goal], taken[entry, goal] = total, bin_
    goal = needed
    if best[needed] < np.inf:
        for entry in range(n_columns - 1, -1, -1):
            bin_ = taken[entry, goal]
            if bin_ >= 0:
                chosen[entry] = bin_
                goal = max(goal - gain[bin_], 0)
    return best[needed], chosen


@kernel
def nearest_scorecard_change(X, own, bins, price, largest):
    """For each row of X (n, p): size of the least move to an answer that is not own, and where to.

    Tries each other class: it wins where its total is greater, or as great if it comes first.
    price (p, 5) as in `MoveTable`. Rows that cannot get there have infinity and nan.
    """
    n, n_bins, n_columns = X.shape[0], bins.sort.shape[0], bins.column.shape[0]
    distance, witness = np.empty(n), np.empty(X.shape)
    cost = np.empty(n_bins)
    work = np.empty((6, max(n_bins, n_columns)), np.int64)  # each kind of array is compiled apart
    entry_of, gain, ranked, order, home, best = work[0], work[1], work[2], work[3], work[4], work[5]
    for entry in range(n_columns):
        for bin_ in range(bins.start[entry], bins.start[entry + 1]):
            entry_of[bin_] = entry
    for row in range(n):
        distance[row] = np.inf
        set_all(witness[row], np.nan)
        row_costs(X[row], bins, price, cost, home)
        rank_costs(cost, ranked)
        for other in range(bins.offset.shape[0]):
            if other == own[row]:
                continue
            needed = bins.offset[own[row]] - bins.offset[other] + (other > own[row])
            needed += gains_of(bins.points, other, own[row], entry_of, home, gain, n_columns)
            reached = order[: keep_gaining(ranked, gain, cost, order)]
            if largest:
                size, chosen = least_largest(gain, cost, entry_of, reached, needed, n_columns)
            else:
                size, chosen = least_total(gain, cost, entry_of, reached, needed, n_columns)
            if size < distance[row]:
                distance[row] = size
                copy_into(chosen, best)
        if distance[row] < np.inf:
            copy_into(X[row], witness[row])
            for entry in range(n_columns):
                column, bin_ = bins.column[entry], best[entry]
                if bin_ >= 0:
                    x = X[row, column]
                    witness[row, column] = bin_value(x, bins.sort[bin_], bins.box[bin_])
    return distance, witness


@kernel
def rank_costs(cost, ranked):
    """Fill ranked (n_bins,) with the bins by cost, equal ones in their order."""
    for bin_ in range(cost.shape[0]):
        position = bin_
        while position > 0 and cost[ranked[position - 1]] > cost[bin_]:
            ranked[position] = ranked[position - 1]
            position -= 1
        ranked[position] = bin_


@kernel
def keep_gaining(ranked, gain, cost, order):
    """Fill order with the ranked bins that gain and can be reached; how many there are."""
    n_order = 0
    for position in range(cost.shape[0]):
        bin_ = ranked[position]
        if gain[bin_] > 0 and cost[bin_] < np.inf:
            order[n_order] = bin_
            n_order += 1
    return n_order


@kernel
def gains_of(points, other, own, entry_of, home, gain, n_columns):
    """Fill gain (n_bins,) with what each bin gains a class on another; how far it is behind."""
    behind = 0
    for entry in range(n_columns):
        behind += points[home[entry], own] - points[home[entry], other]
    for bin_ in range(points.shape[0]):
        at_home = home[entry_of[bin_]]
        gain[bin_] = points[bin_, other] - points[bin_, own]
        gain[bin_] -= points[at_home, other] - points[at_home, own]
    return behind
