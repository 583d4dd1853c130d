"""Twins of the kernels in `kernels/separation.py`, and cases for them."""

import itertools

import numpy as np


def same_only(first, second):
    return bin(first | second).count("1") < 2


def block_of(start, row):
    return int(np.searchsorted(start, row, side="right"))


def are_close(one, other, closer):
    last, first = closer
    return all(
        max(a, b) <= last[first[column] + min(a, b)]
        for column, (a, b) in enumerate(zip(one, other, strict=True))
    )


def close_pairs(ranks, bits, start, order, closer, pairs):
    found = [
        (i, j)
        for i, j in itertools.combinations(range(len(ranks)), 2)
        if block_of(start, i) == block_of(start, j)
        and not same_only(bits[i], bits[j])
        and are_close(ranks[i], ranks[j], closer)
    ]
    for place, pair in enumerate(found[: len(pairs)]):
        pairs[place] = pair
    return len(found)


def nearest_in_blocks(U, bits, start, order, best, reach):
    for i in np.flatnonzero(np.isinf(best)):
        for j in range(len(U)):
            if (
                block_of(start, i) == block_of(start, j)
                and not same_only(bits[i], bits[j])
                and abs(U[i, order[0]] - U[j, order[0]]) <= reach
                and i != j
            ):
                best[i] = min(best[i], np.abs(U[i] - U[j]).max())


def sorted_rows(case):
    rng = case.rng
    n = max(case.n, 1)
    U = rng.integers(0, 5, (n, 3)) / 4
    order = rng.permutation(3)
    block = np.sort(rng.integers(0, 3, n))
    rank = np.lexsort((U[:, order[0]], block))
    start = np.flatnonzero(np.concatenate([[True], np.diff(block) > 0, [True]]))
    return np.ascontiguousarray(U[rank]), rng.integers(1, 8, n), start, order


def ranked_rows(case):
    """Ranks 0 to 4 of three columns, and the last that is close to each: rising, not below it."""
    U, *rest = sorted_rows(case)
    last = [np.maximum.accumulate(case.rng.integers(np.arange(5), 5)) for _ in range(3)]
    closer = np.concatenate(last), np.array([0, 5, 10])
    return (np.ascontiguousarray((4 * U).astype(np.int64)), *rest, closer)


CASES = {
    "same_only": lambda case: (int(case.rng.integers(1, 8)), int(case.rng.integers(1, 8))),
    "close_pairs": lambda case: (
        *ranked_rows(case),
        np.zeros((int(case.rng.integers(0, 40)), 2), np.int64),
    ),
    "nearest_in_blocks": lambda case: (
        *(rows := sorted_rows(case)),
        case.rng.choice([0.0, np.inf], len(rows[0])),
        float(case.rng.choice([0.25, 0.5, np.inf])),
    ),
}
