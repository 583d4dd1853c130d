"""Trees over rows that may be anywhere in a box: what they keep, and local search.

A tree is an array (2m, 3) of
column, threshold index and label; node v has the children 2v and 2v + 1, the root is 1, and nodes
from m on are leaves. The column of a leaf is -1; what is stored under a leaf does not count.
"""

import numpy as np

from steadytree._base.jit import kernel
from steadytree.models._kernels import set_all
from steadytree.robustness._kernels.arrays import (
    any_of,
    index_of_largest,
    largest_of,
    rows_with,
    sum_of,
)
from steadytree.robustness._kernels.box_splits import (
    ROUNDING,
    all_thresholds,
    best_box_split,
    column_of,
)

COLUMN, INDEX, LABEL = 0, 1, 2
NONE, KICKED, GIVEN, GIVEN_ON = 0.0, 1.0, 2.0, 3.0  # of the tree that is under way
REGROWN = 0.5  # share of kicks after which the node's sub-trees are grown anew
RESTARTED = 0.025  # share of failures after which the search goes back to the best tree
MULTIPLIER = np.uint64(0x2545F4914F6CDD1D)  # of xorshift64*


@kernel
def used_nodes(tree):
    """Which nodes are not under a leaf."""
    used = np.zeros(tree.shape[0], np.bool_)
    used[1] = True
    for v in range(1, tree.shape[0] // 2):
        if used[v] and tree[v, COLUMN] >= 0:
            used[2 * v], used[2 * v + 1] = True, True
    return used


@kernel
def mark_correct(table, tree, v, correct):
    """Fill correct[v], given those of its children."""
    column, index = tree[v, COLUMN], tree[v, INDEX]
    if column < 0:
        for row in range(table.label.shape[0]):
            correct[v, row] = table.label[row] == tree[v, LABEL]
        return
    left_from, right_below = table.left_from[column], table.right_below[column]
    for row in range(table.label.shape[0]):
        left = correct[2 * v, row] or index < right_below[row]
        correct[v, row] = left and (correct[2 * v + 1, row] or left_from[row] <= index)


@kernel
def mark_rows(table, tree, correct, counts):
    """Fill correct and counts (2m, n) and return the tree's value: weight kept less penalties.

    correct[v, i]: each leaf under v that row i can reach has its label. counts[v, i]: row i is kept
    just where correct[v, i], so it is what v can still decide.
    """
    m, n = tree.shape[0] // 2, table.label.shape[0]
    used, value = used_nodes(tree), 0.0
    for v in range(2 * m - 1, 0, -1):
        set_all(counts[v], v == 1)
        if used[v]:
            mark_correct(table, tree, v, correct)
    for v in range(1, m):
        column, index = tree[v, COLUMN], tree[v, INDEX]
        if not used[v] or column < 0:
            continue
        value -= table.penalty
        left_from, right_below = table.left_from[column], table.right_below[column]
        for row in range(n):
            left, right = left_from[row] <= index, index < right_below[row]
            here = counts[v, row]
            counts[2 * v, row] = here and not right and (left or correct[2 * v + 1, row])
            counts[2 * v + 1, row] = here and not left and (right or correct[2 * v, row])
    for row in range(n):
        if correct[1, row]:
            value += table.weight[row]
    return value


@kernel
def splits_under(tree, v):
    """Splits of the sub-tree at v."""
    if tree[v, COLUMN] < 0:
        return 0
    count, stack, top = 0, np.empty(tree.shape[0], np.int64), 1
    stack[0] = v
    while top > 0:
        top -= 1
        node = stack[top]
        if tree[node, COLUMN] >= 0:
            count += 1
            stack[top], stack[top + 1] = 2 * node, 2 * node + 1
            top += 2
    return count


@kernel
def copy_tree(source, target):
    """Write a tree over another."""
    for v in range(source.shape[0]):
        for k in range(3):
            target[v, k] = source[v, k]


@kernel
def are_same(one, other):
    """Whether two trees are equal, in what does not count as well."""
    for v in range(one.shape[0]):
        for k in range(3):
            if one[v, k] != other[v, k]:
                return False
    return True


@kernel
def lift_child(tree, v, side):
    """Put the sub-tree at a child of v in the stead of v."""
    source, level = 2 * v + side, 1
    while v * level < tree.shape[0]:  # from the top, so that nothing is read after it was changed
        for at in range(level):
            if source * level + at < tree.shape[0]:
                for k in range(3):
                    tree[v * level + at, k] = tree[source * level + at, k]
        level *= 2


@kernel
def put_stump(tree, v, column, index, left, right):
    """Make v a split into two leaves with these labels."""
    tree[v, COLUMN], tree[v, INDEX] = column, index
    for child, label in ((2 * v, left), (2 * v + 1, right)):
        tree[child, COLUMN], tree[child, LABEL] = -1, label


@kernel
def swap_children(tree, v):
    """Exchange the two sub-trees under v."""
    half = 1
    while 2 * v * half < tree.shape[0]:
        for at in range(2 * v * half, (2 * v + 1) * half):
            for k in range(3):
                tree[at, k], tree[at + half, k] = tree[at + half, k], tree[at, k]
        half *= 2


@kernel
def improve_inner(table, tree, v, rows, correct, now, slack, first):
    """Best split of v with its sub-trees as they are, or one of them in its stead; the value.

    `now` is what v is worth; returns that where nothing is changed, and the work.
    """
    penalty, left, right = table.penalty, correct[2 * v], correct[2 * v + 1]
    group, some = np.empty(table.label.shape[0], np.int64), np.empty(rows.shape[0], np.int64)
    size, both, sides = 0, 0.0, np.zeros(2)
    for row in rows:
        if left[row] and right[row]:
            both += table.weight[row]
        elif left[row] or right[row]:
            group[row] = 0 if left[row] else 1
            sides[group[row]] += table.weight[row]
            some[size] = row
            size += 1
    charge = penalty * splits_under(tree, v)
    least = now + charge - both - slack
    found = best_box_split(table, some[:size], group, table.weight, 2, least, first)
    value = found[0] + both - charge if found[1] >= 0 else now
    work = size * table.n_thresholds.shape[0]
    for side in range(2):
        alone = both + sides[side] - penalty * splits_under(tree, 2 * v + side)
        if alone > max(value, now) + ROUNDING:
            lift_child(tree, v, side)
            return alone, work
    if found[1] >= 0:
        if found[3] == 1:
            swap_children(tree, v)
        tree[v, COLUMN], tree[v, INDEX] = found[1], found[2]
    return value, work


@kernel
def improve_node(table, tree, v, correct, counts, slack, first):
    """Change node v for the best, all else as it is; returns the gain and the work.

    Tries one leaf, each child in its stead, and the best split: above two leaves with the best
    labels, else with its sub-trees as they are. A split that loses less than `slack` is taken too.
    `correct` and `counts` are those of the tree before.
    """
    rows, totals, now = rows_with(counts[v]), np.zeros(table.n_classes), 0.0
    for row in rows:
        totals[table.label[row]] += table.weight[row]
        now += table.weight[row] * correct[v, row]
    penalty, label, work = table.penalty, index_of_largest(totals), all_thresholds(table)
    now -= penalty * splits_under(tree, v)
    value, is_split = now, tree[v, COLUMN] >= 0
    if is_split and splits_under(tree, v) > 1:
        value, cost = improve_inner(table, tree, v, rows, correct, now, slack, first)
        work += cost
    else:
        least = max(now, totals[label]) + penalty - slack
        own = table.label, table.weight, table.n_classes
        found = best_box_split(table, rows, *own, least, first)
        work += rows.shape[0] * table.n_thresholds.shape[0]
        if found[1] >= 0:
            value = found[0] - penalty
            put_stump(tree, v, found[1], found[2], found[3], found[4])
    if totals[label] >= value - ROUNDING:  # of equal trees the smaller
        value = totals[label]
        tree[v, COLUMN], tree[v, LABEL] = -1, label
    return value - now, work


@kernel
def next_random(state):
    """A number in [0, 1) from the state (1,) of a xorshift64* generator, which it advances."""
    x = state[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    state[0] = x
    return np.float64((x * MULTIPLIER) >> np.uint64(11)) / 9007199254740992.0


@kernel
def local_search(table, tree, correct, counts, slack, state, budget):
    """Sweep over the nodes until none can be improved, or `budget` work is spent.

    The first sweep may lose up to `slack` at each node, to leave plateaus. Returns the tree's
    value, the work, and whether there is more to do.
    """
    m, p = tree.shape[0] // 2, table.n_thresholds.shape[0]
    value, work = mark_rows(table, tree, correct, counts), 0
    order, more = np.arange(1, m), True
    before = np.empty(tree.shape, np.int64)
    while more and work < budget:
        more = slack > 0.0
        for last in range(m - 2, 0, -1):
            other = int(next_random(state) * (last + 1))
            order[last], order[other] = order[other], order[last]
        for v in order:
            if not any_of(counts[v]):
                continue
            first = int(next_random(state) * p)
            copy_tree(tree, before)
            gain, cost = improve_node(table, tree, v, correct, counts, slack, first)
            work += cost
            if gain > ROUNDING or not are_same(before, tree):
                value = mark_rows(table, tree, correct, counts)
                work += 2 * m * table.label.shape[0]
                more = more or gain > ROUNDING
        slack = 0.0
    return value, work, more


@kernel
def grow(table, tree, v, tilt, correct, counts):
    """Grow the sub-tree at v greedily, classes evened by the exponent `tilt`; returns the work."""
    m, work = tree.shape[0] // 2, 0
    stack, top = np.empty(2 * m, np.int64), 1
    stack[0] = v
    weight, totals = np.empty(table.label.shape[0]), np.empty(table.n_classes)
    share, splits = np.empty(table.n_classes), all_thresholds(table)
    while top > 0:
        top -= 1
        v = stack[top]
        mark_rows(table, tree, correct, counts)
        rows = rows_with(counts[v])
        work += rows.shape[0] * table.n_thresholds.shape[0] + splits
        work += 2 * m * table.label.shape[0]
        set_all(totals, 0.0)
        for row in rows:
            totals[table.label[row]] += table.weight[row]
        tree[v, COLUMN], tree[v, LABEL] = -1, index_of_largest(totals)
        if v >= m or rows.shape[0] == 0:
            continue
        one, most, least = sum_of(totals) / rows.shape[0], largest_of(totals), -np.inf
        for label in range(totals.shape[0]):
            share[label] = ((most + one) / (totals[label] + one)) ** tilt
            least = max(least, totals[label] * share[label])
        for row in rows:
            weight[row] = table.weight[row] * share[table.label[row]]
        found = best_box_split(table, rows, table.label, weight, table.n_classes, least, 0)
        if found[1] >= 0:
            put_stump(tree, v, found[1], found[2], found[3], found[4])
            stack[top], stack[top + 1] = 2 * v, 2 * v + 1
            top += 2
    return work


@kernel
def search_trees(table, trees, values, marks, slack, state, plan):
    """Kick a tree and search from there, over and over; or improve a tree that is given.

    trees (3, 2m, 3) are the one that is kicked, the best, and the one under way; values (3,) are
    the values of the first two, and how far the last is: NONE, KICKED, GIVEN or GIVEN_ON. marks is
    (correct, counts), plan (budget, most, tilt): no kick is made after `budget` work, a tree is
    left under way after `most`, and with a tilt of at least 0 one is grown, and nothing else done.
    The only one of these loops that is called from outside: each such is compiled with all it uses.
    Returns the work.
    """
    (correct, counts), (now, best, tree) = marks, (trees[0], trees[1], trees[2])
    (budget, most, tilt), work = plan, 0
    if tilt >= 0.0:
        return grow(table, tree, 1, tilt, correct, counts)
    while all_thresholds(table) > 0 or values[2] != NONE:
        given, loss = values[2] >= GIVEN, slack if values[2] == GIVEN else 0.0
        if values[2] == NONE:
            if work >= budget:
                break
            loss = slack
            copy_tree(now, tree)
            work += kick(table, tree, correct, counts, state)
        left = max(most - work, 1)
        value, cost, more = local_search(table, tree, correct, counts, loss, state, left)
        work += cost
        values[2] = (GIVEN_ON if given else KICKED) if more else NONE
        if more or given:
            break
        worse = -np.log(1.0 - next_random(state)) * slack
        if value > values[1] + ROUNDING:
            values[1] = value
            copy_tree(tree, best)
        if value >= values[0] - worse:
            values[0] = value
            copy_tree(tree, now)
        elif next_random(state) < RESTARTED:
            values[0] = values[1]
            copy_tree(best, now)
    return work


@kernel
def kick(table, tree, correct, counts, state):
    """Put a random split at a random node; below a leaf, or often, new sub-trees; the work."""
    v, work = 1 + int(next_random(state) * (tree.shape[0] // 2 - 1)), 0
    while v > 1 and tree[v >> 1, COLUMN] < 0:  # only what is used, or just below
        v >>= 1
    pick = int(next_random(state) * all_thresholds(table))
    column, start = column_of(table, pick)
    was_leaf = tree[v, COLUMN] < 0
    tree[v, COLUMN], tree[v, INDEX] = column, pick - start
    tilt = next_random(state)
    if was_leaf or next_random(state) < REGROWN:
        for child in (2 * v, 2 * v + 1):
            tree[child, COLUMN] = -1
        work += grow(table, tree, 2 * v, tilt, correct, counts)
        work += grow(table, tree, 2 * v + 1, tilt, correct, counts)
    return work
