"""A one-stage model to compare with: the leaf of every row is fixed before the shift is known.

The paper decides where a row goes after the shift (section 1.1). Fixed beforehand, a row counts
only if no shift within the whole budget takes it out of its leaf, even into one of the same label:
constraints hold for every shift, so that each row has to stand the whole budget alone.
"""

import itertools

import numpy as np

TOLERANCE = 1e-9


def goes_right(split, X):
    """Rows above the threshold of a split; none where there is no split."""
    return np.zeros(len(X), bool) if split is None else X[:, split[0]] > split[1]


def leaves(splits, X):
    """Leaf 0 to 3 of each row."""
    right = goes_right(splits[0], X)
    return 2 * right + np.where(right, goes_right(splits[2], X), goes_right(splits[1], X))


def exit_costs(splits, X, step_cost):
    """Cost of the cheapest shift that moves each row across one of the splits that it passes.

    splits[k] = (column, threshold) for the root, its left and its right child, None for no split.
    """
    right = goes_right(splits[0], X)
    found = np.full(len(X), np.inf)
    for split, passes in zip(splits, (np.ones(len(X), bool), ~right, right), strict=True):
        if split is None:
            continue
        column, threshold = split
        steps = X[:, column] - threshold
        cost = np.where(steps > 0, steps, 1 - steps) * step_cost[column]
        found[passes] = np.minimum(found[passes], cost[passes])
    return found


def stage_one_value(splits, X, y, step_cost, budget):
    """Rows right in a leaf that they cannot leave, labels of leaves being the best ones."""
    stays = exit_costs(splits, X, step_cost) > budget + TOLERANCE
    where, total = leaves(splits, X), 0
    for leaf in range(4):
        own = y[(where == leaf) & stays]
        total += np.unique(own, return_counts=True)[1].max() if len(own) else 0
    return int(total)


def best_one_stage(X, y, step_cost, budget):
    """The largest value of all trees of depth 2 or less over whole numbers, and its splits."""
    asked = [None] + [
        (j, threshold)
        for j in range(X.shape[1])
        for threshold in range(int(X[:, j].min()), int(X[:, j].max()))
    ]
    best, chosen = -1, None
    for splits in itertools.product(asked, repeat=3):
        value = stage_one_value(splits, X, y, step_cost, budget)
        if value > best:
            best, chosen = value, splits
    return best, chosen
