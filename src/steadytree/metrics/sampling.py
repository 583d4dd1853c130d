"""Hold rows out of fitting, so that a tree is judged on rows it has not seen."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.data.dataset import Dataset
from steadytree.data.labels import label_array


@dataclass(frozen=True, eq=False)
class Sampled:
    """Rows for a slow measure: all of them, or as many as it can handle."""

    features: Dataset
    labels: NDArray[Any]
    n_all: int  # rows before sampling

    @classmethod
    def of(cls, X: Any, y: Any, most: int, seed: int = 0) -> "Sampled":
        """At most so many rows, with the classes in the same proportions."""
        data = Dataset.of(X, y)
        labels, n = label_array(y), data.n_rows
        if n <= most:
            return cls(data, labels, n)
        rng = np.random.default_rng(seed)
        _, codes = np.unique(labels, return_inverse=True)
        order = np.lexsort((rng.random(n), codes))  # classes one after the other, shuffled within
        rows = np.sort(order[np.linspace(0, n - 1, most).round().astype(np.int64)])
        return cls(data.take(rows), labels[rows], n)

    @property
    def note(self) -> str:
        """A sentence where rows were left out; empty where none was."""
        if len(self.labels) == self.n_all:
            return ""
        return f"Measured on {len(self.labels):,} of {self.n_all:,} rows, drawn by chance."


def hold_out(y: Any, share: float = 0.3, seed: int = 0) -> NDArray[np.bool_]:
    """Flag the rows to hold out, the given share of every class, drawn with a seed.

    A class keeps at least one row for fitting, so one that has a single row is never held out.
    """
    if not 0 < share < 1:
        raise ValueError(f"share must be between 0 and 1, got {share}.")
    _, labels = np.unique(label_array(y), return_inverse=True)
    rng = np.random.default_rng(seed)
    held = np.zeros(len(labels), bool)
    for label in range(int(labels.max(initial=-1)) + 1):
        rows = rng.permutation(np.flatnonzero(labels == label))
        held[rows[: min(round(share * len(rows)), len(rows) - 1)]] = True
    return held
