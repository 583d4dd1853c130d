"""Moves: a perturbation as arrays, one entry a column."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

TOTAL, LARGEST = 0, 1  # the size of a move: the sum over columns, or the largest of them


@dataclass(frozen=True, eq=False)
class Moves:
    """What one unit costs in each column; infinity where it does not move.

    Parameters
    ----------
    up, down : float64 arrays (p,)
        Cost of rising or falling by one unit; both hold the cost of another category.
    missing : float64 array (p,)
        Cost at which a missing value may turn out to be any value.
    low, high : float64 arrays (p,)
        Values do not move out of these.
    whole, categorical : bool arrays (p,)
        Columns that move in whole steps; columns of categories.
    norm : int
        TOTAL or LARGEST.
    """

    up: NDArray[np.float64]
    down: NDArray[np.float64]
    missing: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    whole: NDArray[np.bool_]
    categorical: NDArray[np.bool_]
    norm: int

    def ends(
        self, column: Any, low: NDArray[np.float64], high: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Least and greatest value at which a move into ``low < x <= high`` of a column may end.

        All three are arrays of one length, or broadcast to one. No value fits where the least is
        above the greatest.
        """
        whole = self.whole[column]
        least = np.where(whole, np.floor(low) + 1.0, np.nextafter(low, np.inf))
        greatest = np.where(whole, np.floor(high), high)
        # nextafter(-inf) is the least finite number: nothing was asked there
        least = np.where(np.isneginf(low), -np.inf, least)
        lowest = np.where(whole, np.ceil(self.low[column]), self.low[column])
        highest = np.where(whole, np.floor(self.high[column]), self.high[column])
        least = np.maximum(least, lowest)
        # beyond the greatest number there is nothing to move to, as past a threshold of infinity
        greatest = np.where(np.isposinf(least), -np.inf, np.minimum(greatest, highest))
        return least, greatest
