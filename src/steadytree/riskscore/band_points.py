"""Integer points of bands, and the risk that totals stand for."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from steadytree.models.condition import Condition
from steadytree.models.variable import category_conditions, number_conditions
from steadytree.riskscore._kernels.bands import polish_steps
from steadytree.riskscore.band_regression import Bands
from steadytree.riskscore.banded import BinnedRows

# part of a split's price that its gain is too high by, for slopes that fit the rows learned from,
# and for those that fit rows left out
SEARCHED, SEARCHED_LEFT_OUT = 0.5, 0.75
NEAR = 0.5  # log likelihood that smaller points may cost

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class BandPoints:
    """Points (p, b) of each bin of the used variables, and the curve from totals to risks."""

    used: tuple[int, ...]
    points: dict[int, NDArray[np.int64]]  # by variable
    slope: float
    start: float
    spread: float  # squared distances of points from their variable's mean, which the ridge weighs


@dataclass(frozen=True, eq=False)
class Steps:
    """Bands of all variables from low to high risk, as steps up from the band below."""

    owner: NDArray[np.int64]  # (k,): variable of each step
    height: Floats  # (k,): log odds
    held: NDArray[np.bool_]  # (k, m): patterns at or above it
    rank: dict[int, NDArray[np.int64]]  # by variable: rank of each band

    @classmethod
    def of(cls, found: Bands) -> "Steps":
        owner, height, held, rank = [], [], [], {}
        for k, v in enumerate(found.used):
            values = found.values_of(v)
            order = np.argsort(values, kind="stable")
            rank[v] = np.argsort(order)
            for step in range(1, len(values)):
                owner.append(v)
                height.append(values[order[step]] - values[order[step - 1]])
                held.append(rank[v][found.members[:, k]] >= step)
        return cls(np.array(owner), np.array(height), np.stack(held), rank)

    def rounded(self, scale: float) -> NDArray[np.int64]:
        """Whole steps whose sums are the log odds times a scale, rounded."""
        steps = np.zeros(len(self.owner), np.int64)
        for v in self.rank:
            own = self.owner == v
            sums = np.floor(np.cumsum(self.height[own]) * scale + 0.5 + 1e-9)
            steps[own] = np.diff(sums, prepend=0).astype(np.int64)
        return steps


def round_bands(
    rows: BinnedRows,
    found: Bands,
    most: int,
    forced: tuple[int, ...] = (),
    scale: float | None = None,
) -> BandPoints:
    """Small integer points: several scales are rounded and improved step by step.

    They follow the fitted risks, not the rows' events, which are fitted already.
    """
    if not found.used:
        return BandPoints((), {}, 0.0, found.start, 0.0)
    steps = Steps.of(found)
    least = np.array(
        [
            k == np.argmax(steps.owner == v) and rows.feature[v] in forced
            for k, v in enumerate(steps.owner)
        ]
    )
    span = max(steps.height[steps.owner == v].sum() for v in found.used)
    scales = np.arange(1, most + 0.1, 0.5) / span if scale is None else [scale]
    events = found.weight * expit(found.levels())
    lowest = found.start + sum(float(found.values_of(v).min()) for v in found.used)
    tops = max(most, 1) if scale is None else 10**6
    data = steps.owner, steps.held, found.weight, events, tops, least.astype(np.int64)
    runs = [
        polish_steps(np.maximum(steps.rounded(one), least), *data, 1 / one, lowest)
        for one in scales
    ]
    good = [run for run in runs if run[3] <= min(one[3] for one in runs) + NEAR]
    chosen, slope, start, _ = min(good, key=lambda run: (_largest(run[0], steps), run[3]))
    points, spread = {}, 0.0
    for v in found.used:
        own = np.concatenate([[0], np.cumsum(chosen[steps.owner == v])])[steps.rank[v]]
        # a trend has one coefficient, of levels with variance 1
        spread += float(own.var() * (1 if v in found.trend else len(own)))
        if own.any():
            points[v] = _all_bins(rows, found, v, own)
    return BandPoints(tuple(points), points, slope, start, spread)


def _largest(chosen: NDArray[np.int64], steps: Steps) -> int:
    return max(int(chosen[steps.owner == v].sum()) for v in steps.rank)


def _all_bins(rows: BinnedRows, found: Bands, v: int, own: NDArray[np.int64]) -> NDArray[np.int64]:
    """Points of each bin; bins that no row was in get those nearest to the mean."""
    points, size = own[found.band[v]], int(rows.size[v])
    weight = np.bincount(rows.binned[v], rows.weights, minlength=len(points))
    given = np.unique(points[weight > 0])
    usual = int(given[np.abs(given - points @ weight / weight.sum()).argmin()])
    if weight[size] == 0:
        points[size] = points[size - 1] if rows.bins[v].pools else usual
    if rows.categorical[v]:
        points[:size][weight[:size] == 0] = usual
    return points


def shrinkage(*found: Bands, searched: float = SEARCHED) -> float:
    """Factor on the slope for new rows: the part of the fits' gain that is not due to chance."""
    # 1 - df / chi-squared of the model (van Houwelingen and le Cessie 1990)
    gained = sum(2 * (one.null_loss - one.plain_loss) for one in found)
    spent = sum(one.spent for one in found)
    return float(np.clip(1 - searched * spent / gained, 0.0, 1.0)) if gained > 0 else 0.0


def start_for(totals: NDArray[np.int64], weights: Floats, slope: float, share: float) -> float:
    """The start at which the mean risk of totals is a given share."""
    counts = np.bincount(totals, weights)
    levels, mass = slope * np.arange(len(counts)), counts / counts.sum()
    low, high = logit(share) - levels.max(), logit(share) + 1e-9 - levels.min()
    for _ in range(60):
        middle = (low + high) / 2
        above = mass @ expit(levels + middle) > share
        low, high = (low, middle) if above else (middle, high)
    return float((low + high) / 2)


def conditions_of(rows: BinnedRows, found: BandPoints) -> dict[Condition, int]:
    """Conditions with points that add up to the points of each bin; most points first."""
    given: dict[Condition, int] = {}
    for v in sorted(found.used, key=lambda v: -int(found.points[v].max())):
        feature, bins, points = int(rows.feature[v]), rows.bins[v], found.points[v].tolist()
        *known, missing = points[: bins.size + 1]
        if len(bins.bin_of_category):
            categories = [known[k] for k in bins.bin_of_category]
            given |= dict(category_conditions(feature, categories, missing))
        else:
            at = [k for k in range(1, len(known)) if known[k] != known[k - 1]]
            bands, thresholds = (
                [known[0], *(known[k] for k in at)],
                [bins.thresholds[k - 1] for k in at],
            )
            given |= dict(number_conditions(feature, thresholds, bands, missing))
    return given
