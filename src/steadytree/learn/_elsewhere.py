"""Rows that are elsewhere, on a cluster or on disk: a fit made ready in two passes over them."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from steadytree.core.counts import Source
from steadytree.core.grid import Grid
from steadytree.core.look import Look
from steadytree.core.rules import Rules
from steadytree.core.space import FeatureSpace


class Elsewhere(Protocol):
    """Parts of the data that are read where they lie."""

    def recall(
        self, grid: Grid, n_thresholds: int
    ) -> tuple[FeatureSpace, NDArray[Any], NDArray[np.bool_]] | None:
        """Space, classes and occupied bins where the rows were binned before."""

    def look(self, grid: Grid) -> Look:
        """First pass: ranges, categories and labels of all rows."""

    def encode(self, space: FeatureSpace, classes: NDArray[Any]) -> NDArray[np.bool_]:
        """Second pass: bin all rows, keep the codes, tell which bins any row is in."""

    def source(self, rules: Rules, n_classes: int) -> Source:
        """The binned rows as a source of counts."""


def make_ready(
    parts: Elsewhere, grid: Grid, n_thresholds: int
) -> tuple[FeatureSpace, NDArray[Any], Source]:
    """Space with cuts, classes, and the source; all as rows in memory would give them."""
    known = parts.recall(grid, n_thresholds)
    if known is None:
        look = parts.look(grid)
        space = look.space(grid, n_thresholds)
        known = space, look.labels, parts.encode(space, look.labels)
    space, classes, occupied = known
    rules = Rules.of(space.columns, occupied)
    return space, classes, parts.source(rules, len(classes))
