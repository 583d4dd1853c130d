"""Slow, obvious twins of the kernels in kernels/path_distance.py, and cases to try them on."""

import itertools

import numpy as np


def unit_share(x, low, high):
    return 1.0 if x >= high else max(0.0, (x - low) / (high - low))


def path_vectors(nodes, columns, classes, vectors, leaves):
    feature, threshold, left, right, subset, value = nodes
    start, low, high, n_categories = columns
    class_start, half, by_label = classes
    asked = [j for j in range(len(start)) if start[j] >= 0]

    def walk(node, bounds):
        found[node] = bounds
        if left[node] < 0:
            return
        j, yes, no = feature[node], dict(bounds), dict(bounds)
        if n_categories[j]:
            inside = {code for code in range(n_categories[j]) if subset[node, code]}
            yes[j], no[j] = bounds[j] & inside, bounds[j] - inside
        elif low[j] < high[j]:
            t = unit_share(threshold[node], low[j], high[j])
            yes[j] = min(bounds[j][0], t), bounds[j][1]
            no[j] = bounds[j][0], max(bounds[j][1], t)
        walk(left[node], yes)
        walk(right[node], no)

    found = {}
    walk(0, {j: set(range(n_categories[j])) if n_categories[j] else (1.0, 0.0) for j in asked})
    for row, node in enumerate(k for k in range(len(left)) if left[k] < 0):
        leaves[row] = node
        for j in asked:
            size = n_categories[j]
            if size:
                flags = [(code in found[node][j]) / size for code in range(size)]
                vectors[row, start[j] : start[j] + size] = flags
            else:
                vectors[row, start[j] : start[j] + 2] = np.array(found[node][j]) / 2
        best = value[node].argmax()
        for k, where in enumerate(class_start):
            vectors[row, where] = half * (k == best if by_label else value[node, k])


def path_weights(vectors, start, n_categories):
    weights = np.zeros(len(vectors))
    for path, vector in enumerate(vectors):
        for first, size in zip(start, n_categories, strict=True):
            entries = vector[first : first + max(size, 2)]
            if first < 0:
                continue
            if size == 0 and tuple(entries) != (0.5, 0.0):
                weights[path] += max(0.0, 2 * (entries[0] - entries[1]))
            if size and (entries[:size] == 0).any():
                weights[path] += (entries[:size] > 0).sum() / size
    return weights


def city_block(rows, columns):
    return np.array([[np.abs(a - b).sum() for b in columns] for a in rows])


def assign_rows(cost):
    """The best of all injective maps."""
    n, m = cost.shape
    maps = itertools.permutations(range(m), n)
    return np.array(min(maps, key=lambda columns: cost[range(n), columns].sum()), dtype=np.int64)


def match_paths(many, weights, few, surjective):
    """Every map of the larger set to the smaller one, or to nothing, tried in turn."""
    distance = city_block(many, few)
    n_many, n_few = distance.shape
    nothing = [] if surjective or n_many == n_few else [-1]

    def price(partner):
        return [weights[p] if q < 0 else distance[p, q] for p, q in enumerate(partner)]

    def allowed(partner):
        times = [partner.count(q) for q in range(n_few)]
        return min(times) >= 1 and (surjective or max(times) == 1)

    maps = itertools.product(nothing + list(range(n_few)), repeat=n_many)
    best = min(filter(allowed, maps), key=lambda partner: sum(price(partner)))
    return np.array(best, dtype=np.int64), np.array(price(best))


def path_distance_matrix(ours, theirs, surjective, symmetric):
    def trees(part):
        vectors, weights, offsets = part
        return [(vectors[a:b], weights[a:b]) for a, b in itertools.pairwise(offsets.tolist())]

    def distance(a, b):
        many, few = (a, b) if len(a[0]) >= len(b[0]) else (b, a)
        return match_paths(*many, few[0], surjective)[1].sum()

    result = np.array([[distance(a, b) for b in trees(theirs)] for a in trees(ours)])
    if symmetric:
        np.fill_diagonal(result, 0.0)
    return result


# ---- cases ----
def _columns(rng):
    n_categories = rng.permutation([0, 0, 3, 2, 0])
    used = rng.random(5) < 0.8
    used[0] = True
    sizes = np.where(used, np.maximum(n_categories, 2), 0)
    start = np.where(used, np.cumsum(sizes) - sizes, -1)
    low = rng.choice([0.0, -1.0, 2.0], 5)
    high = low + rng.choice([0.0, 1.0, 3.5], 5)
    return (start, low, high, n_categories), int(sizes.sum())


def _tree(case):
    rng = case.rng
    columns, width = _columns(rng)
    left, right, _ = case.shape()
    n_nodes, n_leaves = len(left), int((left < 0).sum())
    feature = np.where(left < 0, -1, rng.choice(np.flatnonzero(columns[0] >= 0), n_nodes))
    threshold = rng.choice([-2.0, 0.0, 0.3, 1.0, 2.7, np.inf], n_nodes)
    subset = rng.random((n_nodes, 3)) < 0.5
    nodes = (feature, threshold, left, right, subset, rng.random((n_nodes, 2)))
    classes = (width + rng.permutation(3)[:2], 0.75, bool(rng.integers(2)))
    return nodes, columns, classes, np.zeros((n_leaves, width + 3)), np.zeros(n_leaves, int)


def _paths(rng, n, width=3):
    return rng.random((n, width)), rng.random(n)


def _matching(case):
    rng = case.rng
    n_few = int(rng.integers(1, 4))
    many, weights = _paths(rng, n_few + int(rng.integers(0, 3)))
    return many, weights, _paths(rng, n_few)[0], bool(rng.integers(2))


def _matrix(case):
    def stacked(n_trees):
        offsets = np.concatenate([[0], np.cumsum(rng.integers(1, 4, n_trees))])
        return *_paths(rng, offsets[-1]), offsets

    rng = case.rng
    symmetric, surjective = bool(rng.integers(2)), bool(rng.integers(2))
    ours = stacked(3)
    return ours, ours if symmetric else stacked(2), surjective, symmetric


def _weights(case):
    columns, width = _columns(case.rng)
    vectors = case.rng.choice([0.0, 0.2, 0.5], (4, width))
    return vectors, columns[0], columns[3]


CASES = {
    "unit_share": lambda case: (float(case.rng.choice([-1.0, 0.0, 0.3, 2.0, np.inf])), 0.0, 1.7),
    "path_vectors": _tree,
    "path_weights": _weights,
    "city_block": lambda case: (case.rng.random((3, 4)), case.rng.random((2, 4))),
    "assign_rows": lambda case: (
        case.rng.normal(size=(n := int(case.rng.integers(1, 6)), n + int(case.rng.integers(0, 3)))),
    ),
    "match_paths": _matching,
    "path_distance_matrix": _matrix,
}


def close(found, expected):
    pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]
    for one, other in pairs:
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-13)


COMPARE = dict.fromkeys(
    ["path_weights", "city_block", "match_paths", "path_distance_matrix"], close
)
