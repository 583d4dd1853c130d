"""Padding: rows among so many that are none that all work follows from public numbers.

Whoever can time answers learns what their time depends on. So a part of the rows is a mask over all
rows, padded to a public number: a pass over an empty part costs as much as one over all rows, and a
data set without a row as much as a full one. Work is counted in steps, about one word of 64 rows
each, twice: `Padding.done` from the arrays that were passed over, `Price` from public numbers
before a request is admitted. The two are equal.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steadytree._base.exceptions import CancelledError
from steadytree.data._kernels.counts import count_classes
from steadytree.data.splits import SplitTable
from steadytree.privacy._kernels import WORD_BITS, order_by_class, pack_sides

Integers = NDArray[np.int64]
LEAST_CAPACITY = 1_024  # rows
ROW, COUNTER, WEIGHT = 4, 8, 64  # steps of a row passed over, counted, and of a leaf's weight


def capacity_for(n_rows: int, most_rows: int | None) -> int:
    """The number of rows to pad to: the public one, or else the next power of two.

    >>> capacity_for(0, None), capacity_for(3_000, None), capacity_for(3_000, 5_000)
    (1024, 4096, 5056)
    """
    if most_rows is None:
        return max(LEAST_CAPACITY, 1 << max(n_rows - 1, 0).bit_length())
    if n_rows > most_rows:
        raise ValueError(f"there are more rows than the {most_rows:,} declared: declare more.")
    return -(-max(most_rows, 1) // WORD_BITS) * WORD_BITS


@dataclass(frozen=True)
class Price:
    """Steps of the passes over a padded data set, from public numbers alone."""

    n_rows: int  # the padded number
    n_features: int
    n_splits: int
    n_bins: int
    n_classes: int

    @property
    def n_words(self) -> int:
        """Words of 64 rows; each class begins a word of its own."""
        return self.n_rows // WORD_BITS + self.n_classes

    @property
    def masking(self) -> int:
        """A split of a part, or its class counts."""
        return ROW * self.n_rows

    @property
    def packing(self) -> int:
        """The sides of all splits of a part, as bits."""
        return ROW * self.n_rows + self.n_splits * self.n_words

    @property
    def counting(self) -> int:
        """Class counts of all bins of a part, and scores of its splits."""
        scores = (self.n_bins + self.n_splits) * self.n_classes
        return COUNTER * (self.n_rows * self.n_features + 2 * scores)

    def weighing(self, depth: int) -> int:
        """The sums over all trees of so many levels (`root_terms`)."""
        m, leaf = self.n_splits, WEIGHT * self.n_classes
        once = m * (self.n_words + 2 * leaf)
        pairs = m * m * (self.n_words + 4 * leaf)
        triples = m * m * (m + 1) // 2 * (self.n_words + 8 * leaf)
        return once + (0, pairs, pairs + triples)[depth - 1]

    def block(self, depth: int) -> int:
        """A tree of so many levels, sampled for a part; as deep whatever is sampled."""
        if depth == 0:
            return self.masking
        own = self.masking + self.packing + self.weighing(depth) + self.masking
        return own + 2 * self.block(depth - 1)


class Padding:
    """All that the parts of one data set share: its rows in bins, and the work that was done."""

    def __init__(
        self,
        binned: NDArray[np.generic],
        labels: NDArray[np.int32],
        n_rows: int,  # the first of them; the rest is padding
        n_classes: int,
        candidates: SplitTable,
    ) -> None:
        self.price = Price(len(labels), len(binned), len(candidates), candidates.n_bins, n_classes)
        self.done, self._binned, self._candidates = 0, binned, candidates
        self.cancelled = False  # the next pass then ends the computation
        self._labels, self._bits = labels, np.zeros((0, 0), np.uint64)
        every = np.arange(len(labels))
        of_all = np.where(every < n_rows, labels, n_classes).astype(np.int32)  # padding comes last
        ordered, offsets = order_by_class(of_all, every, n_classes + 1)
        n_words = self.price.n_words
        listed = np.full((n_words + 1) * WORD_BITS, -1, np.int64)
        listed[: len(ordered)] = ordered
        self._ordered = np.where(listed < n_rows, listed, -1)[: n_words * WORD_BITS]
        self.word_offsets = offsets[:-1]
        self.word_offsets[-1] = n_words  # the last class takes all words left, without a row

    def spend(self, steps: int) -> None:
        """Count steps that are done now."""
        if self.cancelled:
            raise CancelledError
        self.done += steps

    def split(self, inside: NDArray[np.bool_], split: int) -> NDArray[np.bool_]:
        """The rows of a part on the yes side of a split."""
        self.spend(ROW * len(inside))
        return inside & self._candidates.goes_left(self._binned, split)

    def class_counts(self, inside: NDArray[np.bool_]) -> Integers:
        """Class counts of a part."""
        self.spend(ROW * len(inside))
        n_classes = self.price.n_classes
        found = np.bincount(np.where(inside, self._labels, n_classes), minlength=n_classes + 1)
        return found[:-1].astype(np.int64)

    def bin_counts(self, inside: NDArray[np.bool_]) -> Integers:
        """Class counts of all bins of a part; the rows outside it are counted too, elsewhere."""
        offsets, n_classes = self._candidates.space.bin_offsets, self.price.n_classes
        nodes = np.where(inside, 0, 1).astype(np.int32)
        counts = count_classes(self._binned, self._labels, nodes, 2, offsets, n_classes)
        scores = counts[0].size + len(self._candidates) * n_classes
        self.spend(COUNTER * (self._binned.size + 2 * scores))
        return counts[0]

    def packed(self, inside: NDArray[np.bool_]) -> NDArray[np.uint64]:
        """One bit a row and split: 1 for a row of the part on the split's yes side."""
        if not self._bits.size:
            # what is no row is packed as the first one, and left out below
            every = np.maximum(self._ordered, 0)
            self._bits = pack_sides(self._binned, every, *self._candidates.arrays)
        taken = np.where(self._ordered >= 0, inside[self._ordered], False)
        bits = self._bits & np.packbits(taken, bitorder="little").view(np.uint64)
        self.spend(ROW * len(inside) + bits.size)
        return bits
