"""Slow, plain twins of the kernels of `_kernels/boxes.py`, `box_splits.py` and `box_bounds.py`."""

import itertools

import numpy as np

from steadytree.robustness._kernels.box_splits import BoxTable

# these promise a best tree or a bound, or one of several equal ones: see test_boxes.py
COMPARED_APART = {
    *("best_box_split", "grow", "local_search", "one_level", "search_trees", "two_levels"),
    *("conflicting_pairs", "two_splits", "two_stumps"),
}


def random_boxes(rng, n=None, n_classes=None, penalty=None):
    """A table of a few boxes in ranks, with ties, empty columns and rows that are never sure."""
    n = int(rng.integers(1, 14)) if n is None else n
    n_classes = int(rng.integers(1, 4)) if n_classes is None else n_classes
    p = int(rng.integers(1, 4))
    sizes = rng.integers(0, 5, p)
    sizes[0] = max(sizes[0], 1)
    low, width = rng.integers(0, sizes[:, None] + 1, (p, n)), rng.integers(0, 3, (p, n))
    return BoxTable(
        left_from=np.minimum(low + width, sizes[:, None]).astype(np.int32),
        right_below=low.astype(np.int32),
        n_thresholds=sizes.astype(np.int64),
        label=rng.integers(0, n_classes, n),
        weight=rng.integers(1, 4, n).astype(float) if rng.random() < 0.5 else np.ones(n),
        n_classes=n_classes,
        penalty=float(rng.choice([0.0, 0.0, 0.3])) if penalty is None else penalty,
    )


def random_nodes(rng, table, depth):
    """A tree as an array; some of its nodes are leaves."""
    nodes = np.zeros((2 ** (depth + 1), 3), np.int64)
    nodes[:, 0] = -1
    some = np.flatnonzero(table.n_thresholds)
    for v in range(1, 2**depth):
        if rng.random() < 0.8:
            nodes[v, 0] = rng.choice(some)
            nodes[v, 1] = rng.integers(table.n_thresholds[nodes[v, 0]])
    nodes[:, 2] = rng.integers(0, table.n_classes, len(nodes))
    return nodes


def goes_to(table, nodes, v, row):
    """Children that a row may go to."""
    column, index = nodes[v, :2]
    sure_left = table.left_from[column, row] <= index
    sure_right = index < table.right_below[column, row]
    return [2 * v] * (not sure_right) + [2 * v + 1] * (not sure_left)


def keeps(table, nodes, v, row, instead=None):
    """Whether a row is right wherever it may go under v; `instead` says so of some nodes."""
    if instead and v in instead:
        return instead[v]
    if v >= len(nodes) // 2 or nodes[v, 0] < 0:
        return bool(nodes[v, 2] == table.label[row])
    return all(keeps(table, nodes, w, row, instead) for w in goes_to(table, nodes, v, row))


def used(nodes, v):
    return v == 1 or (used(nodes, v // 2) and nodes[v // 2, 0] >= 0)


def splits_under(tree, v):
    if v >= len(tree) // 2 or tree[v, 0] < 0:
        return 0
    return 1 + splits_under(tree, 2 * v) + splits_under(tree, 2 * v + 1)


def value_of(table, nodes):
    kept = sum(table.weight[row] for row in range(len(table.label)) if keeps(table, nodes, 1, row))
    return kept - table.penalty * splits_under(nodes, 1)


def mark_rows(table, tree, correct, counts):
    for v, row in itertools.product(range(1, len(tree)), range(len(table.label))):
        counts[v, row] = False
        if used(tree, v):
            correct[v, row] = keeps(table, tree, v, row)
            if_right, if_wrong = (keeps(table, tree, 1, row, {v: each}) for each in (True, False))
            counts[v, row] = if_right and not if_wrong
    return value_of(table, tree)


def put_stump(tree, v, column, index, left, right):
    tree[v, :2] = column, index
    tree[[2 * v, 2 * v + 1], 0] = -1
    tree[[2 * v, 2 * v + 1], 2] = left, right


def every_split(table):
    for column, size in enumerate(table.n_thresholds.tolist()):
        yield from ((column, index) for index in range(size))


def split_value(table, rows, group, weight, split, sides):
    """Weight of rows of the left group that are surely left, and of the right one surely right."""
    (column, index), (left, right) = split, sides
    on_left = table.left_from[column][rows] <= index
    on_right = index < table.right_below[column][rows]
    own = group[rows]
    return weight[rows][(own == left) & on_left | (own == right) & on_right].sum()


def best_box_split(table, rows, group, weight, n_groups, least, first):
    """The largest value alone: of equal splits any will do."""
    pairs = list(itertools.permutations(range(n_groups), 2))
    found = [
        split_value(table, rows, group, weight, split, sides)
        for split in every_split(table)
        for sides in pairs
    ]
    return max([least, *found])


def every_stump(table):
    """Every tree of at most one split: column, index, labels."""
    labels = range(table.n_classes)
    yield from ((-1, 0, label, label) for label in labels)
    for column, index in every_split(table):
        yield from ((column, index, *sides) for sides in itertools.permutations(labels, 2))


def one_level(table, weight, first):
    """The value of the best tree of one split or none."""
    table = table._replace(weight=weight)
    return max(value_of(table, stump_nodes(stump)) for stump in every_stump(table))


def stump_nodes(stump):
    nodes = np.full((4, 3), -1)
    nodes[1] = stump[0], stump[1], stump[2]
    nodes[2:, 2] = stump[2:]
    return nodes


def two_levels(
    table,
    weight,
    near=None,
    sides=None,
    shares=None,
    levels=None,
    room=None,
    rounds=None,
    unit=None,
    budget=None,
    resume=None,
    tree=None,
):
    """Value of the best tree of two levels for each root; what else is given does not count."""
    table = table._replace(weight=weight)
    stumps = list(every_stump(table))
    rows = range(len(table.label))
    kept = np.array([[keeps(table, stump_nodes(s), 1, row) for row in rows] for s in stumps])
    charge = np.array([table.penalty * (stump[0] >= 0) for stump in stumps])
    best = {}
    for column, index in every_split(table):
        left, right = sides_of(table, column, index)
        one, two = kept | ~left, kept | ~right
        values = (one * table.weight) @ two.T - charge[:, None] - charge - table.penalty
        best[column, index] = values.max()
    return best


def sides_of(table, column, index):
    both = [
        (k <= index, j > index)
        for k, j in zip(table.right_below[column], table.left_from[column], strict=True)
    ]
    return tuple(np.array(side) for side in zip(*both, strict=True))


def shared_weights(weight, left, right, share, own):
    for row, w in enumerate(weight):
        part = share[row] if left[row] and right[row] else float(left[row])
        own[:, row] = w * part, w * (1 - part)


def spread_bound(table, weight, column, index, bound, near):
    for other in range(len(near)):
        left, right = table.left_from[column], table.right_below[column]
        surely = (left <= other) & (left > index) | (other < right) & (right <= index)
        if other != index:
            near[other] = min(near[other], bound + weight[surely].sum())


def side_weights(table, weight, shares):
    found = []
    for column, index in every_split(table):
        left, right = sides_of(table, column, index)
        own = np.empty((2, len(weight)))
        shared_weights(weight, left, right, shares[column], own)
        found.append(own.sum(axis=1))
    return np.array(found).T


def spread_sides(table, weight, column, index, share, values, sides, near):
    """Each side by the weight that its rows gain from one threshold to another."""

    def weights_at(k):
        own = np.empty((2, len(weight)))
        shared_weights(weight, *sides_of(table, column, k), share, own)
        return own

    for other in range(len(near)):
        gained = np.maximum(weights_at(other) - weights_at(index), 0.0).sum(axis=1)
        for side in range(2):
            sides[side, other] = min(sides[side, other], values[side] + gained[side])
        near[other] = min(near[other], sides[:, other].sum() - table.penalty)


def widest_top(near):
    runs = [
        (-len(list(run)), key)
        for key, run in itertools.groupby(range(len(near)), lambda k: near[k] == near.max())
    ]
    starts = np.cumsum([0] + [-size for size, _ in runs])
    size, _, start = min((size, k, starts[k]) for k, (size, top) in enumerate(runs) if top)
    return start + -size // 2


def two_splits(table, goal, first, budget, tree):
    """Whether a tree of two splits keeps at least `goal`."""
    leaves = [(-1, 0, label, label) for label in range(table.n_classes)]
    for column, index in every_split(table):
        for stump, leaf in itertools.product(every_stump(table), leaves):
            for pair in ((stump, leaf), (leaf, stump)):
                if value_of(table, pair_nodes(column, index, pair)) >= goal - 1e-9:
                    return True
    return False


def pair_nodes(column, index, pair):
    nodes = np.full((8, 3), -1)
    nodes[1] = column, index, 0
    for side, stump in enumerate(pair):
        nodes[2 + side] = stump[:3]
        nodes[[4 + 2 * side, 5 + 2 * side], 2] = stump[2:]
    return nodes


def conflicting_pairs(table, sweep, order, most, budget, pairs):
    """Pairs of rows of different labels that no split puts surely on different sides."""
    found = set()
    for i, j in itertools.combinations(range(len(table.label)), 2):
        apart = any(
            table.left_from[c, a] <= k < table.right_below[c, b]
            for c, k in every_split(table)
            for a, b in ((i, j), (j, i))
        )
        if table.label[i] != table.label[j] and not apart:
            found.add((i, j))
    return found


def grow(table, tree, v, tilt, correct, counts):
    """The greedy tree, the first of equal splits; changes `tree`, returns nothing."""
    rows = np.flatnonzero(
        [
            keeps(table, tree, 1, i, {v: True}) > keeps(table, tree, 1, i, {v: False})
            for i in range(len(table.label))
        ]
    )
    totals = np.bincount(table.label[rows], table.weight[rows], table.n_classes)
    tree[v, 0], tree[v, 2] = -1, totals.argmax()
    if v >= len(tree) // 2 or len(rows) == 0:
        return
    one = totals.sum() / len(rows)
    share = ((totals.max() + one) / (totals + one)) ** tilt
    weight = table.weight * share[table.label]
    best, chosen = (totals * share).max(), None
    for split in every_split(table):
        pairs = itertools.permutations(range(table.n_classes), 2)
        value, sides = max(
            (split_value(table, rows, table.label, weight, split, each), each) for each in pairs
        )
        if value > best + 1e-7:
            best, chosen = value, (*split, *sides)
    if chosen is not None:
        put_stump(tree, v, *chosen)
        grow(table, tree, 2 * v + 1, tilt, correct, counts)  # in the kernel's order
        grow(table, tree, 2 * v, tilt, correct, counts)


def local_search(table, tree, correct, counts, slack, state, budget):
    """The best value that one other split, or one leaf in place of a node, would give."""
    values = [value_of(table, tree)]
    for v in range(1, len(tree) // 2):
        for column, index in every_split(table):
            other = tree.copy()
            other[v, :2] = column, index
            if tree[v, 0] >= 0:
                values.append(value_of(table, other))
        for label in range(table.n_classes):
            other = tree.copy()
            other[v, [0, 2]] = -1, label
            values.append(value_of(table, other))
    return max(values)


def search_trees(table, trees, values, marks, slack, state, plan):
    """The value of the best tree of at most two levels."""
    roots = two_levels(table, table.weight)
    return max(one_level(table, table.weight, 0), *roots.values())


def for_marks(case):
    table = random_boxes(case.rng)
    nodes = random_nodes(case.rng, table, int(case.rng.integers(1, 4)))
    marks = np.zeros((2, len(nodes), len(table.label)), bool)
    return table, nodes, marks[0], marks[1]


def for_sides(case):
    table = random_boxes(case.rng)
    return table, 0, int(case.rng.integers(table.n_thresholds[0]))


def for_shares(case):
    left, right = case.rng.random((2, 9)) < 0.6
    left |= ~right  # every row is somewhere
    weight, share = case.rng.random((2, 9))
    return weight, left, right, share, np.empty((2, 9))


def for_spread(case):
    table, column, index = for_sides(case)
    near = case.rng.integers(0, 9, table.n_thresholds[column]).astype(float)
    return table, table.weight, column, index, float(case.rng.integers(0, 6)), near


def for_sides_spread(case):
    table, weight, column, index, _, near = for_spread(case)
    values = tuple((case.rng.integers(0, 8, 2) / 2).tolist())
    sides, share = case.rng.random((2, len(near))) * 9, some_shares(case.rng, table)[column]
    return table, weight, column, index, share, values, sides, near


def some_shares(rng, table):
    return rng.choice(np.array([0, 0.25, 0.5, 1], np.float32), table.left_from.shape)


def for_side_weights(case):
    table, weight = for_spread(case)[:2]
    return table, weight, some_shares(case.rng, table)


def for_nodes(case):
    return random_nodes(case.rng, random_boxes(case.rng), 3), int(case.rng.integers(1, 8))


CASES = {
    "mark_rows": for_marks,
    "splits_under": for_nodes,
    "put_stump": lambda case: (*for_nodes(case), 1, 2, 0, 1),
    "sides_of": for_sides,
    "shared_weights": for_shares,
    "spread_bound": for_spread,
    "spread_sides": for_sides_spread,
    "side_weights": for_side_weights,
    "widest_top": lambda case: (case.rng.integers(0, 3, case.rng.integers(1, 9)).astype(float),),
}
