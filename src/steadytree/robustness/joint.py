"""Columns that move as one: one-hot groups as a category, and groups that move together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadytree.data.feature_space import FeatureSpace
from steadytree.data.table import quote
from steadytree.models.boxes import exact_thresholds
from steadytree.models.tree import Tree
from steadytree.robustness.moves import Moves
from steadytree.robustness.perturbation import Perturbation

Floats = NDArray[np.float64]


class Splits(NamedTuple):
    """The splits of a tree over columns that may be other than its own."""

    feature: NDArray[np.int64]
    threshold: Floats  # in float64
    subset: NDArray[np.bool_]
    n_categories: NDArray[np.int64]  # of each column, 0 for numbers
    tree: Any  # the Tree or Ensemble, which has children and where missing values go

    @classmethod
    def of(cls, tree: Tree) -> "Splits":
        """A tree's own splits."""
        sizes = np.array(tree.space.n_categories)
        return cls(tree.feature, exact_thresholds(tree), tree.subset, sizes, tree)


@dataclass(frozen=True, eq=False)
class OneHotGroups:
    """Groups of 0/1 columns, each as one category: the column that is 1.

    The other columns keep their order and come first; where a model lacks columns of a group, its
    last category stands for all of them.
    """

    groups: tuple[tuple[int, ...], ...]  # of columns of the space
    sizes: tuple[int, ...]  # categories of each group
    others: NDArray[np.int64]

    @classmethod
    def of(cls, space: FeatureSpace, noise: Perturbation) -> "OneHotGroups":
        """The groups that a perturbation declares, as far as the space has their columns."""
        groups, sizes = [], []
        for group in noise.one_hot:
            own = tuple(j for j, name in enumerate(space.names) if name in group)
            text = [space.names[j] for j in own if space[j].is_categorical]
            if text:
                raise ValueError(
                    f"one_hot names {quote(text)}, which hold categories, not 0 and 1."
                )
            if own:
                groups.append(own)
                sizes.append(len(own) + (len(own) < len(group)))
        grouped = [j for group in groups for j in group]
        others = np.setdiff1d(np.arange(len(space)), grouped)
        return cls(tuple(groups), tuple(sizes), others)

    def merge_rows(self, rows: Floats, space: FeatureSpace) -> Floats:
        """Encoded rows with a category for each group; what is no group is refused by its row."""
        if not self.groups:
            return rows
        merged = [rows[:, self.others]]
        for group, size in zip(self.groups, self.sizes, strict=True):
            values = rows[:, group]
            missing = np.isnan(values).all(axis=1)
            ones = (values == 1.0).sum(axis=1)
            flags = np.isin(values, (0.0, 1.0)).all(axis=1)
            possible = flags & ((ones == 1) | ((ones == 0) & (size > len(group))))
            bad = np.flatnonzero(~(possible | missing))
            if len(bad):
                listed = quote(space.names[j] for j in group)
                shown = ", ".join(f"{value:g}" for value in values[bad[0]])
                raise ValueError(
                    f"row {bad[0]} holds {shown} in the one-hot group {listed}: exactly one must "
                    "be 1 and the others 0. Correct the row, or remove the group from one_hot."
                )
            category = np.where(ones == 1, values.argmax(axis=1), size - 1).astype(np.float64)
            merged.append(np.where(missing, np.nan, category)[:, None])
        return np.concatenate(merged, axis=1)

    def part_rows(self, merged: Floats, rows: Floats) -> Floats:
        """The rows again, whose groups hold a single 1; `rows` has their shape."""
        if not self.groups:
            return merged
        parted, n = np.full_like(rows, np.nan), len(self.others)
        parted[:, self.others] = merged[:, :n]
        for k, group in enumerate(self.groups):
            category = merged[:, n + k, None]
            values = (category == np.arange(len(group))).astype(np.float64)
            parted[:, group] = np.where(np.isnan(category), np.nan, values)
        return parted

    def merge_moves(self, moves: Moves, space: FeatureSpace) -> Moves:
        """What each column and group may do."""
        if not self.groups:
            return moves
        prices = moves.prices
        merged = [moves.prices[self.others]]
        for group in self.groups:
            own = prices[list(group)]
            up, down, missing, once, reach = own[0]
            if (own != own[0]).any() or up != down:
                listed = quote(space.names[j] for j in group)
                raise ValueError(
                    f"the columns of the one-hot group {listed} need one common radius or cost, "
                    "and no direction: they move as one category."
                )
            change = once + up if reach >= 1.0 else np.inf
            merged.append(np.array([[change, change, missing, 0.0, np.inf]]))
        up, down, missing, once, reach = np.concatenate(merged).T.copy()
        n = len(self.groups)
        low = np.append(moves.low[self.others], np.full(n, -np.inf))
        high = np.append(moves.high[self.others], np.full(n, np.inf))
        integer = np.append(moves.integer[self.others], np.zeros(n, bool))
        categorical = np.append(moves.categorical[self.others], np.ones(n, bool))
        kinds = integer, categorical, moves.largest
        return Moves(up, down, missing, low, high, *kinds, once, reach)

    def merge_splits(self, splits: Splits) -> Splits:
        """The splits over the columns and groups: one on a group's column asks for its category."""
        if not self.groups:
            return splits
        feature, threshold = np.full_like(splits.feature, -1), splits.threshold.copy()
        feature[splits.feature >= 0] = np.searchsorted(
            self.others, splits.feature[splits.feature >= 0]
        )
        width = max(splits.subset.shape[1], *self.sizes)
        subset = np.zeros((len(feature), width), bool)
        subset[:, : splits.subset.shape[1]] = splits.subset
        for k, (group, size) in enumerate(zip(self.groups, self.sizes, strict=True)):
            for position, j in enumerate(group):
                nodes = splits.feature == j
                feature[nodes] = len(self.others) + k
                flags = (np.arange(size) == position).astype(np.float64)
                subset[nodes, :size] = flags <= splits.threshold[nodes, None]
        kept = splits.n_categories[self.others]
        sizes = np.append(kept, np.array(self.sizes, kept.dtype))
        return Splits(feature, threshold, subset, sizes, splits.tree)


@dataclass(frozen=True, eq=False)
class JointShifts:
    """Groups of columns that move together; each becomes one column, the shift, at first 0.

    A shift is counted in steps where all columns of the group move in whole steps, and else in
    shares of the columns' radii.
    """

    groups: tuple[tuple[int, ...], ...]
    n_columns: int

    @classmethod
    def of(cls, space: FeatureSpace, noise: Perturbation, moves: Moves) -> "JointShifts":
        """The groups that a perturbation declares, as far as the space has their columns."""
        groups = []
        for group in noise.together:
            own = [j for j, name in enumerate(space.names) if name in group]
            shown = f"the columns {quote(space.names[j] for j in own)}, which move together,"
            unit = np.minimum(moves.up, moves.down)[own]
            if moves.categorical[own].any():
                raise ValueError(f"{shown} must hold numbers, not categories.")
            if np.isfinite(moves.missing[own]).any():
                raise ValueError(f"{shown} can have no missing_cost: missing values stay missing.")
            if len(own) and np.isinf(unit).any():
                raise ValueError(f"{shown} all need a radius above 0, and none may be frozen.")
            if moves.integer[own].any() and (not moves.integer[own].all() or len(set(unit)) > 1):
                raise ValueError(
                    f"{shown} must all move in whole steps, by the same radius, or none of them: "
                    "see the perturbation's whole."
                )
            if own:
                groups.append(tuple(own))
        return cls(tuple(groups), len(space))

    def beside(self, flags: OneHotGroups) -> "JointShifts":
        """The same groups where one-hot columns are merged."""
        position = {int(j): k for k, j in enumerate(flags.others)}
        groups = tuple(tuple(position[j] for j in group) for group in self.groups)
        return JointShifts(groups, len(flags.others) + len(flags.groups))

    def of_row(
        self, x: Floats, splits: Splits, moves: Moves
    ) -> tuple[Floats, Splits, Moves, list[Floats]]:
        """A row with its shifts, the splits on them, what they cost, and units of each group."""
        row = np.append(x, np.zeros(len(self.groups)))
        feature, threshold = splits.feature.copy(), splits.threshold.copy()
        added, units = [], []
        for k, group in enumerate(self.groups):
            own = list(group)
            radius = 1.0 / np.minimum(moves.up, moves.down)[own]
            steps = bool(moves.integer[own].all())
            unit = np.ones(len(own)) if steps else radius
            units.append(unit)
            for j, one in zip(own, unit, strict=True):
                nodes = np.flatnonzero(splits.feature == j)
                feature[nodes] = self.n_columns + k
                if np.isnan(x[j]):  # decided, wherever the shift goes
                    left = splits.tree.missing_left[nodes]
                    threshold[nodes] = np.where(left, np.inf, -np.inf)
                else:
                    threshold[nodes] = last_shift(x[j], one, splits.threshold[nodes])
            known = ~np.isnan(x[own])
            low = (moves.low[own] - x[own])[known] / unit[known]
            high = (moves.high[own] - x[own])[known] / unit[known]
            price = 1.0 / radius[0] if steps else 1.0
            up = price if np.isfinite(moves.up[own]).all() else np.inf
            down = price if np.isfinite(moves.down[own]).all() else np.inf
            ends = low.max(initial=-np.inf), high.min(initial=np.inf)
            added.append((up, down, *ends, steps))
        ups, downs, lows, highs, whole = (np.array(one) for one in zip(*added, strict=True))
        still = np.full(len(self.groups), np.inf)
        wider = Moves(
            np.append(moves.up, ups),
            np.append(moves.down, downs),
            np.append(moves.missing, still),
            np.append(moves.low, lows),
            np.append(moves.high, highs),
            np.append(moves.integer, whole),
            np.append(moves.categorical, np.zeros(len(self.groups), bool)),
            moves.largest,
            np.append(moves.once, np.zeros(len(self.groups))),
            np.append(moves.reach, still),
        )
        sizes = np.append(splits.n_categories, np.zeros(len(self.groups), np.int64))
        return (
            row,
            splits._replace(feature=feature, threshold=threshold, n_categories=sizes),
            wider,
            units,
        )

    def ends(self, moved: Floats, x: Floats, units: Sequence[Floats]) -> Floats:
        """The row that a shifted one stands for."""
        found = moved[: self.n_columns].copy()
        for k, (group, unit) in enumerate(zip(self.groups, units, strict=True)):
            found[list(group)] = x[list(group)] + moved[self.n_columns + k] * unit
        return found


def last_shift(x: float, unit: float, threshold: Floats) -> Floats:
    """The greatest shift s with ``x + s * unit <= threshold`` in floats, for each threshold."""
    found = threshold.copy()
    finite = np.isfinite(threshold)
    at = threshold[finite]
    near = 4.0 * np.spacing(np.maximum(np.maximum(np.abs(at), abs(x)), np.abs(at - x))) / unit
    low, high = (at - x) / unit - near, (at - x) / unit + near  # below goes left, above does not
    while True:
        middle = low + (high - low) / 2
        open_ = (middle > low) & (middle < high)
        if not open_.any():
            break
        left = x + middle * unit <= at
        low, high = np.where(open_ & left, middle, low), np.where(open_ & ~left, middle, high)
    found[finite] = low
    return found
