"""A scorecard as a tree."""

from typing import Any

import numpy as np

from steadytree.models.scorecard import scorecard_of
from steadytree.models.tree import LEAF, Tree

MOST_CONDITIONS = 8


def scorecard_to_tree(scorecard: Any) -> Tree:
    """The tree with a scorecard's predictions and risks: a level for each of up to 8 conditions."""
    scorecard = scorecard_of(scorecard)
    if scorecard.n_conditions > MOST_CONDITIONS:
        raise ValueError(
            f"the card has {scorecard.n_conditions} conditions, and a tree of more than "
            f"{MOST_CONDITIONS} levels is too large to write out: fit with "
            f"max_conditions={MOST_CONDITIONS}, or export the card itself."
        )
    n_inner = 2**scorecard.n_conditions - 1
    n_nodes, width = 2 * n_inner + 1, max(len(column.categories) for column in scorecard.space)
    feature, threshold = np.full(n_nodes, LEAF), np.full(n_nodes, np.nan)
    left, right = np.full(n_nodes, LEAF), np.full(n_nodes, LEAF)
    missing_left, subset = np.zeros(n_nodes, bool), np.zeros((n_nodes, width), bool)
    totals = np.zeros((n_nodes, scorecard.points.shape[1]), np.int64) + scorecard.offset
    for node in range(n_inner):
        level = int(np.log2(node + 1))
        condition = scorecard.conditions[level]
        yes_left = condition.sort not in ("at_least", "missing")
        feature[node], missing_left[node] = condition.feature, condition.sort == "at_least"
        categories = scorecard.space[condition.feature].categories
        if categories:  # any value is asked for by naming all
            named = condition.categories if condition.sort == "among" else range(len(categories))
            subset[node, list(named)] = True
        else:
            below = np.nextafter(condition.threshold, -np.inf)
            threshold[node] = np.inf if condition.sort in ("missing", "present") else below
        left[node], right[node] = 2 * node + 1, 2 * node + 2
        totals[left[node]], totals[right[node]] = totals[node], totals[node]
        totals[left[node] if yes_left else right[node]] += scorecard.points[level]
    weight = 2.0 ** -np.floor(np.log2(np.arange(n_nodes) + 1))
    if scorecard.gives_risks:
        value = scorecard.risk(totals[:, 0] if scorecard.is_binary else totals)
    else:
        value = np.eye(len(scorecard.classes))[scorecard.answer_of(totals)]
    for node in range(n_inner - 1, -1, -1):
        value[node] = (value[left[node]] + value[right[node]]) / 2
    arrays = (feature, threshold, left, right, value, weight, missing_left, subset)
    return Tree(scorecard.space, scorecard.classes, *arrays)
