"""Twins of the kernels in `_kernels/separation.py`, and cases for them."""

import itertools

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from steadytree.robustness._kernels import separation as kernels


def same_only(first, second):
    return bin(first | second).count("1") < 2


def grow_tree(rows, most):
    """Level by level, each node with the list of its rows."""
    nodes, left, parent = [list(range(len(rows)))], [], [0]
    for node, own in enumerate(nodes):  # grows while it is walked through
        values = rows[own]
        column = int(np.argmax(np.ptp(values, axis=0)))
        own.sort(key=lambda row: rows[row, column]) if len(own) > most else None
        found = rows[own, column]
        cuts = [k for k in range(1, len(own)) if found[k] != found[k - 1]]
        if len(own) <= most or not cuts:
            left.append(0)
            continue
        cut = min(cuts, key=lambda k: (abs(k - len(own) // 2), k))
        left.append(len(nodes))
        nodes += [own[:cut], own[cut:]]
        parent += [node, node]
    start = [0] * len(nodes)
    for node, child in enumerate(left):
        if child:
            nodes[node] = None
            start[child], start[child + 1] = start[node], start[node] + len(nodes[child])
    # a node's rows in their final order are those of the leaves below it
    leaves = sorted((start[k], own) for k, own in enumerate(nodes) if left[k] == 0)
    order = [row for _, own in leaves for row in own]
    size = [0 if left[k] else len(own) for k, own in enumerate(nodes)]
    for k in reversed(range(1, len(size))):
        size[parent[k]] += size[k]
    end = np.add(start, size)
    return np.array(order), np.array(start), end, np.array(left), np.array(parent)


def bound_nodes(start, end, left, rows, bits):
    own = [slice(*pair) for pair in zip(start, end, strict=True)]
    return (
        np.array([rows[each].min(axis=0) for each in own]),
        np.array([rows[each].max(axis=0) for each in own]),
        np.array([np.bitwise_or.reduce(bits[each]) for each in own]),
    )


def are_close(one, other, closer):
    least, last, first = closer
    return all(
        least[first[column] + a] <= b <= last[first[column] + a]
        for column, (a, b) in enumerate(zip(one, other, strict=True))
    )


def all_close(ranks, bits, closer):
    return [
        (i, j)
        for i, j in itertools.combinations(range(len(ranks)), 2)
        if not same_only(bits[i], bits[j]) and are_close(ranks[i], ranks[j], closer)
    ]


def close_pairs(tree, ranks, bits, closer, most):
    return all_close(ranks, bits, closer), most


def same_pairs(found, expected):
    """All pairs where there are no more than asked for, else one too many of them."""
    pairs, (listed, most) = {tuple(pair) for pair in found.tolist()}, expected
    assert len(pairs) == len(found) == min(len(listed), most + 1)
    assert pairs <= set(listed)


def nearest_rows(tree, rows, bits, wanted, best, together):
    for i in wanted:
        for j in range(len(rows)):
            if i != j and not same_only(bits[i], bits[j]):
                best[i] = min(best[i], np.abs(rows[i] - rows[j]).max())
    if together:
        best[wanted] = np.minimum.accumulate(best[wanted])


def cover_close(tree, ranks, counts, closer):
    """Nothing but the conflicts: what is found is checked against them."""
    bits = ((counts > 0) << np.arange(counts.shape[1])).sum(axis=1)
    own = [(i, i) for i in range(len(counts))]
    clashes = {
        ((i, a), (j, b))
        for i, j in own + all_close(ranks, bits, closer)
        for a, b in itertools.permutations(range(counts.shape[1]), 2)
        if counts[i, a] and counts[j, b]
    }
    return sorted(clashes), counts


def good_cover(found, expected):
    """A cover, none of it needless, and a bound from half of it up to the least cover."""
    (dropped, paid), (clashes, counts) = found, expected
    assert all(dropped[one] or dropped[other] for one, other in clashes)
    for gone in map(tuple, np.argwhere(dropped)):
        near = [one if other == gone else other for one, other in clashes if gone in (one, other)]
        assert not all(dropped[each] for each in near)
    assert paid <= counts[dropped].sum() <= 2 * paid
    assert paid <= least_weight(clashes, counts)


def least_weight(clashes, counts):
    """Weight of the least cover, by integer programming."""
    if not clashes:
        return 0
    ends = sorted({end for clash in clashes for end in clash})
    matrix = np.array([[end in clash for end in ends] for clash in clashes], float)
    weight = np.array([counts[end] for end in ends], float)
    limits = LinearConstraint(matrix, 1, np.inf)
    solved = milp(weight, constraints=limits, integrality=np.ones(len(ends)), bounds=Bounds(0, 1))
    return round(solved.fun)


def some_rows(case):
    n = max(case.n, 1)
    rows = case.rng.integers(0, 5, (n, 3)) / 4
    return rows, case.rng.integers(1, 8, n)


def tree_of(compared, bits, most):
    """A tree of rows or ranks, and those sorted by it."""
    order, *shape = kernels.grow_tree(compared.astype(float), most)
    compared, bits = np.ascontiguousarray(compared[order]), bits[order]
    bounds = kernels.bound_nodes(*shape[:3], compared, bits)
    return kernels.RowTree(*shape, *bounds), compared, bits


def ranked_rows(case):
    """Ranks 0 to 4 of three columns, and the least and last that are close to each."""
    rows, bits = some_rows(case)
    last = [np.maximum.accumulate(case.rng.integers(np.arange(5), 5)) for _ in range(3)]
    least = [np.searchsorted(one, np.arange(5)) for one in last]
    closer = np.concatenate(least), np.concatenate(last), np.array([0, 5, 10])
    most = int(case.rng.integers(1, 5))
    return *tree_of((4 * rows).astype(np.int64), bits, most), closer


def bounded(case):
    rows, bits = some_rows(case)
    order, start, end, left, _ = kernels.grow_tree(rows, 2)
    return start, end, left, np.ascontiguousarray(rows[order]), bits[order]


def asked_rows(case):
    tree, rows, bits = tree_of(*some_rows(case), int(case.rng.integers(1, 5)))
    asked = case.rng.permutation(len(rows))[: int(case.rng.integers(1, len(rows) + 1))]
    best = case.rng.choice([0.25, 0.5, np.inf], len(rows))
    return tree, rows, bits, asked, best, bool(case.rng.integers(2))


def counted_rows(case):
    tree, ranks, bits, closer = ranked_rows(case)
    drawn = case.rng.integers(1, 4, (len(bits), 3))
    return tree, ranks, drawn * (bits[:, None] >> np.arange(3) & 1), closer


CASES = {
    "same_only": lambda case: (int(case.rng.integers(1, 8)), int(case.rng.integers(1, 8))),
    "grow_tree": lambda case: (some_rows(case)[0], int(case.rng.integers(1, 5))),
    "bound_nodes": bounded,
    "close_pairs": lambda case: (*ranked_rows(case), int(case.rng.integers(0, 40))),
    "nearest_rows": asked_rows,
    "cover_close": counted_rows,
}
COMPARE = {"close_pairs": same_pairs, "cover_close": good_cover}
