"""Recount: a model that was learned from a sample, with the counts of all rows."""

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.data.parts import Parts
from steadytree.metrics.accuracy import label_indices
from steadytree.models.risk_table import RiskTable
from steadytree.models.scorecard import Scorecard
from steadytree.models.tree import LEAF, Tree


def recount_tree(tree: Tree, parts: Parts, prior: float) -> Tree:
    """The tree with weights and values of all rows; its own values count as `prior` rows."""
    counts = parts.add_up(_count_leaves, tree, columns=list(tree.space.names))
    for node in np.flatnonzero(tree.left != LEAF)[::-1]:  # children come later
        counts[node] = counts[tree.left[node]] + counts[tree.right[node]]
    weight = counts.sum(axis=1)
    value = (counts + prior * tree.value) / (weight + prior)[:, None]
    return replace(tree, value=value, weight=weight)


def recount_risks(card: Scorecard, parts: Parts) -> Scorecard:
    """The risk score with a table of all rows."""
    counts = parts.add_up(_count_totals, card, columns=list(card.space.names))
    *totals, labels = np.array(list(counts), np.int64).T
    own = totals[0] if card.is_binary else np.column_stack(totals)
    weights = np.array([*counts.values()], np.float64)
    return replace(card, risk_table=RiskTable.of(card, own, labels, weights))


def _count_leaves(X: Any, y: Any, tree: Tree) -> NDArray[np.float64]:
    n, k = tree.value.shape
    cells = tree.apply(X) * k + label_indices(tree.classes, y)
    return np.bincount(cells, minlength=n * k).reshape(n, k).astype(np.float64)


def _count_totals(X: Any, y: Any, card: Scorecard) -> "Counter[tuple[int, ...]]":
    both = np.column_stack([card.score(X), label_indices(card.classes, y)])
    listed, counts = np.unique(both, axis=0, return_counts=True)
    return Counter(dict(zip(map(tuple, listed.tolist()), counts.tolist(), strict=True)))
