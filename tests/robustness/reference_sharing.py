"""Twins of the kernels that share rows between regions: all sub-trees, one by one."""

import numpy as np

from tests.robustness import reference_search as twins

COMPARED_APART = ("least_two_levels",)


def rates_of(costs, price, limit, shared):
    """Part of each row that is lost at its cost."""
    if not shared:
        return (costs <= limit) * 1.0
    finite = np.where(np.isinf(costs), 0.0, costs)
    return np.where(np.isinf(costs), 0.0, np.maximum(0.0, 1.0 - price * finite))


def sub_trees(path, depth, table):
    """Costs of a wrong answer (m, n), and splits (m,), of all sub-trees in a box, each once."""
    reach = twins.costs_of_path(path, table)
    leaves = [np.where(table.label == k, np.inf, reach) for k in range(table.n_classes)]
    found = [np.append(cost, 0.0) for cost in leaves]
    if depth > 0:
        splits, sides = (np.array([step[k] for step in path], np.int64) for k in (0, 1))
        for split in np.flatnonzero(twins.open_splits(splits, sides, len(path), table)).tolist():
            left, right = (sub_trees((*path, (split, k)), depth - 1, table) for k in (0, 1))
            both = np.minimum(left[0][:, None], right[0][None])
            count = 1 + left[1][:, None] + right[1][None]
            joined = np.concatenate([both, count[:, :, None]], axis=2)
            found.extend(joined.reshape(-1, joined.shape[2]))
    every = np.unique(np.array(found), axis=0)
    return every[:, :-1], every[:, -1]


def least_two_levels(path, table, weight, spending, rates):
    """Least loss; rates becomes those of every sub-tree that loses so much, one below another."""
    price, limit, shared, penalty = spending
    above = tuple(zip(*(part[: path[1][-1]].tolist() for part in path), strict=True))
    costs, counts = sub_trees(above, 2, table)
    every = rates_of(costs, price, limit, shared)
    losses = every @ weight + penalty * counts
    rates.extend(every[losses < losses.min() + 1e-9])
    return losses.min()
