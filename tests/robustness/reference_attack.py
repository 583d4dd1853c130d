"""Twins of the kernels in `kernels/moves.py`, and the cases to try them on."""

import math

import numpy as np

from steadytree.robustness._kernels.attack import MoveTable
from steadytree.robustness.joint import Splits
from steadytree.robustness.nearest import node_table
from steadytree.robustness.perturbation import Perturbation
from tests.models.trees import random_rows, random_tree


def path_to(left, right, node):
    """(parent, child) pairs from the root down to a node."""
    parents = {int(c): k for k in range(len(left)) for c in (left[k], right[k]) if c >= 0}
    steps = []
    while node in parents:
        steps.append((parents[node], node))
        node = parents[node]
    return steps[::-1]


def narrow_nodes(feature, threshold, left, right, missing_left, n_categories, subset):
    """Every node from its whole path, nothing carried over."""
    n, width = subset.shape
    parent, column, before = np.full(n, -1), np.full(n, -1), np.full(n, -1)
    low, high = np.full(n, -np.inf), np.full(n, np.inf)
    allowed, missing = np.ones((n, width), bool), np.ones(n, bool)
    for node in range(1, n):
        path = path_to(left, right, node)
        parent[node] = path[-1][0]
        column[node] = j = feature[parent[node]]
        allowed[node, n_categories[j] :] = False
        same = [(above, below) for above, below in path if feature[above] == j]
        before[node] = same[-2][1] if len(same) > 1 else -1
        for above, below in same:
            yes = below == left[above]
            missing[node] &= missing_left[above] == yes
            if n_categories[j]:
                allowed[node] &= subset[above] == yes
            elif yes:
                high[node] = min(high[node], threshold[above])
            else:
                low[node] = max(low[node], threshold[above])
    return parent, column, before, low, high, allowed, missing


def only_labels(left, right, label):
    def under(node):
        if left[node] < 0:
            return {int(label[node])}
        return under(left[node]) | under(right[node])

    found = [under(node) for node in range(len(left))]
    return np.array([labels.pop() if len(labels) == 1 else -1 for labels in found])


def number_cost(x, low, high, least, greatest, up, down, once, reach):
    if low < x <= high:
        return 0.0
    if least > greatest:
        return np.inf
    by, unit = (x - greatest, down) if x > high else (least - x, up)
    return np.inf if by > reach else once + by * unit


def value_cost(x, node, column, nodes, moves):
    up, down, appear, once, reach = moves.price[column]
    stays_missing, opened = nodes.flags[node]
    if math.isnan(x):
        return 0.0 if stays_missing else appear if opened else np.inf
    if moves.categorical[column]:
        return 0.0 if nodes.allowed[node, int(x)] else up if opened else np.inf
    return number_cost(x, *nodes.box[node], up, down, once, reach)


def nearest_value(x, node, column, nodes, moves):
    low, high, least, greatest = nodes.box[node]
    if math.isnan(x):
        if nodes.flags[node, 0]:
            return x
    elif nodes.allowed[node, int(x)] if moves.categorical[column] else low < x <= high:
        return x
    if moves.categorical[column]:
        return float(list(nodes.allowed[node]).index(True))
    return float(min(max(0.0 if math.isnan(x) else x, least), greatest))


def deepest(node, nodes):
    """The deepest node of each column on the path to a node."""
    tightest = {}
    while node > 0:
        tightest.setdefault(int(nodes.column[node]), node)
        node = nodes.parent[node]
    return tightest


def cost_of_node(x, node, nodes, moves):
    costs = [value_cost(x[j], at, j, nodes, moves) for j, at in deepest(node, nodes).items()]
    return (max if moves.largest else sum)(costs) if costs else 0.0


def nearest_change(X, own, nodes, moves):
    """Every leaf tried."""
    distance, where = [], []
    for x, label in zip(X, own, strict=True):
        tried = [
            (cost_of_node(x, node, nodes, moves), node)
            for node in range(len(nodes.left))
            if nodes.left[node] < 0 and nodes.only[node] != label
        ]
        cost, node = min(tried, default=(np.inf, -1))
        distance.append(cost)
        where.append(node if np.isfinite(cost) else -1)
    return np.array(distance), np.array(where, dtype=np.int64)


def move_rows_into(X, where, nodes, moves):
    moved, distance = X.astype(float), np.full(len(X), np.inf)
    for row, node in enumerate(where):
        if node < 0:
            moved[row] = np.nan
            continue
        distance[row] = cost_of_node(X[row], node, nodes, moves)
        for column, at in deepest(node, nodes).items():
            moved[row, column] = nearest_value(X[row, column], at, column, nodes, moves)
    return moved, distance


# ---- cases ----
def random_perturbation(rng, space, counted=False, **others):
    """Costs of all sorts: free, frozen, one-sided, missing values that may appear.

    With `counted`, the number of values that change may count, within a radius or not.
    """
    names = list(space.names)
    given = {name: float(rng.choice([0.0, 0.3, 1.0, 2.5])) for name in names if rng.random() < 0.9}
    kind = "radius" if rng.integers(2) else "step_cost"
    if counted and rng.integers(2):
        kind = "change_cost"
        if rng.integers(2):
            others["radius"] = {name: float(rng.choice([0.2, 0.7, 1.5, 40.0])) for name in names}
    numbers = [column.name for column in space if not column.is_categorical]
    return Perturbation(
        **{kind: given},
        frozen=[name for name in names if rng.random() < 0.1],
        direction={name: str(rng.choice(["up", "down", "both"])) for name in numbers},
        missing_cost={name: float(rng.choice([0.0, 0.7])) for name in names if rng.random() < 0.5},
        bounds={name: (-1.0, 1.2) for name in numbers if rng.random() < 0.2},
        **others,
    )


def tables(case):
    """Tree, rows, nodes and moves drawn from the case's generator."""
    rng = case.rng
    tree = random_tree(
        rng, n_leaves=int(rng.integers(1, 12)), single_precision=bool(rng.integers(2))
    )
    moves = random_perturbation(rng, tree.space, counted=True).all_moves(tree.space)
    rows = np.asarray(tree.space.encode(random_rows(rng, tree, max(case.n, 1))), float)
    table = MoveTable(moves.prices, moves.categorical, moves.largest)
    return tree, rows, node_table(Splits.of(tree), moves), table


def for_narrow_nodes(case):
    tree = tables(case)[0]
    sizes = np.array([len(column.categories) for column in tree.space])
    flat = (tree.feature, tree.threshold, tree.left, tree.right, tree.missing_left)
    return *flat, sizes, tree.subset


def for_value(case):
    tree, rows, nodes, moves = tables(case)
    if tree.n_nodes == 1:
        return for_value(case)
    node = int(case.rng.integers(1, tree.n_nodes))
    return rows[0, nodes.column[node]], node, nodes.column[node], nodes, moves


def for_nearest_value(case):
    while True:  # only used where some value fits
        x, node, column, nodes, moves = for_value(case)
        if nodes.flags[node, 1]:
            return x, node, column, nodes, moves


def for_rows(case):
    tree, rows, nodes, moves = tables(case)
    own = tree.label[tree.apply_encoded(rows)]
    return rows, own, nodes, moves


def for_moving(case):
    rows, own, nodes, moves = for_rows(case)
    return rows, nearest_change(rows, own, nodes, moves)[1], nodes, moves


CASES = {
    "narrow_nodes": for_narrow_nodes,
    "only_labels": lambda case: case.shape(),
    "number_cost": lambda case: tuple(case.rng.choice([-1.0, 0.0, 0.5, 2.0, 3.0], 9)),
    "value_cost": for_value,
    "nearest_value": for_nearest_value,
    "nearest_change": for_rows,
    "move_rows_into": for_moving,
}


def same_distance(found, expected):
    """Ties may lead to different nodes, and sums are rounded in another order."""
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(found[1] < 0, expected[1] < 0)


COMPARE = {
    "nearest_change": same_distance,
    "move_rows_into": lambda found, expected: [
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
        for one, other in zip(found, expected, strict=True)
    ],
}
