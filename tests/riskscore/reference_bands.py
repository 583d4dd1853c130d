"""Twins of the kernels of bands, and cases for them."""

from decimal import Decimal
from itertools import pairwise

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_expit

from steadytree.riskscore._kernels.bands import BandTable

FLAT = 1e-9


def sum_bins(binned, gradient, hessian, n_bins):
    found = np.zeros((2, len(binned), n_bins), np.int64)
    for v, bins in enumerate(binned):
        np.add.at(found[0, v], bins, gradient)
        np.add.at(found[1, v], bins, hessian)
    return found[0], found[1]


def count_turns(values, size):
    steps = [b - a for a, b in pairwise(values[:size]) if abs(b - a) > FLAT]
    return sum(one * two < 0 for one, two in pairwise(steps))


def runs_against(values, size, sign):
    return bool(any(sign * (values[k] - values[k - 1]) < -FLAT for k in range(1, size)))


def least_loss(g, h, value, ridge):
    """Least value of a quadratic loss around `value` with the ridge on the new value."""
    best = (h * value - g) / (h + ridge)
    return best, g * (best - value) + h * (best - value) ** 2 / 2 + ridge * best**2 / 2


def best_split(table, first, second, limits):
    ridge, least, _ = limits
    best, paid, chosen = -np.inf, 0.0, -1
    leave = np.zeros(table.band.shape[1], bool)
    for v in np.flatnonzero(table.allowed):
        for band in range(table.band[v, : table.size[v] + 1].max() + 1):
            price = price_of(table, v, band, first, second)
            for left, right, floors in splits_of(table, v, band, first, second, limits):
                weights = table.weight[v][left].sum(), table.weight[v][right].sum()
                known = [k for k in (*left, *right) if k < table.size[v] or table.categorical[v]]
                lost = table.weight[v][[k for k in right + left if k not in known]].sum()
                alone = not table.categorical[v] and right == [table.size[v]]
                if alone:
                    floors = (least, least)
                elif table.size[v] in left and not table.categorical[v]:
                    weights = (weights[0] - lost, weights[1])
                elif not table.categorical[v]:
                    weights = (weights[0], weights[1] - lost)
                if weights[0] < floors[0] or weights[1] < floors[1]:
                    continue
                value = table.value[v, left[0]]
                parts = [
                    least_loss(first[v][side].sum(), second[v][side].sum(), value, ridge)
                    for side in (left, right)
                ]
                gain = ridge * value**2 - 2 * (parts[0][1] + parts[1][1]) - price
                if not table.categorical[v] and not alone:
                    after = table.value[v].copy()
                    for side, (at, _) in zip((left, right), parts, strict=True):
                        after[[k for k in side if k < table.size[v]]] = at
                    if table.sign[v] and runs_against(after, table.size[v], table.sign[v]):
                        continue
                    turns = [count_turns(x, table.size[v]) for x in (after, table.value[v])]
                    gain -= table.turn[v] * (turns[0] - turns[1])
                if gain > best + FLAT:
                    best, paid, chosen = gain, price, v
                    leave = np.isin(np.arange(len(leave)), right)
    return best, paid, chosen, leave


def bins_of(table, v, band, first, second, ridge):
    bins = [k for k in range(table.size[v] + 1) if table.band[v, k] == band]
    if table.categorical[v]:
        bins = [k for k in bins if table.weight[v, k] > 0]
        return sorted(bins, key=lambda k: first[v, k] / (second[v, k] + ridge))
    return [k for k in bins if k < table.size[v] or table.weight[v, k] > 0]


def price_of(table, v, band, first, second):
    if not table.categorical[v]:
        return table.price[v]
    bins = bins_of(table, v, band, first, second, 1.0)
    if len(bins) < 2:
        return 0.0
    known = np.flatnonzero(table.weight[v] > 0)
    odds, h = table.value[v] - first[v] / np.where(second[v] > 0, second[v], 1), second[v]
    whole, own = (
        (h[k] * (odds[k] - np.average(odds[k], weights=h[k])) ** 2).sum() for k in (known, bins)
    )
    return table.price[v] * own * min(1, (len(known) - 1) / max(whole, 1e-300))


def splits_of(table, v, band, first, second, limits):
    """Both sides of every split, with the least weight of known values on each."""
    ridge, least, inner = limits
    bins, size = bins_of(table, v, band, first, second, ridge), table.size[v]
    known = bins if table.categorical[v] else [k for k in bins if k < size]
    floors = [least, least]
    if not table.categorical[v] and known:
        floors = [least if known[0] == 0 else inner, least if known[-1] == size - 1 else inner]
    missing = [k for k in bins if k not in known]
    for k in range(1, len(known)):
        yield known[:k], known[k:] + missing, floors
        if missing:
            yield known[:k] + missing, known[k:], floors
    if missing and known:
        yield known, missing, floors


def fit_line(weight, events, ridge, slope, start):
    totals = np.arange(len(weight))

    def loss(at):
        z = at[0] * totals + at[1]
        return -(events * log_expit(z) + (weight - events) * log_expit(-z)).sum() + (
            ridge * at[0] ** 2 / 2
        )

    found = minimize(
        loss,
        [slope, start],
        method="Nelder-Mead",
        options={"xatol": 1e-8, "fatol": 1e-10, "maxiter": 4000},
    )
    return float(found.x[0]), float(found.x[1]), float(found.fun)


def polish_steps(steps, owner, held, weight, events, most, least, slope, start):
    def fit(tried, slope, start):
        totals = tried @ held.astype(int)
        sums = [np.bincount(totals, part, minlength=1) for part in (weight, events)]
        return fit_line(*sums, 0.0, slope, start)

    steps = steps.copy()
    slope, start, loss = fit(steps, slope, start)
    moved = True
    while moved:
        moved = False
        for k in range(len(steps)):
            for change in (1, -1):
                tried = steps.copy()
                tried[k] += change
                if tried[k] < least[k] or tried[owner == owner[k]].sum() > most:
                    continue
                now = fit(tried, slope, start)
                if now[2] < loss - 1e-6 * (1 + abs(loss)) and now[0] > 0:
                    (slope, start, loss), steps, moved = now, tried, True
    return steps, slope, start, loss


def round_between(low, high, near):
    if low < 0 <= high:
        return 0.0
    for power in range(20, -20, -1):
        for factor, shift in ((1, 0), (5, -1), (2, -1)):
            step = Decimal(factor).scaleb(power + shift)
            first = int(Decimal(low) // step) - 2
            last = int(Decimal(high) // step) + 2
            if last - first > 100:
                continue
            numbers = [float(whole * step) for whole in range(first, last + 1)]
            inside = [number for number in numbers if low < number <= high]
            if inside:
                return min(inside, key=lambda number: (abs(number - near), number))
    return high


def table_case(case):
    rng, width = case.rng, 6
    size = np.array([5, 4, 5, 1])
    categorical = np.array([False, False, True, False])
    band, value = np.zeros((4, width), np.int64), np.zeros((4, width))
    weight = rng.integers(0, 9, (4, width)).astype(float)
    for v in range(4):
        n = int(rng.integers(1, min(3, size[v]) + 1))
        if categorical[v]:
            band[v] = np.concatenate([np.arange(n), rng.integers(0, n, width - n)])
        else:
            ends = np.sort(rng.choice(np.arange(1, size[v]), n - 1, replace=False))
            band[v, : size[v]] = np.searchsorted(ends, np.arange(size[v]), side="right")
            band[v, size[v]] = rng.integers(0, n)
        value[v] = rng.normal(size=n)[band[v]]
        weight[v, size[v] + 1 :] = 0
    second = weight * rng.random((4, width))
    first = np.where(weight > 0, rng.normal(size=(4, width)) * 3, 0.0)
    table = BandTable(
        size,
        categorical,
        weight,
        rng.random(4) < 0.8,
        rng.integers(-1, 2, 4) * ~categorical,
        rng.choice([0.0, 1.0, 5.0], 4),
        rng.random(4),
        band,
        value,
    )
    return table, first, second, (2.0, 2.0, 5.0)


def steps_case(case):
    rng = case.rng
    owner = np.array([0, 0, 2, 3])
    held = rng.random((4, 12)) < 0.5
    held[1] &= held[0]
    weight = rng.integers(1, 9, 12).astype(float)
    events = weight * rng.uniform(0.1, 0.9, 12)
    steps, least = rng.integers(0, 3, 4), np.zeros(4, np.int64)
    least[2] = steps[2] = max(steps[2], 1)
    return steps, owner, held, weight, events, 6, least, 0.5, 0.0


def line_case(case):
    weight = case.rng.integers(0, 9, 5).astype(float) + np.array([1, 0, 0, 0, 1])
    return weight, np.floor(weight * case.rng.random(5)), 0.5, 0.3, 0.0


def round_case(case):
    rng = case.rng
    scale = 10.0 ** rng.integers(-6, 7)
    low, near, high = np.sort(rng.choice([rng.normal(size=3), rng.integers(-99, 99, 3)])) * scale
    return float(low), float(np.nextafter(high, np.inf)), float(near)


CASES = {
    "sum_bins": lambda case: (
        case.rng.integers(0, 6, (3, case.n)).astype(np.uint16),
        case.rng.integers(-99, 99, case.n),
        case.rng.integers(0, 99, case.n),
        6,
    ),
    "count_turns": lambda case: (case.rng.integers(0, 3, 6).astype(float), 6),
    "runs_against": lambda case: (
        np.sort(case.rng.integers(0, 9, 4)).astype(float)[:: case.rng.choice([1, -1])],
        4,
        int(case.rng.choice([1, -1])),
    ),
    "best_split": table_case,
    "fit_line": line_case,
    "polish_steps": steps_case,
    "round_between": round_case,
}


def same_split(found, expected):
    assert found[2] == expected[2]
    np.testing.assert_array_equal(found[3], expected[3])
    np.testing.assert_allclose(found[:2], expected[:2], rtol=1e-9)


def same_line(found, expected):
    np.testing.assert_allclose(found[:2], expected[:2], atol=2e-3)
    np.testing.assert_allclose(found[2], expected[2], rtol=1e-6)


def same_steps(found, expected):
    np.testing.assert_array_equal(found[0], expected[0])
    same_line(found[1:], expected[1:])


COMPARE = {
    "best_split": same_split,
    "fit_line": same_line,
    "polish_steps": same_steps,
}
