"""Verify: which rows of an ensemble keep their prediction under every noise within a box."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadytree._base.clock import Limit
from steadytree._base.optional import require
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.table import Table
from steadytree.models.ensembles.ensemble import Ensemble
from steadytree.models.tree import LEAF
from steadytree.robustness.certificate import ATTACKED, CERTIFIED, UNDECIDED, WRONG
from steadytree.robustness.joint import OneHotGroups, Splits
from steadytree.robustness.moves import Moves
from steadytree.robustness.perturbation import Perturbation

Floats = NDArray[np.float64]
Mask = list[NDArray[np.bool_]]  # for each column, the cells that a row may be in
AT_ONCE = 100  # steps between two looks at the limits
MEMORY = 2**29  # bytes of one search
MOST_TIES = 100  # cells of a row in which the model itself is asked
HALF_UNIT = 2.0**-31  # half of the least difference of scores without rounding
INSIDE = 0.25  # less than half: cells are whole numbers, and splits lie halfway between them


class Finding(NamedTuple):
    """What is known of one row after the search."""

    status: str
    end: Floats | None = None  # where an attacked row goes


@dataclass(frozen=True, eq=False)
class Cells:
    """Values of columns in cells between which no split of an ensemble tells apart.

    A column of m thresholds has the cells 0 to m of numbers, one of K categories the cells 0 to
    K - 1; the last cell of every column is for missing values.
    """

    thresholds: list[Floats]  # rising; empty for categories
    n_categories: NDArray[np.int64]
    splits: Splits
    position: NDArray[np.int64]  # (n_nodes,): the split's position among the column's thresholds
    moves: Moves

    @classmethod
    def of(cls, splits: Splits, moves: Moves) -> "Cells":
        """Cells of numbers that hold a value that moves may end at."""
        n = len(splits.n_categories)
        at = np.where(moves.integer[splits.feature], np.floor(splits.threshold), splits.threshold)
        thresholds, position = [], np.zeros(len(at), np.int64)
        for j in range(n):
            own = (splits.feature == j) & (splits.n_categories[j] == 0)
            finite = np.unique(at[own & np.isfinite(at)])
            thresholds.append(finite)
            position[own] = np.searchsorted(finite, at[own])  # that of infinity is the last cell
            position[own & np.isneginf(at)] = -1
        return cls(thresholds, splits.n_categories, splits, position, moves)

    def own(self, x: Floats) -> list[int]:
        """The cell of each value of a row."""
        found = []
        for j, value in enumerate(x.tolist()):
            size = self.size(j)
            if value != value:
                found.append(size)
            elif self.n_categories[j]:
                found.append(int(value))
            else:
                found.append(int(np.searchsorted(self.thresholds[j], value)))
        return found

    def size(self, j: int) -> int:
        """Cells of a column without the one of missing values."""
        return int(self.n_categories[j]) or len(self.thresholds[j]) + 1

    def mask(self, x: Floats, limit: float) -> Mask:
        """The cells that a row may reach within the limit."""
        found = []
        for j, own in enumerate(self.own(x)):
            size = self.size(j)
            flags = np.zeros(size + 1, bool)
            if own == size:
                flags[:-1] = self.moves.missing[j] <= limit
                if not self.n_categories[j]:
                    least, greatest = self._ends(j)
                    flags[:-1] &= least <= greatest
            elif self.n_categories[j]:
                flags[:-1] = self.moves.up[j] <= limit
            else:
                least, greatest = self._ends(j)
                with np.errstate(invalid="ignore"):
                    rise = (least - x[j]) * self.moves.up[j]
                    fall = (x[j] - greatest) * self.moves.down[j]
                cost = np.where(np.arange(size) > own, rise, fall)
                flags[:-1] = (cost <= limit) & (least <= greatest)
            flags[own] = True
            found.append(flags)
        return found

    def _ends(self, j: int) -> tuple[Floats, Floats]:
        at = self.thresholds[j]
        low, high = np.append(-np.inf, at), np.append(at, np.inf)
        return self.moves.ends(np.full(len(low), j), low, high)

    def value(self, j: int, cell: int, x: float) -> float:
        """The value in a cell nearest to x."""
        if cell == self.size(j):
            return np.nan
        if self.n_categories[j]:
            return float(cell)
        least, greatest = self._ends(j)
        return float(min(max(0.0 if x != x else x, least[cell]), greatest[cell]))


class Verifier:
    """Searches for the greatest lead of another class in boxes of cells, with Veritas."""

    def __init__(self, ensemble: Ensemble, cells: Cells) -> None:
        self.veritas = require("veritas", extra="ensembles", purpose="certifying an ensemble")
        self.ensemble, self.cells = ensemble, cells
        self.first, self.sets = self._features()
        self._built: dict[Any, Any] = {}

    def _features(self) -> tuple[list[int], list[dict[bytes, int]]]:
        """The verifier's features: one for numbers, one for each set of categories asked about."""
        splits, first, sets, n = self.cells.splits, [], [], 0
        for j, size in enumerate(self.cells.n_categories.tolist()):
            first.append(n)
            own: dict[bytes, int] = {}
            if size:
                for node in np.flatnonzero(splits.feature == j).tolist():
                    own.setdefault(self._set(node, size).tobytes(), n + len(own))
            sets.append(own)
            n += max(len(own), 1)
        return first, sets

    def _set(self, node: int, size: int) -> NDArray[np.bool_]:
        """Which cells of a column of categories go left at a node, missing values last."""
        subset = self.cells.splits.subset[node, :size]
        return np.append(subset, self.ensemble.missing_left[node])

    def trees(self, own: int, other: int, absent: frozenset[int]) -> Any:
        """The lead of one class over another, where values of the columns `absent` are missing."""
        key = own, other, absent
        if key not in self._built:
            at = self.veritas.AddTree(1, self.veritas.AddTreeType.REGR)
            at.set_base_score(0, float(self.ensemble.base[other] - self.ensemble.base[own]))
            for root in self.ensemble.root.tolist():
                tree = at.add_tree()
                self._grow(tree, tree.root(), root, own, other, absent)
            self._built[key] = at
        return self._built[key]

    def _grow(
        self, tree: Any, root: int, top: int, own: int, other: int, absent: frozenset[int]
    ) -> None:
        ensemble, cells, waiting = self.ensemble, self.cells, [(root, top)]
        while waiting:
            at, node = waiting.pop()
            node = self._skip(node, absent)
            if ensemble.left[node] == LEAF:
                lead = ensemble.value[node, other] - ensemble.value[node, own]
                tree.set_leaf_value(at, 0, float(lead))
                continue
            j = int(cells.splits.feature[node])
            size = int(cells.n_categories[j])
            if size:  # 1 where the category is in the set, and those go left
                tree.split(at, self.sets[j][self._set(node, size).tobytes()], 0.5)
                left, right = ensemble.right[node], ensemble.left[node]
            else:
                tree.split(at, self.first[j], float(cells.position[node]) + 0.5)
                left, right = ensemble.left[node], ensemble.right[node]
            waiting += [(tree.left(at), int(left)), (tree.right(at), int(right))]

    def _skip(self, node: int, absent: frozenset[int]) -> int:
        """The next node whose way is not decided by missing values or by having one child."""
        ensemble = self.ensemble
        while ensemble.left[node] != LEAF:
            j, left = int(self.cells.splits.feature[node]), bool(ensemble.missing_left[node])
            if j not in absent and ensemble.left[node] != ensemble.right[node]:
                break
            node = int(ensemble.left[node] if left else ensemble.right[node])
        return node

    def box(self, mask: Mask) -> list[Any]:
        """The cells as intervals of the verifier's features: the least that hold them all."""
        interval, found = self.veritas.Interval, []
        for j, flags in enumerate(mask):
            if not self.cells.n_categories[j]:
                inside = np.flatnonzero(flags[:-1])
                ends = (inside[0], inside[-1]) if len(inside) else (0, 0)
                found.append(interval(float(ends[0]) - INSIDE, float(ends[1]) + INSIDE))
                continue
            for held in self.sets[j]:
                ways = np.frombuffer(held, bool)[flags]
                found.append(interval(float(ways.all()) - INSIDE, float(ways.any()) + INSIDE))
            if not self.sets[j]:
                found.append(interval(-INSIDE, INSIDE))
        return found

    def chosen(self, mask: Mask, box: Mapping[int, Any], own: list[int]) -> list[int] | int:
        """A cell of each column in a solution's box, near its own; or a column that has none.

        A column can have none as its intervals are wider than its cells.
        """
        found = []
        for j, flags in enumerate(mask):
            fits = flags.copy()
            if self.cells.n_categories[j]:
                for held, feature in self.sets[j].items():
                    inside = box.get(feature)
                    if inside is not None:
                        ways = np.frombuffer(held, bool).astype(float)
                        fits &= (inside.lo <= ways) & (ways < inside.hi)
            elif flags[:-1].any() and self.first[j] in box:
                position, inside = np.arange(len(flags) - 1), box[self.first[j]]
                fits[:-1] &= (inside.lo <= position) & (position < inside.hi)
            if not fits.any():
                return j
            near = np.flatnonzero(fits)
            found.append(int(near[np.abs(near - own[j]).argmin()]))
        return found

    def lead(
        self, mask: Mask, own: int, other: int, least: float, budget: "Budget"
    ) -> tuple[str, Mapping[int, Any]]:
        """Whether the other class leads by at least so much somewhere, and a box in which it does.

        Certified means that it does so nowhere; undecided, that the search ended before.
        """
        absent = frozenset(
            j
            for j, flags in enumerate(mask)
            if flags[-1] and not self.cells.n_categories[j] and not flags[:-1].any()
        )
        config = self.veritas.Config(self.veritas.HeuristicType.MAX_OUTPUT)
        config.ignore_state_when_worse_than = least
        config.stop_when_num_solutions_exceeds = 1
        config.stop_when_optimal = False
        config.max_memory = MEMORY
        search = config.get_search(self.trees(own, other, absent), self.box(mask))
        while True:
            steps = budget.take(AT_ONCE)
            if not steps:
                return UNDECIDED, {}
            reason = search.steps(steps)
            if search.num_solutions() > 0:
                return ATTACKED, search.get_solution(0).box()
            if reason == self.veritas.StopReason.NO_MORE_OPEN:
                return CERTIFIED, {}
            if reason == self.veritas.StopReason.OUT_OF_MEMORY:
                return UNDECIDED, {}


class Budget:
    """Steps of the verifier for one row, within a limit of time for all rows."""

    def __init__(self, steps: int, limit: Limit) -> None:
        self.left, self.spent, self.limit = steps, 0, limit

    def take(self, most: int) -> int:
        """As many steps as may be made now, at most the given number."""
        steps = min(most, self.left) if self.limit.left > 0 else 0
        self.left -= steps
        self.spent += steps
        return steps


def verify(
    ensemble: Ensemble,
    table: Table,
    rows: Floats,
    own: NDArray[np.int64],
    wanted: NDArray[np.bool_],
    noise: Perturbation,
    allowed: tuple[FeatureSpace, Moves, NDArray[np.bool_]],
    limits: tuple[int, Limit],
) -> tuple[list[Finding], int]:
    """What is found of each row of a table that is asked about, and the steps made.

    `rows` are the table's, encoded, and `own` their predictions. `allowed` has the space with its
    kinds, the moves in it, and the unknown categories (n, p); `limits` the steps a row and the time
    of all.
    """
    space, moves, strange = allowed
    groups = OneHotGroups.of(space, noise)
    start = groups.merge_rows(rows, space)
    splits = groups.merge_splits(
        Splits(ensemble.feature, ensemble.threshold, ensemble.subset, space.n_categories, ensemble)
    )
    findings, steps = [Finding(WRONG)] * len(rows), 0
    for some, own_moves in moves.by_row(rows, strange):
        verifier = Verifier(ensemble, Cells.of(splits, groups.merge_moves(own_moves, space)))
        for row in some[wanted[some]].tolist():

            def answer(end: Floats, row: int = row) -> tuple[bool, Floats]:
                point = groups.part_rows(end[None], rows[row : row + 1])
                predicted = ensemble.predict(table.take(np.array([row])), point)[0]
                return bool(predicted != own[row]), point[0]

            budget = Budget(*limits)
            findings[row] = _verify_row(verifier, start[row], int(own[row]), noise, budget, answer)
            steps += budget.spent
    return findings, steps


# whether the model itself predicts another class at a point of cells, and the row it stands for
Answer = Callable[[Floats], tuple[bool, Floats]]


def _verify_row(
    verifier: Verifier, x: Floats, own: int, noise: Perturbation, budget: Budget, answer: Answer
) -> Finding:
    """Certified where no class can take the lead anywhere in the box."""
    mask = verifier.cells.mask(x, noise.spend(1.0))
    decided = True
    for other in range(len(verifier.ensemble.classes)):
        if other != own:
            found = _attack(verifier, x, mask, (own, other), budget, answer)
            if found.status == ATTACKED:
                return found
            decided = decided and found.status == CERTIFIED
    return Finding(CERTIFIED if decided else UNDECIDED)


def _attack(
    verifier: Verifier, x: Floats, mask: Mask, pair: tuple[int, int], budget: Budget, answer: Answer
) -> Finding:
    """Whether one class can take the lead of another: boxes are parted until cells decide."""
    cells, tolerance = verifier.cells, verifier.ensemble.tolerance
    own, other = pair
    # on a tie the first class wins; where sums are rounded, a lead within the rounding may be one
    least = -tolerance - HALF_UNIT if other < own or tolerance else HALF_UNIT
    home, waiting, decided, n_ties = cells.own(x), [mask], True, 0
    while waiting:
        part, tie = waiting.pop(), None
        column = _undecided_column(cells, part)
        if column is not None:
            waiting += _parted(part, column, cells.size(column))
            continue
        for lead in (least, tolerance + HALF_UNIT):
            status, box = verifier.lead(part, own, other, lead, budget)
            if status != ATTACKED:
                break
            chosen = verifier.chosen(part, box, home)
            if isinstance(chosen, int):
                middle, tie = np.flatnonzero(part[chosen]), None
                waiting += _parted(part, chosen, int(middle[len(middle) // 2]))
                break
            end = [x[j] if k == home[j] else cells.value(j, k, x[j]) for j, k in enumerate(chosen)]
            is_other, point = answer(np.array(end))
            if is_other:
                return Finding(ATTACKED, point)
            tie = chosen  # within the rounding; a clear lead elsewhere would still be an attack
        if tie is not None:  # the model has answered for this cell: what is left is the others
            n_ties += 1
            waiting += _without(part, tie) if n_ties <= MOST_TIES else []
        decided = decided and status != UNDECIDED and n_ties <= MOST_TIES
    return Finding(CERTIFIED if decided else UNDECIDED)


def _undecided_column(cells: Cells, mask: Mask) -> int | None:
    """A column of numbers that may be missing or not: splits need to know which."""
    for j, flags in enumerate(mask):
        if not cells.n_categories[j] and flags[-1] and flags[:-1].any():
            return j
    return None


def _parted(mask: Mask, column: int, first: int) -> list[Mask]:
    """Two masks: the first of a column's cells that are set, and the others."""
    inside = np.flatnonzero(mask[column])
    parts = []
    for own in (inside[inside < first], inside[inside >= first]):
        flags = np.zeros_like(mask[column])
        flags[own] = True
        parts.append([*mask[:column], flags, *mask[column + 1 :]])
    return [part for part in parts if part[column].any()]


def _without(mask: Mask, cell: list[int]) -> list[Mask]:
    """Masks of all that a mask holds but one cell, which has a position in each column."""
    found, rest = [], mask
    for column, position in enumerate(cell):
        flags = rest[column]
        at = np.arange(len(flags))
        for own in (flags & (at < position), flags & (at > position)):
            if own.any():
                found.append([*rest[:column], own, *rest[column + 1 :]])
        rest = [*rest[:column], flags & (at == position), *rest[column + 1 :]]
    return found
