"""Rows of different classes that lie close together, found in a k-d tree of the rows."""

from typing import NamedTuple

import numpy as np

from steadytree._base.jit import kernel


class RowTree(NamedTuple):
    """Nodes of a tree over rows sorted by it; node 0 has all rows, children come after parents."""

    start: np.ndarray  # (m,) int64: first row of each node
    end: np.ndarray  # (m,) int64: and the row after its last
    left: np.ndarray  # (m,) int64: the first of its two children, 0 for none
    parent: np.ndarray  # (m,) int64
    low: np.ndarray  # (m, p): least values of its rows
    high: np.ndarray  # (m, p): greatest
    bits: np.ndarray  # (m,) int64: classes of its rows


@kernel
def same_only(first, second):
    """Whether two sets of classes, as bits, hold a single class together, or none."""
    either = first | second
    return either & (either - 1) == 0


def grow_tree(rows, most):
    """Order of the rows, and start, end, left and parent of nodes with at most `most` rows.

    A node is divided in its widest column, between different values as near its middle as can be.
    """
    order = np.arange(len(rows))
    start, end, left, parent = [0], [len(rows)], [0], [0]
    for node, a in enumerate(start):  # which grows meanwhile
        b = end[node]
        if b - a <= most:
            continue
        own = rows[order[a:b]]
        spread = own.max(axis=0) - own.min(axis=0)
        column = int(spread.argmax())
        if not spread[column] > 0:
            continue
        values = own[:, column]
        ranked = np.argsort(values, kind="stable")
        values, order[a:b] = values[ranked], order[a:b][ranked]
        half, n = (b - a) // 2, b - a
        below = int(np.searchsorted(values, values[half]))
        above = int(np.searchsorted(values, values[half - 1], "right"))
        near = below if below > 0 and (above == n or half - below <= above - half) else above
        left[node], middle = len(start), a + near
        start += [a, middle]
        end += [middle, b]
        left += [0, 0]
        parent += [node, node]
    return order, *(np.array(one, np.int64) for one in (start, end, left, parent))


def bound_nodes(start, end, left, rows, bits):
    """Least and greatest values (m, p) of the rows of each node, and their classes (m,)."""
    m, p = len(start), rows.shape[1]
    low, high = np.empty((m, p), rows.dtype), np.empty((m, p), rows.dtype)
    found = np.zeros(m, np.int64)
    leaves = np.flatnonzero(left == 0)
    leaves = leaves[np.argsort(start[leaves])]  # which have all rows, one after another
    low[leaves] = np.minimum.reduceat(rows, start[leaves])
    high[leaves] = np.maximum.reduceat(rows, start[leaves])
    found[leaves] = np.bitwise_or.reduceat(bits, start[leaves])
    for node in np.flatnonzero(left)[::-1]:  # children come later
        one, two = left[node], left[node] + 1
        np.minimum(low[one], low[two], out=low[node])
        np.maximum(high[one], high[two], out=high[node])
        found[node] = found[one] | found[two]
    return low, high, found


@kernel
def reach_of(ranks, i, closer, near):
    """Fill near (2, p) with the least and greatest ranks that are close to row i."""
    for c in range(ranks.shape[1]):
        at = closer[2][c] + ranks[i, c]
        near[0, c], near[1, c] = closer[0][at], closer[1][at]


@kernel
def meets(low, high, near):
    """Whether a box may hold close rows; of a single row, whether it is close."""
    c = 0
    while c < len(low) and near[0, c] <= high[c] and low[c] <= near[1, c]:
        c += 1
    return c == len(low)


@kernel
def close_pairs(tree, ranks, bits, closer, most):
    """Pairs (k, 2) of close rows of different classes; stops at one more than `most`.

    ranks (n, p) and bits (n,) are sorted by the tree, whose boxes are of ranks. closer is (least,
    last, first): ranks a and b of column c are close where
    ``least[first[c] + a] <= b <= last[first[c] + a]``.
    """
    pairs, found = np.empty((1024, 2), np.int64), 0
    stack, near = np.zeros(len(tree.start) + 1, np.int64), np.empty((2, ranks.shape[1]), np.int64)
    for i in range(len(ranks)):
        reach_of(ranks, i, closer, near)
        stack[0], size = 0, 1
        while size:
            size -= 1
            node = stack[size]
            if tree.end[node] <= i + 1 or same_only(bits[i], tree.bits[node]):
                continue
            if not meets(tree.low[node], tree.high[node], near):
                continue
            if tree.left[node]:
                stack[size], stack[size + 1] = tree.left[node], tree.left[node] + 1
                size += 2
                continue
            for j in range(max(tree.start[node], i + 1), tree.end[node]):
                if same_only(bits[i], bits[j]) or not meets(ranks[j], ranks[j], near):
                    continue
                if found == len(pairs):
                    more = np.empty((2 * found, 2), np.int64)
                    for k in range(found):  # numba compiles ``more[:found] = pairs`` for seconds
                        more[k, 0], more[k, 1] = pairs[k, 0], pairs[k, 1]
                    pairs = more
                pairs[found, 0], pairs[found, 1] = i, j
                found += 1
                if found > most:
                    return pairs[:found]
    return pairs[:found]


@kernel
def box_distance(low, high, row, limit):
    """Largest distance of a row from a box over the columns; any number from `limit` on if more."""
    far = 0.0
    for c in range(len(row)):
        far = max(far, low[c] - row[c], row[c] - high[c])
        if far >= limit:
            break
    return far


@kernel
def nearest_rows(tree, rows, bits, wanted, best, together):
    """Lower best (n,) of the wanted rows to the distance of the nearest row of another class.

    With `together` a row is only looked for nearer than all that were found before it.
    """
    stack, far = np.empty(len(tree.start) + 1, np.int64), np.empty(len(tree.start) + 1)
    least = np.inf
    for i in wanted:
        nearest = min(best[i], least) if together else best[i]
        stack[0], size = 0, 1
        while size:
            size -= 1
            node = stack[size]
            if far[size] >= nearest and node > 0:
                continue
            if tree.left[node]:
                first, second = tree.left[node], tree.left[node] + 1
                one = distance_to(tree, first, rows[i], bits[i], nearest)
                two = distance_to(tree, second, rows[i], bits[i], nearest)
                if one < two:  # the nearer child is looked at first
                    first, second, one, two = second, first, two, one
                stack[size], stack[size + 1], far[size], far[size + 1] = first, second, one, two
                size += 2
                continue
            for j in range(tree.start[node], tree.end[node]):
                if not same_only(bits[i], bits[j]) and i != j:
                    nearest = min(nearest, box_distance(rows[j], rows[j], rows[i], nearest))
        best[i] = min(best[i], nearest)
        least = min(least, nearest)


@kernel
def distance_to(tree, node, row, bits, limit):
    """Least distance that rows of other classes in a node may have."""
    if same_only(bits, tree.bits[node]):
        return np.inf
    return box_distance(tree.low[node], tree.high[node], row, limit)


@kernel
def find_close(tree, ranks, alive, own, near, unlike, stack):
    """Some close row with a class other than `unlike`, -1 for none; own (n,), alive (m,) are bits.

    Only classes in own and alive count, which change while rows are paid for.
    """
    stack[0], size = 0, 1
    while size:
        size -= 1
        node = stack[size]
        if alive[node] & ~unlike == 0 or not meets(tree.low[node], tree.high[node], near):
            continue
        if tree.left[node]:
            stack[size], stack[size + 1] = tree.left[node], tree.left[node] + 1
            size += 2
            continue
        for j in range(tree.start[node], tree.end[node]):
            if own[j] & ~unlike and meets(ranks[j], ranks[j], near):
                return j
    return -1


@kernel
def mark_row(tree, leaf_of, alive, own, j):
    """Classes of the nodes above row j, after those of the row changed."""
    node = leaf_of[j]
    while True:
        now = 0
        if tree.left[node]:
            now = alive[tree.left[node]] | alive[tree.left[node] + 1]
        else:
            for k in range(tree.start[node], tree.end[node]):
                now |= own[k]
        if now == alive[node]:
            return
        alive[node] = now
        if node == 0:
            return
        node = tree.parent[node]


@kernel
def cover_close(tree, ranks, counts, closer):
    """A cover of all close pairs without listing them: dropped (n, k), and what any cover drops.

    Every pair is paid for with as much of both ends as is left of the smaller one. What is paid is
    a lower bound; ends that are used up are a cover of at most twice that. In it, those that none
    of the rest is close to are kept after all.
    """
    n, k = counts.shape
    leaf_of, own = np.zeros(n, np.int64), np.zeros(n, np.int64)
    for node in range(len(tree.start)):
        if not tree.left[node]:
            leaf_of[tree.start[node] : tree.end[node]] = node
    for i in range(n):
        for a in range(k):
            own[i] |= (counts[i, a] > 0) << a
    rest, paid, alive = counts.copy(), 0, tree.bits.copy()
    stack, near = np.zeros(len(tree.start) + 1, np.int64), np.empty((2, ranks.shape[1]), np.int64)
    for i in range(n):
        reach_of(ranks, i, closer, near)
        for a in range(k):
            while rest[i, a]:
                j = find_close(tree, ranks, alive, own, near, 1 << a, stack)
                if j < 0:
                    break
                paid += pay(rest, own, i, a, j)
                mark_row(tree, leaf_of, alive, own, i)
                mark_row(tree, leaf_of, alive, own, j)
    for i in range(n):
        reach_of(ranks, i, closer, near)
        for a in range(k):
            is_dropped = counts[i, a] > 0 and rest[i, a] == 0
            if is_dropped and find_close(tree, ranks, alive, own, near, 1 << a, stack) < 0:
                rest[i, a] = counts[i, a]
                own[i] |= 1 << a
                mark_row(tree, leaf_of, alive, own, i)
    return (counts > 0) & (rest == 0), paid


@kernel
def pay(rest, own, i, a, j):
    """Take from class a of row i and from the other classes of row j until either is used up."""
    paid = 0
    for b in range(rest.shape[1]):
        if b != a:
            part = min(rest[i, a], rest[j, b])
            rest[i, a] -= part
            rest[j, b] -= part
            paid += part
            if rest[j, b] == 0:
                own[j] &= ~(1 << b)
    if rest[i, a] == 0:
        own[i] &= ~(1 << a)
    return paid
