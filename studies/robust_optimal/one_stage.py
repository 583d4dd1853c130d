"""A one-stage model to compare with: the leaf of every row is fixed before the shift is known.

The paper decides where a row goes after the shift (section 1.1). Fixed beforehand, a row counts
only if no shift within the whole budget takes it out of its leaf, even into one of the same label:
constraints hold for every shift, so that each row has to stand the whole budget alone.
"""

import itertools

import numpy as np

TOLERANCE = 1e-9


def exit_costs(splits, X, step_cost):
    """Cost of the cheapest shift that moves each row across one of the splits that it passes.

    splits[k] = (column, threshold) for the nodes of a full tree of depth 2: root, left, right.
    """
    rows = np.arange(len(X))
    found = np.full(len(X), np.inf)
    for k, (column, threshold) in enumerate(splits):
        left = X[:, splits[0][0]] <= splits[0][1]
        passes = rows if k == 0 else np.flatnonzero(left if k == 1 else ~left)
        steps = np.abs(X[passes, column] - threshold)
        steps = np.where(X[passes, column] <= threshold, steps + 1, steps)
        found[passes] = np.minimum(found[passes], steps * step_cost[column])
    return found


def leaves(splits, X):
    """Leaf 0 to 3 of each row."""
    right = X[:, splits[0][0]] > splits[0][1]
    below = np.where(right, X[:, splits[2][0]] > splits[2][1], X[:, splits[1][0]] > splits[1][1])
    return 2 * right + below


def stage_one_value(splits, X, y, step_cost, budget):
    """Rows right in a leaf that they cannot leave, labels of leaves being the best ones."""
    stays = exit_costs(splits, X, step_cost) > budget + TOLERANCE
    where, total = leaves(splits, X), 0
    for leaf in range(4):
        own = y[(where == leaf) & stays]
        total += np.unique(own, return_counts=True)[1].max() if len(own) else 0
    return int(total)


def best_one_stage(X, y, step_cost, budget):
    """The largest value of all trees of depth 2 over whole-number columns, and its splits."""
    asked = [
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
