"""JointTable: rows by the answers to a few splits, and the best tree that asks only these."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.data.splits import SplitTable
from steadytree.privacy.mechanisms import Floats, Integers
from steadytree.privacy.sampled_tree import OPEN, SampledTree

YES, NO, BOTH = 0, 1, 2
PENALTY = 1.0  # of a leaf, in standard deviations of its noisy count


@dataclass(frozen=True, eq=False)
class JointTable:
    """A table with a cell for each list of answers that a row can give to some splits.

    A row is in one cell, so all class counts together have sensitivity 1, however many splits
    there are. They are the leaf counts of `tree`, which asks every split on every path but those
    whose answer follows from the others. All trees of these splits can then be compared without
    another look at the rows.
    """

    splits: tuple[int, ...]
    tree: SampledTree
    answers: Integers  # (cells, splits): YES or NO, in the order of the tree's leaves

    @classmethod
    def of(cls, splits: Sequence[int], candidates: SplitTable) -> "JointTable":
        """The table of some candidate splits."""
        feature, bin_, by_value = candidates.arrays
        offsets, cells = candidates.space.bin_offsets, list[tuple[int, ...]]()

        def build(possible: dict[int, NDArray[np.bool_]], answers: tuple[int, ...]) -> SampledTree:
            if len(answers) == len(splits):
                cells.append(answers)
                return OPEN
            split = splits[len(answers)]
            column, bins = int(feature[split]), np.arange(len(possible[int(feature[split])]))
            left = bins == bin_[split] if by_value[split] else bins <= bin_[split]
            sides = possible[column] & left, possible[column] & ~left
            if not (sides[YES].any() and sides[NO].any()):  # the answer is known
                return build(possible, (*answers, YES if sides[YES].any() else NO))
            yes, no = (
                build({**possible, column: side}, (*answers, answer))
                for answer, side in zip((YES, NO), sides, strict=True)
            )
            return SampledTree(split, yes, no)

        columns = {int(feature[split]) for split in splits}
        every = {k: np.ones(offsets[k + 1] - offsets[k], np.bool_) for k in columns}
        tree = build(every, ())
        return cls(tuple(splits), tree, np.array(cells, np.int64).reshape(len(cells), len(splits)))

    def best_tree(self, counts: NDArray[Any], variance: float) -> tuple[SampledTree, Floats]:
        """The tree that classifies most rows correctly, and the class counts of its leaves.

        counts (cells, classes) have noise of a variance. Each leaf costs PENALTY standard
        deviations of its count, or trees would fit the noise of many small leaves. Exact, by the
        best trees of all boxes: of each split a box has the yes side, the no side, or both.
        """
        n_splits, n_classes = len(self.splits), counts.shape[1]
        boxes = np.zeros((2,) * n_splits + (n_classes + 1,))  # counts, and the number of cells
        boxes[tuple(self.answers.T)] = np.column_stack([counts, np.ones(len(counts))])
        for axis in range(n_splits):
            boxes = np.concatenate([boxes, boxes.sum(axis=axis, keepdims=True)], axis=axis)
        cells = boxes[..., -1]
        value = boxes[..., :-1].max(axis=-1) - PENALTY * np.sqrt(variance * cells)
        value[cells == 0] = -math.inf  # no row can be there: no split has such a side
        chosen = np.full(value.shape, -1)
        for both in sorted(itertools.product((False, True), repeat=n_splits), key=sum):
            here = [BOTH if each else slice(0, BOTH) for each in both]
            for axis in np.flatnonzero(both).tolist():
                sides = [value[(*here[:axis], side, *here[axis + 1 :])] for side in (YES, NO)]
                better = sides[YES] + sides[NO] > value[tuple(here)]
                value[tuple(here)] = np.where(better, sides[YES] + sides[NO], value[tuple(here)])
                chosen[tuple(here)] = np.where(better, axis, chosen[tuple(here)])
        leaves: list[Floats] = []

        def build(box: tuple[int, ...]) -> SampledTree:
            axis = int(chosen[box])
            if axis < 0:
                leaves.append(boxes[box][:-1])
                return OPEN
            yes, no = (build((*box[:axis], side, *box[axis + 1 :])) for side in (YES, NO))
            return SampledTree(self.splits[axis], yes, no)

        tree = build((BOTH,) * n_splits)
        return tree, np.array(leaves)
