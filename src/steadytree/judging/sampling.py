"""Sampling: fewer rows for what takes long, and a word about it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.core.labels import label_array
from steadytree.core.table import Table


@dataclass(frozen=True, eq=False)
class Sampled:
    """Rows for a slow measure: all of them, or as many as it can take.

    Parameters
    ----------
    features : rows as they were handed over
    labels : array
    n_all : int
        Rows there are.
    """

    features: Any
    labels: NDArray[Any]
    n_all: int

    @classmethod
    def of(cls, X: Any, y: Any, most: int, seed: int = 0) -> "Sampled":
        """At most so many rows, the same share of every class as far as that goes."""
        labels, n = label_array(y), Table.read(X).n_rows
        if n <= most:
            return cls(X, labels, n)
        rng = np.random.default_rng(seed)
        _, codes = np.unique(labels, return_inverse=True)
        order = np.lexsort((rng.random(n), codes))  # classes one after the other, shuffled within
        rows = np.sort(order[np.linspace(0, n - 1, most).round().astype(np.int64)])
        return cls(Table.pick(X, rows), labels[rows], n)

    @property
    def note(self) -> str:
        """A sentence where rows were left out; empty where none was."""
        if len(self.labels) == self.n_all:
            return ""
        return f"Measured on {len(self.labels):,} of {self.n_all:,} rows, drawn by chance."
