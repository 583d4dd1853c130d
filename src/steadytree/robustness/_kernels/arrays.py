"""What numba compiles for seconds where numpy's own words are used: filling, ordering, taking."""

import numpy as np

from steadytree._base.jit import kernel


@kernel
def add_to(total, values, times):
    """Add values (n,), so many times, to total (n,)."""
    for k in range(values.shape[0]):
        total[k] += times * values[k]


@kernel
def sum_of(values):
    """The sum of values (n,), in their order."""
    total = 0.0
    for k in range(values.shape[0]):
        total += values[k]
    return total


@kernel
def largest_of(values):
    """The largest of values (n,), minus infinity without any."""
    most = -np.inf
    for k in range(values.shape[0]):
        most = max(most, values[k])
    return most


@kernel
def index_of_largest(values):
    """Where the largest of values (n,) is, the first of equal ones."""
    best = 0
    for k in range(1, values.shape[0]):
        if values[k] > values[best]:
            best = k
    return best


@kernel
def sort_by(keys, order, size):
    """Sort order[:size] by keys (n,), equal ones by their number: Shell's sort."""
    gap = size // 2
    while gap > 0:
        for at in range(gap, size):
            item, to = order[at], at
            while to >= gap:
                other = order[to - gap]
                if keys[other] < keys[item] or (keys[other] == keys[item] and other < item):
                    break
                order[to] = other
                to -= gap
            order[to] = item
        gap = 1 if gap == 2 else gap * 5 // 11


@kernel
def any_of(flags):
    """Whether one of flags (n,) holds."""
    found = False
    for k in range(flags.shape[0]):
        found |= flags[k]
    return found


@kernel
def rows_with(flags):
    """The indices at which flags (n,) hold."""
    size = 0
    for k in range(flags.shape[0]):
        size += flags[k]
    found, size = np.empty(size, np.int64), 0
    for k in range(flags.shape[0]):
        if flags[k]:
            found[size] = k
            size += 1
    return found


@kernel
def rows_above(values):
    """The indices at which values (n,) are above 0."""
    size = 0
    for k in range(values.shape[0]):
        size += values[k] > 0.0
    found, size = np.empty(size, np.int64), 0
    for k in range(values.shape[0]):
        if values[k] > 0.0:
            found[size] = k
            size += 1
    return found
