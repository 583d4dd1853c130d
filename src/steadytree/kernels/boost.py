"""Boosting by majority: equal votes of one-column questions, each for what is still wrong."""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

UP, DOWN, ALWAYS, NEVER = 0, 1, 2, 3


class BoostTable(NamedTuple):
    """Candidates of a boosting run.

    `size` (q, 2) holds how many codes a question column has, upwards and downwards; `open` (q, 2)
    whether it may be asked that way. Upwards a row says yes when ``code >= cut``, downwards when
    ``code < cut``; cuts start at `first`. `shared` (q,) tells that both codes are the same.
    `forced` (q,) numbers the features that must be asked, -1 for others. `constant` allows votes
    that are the same for every row; `keep_failing` keeps a last vote below the stopping share.
    """

    size: Any
    open: Any
    shared: Any
    forced: Any
    first: int
    constant: bool
    keep_failing: bool


# sums may be taken in any order, many rows at a time: gains that close to each other are ties
@njit(cache=True, nogil=True, fastmath={"reassoc"})
def sum_from(codes, signed, cut):
    """Sum of signed over the rows whose code is at least `cut`."""
    total = 0.0
    for row in range(codes.shape[0]):
        total += signed[row] if codes[row] >= cut else 0.0
    return total


@njit(cache=True, nogil=True)
def best_cuts(codes, signed, size, first, enough):
    """Cuts of a column at which most weight is right, beyond that of saying no to every row.

    signed (n,) is a row's weight, negative where its label is; a later cut must gain by more than
    `enough` over an earlier one. Returns the cut upwards, its gain, and both downwards; -1 and
    minus infinity where there is none.
    """
    total = np.zeros(size)
    if size == 2:
        total[1] = sum_from(codes, signed, 1)
        total[0] = sum_from(codes, signed, 0) - total[1]
    else:
        for row in range(codes.shape[0]):
            total[codes[row]] += signed[row]
    whole = total.sum()
    up, up_gain, down, down_gain, below = -1, -np.inf, -1, -np.inf, 0.0
    for cut in range(size):
        if cut >= first and whole - below > up_gain + enough:
            up, up_gain = cut, whole - below
        if cut > 0 and below > down_gain + enough:
            down, down_gain = cut, below
        below += total[cut]
    return up, up_gain, down, down_gain


@njit(cache=True, nogil=True)
def gain_of(codes, signed, cut, downwards):
    """What a given cut gains over saying no to every row."""
    gain = sum_from(codes, signed, cut)
    return signed.sum() - gain if downwards else gain


@njit(cache=True, nogil=True)
def weigh_rows(margin, labels, weights, shares, signed):
    """Fill signed (n,) with weights by margin; return their sum and that of positive rows."""
    middle, total, positive = shares.shape[0] // 2, 0.0, 0.0
    for row in range(margin.shape[0]):
        weight = weights[row] * shares[margin[row] + middle]
        total += weight
        signed[row] = weight * labels[row]
        if labels[row] > 0:
            positive += weight
    return total, positive


@njit(cache=True, nogil=True)
def add_vote(codes, labels, cut, way, margin):
    """Add a vote to each row's margin: one up where it is right, one down where it is wrong."""
    for row in range(labels.shape[0]):
        yes = way == ALWAYS
        if way == UP:
            yes = codes[row] >= cut
        elif way == DOWN:
            yes = codes[row] < cut
        margin[row] += labels[row] if yes else -labels[row]


@njit(cache=True, nogil=True)
def search_columns(up, down, table, signed, waiting, best):
    """The vote over all columns that gains most, if it gains more than `best`.

    waiting tells which forced features are still to be asked; while any is, only they are tried.
    Returns gain, column (-1 where none gains more), cut and way.
    """
    enough, must = 1e-12 * np.abs(signed).sum(), waiting.any()
    where, cut, way = -1, 0, UP
    for column in range(up.shape[0]):
        number = table.forced[column]
        if must and (number < 0 or not waiting[number]):
            continue
        size, first = table.size, table.first
        high, high_gain, low, low_gain = best_cuts(
            up[column], signed, size[column, UP], first, enough
        )
        if table.open[column, DOWN] and not table.shared[column]:
            _, _, low, low_gain = best_cuts(down[column], signed, size[column, DOWN], first, enough)
        if table.open[column, UP] and high >= 0 and high_gain > best + enough:
            best, where, cut, way = high_gain, column, high, UP
        if table.open[column, DOWN] and low >= 0 and low_gain > best + enough:
            best, where, cut, way = low_gain, column, low, DOWN
    return best, where, cut, way


@njit(cache=True, nogil=True)
def search_votes(up, down, votes, signed, best):
    """As `search_columns`, among the votes (n_votes, 3) of columns, cuts and ways given before."""
    enough = 1e-12 * np.abs(signed).sum()
    where, cut, way = -1, 0, UP
    for vote in range(votes.shape[0]):
        column, at, direction = votes[vote]
        if column < 0 or stands_before(votes[:vote], column, at, direction):
            continue
        codes = down[column] if direction == DOWN else up[column]
        gain = gain_of(codes, signed, at, direction == DOWN)
        if gain > best + enough:
            best, where, cut, way = gain, column, at, direction
    return best, where, cut, way


@njit(cache=True, nogil=True)
def stands_before(votes, column, cut, way):
    """Whether a vote is among those given before."""
    for vote in range(votes.shape[0]):
        if votes[vote, 0] == column and votes[vote, 1] == cut and votes[vote, 2] == way:
            return True
    return False


@njit(cache=True, nogil=True)
def boost_majority(up, down, table, labels, weights, shares, limits):
    """Choose votes one after the other; stop when none is right on enough weight.

    up, down (q, n) codes; labels (n,) -1 or 1; shares (T, 2 T + 1) the weight of a margin before
    each round; limits holds the stopping share and the most different questions.
    Returns votes (n_votes, 3): column (-1 for votes that do not ask), cut and way.
    """
    n_rounds, n, most = shares.shape[0], labels.shape[0], np.int64(limits[1])
    votes = np.zeros((n_rounds, 3), np.int64)
    margin, signed = np.zeros(n, np.int64), np.empty(n)
    waiting = np.zeros(table.forced.max() + 1, np.bool_)
    waiting[table.forced[table.forced >= 0]] = True
    n_votes, n_asked = 0, 0
    while n_votes < n_rounds:
        total, positive = weigh_rows(margin, labels, weights, shares[n_votes], signed)
        must, best, constant = waiting.any(), -np.inf, NEVER
        # gains are counted from saying no to every row, so a constant yes gains the difference
        if table.constant and not must:
            best = max(2 * positive - total, 0.0)
            constant = ALWAYS if best > 0 else NEVER
        if n_asked < most:
            found = search_columns(up, down, table, signed, waiting, best)
        else:
            found = search_votes(up, down, votes[:n_votes], signed, best)
        best, where, cut, way = found
        if where < 0:
            cut, way = 0, constant
        fails = not total - positive + best >= limits[0] * total
        if best == -np.inf or (fails and not must and not table.keep_failing):
            break
        if where >= 0:
            n_asked += not stands_before(votes[:n_votes], where, cut, way)
            if table.forced[where] >= 0:
                waiting[table.forced[where]] = False
        votes[n_votes, 0], votes[n_votes, 1], votes[n_votes, 2] = where, cut, way
        n_votes += 1
        codes = down[max(where, 0)] if way == DOWN else up[max(where, 0)]
        add_vote(codes, labels, cut, way, margin)
        if fails and not must:
            break
    return votes[:n_votes]
