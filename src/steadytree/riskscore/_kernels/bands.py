"""Bands of a risk score: sums by bin, the best split of a band, and integer points."""

from typing import NamedTuple

import numpy as np

from steadytree._base.jit import kernel
from steadytree.models._kernels import set_all

FLAT = 1e-9  # differences of log odds up to this count as none


class BandTable(NamedTuple):
    """Variables in bins with their current bands; bin `size[v]` of a variable is for missing."""

    size: np.ndarray  # (p,) int64: bins without the missing one
    categorical: np.ndarray  # (p,) bool
    weight: np.ndarray  # (p, b) float64: weight of the rows in each bin
    allowed: np.ndarray  # (p,) bool: may be split
    sign: np.ndarray  # (p,) int64: 1 and -1 for risks that may only rise or fall, else 0
    turn: np.ndarray  # (p,) float64: price of each change of direction
    price: np.ndarray  # (p,) float64: price of a threshold; of categories, times chance's spread
    band: np.ndarray  # (p, b) int64: band of each bin
    value: np.ndarray  # (p, b) float64: log odds of the bin's band


@kernel
def sum_bins(binned, gradient, hessian, n_bins):
    """Sums (p, n_bins) of integers by bin: whole numbers, so that no order of rows matters."""
    p, n = binned.shape
    first, second = np.empty((p, n_bins), np.int64), np.empty((p, n_bins), np.int64)
    for v in range(p):
        set_all(first[v], 0)
        set_all(second[v], 0)
        for row in range(n):
            first[v, binned[v, row]] += gradient[row]
            second[v, binned[v, row]] += hessian[row]
    return first, second


@kernel
def count_turns(values, size):
    """Changes of direction along values[:size]; equal neighbours have none."""
    turns, last = 0, 0
    for k in range(1, size):
        step = values[k] - values[k - 1]
        if abs(step) > FLAT:
            now = 1 if step > 0 else -1
            turns += last != 0 and now != last
            last = now
    return turns


@kernel
def runs_against(values, size, sign):
    """Whether values[:size] fall where they may only rise, or rise where they may only fall."""
    against = 0
    for k in range(1, size):
        against += sign * (values[k] - values[k - 1]) < -FLAT
    return against > 0


@kernel
def split_gain(g, h, others_g, others_h, value, ridge):
    """Twice the fall of the penalised loss, to second order, when a band becomes two."""
    one, two = g + ridge * value, others_g + ridge * value
    return one * one / (h + ridge) + two * two / (others_h + ridge) - ridge * value * value


@kernel
def weighted_spread(odds, weight, n):
    """Weighted sum of squares around the weighted mean, of the first n."""
    # in loops here and below: numba compiles array expressions, sorting and the like for seconds
    total, mean, spread = 0.0, 0.0, 0.0
    for k in range(n):
        total += weight[k]
        mean += odds[k] * weight[k]
    mean /= max(total, 1e-300)
    for k in range(n):
        spread += weight[k] * (odds[k] - mean) ** 2
    return spread


@kernel
def group_price(table, v, bins, first, second):
    """Price of a split of categories: high where chance alone would part them as well."""
    # chance gives the log odds of m categories a chi-squared spread of m - 1. Its share of the
    # spread of all categories is its share of what a split within a band gains, too
    n_bins, n_known, n_part = second.shape[1], 0, 0
    odds, weight = np.empty(n_bins), np.empty(n_bins)
    for bin_ in range(n_bins):
        if table.weight[v, bin_] > 0 and second[v, bin_] > 0:
            odds[n_known] = table.value[v, bin_] - first[v, bin_] / second[v, bin_]
            weight[n_known] = second[v, bin_]
            n_known += 1
    whole = weighted_spread(odds, weight, n_known)
    for bin_ in bins:
        if second[v, bin_] > 0:
            odds[n_part], weight[n_part] = first[v, bin_] / second[v, bin_], second[v, bin_]
            n_part += 1
    own = weighted_spread(odds, weight, n_part)
    return table.price[v] * own * min(1.0, (n_known - 1) / max(whole, 1e-300))


@kernel
def order_bins(table, v, band, first, second, ridge):
    """Bins of a band: numbers as they are, categories by log odds; the missing bin of numbers last.

    Empty bins of categories are left out; missing values of numbers where there are none.
    """
    size, n_found = table.size[v], 0
    bins, odds = np.empty(size + 1, np.int64), np.empty(size + 1)
    for bin_ in range(size + 1):
        if table.band[v, bin_] != band:
            continue
        if table.weight[v, bin_] <= 0 and (table.categorical[v] or bin_ == size):
            continue
        own, position = 0.0, n_found
        if table.categorical[v]:  # sorted by insertion, equal ones in their order
            own = first[v, bin_] / (second[v, bin_] + ridge)
        while table.categorical[v] and position and odds[position - 1] > own:
            bins[position], odds[position] = bins[position - 1], odds[position - 1]
            position -= 1
        bins[position], odds[position] = bin_, own
        n_found += 1
    return bins[:n_found]


@kernel
def band_floors(table, v, bins, n_known, least, inner):
    """Least weight left and right of a split: less at either end of the numbers than inside."""
    size = table.size[v]
    starts = table.categorical[v] or bins[0] == 0
    ends = table.categorical[v] or (n_known > 0 and bins[n_known - 1] == size - 1)
    return least if starts else inner, least if ends else inner


@kernel
def turn_price(table, v, bins, k, n_known, low, high):
    """What new changes of direction cost; infinite against the variable's direction."""
    size, tried = table.size[v], table.value[v].copy()
    for j in range(n_known):
        tried[bins[j]] = low if j <= k else high
    if table.sign[v] != 0 and runs_against(tried, size, table.sign[v]):
        return np.inf
    return table.turn[v] * (count_turns(tried, size) - count_turns(table.value[v], size))


@kernel
def sum_of(values, v, bins):
    """Sum of one variable's values (p, b) over some bins."""
    total = 0.0
    for bin_ in bins:
        total += values[v, bin_]
    return total


@kernel
def split_band(table, v, bins, first, second, limits, best):
    """The split of one band that gains more than `best`: gain, price, last bin left, missing left.

    The last bin left is a position in bins, -1 where no split gains more. Missing values go to
    either side, or are all that goes right.
    """
    ridge, least, inner = limits
    size, categorical, value = table.size[v], table.categorical[v], table.value[v, bins[0]]
    price = table.price[v]
    if categorical:
        price = group_price(table, v, bins, first, second)
    n_known = len(bins) - (not categorical and bins[-1] == size)
    total = sum_of(first, v, bins), sum_of(second, v, bins), sum_of(table.weight, v, bins)
    lost = (0.0, 0.0, 0.0)  # missing values of numbers
    if n_known < len(bins):
        lost = first[v, size], second[v, size], table.weight[v, size]
    floors = band_floors(table, v, bins, n_known, least, inner)
    g, h, weight, where, side = 0.0, 0.0, 0.0, -1, 0
    for k in range(len(bins) - 1):
        g, h = g + first[v, bins[k]], h + second[v, bins[k]]
        weight += table.weight[v, bins[k]]
        alone = k == n_known - 1  # missing values against all others
        rest = lost[2] if alone else total[2] - lost[2] - weight
        if weight < (least if alone else floors[0]) or rest < (least if alone else floors[1]):
            continue
        for way in range(1 + (n_known < len(bins) and not alone)):
            own_g, own_h = g + way * lost[0], h + way * lost[1]
            rest_g, rest_h = total[0] - own_g, total[1] - own_h
            gain = split_gain(own_g, own_h, rest_g, rest_h, value, ridge) - price
            if gain > best + FLAT and not categorical and not alone:
                low = value - (own_g + ridge * value) / (own_h + ridge)
                high = value - (rest_g + ridge * value) / (rest_h + ridge)
                gain -= turn_price(table, v, bins, k, n_known, low, high)
            if gain > best + FLAT:
                best, where, side = gain, k, way
    return best, price, where, side


@kernel
def best_split(table, first, second, limits):
    """The split of a band with the largest gain after its price: gain, price, variable, bins.

    first, second (p, b) are gradient and Hessian by bin; limits are the ridge, and the least weight
    of a band at either end and of one between others. The bins flagged leave the band. Variable -1
    where nothing can be split.
    """
    best, paid, chosen = -np.inf, 0.0, -1
    leave = np.empty(table.band.shape[1], np.bool_)
    set_all(leave, False)
    for v in range(len(table.size)):
        if not table.allowed[v]:
            continue
        size, n_bands = table.size[v], 0
        for bin_ in range(size + 1):
            n_bands = max(n_bands, table.band[v, bin_] + 1)
        for band in range(n_bands):
            bins = order_bins(table, v, band, first, second, limits[0])
            if len(bins) < 2:
                continue
            gain, price, k, side = split_band(table, v, bins, first, second, limits, best)
            if k >= 0:
                best, paid, chosen = gain, price, v
                set_all(leave, False)
                for bin_ in bins[k + 1 :]:
                    leave[bin_] = bin_ != size or side == 0  # where missing values stay
    return best, paid, chosen, leave


@kernel
def fit_line(weight, events, ridge, slope, start):
    """Slope and start of the logistic curve through totals 0, 1, ..., and its penalised loss.

    weight, events (t,) are those of the rows with each total; ridge is the price of slope squared.
    Slope and start are where the search begins, unless a constant risk fits better.
    """
    loss, rows, hits = line_loss(weight, events, ridge, slope, start), 0.0, 0.0
    for t in range(len(weight)):
        rows += weight[t]
        hits += events[t]
    if 0 < hits < rows:
        # far from the optimum all risks are 0 or 1, and no step of Newton's leads back
        constant = np.log(hits / (rows - hits))
        null = line_loss(weight, events, ridge, 0.0, constant)
        if not loss <= null:
            slope, start, loss = 0.0, constant, null
    for _ in range(40):
        a, b, aa, ab, bb = ridge * slope, 0.0, ridge, 0.0, 1e-9
        for t in range(len(weight)):
            if weight[t] > 0:
                risk = 1 / (1 + np.exp(-(slope * t + start)))
                rest, curve = weight[t] * risk - events[t], weight[t] * risk * (1 - risk)
                a += rest * t
                b += rest
                aa += curve * t * t
                ab += curve * t
                bb += curve
        det = aa * bb - ab * ab
        if det <= 1e-300:
            break
        da, db, size = (bb * a - ab * b) / det, (aa * b - ab * a) / det, 1.0
        now = line_loss(weight, events, ridge, slope - da, start - db)
        while now > loss and size > 1e-4:
            size /= 2
            now = line_loss(weight, events, ridge, slope - size * da, start - size * db)
        if now > loss:
            break
        slope, start, gained, loss = slope - size * da, start - size * db, loss - now, now
        if gained < 1e-9 * (1 + abs(loss)):
            break
    return slope, start, loss


@kernel
def line_loss(weight, events, ridge, slope, start):
    """Logistic loss of the curve, summed over rows, and its penalty."""
    loss = ridge * slope * slope / 2
    for t in range(len(weight)):
        if weight[t] > 0:
            z = slope * t + start
            loss += weight[t] * (max(z, 0.0) + np.log1p(np.exp(-abs(z)))) - events[t] * z
    return loss


@kernel
def points_loss(totals, held, change, weight, events, slope, start):
    """`fit_line` where totals (m,) of patterns change by `change` where held (m,) is true."""
    top = 0
    for m in range(len(weight)):
        top = max(top, totals[m])
    both = np.empty((2, top + max(change, 0) + 1))
    summed, hits = both[0], both[1]
    set_all(summed, 0.0)
    set_all(hits, 0.0)
    for m in range(len(weight)):
        total = totals[m] + change * held[m]
        summed[total] += weight[m]
        hits[total] += events[m]
    return fit_line(summed, hits, 0.0, slope, start)


@kernel
def add_points(totals, held, change):
    """Add a change to the totals (m,) where held (m,) is true."""
    for m in range(totals.shape[0]):
        totals[m] += change * held[m]


@kernel
def polish_steps(steps, owner, held, weight, events, most, least, slope, start):
    """Change one step by one at a time while the loss falls: steps, slope, start, loss.

    held (k, m) flags the steps that patterns have. A variable's steps add up to at most `most`
    points, and to at least `least[k]` for step k.
    """
    steps, totals = steps.copy(), np.empty(len(weight), np.int64)
    set_all(totals, 0)
    for k in range(len(steps)):
        add_points(totals, held[k], steps[k])
    slope, start, loss = points_loss(totals, held[0], 0, weight, events, slope, start)
    moved = True
    while moved:
        moved = False
        for k in range(len(steps)):
            for change in (1, -1):
                own = change
                for other in range(len(steps)):
                    own += steps[other] * (owner[other] == owner[k])
                if steps[k] + change < least[k] or own > most:
                    continue
                a, b, now = points_loss(totals, held[k], change, weight, events, slope, start)
                if now < loss - 1e-6 * (1 + abs(loss)) and a > 0:
                    slope, start, loss, moved = a, b, now, True
                    steps[k] += change
                    add_points(totals, held[k], change)
    return steps, slope, start, loss


@kernel
def round_between(low, high, near):
    """The roundest number in (low, high] near `near`: a multiple of 1, 5 or 2 powers of ten.

    The upper end where no such number of 15 digits lies between.
    """
    if low < 0 <= high:
        return 0.0
    top = int(np.ceil(np.log10(max(abs(low), abs(high))))) + 1
    for power in range(top, top - 17, -1):
        for factor, shift in ((1.0, 0), (5.0, -1), (2.0, -1)):
            exponent, found = power + shift, np.inf
            scale = 10.0 ** abs(exponent)
            # multiples are divided by a power of ten, which rounds once: 0.3, not 3 * 0.1
            step = factor * scale if exponent >= 0 else factor / scale
            for whole in (np.floor(near / step), np.ceil(near / step), np.floor(high / step)):
                number = whole * factor * scale if exponent >= 0 else whole * factor / scale
                if low < number <= high and abs(number - near) < abs(found - near):
                    found = number
            if found < np.inf:
                return found
    return high
