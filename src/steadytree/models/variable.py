"""Variable: one column of a scorecard with its bands, of which a row is in exactly one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from steadytree.data.column import Column
from steadytree.models.condition import Condition

if TYPE_CHECKING:
    from steadytree.models.scorecard import Scorecard

PointsOf = Callable[[NDArray[np.float64]], list[tuple[int, ...]]]
MOST_NAMED = 8  # categories of a column of which no band is shown as "any other"


def join_names(names: Sequence[str]) -> str:
    """Categories in a row; names that hold commas are divided by semicolons."""
    return ("; " if any("," in name for name in names) else ", ").join(names)


@dataclass(frozen=True)
class Band:
    """Values of a column with the same points: ``low <= x < high``, categories, or missing."""

    points: tuple[int, ...]  # one number, or one for each class above two
    low: float = -np.inf
    high: float = np.inf
    categories: tuple[int, ...] = ()
    is_missing: bool = False

    def names(self, column: Column) -> list[str]:
        """Its categories by name, in their order where they have one."""
        ranks = column.ranks if column.is_categorical else None
        own = self.categories if ranks is None else sorted(self.categories, key=ranks.item)
        return [column.categories[index] or '""' for index in own]

    def text(self, column: Column) -> str:
        """The band in words, exactly as it is applied."""
        if self.is_missing:
            return "missing or unknown" if column.is_categorical else "missing"
        if column.is_categorical:
            return join_names(self.names(column))
        low, high = (repr(float(x)).removesuffix(".0") for x in (self.low, self.high))
        if column.kind == "binary" and (0 < self.low <= 1 or 0 < self.high <= 1):
            return "yes" if self.low > 0 else "no"
        if np.isinf(self.low):
            return "any" if np.isinf(self.high) else f"< {high}"
        return f"≥ {low}" if np.isinf(self.high) else f"{low} to < {high}"


@dataclass(frozen=True)
class Variable:
    """A column of a scorecard: its bands in order, that of missing values last."""

    feature: int
    column: Column
    bands: tuple[Band, ...]
    unit: str = ""

    @property
    def name(self) -> str:
        return self.column.name

    @property
    def thresholds(self) -> NDArray[np.float64]:
        """Where bands of numbers meet; a value on a threshold is in the upper band."""
        return np.array([band.low for band in self.bands[1:-1] if not band.categories])

    def texts(self) -> list[str]:
        """The bands in words; of many categories the largest band is "any other"."""
        texts = [band.text(self.column) for band in self.bands]
        sizes = [len(band.categories) for band in self.bands]
        if sum(sizes) > MOST_NAMED and len(sizes) > 2:
            texts[int(np.argmax(sizes))] = "any other"
        return texts

    def listed(self) -> list[tuple[str, Band]]:
        """The bands as a sheet lists them.

        Missing values that no training row had share the line of the band whose points they get;
        it says so unless these are none. Those of categories have a line of their own where
        somebody would take a category that is not known for "any other".
        """
        texts, (*known, missing) = self.texts(), self.bands
        shown = list(zip(texts, self.bands, strict=True))
        alike = [k for k, band in enumerate(known) if band.points == missing.points]
        others = texts.index("any other") if "any other" in texts else None
        if self.column.missing or (others is not None and others not in alike):
            return shown
        if not any(missing.points):
            return shown[:-1]
        if not alike:
            return shown
        home = others if others in alike else alike[-1]
        shown[home] = f"{texts[home]}, or {texts[-1]}", known[home]
        return shown[:-1]

    def band_of(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Index of the band of each encoded value of the column."""
        missing = np.isnan(values)
        if not self.column.is_categorical:
            found = np.searchsorted(self.thresholds, values, side="right")
        else:
            band_of_category = np.empty(len(self.column.categories), np.int64)
            for index, band in enumerate(self.bands):
                band_of_category[list(band.categories)] = index
            found = band_of_category[np.where(missing, 0, values).astype(np.int64)]
        return np.where(missing, len(self.bands) - 1, found)


def variables_of(scorecard: "Scorecard") -> tuple[Variable, ...]:
    """The columns of a scorecard in order of their first condition.

    Conditions on one column add up to a step function of it, whatever they ask; its steps are
    the bands. Neighbours with the same points are one band.
    """
    features = dict.fromkeys(condition.feature for condition in scorecard.conditions)
    return tuple(_variable(scorecard, feature) for feature in features)


def check_profile(
    variables: Sequence[Variable], n_classes: int, profile: Sequence[NDArray[np.float64]]
) -> None:
    """Refuse counts (bands, classes) of training rows that the variables cannot have."""
    sizes = [(len(variable.bands), n_classes) for variable in variables]
    if [counts.shape for counts in profile] != sizes:
        raise ValueError("Scorecard: profile must hold a count for each band and class.")
    if not all(np.isfinite(counts).all() and (counts >= 0).all() for counts in profile):
        raise ValueError("Scorecard: profile must hold finite counts, none below 0.")
    # each row is in one band of each variable
    rows = np.array([counts.sum(axis=0) for counts in profile])
    if not (rows.sum() > 0 and np.allclose(rows, rows[0], rtol=1e-6)):
        raise ValueError("Scorecard: profile must count the same rows for each variable.")


def _variable(scorecard: "Scorecard", feature: int) -> Variable:
    column = scorecard.space[feature]
    own = [k for k, c in enumerate(scorecard.conditions) if c.feature == feature]
    conditions, points = [scorecard.conditions[k] for k in own], scorecard.points[own]

    def points_of(values: NDArray[np.float64]) -> list[tuple[int, ...]]:
        held = np.stack([condition.holds(values) for condition in conditions], axis=1)
        return [tuple(row) for row in (held @ points).tolist()]

    missing = Band(points_of(np.array([np.nan]))[0], is_missing=True)
    bands = _groups(column, points_of) if column.is_categorical else _steps(conditions, points_of)
    unit = dict(scorecard.units).get(column.name, "")
    return Variable(feature, column, (*bands, missing), unit)


def _groups(column: Column, points_of: PointsOf) -> list[Band]:
    given = points_of(np.arange(len(column.categories), dtype=float))
    bands = [
        Band(points, categories=tuple(k for k, own in enumerate(given) if own == points))
        for points in sorted(set(given))
    ]
    if column.ordered:  # as their lowest categories follow each other
        bands.sort(key=lambda band: band.categories[0])
    return bands


def _steps(conditions: Sequence[Condition], points_of: PointsOf) -> list[Band]:
    at = np.unique([c.threshold for c in conditions if not np.isnan(c.threshold)])
    lowest = np.nextafter(at[0], -np.inf) if len(at) else 0.0
    given = points_of(np.concatenate([[lowest], at]))
    starts = [0] + [k for k in range(1, len(given)) if given[k] != given[k - 1]]
    ends = np.concatenate([[-np.inf], at, [np.inf]])
    lows = [float(ends[k]) for k in starts]
    highs = [*lows[1:], np.inf]
    return [Band(given[k], low, high) for k, low, high in zip(starts, lows, highs, strict=True)]


def number_conditions(
    feature: int, thresholds: Sequence[float], points: Sequence[int], missing: int
) -> list[tuple[Condition, int]]:
    """Conditions with points that add up to bands of numbers.

    Bands above that of least points are reached by ``x >= threshold``, those below it by
    ``x < threshold``, so that points of a monotone variable are all positive.
    """
    least = int(np.argmin(points))
    found = [
        (Condition(feature, "below", thresholds[k]), points[k] - points[k + 1])
        for k in range(least)
    ]
    found += [
        (Condition(feature, "at_least", thresholds[k]), points[k + 1] - points[k])
        for k in range(least, len(thresholds))
    ]
    found += [
        (Condition(feature, "present"), min(points)),
        (Condition(feature, "missing"), missing),
    ]
    return [(condition, int(given)) for condition, given in found if given]


def category_conditions(
    feature: int, points: Sequence[int], missing: int
) -> list[tuple[Condition, int]]:
    """One condition with points for each group of categories that has any."""
    found = [
        (Condition(feature, "among", categories=tuple(np.flatnonzero(np.equal(points, own)))), own)
        for own in sorted(set(points))
    ]
    found.append((Condition(feature, "missing"), missing))
    return [(condition, int(given)) for condition, given in found if given]
