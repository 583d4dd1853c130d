"""ClassCounts, the one statistic trees are grown from, and Source, where it comes from."""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from steadytree.core.rules import Rules


@dataclass(frozen=True, eq=False)
class ClassCounts:
    """Rows per open node, bin and class; counts of disjoint sets of rows add.

    Parameters
    ----------
    values : array of shape (n_nodes, n_bins, n_classes)
        int64, or float64 where rows have weights. The bins of feature j are
        ``rules.table.bin_offsets[j]`` up to ``bin_offsets[j + 1]``.
    rules : Rules
        The bins and what may be asked of them.
    """

    values: NDArray[Any]
    rules: Rules

    def __post_init__(self) -> None:
        if self.values.ndim != 3 or self.values.shape[1] != self.rules.n_bins:
            raise ValueError(
                f"ClassCounts: values must have shape (nodes, {self.rules.n_bins} bins, classes), "
                f"got {self.values.shape}."
            )
        if self.values.dtype not in (np.int64, np.float64):
            raise ValueError(f"ClassCounts: int64 or float64 needed, got {self.values.dtype}.")

    def __add__(self, other: "ClassCounts") -> "ClassCounts":
        if self.values.shape != other.values.shape:
            raise ValueError(
                f"ClassCounts: shapes differ, {self.values.shape} and {other.values.shape}: "
                "all sources must share one feature space and one list of classes."
            )
        return ClassCounts(self.values + other.values, self.rules)


class Splits(NamedTuple):
    """What was decided at the last level, per open node of it.

    rule -1 closes a node; a child slot of -1 is closed as well, others number the next level.
    """

    rule: NDArray[np.int64]
    left_slot: NDArray[np.int64]
    right_slot: NDArray[np.int64]

    @property
    def n_open(self) -> int:
        """Nodes of the next level."""
        return int(max(self.left_slot.max(initial=-1), self.right_slot.max(initial=-1))) + 1


class Source(Protocol):
    """Where class counts come from: rows in memory, a sum of holders, a cluster."""

    @property
    def rules(self) -> Rules: ...

    @property
    def n_classes(self) -> int: ...

    def start(self) -> None:
        """Put all rows into one open node, the root."""

    def advance(self, splits: Splits) -> None:
        """Send rows on by the splits of the last level."""

    def count(self, first: int, last: int) -> ClassCounts:
        """Counts of the open nodes first up to, not including, last."""
