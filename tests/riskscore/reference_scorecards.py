"""Twins of the kernels in `kernels/boost.py` and `kernels/card_moves.py`, and cases for them."""

import itertools
import math

import numpy as np

from steadytree.riskscore._kernels.votes import ALWAYS, DOWN, NEVER, UP, BoostTable
from steadytree.robustness._kernels.attack import CATEGORY, MISSING, NUMBER
from steadytree.robustness.nearest import bins_of
from tests.models.scorecards import random_card, random_rows_of_card
from tests.robustness.reference_attack import random_perturbation


# ---- boosting ----
def says_yes(binned, threshold, direction):
    if direction in (ALWAYS, NEVER):
        return np.full(len(binned), direction == ALWAYS)
    return binned < threshold if direction == DOWN else binned >= threshold


def first_best(tried, enough):
    """The first entry that beats all before it by more than `enough`: (gain, *what)."""
    best = (-np.inf, -1)
    for one in tried:
        if one[0] > best[0] + enough:
            best = one
    return best


def sum_from(binned, signed, threshold):
    return signed[binned >= threshold].sum()


def best_thresholds(binned, signed, size, first, enough):
    found = []
    for direction, start in ((UP, first), (DOWN, 1)):
        tried = [(signed[says_yes(binned, c, direction)].sum(), c) for c in range(start, size)]
        gain, threshold = first_best(tried, enough)
        found += [threshold, gain]
    return tuple(found)


def gain_of(binned, signed, threshold, downwards):
    return signed[says_yes(binned, threshold, DOWN if downwards else UP)].sum()


def weigh_rows(margin, labels, weights, shares, signed):
    mass = weights * shares[margin + len(shares) // 2]
    signed[:] = mass * labels
    return mass.sum(), mass[labels > 0].sum()


def add_vote(binned, labels, threshold, direction, margin):
    margin += np.where(says_yes(binned, threshold, direction), labels, -labels)


def search_columns(up, down, table, signed, waiting, best):
    enough = 1e-12 * np.abs(signed).sum()
    where, threshold, direction = -1, 0, UP
    for column, toward in itertools.product(range(len(up)), (UP, DOWN)):
        number = table.forced[column]
        if waiting.any() and (number < 0 or not waiting[number]):
            continue
        if not table.allowed[column, toward]:
            continue
        binned = (up if toward == UP else down)[column]
        pairs = best_thresholds(binned, signed, table.size[column, toward], table.first, enough)
        at, gain = pairs[:2] if toward == UP else pairs[2:]
        if at >= 0 and gain > best + enough:
            best, where, threshold, direction = gain, column, at, toward
    return best, where, threshold, direction


def search_votes(up, down, votes, signed, best):
    enough = 1e-12 * np.abs(signed).sum()
    where, threshold, direction = -1, 0, UP
    for column, at, toward in votes:
        gain = gain_of((up, down)[toward][column], signed, at, toward == DOWN)
        if gain > best + enough:
            best, where, threshold, direction = gain, column, at, toward
    return best, where, threshold, direction


def stands_before(votes, column, threshold, direction):
    return (column, threshold, direction) in [tuple(vote) for vote in votes.tolist()]


def boost_majority(up, down, table, labels, weights, shares, limits):
    """Votes as a plain list, every round from the start."""
    votes, names = [], [k for k in table.forced.tolist() if k >= 0]
    while len(votes) < len(shares):
        margin = np.zeros(len(labels), np.int64)
        for column, threshold, direction in votes:
            add_vote(
                (down if direction == DOWN else up)[max(column, 0)],
                labels,
                threshold,
                direction,
                margin,
            )
        signed = np.empty(len(labels))
        total, positive = weigh_rows(margin, labels, weights, shares[len(votes)], signed)
        done = {int(table.forced[v[0]]) for v in votes if v[0] >= 0}
        waiting = np.array(
            [k in names and k not in done for k in range(max(names, default=-1) + 1)]
        )
        must, best, chosen = waiting.any(), -np.inf, None
        if table.constant and not must:
            best = max(2 * positive - total, 0.0)
            chosen = (-1, 0, ALWAYS if best > 0 else NEVER)
        different = {vote for vote in votes if vote[0] >= 0}
        waiting = waiting.astype(bool)
        if len(different) < limits[1]:
            found = search_columns(up, down, table, signed, waiting, best)
        else:
            asked = [vote for vote in votes if vote[0] >= 0]
            found = search_votes(up, down, np.array(asked).reshape(-1, 3), signed, best)
        if found[1] >= 0:
            best, chosen = found[0], tuple(int(part) for part in found[1:])
        fails = not total - positive + best >= limits[0] * total
        if chosen is None or (fails and not must and not table.keep_failing):
            break
        votes.append(chosen)
        if fails and not must:
            break
    return np.array(votes, np.int64).reshape(-1, 3)


# ---- moves ----
def lies_in(x, sort, low, high):
    if math.isnan(x):
        return sort == MISSING
    return {NUMBER: low < x <= high, CATEGORY: x == low, MISSING: False}[sort]


def bin_cost(x, sort, box, price):
    low, high, least, greatest = box
    up, down, appear, once, reach = price
    if lies_in(x, sort, low, high):
        return 0.0
    if sort == MISSING or (sort == NUMBER and least > greatest):
        return np.inf
    if math.isnan(x):
        return appear
    if sort == CATEGORY:
        return up
    by = greatest - x if x > high else least - x
    return np.inf if abs(by) > reach else once + (by * up if by > 0 else -by * down)


def bin_value(x, sort, box):
    if lies_in(x, sort, box[0], box[1]):
        return x
    if sort == CATEGORY:
        return box[0]
    return float(np.clip(0.0 if math.isnan(x) else x, box[2], box[3]))


def row_costs(x, bins, price, cost, home):
    for entry, column in enumerate(bins.column):
        for bin_ in range(bins.start[entry], bins.start[entry + 1]):
            cost[bin_] = bin_cost(x[column], bins.sort[bin_], bins.box[bin_], price[column])
            if lies_in(x[column], bins.sort[bin_], *bins.box[bin_, :2]):
                home[entry] = bin_


def ways_to_gain(gain, cost, entry_of, order, needed, n_columns):
    """Every choice of at most one bin a column that gains enough: its costs."""
    options = [[None, *(c for c in order if entry_of[c] == entry)] for entry in range(n_columns)]
    for picked in itertools.product(*options):
        bins = [bin_ for bin_ in picked if bin_ is not None]
        if sum(gain[bin_] for bin_ in bins) >= needed:
            yield [cost[bin_] for bin_ in bins]


def least_largest(gain, cost, entry_of, order, needed, n_columns):
    ways = ways_to_gain(gain, cost, entry_of, order, needed, n_columns)
    return min((max(costs, default=0.0) for costs in ways), default=np.inf), None


def least_total(gain, cost, entry_of, order, needed, n_columns):
    ways = ways_to_gain(gain, cost, entry_of, order, needed, n_columns)
    return min((sum(costs) for costs in ways), default=np.inf), None


def nearest_scorecard_change(X, own, bins, price, largest):
    """Every combination of bins tried; the witness is not compared."""
    distance = np.full(len(X), np.inf)
    n_columns = len(bins.column)
    ranges = [range(bins.start[k], bins.start[k + 1]) for k in range(n_columns)]
    for row, x in enumerate(X):
        cost, home = np.empty(len(bins.sort)), np.empty(n_columns, np.int64)
        row_costs(x, bins, price, cost, home)
        for picked in itertools.product(*ranges):
            total = bins.offset + sum((bins.points[bin_] for bin_ in picked), 0)
            if np.argmax(total) != own[row]:
                costs = [cost[bin_] for bin_ in picked]
                size = max(costs, default=0.0) if largest else sum(costs)
                distance[row] = min(distance[row], size)
    return distance, None


# ---- cases ----
def boosting(case):
    rng = case.rng
    n, q = max(case.n, 1), int(rng.integers(1, 4))
    size = rng.integers(1, 6, (q, 2))
    shared = rng.integers(0, 2, q).astype(bool)
    size[shared, 1] = size[shared, 0]
    up = np.stack([rng.integers(0, size[j, 0], n) for j in range(q)]).astype(np.uint8)
    down = np.stack([rng.integers(0, size[j, 1], n) for j in range(q)]).astype(np.uint8)
    down[shared] = up[shared]
    forced = rng.permutation(np.concatenate([[-1] * q, [0]]))[:q].astype(np.int64)
    table = BoostTable(
        size,
        rng.random((q, 2)) < 0.8,
        shared,
        forced,
        int(rng.integers(2)),
        bool(rng.integers(2)),
        bool(rng.integers(2)),
    )
    labels = rng.choice([-1, 1], n)
    # sixteenths add up without rounding, so that ties are ties in any order of summing
    weights = rng.integers(1, 33, n) / 16
    return up, down, table, labels, weights


def for_search(case, votes=False):
    up, down, table, labels, weights = boosting(case)
    signed = labels * weights
    best = float(case.rng.choice([-np.inf, 0.0]))
    if votes:
        n_votes, rng = int(case.rng.integers(0, 4)), case.rng
        given = [
            (rng.integers(len(up)), rng.integers(0, 5), rng.integers(2)) for _ in range(n_votes)
        ]
        return up, down, np.array(given, np.int64).reshape(-1, 3), signed, best
    return up, down, table, signed, np.array([bool(case.rng.integers(2))]), best


def for_boosting(case):
    up, down, table, labels, weights = boosting(case)
    n_rounds = int(case.rng.integers(1, 7))
    shares = case.rng.integers(1, 17, (n_rounds, 2 * n_rounds + 1)) / 16
    limits = np.array([case.rng.choice([0.4, 0.51]), case.rng.integers(1, 4)], float)
    return up, down, table, labels, weights, shares, limits


def for_weighing(case):
    labels, weights = boosting(case)[3:]
    margin = case.rng.integers(-2, 3, len(labels))
    return margin, labels, weights, case.rng.integers(1, 17, 5) / 16, np.empty(len(labels))


def for_vote(case):
    up, _, _, labels, _ = boosting(case)
    threshold, direction = int(case.rng.integers(0, 5)), int(case.rng.integers(0, 4))
    return up[0], labels, threshold, direction, np.zeros(len(labels), np.int64)


def card_tables(case):
    rng = case.rng
    scorecard = random_card(rng, int(rng.integers(0, 6)), 2, 1, int(rng.integers(2, 4)))
    moves = random_perturbation(rng, scorecard.space, counted=True).all_moves(scorecard.space)
    rows = np.asarray(
        scorecard.space.encode(random_rows_of_card(rng, scorecard, max(case.n, 1))), float
    )
    return scorecard, rows[:6], bins_of(scorecard, moves), moves.prices, moves.largest


def for_bin(case, with_price=True):
    while True:
        _, rows, bins, prices, _ = card_tables(case)
        reachable = np.flatnonzero((bins.sort != MISSING) & ~(bins.box[:, 2] > bins.box[:, 3]))
        if not len(bins.sort) or (not with_price and not len(reachable)):
            continue
        bin_ = int(case.rng.choice(len(bins.sort) if with_price else reachable))
        entry = int(np.searchsorted(bins.start, bin_, side="right")) - 1
        column = bins.column[entry]
        one = (float(rows[0, column]), int(bins.sort[bin_]), bins.box[bin_])
        return (*one, prices[column]) if with_price else one


def for_row(case):
    _, rows, bins, prices, _ = card_tables(case)
    return rows[0], bins, prices, np.zeros(len(bins.sort)), np.zeros(len(bins.column), np.int64)


def for_gains(case):
    rng = case.rng
    entry_of = np.repeat(np.arange(3), rng.integers(0, 4, 3))
    n = len(entry_of)
    gain, cost = rng.integers(1, 4, n), rng.integers(0, 6, n) / 2
    order = np.argsort(cost, kind="stable")
    return gain, cost, entry_of, order, int(rng.integers(1, 8)), 3


def for_change(case):
    scorecard, rows, bins, prices, largest = card_tables(case)
    return rows, scorecard.answer_encoded(rows), bins, prices, largest


CASES = {
    "sum_from": lambda case: (
        (tables := boosting(case))[0][0],
        tables[3] * tables[4],
        int(case.rng.integers(0, 5)),
    ),
    "best_thresholds": lambda case: (
        (tables := boosting(case))[0][0],
        tables[3] * tables[4],
        int(tables[2].size[0, 0]),
        tables[2].first,
        1e-12,
    ),
    "gain_of": lambda case: (
        (tables := boosting(case))[0][0],
        tables[3] * tables[4],
        int(case.rng.integers(0, 5)),
        bool(case.rng.integers(2)),
    ),
    "weigh_rows": for_weighing,
    "add_vote": for_vote,
    "search_columns": for_search,
    "search_votes": lambda case: for_search(case, votes=True),
    "stands_before": lambda case: (
        case.rng.integers(0, 2, (4, 3)),
        *case.rng.integers(0, 2, 3).tolist(),
    ),
    "boost_majority": for_boosting,
    "lies_in": lambda case: (
        float(case.rng.choice([np.nan, 0.0, 1.0, 2.0])),
        int(case.rng.integers(3)),
        0.0,
        float(case.rng.choice([1.0, np.inf])),
    ),
    "bin_cost": for_bin,
    "bin_value": lambda case: for_bin(case, with_price=False),
    "row_costs": for_row,
    "least_largest": for_gains,
    "least_total": for_gains,
    "nearest_scorecard_change": for_change,
}


def same_size(found, expected):
    """Sizes agree; where several moves are as small, either may be given."""
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-12, atol=1e-12)


COMPARE = {
    "least_largest": same_size,
    "least_total": same_size,
    "nearest_scorecard_change": same_size,
}
