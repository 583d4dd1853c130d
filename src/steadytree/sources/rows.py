"""Rows: class counts of rows that are in memory."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.core.counts import ClassCounts, Splits
from steadytree.core.rules import Rules
from steadytree.kernels import count_classes, move_rows, weigh_classes

SMALL = 100_000  # codes; below this, counting again is cheaper than sorting out what to subtract


class Rows:
    """One holder's rows as codes; answers counts for the open nodes of a level.

    Parameters
    ----------
    codes : array of shape (n_features, n_rows)
        Codes of the bins of `rules`.
    labels : int32 array of shape (n_rows,)
    rules : Rules
    n_classes : int
    weights : float64 array of shape (n_rows,), optional
    """

    def __init__(
        self,
        codes: NDArray[Any],
        labels: NDArray[np.int32],
        rules: Rules,
        n_classes: int,
        weights: NDArray[np.float64] | None = None,
    ) -> None:
        self._codes = codes
        self._labels = labels
        self._weights = weights
        self._rules = rules
        self._n_classes = n_classes
        self.start()

    @property
    def rules(self) -> Rules:
        return self._rules

    @property
    def n_classes(self) -> int:
        return self._n_classes

    def start(self) -> None:
        self._slots = np.zeros(len(self._labels), np.int32)
        self._n_open = 1
        self._parents: NDArray[Any] | None = None  # counts of the last level, where kept
        self._splits: Splits | None = None

    def advance(self, splits: Splits) -> None:
        move_rows(self._codes, self._slots, self._rules.table, *splits)
        self._splits = splits
        self._n_open = splits.n_open

    def count(self, first: int, last: int) -> ClassCounts:
        whole_level = (first, last) == (0, self._n_open)
        parents, splits = self._parents, self._splits
        subtract = whole_level and self._codes.size > SMALL
        if subtract and parents is not None and splits is not None:
            values = self._count_smaller_children(parents, splits)
        else:
            slots = self._slots
            if not whole_level:
                inside = (slots >= first) & (slots < last)
                slots = np.where(inside, slots - first, -1).astype(np.int32)
            values = self._count(slots, last - first)
        # fractions do not subtract exactly, so with weights every node is counted
        self._parents = values if whole_level and self._weights is None else None
        return ClassCounts(values, self._rules)

    def rows_in(self, slot: int) -> NDArray[np.int64]:
        """Numbers of the rows in an open node."""
        return np.flatnonzero(self._slots == slot)

    def _count(self, slots: NDArray[np.int32], n_slots: int) -> NDArray[Any]:
        offsets = self._rules.table.bin_offsets
        if self._weights is None:
            return count_classes(
                self._codes, self._labels, slots, n_slots, offsets, self._n_classes
            )
        return weigh_classes(
            self._codes, self._labels, slots, self._weights, n_slots, offsets, self._n_classes
        )

    def _count_smaller_children(self, parents: NDArray[Any], splits: Splits) -> NDArray[Any]:
        """Count the smaller child of each pair; the other is what is left of the parent."""
        sizes = np.bincount(self._slots + 1, minlength=self._n_open + 1)[1:]
        left, right = splits.left_slot, splits.right_slot
        both = np.flatnonzero((left >= 0) & (right >= 0))
        left_is_larger = sizes[left[both]] > sizes[right[both]]
        larger = np.where(left_is_larger, left[both], right[both])
        smaller = np.where(left_is_larger, right[both], left[both])
        counted = np.ones(self._n_open, bool)
        counted[larger] = False
        place = np.append(np.where(counted, np.cumsum(counted) - 1, -1), -1).astype(np.int32)
        some = self._count(place[self._slots], int(counted.sum()))
        values = np.empty((self._n_open, *some.shape[1:]), some.dtype)
        values[counted] = some
        values[larger] = parents[both] - values[smaller]
        return values
