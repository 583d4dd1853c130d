"""Logistic loss of cards: sums of rows past each cut, and the curve from totals to risks."""

from typing import Any, NamedTuple

import numpy as np

from steadytree._base.jit import kernel

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
@kernel(fastmath={"reassoc"})
def sum_from(codes, signed, cut):
    """Sum of signed over the rows whose code is at least `cut`."""
    total = 0.0
    for row in range(codes.shape[0]):
        total += signed[row] if codes[row] >= cut else 0.0
    return total


@kernel
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


@kernel
def gain_of(codes, signed, cut, downwards):
    """What a given cut gains over saying no to every row."""
    gain = sum_from(codes, signed, cut)
    return signed.sum() - gain if downwards else gain


@kernel
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


@kernel
def add_vote(codes, labels, cut, way, margin):
    """Add a vote to each row's margin: one up where it is right, one down where it is wrong."""
    for row in range(labels.shape[0]):
        yes = way == ALWAYS
        if way == UP:
            yes = codes[row] >= cut
        elif way == DOWN:
            yes = codes[row] < cut
        margin[row] += labels[row] if yes else -labels[row]


@kernel
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


@kernel
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


@kernel
def stands_before(votes, column, cut, way):
    """Whether a vote is among those given before."""
    for vote in range(votes.shape[0]):
        if votes[vote, 0] == column and votes[vote, 1] == cut and votes[vote, 2] == way:
            return True
    return False


@kernel
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


RIDGE = 1e-5  # on the slope, so that it stays finite where totals separate the classes


@kernel
def sums_past_cuts(codes, first, second, n_cuts):
    """Sums of two columns over rows whose code is above each cut: (n_cuts + 1, 2).

    The last row is the sum over all rows.
    """
    sums = np.zeros((n_cuts + 1, 2))
    for row in range(codes.shape[0]):
        place = codes[row] - 1 if codes[row] > 0 else n_cuts
        sums[place, 0] += first[row]
        sums[place, 1] += second[row]
    for cut in range(n_cuts - 2, -1, -1):
        sums[cut] += sums[cut + 1]
    if n_cuts > 0:
        sums[n_cuts] += sums[0]
    return sums


@kernel
def best_condition(codes, downwards, size, tried, shut, slope, curve, limits, must):
    """The condition that promises to lower the loss most: candidate and cut, -1 where none does.

    codes (m, n) tells how many of a candidate's size (m,) cuts a row has passed. A condition holds
    where a row has passed the cut, or has not where the candidate is `downwards`; those that are
    `shut` (m, most cuts) and candidates not `tried` are left out. slope and curve (n,) are a row's
    part in the loss's first and second derivative. limits holds the ridge, the least gain, by how
    much a later candidate must gain more, and the least curve. `must` asks for one at any price.
    """
    ridge, least, enough, flat = limits
    whole = max(curve.sum(), 1e-300)
    best, where, at = -np.inf if must else least, -1, -1
    for one in range(codes.shape[0]):
        if not tried[one]:
            continue
        sums = sums_past_cuts(codes[one], slope, curve, size[one])
        top, cut = -np.inf, -1
        for place in range(size[one]):
            g, h = sums[place]
            if downwards[one]:
                g, h = sums[size[one], 0] - g, sums[size[one], 1] - h
            h = max(h - h**2 / whole, 0.0)  # the start is refitted with it
            gain = g if must else -np.inf
            if g > 0 and h > flat:
                gain = g**2 / (2 * (h + ridge))
            if gain > top and not shut[one, place]:
                top, cut = gain, place
        if top > best + enough:
            best, where, at = top, one, cut
    return where, at


@kernel
def softplus(z):
    """log(1 + exp(z)) without overflow."""
    return max(z, 0.0) + np.log1p(np.exp(-abs(z)))


@kernel
def curve_loss(levels, mass, hits, slope, start):
    """Mean logistic loss when level t has risk ``1 / (1 + exp(-(slope t + start)))``."""
    total, lost = 0.0, 0.0
    for k in range(levels.shape[0]):
        z = slope * levels[k] + start
        lost += hits[k] * softplus(-z) + (mass[k] - hits[k]) * softplus(z)
        total += mass[k]
    return lost / total


@kernel
def newton_step(levels, mass, hits, slope, start):
    """Newton's step of slope and start on the loss, with a pinch of ridge on the slope."""
    total, g0, g1, h00, h01, h11 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(levels.shape[0]):
        z = min(max(slope * levels[k] + start, -700.0), 700.0)
        risk = 1 / (1 + np.exp(-z))
        rest, curve = mass[k] * risk - hits[k], mass[k] * risk * (1 - risk)
        total += mass[k]
        g0 += rest * levels[k]
        g1 += rest
        h00 += curve * levels[k] ** 2
        h01 += curve * levels[k]
        h11 += curve
    g0, g1 = g0 / total + RIDGE * slope, g1 / total
    h00, h01, h11 = h00 / total + RIDGE, h01 / total, h11 / total + 1e-10
    scale = h00 * h11 - h01 * h01
    return (h11 * g0 - h01 * g1) / scale, (h00 * g1 - h01 * g0) / scale


@kernel
def fit_curve(levels, mass, hits):
    """Slope, start and mean loss of the logistic curve through levels; the slope is not negative.

    mass (m,) is the weight at each level, hits (m,) that of the second class.
    """
    share = min(max(hits.sum() / mass.sum(), 1e-9), 1 - 1e-9)
    flat = np.log(share / (1 - share))
    slope, start = 0.0, flat
    now = curve_loss(levels, mass, hits, slope, start)
    for _ in range(30):
        down, left = newton_step(levels, mass, hits, slope, start)
        size = 1.0
        while (
            size > 1e-6
            and curve_loss(levels, mass, hits, slope - size * down, start - size * left) > now
        ):
            size /= 2
        if size <= 1e-6:
            break
        slope, start = slope - size * down, start - size * left
        before, now = now, curve_loss(levels, mass, hits, slope, start)
        if before - now < 1e-10:
            break
    if slope < 0:
        return 0.0, flat, curve_loss(levels, mass, hits, 0.0, flat)
    return slope, start, now
