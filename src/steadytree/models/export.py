"""A scorecard as a tree and as an SQL expression."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from steadytree.models.condition import Condition
from steadytree.models.scorecard import Scorecard, card_of
from steadytree.models.tree import LEAF, Tree

MOST_CONDITIONS = 8


def card_to_tree(card: Any) -> Tree:
    """The tree with a scorecard's predictions and risks: a level for each of up to 8 conditions."""
    card = card_of(card)
    if card.n_conditions > MOST_CONDITIONS:
        raise ValueError(
            f"the card has {card.n_conditions} conditions, and a tree of more than "
            f"{MOST_CONDITIONS} levels is too large to write out: fit with "
            f"max_conditions={MOST_CONDITIONS}, or export the card itself."
        )
    n_inner = 2**card.n_conditions - 1
    n_nodes, width = 2 * n_inner + 1, max(len(column.categories) for column in card.space)
    feature, threshold = np.full(n_nodes, LEAF), np.full(n_nodes, np.nan)
    left, right = np.full(n_nodes, LEAF), np.full(n_nodes, LEAF)
    missing_left, subset = np.zeros(n_nodes, bool), np.zeros((n_nodes, width), bool)
    totals = np.zeros((n_nodes, card.points.shape[1]), np.int64) + card.offset
    for node in range(n_inner):
        level = int(np.log2(node + 1))
        condition = card.conditions[level]
        yes_left = condition.sort not in ("at_least", "missing")
        feature[node], missing_left[node] = condition.feature, condition.sort == "at_least"
        categories = card.space[condition.feature].categories
        if categories:  # any value is asked for by naming all
            named = condition.categories if condition.sort == "among" else range(len(categories))
            subset[node, list(named)] = True
        else:
            below = np.nextafter(condition.threshold, -np.inf)
            threshold[node] = np.inf if condition.sort in ("missing", "present") else below
        left[node], right[node] = 2 * node + 1, 2 * node + 2
        totals[left[node]], totals[right[node]] = totals[node], totals[node]
        totals[left[node] if yes_left else right[node]] += card.points[level]
    weight = 2.0 ** -np.floor(np.log2(np.arange(n_nodes) + 1))
    if card.gives_risks:
        value = card.risk(totals[:, 0] if card.is_binary else totals)
    else:
        value = np.eye(len(card.classes))[card.answer_of(totals)]
    for node in range(n_inner - 1, -1, -1):
        value[node] = (value[left[node]] + value[right[node]]) / 2
    arrays = (feature, threshold, left, right, value, weight, missing_left, subset)
    return Tree(card.space, card.classes, *arrays)


def card_to_sql(card: Any, label: object = None) -> str:
    """The total of a row as an SQL expression, as `Scorecard.to_sql` describes it."""
    card = card_of(card)
    own = card.total_of(label)
    parts = [str(int(card.offset[own]))]
    for condition, points in zip(card.conditions, card.points[:, own].tolist(), strict=True):
        if points:
            parts.append(f"(CASE WHEN {_condition(card, condition)} THEN {points} ELSE 0 END)")
    return " + ".join(parts)


def _condition(card: Scorecard, condition: Condition) -> str:
    column = card.space[condition.feature]
    name = '"' + column.name.replace('"', '""') + '"'
    if condition.sort == "among":
        return f"{name} IN ({_listed([column.categories[k] for k in condition.categories])})"
    if column.is_categorical:
        known = f"{name} IN ({_listed(column.categories)})"
        return known if condition.sort == "present" else f"{name} IS NULL OR NOT {known}"
    if condition.sort in ("missing", "present"):
        return f"{name} IS {'' if condition.sort == 'missing' else 'NOT '}NULL"
    sign = ">=" if condition.sort == "at_least" else "<"
    return f"{name} {sign} {condition.threshold!r}"


def _listed(categories: Sequence[str]) -> str:
    return ", ".join("'" + each.replace("'", "''") + "'" for each in categories)
