"""Recipe: a fit made ready, so that it can be repeated on some of its rows."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.core.rules import Rules
from steadytree.core.space import FeatureSpace
from steadytree.kernels import Draw


@dataclass(frozen=True, eq=False)
class Recipe:
    """Rows as codes, the rules that may be asked, and how one is drawn.

    Refits on fewer rows share the bins, the rules and the noise with the fit on all rows; only
    so is a change of the tree a change caused by the rows.

    Parameters
    ----------
    space : FeatureSpace
        With the cuts that the rules were made from.
    codes : array of shape (n_features, n_rows)
    labels : int32 array of shape (n_rows,)
        Places among the classes; kernels never see the labels themselves.
    classes : array of labels
    rules : Rules
    draw : Draw
    max_depth : int
    lookahead : int
    weights : float64 array of shape (n_rows,), or None
    """

    space: FeatureSpace
    codes: NDArray[Any]
    labels: NDArray[np.int32]
    classes: NDArray[Any]
    rules: Rules
    draw: Draw
    max_depth: int
    lookahead: int = 1
    weights: NDArray[np.float64] | None = None

    @property
    def n_rows(self) -> int:
        return len(self.labels)

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    def with_seed(self, seed: int) -> "Recipe":
        """The same fit with other noise."""
        return replace(self, draw=self.draw._replace(seed=int(seed)))

    def take(self, rows: NDArray[Any]) -> "Recipe":
        """The same fit on some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        codes = np.ascontiguousarray(self.codes[:, rows])
        return replace(self, codes=codes, labels=self.labels[rows], weights=weights)
