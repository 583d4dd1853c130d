"""Equivalence: whether two trees decide alike on every possible input.

The boxes of both trees' leaves are intersected from the roots down. A number may be any finite
float64, a category any that the space knows, and every value may be missing, which is also how a
tree sees a category that it does not know.
"""

import math
import sys
from dataclasses import dataclass
from typing import Any, NamedTuple

from steadytree.data.column import Column
from steadytree.models.boxes import exact_thresholds
from steadytree.models.tree import LEAF, Tree

MOST_STEPS = 200_000  # splits that are looked at


class Values(NamedTuple):
    """Values of one column: numbers in ``(low, high]``, categories as bits, missing."""

    low: float
    high: float
    categories: int
    missing: bool

    @property
    def any(self) -> bool:
        return self.low < self.high or self.categories != 0 or self.missing


class Split(NamedTuple):
    """A split: to the left go numbers up to the threshold, or the categories set as bits."""

    column: int
    threshold: float
    categories: int
    missing_left: bool
    children: tuple[int, int]

    def sides(self, values: Values) -> tuple[Values, Values]:
        """The values that go left and those that go right."""
        low, high, categories, missing = values
        return (
            Values(
                low,
                min(high, self.threshold),
                categories & self.categories,
                missing and self.missing_left,
            ),
            Values(
                max(low, self.threshold),
                high,
                categories & ~self.categories,
                missing and not self.missing_left,
            ),
        )


@dataclass(frozen=True)
class Equivalence:
    """Whether two trees decide alike; where not, an input on which they differ."""

    alike: bool | None  # None where the limit of work was reached first
    # values of the columns that matter, by name; None is a missing value
    example: dict[str, Any] | None = None


def compare_decisions(old: Tree, new: Tree, most_steps: int = MOST_STEPS) -> Equivalence:
    """Look for an input on which two trees over one space predict different classes."""
    trees = [_splits(tree) for tree in (old, new)]
    labels = [tree.classes[tree.label].tolist() for tree in (old, new)]
    everything = [_all_values(column) for column in old.space]
    box = everything.copy()
    # pairs of nodes to look at, the column that leads there, and its values
    stack: list[tuple[int, int, int, Values]] = [(0, 0, 0, box[0])]
    while stack:
        *nodes, column, values = stack.pop()
        box[column] = values
        if nodes[0] == LEAF:  # only undoes what the pairs above it on the stack changed
            continue
        for k, splits in enumerate(trees):
            while (split := splits[nodes[k]]) is not None:
                most_steps -= 1
                left, right = split.sides(box[split.column])
                if left.any and right.any:
                    break
                nodes[k] = split.children[0 if left.any else 1]
        if most_steps < 0:
            return Equivalence(None)
        k = 0 if trees[0][nodes[0]] is not None else 1
        split = trees[k][nodes[k]]
        if split is not None:
            stack.append((LEAF, LEAF, split.column, box[split.column]))
            sides = split.sides(box[split.column])
            for child, own in zip(split.children[::-1], sides[::-1], strict=True):
                nodes[k] = child
                stack.append((nodes[0], nodes[1], split.column, own))
        elif labels[0][nodes[0]] != labels[1][nodes[1]]:
            return Equivalence(False, _example(old, everything, box))
    return Equivalence(True)


def _splits(tree: Tree) -> list[Split | None]:
    """Split of each node, None at leaves."""
    by_value, thresholds = tree.space.categorical, exact_thresholds(tree).tolist()
    found: list[Split | None] = [None] * tree.n_nodes
    for node in (tree.left != LEAF).nonzero()[0].tolist():
        j = int(tree.feature[node])
        bits = sum(1 << k for k in tree.subset[node].nonzero()[0].tolist())
        threshold = 0.0 if by_value[j] else thresholds[node]
        children = int(tree.left[node]), int(tree.right[node])
        found[node] = Split(j, threshold, bits, bool(tree.missing_left[node]), children)
    return found


def _all_values(column: Column) -> Values:
    if column.is_categorical:
        return Values(0.0, 0.0, (1 << len(column.categories)) - 1, True)
    return Values(-math.inf, sys.float_info.max, 0, True)


def _example(tree: Tree, everything: list[Values], box: list[Values]) -> dict[str, Any]:
    pairs = zip(tree.space, everything, box, strict=True)
    return {column.name: _one_of(column, own) for column, every, own in pairs if own != every}


def _one_of(column: Column, values: Values) -> Any:
    """A value among those allowed: whole where that is usual, else with few digits."""
    low, high, categories, _ = values
    if categories:
        return column.categories[(categories & -categories).bit_length() - 1]
    if not low < high:
        return None
    # an example within the bounds of the column, if there is one
    if max(low, math.nextafter(column.low, -math.inf)) < min(high, column.high):
        low, high = max(low, math.nextafter(column.low, -math.inf)), min(high, column.high)
    open_ends = math.isinf(low), high == sys.float_info.max
    if column.kind != "numeric":
        whole = float(math.floor(low) + 1 if not open_ends[0] else math.floor(high))
        if low < whole <= high and not all(open_ends):
            return whole
    around = {(True, True): 0.0, (True, False): high - 1, (False, True): low + 1}
    middle = around.get(open_ends, low / 2 + high / 2)
    rounded = (float(f"{middle:.{digits}g}") for digits in range(1, 18))
    return next((value for value in rounded if low < value <= high), high)
