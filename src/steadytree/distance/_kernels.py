"""Distances of trees: paths as vectors and their cheapest matching, and node by node.

The entries of a path's vector are scaled so that the city-block distance of two vectors is the
distance of the paths: half the upper and half the lower bound of a number in units of its range, a
flag over the number of categories for each category, half the class weight for each class.
"""

import numpy as np

from steadytree._base.jit import kernel
from steadytree.models._kernels import set_all


def unit_share(x, low, high):
    """Where x lies between low and high: 0 and 1 at and beyond the ends."""
    if x >= high:
        return 1.0
    if x <= low:
        return 0.0
    return (x - low) / (high - low)


def path_vectors(nodes, columns, classes, vectors, leaves):
    """Fill vectors (n_leaves, width) with the paths to the leaves, and leaves with their nodes.

    nodes = (feature, threshold, left, right, subset, value) of a tree, parents first.
    columns = (start, low, high, n_categories), each (p,): feature j has its entries from start[j]
    on, two for a number (n_categories[j] == 0, upper bound first), else one a category. A number
    without range constrains nothing.
    classes = (start, half, by_label): entry of each class, and what it holds: half where it is the
    leaf's label, or half times its share. vectors comes filled with zeros.
    """
    feature, threshold, left, right, subset, value = nodes
    start, low, high, n_categories = columns
    class_start, half, by_label = classes
    state = np.zeros((len(feature), vectors.shape[1]))
    for j in np.flatnonzero(start >= 0):
        first, size = start[j], n_categories[j]
        state[0, first : first + max(size, 1)] = 0.5 if size == 0 else 1.0 / size
    for node in np.flatnonzero(left >= 0):
        yes, no, j = left[node], right[node], feature[node]
        state[yes] = state[no] = state[node]
        first, size = start[j], n_categories[j]
        if size > 0:
            state[yes, first : first + size][~subset[node, :size]] = 0.0
            state[no, first : first + size][subset[node, :size]] = 0.0
        elif low[j] < high[j]:
            bound = 0.5 * unit_share(threshold[node], low[j], high[j])
            state[yes, first] = min(state[yes, first], bound)
            state[no, first + 1] = max(state[no, first + 1], bound)
    leaves[:] = np.flatnonzero(left < 0)
    vectors[:] = state[leaves]
    if by_label:
        vectors[np.arange(len(leaves)), class_start[value[leaves].argmax(axis=1)]] = half
    else:
        vectors[:, class_start] = half * value[leaves]


def path_weights(vectors, start, n_categories):
    """Weight of each path: what it leaves open of the features that it constrains."""
    weights = np.zeros(len(vectors))
    for j in np.flatnonzero(start >= 0):
        first, size = start[j], n_categories[j]
        if size == 0:
            upper, lower = vectors[:, first], vectors[:, first + 1]
            bound = (upper != 0.5) | (lower != 0.0)
            weights += np.where(bound, 2.0 * np.maximum(upper - lower, 0.0), 0.0)
        else:
            n_open = (vectors[:, first : first + size] > 0.0).sum(axis=1)
            weights += np.where(n_open < size, n_open / size, 0.0)
    return weights


@kernel
def city_block(rows, columns):
    """City-block distance of every row (n, width) to every column (m, width)."""
    cost = np.empty((rows.shape[0], columns.shape[0]))
    width = rows.shape[1]
    for i in range(rows.shape[0]):
        for j in range(columns.shape[0]):
            total = 0.0
            for k in range(width):
                total += abs(rows[i, k] - columns[j, k])
            cost[i, j] = total
    return cost


@kernel
def forget(reach, done):
    """Begin a search: no column is reached or done."""
    for column in range(reach.shape[0]):
        reach[column], done[column] = np.inf, 0


@kernel
def assign_rows(cost):
    """Column of each row (n <= m) such that columns differ and the summed cost is least.

    Shortest augmenting paths, one row at a time; row_price and column_price prove the optimum.
    """
    n, m = cost.shape
    prices, lists = np.empty((3, m)), np.empty((4, m), np.int64)
    row_price, column_price = prices[0], prices[1]
    reach = prices[2]  # shortest way to each column so far
    row_of, before = lists[0], lists[1]  # row that holds each column, and from which it was reached
    done, column_of = lists[2], lists[3, :n]
    set_all(row_price, 0.0)
    set_all(column_price, 0.0)
    set_all(row_of, -1)
    set_all(column_of, -1)
    for start in range(n):
        forget(reach, done)
        row, length, end = start, 0.0, -1
        while end < 0:
            nearest, shortest = -1, np.inf
            for column in range(m):
                if done[column]:
                    continue
                way = length + (cost[row, column] - row_price[row] - column_price[column])
                if way < reach[column]:
                    reach[column] = way
                    before[column] = row
                # a free column ends the search, so it is preferred where two are as near
                if reach[column] < shortest or (reach[column] == shortest and row_of[column] < 0):
                    nearest, shortest = column, reach[column]
            length = shortest
            done[nearest] = 1
            if row_of[nearest] < 0:
                end = nearest
            else:
                row = row_of[nearest]
        row_price[start] += length
        for column in range(m):
            if done[column] and column != end:
                row_price[row_of[column]] += length - reach[column]
                column_price[column] -= length - reach[column]
        while True:
            row = before[end]
            row_of[end] = row
            column_of[row], end = end, column_of[row]
            if row == start:
                break
    return column_of


@kernel
def match_paths(many, weights, few, surjective):
    """Match the paths of the larger tree (many) with those of the smaller one (few).

    Every path of the smaller tree gets one of the larger. A path that is left over costs its
    weight, or, where surjective, its distance to the nearest path of the smaller tree.
    Returns partner (n_many,), -1 where left over, and cost (n_many,).
    """
    n_many, n_few = many.shape[0], few.shape[0]
    distance = city_block(few, many)
    alone, nearest = np.empty(n_many), np.empty(n_many, np.int64)
    set_all(alone, 0.0)
    set_all(nearest, -1)
    gain = distance.copy()
    if n_many > n_few:
        for p in range(n_many):
            alone[p] = weights[p]
            if surjective:
                nearest[p] = 0
                for q in range(1, n_few):
                    nearest[p] = q if distance[q, p] < distance[nearest[p], p] else nearest[p]
                alone[p] = distance[nearest[p], p]
            for q in range(n_few):
                gain[q, p] -= alone[p]
    chosen = assign_rows(gain)
    for q in range(n_few):
        nearest[chosen[q]] = q
        alone[chosen[q]] = distance[q, chosen[q]]
    return nearest, alone


@kernel
def path_distance_matrix(ours, theirs, surjective, symmetric):
    """Distance of every tree of ours to every tree of theirs.

    Both are (vectors, weights, offsets): tree k has the paths offsets[k] up to offsets[k + 1].
    Where symmetric, theirs are ours and each pair is matched once.
    """
    vectors, weights, offsets = ours
    other_vectors, other_weights, other_offsets = theirs
    result = np.empty((offsets.shape[0] - 1, other_offsets.shape[0] - 1))
    for a in range(result.shape[0]):
        set_all(result[a], 0.0)
    for a in range(result.shape[0]):
        mine = vectors[offsets[a] : offsets[a + 1]]
        my_weights = weights[offsets[a] : offsets[a + 1]]
        for b in range(a + 1 if symmetric else 0, result.shape[1]):
            other = other_vectors[other_offsets[b] : other_offsets[b + 1]]
            if mine.shape[0] >= other.shape[0]:
                _, cost = match_paths(mine, my_weights, other, surjective)
            else:
                other_weight = other_weights[other_offsets[b] : other_offsets[b + 1]]
                _, cost = match_paths(other, other_weight, mine, surjective)
            for one in cost:
                result[a, b] += one
            if symmetric:
                result[b, a] = result[a, b]
    return result


@kernel
def node_distance(a, b):
    """Nodes that are left when the common top of two FlatTrees is taken away; and where they part.

    Two leaves with other labels count 2; a leaf against a split, or two other splits, count both
    sub-trees. Returns the distance and the pairs (n_pairs, 2) of nodes at which the trees part.
    """
    most = min(a.key.shape[0], b.key.shape[0])
    pairs = np.empty((most, 2), np.int64)
    stack = np.empty((most + 2, 2), np.int64)
    stack[0, 0], stack[0, 1] = 0, 0
    height, n_pairs, distance = 1, 0, 0
    while height > 0:
        height -= 1
        one, other = stack[height, 0], stack[height, 1]
        label, other_label = a.label[one], b.label[other]
        if label >= 0 and label == other_label:
            continue
        if label < 0 and other_label < 0 and a.key[one] == b.key[other]:
            stack[height, 0], stack[height, 1] = a.right[one], b.right[other]
            stack[height + 1, 0], stack[height + 1, 1] = a.left[one], b.left[other]
            height += 2
            continue
        distance += a.size[one] + b.size[other]
        pairs[n_pairs, 0], pairs[n_pairs, 1] = one, other
        n_pairs += 1
    return distance, pairs[:n_pairs]
