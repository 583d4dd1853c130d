"""How far a row is from another answer of a card of points, and where it would have to go."""

from typing import Any, NamedTuple

import numpy as np

from steadytree._base.jit import kernel
from steadytree.robustness._kernels.attack import APPEAR, DOWN, UP, number_cost

LOW, HIGH, LEAST, GREATEST = 0, 1, 2, 3
NUMBER, CATEGORY, MISSING = 0, 1, 2


class CellTable(NamedTuple):
    """The values of a card's columns, cut into cells within which every point stays.

    Cells of one column stand together: those of entry k of `column` (n_columns,) are
    ``start[k]`` to ``start[k + 1] - 1``. `sort` (n_cells,) is NUMBER (``low < x <= high``,
    reachable from least to greatest, the columns of `box`), CATEGORY (code in `box[:, 0]`) or
    MISSING. `points` (n_cells, n_classes) is what a cell adds to each class, `offset`
    (n_classes,) what every row has.
    """

    column: Any
    start: Any
    sort: Any
    box: Any
    points: Any
    offset: Any


@kernel
def lies_in(x, sort, low, high):
    """Whether x lies in a cell; a category's code is its low."""
    if x != x or sort == MISSING:
        return x != x and sort == MISSING
    return x == low if sort == CATEGORY else low < x <= high


@kernel
def cell_cost(x, sort, box, price):
    """Cost of moving x into a cell; 0 where it lies in it.

    box (4,) and price (3,): up (or another category), down, and missing values.
    """
    low, high, least, greatest = box[LOW], box[HIGH], box[LEAST], box[GREATEST]
    if lies_in(x, sort, low, high):
        return 0.0
    if sort == MISSING or (sort == NUMBER and least > greatest):
        return np.inf
    if x != x:
        return price[APPEAR]
    if sort == CATEGORY:
        return price[UP]
    return number_cost(x, low, high, least, greatest, price[UP], price[DOWN])


@kernel
def cell_value(x, sort, box):
    """The value in a cell nearest to x; x itself where it lies in it."""
    if lies_in(x, sort, box[LOW], box[HIGH]):
        return x
    if sort == CATEGORY:
        return box[LOW]
    return min(max(0.0 if x != x else x, box[LEAST]), box[GREATEST])


@kernel
def row_costs(x, cells, price, cost, home):
    """Fill cost (n_cells,) with what each cell costs a row x (p,), home with its own cells."""
    for entry in range(cells.column.shape[0]):
        column = cells.column[entry]
        value = x[column]
        for cell in range(cells.start[entry], cells.start[entry + 1]):
            sort, box = cells.sort[cell], cells.box[cell]
            cost[cell] = cell_cost(value, sort, box, price[column])
            if lies_in(value, sort, box[LOW], box[HIGH]):
                home[entry] = cell


@kernel
def least_largest(gain, cost, entry_of, order, needed, n_columns):
    """Least size at which the columns' best gains within it add up to `needed`.

    gain, cost, entry_of (n_cells,); order lists the cells that gain, by cost. Returns the size
    and the cells to go to (n_columns,), -1 where a column stays; those not needed stay.
    """
    chosen = np.full(n_columns, -1)
    so_far, size = 0, np.inf
    for cell in order:
        entry = entry_of[cell]
        before = gain[chosen[entry]] if chosen[entry] >= 0 else 0
        if gain[cell] > before:
            so_far += gain[cell] - before
            chosen[entry] = cell
        if so_far >= needed:
            size = cost[cell]
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
    """As `least_largest` for the sum of costs: the cheapest way to gain what is needed.

    best[g] is the least cost of gaining at least g with the columns seen so far, so the work
    goes with the points needed, not with the number of subsets.
    """
    best = np.full(needed + 1, np.inf)
    best[0] = 0.0
    taken = np.full((n_columns, needed + 1), -1)
    for entry in range(n_columns):
        earlier = best.copy()
        for cell in order:
            if entry_of[cell] != entry:
                continue
            for goal in range(1, needed + 1):
                total = earlier[max(goal - gain[cell], 0)] + cost[cell]
                if total < best[goal]:
                    best[goal], taken[entry, goal] = total, cell
    chosen, goal = np.full(n_columns, -1), needed
    if best[needed] < np.inf:
        for entry in range(n_columns - 1, -1, -1):
            cell = taken[entry, goal]
            if cell >= 0:
                chosen[entry] = cell
                goal = max(goal - gain[cell], 0)
    return best[needed], chosen


@kernel
def nearest_card_change(X, own, cells, price, largest):
    """For each row of X (n, p): size of the least move to an answer that is not own, and where to.

    Tries each other class: it wins where its total is greater, or as great if it comes first.
    price (p, 3) as in `MoveTable`. Rows that cannot get there have infinity and nan.
    """
    n, n_cells, n_columns = X.shape[0], cells.sort.shape[0], cells.column.shape[0]
    distance, witness = np.full(n, np.inf), np.full(X.shape, np.nan)
    cost, gain = np.empty(n_cells), np.empty(n_cells, np.int64)
    home, entry_of = np.empty(n_columns, np.int64), np.empty(n_cells, np.int64)
    best = np.empty(n_columns, np.int64)
    for entry in range(n_columns):
        entry_of[cells.start[entry] : cells.start[entry + 1]] = entry
    for row in range(n):
        row_costs(X[row], cells, price, cost, home)
        ranked = np.argsort(cost)
        for other in range(cells.offset.shape[0]):
            if other == own[row]:
                continue
            lead = cells.offset[own[row]] - cells.offset[other]
            for entry in range(n_columns):
                lead += cells.points[home[entry], own[row]] - cells.points[home[entry], other]
            for cell in range(n_cells):
                at = home[entry_of[cell]]
                gain[cell] = (
                    cells.points[cell, other]
                    - cells.points[cell, own[row]]
                    - cells.points[at, other]
                    + cells.points[at, own[row]]
                )
            order = ranked[(gain[ranked] > 0) & (cost[ranked] < np.inf)]
            needed = lead + (other > own[row])
            if largest:
                size, chosen = least_largest(gain, cost, entry_of, order, needed, n_columns)
            else:
                size, chosen = least_total(gain, cost, entry_of, order, needed, n_columns)
            if size < distance[row]:
                distance[row] = size
                best[:] = chosen
        if distance[row] < np.inf:
            witness[row] = X[row]
            for entry in range(n_columns):
                if best[entry] >= 0:
                    column, cell = cells.column[entry], best[entry]
                    witness[row, column] = cell_value(
                        X[row, column], cells.sort[cell], cells.box[cell]
                    )
    return distance, witness
