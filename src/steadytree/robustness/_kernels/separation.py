"""Pairs of rows of different classes that lie close together, and each row's nearest such row."""

import numpy as np

from steadytree._base.jit import kernel


@kernel
def same_only(first, second):
    """Whether two sets of classes, as bits, hold a single class together."""
    either = first | second
    return either & (either - 1) == 0


@kernel
def close_pairs(ranks, bits, start, order, closer, pairs):
    """Fill pairs (m, 2) with close rows of different classes; return how many there are.

    ranks (n, p) is sorted by block, and within a block by column order[0]; block b is
    ``start[b]`` to ``start[b + 1] - 1``. bits (n,) holds each row's classes. closer is
    (last, first): ranks a <= b of column c are close where ``b <= last[first[c] + a]``. Pairs
    beyond the room there is are counted, not filled in.
    """
    last, first = closer
    found, sweep = 0, order[0]
    for block in range(start.shape[0] - 1):
        end = start[block + 1]
        for i in range(start[block], end):
            j = i + 1
            farthest = last[first[sweep] + ranks[i, sweep]]
            while j < end and ranks[j, sweep] <= farthest:
                if not same_only(bits[i], bits[j]):
                    close = True
                    for column in order:
                        low = min(ranks[i, column], ranks[j, column])
                        if max(ranks[i, column], ranks[j, column]) > last[first[column] + low]:
                            close = False
                            break
                    if close:
                        if found < pairs.shape[0]:
                            pairs[found, 0], pairs[found, 1] = i, j
                        found += 1
                j += 1
    return found


@kernel
def nearest_in_blocks(U, bits, start, order, best, reach):
    """Lower best (n,), where infinite, to the nearest row of another class in the same block."""
    # Rows are sorted as for `close_pairs`. Both sides are walked outwards until the sweep column
    # alone is farther than the best found or than `reach`.
    sweep = order[0]
    for block in range(start.shape[0] - 1):
        first, end = start[block], start[block + 1]
        for i in range(first, end):
            if best[i] < np.inf:
                continue
            left, right, x, nearest = i - 1, i + 1, U[i, sweep], best[i]
            while True:
                below = x - U[left, sweep] if left >= first else np.inf
                above = U[right, sweep] - x if right < end else np.inf
                if below <= above:
                    j, distance = left, below
                    left -= 1
                else:
                    j, distance = right, above
                    right += 1
                if distance >= nearest or distance > reach:
                    break
                if same_only(bits[i], bits[j]):
                    continue
                for column in order:
                    distance = max(distance, abs(U[i, column] - U[j, column]))
                    if distance >= nearest:
                        break
                nearest = min(nearest, distance)
            best[i] = nearest
