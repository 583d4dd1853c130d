"""Candidate thresholds of a column, and the bins between them."""

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from steadytree._base.exceptions import UnsuitableDataError
from steadytree._base.parallel import in_threads
from steadytree.data._kernels.bins import fill_bins
from steadytree.data.column import Column

Grid = Literal["equidistant", "quantile", "midpoint"]
GRIDS = ("equidistant", "quantile", "midpoint")
FEW_ROWS = 20_000  # below which bins take two bytes
MAX_THRESHOLDS = 65_000  # bins are uint16, with room for the missing bin

TOGETHER = 1 << 17  # bins of columns that are worked on together
CELLS = 2  # cells a threshold: few cells hold more than one

Floats = NDArray[np.float64]


def equidistant_thresholds(columns: Sequence[Column], n_thresholds: int) -> list[Floats]:
    """For each column `n_thresholds` even points between its bounds, both included.

    A whole-number column whose bounds hold fewer whole numbers gets those instead, since points
    between two of them give the same split; a constant gets none. All other columns are
    spaced at once: a fit on few rows would otherwise spend its time here.
    """
    thresholds = [
        _integer_points(column) if _is_coarse(column, n_thresholds) else None for column in columns
    ]
    fine = [j for j, points in enumerate(thresholds) if points is None]
    if fine:
        low, high = np.array([(columns[j].low, columns[j].high) for j in fine]).T[:, :, None]
        share = np.linspace(0.0, 1.0, n_thresholds) if n_thresholds > 1 else np.array([0.5])
        n_steps = max(n_thresholds - 1, 1)
        step = high / n_steps - low / n_steps  # no overflow, unlike high - low
        spaced = _round_to_single(low * (1 - share) + high * share, step / 4)
        rises = np.all(spaced[:, 1:] > spaced[:, :-1], axis=1)
        for row, j in enumerate(fine):
            # a range too narrow for all of them; none where it is a point
            distinct = spaced[row] if rises[row] else np.unique(spaced[row])
            thresholds[j] = distinct if len(distinct) > 1 or rises[row] else np.empty(0)
    return cast(list[Floats], thresholds)


def even_bins(column: Column, n_bins: int) -> Floats:
    """Thresholds of `n_bins` even bins between a column's bounds, or its integers if fewer."""
    if _is_coarse(column, n_bins):
        return _integer_points(column)
    share = np.arange(1, n_bins) / n_bins
    thresholds = column.low * (1 - share) + column.high * share
    if column.kind != "numeric":
        thresholds = np.floor(thresholds)
    step = (column.high - column.low) / n_bins
    return np.unique(_round_to_single(thresholds, step / 4))


def bin_index_type(n_bins: int, n_rows: int = FEW_ROWS) -> type[np.uint8] | type[np.uint16]:
    """The type for bins 0..n_bins, the last being the one of missing values.

    Few rows have one type whatever their bins: loops are compiled for each type apart.
    """
    fits = n_bins <= np.iinfo(np.uint8).max and n_rows >= FEW_ROWS
    return np.uint8 if fits else np.uint16


def encode_bins(
    X: NDArray[Any],
    thresholds: Floats,
    offsets: NDArray[np.int64],
    n_categories: NDArray[np.int64],
    binned: NDArray[Any],
    column: int = 0,
) -> NDArray[Any]:
    """Fill binned (p, n) with the bins of p columns of X, from `column` on.

    See `fill_bins`, and `even_cells`.
    """
    columns = *even_cells(thresholds, offsets), n_categories, binned
    in_threads(partial(fill_bins, X, column, *columns), len(X), binned.size)
    return binned


def column_blocks(offsets: NDArray[np.int64], most: int = TOGETHER) -> list[tuple[int, int]]:
    """Ranges (first, last) of columns, each of at most `most` bins or one column.

    Column j has bins offsets[j]:offsets[j + 1]. What is done to one range after another needs no
    memory for all bins of many columns, and stays in the cache.
    """
    if offsets[-1] - offsets[0] <= most:  # as usual, and a fit on few rows would notice the rest
        return [(0, len(offsets) - 1)]
    ends = [0]
    while ends[-1] < len(offsets) - 1:
        reached = np.searchsorted(offsets, offsets[ends[-1]] + most, side="right") - 1
        ends.append(max(int(reached), ends[-1] + 1))
    return list(pairwise(ends))


def even_cells(thresholds: Floats, offsets: NDArray[np.int64]) -> tuple[NDArray[Any], ...]:
    """Even cells over the range of each column's rising thresholds, in which bins are looked up.

    Column j has thresholds[offsets[j]:offsets[j + 1]]. Returned are the thresholds, each column's
    with infinity at its end, and where columns begin; how many thresholds of a column lie in the
    cells before each cell, and where columns begin; the low end and 1 / width of a column's cells,
    and the most thresholds that one of them holds, at least one.
    The cell of x, ``(x - low) * scale`` as an integer within the range, never falls where x rises,
    however it rounds: the number of thresholds below x is at least below[cell], and at most `most`
    more. Where a column ends sooner, below[cell] is so much less.
    """
    sizes, number = offsets[1:] - offsets[:-1], np.arange(len(offsets))
    of = np.repeat(number[:-1], sizes)
    ends, cell_ends = offsets + number, CELLS * offsets + 2 * number
    ended = np.full(ends[-1], np.inf)
    ended[np.arange(len(thresholds)) + of] = thresholds
    n_cells = CELLS * sizes + 1
    low, high = np.where(sizes > 0, [ended[ends[:-1]], ended[ends[1:] - 2]], 0.0)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        width = high / n_cells - low / n_cells  # no overflow, unlike high - low
        scale = np.where(width > 0, 1.0 / width, 0.0)
        scale[scale == np.inf] = 0.0
        cell = np.fmax((thresholds - low[of]) * scale[of], 0.0)  # infinity times 0 is no number
    cell = cell_ends[of] + np.minimum(cell, n_cells[of] - 1).astype(np.int64)
    counts = np.bincount(cell + 1, minlength=cell_ends[-1])
    most = np.maximum.reduceat(np.append(counts, 1), cell_ends[:-1]).clip(min=1)
    below = counts.cumsum() - np.repeat(offsets[:-1], n_cells + 1)
    below = np.minimum(below, np.repeat(sizes + 1 - most, n_cells + 1)).astype(np.uint32)
    return ended, ends, below, cell_ends, low, scale, most


def _is_coarse(column: Column, n_thresholds: int) -> bool:
    return column.kind in ("integer", "binary") and column.high - column.low < n_thresholds


def _integer_points(column: Column) -> Floats:
    low = np.ceil(column.low)
    points = low + np.arange(np.ceil(column.high - low))
    exact = max(abs(column.low), abs(column.high)) < 2**53  # beyond it some are equal
    return points if exact else np.unique(points)


def _round_to_single(thresholds: Floats, room: Floats | float) -> Floats:
    """Thresholds as float32 numbers where that moves them by no more than `room`.

    Libraries that read trees compare in float32, where 0.1 is above 0.1; a threshold that is itself
    a float32 number sends both forms of a value to the same side.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = thresholds.astype(np.float32).astype(np.float64)
        return np.where(np.abs(rounded - thresholds) <= room, rounded, thresholds)


def midpoint_thresholds(name: str, values: NDArray[np.floating]) -> Floats:
    """Every midpoint between neighbouring distinct values."""
    distinct = np.unique(values[~np.isnan(values)]).astype(np.float64)
    if len(distinct) - 1 > MAX_THRESHOLDS:
        raise UnsuitableDataError(
            f"column {name!r} has {len(distinct):,} distinct values, more than the "
            f"{MAX_THRESHOLDS:,} that grid='midpoint' can take: use grid='quantile' or "
            "'equidistant' with n_thresholds."
        )
    return between(distinct[:-1], distinct[1:])


def quantile_thresholds(
    values: NDArray[np.floating], n_thresholds: int, weights: Floats | None = None
) -> Floats:
    """At most `n_thresholds` midpoints between distinct values, with about equal weight between."""
    observed = ~np.isnan(values)
    distinct, inverse = np.unique(values[observed], return_inverse=True)
    distinct = distinct.astype(np.float64)
    if len(distinct) - 1 <= n_thresholds:
        return between(distinct[:-1], distinct[1:])
    heavy = np.bincount(inverse, weights=None if weights is None else weights[observed])
    share = heavy.cumsum() / heavy.sum()
    levels = np.arange(1, n_thresholds + 1) / (n_thresholds + 1)
    # the tolerance keeps weights and repeated rows on the same side of a level
    indices = np.searchsorted(share, levels - 1e-12, side="left")
    indices = np.unique(np.minimum(indices, len(distinct) - 2))
    return between(distinct[indices], distinct[indices + 1])


def between(below: Floats, above: Floats) -> Floats:
    """A point in [below, above) for each pair: the midpoint, as a float32 number if one fits."""
    middle = below + (above / 2 - below / 2)
    middle = np.where(middle < above, middle, below)  # neighbours with nothing between
    with np.errstate(over="ignore"):
        rounded = middle.astype(np.float32).astype(np.float64)
    fits = np.isfinite(rounded) & (rounded >= below) & (rounded < above)
    # a float32 reader sees rounded values: the threshold must divide those too if they differ
    with np.errstate(over="ignore"):
        seen_below, seen_above = below.astype(np.float32), above.astype(np.float32)
    divides = (rounded >= seen_below) & (rounded < seen_above)
    return np.where(fits & divides, rounded, middle)
