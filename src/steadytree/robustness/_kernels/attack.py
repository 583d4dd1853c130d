"""How far a row is from another answer of a tree, and where it would have to go."""

from typing import Any, NamedTuple

import numpy as np

from steadytree._base.jit import kernel

LOW, HIGH, LEAST, GREATEST = 0, 1, 2, 3
MISSING_STAYS, OPEN = 0, 1
UP, DOWN, APPEAR = 0, 1, 2


class NodeTable(NamedTuple):
    """A tree's nodes as boxes, each with the one column that its parent asked about.

    `asked` (n_nodes,) is that column, -1 at the root; `before` the nearest node above with the same
    column, -1 if none. Columns of `box` are low, high, least, greatest: a number stays in the
    node when ``low < x <= high`` and moves in to a value from least to greatest. A category stays
    where `allowed` (n_nodes, width). Columns of `flags` tell whether missing values stay and
    whether any value can move in. `only` is the one label of all leaves under a node, -1 where
    they differ.
    """

    left: Any
    right: Any
    parent: Any
    asked: Any
    before: Any
    box: Any
    flags: Any
    allowed: Any
    only: Any


class MoveTable(NamedTuple):
    """Prices (p, 3) of one unit up, one down (or another category), and of missing values.

    `categorical` (p,); `largest` takes the largest price over columns, else they are summed.
    """

    price: Any
    categorical: Any
    largest: bool


@kernel
def narrow_nodes(feature, edge, left, right, missing_left, n_categories, subset):
    """What each node still allows of the column its parent asked about.

    edge is the threshold in float64, n_categories (p,) is 0 for columns of numbers.
    Returns parent, asked, before, low, high (n_nodes,), allowed (n_nodes, width), and missing
    (n_nodes,).
    """
    n_nodes, width = subset.shape
    parent, asked, before = np.full(n_nodes, -1), np.full(n_nodes, -1), np.full(n_nodes, -1)
    low, high = np.full(n_nodes, -np.inf), np.full(n_nodes, np.inf)
    allowed = np.ones((n_nodes, width), dtype=np.bool_)
    missing = np.ones(n_nodes, dtype=np.bool_)
    for node in range(n_nodes):
        if left[node] < 0:
            continue
        column, last = feature[node], node
        while last >= 0 and asked[last] != column:
            last = parent[last]
        for child in (left[node], right[node]):
            yes = child == left[node]
            parent[child], asked[child], before[child] = node, column, last
            if last < 0:
                allowed[child, n_categories[column] :] = False
            else:
                low[child], high[child], missing[child] = low[last], high[last], missing[last]
                allowed[child] = allowed[last]
            missing[child] = missing[child] and missing_left[node] == yes
            if n_categories[column] > 0:
                for category in range(width):
                    if subset[node, category] != yes:
                        allowed[child, category] = False
            elif yes:
                high[child] = min(high[child], edge[node])
            else:
                low[child] = max(low[child], edge[node])
    return parent, asked, before, low, high, allowed, missing


@kernel
def only_labels(left, right, label):
    """The label all leaves under each node share, -1 where they differ; parents come first."""
    only = label.copy()
    for node in range(left.shape[0] - 1, -1, -1):
        if left[node] >= 0:
            same = only[left[node]] == only[right[node]]
            only[node] = only[left[node]] if same else -1
    return only


@kernel
def number_cost(x, low, high, least, greatest, up, down):
    """Cost of moving a number into ``low < x <= high``, ending between least and greatest."""
    if x > high:
        return (x - greatest) * down if least <= greatest else np.inf
    if x <= low:
        return (least - x) * up if least <= greatest else np.inf
    return 0.0


@kernel
def value_cost(x, node, column, nodes, moves):
    """Cost of bringing one value into a node, as far as the node's own column goes."""
    box, price = nodes.box, moves.price
    if np.isnan(x):
        stays, cost = nodes.flags[node, MISSING_STAYS], price[column, APPEAR]
    elif moves.categorical[column]:
        stays, cost = nodes.allowed[node, np.int64(x)], price[column, UP]
    else:
        return number_cost(
            x,
            box[node, LOW],
            box[node, HIGH],
            box[node, LEAST],
            box[node, GREATEST],
            price[column, UP],
            price[column, DOWN],
        )
    if stays:
        return 0.0
    return cost if nodes.flags[node, OPEN] else np.inf


@kernel
def nearest_value(x, node, column, nodes, moves):
    """The value in a node's column nearest to x: x itself where it fits, or the first category."""
    if moves.categorical[column]:
        if nodes.flags[node, MISSING_STAYS] if np.isnan(x) else nodes.allowed[node, np.int64(x)]:
            return x
        return np.float64(np.argmax(nodes.allowed[node]))
    if np.isnan(x):
        if nodes.flags[node, MISSING_STAYS]:
            return x
        x = 0.0
    elif nodes.box[node, LOW] < x and x <= nodes.box[node, HIGH]:
        return x
    return min(max(x, nodes.box[node, LEAST]), nodes.box[node, GREATEST])


@kernel
def nearest_change(X, own, nodes, moves):
    """For each row of X (n, p): the least cost of another label than own, and the node to go to.

    Depth first, cheaper child first; sub-trees whose leaves all have the own label, or that cost
    as much as the best found, are skipped. Infinity and -1 where no move leads to another label.
    """
    n = X.shape[0]
    left, right, asked = nodes.left, nodes.right, nodes.asked
    before, only = nodes.before, nodes.only
    box, price, categorical, largest = nodes.box, moves.price, moves.categorical, moves.largest
    distance, where = np.full(n, np.inf), np.full(n, -1)
    waiting, paid = np.empty(left.shape[0], dtype=np.int64), np.empty(left.shape[0])
    for row in range(n):
        best, top, node, cost, label = np.inf, 0, 0, 0.0, own[row]
        while True:
            while only[node] == -1 and cost < best:
                near, far = left[node], right[node]
                column, last, so_far = asked[near], before[near], 0.0
                x = X[row, column]
                if last >= 0 and cost > 0.0 and not largest:
                    so_far = value_cost(x, last, column, nodes, moves)
                if x == x and not categorical[column]:
                    # numbers only, no array, is handed over here: counting references to arrays
                    # would take ten times as long as the rest of the loop
                    up, down = price[column, UP], price[column, DOWN]
                    a, b = box[near, LOW], box[near, HIGH]
                    c, d = box[near, LEAST], box[near, GREATEST]
                    near_cost = number_cost(x, a, b, c, d, up, down)
                    a, b = box[far, LOW], box[far, HIGH]
                    c, d = box[far, LEAST], box[far, GREATEST]
                    far_cost = number_cost(x, a, b, c, d, up, down)
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


@kernel
def move_rows_into(X, where, nodes, moves):
    """Rows moved into the given nodes as little as can be, and what that costs.

    Costs are summed column by column, so that none of the rounding along a path is left. A row
    whose node is -1 becomes nan and costs infinity.
    """
    n, p = X.shape
    box, price, parent, asked = nodes.box, moves.price, nodes.parent, nodes.asked
    moved, distance = X.astype(np.float64), np.zeros(n)
    seen = np.full(p, -1)
    for row in range(n):
        node = where[row]
        if node < 0:
            moved[row], distance[row] = np.nan, np.inf
        while node > 0:
            column = asked[node]
            x = moved[row, column]
            if seen[column] == row:  # a deeper question about the column was tighter
                node = parent[node]
                continue
            seen[column] = row
            if x == x and not moves.categorical[column]:
                a, b, c, d = box[node, LOW], box[node, HIGH], box[node, LEAST], box[node, GREATEST]
                cost = number_cost(x, a, b, c, d, price[column, UP], price[column, DOWN])
                if x <= a or x > b:
                    moved[row, column] = min(max(x, c), d)
            else:
                cost = value_cost(x, node, column, nodes, moves)
                moved[row, column] = nearest_value(x, node, column, nodes, moves)
            distance[row] = max(distance[row], cost) if moves.largest else distance[row] + cost
            node = parent[node]
    return moved, distance
