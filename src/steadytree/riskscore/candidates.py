"""Columns that may be used, and numbers derived from them that noise moves, for conditions."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadytree.data._kernels.bins import short_thresholds
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.labels import stratified_folds
from steadytree.data.table import quote
from steadytree.models.condition import Condition
from steadytree.models.scorecard import Scorecard
from steadytree.riskscore._kernels.votes import UP
from steadytree.robustness.perturbation import check_names

# shifts are larger than tau by this factor, so that rounding never breaks a certificate
SLACK = 1 + 1e-8
FOLDS = 5
USUAL = 10  # conditions, unless told


class LabelledRows(NamedTuple):
    """What a scorecard is fitted to: encoded rows with the indices of their classes and weights."""

    space: FeatureSpace
    classes: NDArray[Any]
    values: NDArray[np.float64]
    labels: NDArray[np.int64]
    weights: NDArray[np.float64]

    def totals(self, scorecard: Scorecard) -> NDArray[np.int64]:
        """Totals of the rows, as `Scorecard.score` returns them."""
        found = scorecard.holds_encoded(self.values) @ scorecard.points + scorecard.offset
        return found[:, 0] if scorecard.is_binary else found

    def take(self, rows: NDArray[np.int64]) -> "LabelledRows":
        """Some of the rows."""
        values, labels = self.values[rows], self.labels[rows]
        return self._replace(values=values, labels=labels, weights=self.weights[rows])


def names_of(estimator: Any, parameter: str) -> list[str]:
    """The names in a parameter, each once; empty for None."""
    given = getattr(estimator, parameter)
    if given is None:
        return []
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise ValueError(f"{parameter} must be a list of names, got {given!r}.")
    return list(dict.fromkeys(given))


def allowed_directions(estimator: Any, data: LabelledRows) -> dict[int, tuple[bool, bool]]:
    """Columns that may be used, each with the directions (large, small values) of its points."""
    space, n_classes = data.space, len(data.classes)
    named = {name: names_of(estimator, name) for name in ("monotone", "forced", "forbidden")}
    for parameter, names in named.items():
        check_names(parameter, names, space.names)
    both = [name for name in named["forced"] if name in named["forbidden"]]
    if both:
        raise ValueError(f"{quote(both)} is both forced and forbidden: choose one.")
    monotone = estimator.monotone or {}
    if monotone and n_classes > 2:
        raise ValueError(
            f"monotone is for two classes, but y has {n_classes} classes: leave it out, or fit one "
            "class against the rest."
        )
    directions = {}
    for j, column in enumerate(space):
        direction = monotone.get(column.name)
        if direction not in (None, "up", "down", "free"):
            raise ValueError(
                f"monotone of {column.name!r} must be 'up', 'down' or 'free', got {direction!r}."
            )
        if direction in ("up", "down") and column.is_categorical:
            if estimator.objective != "log_loss":
                text = "categories have a direction with objective='log_loss' alone."
                raise ValueError(f"monotone of {column.name!r}: {text}")
            if column.ranks is None:
                text = "its categories have no order: make it an ordered Categorical."
                raise ValueError(f"monotone of {column.name!r}: {text}")
        up, down = direction != "down", direction != "up" and estimator.directions == "both"
        if column.name in named["forbidden"]:
            continue
        if not up and not down and column.name in named["forced"]:
            raise ValueError(
                f"{column.name!r} is forced, but directions='up' and monotone allow no condition."
            )
        if not up and not down:
            raise ValueError(
                f"monotone of {column.name!r} is 'down', but directions='up' gives points for "
                "large values only: use directions='both', or list the column in forbidden."
            )
        directions[j] = (up, down)
    return directions


def check_forced(estimator: Any, data: LabelledRows) -> tuple[int, ...]:
    """Indices of the columns that must be used; constant columns are refused."""
    forced = names_of(estimator, "forced")
    check_names("forced", forced, data.space.names)
    indices = {name: data.space.names.index(name) for name in forced}
    same = [name for name, j in indices.items() if len(np.unique(data.values[:, j])) < 2]
    if same and estimator.objective != "published":
        raise ValueError(
            f"forced names {quote(same)}, which holds one value only in these rows: no condition "
            "can use it, so leave it out."
        )
    return tuple(indices.values())


@dataclass(frozen=True)
class DerivedFeature:
    """A number, an indicator of one category, or an indicator of missing values."""

    feature: int  # column of the space it comes from
    sort: Literal["number", "category", "missing"]
    unit: float  # what noise of size one moves it by: the column's range, or 0
    directions: tuple[bool, bool]  # whether large, and small, values may get points
    category: int = -1

    def condition(self, direction: int, threshold: float, space: FeatureSpace) -> Condition:
        """The condition of a threshold; minus infinity stands for any observed value."""
        if self.sort == "missing":
            return Condition(self.feature, "missing" if direction == UP else "present")
        if np.isinf(threshold):
            return Condition(self.feature, "present")
        if self.sort == "number":
            return Condition(self.feature, "at_least" if direction == UP else "below", threshold)
        others = set(range(len(space[self.feature].categories))) - {self.category}
        chosen = {self.category} if direction == UP else others
        return Condition(self.feature, "among", categories=tuple(chosen))


@dataclass(frozen=True, eq=False)
class DerivedFeatures:
    """All derived features of a space, with their values (n, q): nan where missing."""

    space: FeatureSpace
    listed: tuple[DerivedFeature, ...]
    matrix: NDArray[np.float64]

    @classmethod
    def of(cls, estimator: Any, data: LabelledRows) -> "DerivedFeatures":
        """Features of the columns that the estimator may use."""
        listed: list[DerivedFeature] = []
        columns: list[NDArray[np.float64]] = []
        for j, both in allowed_directions(estimator, data).items():
            column, x = data.space[j], data.values[:, j]
            missing = np.isnan(x)
            if column.is_categorical:
                n_categories = len(column.categories)
                first = 1 if n_categories == 2 and not missing.any() else 0
                for category in range(first, n_categories):
                    listed.append(DerivedFeature(j, "category", 0.0, both, category))
                    columns.append(np.where(missing, np.nan, x == category))
            else:
                wide = column.high - column.low
                if not np.isfinite(2 * wide + max(abs(column.low), abs(column.high))):
                    raise ValueError(
                        f"column {column.name!r} ranges from {column.low:g} to {column.high:g}, "
                        "too far for noise to be added: divide its values, or drop it."
                    )
                moves = estimator.objective == "published" or column.kind != "binary"
                listed.append(DerivedFeature(j, "number", float(wide or 1) * moves, both))
                columns.append(x)
            if missing.any():
                listed.append(DerivedFeature(j, "missing", 0.0, (True, False)))
                columns.append(missing.astype(np.float64))
        whole = [one.feature for one in listed if one.sort == "number"]
        if len(listed) == len(whole) and whole == list(range(len(data.space))):
            matrix = data.values  # as they are, not copied
        else:
            matrix = np.stack(columns, axis=1) if columns else np.empty((len(data.values), 0))
        return cls(data.space, tuple(listed), matrix)

    def __len__(self) -> int:
        return len(self.listed)

    def take(self, rows: NDArray[Any]) -> "DerivedFeatures":
        """The same features of some rows."""
        return DerivedFeatures(self.space, self.listed, self.matrix[rows])

    def shifted(
        self, labels: NDArray[np.int64], tau: float, direction: int, slack: float = SLACK
    ) -> NDArray[np.float64]:
        """Values (n, q) moved by noise tau against the label: UP moves positive rows down."""
        if tau == 0:
            return self.matrix
        units = np.array([derived.unit for derived in self.listed])
        sign = -labels if direction == UP else labels
        return self.matrix + (tau * slack) * sign[:, None] * units

    @property
    def allowed(self) -> NDArray[np.bool_]:
        """Which directions (q, 2) may be used."""
        return np.array([derived.directions for derived in self.listed], bool).reshape(-1, 2)

    @property
    def moved(self) -> NDArray[np.bool_]:
        """Which are moved by noise."""
        return np.array([derived.unit > 0 for derived in self.listed], bool)


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Derived features with labels -1 and 1 and weights."""

    features: DerivedFeatures
    labels: NDArray[np.int64]
    weights: NDArray[np.float64]

    @property
    def most_frequent(self) -> float:
        """Share of the weight of the more frequent class."""
        share = float(np.average(self.labels > 0, weights=self.weights))
        return max(share, 1 - share)

    def take(self, rows: NDArray[Any]) -> "TrainingRows":
        """Some of the rows."""
        return TrainingRows(self.features.take(rows), self.labels[rows], self.weights[rows])

    def sample(self, most: int, seed: int) -> "TrainingRows":
        """At most `most` rows, sampled at random, in their order."""
        n = len(self.labels)
        if n <= most:
            return self
        sampled = np.random.default_rng(seed).choice(n, most, replace=False)
        return self.take(np.sort(sampled))

    def folds(
        self, divisions: Sequence[int | None] = (None,)
    ) -> Iterator[tuple["TrainingRows", "TrainingRows"]]:
        """Training and validation rows; as many folds as the rarer class allows."""
        # each division is a seed for shuffling the rows, or None for rows in their order
        rarer = int(min((self.labels > 0).sum(), (self.labels < 0).sum()))
        if rarer < 2:
            return
        for seed in divisions:
            for fit, judge in stratified_folds(self.labels, min(FOLDS, rarer), seed):
                yield self.take(fit), self.take(judge)


@dataclass(frozen=True, eq=False)
class BinnedFeatures:
    """Shifted values as ranks, for one direction, with the thresholds between them."""

    binned: NDArray[np.unsignedinteger]
    size: NDArray[np.int64]
    thresholds: list[NDArray[np.float64]]

    @classmethod
    def of(
        cls, shifted: NDArray[np.float64], direction: int, short: bool = True
    ) -> "BinnedFeatures":
        """Ranks (q, n): missing first upwards and last downwards, so that no condition holds."""
        # threshold c lies between bins c - 1 and c; `short` takes a number with few digits
        n, q = shifted.shape
        binned = np.empty((q, n), smallest_kind(n))  # there are at most as many bins as rows
        size, thresholds = np.empty(q, np.int64), []
        for j in range(q):
            x = shifted[:, j]
            missing = np.isnan(x)
            some = bool(missing.any())
            known, index = ranks(x[~missing])
            binned[j, ~missing] = index + (some and direction == UP)
            binned[j, missing] = 0 if direction == UP else len(known)
            size[j] = len(known) + some
            parts = [[-np.inf] if some else [], thresholds_between(known, short)]
            start = known[:1] if len(known) else np.zeros(1)
            thresholds.append(np.concatenate([start, *parts[:: 1 if direction == UP else -1]]))
        kind = smallest_kind(int(size.max(initial=1)))
        return cls(binned.astype(kind, copy=False), size, thresholds)


def smallest_kind(n_bins: int) -> type[np.unsignedinteger]:
    """The type that numbers of so many bins need: they are the largest array of a fit."""
    return np.uint8 if n_bins <= 256 else np.uint16 if n_bins <= 65_536 else np.uint32


def ranks(x: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Distinct values in order, and the index of each entry among them."""
    if len(x):
        low, high = x.min(), x.max()
        top = x == high
        if high > low and (top | (x == low)).all():  # two values need no sorting
            return np.array([low, high]), top.astype(np.int64)
    known, index = np.unique(x, return_inverse=True)
    return known, index


def thresholds_between(known: NDArray[np.float64], short: bool) -> NDArray[np.float64]:
    """Thresholds between neighbouring values, in the middle or at a short number near it."""
    if short:
        return short_thresholds(known)
    low, high = known[:-1], known[1:]
    thresholds = low + (high - low) / 2
    return np.where(thresholds <= low, high, thresholds)  # neighbouring floats: the upper divides
