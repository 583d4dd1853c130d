"""Summed: many sources that look like one, because their counts add."""

from collections.abc import Sequence
from functools import reduce
from operator import add

from steadytree.core.counts import ClassCounts, Source, Splits
from steadytree.core.rules import Rules


class Summed:
    """Sources over one feature space and one list of classes, asked together and added up.

    Parameters
    ----------
    sources : sequence of Source
    """

    def __init__(self, sources: Sequence[Source]) -> None:
        if not sources:
            raise ValueError("Summed: needs at least one source.")
        shapes = {(source.rules.n_bins, source.n_classes) for source in sources}
        if len(shapes) > 1:
            raise ValueError(
                f"Summed: sources differ in (bins, classes), got {sorted(shapes)}: "
                "make all of them from one FeatureSpace and one list of classes."
            )
        self._sources = tuple(sources)

    @property
    def rules(self) -> Rules:
        return self._sources[0].rules

    @property
    def n_classes(self) -> int:
        return self._sources[0].n_classes

    def start(self) -> None:
        for source in self._sources:
            source.start()

    def advance(self, splits: Splits) -> None:
        for source in self._sources:
            source.advance(splits)

    def count(self, first: int, last: int) -> ClassCounts:
        return reduce(add, (source.count(first, last) for source in self._sources))
