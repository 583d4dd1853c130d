"""Bands of a risk score: the greedy search for splits under the log loss, before rounding."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from steadytree.metrics.accuracy import roc_area
from steadytree.riskscore._kernels.bands import (
    BandTable,
    best_split,
    count_turns,
    runs_against,
    sum_bins,
)
from steadytree.riskscore.band_bins import ColumnBins
from steadytree.riskscore.band_regression import RIDGE, Bands, refit, with_own_prior
from steadytree.riskscore.band_trends import Trends

TURN = 10.0  # twice the log likelihood that a change of direction must gain
# prices in twice the log likelihood: chance alone gains about this much by the best split
TREND_PRICE = float(np.log(2))  # a trend has two scales to choose from
THRESHOLD_PRICE = 1.0  # times the logarithm of the number of thresholds
CATEGORY_PRICE = 1.0  # times the part of the gain that chance has
TAIL, INNER = 0.005, 0.05  # least share of the weight in a band at an end, and between others
LEAST = 10.0  # and least weight; less where rows are few
FEW = 0.1
SELDOM = 4.0  # gain beyond what chance gains on average that makes a score
N_DIVISIONS, N_FOLDS = 4, 5  # of rows that are held out
HELD_OUT = 1.96  # standard deviations by which they must be ranked
WORTH = 0.5  # share of its price that a split must gain
PROMISE = 1.0  # share of the prices that a fit gains by chance, in the choice between two limits
CLOSE = 20.0  # what exchanges of splits may still gain
WEAKEST, GAINED = 4, 1.0  # exchanges of splits: splits that are tried, and least gain

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class BandSettings:
    """What a risk score may use."""

    max_conditions: int  # a trend counts as one
    max_variables: int
    forced: tuple[int, ...] = ()
    excluded: frozenset[int] = frozenset()  # columns left out
    instead: tuple[int, int] | None = None  # other limits: conditions and variables
    smooth: bool = False  # whether trends are tried then
    trends: Trends | None = None


@dataclass(frozen=True, eq=False)
class BinnedRows:
    """Rows in bins (p, n) with a 0/1 outcome and weights; each variable's directions."""

    bins: tuple[ColumnBins, ...]
    feature: NDArray[np.int64]  # (p,): column of each variable; two may share one, one a direction
    binned: NDArray[np.uint16]
    events: Floats
    weights: Floats
    categorical: NDArray[np.bool_]  # (p,): categories without an order
    sign: NDArray[np.int64]  # (p,): 1 or -1 where the risk may only rise or fall
    turn: Floats  # (p,): price of a change of direction

    def take(self, rows: NDArray[np.int64]) -> "BinnedRows":
        """Some of the rows, in the same bins."""
        arrays = self.binned[:, rows], self.events[rows], self.weights[rows]
        return replace(self, binned=arrays[0], events=arrays[1], weights=arrays[2])

    @property
    def size(self) -> NDArray[np.int64]:
        return np.array([one.size for one in self.bins], np.int64)

    def weight_of_bins(self) -> Floats:
        """Summed weights (p, b)."""
        width = int(self.size.max()) + 1
        return np.stack([np.bincount(z, self.weights, minlength=width) for z in self.binned])


def least_weights(total: float) -> tuple[float, float]:
    """Least weight of a band at an end, and of one between others."""
    least = min(LEAST, max(FEW * total, 2.0))
    return max(least, TAIL * total), max(least, INNER * total)


def grow_bands(rows: BinnedRows, settings: BandSettings) -> Bands:
    """Split bands one by one, each time where the loss falls most, and refit all of them.

    No bands where they gain no more than chance does and do not rank held-out rows. Under two
    limits both are tried, and those bands are taken that promise the lower loss on new rows.
    """
    weight_of_bins, nothing = rows.weight_of_bins(), _no_bands(rows)
    path = _split_all(rows, nothing, settings, weight_of_bins)
    beats_chance = settings.forced or any(_beats_chance(rows, one) for one in path)
    if not path or not (beats_chance or _ranks_held_out_rows(rows, settings)):
        return nothing
    tried = [(path[-1], settings)]
    if settings.instead is not None:
        conditions, variables = settings.instead
        other = replace(settings, max_conditions=conditions, max_variables=variables)
        # the first splits are the same, as long as there are no more variables
        *_, shared = (one for one in [nothing, *path] if len(one.used) <= variables)
        grown, trends = [(shared, other)], Trends.of(rows.bins, rows.categorical, weight_of_bins)
        if settings.smooth and trends.possible.any():
            grown.append((nothing, replace(other, trends=trends)))
        for first, own in grown:
            tried += [(one, own) for one in _split_all(rows, first, own, weight_of_bins)[-1:]]
    least = min(_promised(one) for one, _ in tried) + CLOSE
    close = [pair for pair in tried if _promised(pair[0]) <= least]
    return min((_finished(rows, *pair, weight_of_bins) for pair in close), key=_promised)


def _promised(found: Bands) -> float:
    """Twice the log loss that is expected on as many new rows, but for a constant."""
    return 2 * found.plain_loss + PROMISE * found.spent


def _split_all(
    rows: BinnedRows, found: Bands, settings: BandSettings, weight_of_bins: Floats
) -> list[Bands]:
    """The bands after each further split that pays."""
    path: list[Bands] = []
    for _ in range(settings.max_conditions - sum(map(found.n_splits, found.used))):
        gain, paid, other = _split_best(rows, found, settings, weight_of_bins)
        if other is None or (gain <= WORTH * paid and not _waiting(rows, found, settings)):
            break
        found = other
        path.append(found)
    return path


def _beats_chance(rows: BinnedRows, found: Bands) -> bool:
    """Whether more is gained than the choice of splits and columns gains by chance, but seldom."""
    chance = found.spent + 2 * len(found.used) * np.log(len(rows.bins)) + SELDOM
    return bool(2 * (found.null_loss - found.plain_loss) > chance)


def _ranks_held_out_rows(rows: BinnedRows, settings: BandSettings) -> bool:
    """Whether bands of the other folds rank held-out rows with the event above those without.

    Many weak effects may each gain no more than chance does. The Mann-Whitney statistics of the
    folds are added up, their mean over several divisions taken: beyond HELD_OUT standard deviations
    of one sum where ranks are drawn by lot, without corrections for ties, which make it smaller.
    """
    above, variance = 0.0, 0.0
    for fitting, new in chain.from_iterable(_folds(rows, seed) for seed in range(N_DIVISIONS)):
        path = _split_all(fitting, _no_bands(fitting), settings, fitting.weight_of_bins())
        if not path:
            continue
        bands, event = path[-1], new.events > 0.5
        scores = sum(bands.value[v][new.binned[v]] for v in bands.used)
        n_events, n_others = new.weights[event].sum(), new.weights[~event].sum()
        above += n_events * (roc_area(scores, event, new.weights) - 0.5)
        variance += n_events * (n_events + n_others + 1) / (12 * n_others)
    above, variance = above / N_DIVISIONS, variance / N_DIVISIONS
    return bool(variance > 0 and above > HELD_OUT * variance**0.5)


def _folds(rows: BinnedRows, seed: int) -> Iterator[tuple[BinnedRows, BinnedRows]]:
    """Rows of the other folds and of each fold; none where a class has too few different rows.

    Different rows of a class are put in the order of their bins, shuffled and dealt out, and equal
    ones stay together: neither the order of rows nor copies instead of weights change anything.
    Without the shuffle, classes that differ by chance would do so in each fold.
    """
    rows = rows.take(np.flatnonzero(rows.weights > 0))
    event = rows.events.astype(np.int64)
    different, index = np.unique(np.vstack([event, rows.binned]), axis=1, return_inverse=True)
    n_others = int((different[0] == 0).sum())
    if min(n_others, different.shape[1] - n_others) < N_FOLDS:
        return
    random, counts = np.random.default_rng(seed), (n_others, different.shape[1] - n_others)
    own = np.concatenate([random.permutation(n) % N_FOLDS for n in counts])[index.ravel()]
    for k in range(N_FOLDS):
        yield rows.take(np.flatnonzero(own != k)), rows.take(np.flatnonzero(own == k))


def _finished(
    rows: BinnedRows, found: Bands, settings: BandSettings, weight_of_bins: Floats
) -> Bands:
    """Exchange splits, refit with the prior's own variance, and straighten."""
    return straighten(rows, with_own_prior(_exchange(rows, found, settings, weight_of_bins)))


def _split_best(
    rows: BinnedRows, found: Bands, settings: BandSettings, weight_of_bins: Floats
) -> tuple[float, float, Bands | None]:
    """The best split's expected gain and price, and the bands refitted with it; None for none."""
    thresholds = np.array([max(len(one.thresholds), 1) for one in rows.bins])
    price = np.where(rows.categorical, CATEGORY_PRICE, THRESHOLD_PRICE * np.log(thresholds))
    allowed, trends = _allowed(rows, found, settings), settings.trends
    allowed[list(found.trend)] = False
    table = BandTable(
        rows.size, rows.categorical, weight_of_bins, allowed,
        rows.sign, rows.turn, price, found.band, found.value,
    )  # fmt: skip
    limits, sums = (RIDGE, *least_weights(float(rows.weights.sum()))), _gradients(rows, found)
    gain, paid, v, leave = best_split(table, *sums, limits)
    own, trend = np.where(leave, found.band[v].max() + 1, found.band[v]), found.trend
    if trends is not None:
        allowed[list(found.used)] = False
        straight, u, scale = trends.best(*sums, allowed, rows.sign, RIDGE)
        if straight - TREND_PRICE > gain:
            gain, paid, v, own = straight - TREND_PRICE, TREND_PRICE, u, trends.band[u]
            trend = {**trend, u: trends.basis(u, scale)}
    if v < 0:
        return 0.0, 0.0, None
    prices = {**found.paid, v: found.paid.get(v, 0.0) + 1 + paid}
    other = replace(_with_bands(rows, found, v, own), trend=trend, paid=prices)
    return gain + paid, paid, refit(other)


def _exchange(
    rows: BinnedRows, found: Bands, settings: BandSettings, weight_of_bins: Floats
) -> Bands:
    """Join the weakest split and make the best one instead, while that lowers the loss."""
    for _ in range(settings.max_conditions):
        for pair in _weakest(rows, found)[:WEAKEST]:
            joined = refit(_joined(found, *pair))
            _, _, other = _split_best(rows, joined, settings, weight_of_bins)
            if other is None:
                continue
            if 2 * other.loss + other.spent < 2 * found.loss + found.spent - GAINED:
                found = other
                break
        else:
            break
    return found


def _weakest(rows: BinnedRows, found: Bands) -> list[tuple[int, int, int]]:
    """Neighbouring bands (variable and both), those first whose difference matters least."""
    curve = found.weight * expit(found.levels()) * expit(-found.levels())
    listed = []
    for at, v in enumerate(found.used):
        values = found.values_of(v)
        mass = np.bincount(found.members[:, at], curve, minlength=len(values))
        if v in found.trend:  # which goes as a whole
            rest = values - mass @ values / max(mass.sum(), 1e-300)
            listed.append((float(mass @ rest**2), (v, 0, 1)))
            continue
        order = list(dict.fromkeys(found.band[v, : rows.size[v] + 1].tolist()))
        if rows.categorical[v]:
            order = np.argsort(values, kind="stable").tolist()
        for one, two in pairwise(order):
            shared = mass[one] * mass[two] / max(mass[one] + mass[two], 1e-300)
            listed.append((float(shared * (values[one] - values[two]) ** 2), (v, one, two)))
    return [pair for _, pair in sorted(listed)]


def _no_bands(rows: BinnedRows) -> Bands:
    total, events = rows.weights.sum(), (rows.weights * rows.events).sum()
    start = float(np.log((events + 0.5) / (total - events + 0.5)))
    shape, n = (len(rows.bins), int(rows.size.max()) + 1), len(rows.events)
    loss = float(total * np.logaddexp(0, start) - events * start)
    return Bands(
        np.zeros(shape, np.int64), np.zeros(shape), start, (), np.zeros(n, np.int64),
        np.zeros((1, 0), np.int64), np.array([total]), np.array([events]), loss, loss, loss,
    )  # fmt: skip


def _allowed(rows: BinnedRows, found: Bands, settings: BandSettings) -> NDArray[np.bool_]:
    """Variables that may be split: forced ones first, and no more than there may be."""
    used = np.zeros(len(rows.bins), bool)
    used[list(found.used)] = True
    taken = set(rows.feature[used].tolist())
    if waiting := _waiting(rows, found, settings):
        return np.isin(rows.feature, waiting)
    if len(taken) >= settings.max_variables:
        return used
    # one direction of a column excludes the other
    return used | ~np.isin(rows.feature, [*taken, *settings.excluded])


def _waiting(rows: BinnedRows, found: Bands, settings: BandSettings) -> list[int]:
    """Forced columns that have no bands yet."""
    taken = set(rows.feature[list(found.used)].tolist())
    return [feature for feature in settings.forced if feature not in taken]


def _gradients(rows: BinnedRows, found: Bands) -> tuple[Floats, Floats]:
    """Gradient and Hessian of the loss by bin, summed as whole numbers."""
    risk = expit(found.levels())[found.pattern_of_row]
    unit = 2.0 ** (50 - np.ceil(np.log2(rows.weights.sum() + 1)))
    gradient = np.rint(unit * rows.weights * (risk - rows.events)).astype(np.int64)
    hessian = np.rint(unit * rows.weights * risk * (1 - risk)).astype(np.int64)
    first, second = sum_bins(rows.binned, gradient, hessian, found.band.shape[1])
    return first / unit, second / unit


def _with_bands(rows: BinnedRows, found: Bands, v: int, own: NDArray[np.int64]) -> Bands:
    """Other bands of a variable's bins, which divide those it has."""
    band, used, n = found.band.copy(), found.used, int(own.max()) + 1
    band[v] = own
    key = n * found.pattern_of_row + own[rows.binned[v]]
    seen = np.flatnonzero(np.bincount(key))
    pattern = np.searchsorted(seen, np.arange(key.max() + 1))[key]
    members = found.members[seen // n]
    if v not in used:
        used, members = (*used, v), np.column_stack([members, np.zeros(len(seen), np.int64)])
    members[:, used.index(v)] = seen % n
    weight: Floats = np.bincount(pattern, rows.weights).astype(np.float64)
    events: Floats = np.bincount(pattern, rows.weights * rows.events).astype(np.float64)
    return replace(
        found, band=band, used=used, pattern_of_row=pattern, members=members,
        weight=weight, events=events,
    )  # fmt: skip


def straighten(rows: BinnedRows, found: Bands) -> Bands:
    """Join neighbouring bands of a variable that turns or runs against its direction.

    A free variable keeps a turn that gains more than its price; a directed one keeps none.
    """
    for v in found.used:
        size = int(rows.size[v])
        against = rows.sign[v] != 0 and runs_against(found.value[v], size, rows.sign[v])
        turns = not rows.categorical[v] and count_turns(found.value[v], size) > 0
        if not against and not (turns and rows.turn[v] > 0):
            continue
        order = list(dict.fromkeys(found.band[v, :size].tolist()))
        joined = [refit(_joined(found, v, *pair)) for pair in pairwise(order)]
        best = min(joined, key=lambda one: _price(rows, one), default=found)
        if joined and (against or _price(rows, best) < _price(rows, found)):
            return straighten(rows, best)
    return found


def _price(rows: BinnedRows, found: Bands) -> float:
    """The loss with what changes of direction cost."""
    turns = [
        rows.turn[v] * count_turns(found.value[v], int(rows.size[v]))
        for v in found.used
        if not rows.categorical[v] and rows.turn[v] > 0
    ]
    return found.loss + 0.5 * float(np.sum(turns))


def _joined(found: Bands, v: int, one: int, two: int) -> Bands:
    """Two bands of a variable as one, a trend as none; patterns stay apart."""
    low, high = min(one, two), max(one, two)
    renamed = np.arange(found.band[v].max() + 1)
    renamed[high] = low
    renamed[high + 1 :] -= 1
    if v in found.trend:
        renamed[:] = 0
    band, members, at = found.band.copy(), found.members.copy(), found.used.index(v)
    band[v], members[:, at] = renamed[band[v]], renamed[members[:, at]]
    used = found.used
    if band[v].max() == 0:
        used, members = tuple(u for u in used if u != v), np.delete(members, at, axis=1)
    trend = {u: basis for u, basis in found.trend.items() if u != v}
    # thresholds of one variable cost the same; of categories, whose prices differ, the mean goes
    paid = {u: price for u, price in found.paid.items() if u != v or v in used}
    if v in paid:
        paid[v] *= 1 - 1 / found.n_splits(v)
    return replace(found, band=band, members=members, used=used, trend=trend, paid=paid)
