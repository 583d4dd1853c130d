"""Compiled loops of risk scores: boosting by majority, and the logistic loss."""

from typing import Any, NamedTuple

import numpy as np

from steadytree._base.jit import kernel

UP, DOWN, ALWAYS, NEVER = 0, 1, 2, 3


class BoostTable(NamedTuple):
    """Candidates of a boosting run: derived features with their bins, by direction (UP or DOWN)."""

    # UP votes yes where ``bin_index >= threshold``, DOWN where ``bin_index < threshold``.

    size: Any  # (q, 2), number of bins by direction
    allowed: Any  # (q, 2), whether conditions of that direction may be used
    shared: Any  # (q,), whether the bins of both directions are the same
    forced: Any  # (q,), number of the column that must be used, -1 for others
    first: int  # first threshold
    constant: bool  # allow votes that are the same for every row
    keep_failing: bool  # keep a last vote below the stopping share


# sums may be taken in any order (SIMD): gains that differ by rounding only count as ties
@kernel(fastmath={"reassoc"})
def sum_from(binned, signed, threshold):
    """Sum of signed over the rows whose bin is at least `threshold`."""
    total = 0.0
    for row in range(binned.shape[0]):
        total += signed[row] if binned[row] >= threshold else 0.0
    return total


@kernel
def best_thresholds(binned, signed, size, first, enough):
    """Thresholds of a column with the most correct weight, beyond that of voting no everywhere.

    signed (n,) is a row's weight, negative where its label is; a later threshold must gain more
    than `enough` over an earlier one. Returns threshold and gain upwards, and both downwards; -1
    and minus infinity where there is none.
    """
    total = np.zeros(size)
    if size == 2:
        total[1] = sum_from(binned, signed, 1)
        total[0] = sum_from(binned, signed, 0) - total[1]
    else:
        for row in range(binned.shape[0]):
            total[binned[row]] += signed[row]
    all_rows = total.sum()
    up, up_gain, down, down_gain, below = -1, -np.inf, -1, -np.inf, 0.0
    for threshold in range(size):
        if threshold >= first and all_rows - below > up_gain + enough:
            up, up_gain = threshold, all_rows - below
        if threshold > 0 and below > down_gain + enough:
            down, down_gain = threshold, below
        below += total[threshold]
    return up, up_gain, down, down_gain


@kernel
def gain_of(binned, signed, threshold, downwards):
    """Gain of a given threshold over voting no everywhere."""
    gain = sum_from(binned, signed, threshold)
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
def add_vote(binned, labels, threshold, direction, margin):
    """Add a vote to each row's margin: +1 where it is correct, -1 where it is wrong."""
    for row in range(labels.shape[0]):
        yes = direction == ALWAYS
        if direction == UP:
            yes = binned[row] >= threshold
        elif direction == DOWN:
            yes = binned[row] < threshold
        margin[row] += labels[row] if yes else -labels[row]


@kernel
def search_columns(up, down, table, signed, waiting, best):
    """The vote over all columns that gains most, if it gains more than `best`.

    waiting flags forced columns that are not used yet; while there are any, only they are tried.
    Returns gain, column (-1 where none gains more), threshold and direction.
    """
    enough, must = 1e-12 * np.abs(signed).sum(), waiting.any()
    where, threshold, direction = -1, 0, UP
    for column in range(up.shape[0]):
        number = table.forced[column]
        if must and (number < 0 or not waiting[number]):
            continue
        size, first = table.size, table.first
        high, high_gain, low, low_gain = best_thresholds(
            up[column], signed, size[column, UP], first, enough
        )
        if table.allowed[column, DOWN] and not table.shared[column]:
            _, _, low, low_gain = best_thresholds(
                down[column], signed, size[column, DOWN], first, enough
            )
        if table.allowed[column, UP] and high >= 0 and high_gain > best + enough:
            best, where, threshold, direction = high_gain, column, high, UP
        if table.allowed[column, DOWN] and low >= 0 and low_gain > best + enough:
            best, where, threshold, direction = low_gain, column, low, DOWN
    return best, where, threshold, direction


@kernel
def search_votes(up, down, votes, signed, best):
    """As `search_columns`, among the earlier votes (n_votes, 3): column, threshold, direction."""
    enough = 1e-12 * np.abs(signed).sum()
    where, threshold, direction = -1, 0, UP
    for vote in range(votes.shape[0]):
        column, at, toward = votes[vote]
        if column < 0 or stands_before(votes[:vote], column, at, toward):
            continue
        binned = down[column] if toward == DOWN else up[column]
        gain = gain_of(binned, signed, at, toward == DOWN)
        if gain > best + enough:
            best, where, threshold, direction = gain, column, at, toward
    return best, where, threshold, direction


@kernel
def stands_before(votes, column, threshold, direction):
    """Whether a vote is among the earlier ones."""
    for vote in range(votes.shape[0]):
        if votes[vote, 0] == column and votes[vote, 1] == threshold and votes[vote, 2] == direction:
            return True
    return False


@kernel
def boost_majority(up, down, table, labels, weights, shares, limits):
    """Choose votes one after the other; stop when none is correct on enough weight.

    up, down (q, n) are bins; labels (n,) -1 or 1; shares (T, 2 T + 1) the weight of a margin before
    each round; limits holds the stopping share and the maximum number of different conditions.
    Returns votes (n_votes, 3): column (-1 for constant votes), threshold and direction.
    """
    n_rounds, n, most = shares.shape[0], labels.shape[0], np.int64(limits[1])
    votes = np.zeros((n_rounds, 3), np.int64)
    margin, signed = np.zeros(n, np.int64), np.empty(n)
    waiting = np.zeros(table.forced.max() + 1, np.bool_)
    waiting[table.forced[table.forced >= 0]] = True
    n_votes, n_used = 0, 0
    while n_votes < n_rounds:
        total, positive = weigh_rows(margin, labels, weights, shares[n_votes], signed)
        must, best, constant = waiting.any(), -np.inf, NEVER
        # gains are relative to voting no everywhere, so a constant yes gains the difference
        if table.constant and not must:
            best = max(2 * positive - total, 0.0)
            constant = ALWAYS if best > 0 else NEVER
        if n_used < most:
            found = search_columns(up, down, table, signed, waiting, best)
        else:
            found = search_votes(up, down, votes[:n_votes], signed, best)
        best, where, threshold, direction = found
        if where < 0:
            threshold, direction = 0, constant
        fails = not total - positive + best >= limits[0] * total
        if best == -np.inf or (fails and not must and not table.keep_failing):
            break
        if where >= 0:
            n_used += not stands_before(votes[:n_votes], where, threshold, direction)
            if table.forced[where] >= 0:
                waiting[table.forced[where]] = False
        votes[n_votes, 0], votes[n_votes, 1], votes[n_votes, 2] = where, threshold, direction
        n_votes += 1
        binned = down[max(where, 0)] if direction == DOWN else up[max(where, 0)]
        add_vote(binned, labels, threshold, direction, margin)
        if fails and not must:
            break
    return votes[:n_votes]


RIDGE = 1e-5  # on the slope, so that it stays finite where totals separate the classes


@kernel
def sums_past_thresholds(binned, first, second, n_thresholds):
    """Sums (n_thresholds + 1, 2) over rows whose bin is above each threshold, and over all rows."""
    sums = np.zeros((n_thresholds + 1, 2))
    for row in range(binned.shape[0]):
        index = binned[row] - 1 if binned[row] > 0 else n_thresholds
        sums[index, 0] += first[row]
        sums[index, 1] += second[row]
    for threshold in range(n_thresholds - 2, -1, -1):
        sums[threshold] += sums[threshold + 1]
    if n_thresholds > 0:
        sums[n_thresholds] += sums[0]
    return sums


@kernel
def best_condition(binned, downwards, size, tried, excluded, slope, curve, limits, must):
    """The condition with the largest predicted gain: candidate and threshold, -1 where none has.

    binned (m, n) counts how many of a candidate's size (m,) thresholds a row has passed. A
    condition holds where a row has passed the threshold, or has not where the candidate is
    `downwards`; those `excluded` (m, most thresholds) and candidates not `tried` are left out.
    slope and curve (n,) are a row's part in the first and second derivative of the loss. limits
    holds the ridge, the least gain, the margin that a later candidate needs, and the least curve.
    With `must` a condition is returned even if it raises the loss.
    """
    ridge, least, enough, flat = limits
    total = max(curve.sum(), 1e-300)
    best, where, at = -np.inf if must else least, -1, -1
    for one in range(binned.shape[0]):
        if not tried[one]:
            continue
        sums = sums_past_thresholds(binned[one], slope, curve, size[one])
        top, threshold = -np.inf, -1
        for index in range(size[one]):
            g, h = sums[index]
            if downwards[one]:
                g, h = sums[size[one], 0] - g, sums[size[one], 1] - h
            h = max(h - h**2 / total, 0.0)  # the intercept is refitted with it
            gain = g if must else -np.inf
            if g > 0 and h > flat:
                gain = g**2 / (2 * (h + ridge))
            if gain > top and not excluded[one, index]:
                top, threshold = gain, index
        if top > best + enough:
            best, where, at = top, one, threshold
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
    """Newton's step of slope and start on the loss, with a small ridge on the slope."""
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
    """Slope, start and mean loss of the logistic curve through levels; the slope is at least 0."""
    # mass (m,) is the weight at each level, hits (m,) that of the second class
    share = min(max(hits.sum() / mass.sum(), 1e-9), 1 - 1e-9)
    flat = np.log(share / (1 - share))
    slope, start = 0.0, flat
    now = curve_loss(levels, mass, hits, slope, start)
    for _ in range(30):
        down, left = newton_step(levels, mass, hits, slope, start)
        size, before = 1.0, now
        now = curve_loss(levels, mass, hits, slope - down, start - left)
        while size > 1e-6 and now > before:
            size /= 2
            now = curve_loss(levels, mass, hits, slope - size * down, start - size * left)
        if size <= 1e-6:
            now = before
            break
        slope, start = slope - size * down, start - size * left
        if before - now < 1e-10:
            break
    if slope < 0:
        return 0.0, flat, curve_loss(levels, mass, hits, 0.0, flat)
    return slope, start, now
