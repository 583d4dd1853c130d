"""TreeBuilder: from chosen splits and class counts to a Tree."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.data.splits import SplitTable
from steadytree.models._kernels import cut_back, uniform_nodes
from steadytree.models.tree import LEAF, Tree

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TreeBuilder:
    """Makes every tree that is built from candidate splits."""

    splits: SplitTable
    classes: NDArray[Any]

    def build(
        self,
        split: Integers,
        left: Integers,
        right: Integers,
        totals: Floats,
        threshold: Integers | None = None,
        label: Integers | None = None,
        missing_right: bool = False,
        merge: bool = True,
    ) -> Tree:
        """The tree, with `merge` joining sibling leaves of equal labels, upwards.

        `split` (n_nodes,) indexes the table, -1 at leaves; parents come before children. `totals`
        (n_nodes, n_classes) are class counts; a node without any takes the shares of its parent.
        `threshold` chooses among those that a merged split stands for. A leaf whose `label` is not
        its most frequent class gets that label with certainty.

        Missing values follow the split where the column had some in training, else they go where
        most rows went; with `missing_right` they always follow the split.
        """
        value = self._shares(split, left, right, totals, label)
        # merged before the tree is made: making one costs as much as growing a small one
        uniform = uniform_nodes(left, right, value.argmax(axis=1)) & merge
        kept, left, right = cut_back(left, right, uniform)
        weight = totals.sum(axis=1)[kept]
        node = np.flatnonzero(left != LEAF)
        table, chosen = self.splits.table, split[kept[node]]
        index = table.first[chosen] if threshold is None else threshold[kept[node]]
        feature, thresholds = np.full(len(left), LEAF), np.full(len(left), np.nan)
        feature[node] = table.feature[chosen]
        thresholds[node] = self._thresholds(feature[node], index)
        follow = np.array([column.missing or missing_right for column in self.splits.space])
        larger_left = weight[left[node]] >= weight[right[node]]
        missing_left = np.zeros(len(left), bool)
        missing_left[node] = np.where(
            follow[feature[node]], table.missing_left[chosen], larger_left
        )
        subset = self._subsets(len(left), node, chosen, index)
        arrays = (feature, thresholds, left, right, value[kept], weight, missing_left, subset)
        return Tree(self.splits.space, self.classes, *arrays)

    def _shares(
        self,
        split: Integers,
        left: Integers,
        right: Integers,
        totals: Floats,
        label: Integers | None,
    ) -> Floats:
        weight = totals.sum(axis=1, keepdims=True)
        shares = np.divide(totals, weight, out=np.zeros(totals.shape), where=weight > 0)
        empty = weight[:, 0] <= 0
        if empty.any():
            shares[0] = 1 / totals.shape[1] if empty[0] else shares[0]
            for node in np.flatnonzero(split >= 0):  # parents come first
                for child in (left[node], right[node]):
                    shares[child] = shares[node] if empty[child] else shares[child]
        if label is not None:
            other = np.flatnonzero((split < 0) & (empty | (totals.argmax(axis=1) != label)))
            shares[other] = np.eye(totals.shape[1])[label[other]]
        return shares

    def _thresholds(self, feature: Integers, index: Integers) -> list[float]:
        """Thresholds by index; past a column's last one the split asks if the value is missing."""
        found = []
        for j, k in zip(feature.tolist(), index.tolist(), strict=True):
            column = self.splits.space[j]
            last = np.nan if column.is_categorical else np.inf
            found.append(float(column.thresholds[k]) if k < len(column.thresholds) else last)
        return found

    def _subsets(
        self, n_nodes: int, nodes: Integers, chosen: Integers, index: Integers
    ) -> NDArray[np.bool_]:
        """The categories that go left: one, or all if the split asks for missing values."""
        sizes = self.splits.space.n_categories
        subset = np.zeros((n_nodes, sizes.max()), bool)
        for node, split, k in zip(nodes, chosen.tolist(), index.tolist(), strict=True):
            left = self.splits.categories_left(split, k)
            subset[node, : len(left)] = left
        return subset
